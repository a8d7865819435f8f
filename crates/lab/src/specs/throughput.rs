//! `throughput`: inserts and queries a second by key size, on Kosarak with 64KB (paper: figure `throughput`).
//!
//! Keys of more than 4 bytes are Kosarak's with bytes appended, so the stream stays the same. Queries are for the items of the stream, in
//! order. The paper puts a two-layer recurrent network before every insert of a learned Count-Min or Count Sketch, to stand for
//! its oracle; here that [network](super::oracle) is timed by itself, and `lcm` and `lcs` are shown with and without its time.

use super::common::{SYSTEMS, finding, mean, mix, seeds_note, spread, values};
use super::oracle::Oracle;
use super::{Presentation, Spec};
use crate::experiment::measure;
use crate::plot::{Axis, Figure, Line, Panel, Point};
use crate::recording::Recording;
use crate::reproduce::{Cell, Dataset, Finding, Job, Outcome, Scope, Table};
use crate::system::Options;

/// The spec.
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
const ORACLE: &str = "rnn-oracle";

fn jobs(scope: &Scope) -> Vec<Job> {
    let sizes: &[usize] = scope.extent.choose(&SIZES, &[4, 13, 32], &[13]);
    let methods = SYSTEMS.into_iter().chain(["flowradar", "pr", "seq"]).filter(|name| *name != "ucl-refined");
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
        let oracle = Job::new(labels(ORACLE), move |bench| {
            let stream = longer_keys(&*bench.stream(Dataset::Kosarak)?, size);
            let mut finding = Finding::default();
            finding.note("insert_mops", Oracle::new().speed(&stream));
            Ok(finding)
        });
        jobs.push(oracle.on(Dataset::Kosarak).alone());
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

/// Speed with the oracle's time before every operation.
fn with_oracle(outcomes: &[Outcome], size: &str, method: &str, figure: &str) -> Option<f64> {
    let plain = mean(outcomes, &[("key_bytes", size), ("method", method)], figure)?;
    let oracle = mean(outcomes, &[("key_bytes", size), ("method", ORACLE)], "insert_mops")?;
    Some(1.0 / (1.0 / plain + 1.0 / oracle))
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let sizes = values(outcomes, "key_bytes");
    let methods: Vec<&str> = values(outcomes, "method").into_iter().filter(|method| *method != ORACLE).collect();
    let speeds = [("insert_mops", "inserts (million a second)"), ("query_mops", "queries (million a second)")];
    let x = |size: &str| size.parse().unwrap_or(0.0);
    let ticks = || sizes.iter().map(|size| (x(size), (*size).to_owned()));
    let panel = |(figure, title): (&str, &str)| {
        let mut lines = Vec::new();
        for method in &methods {
            let points = sizes.iter().filter_map(|size| {
                Some(Point { x: x(size), y: spread(outcomes, &[("key_bytes", size), ("method", method)], figure)? })
            });
            lines.push(Line::new(*method, points));
            if matches!(*method, "lcm" | "lcs") {
                let points = sizes
                    .iter()
                    .filter_map(|size| Some(Point::at(x(size), with_oracle(outcomes, size, method, figure)?)));
                lines.push(Line::new(format!("{method} with its oracle"), points));
            }
        }
        Panel::lines(title, Axis::log("key size (bytes)").with_ticks(ticks()), Axis::log(""), lines)
    };
    let figure = Figure {
        title: "Speed on Kosarak, 64KB, one thread".to_owned(),
        note: seeds_note(outcomes),
        panels: speeds.map(panel).into(),
        columns: 2,
    };
    let mut tables = Vec::new();
    for (figure, title) in speeds {
        let header = std::iter::once("method".to_owned()).chain(sizes.iter().map(|size| format!("{size} bytes")));
        let mut table = Table::new(figure.replace('_', "-"), title, header);
        for method in &methods {
            let cell = |size: &&str| Cell::from(mean(outcomes, &[("key_bytes", size), ("method", method)], figure));
            table.push(std::iter::once(Cell::from(*method)).chain(sizes.iter().map(cell)));
            if matches!(*method, "lcm" | "lcs") {
                let cell = |size: &&str| Cell::from(with_oracle(outcomes, size, method, figure));
                let name = Cell::from(format!("{method} with its oracle"));
                table.push(std::iter::once(name).chain(sizes.iter().map(cell)));
            }
        }
        tables.push(table);
    }
    let remarks = vec![
        "The paper prints these results as a picture only. Keys of 32 bytes sit in our slots as a 16-byte digest, which takes a hash more; 4, 8, 13 \
         and 16 bytes have fast paths."
            .to_owned(),
        "Times of other work on the same machine show in these figures: compare within a picture, not between runs.".to_owned(),
    ];
    Presentation { figures: vec![("speed".into(), "Inserts and queries by key size.".into(), figure)], tables, remarks }
}
