//! Places in a record: a column of a table, a path in a JSON document.

use std::fmt;
use std::str::FromStr;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// Column number, from 1.
    Number(usize),
    /// Column name in the header row. A name that consists of digits is taken for a number.
    Name(String),
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<usize>() {
            Ok(0) => Err("columns count from 1".to_owned()),
            Ok(number) => Ok(Column::Number(number)),
            Err(_) if text.is_empty() => Err("the column is missing".to_owned()),
            Err(_) => Ok(Column::Name(text.to_owned())),
        }
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Column::Number(number) => write!(f, "{number}"),
            Column::Name(name) => f.write_str(name),
        }
    }
}

/// A path in a JSON document: `user.id`, `tags.0`, or a JSON pointer (RFC 6901) such as `/user/id`.
///
/// A name that has a dot in it needs the pointer: `/user.name`. The empty path is the whole
/// document. A path prints as a pointer.
///
/// ```
/// use ucl_streams::JsonPointer;
///
/// let path: JsonPointer = "user.id".parse()?;
/// assert_eq!(path, "/user/id".parse()?);
/// assert_eq!(path.to_string(), "/user/id");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPointer {
    pub(crate) steps: Vec<String>,
}

impl FromStr for JsonPointer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let steps: Vec<String> = match text.strip_prefix('/') {
            Some(rest) => rest.split('/').map(|step| step.replace("~1", "/").replace("~0", "~")).collect(),
            None if text.is_empty() => Vec::new(),
            None => text.split('.').map(str::to_owned).collect(),
        };
        if !text.starts_with('/') && steps.iter().any(String::is_empty) {
            return Err(format!("`{text}` has two dots in a row, or one at an end; a JSON pointer starts with `/`"));
        }
        Ok(Self { steps })
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| write!(f, "/{}", step.replace('~', "~0").replace('/', "~1")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_unescape() {
        let pointer: JsonPointer = "/a~1b/~01".parse().unwrap();
        assert_eq!(pointer.steps, ["a/b", "~1"]);
        assert_eq!(pointer.to_string(), "/a~1b/~01");
        assert_eq!("/".parse::<JsonPointer>().unwrap().steps, [""]);
        assert_eq!("a.0.b/c".parse::<JsonPointer>().unwrap().to_string(), "/a/0/b~1c");
        for wrong in ["a..b", ".a", "a.", "."] {
            assert!(wrong.parse::<JsonPointer>().is_err(), "{wrong}");
        }
    }
}
