//! Layout of the weights: the position of each in one flat vector, and its name in a checkpoint.
//!
//! One vector makes Adam one loop and a copy of the best weights one `clone`. The encoder comes
//! first, then one *bucket block* (embedding and head) shared by all buckets, or one per bucket
//! when buckets are unshared.

use std::ops::Range;

use crate::config::{Config, CounterGrid};
use crate::matmul::View;
use crate::rng::Rng;

/// A fully connected layer: `out = W in + b`, `W` stored row after row, one row per output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Where the weight begins; the bias follows it.
    at: usize,
}

impl Dense {
    fn new(at: &mut usize, inputs: usize, outputs: usize) -> Self {
        let layer = Self { inputs, outputs, at: *at };
        *at += layer.len();
        layer
    }

    pub(crate) fn len(&self) -> usize {
        self.outputs * (self.inputs + 1)
    }

    pub(crate) fn weight_range(&self) -> Range<usize> {
        self.at..self.at + self.outputs * self.inputs
    }

    pub(crate) fn bias_range(&self) -> Range<usize> {
        let end = self.weight_range().end;
        end..end + self.outputs
    }

    pub(crate) fn weight<'a>(&self, block: &'a [f32]) -> View<'a> {
        View::new(&block[self.weight_range()], self.outputs, self.inputs)
    }

    pub(crate) fn bias<'a>(&self, block: &'a [f32]) -> &'a [f32] {
        &block[self.bias_range()]
    }

    /// Weight and bias apart, to write gradients into both.
    pub(crate) fn split_mut<'a>(&self, block: &'a mut [f32]) -> (&'a mut [f32], &'a mut [f32]) {
        block[self.at..self.at + self.len()].split_at_mut(self.outputs * self.inputs)
    }

    /// PyTorch's default for `nn.Linear`: weight and bias uniform in `±1/sqrt(inputs)`.
    fn initialise(&self, block: &mut [f32], rng: &mut Rng) {
        let bound = 1.0 / (self.inputs as f64).sqrt();
        block[self.at..self.at + self.len()].fill_with(|| rng.symmetric(bound));
    }
}

/// The layers that turn counters into a feature.
#[derive(Clone, Debug)]
pub(crate) struct EncoderLayers {
    /// Shared by the rows of the sketch: `w -> h -> h`.
    pub(crate) row: [Dense; 2],
    /// Over all rows: `d·h -> neck -> h`.
    pub(crate) mix: [Dense; 2],
    pub(crate) len: usize,
}

/// The layers that a bucket uses; positions are relative to its block.
#[derive(Clone, Debug)]
pub(crate) struct BucketLayers {
    /// Embedding of the bucket's number: `h -> neck -> 2h`, scale and shift.
    pub(crate) embed: [Dense; 2],
    /// Modulated feature to logits: `h -> neck -> L`.
    pub(crate) head: [Dense; 2],
    pub(crate) len: usize,
}

/// The whole network's layout.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) encoder: EncoderLayers,
    pub(crate) bucket: BucketLayers,
    pub(crate) shared: bool,
}

impl Layout {
    pub(crate) fn new(shape: CounterGrid, config: &Config) -> Self {
        let (h, neck) = (config.hidden, config.neck);
        let mut at = 0;
        let row = [Dense::new(&mut at, shape.width, h), Dense::new(&mut at, h, h)];
        let mix = [Dense::new(&mut at, shape.rows * h, neck), Dense::new(&mut at, neck, h)];
        let encoder = EncoderLayers { row, mix, len: at };
        let mut at = 0;
        let embed = [Dense::new(&mut at, h, neck), Dense::new(&mut at, neck, 2 * h)];
        let head = [Dense::new(&mut at, h, neck), Dense::new(&mut at, neck, config.bucket_length)];
        let bucket = BucketLayers { embed, head, len: at };
        Self { encoder, bucket, shared: config.shared_buckets }
    }

    /// Bucket blocks that a network for `buckets` buckets holds.
    pub(crate) fn blocks(&self, buckets: usize) -> usize {
        if self.shared { 1 } else { buckets }
    }

    /// Parameters of a network with `blocks` bucket blocks.
    pub(crate) fn len(&self, blocks: usize) -> usize {
        self.encoder.len + blocks * self.bucket.len
    }

    /// How many bucket blocks a parameter vector holds.
    pub(crate) fn blocks_in(&self, parameters: usize) -> usize {
        (parameters - self.encoder.len) / self.bucket.len
    }

    /// Appends freshly drawn weights until there are `blocks` bucket blocks; what is there stays
    /// untouched.
    pub(crate) fn grow(&self, parameters: &mut Vec<f32>, blocks: usize, rng: &mut Rng) {
        if parameters.is_empty() {
            parameters.resize(self.encoder.len, 0.0);
            for layer in self.encoder.row.iter().chain(&self.encoder.mix) {
                layer.initialise(parameters, rng);
            }
        }
        for _ in self.blocks_in(parameters.len())..blocks {
            let from = parameters.len();
            parameters.resize(from + self.bucket.len, 0.0);
            for layer in self.bucket.embed.iter().chain(&self.bucket.head) {
                layer.initialise(&mut parameters[from..], rng);
            }
        }
    }

    /// The block that bucket `bucket` uses, counted from the first.
    pub(crate) fn block_of(&self, bucket: usize) -> usize {
        if self.shared { 0 } else { bucket }
    }

    /// Every tensor of a network with `blocks` bucket blocks: name, shape, place.
    pub(crate) fn tensors(&self, blocks: usize) -> Vec<(String, Vec<usize>, Range<usize>)> {
        let mut all = Vec::new();
        let mut add = |name: String, layer: &Dense, from: usize| {
            let shift = |r: Range<usize>| r.start + from..r.end + from;
            all.push((format!("{name}.weight"), vec![layer.outputs, layer.inputs], shift(layer.weight_range())));
            all.push((format!("{name}.bias"), vec![layer.outputs], shift(layer.bias_range())));
        };
        for (part, layers) in [("row", &self.encoder.row), ("mix", &self.encoder.mix)] {
            for (i, layer) in layers.iter().enumerate() {
                add(format!("{part}.{i}"), layer, 0);
            }
        }
        for block in 0..blocks {
            let prefix = if self.shared { String::new() } else { format!("bucket.{block}.") };
            for (part, layers) in [("embed", &self.bucket.embed), ("head", &self.bucket.head)] {
                for (i, layer) in layers.iter().enumerate() {
                    add(format!("{prefix}{part}.{i}"), layer, self.len(block));
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_network_has_a_megabyte_of_parameters() {
        let layout = Layout::new(CounterGrid { rows: 4, width: 1024 }, &Config::default());
        assert_eq!(layout.len(layout.blocks(196)), 255_296);
    }

    #[test]
    fn unshared_buckets_cost_what_the_paper_says() {
        // "By setting 500K unique items, the non-scalable network takes up a memory of over 250MB."
        let config = Config { shared_buckets: false, ..Config::default() };
        let layout = Layout::new(CounterGrid { rows: 4, width: 1024 }, &config);
        let megabytes = 4.0 * layout.len(layout.blocks(500_000usize.div_ceil(512))) as f64 / 1e6;
        assert!((250.0..270.0).contains(&megabytes), "{megabytes}");
    }

    #[test]
    fn tensors_tile_the_vector_and_growing_keeps_what_is_there() {
        let config = Config { hidden: 8, neck: 4, bucket_length: 6, shared_buckets: false, ..Config::default() };
        let layout = Layout::new(CounterGrid { rows: 2, width: 16 }, &config);
        let mut end = 0;
        for (name, shape, range) in layout.tensors(3) {
            assert_eq!((range.start, range.len()), (end, shape.iter().product()), "{name}");
            end = range.end;
        }
        assert_eq!(end, layout.len(3));
        let mut small = Vec::new();
        let mut rng = Rng::new(1);
        layout.grow(&mut small, 1, &mut rng);
        let mut large = small.clone();
        layout.grow(&mut large, 3, &mut rng);
        assert_eq!((large.len(), &large[..small.len()]), (layout.len(3), &small[..]));
    }
}
