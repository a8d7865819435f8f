//! What a sketch does, without Python.

use std::borrow::Cow;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::DataType;
use ucl_sketch::{KeyFormat, QueryView, UclSketch};
use ucl_streams::{Format, MAX_WEIGHT};

use crate::answers::{self, Answer, batch, floats, key_array};
use crate::column::Column;
use crate::error::Error;
use crate::key_type::KeyType;
use crate::options::Options;
use crate::rows::{Reading, Rows};

/// So many rows are counted between two looks at the flag.
const SLICE: usize = 1 << 16;

/// What is written on a state file beside the sketch, by name.
mod label {
    /// The type of the keys.
    pub const KEYS: &str = "python.keys";
    /// The weight of the nulls.
    pub const NULLS: &str = "python.nulls";
    /// How a sketch without keys is to be made.
    pub const OPTIONS: &str = "python.options";
    /// The format of the records, as the command line writes it.
    pub const FORMAT: &str = "format";
}

/// What to do with nulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nulls {
    Skip,
    Count,
    Error,
}

impl FromStr for Nulls {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "skip" => Ok(Self::Skip),
            "count" => Ok(Self::Count),
            "error" => Ok(Self::Error),
            _ => Err(Error::Value(format!("null is 'skip', 'count' or 'error', not '{text}'"))),
        }
    }
}

/// A sketch, or how to make one when the first key shows their type.
pub struct Inner {
    state: State,
    nulls: u64,
    /// The answers, while nothing has changed.
    view: Option<Arc<QueryView>>,
}

enum State {
    /// The type of the keys is not known yet.
    Empty(Options),
    Counting {
        sketch: Box<UclSketch>,
        keys: KeyType,
    },
}

/// What a pickle holds.
pub struct Parts {
    pub options: Option<String>,
    pub keys: Option<String>,
    pub nulls: u64,
    pub state: Option<Vec<u8>>,
}

impl Inner {
    pub fn new(options: Options, keys: Option<KeyType>) -> Result<Self, Error> {
        let state = match keys {
            None => {
                // What cannot be built for any keys is refused now.
                options.builder(&KeyType::Int(crate::key_type::IntType { signed: false, bytes: 4 }))?.plan()?;
                State::Empty(options)
            }
            Some(keys) => State::Counting { sketch: Box::new(options.builder(&keys)?.build()?), keys },
        };
        Ok(Self { state, nulls: 0, view: None })
    }

    pub fn of_sketch(sketch: UclSketch, keys: KeyType) -> Self {
        Self { state: State::Counting { sketch: Box::new(sketch), keys }, nulls: 0, view: None }
    }

    fn sketch(&self) -> Option<&UclSketch> {
        match &self.state {
            State::Empty(_) => None,
            State::Counting { sketch, .. } => Some(sketch),
        }
    }

    pub fn keys(&self) -> Option<&KeyType> {
        match &self.state {
            State::Empty(_) => None,
            State::Counting { keys, .. } => Some(keys),
        }
    }

    /// Counts a column. Everything is checked first: if something is wrong, nothing is counted.
    pub fn insert(
        &mut self,
        column: &Column,
        weights: Option<&[u64]>,
        null: Nulls,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        column.check_weights(weights)?;
        let to = self.keys().or(column.keys.as_ref()).cloned();
        let mut work = Work::default();
        let mut first = 0;
        for chunk in &column.chunks {
            let weights = weights.map(|weights| &weights[first..first + chunk.len()]);
            match (&column.keys, &to) {
                (Some(from), Some(to)) => {
                    work.chunk(chunk, weights, Reading { from, to, padded: column.padded, first })?;
                }
                _ => work.nulls(chunk.len(), first, weights),
            }
            first += chunk.len();
        }
        if let (Nulls::Error, Some(row)) = (null, work.first_null) {
            return Err(Error::Value(format!("row {row} is null")));
        }
        let nulls = if null == Nulls::Count { work.null_weight } else { 0 };
        let total = u128::from(self.weight()) + work.weight + nulls;
        if total > u128::from(MAX_WEIGHT) {
            return Err(Error::Value(format!("the weight of everything counted would pass 2^63: {total}")));
        }
        self.nulls += nulls as u64;
        if work.weight == 0 {
            return Ok(());
        }
        if let (State::Empty(options), Some(keys)) = (&self.state, to) {
            self.state = State::Counting { sketch: Box::new(options.builder(&keys)?.build()?), keys };
        }
        self.view = None;
        if let State::Counting { sketch, .. } = &mut self.state {
            for part in &work.parts {
                part.insert(sketch, stop)?;
            }
        }
        Ok(())
    }

    /// Returns true if the answers of this moment are there already.
    pub fn has_view(&self) -> bool {
        self.view.is_some() || matches!(self.state, State::Empty(_))
    }

    /// The answers at this moment; `None` while nothing was counted.
    fn view(&mut self) -> Result<Option<Arc<QueryView>>, Error> {
        let State::Counting { sketch, .. } = &mut self.state else { return Ok(None) };
        if self.view.is_none() {
            self.view = Some(Arc::new(sketch.query_view()?));
        }
        Ok(self.view.clone())
    }

    pub fn top(&mut self, n: usize) -> Result<Vec<Answer>, Error> {
        let view = self.view()?;
        Ok(answers::top(view.as_deref(), self.nulls, n))
    }

    pub fn estimate(&mut self, column: &Column) -> Result<Vec<Answer>, Error> {
        let view = self.view()?;
        let to = self.keys().or(column.keys.as_ref()).cloned();
        let mut answers = Vec::with_capacity(column.rows());
        let mut made = vec![];
        for chunk in &column.chunks {
            let (Some(from), Some(to)) = (&column.keys, &to) else {
                answers.extend((0..chunk.len()).map(|_| Answer::exactly(self.nulls)));
                continue;
            };
            let rows = Rows::new(chunk, Reading { from, to, padded: column.padded, first: answers.len() })?;
            answers.extend((0..rows.len()).map(|row| {
                if rows.is_null(row) {
                    return Answer::exactly(self.nulls);
                }
                let key = rows.key(row, &mut made);
                match &view {
                    Some(view) => Answer::of(view, key),
                    None => Answer { key: Some(key.to_vec()), ..Answer::exactly(0) },
                }
            }));
        }
        Ok(answers)
    }

    /// The view, if epochs are kept.
    fn epochs(&mut self) -> Result<Arc<QueryView>, Error> {
        let view = self.view()?.filter(|view| view.series().retention() > 0);
        view.ok_or_else(|| Error::Value("no epochs are kept: make the sketch with keep_epochs=N".into()))
    }

    /// The count of a key in each epoch.
    pub fn series(&mut self, column: &Column) -> Result<RecordBatch, Error> {
        let key = self.estimate(column)?.pop().and_then(|answer| answer.key);
        let view = self.epochs()?;
        let registry = view.registry();
        let id = key.and_then(|key| registry.find(registry.identity(&key, &mut [0; 16])?));
        let series = view.series();
        let epochs = 0..series.len();
        let count = |epoch| Some(id.map_or(0.0, |id| series.count(id, epoch..epoch + 1)));
        let numbers: UInt64Array = epochs.clone().map(|epoch| series.dropped() + epoch as u64).collect();
        let items: UInt64Array = epochs.clone().map(|epoch| series.length(epoch)).collect();
        batch([
            ("epoch", Arc::new(numbers) as ArrayRef),
            ("items", Arc::new(items)),
            ("count", floats(epochs.map(count))),
        ])
    }

    /// The keys whose rate changed most.
    pub fn changes(&mut self, n: usize, last: usize) -> Result<RecordBatch, Error> {
        let view = self.epochs()?;
        let series = view.series();
        // What has just begun says little of rates.
        let kept = series.len();
        let too_short = kept > 1 && series.length(kept - 1) < series.length(kept - 2) / 2;
        let to = kept - usize::from(too_short);
        // With few epochs, the newer half against the older.
        let last = last.min(to / 2);
        let changes = series.changes(to - 2 * last..to - last, to - last..to, n);
        let registry = view.registry();
        let names = changes.iter().map(|change| registry.is_named(change.key).then(|| registry.key(change.key)));
        batch([
            ("key", key_array(self.keys(), &names.collect::<Vec<_>>())?),
            ("before", floats(changes.iter().map(|change| Some(change.before)))),
            ("after", floats(changes.iter().map(|change| Some(change.after)))),
        ])
    }

    pub fn cut(&mut self) {
        self.view = None;
        if let State::Counting { sketch, .. } = &mut self.state {
            sketch.cut();
        }
    }

    pub fn known_keys(&mut self) -> Result<usize, Error> {
        Ok(self.view()?.map_or(0, |view| view.keys()) + usize::from(self.nulls > 0))
    }

    /// Adds the counts of another one. If that is refused, this one is as it was.
    pub fn merge(&mut self, other: Self) -> Result<(), Error> {
        let nulls = u128::from(self.nulls) + u128::from(other.nulls);
        let total = u128::from(self.weight()) + u128::from(other.weight());
        if total > u128::from(MAX_WEIGHT) {
            return Err(Error::Value(format!("the weight of everything counted would pass 2^63: {total}")));
        }
        if let State::Counting { sketch: theirs, keys: their_keys } = other.state {
            match &mut self.state {
                State::Empty(options) => {
                    let mut sketch = options.builder(&their_keys)?.build()?;
                    sketch.merge(*theirs)?;
                    self.state = State::Counting { sketch: Box::new(sketch), keys: their_keys };
                }
                State::Counting { sketch, keys } => {
                    if *keys != their_keys {
                        let why = format!("the sketches count different keys: {keys} and {their_keys}");
                        return Err(Error::Type(why));
                    }
                    sketch.merge(*theirs)?;
                }
            }
            self.view = None;
        }
        self.nulls = nulls as u64;
        Ok(())
    }

    /// What a pickle holds of it.
    pub fn parts(&mut self) -> Result<Parts, Error> {
        let nulls = self.nulls;
        Ok(match &mut self.state {
            State::Empty(options) => Parts { options: Some(options.to_json()), keys: None, nulls, state: None },
            State::Counting { sketch, keys } => {
                Parts { options: None, keys: Some(keys.to_string()), nulls, state: Some(sketch.to_bytes()?) }
            }
        })
    }

    pub fn from_parts(parts: Parts) -> Result<Self, Error> {
        let mut inner = match parts {
            Parts { options: Some(options), .. } => Self::new(Options::from_json(&options)?, None)?,
            Parts { state: Some(state), keys, .. } => {
                Self::restored(UclSketch::from_bytes(&state)?, keys.map(|keys| keys.parse()).transpose()?)?
            }
            _ => return Err(Error::Value("a sketch without state and without options".into())),
        };
        inner.nulls = parts.nulls.min(MAX_WEIGHT);
        Ok(inner)
    }

    pub fn copy(&mut self) -> Result<Self, Error> {
        Self::from_parts(self.parts()?)
    }

    pub fn save(&mut self, path: &Path) -> Result<(), Error> {
        let nulls = self.nulls.to_string();
        match &mut self.state {
            State::Empty(options) => {
                let mut sketch = options.unkeyed()?;
                sketch.set_label(label::OPTIONS, options.to_json());
                sketch.set_label(label::NULLS, nulls);
                sketch.save(path)?;
            }
            State::Counting { sketch, keys } => {
                sketch.set_label(label::KEYS, keys.to_string());
                sketch.set_label(label::NULLS, nulls);
                sketch.save(path)?;
            }
        }
        Ok(())
    }

    pub fn load(path: &Path, keys: Option<KeyType>) -> Result<Self, Error> {
        let sketch = UclSketch::load(path)?;
        let nulls = sketch.labels().get(label::NULLS).and_then(|text| text.parse().ok()).unwrap_or(0).min(MAX_WEIGHT);
        let options = sketch.labels().get(label::OPTIONS).filter(|_| sketch.items() == 0 && keys.is_none());
        let mut inner = match options {
            Some(options) => Self::new(Options::from_json(options)?, None)?,
            None => Self::restored(sketch, keys)?,
        };
        inner.nulls = nulls;
        Ok(inner)
    }

    /// A sketch that was read. Its keys are of the type asked for, or of the one that is written on
    /// it, or bytes.
    fn restored(sketch: UclSketch, asked: Option<KeyType>) -> Result<Self, Error> {
        let found = sketch.config().keys;
        let fixed = |format| if let KeyFormat::Fixed(bytes) = format { Some(bytes) } else { None };
        let fits = |keys: &KeyType| keys.format().is_ok_and(|format| fixed(format) == fixed(found));
        let keys = match asked {
            Some(keys) if fits(&keys) => keys,
            Some(keys) => return Err(Error::Type(format!("the state has {found}, which {keys} keys are not"))),
            None => {
                let written = |name: &str| sketch.labels().get(name);
                let ours = written(label::KEYS).and_then(|text| text.parse().ok());
                let format = || written(label::FORMAT).and_then(|text| text.parse::<Format>().ok());
                let known =
                    ours.filter(fits).or_else(|| format().map(|format| KeyType::of_format(&format)).filter(fits));
                known.unwrap_or(match found {
                    KeyFormat::Fixed(bytes) => KeyType::Fixed(bytes.into()),
                    _ => KeyType::Bytes,
                })
            }
        };
        Ok(Self::of_sketch(sketch, keys))
    }

    pub fn items(&self) -> u64 {
        self.sketch().map_or(0, UclSketch::items)
    }

    pub fn weight(&self) -> u64 {
        self.sketch().map_or(0, UclSketch::weight) + self.nulls
    }

    pub fn nulls(&self) -> u64 {
        self.nulls
    }

    pub fn memory(&self) -> usize {
        match &self.state {
            State::Empty(options) => options.memory,
            State::Counting { sketch, .. } => sketch.memory().total(),
        }
    }

    pub fn decoder_memory(&mut self) -> usize {
        match &mut self.state {
            State::Empty(_) => 0,
            State::Counting { sketch, .. } => sketch.control_memory().total(),
        }
    }

    pub fn mode(&mut self) -> String {
        match &mut self.state {
            State::Empty(options) => options.mode.clone(),
            State::Counting { sketch, .. } => sketch.mode().name().to_owned(),
        }
    }

    pub fn seed(&self) -> u128 {
        match &self.state {
            State::Empty(options) => options.seed(),
            State::Counting { sketch, .. } => sketch.config().seed.value(),
        }
    }

    pub fn describe(&mut self) -> String {
        let keys = self.keys().map_or_else(|| "not known yet".to_owned(), ToString::to_string);
        let (mode, memory, decoder) = (self.mode(), self.memory(), self.decoder_memory());
        format!(
            "<ucl_sketch.Sketch mode={mode} keys={keys} memory={memory} decoder_memory={decoder} items={} weight={}>",
            self.items(),
            self.weight()
        )
    }
}

/// A column that was checked, ready to be counted.
#[derive(Default)]
struct Work<'a> {
    parts: Vec<WorkPart<'a>>,
    /// Of what is not null.
    weight: u128,
    null_weight: u128,
    first_null: Option<usize>,
}

struct WorkPart<'a> {
    rows: Rows<'a>,
    weights: Option<Cow<'a, [u64]>>,
}

impl<'a> Work<'a> {
    fn chunk(&mut self, chunk: &'a ArrayRef, weights: Option<&'a [u64]>, reading: Reading<'_>) -> Result<(), Error> {
        if let DataType::Dictionary(..) = chunk.data_type()
            && !chunk.as_any_dictionary().values().is_empty()
        {
            return self.by_code(chunk, weights, reading);
        }
        let rows = Rows::new(chunk, reading)?;
        let weight_of = |row: usize| weights.map_or(1, |weights| u128::from(weights[row]));
        let all = weights.map_or(chunk.len() as u128, |weights| weights.iter().map(|&weight| u128::from(weight)).sum());
        let mut null_weight = 0;
        if let Some(first) = rows.first_null() {
            self.first_null.get_or_insert(reading.first + first);
            null_weight = (first..rows.len()).filter(|&row| rows.is_null(row)).map(weight_of).sum();
        }
        self.null_weight += null_weight;
        self.weight += all - null_weight;
        self.parts.push(WorkPart { rows, weights: weights.map(Cow::Borrowed) });
        Ok(())
    }

    /// Counts the codes of a dictionary first, so that each value is looked at once.
    fn by_code(&mut self, chunk: &'a ArrayRef, weights: Option<&'a [u64]>, reading: Reading<'_>) -> Result<(), Error> {
        let dictionary = chunk.as_any_dictionary();
        let rows = Rows::new(dictionary.values(), reading)?;
        let mut sums = vec![0u128; rows.len()];
        let nulls = dictionary.keys().logical_nulls();
        for (row, code) in dictionary.normalized_keys().into_iter().enumerate() {
            let weight = weights.map_or(1, |weights| u128::from(weights[row]));
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) || rows.is_null(code) {
                self.first_null.get_or_insert(reading.first + row);
                self.null_weight += weight;
            } else {
                sums[code] += weight;
                self.weight += weight;
            }
        }
        // One that does not fit makes the total too large, which is refused before it is used.
        let sums = sums.into_iter().map(|sum| u64::try_from(sum).unwrap_or(u64::MAX)).collect();
        self.parts.push(WorkPart { rows, weights: Some(Cow::Owned(sums)) });
        Ok(())
    }

    fn nulls(&mut self, rows: usize, first: usize, weights: Option<&[u64]>) {
        if rows > 0 {
            self.first_null.get_or_insert(first);
        }
        let all = weights.map_or(rows as u128, |weights| weights.iter().map(|&weight| u128::from(weight)).sum());
        self.null_weight += all;
    }
}

impl WorkPart<'_> {
    /// Counts the rows, except those of no weight.
    fn insert(&self, sketch: &mut UclSketch, stop: &AtomicBool) -> Result<(), Error> {
        let weights = self.weights.as_deref();
        let flat = self.rows.flat().filter(|_| weights.is_none_or(|weights| !weights.contains(&0)));
        for start in (0..self.rows.len()).step_by(SLICE) {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let range = start..(start + SLICE).min(self.rows.len());
            if let Some((size, bytes)) = flat {
                let weights = weights.map(|weights| &weights[range.clone()]);
                sketch.insert_flat(size, &bytes[range.start * size..range.end * size], weights)?;
                continue;
            }
            let weight = |row: usize| weights.map_or(1, |weights| weights[row]);
            let rows = range.filter(|&row| weight(row) > 0 && !self.rows.is_null(row));
            let mut made = vec![];
            match sketch.config().keys {
                KeyFormat::Fixed(size) => {
                    let (mut keys, mut each) = (vec![], vec![]);
                    for row in rows {
                        keys.extend_from_slice(self.rows.key(row, &mut made));
                        each.push(weight(row));
                    }
                    sketch.insert_flat(size.into(), &keys, weights.map(|_| &each[..]))?;
                }
                _ => {
                    for row in rows {
                        sketch.insert_weighted(self.rows.key(row, &mut made), weight(row))?;
                    }
                }
            }
        }
        Ok(())
    }
}
