//! The paper's parameters for Retail (its tables `tab:baseline_params` and `sketch_parameters`), by
//! memory from 16KB to 128KB in steps of 16KB.
//!
//! The number of hash functions is 4 throughout. Some of these shapes take less than their budget,
//! as printed: the learned sketches take 12KB of 16KB, say. Some readings are ours:
//!
//! - **Elastic Sketch.** Buckets of many entries with one vote against all of them, and a light
//!   part of one row of 32-bit counters of the printed width: so the printed figures come out
//!   (below). 4 rows would fit the memory as well, and err far less.
//! - **UCL-sketch.** The Bloom filter gets what is left, up to 80,000 bits.
//! - **UnivMon.** Two levels of the printed width take more than the budget with 4 rows of 32-bit
//!   counters in each. With 4 rows in all, 2 a level, they fit.
//!
//! # How near the paper's figures are
//!
//! Entropy error on Retail, the paper's table `entropy` / ours
//! (`ucl eval retail.dat --format fimi --shape paper --memory
//! 16KB,32KB,64KB,128KB --method cm,cs,lcm,lcs,elastic`, seed 0):
//!
//! | | 16KB | 32KB | 64KB | 128KB |
//! |---|---|---|---|---|
//! | `cm` | 3166 / 3226 | 1066 / 1075 | 291 / 291 | 59 / 60 |
//! | `lcm` | 5527 / 5594 | 1265 / 1256 | 211 / 205 | 14 / 13 |
//! | `elastic` | 7601 / 7352 | 2622 / 2669 | 743 / 631 | 130 / 69 |
//! | `cs` | 3468 / 1516 | 1569 / 890 | 691 / 493 | 306 / 250 |
//! | `lcs` | 4130 / 1228 | 1097 / 516 | 255 / 245 | 33 / 94 |
//!
//! The two with signs differ the most. The paper's figures may be those of a median of the rows'
//! *absolute* values, which loses the sign and so is always above 0; ours is the published
//! estimator, for which half of the keys that are not there come out below 0, and count as 0.

use ucl_data_plane::{KeyFormat, Shape};

use crate::error::Error;
use crate::plan::RivalPlan;

/// Counters in a row of Count-Min, Count Sketch and NitroSketch.
pub const WIDTH: [u32; 8] = [1024, 2048, 3072, 4096, 5120, 6144, 7168, 8192];
/// Unique buckets of learned sketches.
pub const LEARNED_BUCKETS: [u32; 8] = [512, 1536, 2048, 3072, 3584, 4608, 5632, 6144];
/// Counters in a row of learned sketches and of the light part of Elastic Sketch.
pub const NARROW_WIDTH: [u32; 8] = [512, 1024, 2048, 2048, 3096, 3096, 4096, 4096];
/// Buckets, and entries in a bucket, of Elastic Sketch.
pub const ELASTIC: [(u32, u32); 8] = [(50, 20), (50, 38), (50, 30), (75, 50), (70, 50), (90, 64), (92, 65), (100, 75)];
/// Counters in a row of UnivMon.
pub const UNIVMON_WIDTH: [u32; 8] = [1024, 1248, 1536, 2972, 3560, 4096, 4580, 5120];
/// Counters in a row of PR-sketch.
pub const PR_WIDTH: [u32; 8] = [900, 1800, 2700, 3600, 4500, 5400, 6300, 7200];
/// Total cells of FlowRadar.
pub const FLOW_RADAR_CELLS: [u32; 8] = [810, 1620, 2430, 3240, 4060, 4870, 5680, 6490];
/// Slots of the heavy part, rows, and counters in a row of UCL-sketch and SeqSketch.
pub const UCL: [(u32, u16, u32); 8] = [
    (500, 4, 512),
    (1500, 4, 512),
    (2000, 4, 1024),
    (3000, 4, 1024),
    (3500, 6, 1024),
    (4500, 6, 1024),
    (5500, 6, 1024),
    (6000, 8, 1024),
];
/// Largest number of bits in the Bloom filter of UCL-sketch and SeqSketch, and bits set per key.
pub const UCL_BLOOM: (u32, u8) = (80_000, 8);

/// Returns the paper's shape of UCL-sketch for this budget.
///
/// ```
/// use ucl_data_plane::{KeyFormat, Shape};
/// assert_eq!(ucl_zoo::paper::ucl_shape(64 << 10, KeyFormat::Fixed(4))?, Shape::PAPER_64KB);
/// # Ok::<(), ucl_zoo::Error>(())
/// ```
pub fn ucl_shape(budget: usize, keys: KeyFormat) -> Result<Shape, Error> {
    let plan = RivalPlan { paper_shape: true, ..RivalPlan::new(budget, keys, 0) };
    let column = plan.paper_column()?.unwrap_or(0); // never absent: it was asked for
    let (slots, rows, width) = UCL[column];
    let (most, bloom_hashes) = UCL_BLOOM;
    let rest = Shape { slots, rows, width, bloom_bits: 0, bloom_hashes, ..Shape::PAPER_64KB };
    let room = budget.saturating_sub(rest.memory(keys).total()) / 4 * 32;
    Ok(Shape { bloom_bits: most.min(room as u32), ..rest })
}
