//! The solver: weights, optimiser and random state, and the use of the network once trained.

use crate::adam::Adam;
use crate::config::{Config, ConfigError, CounterGrid, MAX_PARAMETERS};
use crate::kernels::sigmoid_scaled;
use crate::matmul::{Into, View, ViewMut, matmul};
use crate::network::embedding::{Codes, Embedding};
use crate::network::encoder::Encoding;
use crate::network::parameters::Layout;
use crate::normalise::scale;
use crate::prepared::normalised;
use crate::problem::ProblemError;
use crate::rng::Rng;

/// Learned solver `D: y -> x` of one sketch.
///
/// ```
/// use ucl_equations::Columns;
/// use ucl_learned::{Cancel, Config, Problem, CounterGrid, Snapshot, Solver, TrainBudget};
///
/// // Three keys in a sketch of two rows of two counters: y = A x with x = (6, 1, 1).
/// let shape = CounterGrid { rows: 2, width: 2 };
/// let mut columns = Columns::ones(4, 2);
/// for key in [[0, 2], [1, 2], [1, 3]] {
///     columns.push(&key);
/// }
/// let counters = [6.0, 2.0, 7.0, 1.0];
/// let window = [Snapshot { counters: &counters, interval_weight: 2.0 }];
/// let problem = Problem { columns: &columns, hot: &[true, false, false], window: &window, smallest_weight: 1.0 };
///
/// let config = Config { hidden: 16, neck: 8, bucket_length: 8, ..Config::default() };
/// let mut solver = Solver::new(shape, config, 1)?;
/// let budget = TrainBudget::whole(solver.config());
/// let report = solver.train(&problem, budget, &Cancel::default())?;
/// assert!(report.epochs.last().unwrap().total < report.epochs[0].total);
///
/// let encoded = solver.encode(&counters)?;
/// let mut x = [0.0; 3];
/// solver.decode(&encoded, &mut x)?;
/// assert!(x[0] > x[1] && x[0] > x[2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Solver {
    pub(crate) shape: CounterGrid,
    pub(crate) config: Config,
    pub(crate) layout: Layout,
    pub(crate) parameters: Vec<f32>,
    pub(crate) adam: Adam,
    pub(crate) rng: Rng,
    pub(crate) codes: Codes,
}

/// Snapshot after the encoder, ready to decode any key.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    scale: f64,
    feature: Vec<f32>,
}

impl Encoded {
    /// Returns the scale of the snapshot: the largest possible frequency, or 0 for an empty sketch.
    pub fn scale(&self) -> f64 {
        self.scale
    }
}

impl Solver {
    /// Creates a network with random weights. `seed` determines them and all later random choices.
    ///
    /// # Errors
    /// If a size is 0 or beyond its limit, or a weight of the loss is not a number.
    pub fn new(shape: CounterGrid, config: Config, seed: u64) -> Result<Self, ConfigError> {
        shape.validate()?;
        config.validate()?;
        let layout = Layout::new(shape, &config);
        let parameters = layout.len(1);
        if parameters > MAX_PARAMETERS {
            return Err(ConfigError::Parameters { parameters, most: MAX_PARAMETERS });
        }
        let adam = Adam::default();
        let rng = Rng::new(seed);
        let codes = Codes::new(config.hidden);
        let mut solver = Self { shape, config, layout, parameters: Vec::new(), adam, rng, codes };
        let blocks = usize::from(solver.layout.shared);
        solver.layout.grow(&mut solver.parameters, blocks, &mut solver.rng);
        solver.adam.grow(solver.parameters.len());
        Ok(solver)
    }

    /// Returns the shape of the sketch.
    pub fn shape(&self) -> CounterGrid {
        self.shape
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Number of trainable parameters, 4 bytes each. It is fixed with shared buckets, and grows
    /// with the keys otherwise.
    pub fn parameters(&self) -> usize {
        self.parameters.len()
    }

    /// Number of training steps since the weights were drawn.
    pub fn steps(&self) -> u64 {
        self.adam.step
    }

    /// Returns the state of the random generator, for [`Solver::set_random_state`].
    pub fn random_state(&self) -> [u64; 4] {
        self.rng.state()
    }

    /// Sets the state of the random generator. Returns false and changes nothing if all words are
    /// zero, which is no valid state.
    pub fn set_random_state(&mut self, state: [u64; 4]) -> bool {
        Rng::from_state(state).map(|rng| self.rng = rng).is_some()
    }

    /// Makes the network large enough for `keys` keys.
    pub(crate) fn grow(&mut self, keys: usize) {
        let buckets = keys.div_ceil(self.config.bucket_length);
        self.codes.grow(buckets);
        let blocks = self.layout.blocks(buckets);
        self.layout.grow(&mut self.parameters, blocks, &mut self.rng);
        self.adam.grow(self.parameters.len());
    }

    /// Draws all weights again, as for a new network, and forgets the optimiser's moments.
    pub(crate) fn draw_again(&mut self) {
        let blocks = self.layout.blocks_in(self.parameters.len());
        self.parameters.clear();
        self.layout.grow(&mut self.parameters, blocks, &mut self.rng);
        self.adam = Adam::default();
        self.adam.grow(self.parameters.len());
    }

    /// Encodes the counters of one snapshot.
    ///
    /// # Errors
    /// If the number of counters is not that of the shape, or one is not finite.
    pub fn encode(&self, counters: &[f64]) -> Result<Encoded, ProblemError> {
        let (found, expected) = (counters.len(), self.shape.counters());
        if found != expected {
            return Err(ProblemError::Counters { snapshot: 0, found, expected });
        }
        if let Some(at) = counters.iter().position(|c| !c.is_finite()) {
            return Err(ProblemError::NotFinite { snapshot: 0, what: format!("counter {at}"), value: counters[at] });
        }
        let scale = scale(self.shape, counters);
        let mut encoding = Encoding::new(&self.layout.encoder, 1);
        if scale > 0.0 {
            encoding.counters = normalised(self.shape, counters, scale);
            encoding.forward(&self.layout.encoder, &self.parameters);
        }
        Ok(Encoded { scale, feature: encoding.feature })
    }

    /// Decodes the frequencies of the first `out.len()` columns, including keys that training has
    /// not seen.
    ///
    /// All zeros when the sketch is empty, and (with unshared buckets only) for keys whose bucket
    /// has no parameters yet because it opened after the last training.
    pub fn decode(&self, encoded: &Encoded, out: &mut [f64]) -> Result<(), ProblemError> {
        self.decode_from(encoded, 0, out)
    }

    /// Decodes the frequencies of one bucket's columns, from `bucket * bucket_length` on (Algorithm
    /// 3). This is the cost of a single query.
    pub fn decode_bucket(&self, encoded: &Encoded, bucket: usize, out: &mut [f64]) -> Result<(), ProblemError> {
        let most = out.len().min(self.config.bucket_length);
        self.decode_from(encoded, bucket, &mut out[..most])
    }

    fn decode_from(&self, encoded: &Encoded, first: usize, out: &mut [f64]) -> Result<(), ProblemError> {
        /// Buckets that go through the head together: enough for gemm, few enough for the cache.
        const TOGETHER: usize = 32;
        let (found, expected) = (encoded.feature.len(), self.config.hidden);
        if found != expected {
            return Err(ProblemError::Feature { found, expected });
        }
        out.fill(0.0);
        if encoded.scale == 0.0 {
            return Ok(());
        }
        let length = self.config.bucket_length;
        let (together, blocks) =
            if self.layout.shared { (TOGETHER, usize::MAX) } else { (1, self.layout.blocks_in(self.parameters.len())) };
        let mut scratch = DecodeScratch::default();
        for (group, out) in out.chunks_mut(together * length).enumerate() {
            let from = first + group * together;
            if from < blocks {
                self.decode_group(encoded, from, out, &mut scratch);
            }
        }
        Ok(())
    }

    /// Buckets `from ..` that use the same parameters; matrices are bucket-major.
    fn decode_group(&self, encoded: &Encoded, from: usize, out: &mut [f64], scratch: &mut DecodeScratch) {
        let length = self.config.bucket_length;
        let [first, second] = &self.layout.bucket.head;
        let h = first.inputs;
        let count = out.len().div_ceil(length);
        let block = &self.parameters[self.layout.len(self.layout.block_of(from))..][..self.layout.bucket.len];
        let DecodeScratch { modulated, neck, logits } = scratch;
        let modulation = Embedding::modulation_of(&self.layout, block, &self.codes, from..from + count);
        modulated.clear();
        for m in modulation.chunks_exact(2 * h) {
            let (scale, shift) = m.split_at(h);
            modulated.extend(encoded.feature.iter().zip(scale).zip(shift).map(|((g, s), t)| g * (1.0 + s) + t));
        }
        neck.clear();
        neck.extend(std::iter::repeat_n(first.bias(block), count).flatten());
        let modulated = View::new(modulated, count, h);
        matmul(ViewMut::new(neck, count, first.outputs), Into::Add, modulated, first.weight(block).transposed());
        logits.resize(count * length, 0.0);
        let neck = View::new(neck, count, second.inputs);
        matmul(ViewMut::new(logits, count, length), Into::Replace, neck, second.weight(block).transposed());
        for (out, logits) in out.chunks_mut(length).zip(logits.chunks_exact(length)) {
            sigmoid_scaled(out, logits, second.bias(block), encoded.scale);
        }
    }
}

#[derive(Default)]
struct DecodeScratch {
    modulated: Vec<f32>,
    neck: Vec<f32>,
    logits: Vec<f32>,
}
