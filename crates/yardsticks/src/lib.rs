//! Shared parts of the benchmarks: streams of keys, yardsticks to compare with, and interleaved
//! rounds.
//!
//! A speed means little on its own: machines are shared and noisy. So every case runs beside
//! yardsticks, turn by turn, and the table has ratios. There are several yardsticks because a
//! single one can mislead: a yardstick whose hash function the compiler does not inline runs up to
//! four times slower, and everything beside it looks fast.

mod flow_cache;
mod rounds;
mod stream;
mod structures;

pub use flow_cache::FlowCache;
pub use rounds::{Rounds, machine};
pub use stream::{ITEMS, KEYS, Texts, five_tuples, numbers};
pub use structures::{fixed, texts};
