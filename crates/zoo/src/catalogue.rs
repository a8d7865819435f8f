//! The systems by name, with what each of them promises.

use ucl_data_plane::{ConfigError, KeyFormat};

use crate::count_min::CountMin;
use crate::count_sketch::CountSketch;
use crate::error::Error;
use crate::keyed::Keyed;
use crate::plan::Plan;
use crate::rival::Rival;

/// A system that can be built.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name on the command line and in results.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// What it promises; `tests/guarantees.rs` holds it to this.
    pub guarantees: Guarantees,
    /// What its oracle is made from.
    pub oracle: Oracle,
    /// A variant of another entry, for an experiment of its own.
    pub variant: bool,
    build: Build,
}

/// What a system must be told about the stream ([`Plan::knowledge`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// Nothing.
    None,
    /// The most frequent keys: ground truth.
    Ideal,
    /// Exact counts of an earlier part.
    Trained,
}

/// What a system promises. Answers are those after [`Rival::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// No answer is below the truth.
    pub never_underestimates: bool,
    /// Over the seeds, the unrounded answers are right on average.
    pub unbiased: bool,
    /// The state adds up to the stream's weight.
    pub keeps_total_weight: bool,
    /// An item of weight `v` does what `v` items of weight 1 do.
    pub weights_repeat: bool,
    /// Merged, two are what one would be that had seen both streams.
    pub mergeable: bool,
    /// There are bounds, and they hold.
    pub bounded: bool,
}

const NOTHING: Guarantees = Guarantees {
    never_underestimates: false,
    unbiased: false,
    keeps_total_weight: false,
    weights_repeat: false,
    mergeable: false,
    bounded: false,
};

type Build = fn(&Plan<'_>) -> Result<Box<dyn Rival>, Error>;

impl Entry {
    /// Builds it.
    ///
    /// ```
    /// use ucl_data_plane::KeyFormat;
    /// use ucl_zoo::{Plan, find};
    /// let error = find("cs").unwrap().build(&Plan::new(15, KeyFormat::Fixed(4), 1)).err().unwrap();
    /// assert_eq!(error.to_string(), "a budget of 15 bytes is too small: at least 16 are needed");
    /// ```
    pub fn build(&self, plan: &Plan<'_>) -> Result<Box<dyn Rival>, Error> {
        (self.build)(plan)
    }

    /// Whether the answers rest on ground truth.
    pub fn uses_ground_truth(&self) -> bool {
        self.oracle == Oracle::Ideal
    }
}

/// The entry of this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// A builder: the same expression for each of the four sizes in which keys sit in a slot.
macro_rules! build {
    ($plan:ident, $n:ident => $sketch:expr) => {{
        fn build($plan: &Plan<'_>) -> Result<Box<dyn Rival>, Error> {
            macro_rules! of_size {
                ($size:literal) => {{
                    #[allow(dead_code, reason = "systems that hold no keys need no size")]
                    const $n: usize = $size;
                    Ok(Box::new(Keyed::<$size, _>::new($plan, $sketch?)))
                }};
            }
            match $plan.keys {
                KeyFormat::Fixed(4) => of_size!(4),
                KeyFormat::Fixed(8) => of_size!(8),
                KeyFormat::Fixed(13) => of_size!(13),
                KeyFormat::Fixed(16) | KeyFormat::Digest => of_size!(16),
                KeyFormat::Fixed(bytes) => Err(ConfigError::KeySize { want: 16, got: bytes.into() }.into()),
            }
        }
        build
    }};
}

/// All systems, in the order in which they are listed.
pub const ENTRIES: &[Entry] = &[
    Entry {
        name: "cm",
        about: "Count-Min: 4 rows of 32-bit counters, the smallest one answers",
        reference: "Cormode and Muthukrishnan, J. Algorithms 2005",
        guarantees: Guarantees {
            never_underestimates: true,
            keeps_total_weight: true,
            weights_repeat: true,
            mergeable: true,
            bounded: true,
            ..NOTHING
        },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => CountMin::<false>::new(plan)),
    },
    Entry {
        name: "cu",
        about: "Count-Min with conservative update: only the smallest counters are raised",
        reference: "Estan and Varghese, SIGCOMM 2002",
        guarantees: Guarantees { never_underestimates: true, weights_repeat: true, bounded: true, ..NOTHING },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => CountMin::<true>::new(plan)),
    },
    Entry {
        name: "cs",
        about: "Count Sketch: 4 rows of signed 32-bit counters, the median answers",
        reference: "Charikar, Chen and Farach-Colton, ICALP 2002",
        guarantees: Guarantees { unbiased: true, weights_repeat: true, mergeable: true, bounded: true, ..NOTHING },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => CountSketch::new(plan)),
    },
];
