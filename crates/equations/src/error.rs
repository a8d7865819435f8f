//! Errors of products and solvers.

/// Reason why a product or a solver rejected its input. The output is unchanged.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A slice has the wrong length. Counters need `Columns::counters` values, unknowns
    /// `Columns::len`.
    #[error("{what} has {found} values where the system has {expected}")]
    Shape {
        /// Name of the argument.
        what: &'static str,
        /// Expected length.
        expected: usize,
        /// Length of the slice given.
        found: usize,
    },
    /// The input holds a NaN or an infinity.
    #[error("{what}[{at}] is {value}, not a finite number")]
    NotFinite {
        /// Name of the argument.
        what: &'static str,
        /// Position of the value in the argument.
        at: usize,
        /// The value found.
        value: f64,
    },
    /// The input holds a negative number, but the solver needs `y >= 0` or `x >= 0`. The
    /// least-squares solvers accept signed counters.
    #[error("{what}[{at}] is {value}, but this solver needs numbers >= 0")]
    Negative {
        /// Name of the argument.
        what: &'static str,
        /// Position of the value in the argument.
        at: usize,
        /// The value found.
        value: f64,
    },
    /// The columns have signs or weights, but the solver needs ones. LSQR, LSMR and OMP accept any
    /// coefficients.
    #[error("{solver} needs columns of ones, but these carry signs or weights")]
    NeedsOnes {
        /// Name of the solver.
        solver: &'static str,
    },
    /// A candidate is not a column of this system.
    #[error("candidate {at} is column {id}, but there are {len} columns")]
    UnknownColumn {
        /// Position of the candidate in the list.
        at: usize,
        /// Number of the column asked for.
        id: u32,
        /// Number of columns in the system.
        len: usize,
    },
    /// The system does not have `rows × width` counters with one entry per row.
    #[error("{rows} rows of {width} counters do not fit {counters} counters and columns of {degree} entries")]
    Rows {
        /// Number of rows given.
        rows: usize,
        /// Number of counters in a row given.
        width: usize,
        /// Number of counters in the system.
        counters: usize,
        /// Number of entries in each column.
        degree: usize,
    },
    /// Entry `j` of a column is not in row `j`.
    #[error("entry {row} of column {column} is counter {index}, outside row {row}")]
    OutsideRow {
        /// Number of the column.
        column: u32,
        /// Number of the entry, which is also the row that it should be in.
        row: usize,
        /// Index of the counter that the entry names.
        index: u32,
    },
    /// The row to leave out does not exist or is the only one.
    #[error("row {row} of {rows} cannot be left out")]
    LeftOutRow {
        /// Number of the row asked for.
        row: usize,
        /// Number of rows in the system.
        rows: usize,
    },
    /// An option is outside its range.
    #[error("option {name} is {value}, but must be {range}")]
    Option {
        /// Name of the option.
        name: &'static str,
        /// Value that was given.
        value: f64,
        /// Description of the allowed values.
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
