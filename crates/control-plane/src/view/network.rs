//! The network's own answers: without the bounds, and one key at a time.
//!
//! What the paper reports is the network's output plus the count in the heavy part. A view answers
//! with that number put within the guaranteed bounds, which are often tight enough to make a poor
//! network look like a good one. To judge the network itself, ask for what it said:
//! [`QueryView::unbounded`].
//!
//! A view decodes all keys at once. The paper's query (Algorithm 3) decodes the bucket of one key:
//!
//! ```text
//! position = column of the key;   x = D(y, position / L);   answer = x[position % L] + heavy(key)
//! ```
//!
//! That is [`QueryView::network`] and [`NetworkQuery::estimate`]. For the decoder `learned` it
//! gives the number that [`QueryView::unbounded`] has stored, at the cost of a small matrix product
//! per question.

use std::sync::Arc;

use ucl_learned::{Encoded, Outputs, Solver};

use super::QueryView;
use crate::decoder::DecodeError;
use crate::registry::KeyId;
use crate::sealed::round;

/// No column: the key is in the heavy part alone.
const NONE: u32 = u32::MAX;

/// The network that decoded a view, and what it was asked.
#[derive(Clone, Debug)]
pub(crate) struct NetworkAtCut {
    pub solver: Arc<Solver>,
    /// The counters of this moment.
    pub counters: Vec<f64>,
}

/// What a view keeps of the decoder's own answers.
#[derive(Clone, Debug)]
pub(crate) struct Unbounded {
    pub network: NetworkAtCut,
    /// By key: the decoder's answer before it is put within the bounds, the heavy part included.
    pub estimates: Vec<u64>,
    /// By key: its column in the network's system.
    pub columns: Vec<u32>,
    /// By key: what the heavy part, and segments that are decoded no more, have of it.
    pub held: Vec<u64>,
}

impl Unbounded {
    /// From the decoded value and the number of each key's column, and what else is counted of it.
    pub fn new(network: NetworkAtCut, decoded: impl Iterator<Item = Option<(u32, f64)>>, held: Vec<u64>) -> Self {
        let mut estimates = Vec::with_capacity(held.len());
        let mut columns = Vec::with_capacity(held.len());
        for (part, held) in decoded.zip(&held) {
            estimates.push(held + part.map_or(0, |(_, x)| round(x)));
            columns.push(part.map_or(NONE, |(column, _)| column));
        }
        Self { network, estimates, columns, held }
    }
}

impl QueryView {
    /// Returns the answer as the trained decoder gave it, before it was put within the bounds: a
    /// whole number, the heavy part's count included, and 0 for a key that is not known. `None`
    /// unless the decoder `learned` or `refined` answered.
    ///
    /// In a sketch that was changed in mid-stream, counts of sealed segments are those that were
    /// frozen, within their bounds.
    pub fn unbounded(&self, key: &[u8]) -> Option<u64> {
        let unbounded = self.unbounded.as_ref()?;
        Some(self.find(key).map_or(0, |id| unbounded.estimates[id.0 as usize]))
    }

    /// Returns what the network's outputs say of the network, also if it has collapsed and another
    /// decoder answered for it; `None` without a trained network.
    pub fn outputs(&self) -> Option<&Outputs> {
        self.outputs.as_ref()
    }

    /// Returns the network of this view, to be asked key by key (Algorithm 3); `None` unless a
    /// network was asked, for the decoder `learned` or `refined`.
    ///
    /// ```
    /// use ucl_control_plane::{ControlPlane, DecoderKind, Fallback, Settings};
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, ReportRule, Shape};
    /// # let shape = Shape { slots: 4, rows: 2, width: 16, ..Shape::PAPER_64KB };
    /// # let config = Config { keys: KeyFormat::Fixed(4), shape, rule: ReportRule::Paper, seed: 1.into() };
    /// let settings = Settings { decoder: DecoderKind::Learned, fallback: Fallback::WhenUntrained, ..Settings::default() };
    /// # let mut settings = settings;
    /// # settings.learned.epochs = 5;
    /// let (mut data, mut control) = (DataPlane::<4>::new(config)?, ControlPlane::new(config, settings)?);
    /// for i in 0..4_000u32 {
    ///     data.insert(&(i % 90).to_le_bytes(), 1, &mut control)?;
    /// }
    /// data.cut(&mut control);
    /// control.train()?;
    /// let view = control.view_at_cut()?;
    /// let mut network = view.network().expect("the network answered")?;
    /// let key = 42u32.to_le_bytes();
    /// assert_eq!(Some(network.estimate(&key)?), view.unbounded(&key));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn network(&self) -> Option<Result<NetworkQuery<'_>, DecodeError>> {
        let unbounded = self.unbounded.as_ref()?;
        let query = || {
            let NetworkAtCut { solver, counters, .. } = &unbounded.network;
            let encoded = solver.encode(counters)?;
            Ok(NetworkQuery { view: self, unbounded, encoded, bucket: Vec::new() })
        };
        Some(query())
    }

    fn find(&self, key: &[u8]) -> Option<KeyId> {
        let mut room = [0; 16];
        self.registry.identity(key, &mut room).and_then(|identity| self.registry.find(identity))
    }
}

/// The network of a view, with the view's counters encoded.
pub struct NetworkQuery<'v> {
    view: &'v QueryView,
    unbounded: &'v Unbounded,
    encoded: Encoded,
    bucket: Vec<f64>,
}

impl NetworkQuery<'_> {
    /// Returns the network's answer for a key, without bounds: the network runs for the key's
    /// bucket, and the heavy part's count is added. 0 for a key that is not known.
    ///
    /// # Errors
    /// If the network does not fit its columns, which only a defect of this library brings about.
    pub fn estimate(&mut self, key: &[u8]) -> Result<u64, DecodeError> {
        let Some(id) = self.view.find(key) else { return Ok(0) };
        let Unbounded { network, columns, held, .. } = self.unbounded;
        let held = held[id.0 as usize];
        let column = match columns[id.0 as usize] {
            NONE => return Ok(held),
            column => column as usize,
        };
        let length = network.solver.config().bucket_length;
        self.bucket.resize(length, 0.0);
        network.solver.decode_bucket(&self.encoded, column / length, &mut self.bucket)?;
        Ok(held + round(self.bucket[column % length]))
    }
}
