//! Files that a run writes: tables, figures, the report and the dated result.

use std::path::Path;

use serde_json::json;

use super::environment::{Environment, now};
use super::job::Scope;
use super::run::SpecResult;
use super::{ReproduceError, page, write};
use crate::plot::PlotError;
use crate::specs::Presentation;

/// Writes a spec's tables and figures.
pub(super) fn write_spec(out: &Path, result: &SpecResult) -> Result<Presentation, ReproduceError> {
    let folder = out.join(result.spec.name);
    let shown = (result.spec.present)(&result.outcomes);
    for table in &shown.tables {
        write(&folder.join(format!("{}.md", table.name)), format!("# {}\n\n{}", table.title, table.markdown()))?;
        write(&folder.join(format!("{}.csv", table.name)), table.csv())?;
    }
    for (name, _, figure) in &shown.figures {
        std::fs::create_dir_all(&folder).map_err(|why| ReproduceError::Write { path: folder.clone(), why })?;
        // A figure whose jobs all failed has nothing to show.
        match figure.save(&folder.join(format!("{name}.svg"))) {
            Err(PlotError::Nothing) => {}
            saved => saved?,
        }
    }
    Ok(shown)
}

/// Writes the report and the dated result.
pub(super) fn write_report(
    out: &Path,
    scope: &Scope,
    results: &[(SpecResult, Presentation)],
) -> Result<(), ReproduceError> {
    let environment = Environment::here();
    let date = now();
    write(&out.join("report.html"), page::render(&environment, &date, scope, results))?;
    let specs = results.iter().map(|(result, _)| {
        json!({ "name": result.spec.name, "missing": result.missing, "data": result.data, "outcomes": result.outcomes })
    });
    let dated = json!({
        "date": date,
        "environment": environment,
        "arguments": std::env::args().skip(1).collect::<Vec<_>>(),
        "scope": scope,
        "specs": specs.collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&dated).expect("names and finite numbers only");
    write(&out.join("runs").join(format!("{}.json", date.replace(':', "-"))), text)
}
