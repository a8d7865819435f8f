//! Frequency part of HistSketch: hot keys in a table, cold keys in shared counters decoded by OMP.
//!
//! HistSketch keeps a *histogram* of values per key: hot keys have theirs in a table, cold keys
//! share theirs, and the shared ones are recovered by compressive sensing. A key's frequency is the
//! sum of its histogram, and a stream whose items are keys alone has histograms of one bin. So this
//! is the part of it that the UCL-sketch paper names: a table that is hard to lose (a vote ratio of
//! 8: hot keys should stay hot), shared counters with coefficients of one, and orthogonal matching
//! pursuit over the keys that a Bloom filter let through. The code is [SeqSketch's](crate::seq)
//! with another [`Layout`].
//!
//! # Layout
//! 40% of the budget is the table, 15% the Bloom filter, the rest 4 rows of 32-bit counters.
//! Overflow is an error.
//!
//! # Differences
//! - A documented subset, for frequencies: no bins, and none of the publication's compression of
//!   histograms.
//!
//! Reference: He et al., "HistSketch: a compact data structure for accurate per-key distribution
//! monitoring", ICDE 2023.

use crate::seq::Layout;

/// Layout of HistSketch's table and counters.
pub const LAYOUT: Layout = Layout { fractional: false, vote_ratio: 8, heavy_percent: 40, bloom_percent: 15 };
