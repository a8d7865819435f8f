//! What can be wrong with a system or with what is asked of it.

/// Reason why a product or a solver rejected its input. The output is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A slice has the wrong length. Counters need `Columns::counters` values, unknowns
    /// `Columns::len`.
    #[error("{what} has {found} values where the system has {expected}")]
    Shape {
        /// Which argument.
        what: &'static str,
        /// The length that fits.
        expected: usize,
        /// The length that was given.
        found: usize,
    },
    /// The input holds a NaN or an infinity.
    #[error("{what}[{at}] is {value}, not a finite number")]
    NotFinite {
        /// Which argument.
        what: &'static str,
        /// Where in it.
        at: usize,
        /// What stands there.
        value: f64,
    },
    /// The input holds a negative number, but the solver needs `y >= 0` or `x >= 0`. The
    /// least-squares solvers accept signed counters.
    #[error("{what}[{at}] is {value}, but this solver needs numbers >= 0")]
    Negative {
        /// Which argument.
        what: &'static str,
        /// Where in it.
        at: usize,
        /// What stands there.
        value: f64,
    },
    /// The columns have signs or weights, but the solver needs ones. LSQR, LSMR and OMP accept any
    /// coefficients.
    #[error("{solver} needs columns of ones, but these carry signs or weights")]
    NeedsOnes {
        /// The solver that refused.
        solver: &'static str,
    },
    /// A candidate is not a column of this system.
    #[error("candidate {at} is column {id}, but there are {len} columns")]
    UnknownColumn {
        /// Where in the candidates.
        at: usize,
        /// The column asked for.
        id: u32,
        /// The columns there are.
        len: usize,
    },
    /// The system does not have `rows × width` counters with one entry per row.
    #[error("{rows} rows of {width} counters do not fit {counters} counters and columns of {degree} entries")]
    Rows {
        /// Rows claimed.
        rows: usize,
        /// Counters a row claimed.
        width: usize,
        /// Counters there are.
        counters: usize,
        /// Entries a column has.
        degree: usize,
    },
    /// Entry `j` of a column is not in row `j`.
    #[error("entry {row} of column {column} is counter {index}, outside row {row}")]
    OutsideRow {
        /// The column.
        column: u32,
        /// The entry, and the row in which it should be.
        row: usize,
        /// The counter it names.
        index: u32,
    },
    /// The row to leave out does not exist or is the only one.
    #[error("row {row} of {rows} cannot be left out")]
    LeftOutRow {
        /// The row asked for.
        row: usize,
        /// Rows there are.
        rows: usize,
    },
    /// An option is outside its range.
    #[error("option {name} is {value}, but must be {range}")]
    Option {
        /// The option's name.
        name: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
}

/// Fails unless a slice has the length that fits.
pub(crate) fn check_len(what: &'static str, expected: usize, found: usize) -> Result<(), Error> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

/// Fails at the first NaN or infinity.
pub(crate) fn check_finite(what: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(at) => Err(Error::NotFinite { what, at, value: values[at] }),
    }
}

/// Fails at the first NaN, infinity or negative number.
pub(crate) fn check_non_negative(what: &'static str, values: &[f64]) -> Result<(), Error> {
    check_finite(what, values)?;
    match values.iter().position(|&v| v < 0.0) {
        None => Ok(()),
        Some(at) => Err(Error::Negative { what, at, value: values[at] }),
    }
}

/// Fails unless an option is a finite number `>= 0`.
pub(crate) fn check_option(name: &'static str, value: f64) -> Result<(), Error> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(Error::Option { name, value, range: "a finite number >= 0" })
    }
}
