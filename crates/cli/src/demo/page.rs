//! The report: one HTML file that needs nothing else.

use std::fmt::Write;

use super::{BEST, BUDGET, COUNT_MIN, EXAMPLE_HEADER, Findings, HEADER, cells, example_cells, plots};
use crate::show::{bytes, count, figure};

const STYLE: &str = include_str!("page.css");

pub fn render(findings: &Findings) -> String {
    let truth = findings.stream.truth();
    let aae = |contender: usize| findings.contenders[contender].row.aae.unwrap_or(f64::NAN);
    let items = count(findings.stream.items());
    let keys = count(truth.distinct() as u64);
    let budget = bytes(BUDGET);
    let map = bytes(truth.exact_map_bytes());
    let tiles = [
        (keys.clone(), format!("keys, {items} items")),
        (budget.clone(), format!("of memory; an exact hash map takes {map}")),
        (figure(aae(BEST)), "mean absolute error, by default: evictions go up the link".to_owned()),
        (figure(aae(COUNT_MIN)), "mean absolute error, with Count-Min in the same memory".to_owned()),
    ];
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>UCL-sketch: near-exact counts in {budget}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>Near-exact counts in {budget}</h1>\n\
         <p class=\"lead\">How often did each key occur? Every method below read the same stream once in the same memory, \
         and was then asked for the count of every key.</p>\n<div class=\"tiles\">\n"
    );
    for (figure, what) in tiles {
        push(&mut page, format_args!("<div><b>{figure}</b><span>{what}</span></div>\n"));
    }
    page += "</div>\n<h2>The methods</h2>\n";
    table(&mut page, &HEADER, findings.contenders.iter().map(cells), Some(BEST));
    page += "<p class=\"note\">AAE and ARE: mean absolute and mean relative error over all keys. Memory is that of the \
             device that sees the stream; uplink is all that it sends to the server that answers. If an exact hash map \
             fits on the device, use that.</p>\n<h2>Five keys</h2>\n";
    table(&mut page, &EXAMPLE_HEADER, findings.examples.iter().map(example_cells), None);
    page += "<p class=\"note\">The true count always lies between “at least” and “at most”.</p>\n";
    figure_block(
        &mut page,
        "Estimated against true counts",
        "Each dot stands for keys of similar counts; larger dots stand for more keys. On the diagonal the estimate is right. \
         The row at the bottom (0) has the keys that were never reported.",
        &plots::estimated_against_true(findings),
    );
    figure_block(
        &mut page,
        "Error by frequency",
        "Rare keys are the hardest to estimate: they share their counters with frequent ones.",
        &plots::error_by_frequency(findings),
    );
    figure_block(
        &mut page,
        "How the network learns",
        "The paper’s decoder trains on the counters alone, without any true count.",
        &plots::loss_curve(findings),
    );
    push(
        &mut page,
        format_args!(
            "<footer><p>Stream <code>{stream}</code>, seed {seed}, made and measured in {seconds:.1} s by ucl {version}. To \
             compare methods yourself:</p>\n<pre>ucl eval --input {stream} --seed {seed} --memory 64KB \
             --method cm,ucl-learned,ucl-em,ucl-delta,ucl-exact</pre>\n<p>Your own data: \
             <code>ucl count FILE --audit</code></p></footer>\n</main>\n</body>\n</html>\n",
            stream = findings.stream.name(),
            seed = findings.seed,
            seconds = findings.seconds,
            version = env!("CARGO_PKG_VERSION"),
        ),
    );
    page
}

fn push(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = page.write_fmt(text);
}

/// A table whose first column is text. All of its content is ours, so nothing needs escaping.
fn table(page: &mut String, header: &[&str], rows: impl Iterator<Item = Vec<String>>, best: Option<usize>) {
    page.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    header.iter().for_each(|name| push(page, format_args!("<th>{name}</th>")));
    page.push_str("</tr></thead>\n<tbody>\n");
    for (i, row) in rows.enumerate() {
        page.push_str(if best == Some(i) { "<tr class=\"best\">" } else { "<tr>" });
        row.iter().for_each(|cell| push(page, format_args!("<td>{cell}</td>")));
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div>\n");
}

fn figure_block(page: &mut String, title: &str, caption: &str, svg: &str) {
    push(page, format_args!("<h2>{title}</h2>\n<figure>{svg}\n<figcaption>{caption}</figcaption></figure>\n"));
}
