//! The answer for people.

use std::fmt::Write;

use super::answer::{Answer, Row};
use super::histogram;
use super::over_time::{self, Changes, Last, Span};
use super::warnings::{LOST_UNKNOWN, lost_unknown, more_keys, no_ip, substitute, unexplained};
use crate::show::{bytes, count, counted, figure, rate, shorten, table};

/// Longer keys are cut off in tables; `--json`, `--all` and `--out` have them whole.
const KEY_WIDTH: usize = 100;

/// Everything: tables and summary.
pub fn whole(answer: &Answer) -> String {
    let mut text = tables(answer);
    if !text.is_empty() {
        text.push('\n');
    }
    summary(answer, &mut text);
    text
}

/// While the stream runs: where it is, and the tables.
pub fn brief(answer: &Answer) -> String {
    let (items, keys) = (counted(answer.items, "item"), counted(answer.keys as u64, "known key"));
    format!("after {:.1} s: {items}, {keys}\n{}\n", answer.seconds, tables(answer))
}

fn tables(answer: &Answer) -> String {
    let mut blocks = Vec::new();
    if !answer.top.is_empty() {
        blocks.push(top(&answer.top, answer.total, answer.audit.is_some()));
    }
    if let Some(over_time) = &answer.over_time {
        blocks.extend(over_time.last.as_ref().map(last));
        blocks.extend(over_time.changes.as_ref().map(changes));
    }
    if !answer.queries.is_empty() {
        blocks.push(queries(&answer.queries));
    }
    if !answer.prefixes.is_empty() {
        blocks.push(prefixes(answer));
    }
    blocks.join("\n")
}

/// Appends the true count where it is wanted. Of a key without a name it cannot be told.
fn with_truth(mut cells: Vec<String>, truth: Option<u64>, audited: bool) -> Vec<String> {
    cells.extend(audited.then(|| truth.map_or("?".to_owned(), count)));
    cells
}

fn header<'h>(names: &[&'h str], audited: bool) -> Vec<&'h str> {
    names.iter().copied().chain(audited.then_some("true")).collect()
}

/// The most frequent keys, with their shares of the whole.
pub fn top(rows: &[Row], total: u64, audited: bool) -> String {
    let share = |row: &Row| format!("{:.2}%", 100.0 * row.estimate as f64 / total.max(1) as f64);
    let cells = |(i, row): (usize, &Row)| {
        let key = shorten(&row.key.shown, KEY_WIDTH);
        let cells = vec![(i + 1).to_string(), key, count(row.estimate), count(row.lower), count(row.upper), share(row)];
        with_truth(cells, row.truth, audited)
    };
    let header = header(&["#", "key", "estimate", "at least", "at most", "share"], audited);
    table(&header, &[true, false, true, true, true, true, true], rows.iter().enumerate().map(cells))
}

/// "4 epochs, from item 48,001 on", or "to 64,000"
fn span(span: Span) -> String {
    let to = span.last_item.map_or(" on".to_owned(), |item| format!(" to {}", count(item)));
    let from = span.first_item.map_or(String::new(), |item| format!(", from item {}{to}", count(item)));
    format!("{}{from}", counted(span.epochs as u64, "epoch"))
}

fn last(last: &Last) -> String {
    let cells = |(i, row): (usize, &over_time::Count)| {
        vec![(i + 1).to_string(), shorten(&row.key.shown, KEY_WIDTH), count(row.count)]
    };
    let rows = table(&["#", "key", "count"], &[true, false, true], last.keys.iter().enumerate().map(cells));
    format!("In the last {}:\n{rows}", span(last.span))
}

fn changes(changes: &Changes) -> String {
    if changes.keys.is_empty() {
        return "Changes: too few epochs to compare yet; a smaller --interval makes more of them.\n".to_owned();
    }
    let cells = |row: &over_time::Change| {
        let change = row.after - row.before;
        vec![
            shorten(&row.key.shown, KEY_WIDTH),
            format!("{:.1}", row.before),
            format!("{:.1}", row.after),
            format!("{change:+.1}"),
        ]
    };
    let header = ["key", "before", "after", "change"];
    let rows = table(&header, &[false, true, true, true], changes.keys.iter().map(cells));
    let (before, after) = (counted(changes.before.epochs as u64, "epoch"), span(changes.after));
    format!("What changed most, per epoch: the last {after}, against the {before} before:\n{rows}")
}

/// Keys that were asked for.
pub fn queries(rows: &[Row]) -> String {
    let audited = rows.iter().any(|row| row.truth.is_some());
    let cells = |row: &Row| {
        let key = shorten(&row.key.shown, KEY_WIDTH);
        let cells = vec![key, count(row.estimate), count(row.lower), count(row.upper), row.source.to_owned()];
        with_truth(cells, row.truth, audited)
    };
    let header = header(&["query", "estimate", "at least", "at most", "source"], audited);
    table(&header, &[false, true, true, true, false, true], rows.iter().map(cells))
}

fn prefixes(answer: &Answer) -> String {
    let rows = answer.prefixes.iter().map(|sum| {
        let cells = vec![
            shorten(&sum.prefix, KEY_WIDTH),
            count(sum.keys as u64),
            count(sum.estimate),
            count(sum.lower),
            count(sum.upper),
        ];
        with_truth(cells, sum.truth, answer.audit.is_some())
    });
    let header = header(&["prefix", "known keys", "estimate", "at least", "at most"], answer.audit.is_some());
    table(&header, &[false, true, true, true, true, true], rows)
}

fn summary(answer: &Answer, text: &mut String) {
    let mut line = |label: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, " {label:<9} {value}");
    };
    match answer.weight {
        None => line("items", count(answer.items)),
        Some(weight) => {
            let scale =
                answer.scale.map_or(String::new(), |scale| format!(" (--scale {scale}: weights times {scale})"));
            line("items", format!("{} of weight {}{scale}", count(answer.items), count(weight)));
        }
    }
    let lost = if lost_unknown(answer) { LOST_UNKNOWN.to_owned() } else { about(answer.never_reported) };
    line("keys", format!("{} known, {lost} never reported", count(answer.keys as u64)));
    if let Some(advice) = more_keys(answer) {
        line("", advice);
    }
    line("entropy", format!("{:.3} bits", answer.entropy));
    if !answer.histogram.is_empty() {
        line("counts", "how many keys have a count in each range; bars are logarithmic".to_owned());
    }
    for bar in histogram::lines(&answer.histogram) {
        line("", bar);
    }
    line("memory", memory(answer));
    if let Some(sent) = answer.uplink_bytes {
        let each = sent as f64 / answer.items.max(1) as f64;
        line("uplink", format!("{each:.3} bytes an item, {} in all", bytes(sent as usize)));
    }
    line("beside it", beside(answer));
    if let Some(peak) = answer.peak_resident_bytes {
        line("process", format!("{} of RAM at its peak, everything included", bytes(peak)));
    }
    let per_second = rate(answer.items as f64 / answer.seconds.max(1e-9));
    let decoding = answer.seconds - answer.counting;
    line("speed", format!("{per_second} items/s: {:.2} s, of which {decoding:.2} s for this answer", answer.seconds));
    line("decoder", substitute(answer).unwrap_or_else(|| answer.decoder.to_owned()));
    if let Some(check) = &answer.self_check {
        line("check", check.to_string());
    }
    if let Some(told) = unexplained(answer) {
        line(if answer.self_check.is_some() { "" } else { "check" }, told);
    }
    if let Some(kept) = &answer.over_time {
        let each = kept.bytes_kept / kept.epochs_kept.max(1);
        let epochs = counted(kept.epochs_kept as u64, "epoch");
        line("kept", format!("{epochs}, {} each on average, beside the sketch", bytes(each)));
    }
    line("seed", answer.seed.to_string());
    if let Some(told) = answer.skipped.told() {
        line("skipped", told);
    }
    if answer.zero_weight > 0 {
        line("weight 0", counted(answer.zero_weight, "record") + ", not counted");
    }
    if let Some(told) = no_ip(answer) {
        line("no key", told);
    }
    if let Some(audit) = &answer.audit {
        let exact = 100.0 * audit.exact;
        line("audit", format!("{} keys, {exact:.2}% of them exact", count(audit.keys as u64)));
        let (aae, are) = (figure(audit.aae), figure(audit.are));
        line("", format!("AAE {aae}, ARE {are}, largest error {}", count(audit.max_error)));
        line("", format!("{} outside of their range", count(audit.bound_violations)));
        line("", format!("an exact hash map takes {}", bytes(audit.exact_map_bytes)));
    }
}

fn about(lost: f64) -> String {
    match lost {
        lost if lost < 0.05 => "about 0".to_owned(),
        lost if lost < 10.0 => format!("about {lost:.1}"),
        lost => format!("about {}", count(lost.round() as u64)),
    }
}

fn memory(answer: &Answer) -> String {
    let name = |part: &str| {
        match part {
            "heavy" => "heavy part",
            "bloom" => "Bloom filter",
            "deferred" => "write buffer",
            other => other,
        }
        .to_owned()
    };
    let parts: Vec<String> =
        answer.memory.parts.iter().map(|(part, size)| format!("{} {}", name(part), bytes(*size))).collect();
    let planes = answer.planes.unwrap_or(1);
    let budget = answer.memory.budget.map_or(String::new(), |budget| format!(" of {}", bytes(planes * budget)));
    let each = match answer.planes {
        None => String::new(),
        Some(planes) => format!(" ({planes} data planes, merged for this answer); in each"),
    };
    format!("{}{budget}{each}: {}", bytes(planes * answer.memory.used), parts.join(", "))
}

/// The control plane's memory, by part, and per key where there are enough of them for that to mean
/// anything.
fn beside(answer: &Answer) -> String {
    let parts: Vec<String> =
        answer.control.parts.iter().map(|(part, size)| format!("{part} {}", bytes(*size))).collect();
    let each = match answer.keys {
        0..1_000 => String::new(),
        keys => format!(", {} bytes a key", answer.control.used / keys),
    };
    format!("{}{each}: {}", bytes(answer.control.used), parts.join(", "))
}
