//! Every key that the control plane knows, each with a number that never moves.
//!
//! Keys are found by what the data plane's slots hold: the key itself, or the digest of a key of
//! any length. The hash is the data plane's own function.

mod names;

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use serde::{Deserialize, Serialize, Serializer};
use ucl_data_plane::{CodedKey, Config, DigestKey, HashSeed, Inconsistent, KeyFormat, ensure};

use self::names::Names;
use crate::segment::ReportError;
use crate::tight;

/// A known key. Handed out in order of first report; never reused.
///
/// ```
/// use ucl_control_plane::KeyId;
/// assert!(KeyId(3) < KeyId(4)); // 3 became known first
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyId(pub u32);

/// Registries that may lie one beyond the other: a key is looked for in each.
const MOST_LAYERS: usize = 8;

/// The known keys.
///
/// ```
/// use ucl_control_plane::Registry;
/// use ucl_data_plane::{HashSeed, KeyFormat};
/// let mut registry = Registry::new(KeyFormat::Fixed(4), HashSeed::new(1.into()));
/// let (id, new) = registry.intern(b"key1");
/// assert!(new && registry.find(b"key1") == Some(id) && registry.key(id) == b"key1");
/// ```
#[derive(Clone, Debug, Deserialize)]
pub struct Registry {
    /// Keys that are numbered before our own: a view shares those of its control plane.
    #[serde(skip)]
    before: Option<Arc<Registry>>,
    format: KeyFormat,
    // Of the seed, what digests come from; the rest is the first configuration's, and after a load
    // the last one's: where a key sits in the table is nobody's business. The table follows from
    // the keys.
    seed: HashSeed,
    #[serde(skip)]
    table: HashTable<u32>,
    /// What sits in slots: `slot_bytes` bytes per key.
    #[serde(with = "serde_bytes")]
    identities: Vec<u8>,
    /// Keys in full whose digest does not tell them; none for fixed sizes, where the identity is
    /// the key. A key with no bytes here was seen only by its digest.
    names: Names,
}

impl Registry {
    /// No keys yet.
    pub fn new(format: KeyFormat, seed: HashSeed) -> Self {
        let (table, identities, names) = Default::default();
        Self { before: None, format, seed, table, identities, names }
    }

    /// All keys of another registry, with room for more that this one alone knows. Nothing is
    /// copied.
    pub(crate) fn beyond(before: &Arc<Self>) -> Self {
        Self { before: Some(Arc::clone(before)), ..before.emptied() }
    }

    /// The registry to be shared: the one before, if there are no more keys.
    pub(crate) fn shared(self) -> Arc<Self> {
        match self.before {
            Some(before) if self.identities.is_empty() => before,
            _ => Arc::new(self),
        }
    }

    /// The registry to be written to. While a view has it, what comes goes into another one beyond
    /// it; they become one when no view has it any more.
    pub(crate) fn to_write(shared: &mut Arc<Self>) -> &mut Self {
        if Arc::get_mut(shared).is_none() {
            let beyond = if shared.layers() < MOST_LAYERS { Self::beyond(shared) } else { shared.above_the_lowest() };
            *shared = Arc::new(beyond);
        }
        let own = Arc::get_mut(shared).expect("nobody else has it");
        own.join_those_before();
        own
    }

    /// Takes the place of the one before, with its keys and our own, if nobody else has that.
    fn join_those_before(&mut self) {
        while let Some(before) = self.before.take() {
            match Arc::try_unwrap(before) {
                Ok(mut before) => {
                    before.learn_own(self);
                    *self = before;
                }
                Err(before) => {
                    self.before = Some(before);
                    return;
                }
            }
        }
    }

    /// Learns the keys that another registry, which follows on this one, has itself.
    fn learn_own(&mut self, other: &Self) {
        let bytes = other.format.slot_bytes();
        for (at, identity) in other.identities.chunks_exact(bytes).enumerate() {
            let (id, _) = self.intern(identity);
            if self.format.any_length() && !self.is_named(id) {
                self.give_name(id, other.names.get(at));
            }
        }
    }

    /// Registries one beyond the other.
    fn layers(&self) -> usize {
        1 + self.before.as_ref().map_or(0, |before| before.layers())
    }

    /// One registry beyond the lowest, in place of all that are.
    fn above_the_lowest(&self) -> Self {
        let Some(before) = &self.before else { return self.clone() };
        let mut all = if before.before.is_some() { before.above_the_lowest() } else { Self::beyond(before) };
        all.learn_own(self);
        all
    }

    /// The same keys in one registry.
    pub(crate) fn flat(&self) -> Cow<'_, Self> {
        let Some(before) = &self.before else { return Cow::Borrowed(self) };
        let mut all = before.flat().into_owned();
        all.learn_own(self);
        Cow::Owned(all)
    }

    /// Returns the number of known keys.
    pub fn len(&self) -> usize {
        self.keys_before() + self.identities.len() / self.format.slot_bytes()
    }

    /// Returns true if no key is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn keys_before(&self) -> usize {
        self.before.as_ref().map_or(0, |before| before.len())
    }

    /// The registry that has the key itself, and its number there.
    fn owner(&self, id: KeyId) -> (&Self, usize) {
        match &self.before {
            Some(before) if (id.0 as usize) < before.len() => before.owner(id),
            _ => (self, id.0 as usize - self.keys_before()),
        }
    }

    /// The format of the keys.
    pub fn format(&self) -> KeyFormat {
        self.format
    }

    /// All numbers handed out so far.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = KeyId> + use<> {
        (0..self.len() as u32).map(KeyId)
    }

    /// Returns the bytes that stand for a key in a slot; `None` if no key of this format has so
    /// many bytes.
    #[inline]
    pub fn identity<'a>(&self, key: &'a [u8], room: &'a mut [u8; 16]) -> Option<&'a [u8]> {
        match self.format {
            KeyFormat::Fixed(bytes) => (key.len() == usize::from(bytes)).then_some(key),
            KeyFormat::Digest => {
                *room = self.digest_key().digest(key);
                Some(&room[..])
            }
            KeyFormat::Code(bits) => {
                room[..8].copy_from_slice(&self.digest_key().code(key, bits).to_le_bytes());
                Some(&room[..8])
            }
        }
    }

    /// The key's number, if it is known, by its identity.
    #[inline]
    pub fn find(&self, identity: &[u8]) -> Option<KeyId> {
        match &self.before {
            None => self.find_own(identity),
            Some(before) => before.find(identity).or_else(|| self.find_own(identity)),
        }
    }

    #[inline]
    fn find_own(&self, identity: &[u8]) -> Option<KeyId> {
        // By size, so that keys are compared as words and not by a call.
        match identity.len() {
            4 => self.find_sized::<4>(identity),
            8 => self.find_sized::<8>(identity),
            13 => self.find_sized::<13>(identity),
            _ => self.find_sized::<16>(identity),
        }
    }

    #[inline]
    fn find_sized<const N: usize>(&self, identity: &[u8]) -> Option<KeyId> {
        let identity: &[u8; N] = identity.try_into().ok()?;
        let (all, _) = self.identities.as_chunks::<N>();
        let hash = self.seed.hash(identity).table();
        let own = self.table.find(hash, |&own| all[own as usize] == *identity)?;
        Some(KeyId(self.keys_before() as u32 + own))
    }

    /// The number of a key, new or known; whether it is new.
    pub fn intern(&mut self, identity: &[u8]) -> (KeyId, bool) {
        if let Some(id) = self.find(identity) {
            return (id, false);
        }
        let id = u32::try_from(self.len()).expect("at most 2^32 keys");
        tight::extend(&mut self.identities, identity);
        if self.format.any_length() {
            self.names.push_empty();
        }
        let own = id - self.keys_before() as u32;
        let Self { format, seed, table, identities, .. } = self;
        let bytes = format.slot_bytes();
        table.insert_unique(hash(seed, identity), own, |&own| hash(seed, &identities[own as usize * bytes..][..bytes]));
        if let Some(key) = self.coded_key(identity) {
            self.names.give(own as usize, key.bytes());
        }
        (KeyId(id), true)
    }

    /// [`Registry::intern`] for bytes that may not be the identity of a key of this format.
    pub(crate) fn learn(&mut self, identity: &[u8]) -> Result<(KeyId, bool), ReportError> {
        let want = self.format.slot_bytes();
        if identity.len() != want {
            return Err(ReportError::Key { want, got: identity.len() });
        }
        Ok(self.intern(identity))
    }

    /// The key that a code tells.
    fn coded_key(&self, identity: &[u8]) -> Option<CodedKey> {
        let KeyFormat::Code(bits) = self.format else { return None };
        self.digest_key().key_of_code(u64::from_le_bytes(identity.try_into().ok()?), bits)
    }

    /// Whether the answers for a key may be those of another one: whether a hash stands for it.
    pub(crate) fn is_confusable(&self, identity: &[u8]) -> bool {
        matches!(self.format, KeyFormat::Code(_)) && self.coded_key(identity).is_none()
    }

    /// The probability that a hash stands for another key as well.
    pub(crate) fn confusion(&self) -> f64 {
        let KeyFormat::Code(bits) = self.format else { return 0.0 };
        self.digest_key().confusion(self.len().saturating_sub(1) as u64, bits)
    }

    /// Sets the full name of a key, unless it has one (long keys only). It may have been known by
    /// its digest alone; then every later name moves: rare.
    pub fn give_name(&mut self, id: KeyId, name: &[u8]) {
        debug_assert!(self.format.any_length());
        if self.is_named(id) {
            return;
        }
        let keys_before = self.keys_before();
        match &mut self.before {
            Some(before) if (id.0 as usize) < keys_before => Arc::make_mut(before).give_name(id, name),
            _ => self.names.give(id.0 as usize - keys_before, name),
        }
    }

    /// Learns all keys of another registry of the same format and digests; their numbers here, in
    /// order.
    pub(crate) fn merge(&mut self, other: &Self) -> Vec<KeyId> {
        let learn = |theirs: KeyId| {
            let id = self.intern(other.identity_of(theirs)).0;
            if self.format.any_length() && other.is_named(theirs) {
                self.give_name(id, other.key(theirs));
            }
            id
        };
        other.ids().map(learn).collect()
    }

    /// No keys, of the same format and with the same digests.
    pub(crate) fn emptied(&self) -> Self {
        Self::new(self.format, self.seed)
    }

    /// The key of the digests.
    pub(crate) fn digest_key(&self) -> DigestKey {
        self.seed.digest_key()
    }

    /// Returns the bytes that stand for the key in a slot.
    pub fn identity_of(&self, id: KeyId) -> &[u8] {
        let (owner, own) = self.owner(id);
        let bytes = owner.format.slot_bytes();
        &owner.identities[own * bytes..][..bytes]
    }

    /// The key, or the digest of one whose name never arrived (the Bloom filter claimed it): see
    /// [`Registry::is_named`].
    pub fn key(&self, id: KeyId) -> &[u8] {
        self.own_bytes(id).unwrap_or_else(|| self.identity_of(id))
    }

    /// Returns true if the key's own bytes are known.
    pub fn is_named(&self, id: KeyId) -> bool {
        self.own_bytes(id).is_some()
    }

    fn own_bytes(&self, id: KeyId) -> Option<&[u8]> {
        let identity = self.identity_of(id);
        if !self.format.any_length() {
            return Some(identity);
        }
        let name = self.name(id);
        if !name.is_empty() {
            return Some(name);
        }
        if self.format != KeyFormat::Digest {
            // Only the empty key is told by its code without a name.
            return self.coded_key(identity).map(|_| &[][..]);
        }
        let digest = identity.try_into().expect("digests have 16 bytes");
        // Older digests do not tell, but that of the empty key can be recognised.
        self.digest_key().key_of(digest).or_else(|| (*digest == self.digest_key().digest(b"")).then_some(&[]))
    }

    fn name(&self, id: KeyId) -> &[u8] {
        let (owner, own) = self.owner(id);
        owner.names.get(own)
    }

    /// Bytes of the keys themselves.
    pub fn key_bytes(&self) -> usize {
        let before = self.before.as_ref().map_or(0, |before| before.key_bytes());
        before + self.identities.len() + self.names.bytes()
    }

    /// Bytes of the index around them.
    pub fn index_bytes(&self) -> usize {
        let before = self.before.as_ref().map_or(0, |before| before.index_bytes());
        before + self.table.allocation_size() + self.names.index_bytes()
    }
}

/// One list of keys, whichever registry has them.
impl Serialize for Registry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let all = self.flat();
        let Self { before: _, format, seed, table: _, identities, names } = &*all;
        let identities = serde_bytes::Bytes::new(identities);
        Written { format, seed, identities, names }.serialize(serializer)
    }
}

#[derive(Serialize)]
struct Written<'a> {
    format: &'a KeyFormat,
    seed: &'a HashSeed,
    identities: &'a serde_bytes::Bytes,
    names: &'a Names,
}

/// More different keys than this with one and the same hash of 64 bits do not come by chance.
const MOST_ALIKE: usize = 64;

impl Registry {
    /// Makes a registry that was just read usable, or says why it cannot be one of this
    /// configuration.
    pub(crate) fn restored(mut self, config: &Config) -> Result<Self, Inconsistent> {
        let bytes = config.keys.slot_bytes();
        let held = self.identities.len();
        ensure(self.format == config.keys, || format!("a registry of {}, not of {}", self.format, config.keys))?;
        let whole = held.is_multiple_of(bytes) && held / bytes <= u32::MAX as usize;
        ensure(whole, || format!("{held} bytes of keys of {bytes} bytes each"))?;
        self.seed = self.seed.restored(config.seed)?;
        self.check_names()?;
        // A table of keys that all hash alike would take hours to fill.
        let mut hashes: Vec<u64> = self.ids().map(|id| hash(&self.seed, self.identity_of(id))).collect();
        hashes.sort_unstable();
        let most = hashes.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0);
        ensure(most <= MOST_ALIKE, || format!("{most} keys with the same hash"))?;
        let seed = &self.seed;
        let identities = &self.identities;
        let identity = |id: u32| &identities[id as usize * bytes..][..bytes];
        // A registry that was taken from a live plane has one.
        self.table.clear();
        for id in 0..hashes.len() as u32 {
            let own = identity(id);
            let of = |&id: &u32| hash(seed, identity(id));
            match self.table.entry(hash(seed, own), |&other| identity(other) == own, of) {
                Entry::Occupied(first) => {
                    return Err(Inconsistent(format!("keys {} and {id} are the same", first.get())));
                }
                Entry::Vacant(place) => place.insert(id),
            };
        }
        Ok(self)
    }

    /// Only digests have names beside them, and each name has its digest.
    fn check_names(&self) -> Result<(), Inconsistent> {
        let names = self.names.len();
        let wanted = if self.format.any_length() { self.len() } else { 0 };
        ensure(names == wanted, || format!("{names} names for {wanted} keys"))?;
        for id in self.ids().take(wanted) {
            let name = self.name(id);
            let own = name.is_empty() || self.identity(name, &mut [0; 16]) == Some(self.identity_of(id));
            ensure(own, || format!("key {} has a name that is not its own", id.0))?;
        }
        Ok(())
    }
}

/// The data plane's hash of an identity.
#[inline]
pub(crate) fn key_hash(seed: &HashSeed, identity: &[u8]) -> ucl_data_plane::KeyHash {
    fn fixed<const N: usize>(seed: &HashSeed, identity: &[u8]) -> ucl_data_plane::KeyHash {
        seed.hash::<N>(identity.try_into().expect("identities have one size"))
    }
    match identity.len() {
        4 => fixed::<4>(seed, identity),
        8 => fixed::<8>(seed, identity),
        13 => fixed::<13>(seed, identity),
        _ => fixed::<16>(seed, identity),
    }
}

#[inline]
fn hash(seed: &HashSeed, identity: &[u8]) -> u64 {
    key_hash(seed, identity).table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_handed_out_in_order_and_found_again() {
        let mut registry = Registry::new(KeyFormat::Fixed(4), HashSeed::new(1.into()));
        for key in 0..1000u32 {
            assert_eq!(registry.intern(&key.to_le_bytes()), (KeyId(key), true));
        }
        for key in (0..1000u32).rev() {
            assert_eq!(registry.intern(&key.to_le_bytes()), (KeyId(key), false));
            assert_eq!(registry.key(KeyId(key)), key.to_le_bytes());
        }
        assert_eq!(registry.find(&5000u32.to_le_bytes()), None);
    }

    #[test]
    fn a_merged_registry_knows_all_keys_and_names() {
        let seed = HashSeed::new(1.into());
        let (mut ours, mut theirs) = (Registry::new(KeyFormat::Digest, seed), Registry::new(KeyFormat::Digest, seed));
        let learn = |registry: &mut Registry, name: &[u8], named: bool| {
            let (id, _) = registry.intern(&seed.digest_key().digest(name));
            if named {
                registry.give_name(id, name);
            }
        };
        learn(&mut ours, b"first", true);
        learn(&mut ours, b"unnamed here", false);
        learn(&mut ours, b"third", true);
        learn(&mut theirs, b"fourth", true);
        learn(&mut theirs, b"unnamed here", true);
        learn(&mut theirs, b"first", true);
        assert_eq!(ours.merge(&theirs), [KeyId(3), KeyId(1), KeyId(0)]);
        let names: [&[u8]; 4] = [b"first", b"unnamed here", b"third", b"fourth"];
        for (id, name) in ours.ids().zip(names) {
            assert_eq!(ours.key(id), name);
            assert_eq!(ours.find(&seed.digest_key().digest(name)), Some(id));
        }
    }

    /// A view knows keys that its control plane does not, and copies none of the others.
    #[test]
    fn a_registry_goes_on_beyond_another() {
        let seed = HashSeed::new(1.into());
        let mut before = Registry::new(KeyFormat::Digest, seed);
        let digest = |name: &[u8]| seed.digest_key().digest(name);
        let long = |n: usize| format!("a name that is longer than its digest: {n}").into_bytes();
        for n in 0..3 {
            let (id, _) = before.intern(&digest(&long(n)));
            before.give_name(id, &long(n));
        }
        let before = Arc::new(before);
        assert!(Arc::ptr_eq(&Registry::beyond(&before).shared(), &before), "no key came");
        let mut beyond = Registry::beyond(&before);
        assert_eq!(beyond.intern(&digest(&long(1))), (KeyId(1), false));
        for n in 3..5 {
            assert_eq!(beyond.intern(&digest(&long(n))), (KeyId(n as u32), true));
        }
        beyond.give_name(KeyId(4), &long(4));
        let written = postcard::to_stdvec(&beyond).unwrap();
        let beyond = beyond.shared();
        assert_eq!((before.len(), beyond.len()), (3, 5));
        for id in beyond.ids() {
            let named = id != KeyId(3);
            assert_eq!(beyond.find(&digest(&long(id.0 as usize))), Some(id));
            assert_eq!(beyond.is_named(id), named);
            assert!(!named || beyond.key(id) == long(id.0 as usize));
        }
        assert_eq!(before.find(&digest(&long(3))), None);
        let mut flat = Registry::new(KeyFormat::Digest, seed);
        flat.merge(&beyond);
        assert_eq!(written, postcard::to_stdvec(&flat).unwrap());
    }

    /// However many views have it and whenever they go: the same numbers and names as without any.
    #[test]
    fn views_never_keep_it_from_learning() {
        let seed = HashSeed::new(1.into());
        let name = |n: u32| format!("a name that is longer than its digest: {n}").into_bytes();
        let mut registry = Arc::new(Registry::new(KeyFormat::Digest, seed));
        let mut flat = Registry::new(KeyFormat::Digest, seed);
        let (mut views, mut most) = (Vec::new(), 0);
        for n in 0..2_000u32 {
            for registry in [Registry::to_write(&mut registry), &mut flat] {
                let (id, new) = registry.intern(&seed.digest_key().digest(&name(n * 7 % 1_000)));
                assert_eq!((id, new), (KeyId(if n < 1_000 { n } else { n - 1_000 }), n < 1_000));
                if n % 3 > 0 {
                    registry.give_name(id, &name(n * 7 % 1_000));
                }
            }
            if n % 50 == 0 {
                views.push((Arc::clone(&registry), registry.len()));
            }
            if n % 400 == 399 {
                views.retain(|(view, keys)| {
                    assert_eq!(view.len(), *keys);
                    n != 799 && *keys % 3 == 0
                });
            }
            most = most.max(registry.layers());
        }
        assert!((2..=MOST_LAYERS + 1).contains(&most), "{most} layers");
        let same = |a: &Registry| a.ids().all(|id| a.key(id) == flat.key(id) && a.is_named(id) == flat.is_named(id));
        assert!(registry.len() == flat.len() && same(&registry) && same(&registry.flat()));
        views.clear();
        assert_eq!(Registry::to_write(&mut registry).layers(), 1);
        assert!(same(&registry));
    }

    #[test]
    fn long_keys_keep_their_names() {
        let seed = HashSeed::new(1.into());
        let mut registry = Registry::new(KeyFormat::Digest, seed);
        let names: [&[u8]; 3] = [b"/index.html", b"", b"/a/long/path?with=query"];
        for name in names {
            let mut room = [0; 16];
            let identity = registry.identity(name, &mut room).unwrap().to_vec();
            let (id, new) = registry.intern(&identity);
            assert!(new);
            registry.give_name(id, name);
            registry.give_name(id, b"another");
        }
        let (unnamed, _) = registry.intern(&[7; 16]);
        for (id, name) in registry.ids().zip(names) {
            assert!(registry.is_named(id));
            assert_eq!(registry.key(id), name);
        }
        assert!(!registry.is_named(unnamed));
        assert_eq!(registry.key(unnamed), [7; 16]);
    }
}
