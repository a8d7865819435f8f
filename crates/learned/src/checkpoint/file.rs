//! Writing and reading checkpoints.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::Range;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use super::{CheckpointError, Contents};
use crate::config::{Config, CounterGrid};
use crate::network::parameters::Layout;
use crate::rng::Rng;
use crate::solver::Solver;

const METADATA: &str = "ucl-learned";
const VERSION: &str = "1";

impl Solver {
    /// Returns the solver as the bytes of a safetensors file. The same state gives the same bytes.
    ///
    /// ```
    /// use ucl_learned::{Config, Contents, CounterGrid, Solver};
    ///
    /// let config = Config { hidden: 16, neck: 8, bucket_length: 8, ..Config::default() };
    /// let solver = Solver::new(CounterGrid { rows: 2, width: 32 }, config, 7)?;
    /// let bytes = solver.to_safetensors(Contents::Training);
    /// let again = Solver::from_safetensors(&bytes)?;
    /// assert_eq!(again.random_state(), solver.random_state());
    /// assert_eq!(again.to_safetensors(Contents::Training), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_safetensors(&self, contents: Contents) -> Vec<u8> {
        let bytes = |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let words = |values: &[u64]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let parameters = self.parameters.len();
        let mut tensors: Vec<(String, Dtype, Vec<usize>, Vec<u8>)> = self
            .weight_tensors()
            .into_iter()
            .map(|(name, shape, range)| (name, Dtype::F32, shape, bytes(&self.parameters[range])))
            .collect();
        tensors.push(("rng".into(), Dtype::U64, vec![4], words(&self.rng.state())));
        if contents == Contents::Training {
            tensors.push(("adam.first".into(), Dtype::F32, vec![parameters], bytes(&self.adam.first)));
            tensors.push(("adam.second".into(), Dtype::F32, vec![parameters], bytes(&self.adam.second)));
            tensors.push(("adam.step".into(), Dtype::U64, vec![1], words(&[self.adam.step])));
        }
        let views = tensors.iter().map(|(name, dtype, shape, data)| {
            let view = TensorView::new(*dtype, shape.clone(), data).expect("internal: data of the stated shape");
            (name.as_str(), view)
        });
        // One metadata entry, because the order of several would be random.
        let metadata = HashMap::from([(METADATA.to_string(), describe(self.shape, &self.config))]);
        safetensors::serialize(views, Some(metadata)).expect("internal: every tensor can be written")
    }

    /// Creates the solver that a checkpoint holds, with the shape and configuration in it.
    ///
    /// # Errors
    /// If the bytes are not a checkpoint of such a network.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let text = header.metadata().as_ref().and_then(|m| m.get(METADATA));
        let (shape, config) = parse(text.ok_or_else(|| CheckpointError::Metadata("missing".into()))?)?;
        // Before anything is allocated: a corrupt header must not ask for terabytes.
        shape.validate()?;
        config.validate()?;
        let stored = header.tensors().values().map(|t| t.shape.iter().product::<usize>()).sum::<usize>();
        let layout = Layout::new(shape, &config);
        let needed = layout.len(usize::from(layout.shared));
        if needed > stored {
            let text = format!("a network of at least {needed} parameters, but the file holds {stored} numbers");
            return Err(CheckpointError::Mismatch(vec![text]));
        }
        let mut solver = Self::new(shape, config, 0)?;
        solver.load(bytes)?;
        Ok(solver)
    }

    /// Replaces weights, random state and, if the checkpoint has them, the optimiser's moments.
    ///
    /// Fails without a change when any tensor does not fit this solver's shape and configuration,
    /// and says which. A checkpoint without moments starts the optimiser afresh.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        let file = SafeTensors::deserialize(bytes)?;
        let mut next = self.clone();
        if !self.layout.shared {
            // As many bucket blocks as the file has; what is in them is checked below.
            let has = |i: usize| file.tensor(&format!("bucket.{i}.head.0.bias")).is_ok();
            let blocks = (0..).take_while(|&i| has(i)).count();
            // Before room is made for them: names alone must not ask for gigabytes.
            let needed = self.layout.len(blocks);
            let bytes = bytes.len();
            if needed > bytes / size_of::<f32>() {
                let text = format!("{blocks} buckets are named, {needed} parameters, but the file has {bytes} bytes");
                return Err(CheckpointError::Mismatch(vec![text]));
            }
            next.parameters.resize(needed, 0.0);
        }
        let parameters = next.parameters.len();
        let mut reader = Reader { file: &file, expected: Vec::new(), problems: Vec::new() };
        for (name, shape, range) in next.weight_tensors() {
            reader.floats(&name, &shape, &mut next.parameters[range]);
        }
        let mut state = [1; 4];
        reader.words("rng", &mut state);
        (next.adam.first, next.adam.second) = (vec![0.0; parameters], vec![0.0; parameters]);
        let mut step = [0];
        if file.names().iter().any(|n| n.starts_with("adam.")) {
            reader.floats("adam.first", &[parameters], &mut next.adam.first);
            reader.floats("adam.second", &[parameters], &mut next.adam.second);
            reader.words("adam.step", &mut step);
        }
        next.adam.step = step[0];
        match Rng::from_state(state) {
            Some(rng) => next.rng = rng,
            None => reader.problems.push("rng: all zeros, which is no state".into()),
        }
        let problems = reader.finish();
        if !problems.is_empty() {
            return Err(CheckpointError::Mismatch(problems));
        }
        *self = next;
        Ok(())
    }

    fn weight_tensors(&self) -> Vec<(String, Vec<usize>, Range<usize>)> {
        self.layout.tensors(self.layout.blocks_in(self.parameters.len()))
    }
}

/// Reads tensors and collects everything that does not fit.
struct Reader<'a> {
    file: &'a SafeTensors<'a>,
    expected: Vec<String>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, name: &str, dtype: Dtype, shape: &[usize]) -> Option<&[u8]> {
        self.expected.push(name.into());
        match self.file.tensor(name) {
            Err(_) => self.problems.push(format!("{name}: missing, expected {dtype:?} {shape:?}")),
            Ok(t) if t.dtype() != dtype || t.shape() != shape => {
                self.problems.push(format!("{name}: is {:?} {:?}, expected {dtype:?} {shape:?}", t.dtype(), t.shape()));
            }
            Ok(t) => return Some(t.data()),
        }
        None
    }

    fn floats(&mut self, name: &str, shape: &[usize], into: &mut [f32]) {
        let Some(data) = self.read(name, Dtype::F32, shape) else { return };
        for (v, bytes) in into.iter_mut().zip(data.as_chunks().0) {
            *v = f32::from_le_bytes(*bytes);
        }
        if let Some(at) = into.iter().position(|v| !v.is_finite()) {
            self.problems.push(format!("{name}: value {at} is {}", into[at]));
        }
    }

    fn words(&mut self, name: &str, into: &mut [u64]) {
        let Some(data) = self.read(name, Dtype::U64, &[into.len()]) else { return };
        for (v, bytes) in into.iter_mut().zip(data.as_chunks().0) {
            *v = u64::from_le_bytes(*bytes);
        }
    }

    fn finish(mut self) -> Vec<String> {
        let mut names = self.file.names();
        names.sort_unstable();
        for name in names {
            if !self.expected.iter().any(|e| e == name) {
                self.problems.push(format!("{name}: not a tensor of this network"));
            }
        }
        self.problems
    }
}

fn describe(shape: CounterGrid, config: &Config) -> String {
    let Config {
        hidden,
        neck,
        bucket_length,
        shared_buckets,
        lambda,
        equivariant,
        raised_share,
        learning_rate,
        batch,
        epochs,
        patience,
    } = config;
    let mut text = format!("version={VERSION} rows={} width={}", shape.rows, shape.width);
    let write = write!(
        text,
        " hidden={hidden} neck={neck} bucket_length={bucket_length} shared_buckets={shared_buckets} lambda={lambda} \
         equivariant={equivariant} raised_share={raised_share} learning_rate={learning_rate} batch={batch} \
         epochs={epochs} patience={patience}"
    );
    write.expect("internal: writing into a string");
    text
}

fn parse(text: &str) -> Result<(CounterGrid, Config), CheckpointError> {
    let pairs: HashMap<&str, &str> = text.split(' ').filter_map(|pair| pair.split_once('=')).collect();
    fn get<T: std::str::FromStr>(pairs: &HashMap<&str, &str>, name: &str) -> Result<T, CheckpointError> {
        let value = pairs.get(name).ok_or_else(|| CheckpointError::Metadata(format!("no `{name}`")))?;
        value.parse().map_err(|_| CheckpointError::Metadata(format!("`{name}` is `{value}`")))
    }
    let version: String = get(&pairs, "version")?;
    if version != VERSION {
        return Err(CheckpointError::Metadata(format!("version {version}, this code reads {VERSION}")));
    }
    let config = Config {
        hidden: get(&pairs, "hidden")?,
        neck: get(&pairs, "neck")?,
        bucket_length: get(&pairs, "bucket_length")?,
        shared_buckets: get(&pairs, "shared_buckets")?,
        lambda: get(&pairs, "lambda")?,
        equivariant: get(&pairs, "equivariant")?,
        raised_share: get(&pairs, "raised_share")?,
        learning_rate: get(&pairs, "learning_rate")?,
        batch: get(&pairs, "batch")?,
        epochs: get(&pairs, "epochs")?,
        patience: get(&pairs, "patience")?,
    };
    Ok((CounterGrid { rows: get(&pairs, "rows")?, width: get(&pairs, "width")? }, config))
}
