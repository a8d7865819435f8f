//! Everything a run leaves behind: tables, figures, the report and the dated result.

use std::path::Path;

use serde_json::json;

use super::environment::{Environment, now};
use super::job::Scope;
use super::run::SpecResult;
use super::{ReproduceError, page, write};

/// Writes all of it.
pub(super) fn write_all(out: &Path, scope: &Scope, results: &[SpecResult]) -> Result<(), ReproduceError> {
    let (environment, date) = (Environment::here(), now());
    let mut sections = Vec::new();
    for result in results {
        let folder = out.join(result.spec.name);
        let shown = (result.spec.present)(&result.outcomes);
        for table in &shown.tables {
            write(&folder.join(format!("{}.md", table.name)), format!("# {}\n\n{}", table.title, table.markdown()))?;
            write(&folder.join(format!("{}.csv", table.name)), table.csv())?;
        }
        for (name, _, figure) in &shown.figures {
            std::fs::create_dir_all(&folder).map_err(|why| ReproduceError::Write { path: folder.clone(), why })?;
            for end in ["svg", "png"] {
                // A figure whose jobs all failed has nothing to show.
                match figure.save(&folder.join(format!("{name}.{end}"))) {
                    Err(crate::plot::PlotError::Nothing) => {}
                    saved => saved?,
                }
            }
        }
        sections.push((result, shown));
    }
    write(&out.join("report.html"), page::render(&environment, &date, scope, &sections))?;
    let specs = results.iter().map(|result| {
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
