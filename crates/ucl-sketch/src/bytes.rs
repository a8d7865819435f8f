//! Sizes as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes: `64KB` = `64KiB` = `65536`.
///
/// ```
/// use ucl_sketch::Bytes;
/// assert_eq!("64KB".parse::<Bytes>(), "64KiB".parse());
/// assert_eq!("1.5 MB".parse(), Ok(Bytes(1_572_864)));
/// assert_eq!(Bytes(65_536).to_string(), "64KB");
/// assert_eq!("1TB".parse(), Ok(Bytes(1 << 40)));
/// assert!("64 parsecs".parse::<Bytes>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub usize);

/// Error of a text that is not a size.
///
/// ```
/// let error = "lots".parse::<ucl_sketch::Bytes>().unwrap_err();
/// assert!(error.to_string().starts_with("'lots' is not a size"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a size: write a number with an optional unit, as in 65536, 64KB, 1.5MB")]
pub struct ParseBytesError(String);

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, ParseBytesError> {
        let error = || ParseBytesError(text.to_owned());
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
        let number: f64 = trimmed[..digits].parse().map_err(|_| error())?;
        let unit = match trimmed[digits..].trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kb" | "kib" => 1024.0,
            "m" | "mb" | "mib" => 1_048_576.0,
            "g" | "gb" | "gib" => 1_073_741_824.0,
            "t" | "tb" | "tib" => 1_099_511_627_776.0,
            _ => return Err(error()),
        };
        let bytes = (number * unit).round();
        if bytes < 9e15 { Ok(Self(bytes as usize)) } else { Err(error()) }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1_073_741_824, "GB"), (1_048_576, "MB"), (1024, "KB")];
        match units.into_iter().find(|&(unit, _)| self.0 >= unit && self.0.is_multiple_of(unit)) {
            Some((unit, name)) => write!(f, "{}{name}", self.0 / unit),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

impl From<usize> for Bytes {
    fn from(bytes: usize) -> Self {
        Self(bytes)
    }
}
