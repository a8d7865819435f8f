//! The answer for people.

use std::fmt::Write;

use super::answer::Answer;
use super::over_time::{self, Changes, Last, Span};
use super::warnings::{crowded, lost_unknown, more_keys, no_ip, no_key, notes};
use crate::present::{header, histogram, key_table, queries, self_check, top, with_truth};
use crate::show::{bytes, count, counted, figure, rate};

/// Tables and summary; more of the summary if it is to be verbose.
pub fn whole(answer: &Answer, verbose: bool) -> String {
    let mut text = tables(answer);
    if !text.is_empty() {
        text.push('\n');
    }
    summary(answer, verbose, &mut text);
    text
}

/// While the stream runs: where it is, and the tables.
pub fn brief(answer: &Answer) -> String {
    let items = counted(answer.items, "item");
    let keys = counted(answer.keys as u64, "known key");
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

/// "4 epochs, from item 48,001 on", or "to 64,000"
fn span(span: Span) -> String {
    let to = span.last_item.map_or(" on".to_owned(), |item| format!(" to {}", count(item)));
    let from = span.first_item.map_or(String::new(), |item| format!(", from item {}{to}", count(item)));
    format!("{}{from}", counted(span.epochs as u64, "epoch"))
}

fn last(last: &Last) -> String {
    let cells =
        |(i, row): (usize, &over_time::Count)| vec![(i + 1).to_string(), row.key.shown.clone(), count(row.count)];
    let rows = last.keys.iter().enumerate().map(cells).collect();
    let rows = key_table(&["#", "key", "count"], &[true, false, true], 1, rows);
    format!("In the last {}:\n{rows}", span(last.span))
}

fn changes(changes: &Changes) -> String {
    if changes.keys.is_empty() {
        return "Changes: too few epochs to compare; rerun with a smaller --interval.\n".to_owned();
    }
    let cells = |row: &over_time::Changed| {
        let change = row.after - row.before;
        vec![row.key.shown.clone(), format!("{:.1}", row.before), format!("{:.1}", row.after), format!("{change:+.1}")]
    };
    let header = ["key", "before", "after", "change"];
    let rows = key_table(&header, &[false, true, true, true], 0, changes.keys.iter().map(cells).collect());
    let before = counted(changes.before.epochs as u64, "epoch");
    let after = span(changes.after);
    format!("Largest changes per epoch, the last {after}, compared with the {before} before:\n{rows}")
}

fn prefixes(answer: &Answer) -> String {
    let rows = answer.prefixes.iter().map(|sum| {
        let cells =
            vec![sum.prefix.clone(), count(sum.keys as u64), count(sum.estimate), count(sum.lower), count(sum.upper)];
        with_truth(cells, sum.truth, answer.audit.is_some())
    });
    let header = header(&["prefix", "known keys", "estimate", "at least", "at most"], answer.audit.is_some());
    key_table(&header, &[false, true, true, true, true, true], 0, rows.collect())
}

fn summary(answer: &Answer, verbose: bool, text: &mut String) {
    let mut line = |label: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, " {label:<9} {value}");
    };
    line("counted", counted_what(answer));
    line("sketch", sketch(answer));
    line("accuracy", accuracy(answer));
    if verbose {
        details(answer, &mut line);
    }
    for advice in more_keys(answer).into_iter().chain(crowded(answer)) {
        line("advice", advice);
    }
    if let Some(sent) = answer.uplink_bytes.filter(|_| answer.items > 0) {
        let each = sent as f64 / answer.items as f64;
        line("uplink", format!("{each:.3} bytes per item, {} in all", bytes(sent as usize)));
    }
    for told in notes(answer) {
        line("note", told);
    }
    if let Some(told) = answer.skipped.told() {
        line("skipped", told);
    }
    if answer.zero_weight > 0 {
        line("weight 0", counted(answer.zero_weight, "record") + ", not counted");
    }
    for told in no_ip(answer).into_iter().chain(no_key(answer)) {
        line("no key", told);
    }
    if let Some(audit) = &answer.audit {
        let exact = 100.0 * audit.exact;
        line("audit", format!("{}, {exact:.2}% of them exact", counted(audit.keys as u64, "key")));
        let (aae, are) = (figure(audit.aae), figure(audit.are));
        line("", format!("AAE {aae}, ARE {are}, largest error {}", count(audit.max_error)));
        line("", format!("{} outside their guaranteed range", count(audit.bound_violations)));
        line("", format!("an exact hash map takes {}", bytes(audit.exact_map_bytes)));
    }
}

/// Formats the number of items and keys, and the speed.
fn counted_what(answer: &Answer) -> String {
    let weight = answer.weight.map_or(String::new(), |weight| {
        let scale = answer.scale.map_or(String::new(), |scale| format!(" (weights times {scale}, by --scale)"));
        format!(" of weight {}{scale}", count(weight))
    });
    let missed = if lost_unknown(answer) { "an unknown number".to_owned() } else { about(answer.never_reported) };
    let per_second = rate(answer.items as f64 / answer.seconds.max(1e-9));
    let items = counted(answer.items, "item");
    let keys = counted(answer.keys as u64, "key");
    format!("{items}{weight}, {keys} known, {missed} missed; {:.2} s, {per_second} items/s", answer.seconds)
}

/// Formats the sizes of the sketch.
fn sketch(answer: &Answer) -> String {
    let planes = answer.planes.unwrap_or(1);
    let used = bytes(planes * answer.memory.used);
    let budget = answer.memory.budget.map_or(String::new(), |budget| format!(" of {}", bytes(planes * budget)));
    let each = answer.planes.map_or(String::new(), |planes| format!(" ({planes} data planes, merged)"));
    let interval = match answer.interval {
        Some(items) => format!(" every {}", counted(items, "item")),
        None if answer.by_load => " by load".to_owned(),
        None => String::new(),
    };
    let decoder = answer.configured;
    let memory = bytes(answer.control.used);
    format!("{used}{budget}{each}; mode {decoder}{interval}, decoder memory {memory}; seed {}", answer.seed)
}

/// Formats how far to trust the counts.
fn accuracy(answer: &Answer) -> String {
    let check = answer.self_check.as_ref().map_or(String::new(), |check| format!("; {}", self_check(check)));
    format!("exact for {} of {}{check}", count(answer.exact_keys), counted(answer.keys as u64, "known key"))
}

/// Adds the lines that are shown with `--verbose`.
fn details(answer: &Answer, line: &mut impl FnMut(&str, String)) {
    line("entropy", format!("{:.3} bits", answer.entropy));
    if !answer.histogram.is_empty() {
        line("counts", "number of keys by their count; the bars are logarithmic".to_owned());
    }
    for bar in histogram::lines(&answer.histogram) {
        line("", bar);
    }
    let name = |part: &'static str| match part {
        "heavy" => "heavy part",
        "bloom" => "filter",
        "deferred" => "write buffer",
        other => other,
    };
    let listed = |parts: &[(&'static str, usize)]| {
        let each = parts.iter().map(|(part, size)| format!("{} {}", name(part), bytes(*size)));
        each.collect::<Vec<_>>().join(", ")
    };
    let in_each = if answer.planes.is_some() { "in each data plane: " } else { "" };
    line("memory", format!("{in_each}{}", listed(&answer.memory.parts)));
    // Few keys say nothing about the memory of each.
    let each = match answer.keys {
        0..1_000 => String::new(),
        keys => format!("{} bytes per key: ", answer.control.used / keys),
    };
    line("decoder", format!("{each}{}", listed(&answer.control.parts)));
    if let Some(peak) = answer.peak_resident_bytes {
        line("process", format!("{} of RAM at its peak, everything included", bytes(peak)));
    }
    let decoding = answer.seconds - answer.counting;
    line("speed", format!("{:.2} s to count, {decoding:.2} s to answer", answer.counting));
    if let Some(kept) = &answer.over_time {
        let each = kept.bytes_kept / kept.epochs_kept.max(1);
        let epochs = counted(kept.epochs_kept as u64, "epoch");
        line("kept", format!("{epochs}, {} of decoder memory each on average", bytes(each)));
    }
}

fn about(lost: f64) -> String {
    match lost {
        lost if lost < 0.05 => "about 0".to_owned(),
        lost if lost < 10.0 => format!("about {lost:.1}"),
        lost => format!("about {}", count(lost.round() as u64)),
    }
}
