//! Datasets of the paper: found in a folder and checked against their known digests, or replaced by
//! something generated that says so.
//!
//! | dataset | files | without one |
//! |---|---|---|
//! | Retail | `retail*.dat`, `.gz` too | Zipf keys, as many as Retail has |
//! | Kosarak | `kosarak*.dat` | Zipf keys, as many as the paper's part of it has |
//! | CAIDA | `caida*.pcap`, `.pcapng`, `.bin` (13-byte five-tuples) | generated packets |
//! | Zipf 1.2 to 1.5 | none | always generated |
//!
//! A file is known by the SHA-256 of its content, unpacked, so that `retail.dat` and
//! `retail.dat.gz` are the same.

use std::fmt::Write;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use ucl_streams::{Format, OnError, PacketKey, ReadOptions, Source};

use super::job::Extent;
use crate::recording::Recording;

/// Stream of the paper's evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dataset {
    /// Market baskets of a supermarket.
    Retail,
    /// Clicks of a news portal.
    Kosarak,
    /// Packets of a backbone link.
    Caida,
    /// Zipf's law with skew 1.2.
    Zipf12,
    /// Zipf's law with skew 1.3.
    Zipf13,
    /// Zipf's law with skew 1.4.
    Zipf14,
    /// Zipf's law with skew 1.5.
    Zipf15,
}

impl Dataset {
    /// All datasets.
    pub const ALL: [Self; 7] =
        [Self::Retail, Self::Kosarak, Self::Caida, Self::Zipf12, Self::Zipf13, Self::Zipf14, Self::Zipf15];

    /// Returns the name in results and in the paper's numbers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retail => "retail",
            Self::Kosarak => "kosarak",
            Self::Caida => "caida",
            Self::Zipf12 => "zipf-1.2",
            Self::Zipf13 => "zipf-1.3",
            Self::Zipf14 => "zipf-1.4",
            Self::Zipf15 => "zipf-1.5",
        }
    }

    /// Returns the dataset with this name in results.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dataset| dataset.name() == name)
    }

    /// The paper uses at most so many items of a longer file.
    const MOST_ITEMS: u64 = 1_000_000;

    /// What stands in, or what the dataset is, as a generator.
    fn generator(self, extent: Extent) -> String {
        let zipf = |skew: &str| format!("zipf:{skew}:{}", extent.choose(2_000_000u64, 2_000_000, 20_000));
        match self {
            Self::Retail => format!("zipf:1.05:{}:16470", extent.choose(908_576, 908_576, 20_000)),
            Self::Kosarak => format!("zipf:1.2:{}:41270", extent.choose(1_000_000, 1_000_000, 20_000)),
            Self::Caida => format!("caida-like:{}", extent.choose(1_000_000, 1_000_000, 20_000)),
            Self::Zipf12 => zipf("1.2"),
            Self::Zipf13 => zipf("1.3"),
            Self::Zipf14 => zipf("1.4"),
            Self::Zipf15 => zipf("1.5"),
        }
    }

    /// Beginnings and ends of the names of its files, with how they are read.
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Retail => &[("retail", ".dat")],
            Self::Kosarak => &[("kosarak", ".dat")],
            Self::Caida => &[("caida", ".pcap"), ("caida", ".pcapng"), ("caida", ".bin")],
            _ => &[],
        }
    }

    fn format(self, name: &str) -> Format {
        match self {
            Self::Caida if name.contains(".pcap") => Format::Pcap(vec![PacketKey::FiveTuple]),
            Self::Caida => Format::Records(13),
            _ => Format::Fimi,
        }
    }
}

/// Known properties of a dataset's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Name of the dataset.
    pub dataset: String,
    /// Size in bytes, unpacked.
    pub bytes: u64,
    /// SHA-256 of the unpacked bytes.
    pub sha256: String,
    /// Number of items.
    pub items: u64,
    /// Number of distinct keys.
    pub keys: u64,
    /// Description of the file.
    pub about: String,
}

/// Returns the manifest of known files.
pub fn manifest() -> &'static [Known] {
    static KNOWN: OnceLock<Vec<Known>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let lines = include_str!("../../data/datasets.csv").lines().skip(1);
        let known = lines.filter_map(|line| {
            let mut cells = line.splitn(6, ',');
            let mut next = || cells.next();
            Some(Known {
                dataset: next()?.to_owned(),
                bytes: next()?.parse().ok()?,
                sha256: next()?.to_owned(),
                items: next()?.parse().ok()?,
                keys: next()?.parse().ok()?,
                about: next()?.trim_matches('"').to_owned(),
            })
        });
        known.collect()
    })
}

/// Identity of a dataset that was found or generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Name of the dataset.
    pub dataset: String,
    /// Digest of the bytes, or the generator.
    pub stamp: String,
    /// True if the bytes are the paper's own data.
    pub genuine: bool,
    /// Description for readers of results.
    pub about: String,
}

struct Shelf {
    source: Source,
    options: ReadOptions,
    identity: Identity,
    stream: OnceLock<Result<Arc<Recording>, String>>,
}

/// Collection of all datasets, each read at its first use.
pub struct Library {
    shelves: Vec<(Dataset, Shelf)>,
}

/// Error of a data folder that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {why}", path.display())]
pub struct DataError {
    /// Folder or file that could not be read.
    pub path: PathBuf,
    /// Error of the system.
    pub why: std::io::Error,
}

impl Library {
    /// Finds the datasets in a folder and generates the missing ones. A slice is always generated.
    pub fn open(folder: Option<&Path>, extent: Extent) -> Result<Self, DataError> {
        let files = match folder.filter(|_| extent != Extent::Slice) {
            Some(folder) => list(folder)?,
            None => Vec::new(),
        };
        let shelf = |dataset: Dataset| -> Result<(Dataset, Shelf), DataError> {
            let name_fits = |path: &&PathBuf| {
                let name = file_name(path);
                let plain = name.strip_suffix(".gz").unwrap_or(&name);
                dataset.files().iter().any(|(start, end)| plain.starts_with(start) && plain.ends_with(end))
            };
            let found = match files.iter().find(name_fits) {
                Some(path) => from_file(dataset, path)?,
                None => generated(dataset, extent),
            };
            Ok((dataset, found))
        };
        Ok(Self { shelves: Dataset::ALL.into_iter().map(shelf).collect::<Result<_, _>>()? })
    }

    fn shelf(&self, dataset: Dataset) -> &Shelf {
        let (_, shelf) = self.shelves.iter().find(|(name, _)| *name == dataset).expect("every dataset has a shelf");
        shelf
    }

    /// Returns the identity of a dataset.
    pub fn identity(&self, dataset: Dataset) -> &Identity {
        &self.shelf(dataset).identity
    }

    /// Returns a dataset in memory, with its exact counts.
    pub fn stream(&self, dataset: Dataset) -> Result<Arc<Recording>, String> {
        let shelf = self.shelf(dataset);
        let read = || {
            let recording = Recording::read(std::slice::from_ref(&shelf.source), &shelf.options);
            let recording = recording.map_err(|error| error.to_string())?;
            match recording.cut_off() {
                Some(why) => Err(why.to_string()),
                None => Ok(Arc::new(recording)),
            }
        };
        shelf.stream.get_or_init(read).clone()
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, DataError> {
    let failed = |why| DataError { path: folder.to_owned(), why };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.sort();
    Ok(files)
}

fn generated(dataset: Dataset, extent: Extent) -> Shelf {
    let generator = dataset.generator(extent);
    let genuine = dataset.files().is_empty();
    let about = if genuine {
        format!("generated ({generator}), as the paper's is")
    } else {
        format!("a generated stand-in ({generator}): the data is not at hand, so the figures are not the paper's")
    };
    Shelf {
        source: generator.parse().expect("a generator of ours"),
        options: ReadOptions { seed: 1, ..ReadOptions::default() },
        identity: Identity { dataset: dataset.name().to_owned(), stamp: generator, genuine, about },
        stream: OnceLock::new(),
    }
}

fn from_file(dataset: Dataset, path: &Path) -> Result<Shelf, DataError> {
    let name = file_name(path);
    let (bytes, sha256) = digest(path).map_err(|why| DataError { path: path.to_owned(), why })?;
    let known = manifest().iter().find(|known| known.dataset == dataset.name() && known.sha256 == sha256);
    let about = match known {
        Some(known) => format!("{name}: {}", known.about),
        None => format!("{name}: {bytes} bytes that are none of the files known as {}", dataset.name()),
    };
    // Generated packets are no trace, whoever keeps them in a file.
    let genuine = known.is_some() && dataset != Dataset::Caida;
    let format = dataset.format(&name);
    Ok(Shelf {
        source: Source::Path(path.to_owned()),
        options: ReadOptions {
            format,
            on_error: OnError::Stop,
            limit: Some(Dataset::MOST_ITEMS),
            ..ReadOptions::default()
        },
        identity: Identity {
            dataset: dataset.name().to_owned(),
            stamp: format!("sha256:{}", &sha256[..16]),
            genuine,
            about,
        },
        stream: OnceLock::new(),
    })
}

/// Size and SHA-256 of a file's content, unpacked if it is packed.
fn digest(path: &Path) -> std::io::Result<(u64, String)> {
    let mut magic = [0; 2];
    let packed = File::open(path)?.read(&mut magic)? == 2 && magic == [0x1f, 0x8b];
    let file = BufReader::new(File::open(path)?);
    let mut content: Box<dyn Read> =
        if packed { Box::new(flate2::bufread::MultiGzDecoder::new(file)) } else { Box::new(file) };
    let mut hasher = Sha256::new();
    let mut bytes = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        match content.read(&mut buffer)? {
            0 => break,
            n => {
                hasher.update(&buffer[..n]);
                bytes += n as u64;
            }
        }
    }
    Ok((bytes, hex(&hasher.finalize())))
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_is_whole() {
        let names: Vec<&str> = manifest().iter().map(|known| known.dataset.as_str()).collect();
        assert_eq!(names, ["retail", "kosarak", "caida"]);
        assert!(manifest().iter().all(|known| known.sha256.len() == 64 && known.items > 0));
    }

    #[test]
    fn a_file_of_the_name_is_read_and_said_to_be_another() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("retail.dat"), "1 2 3\n1 2\n").unwrap();
        let library = Library::open(Some(folder.path()), Extent::Full).unwrap();
        let identity = library.identity(Dataset::Retail);
        assert_eq!(identity.about, "retail.dat: 10 bytes that are none of the files known as retail");
        assert!(!identity.genuine);
        assert_eq!(library.stream(Dataset::Retail).unwrap().items(), 5);
        let kosarak = library.identity(Dataset::Kosarak);
        assert!(kosarak.about.contains("stand-in") && !kosarak.genuine, "{kosarak:?}");
        assert!(library.identity(Dataset::Zipf12).genuine);
    }

    #[test]
    fn packing_does_not_change_what_a_file_is() {
        let folder = tempfile::tempdir().unwrap();
        let (plain, packed) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&plain, "1 2 3\n").unwrap();
        let mut encoder = flate2::write::GzEncoder::new(File::create(&packed).unwrap(), Default::default());
        std::io::Write::write_all(&mut encoder, b"1 2 3\n").unwrap();
        encoder.finish().unwrap();
        assert_eq!(digest(&plain).unwrap(), digest(&packed).unwrap());
        let missing = Library::open(Some(&folder.path().join("none")), Extent::Full).err().unwrap();
        assert!(missing.to_string().starts_with("cannot read "), "{missing}");
    }
}
