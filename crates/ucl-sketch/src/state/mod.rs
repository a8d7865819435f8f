//! State files: a sketch that stops today and goes on tomorrow.
//!
//! A run that was saved, loaded and continued has the same state and gives the same answers as one
//! that never stopped, down to the last bit: the file holds the open epoch, the epochs that wait to
//! be decoded, the optimiser's moments and the random state. (In [`Execution::Background`] a
//! training that is under way when the state is taken is not part of it.)
//!
//! ```
//! use ucl_sketch::UclSketch;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("monday.ucl");
//! let mut sketch = UclSketch::builder().memory("16KB").seed(1).build()?;
//! sketch.insert(b"tea")?;
//! sketch.save(&path)?;
//!
//! let mut sketch = UclSketch::load(&path)?;
//! sketch.insert(b"tea")?;
//! assert_eq!(sketch.view().estimate("tea").count, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The file
//!
//! ```text
//! 89 55 43 4c 0d 0a 1a 0a   version u32   sections u32   length of the file u64
//! per section:  number u32   CRC-32 u32   length u64
//! the sections, end to end
//! XXH3-64 of everything before
//! ```
//! Numbers are little-endian. Sections ([`Section`]) are `postcard` encodings of the types
//! themselves (integers as varints), so what is written follows the types; the two networks are
//! `safetensors` files. A file also says which hash functions its seeds are for ([`Hashing`]): a
//! sketch that was begun with older ones goes on with them. Columns and hash tables are rebuilt
//! from the keys. Since `postcard` has no field names, *any* change of a written type is a new
//! [`FORMAT_VERSION`]; the golden files of `tests/golden` notice one that was forgotten, and keep
//! every older version loading.
//!
//! # Damage and malice
//!
//! A file that is damaged, cut short, foreign or newer is an error that says so ([`LoadError`]).
//! One whose checksums are right but whose content was made up is held against the configuration
//! and against itself before any of it is used: the result is an error or a sketch that works,
//! never a panic, a hang or an allocation that only a number asked for.
//!
//! [`UclSketch::save`] never leaves half a file: see its documentation.

mod atomic;
mod container;
mod error;
mod halves;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use ucl_control_plane::{ControlPlane, ControlState, Model, Settings, Verdict};
use ucl_data_plane::{Config, Hashing, KeyFormat, ensure, reserve};
use ucl_wire::{Encoder, EncoderState};

#[doc(hidden)]
pub use container::mend;
use container::{HEAD, Sections, pack};
pub use error::{LoadError, SaveError};

use crate::background::Background;
use crate::builder::Execution;
use crate::epochs::Epochs;
use crate::key::Key;
use crate::plane::{AnyPlane, StoredAnyPlane};
use crate::sketch::{Control, UclSketch, nowhere};

/// The version of the format that is written; older ones are read.
///
/// Version 2 had no mirrored tables. Version 1 had seeds of 64 bits for other hash functions
/// ([`Hashing::V1`]), and did not say so: the configuration lacked its last field.
pub const FORMAT_VERSION: u32 = 3;

/// The parts of a state file, by their numbers.
///
/// ```
/// use ucl_sketch::state::Section;
/// assert_eq!(Section::DataPlane.to_string(), "data plane");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Section {
    /// Shapes, seed, decoder and settings.
    Configuration = 1,
    /// Heavy part, counters and Bloom filter.
    DataPlane = 2,
    /// The known keys.
    Registry = 3,
    /// The control plane's counters, its mirror of the heavy part, and what is known of each key.
    Counting = 4,
    /// The learned decoder's window of snapshots.
    Window = 5,
    /// Delta's sums, the epochs that wait, and those that are kept.
    Delta = 6,
    /// The network, as `safetensors`.
    Network = 7,
    /// The network's twin that judges it, as `safetensors`.
    Twin = 8,
    /// Reports that wait to be sent, and how many bytes were.
    Uplink = 9,
    /// Labels that the user wrote on the sketch.
    Labels = 10,
    /// Counts from before the sketch's hashes or sizes changed: sealed segments.
    Earlier = 11,
    /// The configuration of a [`Device`](crate::Device), and carries that it holds back.
    Device = 20,
    /// The configuration of a [`Station`](crate::Station), and the message that it expects.
    Station = 21,
    /// Exact counts that a mirrored table has sent.
    Exports = 12,
    /// Which keys the device knows, about: its epochs end by load.
    Load = 13,
    /// Largest errors of delta's sums. Without it, likely ranges are the guaranteed ones.
    Doubts = 14,
}

impl Section {
    /// All sections.
    pub const ALL: [Self; 16] = [
        Self::Configuration,
        Self::DataPlane,
        Self::Registry,
        Self::Counting,
        Self::Window,
        Self::Delta,
        Self::Network,
        Self::Twin,
        Self::Uplink,
        Self::Labels,
        Self::Earlier,
        Self::Device,
        Self::Station,
        Self::Exports,
        Self::Load,
        Self::Doubts,
    ];
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Configuration => "configuration",
            Self::DataPlane => "data plane",
            Self::Registry => "registry",
            Self::Counting => "counting",
            Self::Window => "window",
            Self::Delta => "delta",
            Self::Network => "network",
            Self::Twin => "twin",
            Self::Uplink => "uplink",
            Self::Labels => "labels",
            Self::Earlier => "earlier",
            Self::Device => "device",
            Self::Station => "station",
            Self::Exports => "exports",
            Self::Load => "load",
            Self::Doubts => "doubts",
        })
    }
}

/// Content of a state file, read without loading it.
///
/// ```
/// use ucl_sketch::UclSketch;
/// use ucl_sketch::state::{FORMAT_VERSION, Section, Summary};
/// let bytes = UclSketch::builder().build()?.to_bytes()?;
/// let summary = Summary::read(&bytes)?;
/// assert_eq!(summary.version, FORMAT_VERSION);
/// assert!(summary.sections.iter().any(|&(section, bytes)| section == Section::DataPlane && bytes >
/// 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The file's version.
    pub version: u32,
    /// Sections of the file with their bytes, in order.
    pub sections: Vec<(Section, usize)>,
}

impl Summary {
    /// Checks that the file is whole, and says what is in it.
    pub fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        let file = Sections::unpack(bytes)?;
        Ok(Self {
            version: file.version,
            sections: file.iter().map(|(section, bytes)| (section, bytes.len())).collect(),
        })
    }
}

/// The section of that name.
#[derive(Serialize, Deserialize)]
struct Configuration {
    config: Config,
    settings: Settings,
    interval: Option<u64>,
    until_cut: u64,
    execution: Execution,
    verdict: Option<Verdict>,
    settled: bool,
}

impl Configuration {
    /// Reads the section of a file of any version: the configuration, and the hash functions in
    /// use.
    fn read(file: &Sections<'_>) -> Result<(Self, Hashing), LoadError> {
        let section = Section::Configuration;
        if file.version == 1 {
            return Ok((required(file, section)?, Hashing::V1));
        }
        let (configuration, number): (Self, u8) = required(file, section)?;
        let hashing = Hashing::from_number(number)
            .ok_or_else(|| LoadError::Malformed { section, why: format!("there are no hash functions {number}") })?;
        Ok((configuration, hashing))
    }

    fn write(&self) -> Vec<u8> {
        encode(&(self, self.config.seed.hashing().number()))
    }
}

impl<K: Key> UclSketch<K> {
    /// Saves the state to a file, and replaces the file if it exists.
    ///
    /// Whenever the process is killed or the power fails, the file is the old one or the new one,
    /// whole: the state goes into a temporary file beside it (`.ucl-RANDOM.tmp`), is forced to the
    /// disk, and then takes the name. Any number of processes may save to the same file; the last
    /// one to finish wins. A process that is killed may leave its temporary file behind. It is
    /// never read and never removed, because another process may be writing it: once none is,
    /// delete it.
    ///
    /// A symbolic link is followed, also one whose target is not there yet: the target is written
    /// and the link stays.
    ///
    /// # Errors
    /// If the file cannot be written, or the sketch has failed before. An older file is then
    /// unchanged.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<(), SaveError> {
        let bytes = self.to_bytes()?;
        let path = path.as_ref();
        atomic::write(path, &bytes).map_err(|error| SaveError::Write { path: path.to_owned(), error })
    }

    /// Returns the state as the bytes of a file. The same state gives the same bytes.
    ///
    /// # Errors
    /// If the sketch has failed before, or its settings are out of the range that a state can have.
    pub fn to_bytes(&mut self) -> Result<Vec<u8>, SaveError> {
        let plane = &self.plane;
        let interval = self.interval();
        let until_cut = self.until_cut;
        let of_control = |control: &ControlPlane, settings: Settings, execution| -> Result<_, SaveError> {
            settings.check(plane.config())?;
            let (parts, verdict, settled) = control_sections(control)?;
            let config = *plane.config();
            let configuration = Configuration { config, settings, interval, until_cut, execution, verdict, settled };
            let mut sections =
                vec![(Section::Configuration, configuration.write()), (Section::DataPlane, encode(plane))];
            sections.extend(load_section(plane));
            sections.extend(parts);
            Ok(sections)
        };
        let (mut sections, encoder) = match &mut self.control {
            here @ (Control::Inline { .. } | Control::Pipelined { .. }) => {
                let sections =
                    here.with(|control| of_control(control, control.settings().clone(), Execution::Synchronous))?;
                (sections, here.encoder().map(|encoder| encoder.state()))
            }
            Control::Background(background) => {
                let settings = background.settings();
                let sections =
                    background.with_control(|control| of_control(control, settings, Execution::Background))?;
                (sections, Some(background.encoder().state()))
            }
        };
        sections.extend(encoder.map(|encoder| (Section::Uplink, encode(&encoder))));
        if !self.labels.is_empty() {
            sections.push((Section::Labels, encode(&self.labels)));
        }
        Ok(pack(&sections))
    }

    /// Returns the sketch with keys of another type, for one that was loaded.
    ///
    /// ```
    /// use ucl_sketch::UclSketch;
    /// let mut sketch = UclSketch::builder().keys::<u32>().build()?;
    /// sketch.insert(7)?;
    /// let bytes = sketch.to_bytes()?;
    /// let mut again = UclSketch::from_bytes(&bytes)?.with_keys::<u32>()?;
    /// again.insert(7)?;
    /// assert_eq!(again.view().estimate(7).count, 2);
    /// assert!(UclSketch::from_bytes(&bytes)?.with_keys::<u64>().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If keys of that type have another size than those of the sketch.
    pub fn with_keys<L: Key>(self) -> Result<UclSketch<L>, LoadError> {
        let Self { plane, control, epochs, until_cut, labels, keys: _ } = self;
        let found = plane.config().keys;
        let wanted = L::SIZE.map_or(Ok(KeyFormat::Digest), KeyFormat::for_key_bytes).ok();
        // Codes stand for keys of any length too.
        let found = if found.any_length() { KeyFormat::Digest } else { found };
        if wanted != Some(found) {
            return Err(LoadError::KeyType { found, wanted: std::any::type_name::<L>() });
        }
        Ok(UclSketch { plane, control, epochs, until_cut, labels, keys: PhantomData })
    }
}

impl UclSketch {
    /// Loads a sketch that [`UclSketch::save`] wrote, and continues where it stopped.
    ///
    /// Its keys are bytes: call [`UclSketch::with_keys`] for keys of another type.
    ///
    /// # Errors
    /// If the file cannot be read, is not a state, is damaged, is of a newer version or needs a
    /// feature that this build does not have.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        Self::from_bytes(&read_file(path)?)
    }

    /// Loads a sketch from the bytes of [`UclSketch::to_bytes`], and continues where it stopped.
    ///
    /// Its keys are bytes: call [`UclSketch::with_keys`] for keys of another type.
    ///
    /// # Errors
    /// If the bytes are not a state, are damaged, are of a newer version or need a feature that
    /// this build does not have.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        let file = Sections::unpack(bytes)?;
        let (configuration, hashing) = Configuration::read(&file)?;
        let Configuration { config, settings, interval, until_cut, execution, verdict, settled } = configuration;
        let config = config.hashed_by(hashing);
        if !settings.decoder.is_built() {
            return Err(LoadError::NotBuilt { decoder: settings.decoder });
        }
        let due = until_cut > 0 && interval.is_none_or(|interval| until_cut <= interval);
        ensure(due, || format!("the next cut in {until_cut} items, but one every {interval:?}"))?;
        let plane = read_plane(&file, &config)?;
        let epochs = if plane.known_keys().is_some() { Epochs::ByLoad } else { interval.into() };
        ensure(epochs != Epochs::ByLoad || interval.is_none(), || format!("by load, and one every {interval:?}"))?;

        let state = read_control(&file, verdict, settled)?;
        let control = ControlPlane::restore(config, settings, state)?;
        control.check_against(plane.digest_key(), |peek| plane.peek(peek))?;

        let encoder: Option<EncoderState> = optional(&file, Section::Uplink)?;
        let control = match (execution, encoder) {
            (Execution::Synchronous | Execution::Pipelined, encoder) => {
                let encoder = encoder.map(|state| Encoder::restore(config, state, nowhere())).transpose()?;
                Control::Inline { control: Box::new(control), encoder: encoder.map(Box::new) }
            }
            (Execution::Background, Some(encoder)) => Control::Background(Background::resume(control, encoder)?),
            (Execution::Background, None) => return Err(LoadError::Missing { section: Section::Uplink }),
        };
        let labels: Option<BTreeMap<String, String>> = optional(&file, Section::Labels)?;
        Ok(Self { plane, control, epochs, until_cut, labels: labels.unwrap_or_default(), keys: PhantomData })
    }
}

/// Encodes what a data plane knows of the load of its epochs, if they end by it.
fn load_section(plane: &AnyPlane) -> Option<(Section, Vec<u8>)> {
    plane.known_keys().map(|registers| (Section::Load, encode(&registers)))
}

/// The data plane of a sketch or a device.
fn read_plane(file: &Sections<'_>, config: &Config) -> Result<AnyPlane, LoadError> {
    let mut plane = required::<StoredAnyPlane>(file, Section::DataPlane)?.restored(config)?;
    if let Some(registers) = optional(file, Section::Load)? {
        plane.watch_load_from(registers)?;
    }
    Ok(plane)
}

/// A file's sections, and what the network's twin said of it.
type ControlSections = (Vec<(Section, Vec<u8>)>, Option<Verdict>, bool);

/// The sections of a control plane.
fn control_sections(control: &ControlPlane) -> Result<ControlSections, SaveError> {
    let ControlState { registry, counting, earlier, window, delta, doubts, model, exports } = control.state()?;
    let (verdict, settled) = model.as_ref().map_or((None, false), |model| (model.verdict, model.settled));
    let mut sections = vec![
        (Section::Registry, encode(&registry)),
        (Section::Counting, encode(&counting)),
        (Section::Window, encode(&window)),
    ];
    sections.extend(earlier.map(|earlier| (Section::Earlier, encode(&earlier))));
    sections.extend(delta.map(|delta| (Section::Delta, encode(&delta))));
    sections.extend(doubts.map(|doubts| (Section::Doubts, encode(&doubts))));
    sections.extend(exports.map(|exports| (Section::Exports, encode(&exports))));
    if let Some(Model { network, twin, .. }) = model {
        sections.push((Section::Network, network));
        sections.extend(twin.map(|twin| (Section::Twin, twin)));
    }
    Ok((sections, verdict, settled))
}

/// Reads the sections that [`control_sections`] wrote.
fn read_control(
    file: &Sections<'_>,
    verdict: Option<Verdict>,
    settled: bool,
) -> Result<ControlState<'static>, LoadError> {
    let network = file.get(Section::Network).map(<[u8]>::to_vec);
    let twin = file.get(Section::Twin).map(<[u8]>::to_vec);
    let lone = network.is_none() && (twin.is_some() || verdict.is_some() || settled);
    ensure(!lone, || "there is no network for what is said of one".into())?;
    Ok(ControlState {
        registry: required(file, Section::Registry)?,
        counting: required(file, Section::Counting)?,
        earlier: optional(file, Section::Earlier)?,
        window: required(file, Section::Window)?,
        delta: optional(file, Section::Delta)?,
        doubts: optional(file, Section::Doubts)?,
        model: network.map(|network| Model { network, twin, verdict, settled }),
        exports: optional(file, Section::Exports)?,
    })
}

/// The bytes of a state file, or of a pipe that brings one: no more than it says it has, so that
/// neither a device without end nor a large file of another kind is read whole.
///
/// # Errors
/// If the file cannot be opened or read.
pub fn read_file(path: impl AsRef<Path>) -> Result<Vec<u8>, LoadError> {
    let path = path.as_ref();
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let mut bytes = Vec::new();
        Read::by_ref(&mut file).take(HEAD as u64).read_to_end(&mut bytes)?;
        // One more, to notice what follows.
        file.take(container::bytes_after(&bytes).saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| LoadError::Read { path: path.to_owned(), error })
}

/// A number that takes one byte in a file takes up to eight in memory.
const GROWTH: usize = 8;

fn encode(value: &impl Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("internal: every part of a state can be written")
}

fn required<T: DeserializeOwned>(file: &Sections<'_>, section: Section) -> Result<T, LoadError> {
    optional(file, section)?.ok_or(LoadError::Missing { section })
}

fn optional<T: DeserializeOwned>(file: &Sections<'_>, section: Section) -> Result<Option<T>, LoadError> {
    let Some(bytes) = file.get(section) else { return Ok(None) };
    if reserve(&mut Vec::<u8>::new(), bytes.len().saturating_mul(GROWTH)).is_err() {
        return Err(LoadError::OutOfMemory { section, bytes: bytes.len() });
    }
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(Some(value)),
        Ok((_, rest)) => Err(LoadError::Malformed { section, why: format!("{} bytes too many", rest.len()) }),
        Err(error) => Err(LoadError::Malformed { section, why: error.to_string() }),
    }
}
