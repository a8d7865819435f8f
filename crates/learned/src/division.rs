//! Division of the keys into buckets, chunks of buckets and tasks of chunks.
//!
//! A chunk is a few buckets that go through the head in one product. With 96 columns (three buckets
//! of 32 samples) gemm is as fast as with more, and a chunk's outputs, 196 KB, stay in the
//! second-level cache. A task is a run of chunks with private sums. Both depend on the problem
//! alone, never on the threads, so results do not either.
//!
//! Within a chunk the outputs are key-major: key `i` of the chunk's bucket `b` owns the adjacent
//! values `[i · stride + b · lanes ..][.. lanes]`, one per sample. `A x` and its gradient are then
//! additions of whole rows.

use std::ops::Range;

use crate::network::parameters::Layout;
use crate::prepared::PreparedColumns;

/// Columns of a chunk's products.
const CHUNK_COLUMNS: usize = 96;
/// Tasks at most: each holds a copy of the counters and of the head's gradient.
const MAX_TASKS: usize = 8;
/// Additions into a task's copy of the counters, for each counter: fewer, and clearing and adding
/// up the copies would cost as much as filling them.
const WORK_PER_COUNTER: usize = 8;

/// The cutting up of `keys` keys.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    pub(crate) keys: usize,
    pub(crate) bucket_length: usize,
    pub(crate) lanes: usize,
    pub(crate) buckets: usize,
    per_chunk: usize,
    max_tasks: usize,
}

/// One chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Chunk {
    pub(crate) first_bucket: usize,
    pub(crate) buckets: usize,
    /// Keys of its longest bucket: rows of its products.
    pub(crate) rows: usize,
    /// Values per row: one per bucket and sample.
    pub(crate) stride: usize,
    bucket_length: usize,
    keys: usize,
}

impl Chunk {
    /// The keys of the chunk's bucket `b`.
    pub(crate) fn keys_of(&self, b: usize) -> Range<usize> {
        let from = (self.first_bucket + b) * self.bucket_length;
        from..(from + self.bucket_length).min(self.keys)
    }
}

impl Division {
    pub(crate) fn new(layout: &Layout, system: &PreparedColumns<'_>, lanes: usize) -> Self {
        let keys = system.keys;
        let worthwhile = keys * system.degree / (WORK_PER_COUNTER * system.counters);
        let max_tasks = worthwhile.next_power_of_two().clamp(2, MAX_TASKS);
        let bucket_length = layout.bucket.head[1].outputs;
        // Unshared buckets multiply with different weights, so they cannot share a product.
        let per_chunk = if layout.shared { (CHUNK_COLUMNS / lanes).max(1) } else { 1 };
        Self { keys, bucket_length, lanes, buckets: keys.div_ceil(bucket_length), per_chunk, max_tasks }
    }

    pub(crate) fn chunks(&self) -> usize {
        self.buckets.div_ceil(self.per_chunk)
    }

    pub(crate) fn chunk(&self, index: usize) -> Chunk {
        let first_bucket = index * self.per_chunk;
        let buckets = self.per_chunk.min(self.buckets - first_bucket);
        Chunk {
            first_bucket,
            buckets,
            rows: self.bucket_length.min(self.keys - first_bucket * self.bucket_length),
            stride: buckets * self.lanes,
            bucket_length: self.bucket_length,
            keys: self.keys,
        }
    }

    /// Columns of a full chunk.
    pub(crate) fn columns(&self) -> usize {
        self.per_chunk.min(self.buckets.max(1)) * self.lanes
    }

    /// The tasks as runs of chunks, the longer ones first.
    pub(crate) fn tasks(&self) -> Vec<Range<usize>> {
        let chunks = self.chunks();
        let tasks = self.max_tasks.min(chunks);
        let mut end = 0;
        (0..tasks)
            .map(|t| {
                let start = end;
                end += chunks / tasks + usize::from(t < chunks % tasks);
                start..end
            })
            .collect()
    }

    /// The buckets of a run of chunks.
    pub(crate) fn buckets_of(&self, chunks: &Range<usize>) -> Range<usize> {
        chunks.start * self.per_chunk..(chunks.end * self.per_chunk).min(self.buckets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, CounterGrid};
    use proptest::prelude::*;
    use ucl_equations::Columns;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_key_is_in_exactly_one_place(keys in 1usize..5000, length in 1usize..300, lanes in 1usize..33, shared: bool) {
            let config = Config { bucket_length: length, shared_buckets: shared, ..Config::default() };
            let shape = CounterGrid { rows: 1, width: 64 };
            let layout = Layout::new(shape, &config);
            let mut columns = Columns::ones(64, 1);
            (0..keys).for_each(|k| { columns.push(&[k as u32 % 64]); });
            let hot = vec![false; keys];
            let plan = Division::new(&layout, &PreparedColumns::new(shape, &columns, &hot), lanes);
            let mut seen = vec![];
            let mut buckets = 0;
            for task in plan.tasks() {
                prop_assert_eq!(plan.buckets_of(&task).start, buckets);
                for chunk in task.map(|c| plan.chunk(c)) {
                    prop_assert!(chunk.stride <= plan.columns());
                    for b in 0..chunk.buckets {
                        prop_assert!(chunk.keys_of(b).len() <= chunk.rows);
                        seen.extend(chunk.keys_of(b));
                    }
                    buckets += chunk.buckets;
                }
            }
            prop_assert_eq!(seen, (0..keys).collect::<Vec<_>>());
            prop_assert_eq!(buckets, plan.buckets);
        }
    }
}
