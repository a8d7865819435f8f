//! Sources of a stream: a file, standard input, or a generator.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::generate::Generator;
use crate::{Format, SpecError};

/// Input as a user names it.
///
/// `-` is standard input; `zipf:…` and `caida-like…` are generators; anything else is a path (write
/// `./zipf:1.2` for a file of such a name).
///
/// ```
/// use ucl_streams::{Format, Source};
///
/// assert_eq!("-".parse(), Ok(Source::Stdin));
/// assert_eq!("access.log.gz".parse(), Ok(Source::Path("access.log.gz".into())));
/// let zipf: Source = "zipf:1.3:1000".parse()?;
/// assert_eq!(zipf.own_format(), Some(Format::Fimi), "its keys are numbers");
/// # Ok::<(), ucl_streams::SpecError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A file, or anything else that can be opened.
    Path(PathBuf),
    /// Standard input.
    Stdin,
    /// A seeded generator.
    Generator(Generator),
}

impl Source {
    /// Returns the format of a generator's keys, or `None` for inputs that are read.
    pub fn own_format(&self) -> Option<Format> {
        match self {
            Source::Generator(generator) => Some(generator.format()),
            Source::Path(_) | Source::Stdin => None,
        }
    }
}

impl FromStr for Source {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text == "-" {
            return Ok(Source::Stdin);
        }
        match text.split(':').next() {
            Some("zipf" | "caida-like") => text.parse().map(Source::Generator),
            _ => Ok(Source::Path(text.into())),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Path(path) => path.display().fmt(f),
            Source::Stdin => f.write_str("standard input"),
            Source::Generator(generator) => generator.fmt(f),
        }
    }
}
