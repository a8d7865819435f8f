//! The network `D(y, i)`: counters and a bucket's number to the normalised frequencies of the
//! bucket's keys.
//!
//! [`encoder`] runs once per snapshot, [`embedding`] once per bucket, and only the small [`head`]
//! for every pair.

pub(crate) mod embedding;
pub(crate) mod encoder;
pub(crate) mod head;
pub(crate) mod norm;
pub(crate) mod parameters;
