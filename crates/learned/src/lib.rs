//! The learned solver of UCL-sketch: network, equivariant loss, trainer, checkpoints.
//!
//! # The question
//!
//! The counters of a sketch are `y = A x`, where `x` holds the frequencies of all known keys and
//! `A` has one column per key. There are more keys than counters, so infinitely many `x` fit.
//! Classical solvers choose among them by a fixed rule. This one learns the rule from the snapshots
//! of the stream, without ever seeing a true frequency (paper, section "Training Strategy").
//!
//! # The network
//!
//! `D(y, i)` gives the frequencies of bucket `i`, the keys `i·L .. (i+1)·L` (appendix "Model
//! Details"):
//!
//! ```text
//! counters / scale, d rows of w ─ Linear(w,h) ReLU Linear(h,h) ReLU, each row alike
//!                               └ d·h values ─ Linear(·,64) ReLU Linear(64,h) ReLU ─ instance norm ─ feature
//! i ─ sinusoids(h) SiLU Linear(h,64) SiLU Linear(64,2h) ─ scale_i, shift_i
//! feature · (1 + scale_i) + shift_i ─ Linear(h,64) Linear(64,L) ─ sigmoid · scale ─ frequencies
//! ```
//! All buckets share all parameters, so a new key costs none: it extends the last bucket or opens a
//! new one. The paper's network for a 4×1024 sketch has 255,296 parameters, one megabyte. [`scale`]
//! tells how snapshots are normalised.
//!
//! # The loss
//!
//! Equation 2, with `z = T_p D(y)` (one more interval played forward on the estimate) held fixed:
//!
//! ```text
//! mean (A D(y) - y)²  +  lambda · mean |D(y)|  +  mean (D(A z) - z)²
//!  measurement fits        few heavy keys          equivariance: learns beyond the range of Aᵀ (Theorem 3)
//! ```
//!
//! # Use
//!
//! [`Solver`] holds weights, optimiser and random state; [`Solver::train`] takes a [`Problem`]
//! (columns, hot flags, window of snapshots) and a [`TrainBudget`]; [`Solver::encode`] once per
//! snapshot, then [`Solver::decode`] for all keys or [`Solver::decode_bucket`] for one query;
//! [`Solver::to_safetensors`] for checkpoints. See [`Solver`] for an example. The paper's ablations
//! are settings of [`Config`]: `shared_buckets: false` (SA), `equivariant: false` (EQ),
//! `lambda: 0.0` (SR).
//!
//! # Features
//!
//! `network` (default) builds the network, with `gemm` and `safetensors`. Without it only the
//! settings are here, and a [`Solver`] cannot be created.
//!
//! # When it fails
//!
//! * Before training has seen the present mixture of keys: a fresh network answers about half the
//!   scale for every key.
//! * Where training collapses: the network gives every key nearly the same, or nothing, while the
//!   loss looks fine. It is found by the [`Outputs`], reported in the [`TrainReport`], and trained
//!   again from other weights.
//! * Signed sketches: a frequency may exceed the scale and is then cut to it.
//! * The equivariant term is a mean over all keys of very small numbers and ends far below the
//!   measurement term, so its pull is weak: on Retail (64KB, one seed) AAE is 20.6 with it and 20.5
//!   without, 20.7 without sparsity. Unshared buckets fit the counters forty times closer for AAE
//!   20.6, ARE 3.03 instead of 3.23 and WMRD 0.17 instead of 0.53. The paper reports larger
//!   differences between the former and the opposite for the latter.
//! * Where counters outnumber keys, or many epochs can be decoded one by one, `ucl-equations` does
//!   better, and exactly.
//!
//! # Differences from the paper and its public code
//!
//! * `A z` is normalised like any measurement, and `z` with it. Fed as it is, the accuracy is about
//!   the same (means of three seeds, 64KB): Retail AAE 20.4, ARE 3.14, WMRD 0.52 against 20.5,
//!   3.17, 0.51; Kosarak 4.47, 1.34, 0.29 against 4.43, 1.31, 0.28. We keep what training and use
//!   have in common.
//! * Each snapshot of a batch raises its own random 5% of the cold keys (the public code picks one
//!   key for all of them).
//! * Unshared buckets own an embedding block and a head each: 260 MB for 500,000 keys, "over 250MB"
//!   in the paper.
//!
//! # Determinism
//!
//! A seed fixes weights, order and transformations everywhere. Work is cut up by the problem's size
//! alone and sums are added in order, so the number of threads changes no bit. CPUs with other
//! vector units round matrix products differently.

#[cfg(not(feature = "network"))]
mod absent;
#[cfg(feature = "network")]
mod adam;
mod checkpoint;
mod config;
#[cfg(feature = "network")]
mod division;
#[cfg(feature = "network")]
mod kernels;
#[cfg(feature = "network")]
mod loss;
#[cfg(feature = "network")]
mod matmul;
#[cfg(feature = "network")]
mod network;
mod normalise;
mod outputs;
#[cfg(feature = "network")]
mod prepared;
mod problem;
#[cfg(feature = "network")]
mod rng;
#[cfg(feature = "network")]
mod solver;
#[cfg(all(test, feature = "network"))]
mod tests;
#[cfg(feature = "network")]
mod trainer;
mod training;
#[cfg(feature = "network")]
mod transform;

#[cfg(not(feature = "network"))]
pub use absent::{Encoded, Solver};
pub use checkpoint::{CheckpointError, Contents};
pub use config::{Config, ConfigError, CounterGrid, MAX_PARAMETERS, MAX_SIZE};
pub use normalise::scale;
pub use outputs::Outputs;
pub use problem::{Problem, ProblemError, Snapshot};
#[cfg(feature = "network")]
pub use solver::{Encoded, Solver};
pub use training::{Cancel, EpochReport, Keep, Losses, Stop, TrainBudget, TrainReport};
