//! `online`: the network trained along the stream (paper: "Training Strategy", "Convergence Rate").
//!
//! The paper's network is trained while the stream runs: the window slides, keys arrive, the
//! weights go on. Its measurements, and our other experiments, train once, at the end. Here both
//! stand side by side at eight moments of the stream:
//!
//! ```text
//! online:  ----T----T----T--ask--T----T--ask ...     T: a quarter of the epochs, from the last weights
//! anew:    -------------------T* ask                 T*: all epochs, from fresh weights, at this moment
//! ```
//!
//! In the *turned* stream every key is replaced by another one after the half, so that all that
//! the network has learned of single keys is worth nothing. How long it takes until the network
//! is as good as one that is trained anew is the time to adapt.
//!
//! The other half of the question is what training costs the stream: insertions a second with the
//! trainer in the background, and without any training.

use std::time::Instant;

use ucl_sketch::{DecoderKind, Execution, Fallback, KeyFormat, Settings, UclSketch};
use ucl_streams::{BatchBuf, ExactCounts};

use super::common::{mean, seeds_note, spread, values};
use super::{Presentation, Spec};
use crate::plot::{Axis, Figure, Line, Panel, Point};
use crate::recording::Recording;
use crate::reproduce::{Bench, Cell, Dataset, Finding, Job, Outcome, Scope, Table};
use crate::system::Training;

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "online",
    title: "Training along the stream",
    labels: &["model_parameters"],
    about: "Retail with 64KB, window 128, a cut every 1,000 items. *online*: trained four times per window, each time for a quarter of the epochs, from the \
            last weights; *anew*: trained once, from fresh weights, with all epochs, at the moment of the question. In the turned stream every key is replaced by \
            another one after half of the stream. Errors of the network's own answers, without bounds. Below: insertions with the trainer in the \
            background.",
    jobs,
    present,
};

/// Moments at which the network is asked, in eighths of the stream.
const MOMENTS: u64 = 8;
/// A network has adapted if its error is at most so many times that of one that is trained anew.
const ADAPTED: f64 = 1.05;
/// Times that the stream is inserted to measure a rate, so that it takes a second or more.
const REPEATS: usize = 24;
/// Pairs of measurements with and without training, in turn.
const PAIRS: usize = 3;

#[derive(Clone, Copy)]
struct Setting {
    budget: usize,
    interval: u64,
    window: usize,
    epochs: usize,
}

fn jobs(scope: &Scope) -> Vec<Job> {
    let setting = scope.extent.choose(
        Setting { budget: 64 << 10, interval: 1_000, window: 128, epochs: scope.epochs() },
        Setting { budget: 64 << 10, interval: 1_000, window: 32, epochs: scope.epochs() },
        Setting { budget: 8 << 10, interval: 500, window: 4, epochs: scope.epochs() },
    );
    let mut jobs = Vec::new();
    for stream in ["steady", "turned"] {
        for (name, training) in [("online", Training::Online), ("anew", Training::Final)] {
            for &seed in &scope.seeds {
                let labels = [
                    ("part", "error".to_owned()),
                    ("stream", stream.to_owned()),
                    ("training", name.to_owned()),
                    ("window", format!("{}x{}", setting.window, setting.interval)),
                    ("epochs", setting.epochs.to_string()),
                    ("seed", seed.to_string()),
                ];
                let run = move |bench: &Bench<'_>| {
                    error_over_time(&*bench.stream(Dataset::Retail)?, stream == "turned", training, setting, seed)
                };
                jobs.push(Job::new(labels, run).on(Dataset::Retail).of("ucl-learned"));
            }
        }
    }
    let labels = [("part", "speed".to_owned()), ("epochs", setting.epochs.to_string())];
    let repeats = scope.extent.choose(REPEATS, REPEATS, 1);
    let run = move |bench: &Bench<'_>| insert_rates(&*bench.stream(Dataset::Retail)?, setting, repeats);
    jobs.push(Job::new(labels, run).on(Dataset::Retail).of("ucl-learned").alone());
    jobs
}

fn build(
    keys: KeyFormat,
    training: Option<Training>,
    execution: Execution,
    setting: Setting,
    seed: u64,
) -> Result<UclSketch, String> {
    let mut settings = Settings {
        decoder: DecoderKind::Learned,
        window: setting.window,
        train_every: None,
        fallback: Fallback::WhenUntrained,
        ..Settings::default()
    };
    settings.learned.epochs = setting.epochs;
    if training == Some(Training::Online) {
        settings = settings.online();
    }
    let mut builder = UclSketch::builder()
        .memory_bytes(setting.budget)
        .settings(settings)
        .interval(setting.interval)
        .execution(execution)
        .seed(seed.into());
    if let KeyFormat::Fixed(bytes) = keys {
        builder = builder.key_bytes(bytes.into());
    }
    builder.build().map_err(|error| error.to_string())
}

/// The part of a stream up to each moment after the one before.
fn parts(stream: &Recording, turned: bool) -> Vec<BatchBuf> {
    let items = stream.items();
    let half = stream.items() / 2;
    let mut parts = vec![BatchBuf::new(); MOMENTS as usize];
    for (at, (key, weight)) in (0..).zip(stream.batch().items()) {
        let part = &mut parts[(at * MOMENTS / items.max(1)) as usize];
        if turned && at >= half {
            // All bits turned: another key for every key, and none that came before.
            let mut other = key.to_vec();
            other.iter_mut().for_each(|byte| *byte = !*byte);
            part.push(&other, weight);
        } else {
            part.push(key, weight);
        }
    }
    parts
}

fn error_over_time(
    stream: &Recording,
    turned: bool,
    training: Training,
    setting: Setting,
    seed: u64,
) -> Result<Finding, String> {
    let new = || build(stream.keys(), Some(training), Execution::Synchronous, setting, seed);
    let parts = parts(stream, turned);
    let mut finding = Finding::default();
    let mut truth = ExactCounts::new();
    let mut sketch = new()?;
    let mut seconds = 0.0;
    let mut restarts = 0;
    for (moment, part) in (1..).zip(&parts) {
        truth.insert_batch(part.as_batch());
        if training == Training::Final {
            // From fresh weights, and so in a sketch of its own.
            sketch = new()?;
            parts[..moment - 1].iter().try_for_each(|earlier| insert(&mut sketch, earlier))?;
        }
        insert(&mut sketch, part)?;
        if training == Training::Final {
            sketch.train().map_err(|error| error.to_string())?;
        }
        let view = sketch.query_view().map_err(|error| error.to_string())?;
        let keys = truth.distinct().max(1) as f64;
        let mut unbounded = 0.0;
        let mut bounded = 0.0;
        for (key, count) in truth.iter() {
            let error = |estimate: u64| count.abs_diff(estimate) as f64 / count as f64;
            bounded += error(view.estimate(key).estimate);
            unbounded += error(view.unbounded(key).unwrap_or(0));
        }
        // Until it is trained for the first time, the network does not answer.
        if view.outputs().is_some() {
            finding.note(&format!("unbounded_are_{moment}"), unbounded / keys);
        }
        finding.note(&format!("are_{moment}"), bounded / keys);
        if training == Training::Final {
            (seconds, restarts) = trained(&mut sketch);
        }
    }
    if training == Training::Online {
        (seconds, restarts) = trained(&mut sketch);
    }
    finding.note("train_seconds", seconds);
    finding.note("restarts", restarts as f64);
    Ok(finding)
}

/// Seconds of training so far, and how often the network collapsed and was trained again.
fn trained(sketch: &mut UclSketch) -> (f64, usize) {
    sketch.with_control(|control| {
        let history = control.network().map_or(&[][..], |network| network.history());
        let seconds = history.iter().map(|report| report.time.as_secs_f64()).sum();
        (seconds, history.iter().map(|report| report.restarts).sum())
    })
}

fn insert(sketch: &mut UclSketch, part: &BatchBuf) -> Result<(), String> {
    let batch = part.as_batch();
    match batch.fixed() {
        Some((bytes, keys)) => sketch.insert_flat(bytes, keys, batch.weights()).map_err(|error| error.to_string()),
        None => batch
            .items()
            .try_for_each(|(key, weight)| sketch.insert_weighted(key, weight))
            .map_err(|error| error.to_string()),
    }
}

/// Million insertions a second with the control plane in the background, with and without the
/// trainer, in turn.
fn insert_rates(stream: &Recording, setting: Setting, repeats: usize) -> Result<Finding, String> {
    let mut whole = BatchBuf::new();
    stream.batch().items().for_each(|(key, weight)| whole.push(key, weight));
    let rate = |training: Option<Training>| {
        let mut sketch = build(stream.keys(), training, Execution::Background, setting, 1)?;
        let start = Instant::now();
        for _ in 0..repeats {
            insert(&mut sketch, &whole)?;
        }
        let mops = (repeats as u64 * stream.items()) as f64 / start.elapsed().as_secs_f64() / 1e6;
        Ok::<f64, String>(mops)
    };
    let mut pairs = Vec::new();
    for _ in 0..PAIRS {
        pairs.push((rate(None)?, rate(Some(Training::Online))?));
    }
    let median = |figure: fn(&(f64, f64)) -> f64| {
        let mut figures: Vec<f64> = pairs.iter().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    let mut finding = Finding::default();
    finding.note("mops_without", median(|pair| pair.0));
    finding.note("mops_online", median(|pair| pair.1));
    finding.note("ratio", median(|pair| pair.1 / pair.0));
    Ok(finding)
}

/// The first moment after the change, in eighths of the stream, at which the error is near that of
/// a network trained anew.
fn adapted(outcomes: &[Outcome], stream: &str) -> Option<u64> {
    let from = if stream == "turned" { MOMENTS / 2 + 1 } else { 1 };
    (from..=MOMENTS).find(|moment| {
        let figure = format!("unbounded_are_{moment}");
        let of = |training| mean(outcomes, &[("stream", stream), ("training", training)], &figure);
        of("online").zip(of("anew")).is_some_and(|(online, anew)| online <= ADAPTED * anew)
    })
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let streams = values(outcomes, "stream");
    let trainings = values(outcomes, "training");
    let x = |moment: u64| moment as f64 / MOMENTS as f64;
    let panel = |stream: &&str| {
        let line = |training: &&str| {
            let labels = [("stream", *stream), ("training", *training)];
            let point = |moment| {
                Some(Point { x: x(moment), y: spread(outcomes, &labels, &format!("unbounded_are_{moment}"))? })
            };
            Line::new(*training, (1..=MOMENTS).filter_map(point))
        };
        let ticks = (1..=MOMENTS).map(|moment| (x(moment), format!("{moment}/{MOMENTS}")));
        let axis = Axis::linear("share of the stream").with_ticks(ticks);
        Panel::lines(format!("ARE, {stream} stream"), axis, Axis::linear(""), trainings.iter().map(line).collect())
    };
    let figure = Figure {
        title: "Trained along the stream: retail, 64KB".to_owned(),
        note: seeds_note(outcomes),
        panels: streams.iter().map(panel).collect(),
        columns: 2,
    };
    let moments = (1..=MOMENTS).map(|moment| format!("{moment}/{MOMENTS}"));
    let header = ["stream", "training", "answers"].map(str::to_owned).into_iter();
    let header = header.chain(moments).chain(["seconds of training".to_owned(), "collapses".to_owned()]);
    let mut table = Table::new("are", "ARE of all keys so far, at each eighth of the stream", header);
    for stream in &streams {
        for training in &trainings {
            let of = |figure: &str| Cell::from(mean(outcomes, &[("stream", stream), ("training", training)], figure));
            for (answers, prefix) in [("unbounded", "unbounded_are"), ("bounded", "are")] {
                let words = [*stream, *training, answers].map(Cell::from);
                let cells = (1..=MOMENTS).map(|moment| of(&format!("{prefix}_{moment}")));
                table.push(words.into_iter().chain(cells).chain([of("train_seconds"), of("restarts")]));
            }
        }
    }
    let mut remarks = Vec::new();
    let last = format!("unbounded_are_{MOMENTS}");
    let end = |training| mean(outcomes, &[("stream", "steady"), ("training", training)], &last);
    if let Some((online, anew)) = end("online").zip(end("anew")) {
        remarks.push(format!(
            "At the end of the steady stream, the network trained along it has an ARE of {online:.3}, the one trained once {anew:.3}: {:.2} times.",
            online / anew
        ));
    }
    for stream in &streams {
        let from = if *stream == "turned" { "the change" } else { "the start" };
        let told = match adapted(outcomes, stream) {
            Some(moment) => {
                let since = if *stream == "turned" { moment - MOMENTS / 2 } else { moment };
                format!("within {since}/{MOMENTS} of the stream after {from}")
            }
            None => format!("at no moment after {from}"),
        };
        remarks.push(format!(
            "{stream} stream: the network trained along it is at most {:.0}% worse than one trained anew {told}.",
            100.0 * (ADAPTED - 1.0)
        ));
    }
    let rates = ["mops_without", "mops_online", "ratio"].map(|figure| mean(outcomes, &[("part", "speed")], figure));
    if let [Some(without), Some(online), Some(ratio)] = rates {
        remarks.push(format!(
            "Inserts with the control plane in the background: {without:.1} million a second without training, {online:.1} with the trainer: {ratio:.2} of it \
             (medians of {PAIRS} pairs in turn, the stream {REPEATS} times; other work on the machine shows)."
        ));
    }
    Presentation {
        figures: vec![("are".into(), "ARE over time, trained along the stream and anew.".into(), figure)],
        tables: vec![table],
        remarks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turned_stream_has_other_keys_after_the_half() {
        let mut stream = Recording::new("four keys".to_owned());
        let mut items = BatchBuf::new();
        (0..64u32).for_each(|i| items.push(&(i % 4).to_le_bytes(), 1));
        stream.extend(items.as_batch());
        let keys = |parts: &[BatchBuf]| {
            let mut counts = ExactCounts::new();
            parts.iter().for_each(|part| counts.insert_batch(part.as_batch()));
            counts
        };
        let turned = parts(&stream, true);
        let (before, after) = turned.split_at(4);
        assert_eq!((keys(before).distinct(), keys(after).distinct(), keys(&turned).distinct()), (4, 4, 8));
        assert_eq!(turned.iter().map(|part| part.as_batch().len()).sum::<usize>(), 64);
        assert_eq!(keys(&parts(&stream, false)).distinct(), 4);
    }
}
