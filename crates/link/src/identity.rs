//! Who sends: a tenant's stream, and which life of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name.
pub const MAX_NAME: usize = 64;

/// A name of a tenant or a stream: 1 to 64 letters, digits, dots, hyphens and underscores, and no
/// dot in front.
///
/// ```
/// use ucl_link::Name;
/// assert_eq!("web-1".parse::<Name>()?.as_str(), "web-1");
/// assert!("../etc".parse::<Name>().is_err());
/// # Ok::<(), ucl_link::NameError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// A name that cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name: names have 1 to {MAX_NAME} letters, digits, dots, hyphens and underscores, and no dot in front"
)]
pub struct NameError(pub String);

impl Name {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let valid = (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('.');
        // What is quoted in a message may be hostile, and must not be long.
        if valid { Ok(Self(text.to_owned())) } else { Err(NameError(text.chars().take(MAX_NAME).collect())) }
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

/// Life of a stream: its messages follow on each other without a gap. The number counts up; the
/// nonce tells apart what two copies of an agent count up to.
///
/// ```
/// use ucl_link::Incarnation;
/// let incarnation = Incarnation { number: 3, nonce: 0xbeef };
/// assert_eq!(incarnation.to_string(), "3-000000000000beef");
/// assert_eq!("3-000000000000beef".parse(), Ok(incarnation));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Incarnation {
    /// Number of the life, from 1.
    pub number: u32,
    /// Random.
    pub nonce: u64,
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:016x}", self.number, self.nonce)
    }
}

impl FromStr for Incarnation {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let parse = || {
            let (number, nonce) = text.split_once('-')?;
            let number = number.parse().ok()?;
            let nonce = u64::from_str_radix(nonce, 16).ok()?;
            Some(Self { number, nonce })
        };
        // One spelling each.
        parse()
            .filter(|incarnation| incarnation.to_string() == text)
            .ok_or_else(|| NameError(text.chars().take(MAX_NAME).collect()))
    }
}

/// A sender: tenant, stream and incarnation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Tenant that owns the stream.
    pub tenant: Name,
    /// The stream.
    pub stream: Name,
    /// Incarnation of the stream.
    pub incarnation: Incarnation,
}

impl Identity {
    /// Creates an identity from names.
    ///
    /// # Errors
    /// If a name cannot be one.
    pub fn new(tenant: &str, stream: &str, incarnation: Incarnation) -> Result<Self, NameError> {
        Ok(Self { tenant: tenant.parse()?, stream: stream.parse()?, incarnation })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tenant, self.stream, self.incarnation)
    }
}
