//! The report: one HTML page that needs nothing else.

use std::fmt::Write;

use super::environment::Environment;
use super::job::{Extent, Scope};
use super::run::SpecResult;
use super::table::escape;
use crate::specs::Presentation;

const STYLE: &str = include_str!("page.css");
/// Tables beyond so many rows are folded away.
const FOLDED: usize = 12;

/// Writing to a string cannot fail.
macro_rules! push {
    ($page:expr, $($text:tt)*) => { let _ = write!($page, $($text)*); };
}

pub(super) fn render(
    environment: &Environment,
    date: &str,
    scope: &Scope,
    sections: &[(SpecResult, Presentation)],
) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>UCL-sketch: the evaluation, rerun</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<h1>UCL-sketch: the evaluation, rerun</h1>\n"
    );
    let extent = match scope.extent {
        Extent::Full => "The paper's ranges",
        Extent::Quick => "A quick run: fewer budgets, seeds and epochs than the paper's",
        Extent::Slice => "A slice, to see whether it runs at all: the figures mean nothing",
    };
    push!(
        page,
        "<p>{extent}; {} seed(s). {date}, {}, {} threads, {}, {}.</p>\n",
        scope.seeds.len(),
        escape(&environment.cpu),
        environment.cores,
        escape(&environment.os),
        escape(&environment.version)
    );
    page += "<nav>";
    for (result, _) in sections {
        push!(page, "<a href=\"#{0}\">{0}</a> ", result.spec.name);
    }
    page += "</nav>\n";
    for (result, shown) in sections {
        section(&mut page, result, shown);
    }
    page + "</body>\n</html>\n"
}

fn section(page: &mut String, result: &SpecResult, shown: &Presentation) {
    let spec = result.spec;
    push!(page, "<h2 id=\"{}\">{}</h2>\n<p>{}</p>\n", spec.name, escape(spec.title), code(spec.about));
    if !spec.labels.is_empty() {
        push!(page, "<p class=\"dim\">In the paper: {}.</p>\n", code(&labels(spec.labels)));
    }
    page.push_str("<ul>\n");
    for identity in &result.data {
        push!(page, "<li>{}: {}</li>\n", escape(&identity.dataset), escape(&identity.about));
    }
    if !result.missing.is_empty() {
        push!(page, "<li>Left out, for nobody has registered them: {}.</li>\n", escape(&result.missing.join(", ")));
    }
    for outcome in result.outcomes.iter().filter(|outcome| outcome.error.is_some()) {
        push!(
            page,
            "<li>Failed: {}: {}</li>\n",
            escape(&outcome.job),
            escape(outcome.error.as_deref().unwrap_or_default())
        );
    }
    for remark in &shown.remarks {
        push!(page, "<li>{}</li>\n", code(remark));
    }
    page.push_str("</ul>\n");
    for (_, caption, figure) in &shown.figures {
        if let Ok(svg) = figure.svg() {
            push!(page, "<figure>{svg}<figcaption>{}</figcaption></figure>\n", escape(caption));
        }
    }
    for table in &shown.tables {
        if table.rows.is_empty() {
            continue;
        }
        if table.rows.len() > FOLDED {
            push!(page, "<details><summary>{}</summary>\n{}</details>\n", code(&table.title), table.html());
        } else {
            push!(page, "<h3>{}</h3>\n{}", code(&table.title), table.html());
        }
    }
}

/// The labels of a spec as text.
pub(super) fn labels(labels: &[&str]) -> String {
    labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ")
}

/// Text as HTML, with `this` as code.
fn code(text: &str) -> String {
    let parts: Vec<String> = text.split('`').map(escape).collect();
    parts
        .into_iter()
        .enumerate()
        .map(|(i, part)| if i % 2 == 1 { format!("<code>{part}</code>") } else { part })
        .collect()
}
