//! Several inputs at once: one data plane a thread, as that many devices would have, merged at the
//! end.

use std::ops::ControlFlow;

use anyhow::Context;
use ucl_sketch::{InsertError, UclSketch};
use ucl_streams::{ReadError, ReadOptions, ReadSummary, Source, read};

use super::Args;
use super::counter::Counter;

/// Returns the number of data planes: one, unless there are threads and inputs for more. Answers
/// and states in between and a limit are of all inputs in order, and so they need one data plane
/// that sees them all; and a state that goes on is one.
pub fn planes(args: &Args, sources: &[Source]) -> usize {
    let in_order =
        args.every.is_some() || args.cut_every.is_some() || args.save_every.is_some() || args.input.limit.is_some();
    if in_order || args.resume.is_some() {
        return 1;
    }
    args.threads.unwrap_or(1).min(sources.len()).max(1)
}

/// Counts of one thread.
struct Counted {
    counter: Counter,
    result: Result<ReadSummary, ReadError>,
    failure: Option<InsertError>,
}

/// Counts all inputs, each by one of the sketches: the first goes to the first, the next to the
/// next, and round again, so that the answer does not depend on which thread is fastest. All counts
/// end up in one.
pub fn count(
    sketches: Vec<UclSketch>,
    sources: &[Source],
    options: &ReadOptions,
    audit: bool,
) -> anyhow::Result<(Counter, Result<ReadSummary, ReadError>)> {
    let planes = sketches.len();
    let counted: Vec<Counted> = std::thread::scope(|scope| {
        let start = |(plane, sketch): (usize, UclSketch)| {
            let mine: Vec<Source> = sources.iter().skip(plane).step_by(planes).cloned().collect();
            // A bar for one reader would jump between several.
            let options = ReadOptions { progress: None, ..options.clone() };
            let work = move || one(Counter::new(sketch, audit), &mine, &options);
            std::thread::Builder::new().spawn_scoped(scope, work).context("cannot start a thread")
        };
        let threads = sketches.into_iter().enumerate().map(start).collect::<anyhow::Result<Vec<_>>>()?;
        anyhow::Ok(threads.into_iter().map(|thread| thread.join().expect("counting does not panic")).collect())
    })?;
    let mut all: Option<(Counter, Result<ReadSummary, ReadError>)> = None;
    for Counted { counter, result, failure } in counted {
        if let Some(failure) = failure {
            return Err(failure.into());
        }
        all = Some(match all {
            None => (counter, result),
            Some((mut sum, before)) => {
                sum.merge(counter)?;
                (sum, joined(before, result))
            }
        });
    }
    Ok(all.expect("at least one data plane"))
}

fn one(mut counter: Counter, sources: &[Source], options: &ReadOptions) -> Counted {
    let mut failure = None;
    let result = read(sources, options, &mut |batch| match counter.insert(batch, 0..batch.len()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    });
    Counted { counter, result, failure }
}

/// Joins the results of two readers. The first failure counts, with the summary of both.
fn joined(a: Result<ReadSummary, ReadError>, b: Result<ReadSummary, ReadError>) -> Result<ReadSummary, ReadError> {
    let summary = |result: &Result<ReadSummary, ReadError>| match result {
        Ok(summary) => summary.clone(),
        Err(error) => (*error.summary).clone(),
    };
    let mut sum = summary(&a);
    let more = summary(&b);
    sum.items += more.items;
    sum.weight += more.weight;
    sum.bytes_read += more.bytes_read;
    sum.bytes_decoded += more.bytes_decoded;
    sum.skipped += more.skipped;
    sum.first_skip = sum.first_skip.or(more.first_skip);
    sum.no_ip += more.no_ip;
    sum.no_key += more.no_key;
    sum.zero_weight += more.zero_weight;
    sum.assumed_header = sum.assumed_header.or(more.assumed_header);
    sum.truncated = sum.truncated.or(more.truncated);
    match a.err().or(b.err()) {
        None => Ok(sum),
        Some(error) => Err(ReadError { summary: Box::new(sum), ..error }),
    }
}
