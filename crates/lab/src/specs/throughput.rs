//! `throughput`: inserts and queries a second by key size, on Kosarak with 64KB (paper: figure
//! `throughput`).
//!
//! Keys of more than 4 bytes are Kosarak's with bytes appended, so the stream stays the same.
//! Queries are for the items of the stream, in order. The paper puts a two-layer recurrent network
//! before every insert of a learned Count-Min or Count Sketch, to stand for its oracle: `lcm-rnn`
//! and `lcs-rnn`, beside `lcm` and `lcs` whose ideal oracle takes no time.

use super::common::{SYSTEMS, finding, mean, mix, seeds_note, spread, values};
use super::{Presentation, Spec};
use crate::experiment::measure;
use crate::plot::{Axis, Figure, Panel};
use crate::recording::Recording;
use crate::reproduce::{Cell, Dataset, Job, Outcome, Scope, Table};
use crate::system::Options;

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "throughput",
    title: "Speed of inserts and queries",
    labels: &["throughput"],
    about: "Million operations a second on one thread, from memory, 64KB, Kosarak's stream with keys of 4 to 32 bytes. The fastest of up to \
            five passes counts. These figures are real times of this program; the paper measures Count-Min in C++ and scales its Python by that.",
    jobs,
    present,
};

const SIZES: [usize; 5] = [4, 8, 13, 16, 32];
/// Beside the systems of the accuracy experiments.
const MORE: [&str; 5] = ["flowradar", "pr", "seq", "lcm-rnn", "lcs-rnn"];

fn jobs(scope: &Scope) -> Vec<Job> {
    let sizes: &[usize] = scope.extent.choose(&SIZES, &[4, 13, 32], &[13]);
    let methods = SYSTEMS.into_iter().chain(MORE).filter(|name| *name != "ucl-refined");
    let methods: Vec<&'static str> = methods.collect();
    let mut jobs = Vec::new();
    for &size in sizes {
        let labels = |method: &str| {
            [("key_bytes", size.to_string()), ("memory", "64KB".to_owned()), ("method", method.to_owned())]
        };
        for &name in &methods {
            // A network that has trained little answers as fast as one that has trained long.
            let options = Options { epochs: Some(1), ..Options::default() };
            let job = Job::new(labels(name), move |bench| {
                let stream = longer_keys(&*bench.stream(Dataset::Kosarak)?, size);
                finding(measure(bench.method(name)?, &stream, 64 << 10, 1, &options))
            });
            jobs.push(job.on(Dataset::Kosarak).of(name).alone());
        }
    }
    jobs
}

/// The same stream with keys of another length.
fn longer_keys(stream: &Recording, size: usize) -> Recording {
    let mut longer = Recording::new(format!("{}, {size}-byte keys", stream.name()));
    let mut buffer = ucl_streams::BatchBuf::new();
    let mut key = vec![0; size];
    for original in stream.batch().keys() {
        // All of the original key, then bytes that depend on it.
        let kept = original.len().min(size);
        key[..kept].copy_from_slice(&original[..kept]);
        for (i, byte) in key.iter_mut().enumerate().skip(kept) {
            *byte = (mix(original, i as u64 / 8) >> (i % 8 * 8)) as u8;
        }
        buffer.push(&key, 1);
    }
    longer.extend(buffer.as_batch());
    longer
}

/// Queries by Algorithm 3.
fn of_bucket(outcomes: &[Outcome], size: &str, method: &str) -> Option<f64> {
    mean(outcomes, &[("key_bytes", size), ("method", method)], "bucket_query_mops")
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let sizes = values(outcomes, "key_bytes");
    let methods = values(outcomes, "method");
    let speeds = [("insert_mops", "inserts (million a second)"), ("query_mops", "queries (million a second)")];
    // Some twenty systems side by side are bars; lines through the key sizes would lie on top of
    // each other.
    let ends: Vec<&str> = sizes.iter().take(1).chain(sizes.iter().skip(1).last()).copied().collect();
    let panel = |size: &str, (figure, title): (&str, &str)| {
        let speed = |method: &&str| {
            Some(((*method).to_owned(), spread(outcomes, &[("key_bytes", size), ("method", method)], figure)?))
        };
        let bars = methods.iter().filter_map(speed).collect();
        Panel::bars(format!("{size}-byte keys, {title}"), Axis::log(""), bars)
    };
    let figure = Figure {
        title: "Speed on Kosarak, 64KB, one thread".to_owned(),
        note: seeds_note(outcomes),
        panels: ends.iter().flat_map(|size| speeds.map(|speed| panel(size, speed))).collect(),
        columns: 2,
    };
    let mut tables = Vec::new();
    for (figure, title) in speeds {
        let header = std::iter::once("method".to_owned()).chain(sizes.iter().map(|size| format!("{size} bytes")));
        let mut table = Table::new(figure.replace('_', "-"), title, header);
        for method in &methods {
            let cell = |size: &&str| Cell::from(mean(outcomes, &[("key_bytes", size), ("method", method)], figure));
            table.push(std::iter::once(Cell::from(*method)).chain(sizes.iter().map(cell)));
            let by_bucket: Vec<Option<f64>> = sizes.iter().map(|size| of_bucket(outcomes, size, method)).collect();
            if figure == "query_mops" && by_bucket.iter().any(Option::is_some) {
                let name = format!("{method}, Algorithm 3");
                table.push(std::iter::once(Cell::from(name)).chain(by_bucket.into_iter().map(Cell::from)));
            }
        }
        tables.push(table);
    }
    let remarks = vec![
        "Queries of our sketches are look-ups in a view: all keys are decoded before, once, and that is not in the time. The row \"Algorithm 3\" is the paper's query: \
         the network runs for the bucket of every key that is asked for, on counters that were encoded once."
            .to_owned(),
        "`lcm-rnn` and `lcs-rnn` run a two-layer recurrent network of 32 units before every operation, as the paper does to stand for a trained oracle; nobody listens \
         to it, and `lcm` and `lcs` are the same without."
            .to_owned(),
        "The paper prints these results as a picture only. Keys of 32 bytes sit in our slots as a 16-byte digest, which takes a hash more; 4, 8, 13 \
         and 16 bytes have fast paths."
            .to_owned(),
        "Times of other work on the same machine show in these figures: compare within a picture, not between runs.".to_owned(),
    ];
    Presentation {
        figures: vec![(
            "speed".into(),
            "Inserts and queries, with the shortest keys and with the longest.".into(),
            figure,
        )],
        tables,
        remarks,
    }
}
