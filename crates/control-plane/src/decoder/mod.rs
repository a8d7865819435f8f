//! Decoders: from counters and columns to one estimate per column.
//!
//! The *classic* decoders ([`classic`]) see one set of counters; the *learned* one ([`learned`])
//! was trained on a window of them. The [`delta`](crate::delta) decoder is not of this kind: it
//! decodes every epoch on its own as it closes.

pub mod classic;
pub mod judge;
pub mod learned;
mod refined;

pub(crate) use refined::refine;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ucl_data_plane::Geometry;
use ucl_equations::{ColumnId, Columns, Workspace, em};

/// Decoders by name.
///
/// ```
/// use ucl_control_plane::DecoderKind;
/// use ucl_data_plane::Geometry;
/// assert_eq!("delta".parse(), Ok(DecoderKind::Delta));
/// let count_sketch = Geometry { rows: 4, width: 1024, degree: 4, signed: true };
/// assert!(DecoderKind::Em.supports(&count_sketch).is_err() && DecoderKind::Lsmr.supports(&count_sketch).is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum DecoderKind {
    /// Count-Min's minimum, Count Sketch's median.
    Cm,
    /// The closed form of Theorem 4.
    Map,
    /// Least squares by LSQR.
    Lsqr,
    /// Least squares by LSMR, as PR-sketch does.
    Lsmr,
    /// Orthogonal matching pursuit, as SeqSketch does.
    Omp,
    /// Expectation maximisation from ones.
    Em,
    /// The paper's network.
    Learned,
    /// EM that starts from the network's output.
    Refined,
    /// Every epoch decoded on its own, and added up. The default, here and nowhere else.
    #[default]
    Delta,
}

impl DecoderKind {
    /// All decoders.
    pub const ALL: [Self; 9] =
        [Self::Cm, Self::Map, Self::Lsqr, Self::Lsmr, Self::Omp, Self::Em, Self::Learned, Self::Refined, Self::Delta];

    /// Returns true if the decoder has a network to train.
    pub fn is_trained(self) -> bool {
        matches!(self, Self::Learned | Self::Refined)
    }

    /// Returns true if this build has the decoder: those with a network need the feature `learned`.
    pub fn is_built(self) -> bool {
        cfg!(feature = "learned") || !self.is_trained()
    }

    /// Returns the name, as in `ucl-NAME`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cm => "cm",
            Self::Map => "map",
            Self::Lsqr => "lsqr",
            Self::Lsmr => "lsmr",
            Self::Omp => "omp",
            Self::Em => "em",
            Self::Learned => "learned",
            Self::Refined => "refined",
            Self::Delta => "delta",
        }
    }

    /// Checks that the decoder can work with counters of this geometry. Decoders that multiply or
    /// peel cannot take Count Sketch, whose columns have negative coefficients; the closed form
    /// cannot take FlowRadar's single array, because it is derived for rows.
    ///
    /// # Errors
    /// If it cannot.
    pub fn supports(self, geometry: &Geometry) -> Result<(), Unsupported> {
        let unsupported = |why| Err(Unsupported { decoder: self.name(), why });
        match self {
            Self::Map | Self::Em | Self::Refined | Self::Delta if geometry.signed => {
                unsupported("it needs columns without negative coefficients")
            }
            Self::Map if geometry.per_row() > 1 => unsupported("it needs one counter of every key in every row"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for DecoderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DecoderKind {
    type Err = UnknownDecoder;

    fn from_str(name: &str) -> Result<Self, UnknownDecoder> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| UnknownDecoder(name.to_owned()))
    }
}

/// Error of a text that is not the name of a decoder.
///
/// ```
/// let error = "magic".parse::<ucl_control_plane::DecoderKind>().unwrap_err();
/// assert!(error.to_string().starts_with("there is no decoder 'magic'; there are cm,"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no decoder '{0}'; there are cm, map, lsqr, lsmr, omp, em, learned, refined and delta")]
pub struct UnknownDecoder(pub String);

/// A decoder that cannot work with a sketch.
///
/// ```
/// let why = "it needs columns without negative coefficients";
/// let error = ucl_control_plane::decoder::Unsupported { decoder: "em", why };
/// assert!(error.to_string().starts_with("the decoder 'em' cannot decode this sketch"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the decoder '{decoder}' cannot decode this sketch: {why}")]
pub struct Unsupported {
    /// Name of the decoder.
    pub decoder: &'static str,
    /// Requirement of the decoder.
    pub why: &'static str,
}

/// System of equations `y = A x` for a decoder.
///
/// ```
/// use ucl_control_plane::decoder::LinearSystem;
/// use ucl_equations::{ColumnId, Columns, Workspace, em};
/// # use ucl_data_plane::Geometry;
/// # let geometry = Geometry { rows: 2, width: 2, degree: 2, signed: false };
/// let mut columns = Columns::ones(4, 2);
/// columns.push(&[0, 3]);
/// let system = LinearSystem { columns: &columns, geometry, counters: &[5.0, 0.0, 0.0, 5.0], known: &[0.0] };
/// assert_eq!(system.columns.len(), 1);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LinearSystem<'a> {
    /// The columns of `A`.
    pub columns: &'a Columns,
    /// Layout of the counters.
    pub geometry: Geometry,
    /// The counters `y`.
    pub counters: &'a [f64],
    /// Least count in the counters that is known for each column's key.
    pub known: &'a [f64],
}

impl LinearSystem<'_> {
    /// EM within the bounds: what is known is taken off the counters, EM shares out the rest in
    /// proportion to `start` (ones, if none is given), and what is known is put back.
    ///
    /// Without this, EM spreads the known part over all keys that share a counter and the bounds
    /// put it back one key at a time, which leaves the others too high: on Retail, 64KB, the
    /// paper's shapes, the mean absolute error is 15.9 that way and 11.4 this way.
    pub(crate) fn em(
        &self,
        start: Option<&[f64]>,
        options: &em::Options,
        workspace: &mut Workspace,
    ) -> Result<Vec<f64>, DecodeError> {
        let mut rest = self.counters.to_vec();
        for (column, &known) in (0u32..).map(ColumnId).zip(self.known) {
            for &at in self.columns.indices(column) {
                // True lower bounds leave nothing negative.
                rest[at as usize] = (rest[at as usize] - known).max(0.0);
            }
        }
        let mut x = vec![0.0; self.columns.len()];
        em::em(self.columns, &rest, start, options, workspace, &mut x)?;
        x.iter_mut().zip(self.known).for_each(|(x, known)| *x += known);
        Ok(x)
    }
}

/// Turns one set of counters into one estimate per column.
///
/// ```
/// use ucl_control_plane::DecoderKind;
/// use ucl_control_plane::decoder::{Decoder, LinearSystem, classic::Classic};
/// use ucl_equations::{Columns, em};
/// # use ucl_data_plane::Geometry;
/// # let geometry = Geometry { rows: 2, width: 2, degree: 2, signed: false };
/// let mut columns = Columns::ones(4, 2);
/// columns.push(&[0, 3]);
/// let system = LinearSystem { columns: &columns, geometry, counters: &[5.0, 0.0, 0.0, 5.0], known: &[0.0] };
/// let mut decoder = Classic::new(DecoderKind::Cm, em::Options::default()).unwrap();
/// assert_eq!(decoder.decode(&system), Ok(vec![5.0]));
/// ```
pub trait Decoder: Send {
    /// Returns the kind of the decoder.
    fn kind(&self) -> DecoderKind;
    /// Estimates every column of the system.
    fn decode(&mut self, system: &LinearSystem<'_>) -> Result<Vec<f64>, DecodeError>;
}

/// Error of decoding. Inputs come from the control plane itself, so this is a bug, not a user's
/// mistake.
///
/// ```
/// use ucl_control_plane::decoder::DecodeError;
/// let error = DecodeError::from(ucl_equations::Error::NeedsOnes { solver: "EM" });
/// assert!(error.to_string().starts_with("internal: "));
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DecodeError {
    /// A solver failed.
    #[error("internal: {0}")]
    Equations(#[from] ucl_equations::Error),
    /// The network failed.
    #[error("internal: {0}")]
    Learned(#[from] ucl_learned::ProblemError),
}
