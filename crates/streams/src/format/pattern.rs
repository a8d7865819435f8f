//! A regular expression that finds the key of a line.

use std::fmt;
use std::str::FromStr;

use regex::bytes::Regex;

/// A regular expression with the syntax of the `regex` crate.
///
/// The key is the group named `key`; without one the first group, and without any group the whole
/// match. Groups that are not meant are written `(?:…)`.
///
/// ```
/// use ucl_streams::Pattern;
///
/// let pattern: Pattern = r"user=(?<key>\w+)".parse()?;
/// assert_eq!(pattern.to_string(), r"user=(?<key>\w+)");
/// assert!("(".parse::<Pattern>().is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pattern {
    pub(crate) regex: Regex,
}

/// The name of the group that is the key.
const KEY: &str = "key";

impl Pattern {
    /// Returns the number of the group that is the key; 0 is the whole match.
    pub(crate) fn key_group(&self) -> usize {
        self.group(KEY).unwrap_or(self.regex.captures_len().min(2) - 1)
    }

    /// Returns the number of a group given by name or number.
    pub(crate) fn group(&self, name: &str) -> Option<usize> {
        let named = self.regex.capture_names().position(|group| group == Some(name));
        named.or_else(|| name.parse().ok().filter(|number| (1..self.regex.captures_len()).contains(number)))
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // The crate shows the place in a picture of several lines; the last of them says what it
        // is.
        let said = |error: regex::Error| {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default().trim();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        };
        match Regex::new(text) {
            Ok(_) if text.is_empty() => Err("the regular expression is missing".to_owned()),
            Ok(regex) => Ok(Self { regex }),
            Err(error) => Err(format!("the regular expression is wrong: {}", said(error))),
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.regex.as_str() == other.regex.as_str()
    }
}

impl Eq for Pattern {}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.regex.as_str())
    }
}
