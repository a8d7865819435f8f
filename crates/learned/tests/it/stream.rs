//! A generated Zipf stream through a Count-Min, with snapshots.

use ucl_equations::Columns;
use ucl_learned::{CounterGrid, Problem, Snapshot};
use ucl_streams::SplitMix64;

/// A stream cut into snapshots.
pub struct Stream {
    pub columns: Columns,
    pub hot: Vec<bool>,
    pub counts: Vec<f64>,
    pub snapshots: Vec<Vec<f64>>,
    pub interval: f64,
}

impl Stream {
    /// `snapshots` intervals of 500 items, keys Zipf(1) distributed over `keys`, every key seen
    /// once at the start.
    pub fn zipf(shape: CounterGrid, keys: usize, snapshots: usize, seed: u64) -> Self {
        let mut random = SplitMix64::new(seed);
        let mut columns = Columns::ones(shape.counters(), shape.rows);
        for _ in 0..keys {
            let column: Vec<u32> =
                (0..shape.rows).map(|r| (r * shape.width) as u32 + random.below(shape.width as u64) as u32).collect();
            columns.push(&column);
        }
        let mut rank: Vec<usize> = (0..keys).collect();
        for last in (1..keys).rev() {
            rank.swap(last, random.below(last as u64 + 1) as usize);
        }
        let mut cumulative = Vec::new();
        let mut total = 0.0;
        for r in &rank {
            total += 1.0 / (r + 1) as f64;
            cumulative.push(total);
        }
        let interval = 500.0;
        let mut stream = Self {
            columns,
            hot: rank.iter().map(|&r| r < keys / 8).collect(),
            counts: vec![0.0; keys],
            snapshots: Vec::new(),
            interval,
        };
        let mut counters = vec![0.0; shape.counters()];
        for key in 0..keys {
            stream.add(key, &mut counters);
        }
        for _ in 0..snapshots {
            for _ in 0..interval as usize {
                let u = random.unit() * total;
                stream.add(cumulative.partition_point(|&c| c <= u).min(keys - 1), &mut counters);
            }
            stream.snapshots.push(counters.clone());
        }
        stream
    }

    fn add(&mut self, key: usize, counters: &mut [f64]) {
        self.counts[key] += 1.0;
        for &c in self.columns.indices(ucl_equations::ColumnId(key as u32)) {
            counters[c as usize] += 1.0;
        }
    }

    pub fn window(&self) -> Vec<Snapshot<'_>> {
        let snapshot = |counters| Snapshot { counters, interval_weight: self.interval };
        self.snapshots.iter().map(|c| snapshot(c.as_slice())).collect()
    }

    pub fn problem<'a>(&'a self, window: &'a [Snapshot<'a>]) -> Problem<'a> {
        Problem { columns: &self.columns, hot: &self.hot, window, smallest_weight: 1.0 }
    }
}
