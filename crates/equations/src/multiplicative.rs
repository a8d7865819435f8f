//! The engine of [`em`](crate::em).
//!
//! It multiplies each `x_k` by the mean, over the key's counters, of the ratios `y / (A x)`.
//! What makes one iteration cheap:
//!
//! - **Only what is alive.** A key with an empty counter is 0 for certain, so it is dropped before
//!   the first iteration; counters without mass then have no key left, and the rest is renumbered
//!   densely. An iteration for an epoch of a thousand items costs what its live keys cost, however
//!   large the sketch.
//! - **One pass over the keys.** A key reads the ratios at its counters, is multiplied, and adds
//!   its new value to those counters' sums for the next iteration, while its indices are at hand. A
//!   second, vectorised pass over the counters turns sums into ratios.
//! - **Half the bytes.** Where the counters are small enough for single precision to be harmless
//!   ([`Precision::Auto`]), ratios and sums are `f32`, and stay in cache.
//!
//! Numbers are scaled by powers of two so that the largest counter and the largest start lie in
//! `[1, 2)`. An estimate below `1e-20` of that is set to zero: it means nothing any more, and
//! denormal numbers are slow.
//!
//! Many keys are split into chunks with sums of their own, added in order. Their number depends on
//! the system alone, so the result does not depend on the threads.

use crate::columns::{ColumnId, Columns};
use crate::error::{Error, check_len, check_non_negative, check_option};
use crate::info::{Info, Stop};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Live keys per chunk, at least; a chunk must also have far more entries than sums to clear and
/// add. A system below two chunks stays in the calling thread.
const COLUMNS_PER_CHUNK: usize = 1 << 15;
/// More chunks cost more sums than they save.
const MAX_CHUNKS: usize = 8;
/// Counters per task of the pass over the counters.
const COUNTERS_PER_TASK: usize = 1 << 14;
/// Estimates below this share of the largest number are zero.
const NOTHING: f64 = 1e-20;
/// Up to here [`Precision::Auto`] trusts 24 bits of mantissa. Largest difference from double
/// precision over Zipf systems of 15,000 to 200,000 keys, 100 and 500 iterations: 0.002 counts with
/// counters up to 20,000, 0.02 up to 200,000, 0.16 up to 2,000,000 and 2.8 up to 20,000,000.
const SINGLE_LIMIT: f64 = (1u32 << 20) as f64;

/// Number format of the iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Precision {
    /// Single precision if the largest counter is below 2^20, where rounding stays well below half
    /// a count; otherwise double precision.
    #[default]
    Auto,
    /// 32 bits, with relative errors around 1e-6.
    Single,
    /// 64 bits.
    Double,
}

/// Stopping rules and number format of a multiplicative solver.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MultiplicativeOptions {
    /// Largest number of iterations. With 0 the result is the start, with zeros where a count must
    /// be zero.
    pub iterations: usize,
    /// Tolerance: the solver stops when `Σ|change of x| <= tolerance · Σ x`. `None` runs all
    /// iterations and is a little faster.
    pub tolerance: Option<f64>,
    /// Number format of the iterations.
    pub precision: Precision,
}

impl Default for MultiplicativeOptions {
    fn default() -> Self {
        Self { iterations: 100, tolerance: None, precision: Precision::Auto }
    }
}

/// Buffers that a solver reuses between calls. They hold no result and fit any system.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// A counter's dense number, or [`EMPTY`].
    number: Vec<u32>,
    /// Dense counter numbers of the live columns, column after column.
    indices: Vec<u32>,
    /// Positions (among the candidates) of the live columns.
    live: Vec<u32>,
    /// Counters as peeling has left them.
    pub(crate) remaining: Vec<f64>,
    single: Buffers<f32>,
    double: Buffers<f64>,
}

const EMPTY: u32 = u32::MAX;

#[derive(Clone, Debug, Default)]
struct Buffers<F> {
    /// The counters with mass, scaled.
    y: Vec<F>,
    ratios: Vec<F>,
    /// `A x`, one after the other for each chunk of columns.
    sums: Vec<F>,
    x: Vec<F>,
}

/// A floating-point format.
pub(crate) trait Real:
    Copy
    + Default
    + PartialOrd
    + Send
    + Sync
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::Mul<Output = Self>
    + std::ops::Div<Output = Self>
    + std::ops::AddAssign
{
    fn from_f64(value: f64) -> Self;
    fn to_f64(self) -> f64;
}

impl Real for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// Problem to solve: some columns (all, or the candidates), `y`, and where to start.
pub(crate) struct Problem<'a> {
    pub solver: &'static str,
    pub columns: &'a Columns,
    pub candidates: Option<&'a [ColumnId]>,
    pub y: &'a [f64],
    pub start: Option<&'a [f64]>,
}

impl Problem<'_> {
    fn len(&self) -> usize {
        self.candidates.map_or(self.columns.len(), <[_]>::len)
    }

    fn check(&self, options: &MultiplicativeOptions, out: &[f64]) -> Result<(), Error> {
        if !self.columns.is_ones() {
            return Err(Error::NeedsOnes { solver: self.solver });
        }
        check_len("y", self.columns.counters(), self.y.len())?;
        check_len("out", self.len(), out.len())?;
        check_non_negative("y", self.y)?;
        if let Some(start) = self.start {
            check_len("start", self.len(), start.len())?;
            check_non_negative("start", start)?;
        }
        let columns = self.columns.len();
        if let Some(candidates) = self.candidates
            && let Some(at) = candidates.iter().position(|id| id.0 as usize >= columns)
        {
            return Err(Error::UnknownColumn { at, id: candidates[at].0, len: columns });
        }
        options.tolerance.map_or(Ok(()), |tolerance| check_option("tolerance", tolerance))
    }

    /// Numbers the counters with mass, and lists the columns that touch no other.
    fn keep_live(&self, work: &mut Workspace) -> usize {
        work.number.clear();
        let mut counters = 0;
        work.number.extend(self.y.iter().map(|&y| {
            let number = if y > 0.0 { counters } else { EMPTY };
            counters += u32::from(y > 0.0);
            number
        }));
        work.indices.clear();
        work.live.clear();
        let degree = self.columns.degree();
        let mut offer = |position: usize, indices: &[u32]| {
            // Written first and taken back if a counter turns out empty: most columns stay.
            let before = work.indices.len();
            work.indices.extend(indices.iter().map(|&i| work.number[i as usize]));
            if work.indices[before..].contains(&EMPTY) {
                work.indices.truncate(before);
            } else {
                work.live.push(position as u32);
            }
        };
        match self.candidates {
            None => self.columns.all_indices().chunks_exact(degree).enumerate().for_each(|(at, i)| offer(at, i)),
            Some(ids) => ids.iter().enumerate().for_each(|(at, &id)| offer(at, self.columns.indices(id))),
        }
        counters as usize
    }
}

/// Solves, into `out`: one value per column, or per candidate.
pub(crate) fn solve(
    problem: &Problem<'_>,
    options: &MultiplicativeOptions,
    work: &mut Workspace,
    out: &mut [f64],
) -> Result<Info, Error> {
    problem.check(options, out)?;
    let counters = problem.keep_live(work);
    out.fill(0.0);
    let mass: f64 = problem.y.iter().sum();
    if work.live.is_empty() {
        let residual = if mass > 0.0 { 1.0 } else { 0.0 };
        return Ok(Info { iterations: 0, residual, stop: Stop::Trivial });
    }
    let largest = problem.y.iter().fold(0.0, |a: f64, &b| a.max(b));
    let single = match options.precision {
        Precision::Auto => largest < SINGLE_LIMIT,
        Precision::Single => true,
        Precision::Double => false,
    };
    let system = LiveSystem {
        degree: problem.columns.degree(),
        counters,
        indices: &work.indices,
        live: &work.live,
        scale: power_of_two(largest),
        chunks: (work.live.len() / COLUMNS_PER_CHUNK).min(work.indices.len() / (4 * counters)).clamp(1, MAX_CHUNKS),
    };
    Ok(if single {
        system.run::<f32>(problem, options, &mut work.single, out)
    } else {
        system.run::<f64>(problem, options, &mut work.double, out)
    })
}

/// The largest power of two up to `value`: dividing by it loses nothing.
fn power_of_two(value: f64) -> f64 {
    const EXPONENT: u64 = 0x7ff << 52;
    f64::from_bits(value.max(f64::MIN_POSITIVE).to_bits() & EXPONENT)
}

/// The columns of a problem that can have mass.
struct LiveSystem<'a> {
    degree: usize,
    counters: usize,
    indices: &'a [u32],
    live: &'a [u32],
    scale: f64,
    chunks: usize,
}

impl LiveSystem<'_> {
    fn run<F: Real>(
        &self,
        problem: &Problem<'_>,
        options: &MultiplicativeOptions,
        buffers: &mut Buffers<F>,
        out: &mut [f64],
    ) -> Info {
        self.fill(problem, buffers);
        let mut iterations = 0;
        let mut stop = Stop::Limit;
        self.add_up(buffers);
        while iterations < options.iterations {
            self.turn_into_ratios(buffers);
            let (change, total) = self.pass(buffers, options.tolerance.is_some());
            iterations += 1;
            if options.tolerance.is_some_and(|tolerance| change <= tolerance * total) {
                stop = Stop::Settled;
                break;
            }
        }
        let scale = if iterations == 0 { self.start_scale(problem) } else { self.scale };
        for (&position, x) in self.live.iter().zip(&buffers.x) {
            out[position as usize] = x.to_f64() * scale;
        }
        Info { iterations, residual: self.residual(buffers, scale), stop }
    }

    /// Scaled counters, and the start.
    fn fill<F: Real>(&self, problem: &Problem<'_>, buffers: &mut Buffers<F>) {
        buffers.y.clear();
        buffers.y.extend(problem.y.iter().filter(|&&y| y > 0.0).map(|&y| F::from_f64(y / self.scale)));
        buffers.ratios.clear();
        buffers.ratios.resize(self.counters, F::default());
        buffers.sums.clear();
        buffers.sums.resize(self.counters * self.chunks, F::default());
        buffers.x.clear();
        match problem.start {
            None => buffers.x.resize(self.live.len(), F::from_f64(1.0)),
            Some(start) => {
                let scale = self.start_scale(problem);
                let scaled = |&position: &u32| {
                    let x = start[position as usize] / scale;
                    F::from_f64(if x < NOTHING { 0.0 } else { x })
                };
                buffers.x.extend(self.live.iter().map(scaled));
            }
        }
    }

    /// Returns the divisor of the start: it has a scale of its own, for the first iteration forgets
    /// any factor that all `x` share.
    fn start_scale(&self, problem: &Problem<'_>) -> f64 {
        problem.start.map_or(1.0, |start| {
            power_of_two(self.live.iter().fold(0.0, |largest: f64, &at| largest.max(start[at as usize])))
        })
    }

    /// Columns per chunk.
    fn chunk_len(&self) -> usize {
        self.live.len().div_ceil(self.chunks)
    }

    /// `sums = A x` for the start.
    fn add_up<F: Real>(&self, buffers: &mut Buffers<F>) {
        let len = self.chunk_len();
        let sums = buffers.sums.chunks_exact_mut(self.counters);
        for ((indices, x), sums) in self.indices.chunks(len * self.degree).zip(buffers.x.chunks(len)).zip(sums) {
            for (indices, &x) in indices.chunks_exact(self.degree).zip(x) {
                for &i in indices {
                    sums[i as usize] += x;
                }
            }
        }
    }

    /// Turns the chunks' sums into ratios, and clears them for the next pass.
    fn turn_into_ratios<F: Real>(&self, buffers: &mut Buffers<F>) {
        let Buffers { y, ratios, sums, .. } = buffers;
        if self.chunks == 1 {
            return to_ratios(y, ratios, &mut [&mut sums[..]], self.degree);
        }
        let mut rest: Vec<&mut [F]> = sums.chunks_exact_mut(self.counters).collect();
        let mut tasks = Vec::with_capacity(self.counters.div_ceil(COUNTERS_PER_TASK));
        for (y, ratios) in y.chunks(COUNTERS_PER_TASK).zip(ratios.chunks_mut(COUNTERS_PER_TASK)) {
            let mine: Vec<&mut [F]> =
                rest.iter_mut().map(|sums| sums.split_off_mut(..y.len()).expect("as long as y")).collect();
            tasks.push((y, ratios, mine));
        }
        tasks.into_par_iter().for_each(|(y, ratios, mut sums)| to_ratios(y, ratios, &mut sums, self.degree));
    }

    /// Multiplies every `x`, and adds it to the sums of its counters. Returns `Σ|change|` and `Σ x`
    /// if asked.
    fn pass<F: Real>(&self, buffers: &mut Buffers<F>, track: bool) -> (f64, f64) {
        match (self.degree, track) {
            (3, false) => self.pass_in_chunks(buffers, &pass_over::<F, 3, false>),
            (4, false) => self.pass_in_chunks(buffers, &pass_over::<F, 4, false>),
            (4, true) => self.pass_in_chunks(buffers, &pass_over::<F, 4, true>),
            (degree, _) => self.pass_in_chunks(buffers, &|i, x, r, s| pass_over_any(degree, i, x, r, s)),
        }
    }

    fn pass_in_chunks<F: Real>(&self, buffers: &mut Buffers<F>, pass: &Pass<'_, F>) -> (f64, f64) {
        let Buffers { ratios, sums, x, .. } = buffers;
        if self.chunks == 1 {
            return pass(self.indices, x, ratios, sums);
        }
        let len = self.chunk_len();
        let changes: Vec<(f64, f64)> = self
            .indices
            .par_chunks(len * self.degree)
            .zip(x.par_chunks_mut(len))
            .zip(sums.par_chunks_exact_mut(self.counters))
            .map(|((indices, x), sums)| pass(indices, x, ratios, sums))
            .collect();
        changes.iter().fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d))
    }

    /// `‖y - A x‖₁ / ‖y‖₁` from the sums that the last pass left, which are in units of `scale`.
    fn residual<F: Real>(&self, buffers: &Buffers<F>, scale: f64) -> f64 {
        let mut off = 0.0;
        let mut mass = 0.0;
        for (counter, y) in buffers.y.iter().enumerate() {
            let y = y.to_f64() * self.scale;
            let sums = buffers.sums[counter..].iter().step_by(self.counters);
            off += (y - scale * sums.map(|s| s.to_f64()).sum::<f64>()).abs();
            mass += y;
        }
        off / mass
    }
}

/// One chunk's pass: indices, `x`, ratios and sums. Dynamic: called once a chunk, and one copy of
/// the parallel loop is enough.
type Pass<'a, F> = dyn Fn(&[u32], &mut [F], &[F], &mut [F]) -> (f64, f64) + Sync + 'a;

fn to_ratios<F: Real>(y: &[F], ratios: &mut [F], sums: &mut [&mut [F]], degree: usize) {
    let zero = F::default();
    let (first, others) = sums.split_first_mut().expect("at least one chunk");
    for other in others {
        for (a, b) in first.iter_mut().zip(other.iter_mut()) {
            *a += *b;
            *b = zero;
        }
    }
    for ((ratio, &y), sum) in ratios.iter_mut().zip(y).zip(first.iter_mut()) {
        // No key with a value left here: nobody's ratio, but 0 · ∞ would be NaN.
        *ratio = if *sum > zero { y / *sum } else { zero };
        *sum = zero;
    }
    // Each counter's share of the mean, once for all keys that have it.
    let share = F::from_f64(1.0 / degree as f64);
    ratios.iter_mut().for_each(|ratio| *ratio = *ratio * share);
}

fn pass_over<F: Real, const D: usize, const TRACK: bool>(
    indices: &[u32],
    x: &mut [F],
    ratios: &[F],
    sums: &mut [F],
) -> (f64, f64) {
    let (indices, _) = indices.as_chunks::<D>();
    let mut change = 0.0;
    let mut total = 0.0;
    let nothing = F::from_f64(NOTHING);
    for (indices, x) in indices.iter().zip(x) {
        let shares = indices.map(|i| ratios[i as usize]);
        let mut mean = shares[0];
        for &share in &shares[1..] {
            mean += share;
        }
        let next = *x * mean;
        let next = if next < nothing { F::default() } else { next };
        if TRACK {
            change += (next - *x).to_f64().abs();
            total += next.to_f64();
        }
        *x = next;
        for i in indices {
            sums[*i as usize] += next;
        }
    }
    (change, total)
}

/// The same for any degree.
fn pass_over_any<F: Real>(degree: usize, indices: &[u32], x: &mut [F], ratios: &[F], sums: &mut [F]) -> (f64, f64) {
    let mut change = 0.0;
    let mut total = 0.0;
    for (indices, x) in indices.chunks_exact(degree).zip(x) {
        let mean = indices.iter().map(|&i| ratios[i as usize]).reduce(|mean, share| mean + share).unwrap_or_default();
        let next = *x * mean;
        let next = if next.to_f64() < NOTHING { F::default() } else { next };
        change += (next - *x).to_f64().abs();
        total += next.to_f64();
        *x = next;
        for &i in indices {
            sums[i as usize] += next;
        }
    }
    (change, total)
}
