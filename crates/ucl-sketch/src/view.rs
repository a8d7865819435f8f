//! Answers at one moment, by keys of their own type.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use ucl_control_plane::{DecodeError, Estimate, KeyId, QueryView, SelfCheck};
use ucl_data_plane::KeyFormat;

use crate::hit::Hit;
use crate::key::{AsKey, ByteKey, Key, KeyName};

/// The counts of a sketch at one moment. It never changes, and is cheap to clone and to share.
///
/// ```
/// use ucl_sketch::UclSketch;
///
/// let mut sketch = UclSketch::builder().keys::<u32>().build()?;
/// for i in 0..1_000u32 {
///     sketch.insert(i % 10)?;
/// }
/// let view = sketch.view();
/// assert_eq!((view.items(), view.known_keys()), (1_000, 10));
/// assert_eq!(view.estimate(3).count, 100);
/// assert_eq!(view.iter().map(|hit| hit.count).sum::<u64>(), 1_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct View<K = ByteKey> {
    inner: Arc<QueryView>,
    keys: PhantomData<fn() -> K>,
}

impl<K> Clone for View<K> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), keys: PhantomData }
    }
}

impl<K: Key> View<K> {
    pub(crate) fn new(inner: QueryView) -> Self {
        Self { inner: Arc::new(inner), keys: PhantomData }
    }

    /// Returns the `n` most frequent keys, the most frequent first.
    pub fn top(&self, n: usize) -> Vec<Hit<K>> {
        self.inner.top(n).into_iter().map(|(id, estimate)| self.hit(id, estimate)).collect()
    }

    /// Returns how often a key occurred.
    pub fn estimate(&self, key: impl AsKey<K>) -> Hit<K> {
        key.with_key_bytes(|bytes| {
            let key = K::decode(bytes).expect("internal: a key that was encoded is decoded");
            row(KeyName::Known(key), self.inner.estimate(bytes), self.inner.likely(bytes))
        })
    }

    /// Returns all known keys, in the order in which they became known.
    pub fn iter(&self) -> impl Iterator<Item = Hit<K>> + '_ {
        self.inner.all().map(|(id, estimate)| self.hit(id, estimate))
    }

    /// Number of known keys.
    pub fn known_keys(&self) -> usize {
        self.inner.keys()
    }

    /// Number of items inserted.
    pub fn items(&self) -> u64 {
        self.inner.items()
    }

    /// Total weight of all items inserted.
    pub fn weight(&self) -> u64 {
        self.inner.weight()
    }

    /// Returns how many keys have each count.
    pub fn histogram(&self) -> BTreeMap<u64, u64> {
        self.inner.histogram()
    }

    /// Entropy of the counts, in bits.
    pub fn entropy(&self) -> f64 {
        self.inner.entropy()
    }

    /// Returns how far off the estimates are, as far as that can be told without the truth; `None`
    /// for sketches that have no such check.
    ///
    /// # Errors
    /// If the counters cannot be decoded, which only a defect of this library brings about.
    pub fn self_check(&self) -> Result<Option<SelfCheck>, DecodeError> {
        self.inner.self_check()
    }

    /// The view by key numbers, with everything that can be asked about time.
    pub fn query_view(&self) -> &QueryView {
        &self.inner
    }

    fn hit(&self, id: KeyId, estimate: Estimate) -> Hit<K> {
        let registry = self.inner.registry();
        let known = if registry.is_named(id) { K::decode(registry.key(id)) } else { None };
        // A state that another program wrote may hold keys of another type.
        let key = known.map_or_else(|| stand_in(registry.format(), registry.identity_of(id)), KeyName::Known);
        row(key, estimate, self.inner.likely_of(id))
    }
}

fn row<K>(key: KeyName<K>, certain: Estimate, likely: Estimate) -> Hit<K> {
    let Estimate { estimate: count, lower, upper, source, .. } = certain;
    // Count Sketch's likely range need not have the estimate in it.
    Hit {
        key,
        count,
        lower,
        upper,
        likely_lower: likely.lower.min(count),
        likely_upper: likely.upper.max(count),
        source,
    }
}

/// Returns the text that stands for a key in a slot.
fn stand_in<K>(format: KeyFormat, bytes: &[u8]) -> KeyName<K> {
    fn sized<const N: usize>(bytes: &[u8]) -> [u8; N] {
        std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
    }
    match format {
        KeyFormat::Code(_) => KeyName::Code(sized(bytes)),
        KeyFormat::Fixed(_) | KeyFormat::Digest => KeyName::Digest(sized(bytes)),
    }
}
