//! Equation 2: the loss of a batch and its gradient.
//!
//! ```text
//! mean (A D(y) - y)²  +  lambda · mean |D(y)|  +  mean (D(A z) - z)²,     z = T_p D(y), no gradient through z
//! ```
//! The first mean is over counters and samples, the others over keys and samples; everything is
//! normalised. `A z` is a measurement like any other, so it passes through the same normalisation
//! as `y`: the network sees `A z / scale(A z)` and its target is `z / scale(A z)`.
//!
//! # How it is computed
//!
//! Three sweeps over the chunks of keys, each a parallel loop over tasks with private sums that are
//! then added in order:
//!
//! 1. `x = D(y)`, stored key-major, and `A x`; with it the residual and the hot keys' volume;
//! 2. `A z` from the stored `x`, then its encoding;
//! 3. per chunk `D(A z)`, its loss against `z` and its gradient, used on the spot and never stored,
//!    then the gradient of the first two terms from the stored `x`.
//!
//! Encoder and embedding follow once for the whole batch.

mod kernels;

use std::ops::Range;

use rayon::prelude::*;

use crate::config::{Config, CounterGrid};
use crate::division::{Chunk, Division};
use crate::kernels::add_assign;
use crate::network::embedding::{Codes, Embedding};
use crate::network::encoder::Encoding;
use crate::network::head::{Head, HeadGradients, Scratch};
use crate::network::parameters::Layout;
use crate::prepared::{PreparedColumns, Sample};
use crate::rng::Rng;
use crate::training::Losses;
use crate::transform::Transform;

/// What does not change between steps.
pub(crate) struct Context<'a> {
    pub(crate) shape: CounterGrid,
    pub(crate) config: &'a Config,
    pub(crate) layout: &'a Layout,
    pub(crate) system: &'a PreparedColumns<'a>,
    /// Of at least as many buckets as the system has.
    pub(crate) codes: &'a Codes,
}

/// Everything a step writes besides the gradient, allocated once per training.
pub(crate) struct Workspace<const LANES: usize> {
    plan: Division,
    tasks: Vec<Task<LANES>>,
    measured: Encoding,
    transformed: Encoding,
    embedding: Embedding,
    /// `D(y)`, chunk after chunk.
    outputs: Vec<f32>,
    /// The head's inner layer for `D(y)`, chunk after chunk.
    necks: Vec<f32>,
    residual: Vec<f32>,
    raised: Vec<u32>,
    by_modulation: Vec<f32>,
}

/// Private sums and buffers of one task.
struct Task<const LANES: usize> {
    chunks: Range<usize>,
    product: Vec<f32>,
    /// Sum of `D(y)` over all keys, and of its clamped values over the hot ones.
    volume: [f64; LANES],
    hot_volume: [f64; LANES],
    equivariant: f64,
    scratch: Scratch,
    neck: Vec<f32>,
    by_logits: Vec<f32>,
    /// Of the shared bucket block; empty when buckets are unshared.
    block: Vec<f32>,
    by_feature: [Vec<f32>; 2],
}

impl<const LANES: usize> Workspace<LANES> {
    pub(crate) fn new(context: &Context<'_>) -> Self {
        let Context { layout, system, .. } = context;
        let plan = Division::new(layout, system, LANES);
        let layers = &layout.bucket;
        let (h, neck) = (layers.head[0].inputs, layers.head[0].outputs);
        let columns = plan.columns();
        let task = |chunks| Task {
            chunks,
            product: vec![0.0; system.counters * LANES],
            volume: [0.0; LANES],
            hot_volume: [0.0; LANES],
            equivariant: 0.0,
            scratch: Scratch::new(layers, &plan),
            neck: vec![0.0; neck * columns],
            by_logits: vec![0.0; plan.bucket_length * columns],
            block: vec![0.0; if layout.shared { layers.len } else { 0 }],
            by_feature: [vec![0.0; h * LANES], vec![0.0; h * LANES]],
        };
        Self {
            tasks: plan.tasks().into_iter().map(task).collect(),
            measured: Encoding::new(&layout.encoder, LANES),
            transformed: Encoding::new(&layout.encoder, LANES),
            embedding: Embedding::default(),
            outputs: vec![0.0; plan.chunks() * plan.bucket_length * columns],
            necks: vec![0.0; plan.chunks() * neck * columns],
            residual: vec![0.0; system.counters * LANES],
            raised: Vec::new(),
            by_modulation: vec![0.0; plan.buckets * 2 * h],
            plan,
        }
    }
}

/// The mean loss of some of a batch's samples, its gradient added to `gradients`.
///
/// `batch` is the size of the whole batch, of which `samples` (at most `LANES`) are a part; every
/// mean is over it.
pub(crate) fn add_gradient<const LANES: usize>(
    context: &Context<'_>,
    parameters: &[f32],
    samples: &[&Sample],
    batch: usize,
    rng: &mut Rng,
    work: &mut Workspace<LANES>,
    gradients: &mut [f32],
) -> Losses {
    let mut weight = [0.0; LANES];
    weight[..samples.len()].fill(1.0 / batch as f64);

    load(samples, LANES, &mut work.measured.counters);
    work.measured.forward(&context.layout.encoder, parameters);
    work.embedding.forward(context.layout, parameters, context.codes, work.plan.buckets);
    let smallest = Transform::new(samples, &[0.0; LANES]).smallest;
    work.sweep_outputs(context, parameters, &smallest);
    let measurement = work.residual(context, &weight);
    let sparsity = work.tasks.iter().flat_map(|t| t.volume.iter().zip(&weight)).map(|(v, w)| v * w).sum::<f64>();

    let target = context.config.equivariant.then(|| {
        context.system.draw_raised(context.config.raised_share, samples.len(), rng, &mut work.raised);
        work.transform(context, parameters, samples, &weight)
    });
    work.sweep_gradients(context, parameters, &weight, target.as_ref(), gradients);
    work.finish(context, parameters, target.is_some(), gradients);
    Losses {
        measurement,
        sparsity: sparsity / context.system.keys as f64,
        equivariant: work.tasks.iter().map(|t| t.equivariant).sum(),
    }
}

/// `z` in the units that the network works in, and how each sample counts.
struct Target<const LANES: usize> {
    transform: Transform<LANES>,
    /// `1 / scale(A z)`.
    unit: [f32; LANES],
    /// `2 / (keys · batch)`: the derivative's factor; 0 for lanes without a sample.
    factor: [f32; LANES],
}

impl<const LANES: usize> Workspace<LANES> {
    /// Sweep 1: `x = D(y)`, `A x`, and the volumes of all and of hot keys.
    fn sweep_outputs(&mut self, context: &Context<'_>, parameters: &[f32], smallest: &[f32; LANES]) {
        let Self { plan, tasks, outputs, necks, embedding, measured, .. } = self;
        let (out_size, neck_size) = chunk_sizes(plan, outputs, necks);
        let outputs = split(outputs, tasks.iter().map(|t| t.chunks.len() * out_size));
        let necks = split(necks, tasks.iter().map(|t| t.chunks.len() * neck_size));
        tasks.par_iter_mut().zip(outputs).zip(necks).for_each(|((task, outputs), necks)| {
            task.product.fill(0.0);
            (task.volume, task.hot_volume) = ([0.0; LANES], [0.0; LANES]);
            let stored = outputs.chunks_exact_mut(out_size).zip(necks.chunks_exact_mut(neck_size));
            for (index, (outputs, neck)) in task.chunks.clone().zip(stored) {
                let chunk = plan.chunk(index);
                let head = head(context, parameters, &chunk, &measured.feature, &embedding.modulation, LANES);
                head.forward(&chunk, &mut task.scratch, neck, outputs);
                for b in 0..chunk.buckets {
                    let (all, hot) = kernels::measure(context.system, &chunk, b, outputs, smallest, &mut task.product);
                    for s in 0..LANES {
                        task.volume[s] += f64::from(all[s]);
                        task.hot_volume[s] += f64::from(hot[s]);
                    }
                }
            }
        });
    }

    /// The measurement loss; leaves its gradient by `A x` in `residual`.
    fn residual(&mut self, context: &Context<'_>, weight: &[f64; LANES]) -> f64 {
        add_up(&self.tasks, &mut self.residual);
        let counters = context.system.counters as f64;
        let factor = weight.map(|w| (2.0 * w / counters) as f32);
        let blocks = self.residual.par_chunks_mut(REDUCE).zip(self.measured.counters.par_chunks(REDUCE));
        let squares: Vec<[f32; LANES]> = blocks.map(|(r, y)| kernels::residual(r, y, &factor)).collect();
        squares.iter().flat_map(|block| block.iter().zip(weight)).map(|(s, w)| f64::from(*s) * w).sum::<f64>()
            / counters
    }

    /// Sweep 2: `A z`, normalised and encoded.
    fn transform(
        &mut self,
        context: &Context<'_>,
        parameters: &[f32],
        samples: &[&Sample],
        weight: &[f64; LANES],
    ) -> Target<LANES> {
        let Self { plan, tasks, outputs, necks, raised, transformed, .. } = self;
        let hot_volume = std::array::from_fn(|s| tasks.iter().map(|t| t.hot_volume[s]).sum());
        let transform = Transform::new(samples, &hot_volume);
        let (out_size, _) = chunk_sizes(plan, outputs, necks);
        tasks.par_iter_mut().for_each(|task| {
            task.product.fill(0.0);
            for index in task.chunks.clone() {
                let chunk = plan.chunk(index);
                let outputs = &outputs[index * out_size..];
                for b in 0..chunk.buckets {
                    let product = &mut task.product;
                    kernels::measure_transformed(context.system, &chunk, b, outputs, &transform, raised, product);
                }
            }
        });
        add_up(tasks, &mut transformed.counters);
        let unit = kernels::inverse_scales(&transformed.counters, context.shape.rows);
        kernels::multiply_rows(&mut transformed.counters, &unit);
        transformed.forward(&context.layout.encoder, parameters);
        let keys = context.system.keys as f64;
        let factor = std::array::from_fn(|s| if unit[s] > 0.0 { (2.0 * weight[s] / keys) as f32 } else { 0.0 });
        Target { transform, unit, factor }
    }

    /// Sweep 3: all gradients of the head, by the features and by the modulation.
    fn sweep_gradients(
        &mut self,
        context: &Context<'_>,
        parameters: &[f32],
        weight: &[f64; LANES],
        target: Option<&Target<LANES>>,
        gradients: &mut [f32],
    ) {
        let Self { plan, tasks, outputs, necks, raised, embedding, measured, transformed, residual, by_modulation } =
            self;
        let Context { layout, system, config, .. } = context;
        let (out_size, neck_size) = chunk_sizes(plan, outputs, necks);
        let pull = weight.map(|w| (f64::from(config.lambda) * w / system.keys as f64) as f32);
        let two_h = layout.bucket.embed[1].outputs;
        by_modulation.fill(0.0);
        let buckets: Vec<usize> = tasks.iter().map(|t| plan.buckets_of(&t.chunks).len()).collect();
        let by_modulation = split(by_modulation, buckets.iter().map(|n| n * two_h));
        // Unshared buckets write their gradients straight to their place; shared ones into the
        // task's own copy.
        let own = |n: &usize| if layout.shared { 0 } else { n * layout.bucket.len };
        let own_blocks = split(&mut gradients[layout.encoder.len..], buckets.iter().map(own));
        tasks.par_iter_mut().zip(by_modulation).zip(own_blocks).for_each(|((task, by_modulation), own)| {
            task.equivariant = 0.0;
            task.block.fill(0.0);
            task.by_feature.iter_mut().for_each(|g| g.fill(0.0));
            let Task { chunks, block, by_feature: [by_measured, by_transformed], scratch, neck, by_logits, .. } = task;
            let first_bucket = plan.buckets_of(chunks).start;
            for index in chunks.clone() {
                let chunk = plan.chunk(index);
                let local = chunk.first_bucket - first_bucket;
                let block = if layout.shared { &mut block[..] } else { &mut own[local * layout.bucket.len..] };
                let by_modulation = &mut by_modulation[local * two_h..];
                let outputs = &outputs[index * out_size..];
                let head = |feature| head(context, parameters, &chunk, feature, &embedding.modulation, LANES);
                if let Some(Target { transform, unit, factor }) = target {
                    let head = head(&transformed.feature);
                    head.forward(&chunk, scratch, neck, by_logits);
                    for b in 0..chunk.buckets {
                        let inputs = kernels::Equivariant { transform, unit, factor, raised, outputs };
                        task.equivariant += kernels::equivariant(system, &chunk, b, &inputs, by_logits);
                    }
                    let into = HeadGradients { block, by_feature: by_transformed, by_modulation };
                    head.backward(&chunk, scratch, neck, by_logits, into);
                }
                for b in 0..chunk.buckets {
                    kernels::consistent(system, &chunk, b, outputs, residual, &pull, by_logits);
                }
                let into = HeadGradients { block, by_feature: by_measured, by_modulation };
                head(&measured.feature).backward(&chunk, scratch, &necks[index * neck_size..], by_logits, into);
            }
        });
    }

    /// Adds up the tasks' gradients and takes them through embedding and encoder.
    fn finish(&mut self, context: &Context<'_>, parameters: &[f32], equivariant: bool, gradients: &mut [f32]) {
        let Self { tasks, embedding, measured, transformed, by_modulation, .. } = self;
        let Context { layout, .. } = context;
        let Some((total, rest)) = tasks.split_first_mut() else { return };
        for task in rest {
            add_assign(&mut total.block, &task.block);
            for (a, b) in total.by_feature.iter_mut().zip(&task.by_feature) {
                add_assign(a, b);
            }
        }
        add_assign(&mut gradients[layout.encoder.len..], &total.block);
        embedding.backward(layout, parameters, context.codes, by_modulation, gradients);
        let [by_measured, by_transformed] = &mut total.by_feature;
        measured.backward(&layout.encoder, parameters, by_measured, gradients);
        if equivariant {
            transformed.backward(&layout.encoder, parameters, by_transformed, gradients);
        }
    }
}

/// Values added up by one thread at a time.
const REDUCE: usize = 1 << 14;

/// `sum` = the tasks' products, always added in the same order.
fn add_up<const LANES: usize>(tasks: &[Task<LANES>], sum: &mut [f32]) {
    sum.par_chunks_mut(REDUCE).enumerate().for_each(|(block, sum)| {
        let of = |task: &Task<LANES>| block * REDUCE..(block * REDUCE + sum.len()).min(task.product.len());
        let (first, rest) = tasks.split_first().expect("a step has at least one task");
        let range = of(first);
        sum.copy_from_slice(&first.product[range.clone()]);
        for task in rest {
            add_assign(sum, &task.product[range.clone()]);
        }
    });
}

fn chunk_sizes(plan: &Division, outputs: &[f32], necks: &[f32]) -> (usize, usize) {
    (outputs.len() / plan.chunks(), necks.len() / plan.chunks())
}

fn head<'a>(
    context: &Context<'a>,
    parameters: &'a [f32],
    chunk: &Chunk,
    feature: &'a [f32],
    modulation: &'a [f32],
    lanes: usize,
) -> Head<'a> {
    let layout = context.layout;
    let block = &parameters[layout.len(layout.block_of(chunk.first_bucket))..][..layout.bucket.len];
    Head { layers: &layout.bucket, block, feature, modulation, lanes }
}

fn split<T>(mut data: &mut [T], lengths: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    lengths.map(|n| data.split_off_mut(..n).expect("lengths within the data")).collect()
}

/// Samples side by side: value `i` of sample `s` at `i * lanes + s`; lanes without a sample are
/// zero.
fn load(samples: &[&Sample], lanes: usize, into: &mut [f32]) {
    if samples.len() < lanes {
        into.fill(0.0);
    }
    into.par_chunks_mut(REDUCE / lanes * lanes).enumerate().for_each(|(block, into)| {
        let from = block * (REDUCE / lanes);
        for (s, sample) in samples.iter().enumerate() {
            for (row, &y) in into.chunks_exact_mut(lanes).zip(&sample.counters[from..]) {
                row[s] = y;
            }
        }
    });
}
