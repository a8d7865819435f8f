//! `changes`: the sketch itself changes in mid-stream (paper: "Robustness to Sketch Changes").

use ucl_sketch::DecoderKind;

use super::common::{kilobytes, mean, values};
use super::{Presentation, Spec};
use crate::changes::{ChangesOptions, SketchChange, Subject, changes};
use crate::plot::{Axis, Figure, Line, Panel, Point};
use crate::reproduce::{Cell, Dataset, Finding, Job, Outcome, Scope, Table};

/// Definition of the experiment.
pub const SPEC: Spec = Spec {
    name: "changes",
    title: "When the sketch changes in mid-stream",
    labels: &[],
    about: "Half of Retail is counted in 64KB, then the sketch changes: new hash functions, twice or half the memory, a new cycle with the \
            network's weights dropped or kept, or twice the volume at once. The average relative error of all keys, and of the keys from before, \
            is taken just before, right after, and 1, 2, 4 and 8 windows later (a window is a sixteenth of the stream; the learned decoder is \
            trained after each). A plain Count-Min stands beside.",
    jobs,
    present,
};

/// The moments, by the name of their figure and the windows passed.
const MOMENTS: [(&str, f64); 5] = [("0", 0.0), ("1", 1.0), ("2", 2.0), ("4", 4.0), ("8", 8.0)];

fn jobs(scope: &Scope) -> Vec<Job> {
    let budget = scope.extent.choose(kilobytes(&[64]), kilobytes(&[64]), kilobytes(&[8]))[0];
    let window = scope.extent.choose(128, 32, 4);
    let learned = Subject::Ucl(DecoderKind::Learned);
    let quick = vec![
        SketchChange::Rehash,
        SketchChange::Grow,
        SketchChange::Reset,
        SketchChange::ResetWarm,
        SketchChange::Double,
    ];
    let changes = scope.extent.choose(SketchChange::ALL.to_vec(), quick, vec![SketchChange::Rehash]);
    let subjects = scope.extent.choose(
        ChangesOptions::default().subjects,
        vec![learned, Subject::Ucl(DecoderKind::Delta), Subject::Ucl(DecoderKind::Em), Subject::CountMin],
        vec![Subject::Ucl(DecoderKind::Delta), Subject::CountMin],
    );
    let epochs = scope.epochs();
    let mut jobs = Vec::new();
    for &seed in &scope.seeds {
        for &subject in &subjects {
            for &change in &changes {
                let options = ChangesOptions {
                    budget,
                    seed,
                    changes: vec![change],
                    subjects: vec![subject],
                    window,
                    epochs: Some(epochs),
                };
                let labels =
                    [("change", change.name().to_owned()), ("method", subject.name()), ("seed", seed.to_string())];
                jobs.push(Job::new(labels, move |bench| measure(bench, &options)).on(Dataset::Retail));
            }
        }
    }
    jobs
}

fn measure(bench: &crate::reproduce::Bench<'_>, options: &ChangesOptions) -> Result<Finding, String> {
    let stream = bench.stream(Dataset::Retail)?;
    let rows = changes(&stream, options, &mut |_| ()).map_err(|error| error.to_string())?;
    let mut finding = Finding::default();
    for row in &rows {
        let moment = row.windows.map_or("before".to_owned(), |windows| windows.to_string());
        finding.note(&format!("are_{moment}"), row.are);
        finding.note(&format!("old_are_{moment}"), row.are_before);
        finding.note(&format!("violations_{moment}"), row.bound_violations.map(|n| n as f64));
    }
    // A Count-Min that answers from empty or misread counters has not recovered, however small its
    // errors look.
    let back = rows.iter().find(|row| row.recovered && row.bound_violations.is_some());
    finding.note("windows_to_recover", back.and_then(|row| row.windows).map(|windows| windows as f64));
    finding.note("seconds_to_recover", back.map(|row| row.seconds));
    Ok(finding)
}

fn present(outcomes: &[Outcome]) -> Presentation {
    let changes = values(outcomes, "change");
    let methods = values(outcomes, "method");
    let of =
        |method: &str, change: &str, figure: &str| mean(outcomes, &[("method", method), ("change", change)], figure);
    let moments = || MOMENTS.iter().map(|(name, _)| name.to_string());
    let header = ["change", "method", "before"].map(str::to_owned).into_iter();
    let mut all = Table::new(
        "are",
        "ARE of all keys: before the change, right after, and so many windows later; windows and seconds until it is at most 5% above what it was",
        header.clone().chain(moments()).chain(["windows".to_owned(), "seconds".to_owned()]),
    );
    let mut old = Table::new("old-keys", "ARE of the keys from before the change", header.chain(moments()));
    for change in &changes {
        for method in &methods {
            let name = [Cell::from(*change), Cell::from(*method)];
            let cells = |prefix: &'static str| {
                let figures = std::iter::once("before").chain(MOMENTS.iter().map(|(name, _)| *name));
                figures.map(move |moment| Cell::from(of(method, change, &format!("{prefix}{moment}"))))
            };
            let back =
                ["windows_to_recover", "seconds_to_recover"].map(|figure| Cell::from(of(method, change, figure)));
            all.push(name.clone().into_iter().chain(cells("are_")).chain(back));
            old.push(name.into_iter().chain(cells("old_are_")));
        }
    }
    let panel = |change: &&str| {
        let line = |method: &&str| {
            // Before is drawn one window to the left.
            let at = std::iter::once(("before", -1.0)).chain(MOMENTS);
            let points = at.filter_map(|(moment, x)| Some(Point::at(x, of(method, change, &format!("are_{moment}"))?)));
            Line::new(*method, points)
        };
        let ticks =
            std::iter::once((-1.0, "before".to_owned())).chain(MOMENTS.iter().map(|(name, x)| (*x, name.to_string())));
        Panel::lines(
            format!("ARE, {change}"),
            Axis::linear("windows after the change").with_ticks(ticks),
            Axis::log(""),
            methods.iter().map(line).collect(),
        )
    };
    let figure = Figure {
        title: "The sketch changes in mid-stream: Retail".to_owned(),
        note: String::new(),
        panels: changes.iter().map(panel).collect(),
        columns: 2,
    };
    let remarks = vec![
        "After a rehash the old counters are sealed with their columns, so that what was known stays known at once; a plain Count-Min looks for its \
         keys in the wrong counters, and after a new size in none (it answers 0: a relative error of 1). After a reset there is nothing to be wrong about yet: the error of the first window is that of few items."
            .to_owned(),
    ];
    Presentation {
        figures: vec![("are".into(), "ARE through each change.".into(), figure)],
        tables: vec![all, old],
        remarks,
    }
}
