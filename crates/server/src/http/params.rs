//! Parameters of a question.

use std::str::FromStr;

use super::problem::Problem;

/// Parameters after the `?`, each name known to the handler.
#[derive(Debug)]
pub struct Params(Vec<(String, String)>);

impl Params {
    /// Reads the parameters. A name that is not among `known` is an error, so that a misspelt one
    /// is not ignored.
    pub fn read(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let pairs = form_urlencoded::parse(query.unwrap_or("").as_bytes());
        let pairs: Vec<(String, String)> = pairs.map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        if let Some((name, _)) = pairs.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            let known = known.join(", ");
            return Err(Problem::bad_request(format!("there is no parameter {name:?}: there are {known}")));
        }
        Ok(Self(pairs))
    }

    /// All values of a name.
    pub fn all<'p>(&'p self, name: &str) -> impl Iterator<Item = &'p str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a name that may stand once.
    pub fn one(&self, name: &str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            Some(_) => Err(Problem::bad_request(format!("{name:?} may be given once"))),
            None => Ok(first),
        }
    }

    /// The value of a name, read.
    pub fn parsed<T: FromStr<Err: std::fmt::Display>>(&self, name: &str) -> Result<Option<T>, Problem> {
        let value = self.one(name)?;
        value.map(|value| value.parse().map_err(|error| Problem::bad_request(format!("{name}: {error}")))).transpose()
    }
}
