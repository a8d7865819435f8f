//! Catalogue of all systems by name, with the guarantees of each.

use ucl_data_plane::{ConfigError, KeyFormat, reserve};

use crate::alike::AlikeCountSketch;
use crate::augmented::AugmentedSketch;
use crate::count_min::CountMin;
use crate::count_sketch::CountSketch;
use crate::elastic::ElasticSketch;
use crate::error::Error;
use crate::flow_radar::FlowRadar;
use crate::hist;
use crate::keyed::Keyed;
use crate::learned::{AlikeLearnedCountSketch, LearnedCountMin, LearnedCountSketch};
use crate::lss::LocalitySensitiveSketch;
use crate::nitro::{EPSILON, NitroSketch, RARELY, SamplingMode};
use crate::plan::RivalPlan;
use crate::pr::PrSketch;
use crate::rival::Rival;
use crate::seq::{Layout, SeqSketch};
use crate::univmon::UnivMon;

/// Entry of the catalogue: a system that can be built.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Name on the command line and in results.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Publication that describes the system.
    pub reference: &'static str,
    /// Promises of the system, which `tests/guarantees.rs` checks.
    pub guarantees: Guarantees,
    /// Kind of oracle that the system uses.
    pub oracle: Oracle,
    /// True if the system is a variant of another entry, for a single experiment.
    pub variant: bool,
    build: Build,
}

/// Knowledge of the stream that a system needs ([`RivalPlan::knowledge`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// No knowledge.
    None,
    /// The most frequent keys: ground truth.
    Ideal,
    /// Exact counts of an earlier part of the stream.
    Trained,
}

/// Promises of a system about its answers after [`Rival::finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// No answer is below the true count.
    pub never_underestimates: bool,
    /// The mean of the unrounded answers over all seeds is the true count.
    pub unbiased: bool,
    /// The state adds up to the weight of the stream.
    pub keeps_total_weight: bool,
    /// An item of weight `v` has the effect of `v` items of weight 1.
    pub weights_repeat: bool,
    /// Two merged systems equal one system that has seen both streams.
    pub mergeable: bool,
    /// Answers have bounds, which always hold.
    pub bounded: bool,
    /// Answers are exact if the memory has room for all keys.
    pub exact_if_ample: bool,
}

const EXACT_IF_AMPLE: Guarantees = Guarantees {
    never_underestimates: false,
    unbiased: false,
    keeps_total_weight: false,
    weights_repeat: false,
    mergeable: false,
    bounded: false,
    exact_if_ample: true,
};

const COUNT_MIN: Guarantees = Guarantees {
    never_underestimates: true,
    keeps_total_weight: true,
    weights_repeat: true,
    mergeable: true,
    bounded: true,
    ..EXACT_IF_AMPLE
};
const COUNT_SKETCH: Guarantees =
    Guarantees { unbiased: true, weights_repeat: true, mergeable: true, bounded: true, ..EXACT_IF_AMPLE };

type Build = fn(&RivalPlan<'_>) -> Result<Box<dyn Rival>, Error>;

impl Entry {
    /// Builds the system.
    ///
    /// ```
    /// use ucl_data_plane::KeyFormat;
    /// use ucl_zoo::{RivalPlan, find};
    /// let error = find("cs").unwrap().build(&RivalPlan::new(15, KeyFormat::Fixed(4), 1)).err().unwrap();
    /// assert_eq!(error.to_string(), "a budget of 15 bytes is too small: at least 16 are needed");
    /// ```
    pub fn build(&self, plan: &RivalPlan<'_>) -> Result<Box<dyn Rival>, Error> {
        // Every system fills its budget: where the system has not so much memory, this is an error
        // and no abort.
        reserve(&mut Vec::<u8>::new(), plan.budget)?;
        (self.build)(plan)
    }

    /// Returns true if the answers use ground truth.
    pub fn uses_ground_truth(&self) -> bool {
        self.oracle == Oracle::Ideal
    }
}

/// Returns the entry with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.name == name)
}

/// A builder: the same expression for each of the four sizes in which keys sit in a slot.
macro_rules! build {
    ($plan:ident, $n:ident => $sketch:expr) => {{
        fn build($plan: &RivalPlan<'_>) -> Result<Box<dyn Rival>, Error> {
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
                KeyFormat::Fixed(16) | KeyFormat::Digest | KeyFormat::Code(_) => of_size!(16),
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
        guarantees: COUNT_MIN,
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => CountMin::<false>::new(plan)),
    },
    Entry {
        name: "cu",
        about: "Count-Min with conservative update: only the smallest counters are raised",
        reference: "Estan and Varghese, SIGCOMM 2002",
        guarantees: Guarantees { never_underestimates: true, weights_repeat: true, bounded: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => CountMin::<true>::new(plan)),
    },
    Entry {
        name: "cs",
        about: "Count Sketch: 4 rows of signed 32-bit counters, the median answers",
        reference: "Charikar, Chen and Farach-Colton, ICALP 2002",
        guarantees: COUNT_SKETCH,
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => CountSketch::new(plan)),
    },
    Entry {
        name: "asketch",
        about: "Augmented Sketch: 32 hot keys in a filter that exchanges with a Count-Min",
        reference: "Roy, Khan and Alonso, SIGMOD 2016",
        guarantees: Guarantees {
            never_underestimates: true,
            keeps_total_weight: true,
            bounded: true,
            ..EXACT_IF_AMPLE
        },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => AugmentedSketch::<N>::new(plan)),
    },
    Entry {
        name: "elastic",
        about: "Elastic Sketch: buckets with votes in front of 8-bit counters that saturate",
        reference: "Yang et al., SIGCOMM 2018",
        guarantees: Guarantees { bounded: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => ElasticSketch::<N>::new(plan)),
    },
    Entry {
        name: "univmon",
        about: "UnivMon: a Count Sketch for each of two levels of sampled keys",
        reference: "Liu et al., SIGCOMM 2016",
        guarantees: Guarantees { unbiased: true, weights_repeat: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => UnivMon::<N>::new(plan)),
    },
    Entry {
        name: "nitro",
        about: "NitroSketch: a Count Sketch with sampled updates, always correct",
        reference: "Liu et al., SIGCOMM 2019",
        guarantees: EXACT_IF_AMPLE,
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => NitroSketch::new(plan, SamplingMode::AlwaysCorrect { shift: RARELY, epsilon: EPSILON })),
    },
    Entry {
        name: "lcm",
        about: "learned Count-Min with an ideal oracle that is told the heavy keys: ground truth",
        reference: "Hsu et al., ICLR 2019",
        guarantees: COUNT_MIN,
        oracle: Oracle::Ideal,
        variant: false,
        build: build!(plan, N => LearnedCountMin::<N>::ideal(plan)),
    },
    Entry {
        name: "lcs",
        about: "learned Count Sketch with an ideal oracle that is told the heavy keys: ground truth",
        reference: "Hsu et al., ICLR 2019",
        guarantees: COUNT_SKETCH,
        oracle: Oracle::Ideal,
        variant: false,
        build: build!(plan, N => LearnedCountSketch::<N>::ideal(plan)),
    },
    Entry {
        name: "flowradar",
        about: "FlowRadar: cells that name their keys, peeled; Count-Min for what does not peel",
        reference: "Li et al., NSDI 2016",
        guarantees: Guarantees { keeps_total_weight: true, weights_repeat: true, bounded: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => FlowRadar::<N>::new(plan)),
    },
    Entry {
        name: "pr",
        about: "PR-sketch: a Count-Min whose equations are solved by least squares (LSMR)",
        reference: "Sheng et al., PVLDB 2021",
        guarantees: Guarantees { keeps_total_weight: true, weights_repeat: true, bounded: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => PrSketch::<N>::new(plan)),
    },
    Entry {
        name: "seq",
        about: "SeqSketch: a table of large keys, a fractional sensing matrix, and OMP",
        reference: "Huang et al., NSDI 2021",
        guarantees: Guarantees { bounded: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => SeqSketch::<N>::new(plan, Layout::SEQ)),
    },
    Entry {
        name: "hist",
        about: "HistSketch, its frequency part: a table of hot keys, shared counters, and OMP",
        reference: "He et al., ICDE 2023",
        guarantees: Guarantees { keeps_total_weight: true, bounded: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => SeqSketch::<N>::new(plan, hist::LAYOUT)),
    },
    Entry {
        name: "lss",
        about: "locality-sensitive sketch, in part: keys of like size share a bucket, and its mean answers",
        reference: "Fu et al., INFOCOM 2020",
        guarantees: Guarantees { keeps_total_weight: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: false,
        build: build!(plan, N => LocalitySensitiveSketch::new(plan)),
    },
    Entry {
        name: "nitro-line",
        about: "NitroSketch that updates one counter in 128, for always line rate",
        reference: "Liu et al., SIGCOMM 2019",
        guarantees: Guarantees { exact_if_ample: false, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: true,
        build: build!(plan, N => NitroSketch::new(plan, SamplingMode::AlwaysLineRate { updates: 1 << 20, shift: RARELY })),
    },
    Entry {
        name: "cs-alike",
        about: "Count Sketch with an error: half of the rows sign all keys alike",
        reference: "the public code of the UCL-sketch paper",
        guarantees: Guarantees { weights_repeat: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::None,
        variant: true,
        build: build!(plan, N => AlikeCountSketch::new(plan)),
    },
    Entry {
        name: "lcs-alike",
        about: "learned Count Sketch with the same error: half of the rows sign all keys alike",
        reference: "the public code of the UCL-sketch paper",
        guarantees: Guarantees { weights_repeat: true, ..EXACT_IF_AMPLE },
        oracle: Oracle::Ideal,
        variant: true,
        build: build!(plan, N => AlikeLearnedCountSketch::<N>::ideal(plan)),
    },
    Entry {
        name: "lcm-trained",
        about: "learned Count-Min with an oracle trained on the first tenth of the stream",
        reference: "Hsu et al., ICLR 2019; Jiang et al., ICLR 2020",
        guarantees: Guarantees { mergeable: false, ..COUNT_MIN },
        oracle: Oracle::Trained,
        variant: true,
        build: build!(plan, N => LearnedCountMin::<N>::trained(plan)),
    },
    Entry {
        name: "lcs-trained",
        about: "learned Count Sketch with an oracle trained on the first tenth of the stream",
        reference: "Hsu et al., ICLR 2019; Jiang et al., ICLR 2020",
        guarantees: Guarantees { mergeable: false, ..COUNT_SKETCH },
        oracle: Oracle::Trained,
        variant: true,
        build: build!(plan, N => LearnedCountSketch::<N>::trained(plan)),
    },
    Entry {
        name: "lcm-rnn",
        about: "lcm with a two-layer recurrent network run before each item, for its cost in time",
        reference: "UCL-sketch, section \"Processing Speed\"",
        guarantees: COUNT_MIN,
        oracle: Oracle::Ideal,
        variant: true,
        build: build!(plan, N => LearnedCountMin::<N>::behind_rnn(plan)),
    },
    Entry {
        name: "lcs-rnn",
        about: "lcs with a two-layer recurrent network run before each item, for its cost in time",
        reference: "UCL-sketch, section \"Processing Speed\"",
        guarantees: COUNT_SKETCH,
        oracle: Oracle::Ideal,
        variant: true,
        build: build!(plan, N => LearnedCountSketch::<N>::behind_rnn(plan)),
    },
];
