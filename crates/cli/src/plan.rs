//! `ucl plan`: predicts accuracy and uplink of a memory budget, before there is a stream.

use serde::Serialize;
use ucl_lab::Row;
use ucl_lab::predict::{Candidate, Scenario};
use ucl_sketch::{Bytes, KeyFormat};

use crate::fail::Usage;
use crate::show;
use crate::spinner::Spinner;

/// Predict the error and uplink of a memory budget, for each mode.
///
/// Runs the real sketch in every mode on a generated stream with the number of keys you expect. For
/// each mode it prints the sizes that the planner chose, the share of keys known by name, the error
/// per key and the bytes sent per item. The last line recommends a mode. Your stream may be more or
/// less skewed than the generated one: see --skew.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Memory budget of the device that sees the stream.
    #[arg(short, long, value_name = "SIZE", default_value = "64KB")]
    memory: Bytes,

    /// Size of every key in bytes: 4, 8, 13 or 16, or `any` for keys of any length.
    #[arg(long, value_name = "BYTES", value_parser = crate::count::values::key_bytes, default_value = "any")]
    key_bytes: KeyFormat,

    /// Expected number of distinct keys [default: a quarter of the budget in bytes].
    #[arg(long, value_name = "N")]
    expected_keys: Option<u64>,

    /// Number of items in the generated stream [default: ten per key, from 100,000 to 2,000,000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    items: Option<u64>,

    /// Skew of the generated stream: 0 if all keys are equally frequent, 1.5 if a few dominate.
    #[arg(long, value_name = "SKEW", default_value_t = 1.0, value_parser = skew)]
    skew: f64,

    /// Bytes per item that may go up the link, for mode budget [default: a half and a quarter of
    /// what mode exact sends].
    #[arg(long, value_name = "BYTES", value_parser = crate::count::values::bytes_per_item, allow_negative_numbers = true)]
    uplink: Option<f64>,

    /// Number of training epochs, for the modes learned and refined.
    #[arg(long, value_name = "N", default_value_t = 30)]
    epochs: usize,

    /// Seed of the hash functions, the network and the generated stream.
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,

    /// Print one JSON object per mode.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  ucl plan --memory 64KB --key-bytes 13 --expected-keys 100000
  ucl plan --memory 16KB --expected-keys 5000 --skew 0.8";

fn skew(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(skew) if (0.0..=4.0).contains(&skew) => Ok(skew),
        _ => Err("give a number from 0 to 4".to_owned()),
    }
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let expected = args.expected_keys.unwrap_or(args.memory.0 as u64 / 4).max(1);
    let plain = Scenario::new(args.memory.0, args.key_bytes, expected);
    let scenario = Scenario {
        items: args.items.unwrap_or(plain.items),
        skew: args.skew,
        epochs: args.epochs,
        seed: args.seed,
        ..plain
    };
    if scenario.items < expected {
        return Err(Usage(format!(
            "{expected} keys cannot occur in a stream of {} items: raise --items",
            scenario.items
        ))
        .into());
    }
    let spinner = Spinner::new();
    spinner.say("generating a stream");
    let stream = scenario.stream();
    let fits = |candidate: &Candidate| candidate.epochs.interval().is_none_or(|interval| interval < scenario.items);
    let (exact, others): (Vec<_>, Vec<_>) =
        Candidate::unlimited().into_iter().filter(fits).partition(|candidate| candidate.method == "ucl-exact");
    let predict = |candidate: Candidate| {
        spinner.say(format!("trying {}", candidate.method));
        Ok::<_, anyhow::Error>(Line::new(candidate, scenario.predict(&stream, candidate)?))
    };
    let mut lines = exact.into_iter().map(predict).collect::<Result<Vec<Line>, _>>()?;
    let sent = lines.first().and_then(|exact| exact.uplink_bytes_per_item);
    if args.key_bytes.any_length() {
        lines.push(predict(Candidate::coded(SHORT_CODE))?);
    }
    let limits = args.uplink.map_or(sent.map_or(Vec::new(), shares), |limit| vec![limit]);
    for candidate in limits.into_iter().map(Candidate::within).chain(others) {
        lines.push(predict(candidate)?);
    }
    spinner.clear();
    // A table needs more than the smallest sketch does.
    let sketches = |line: &&Line| line.mode == "delta" || line.mode == "em";
    if let Some(error) = lines.iter().filter(sketches).find_map(|line| line.error.clone()) {
        return Err(Usage(error).into());
    }
    if args.json {
        let objects: Result<Vec<String>, _> = lines.iter().map(serde_json::to_string).collect();
        return show::print(objects?.join("\n") + "\n");
    }
    show::print(text(&lines, &scenario, stream.truth().distinct() as u64))
}

/// Bits of a code that is shorter than by default. Among a million keys, the chance that a key
/// shares its code is 1 in a million.
const SHORT_CODE: u8 = 40;

/// Returns a half and a quarter of an uplink, with two digits, as people type them.
fn shares(sent: f64) -> Vec<f64> {
    [2.0, 4.0].map(|part| format!("{:.1e}", sent / part).parse().expect("a number as printed")).to_vec()
}

/// One mode's prediction.
#[derive(Serialize)]
struct Line {
    mode: String,
    /// "by load", "every N items" or "none".
    epochs: String,
    interval: Option<u64>,
    /// Limit of the uplink, in bytes per item.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<f64>,
    /// Bits of the codes of keys of any length, where they are not 64.
    #[serde(skip_serializing_if = "Option::is_none")]
    code_bits: Option<u8>,
    /// Bytes used on the device that sees the stream.
    memory: usize,
    slots: Option<u64>,
    rows: Option<u64>,
    width: Option<u64>,
    counter_bits: Option<u64>,
    bloom_bits: Option<u64>,
    bloom_hashes: Option<u64>,
    /// Share of the keys that the control plane knows by name.
    expected_coverage: Option<f64>,
    aae: Option<f64>,
    are: Option<f64>,
    uplink_bytes_per_item: Option<f64>,
    /// Bytes used by the control plane.
    control_bytes: Option<usize>,
    /// Why there is no prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Line {
    fn new(candidate: Candidate, row: Row) -> Self {
        let size = |name: &str| row.shape.get(name).copied();
        Self {
            mode: candidate.method.trim_start_matches("ucl-").to_owned(),
            epochs: candidate.epochs.to_string(),
            interval: candidate.epochs.interval(),
            limit: candidate.uplink,
            code_bits: candidate.code_bits,
            memory: row.memory_used.unwrap_or(row.memory_budget),
            slots: size("slots"),
            rows: size("rows"),
            width: size("width"),
            counter_bits: size("counter_bits"),
            bloom_bits: size("bloom_bits"),
            bloom_hashes: size("bloom_hashes"),
            expected_coverage: row.coverage,
            aae: row.aae,
            are: row.are,
            uplink_bytes_per_item: row.uplink_bytes_per_item,
            control_bytes: row.control_bytes,
            error: row.error,
        }
    }

    /// Returns what to set for this mode.
    fn setting(&self) -> Option<String> {
        let interval = self.interval.map(|items| format!("every {}", show::count(items)));
        let limit = || self.limit.map(|limit| format!("uplink {limit}"));
        let code = || self.code_bits.map(|bits| format!("code-bits {bits}"));
        interval.or_else(limit).or_else(code).or_else(|| (self.epochs == "by load").then(|| self.epochs.clone()))
    }
}

fn text(lines: &[Line], scenario: &Scenario, distinct: u64) -> String {
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let cells = |line: &Line| {
        let counters = line.rows.zip(line.width).zip(line.counter_bits);
        vec![
            line.mode.clone(),
            dash(line.setting()),
            show::bytes(line.memory),
            dash(line.slots.map(show::count)),
            dash(counters.map(|((rows, width), bits)| format!("{rows}×{} of {bits} bits", show::count(width)))),
            dash(line.bloom_bits.filter(|&bits| bits > 0).map(|bits| {
                let hashes = line.bloom_hashes.map_or(String::new(), |hashes| format!(", {hashes} a key"));
                show::bytes((bits / 8) as usize) + &hashes
            })),
            dash(line.expected_coverage.map(|share| format!("{:.2}%", 100.0 * share))),
            dash(line.aae.map(show::figure)),
            dash(line.are.map(show::figure)),
            dash(line.uplink_bytes_per_item.map(show::figure)),
        ]
    };
    let header =
        ["mode", "setting", "memory", "slots", "counters", "filter", "coverage", "AAE", "ARE", "uplink B/item"];
    let right = [false, false, true, true, true, true, true, true, true, true];
    let table = show::table(&header, &right, lines.iter().map(cells));
    let Scenario { items, skew, epochs, memory, .. } = *scenario;
    let items = show::count(items);
    let failed = lines.iter().filter_map(|line| Some(format!("{}: {}\n", line.mode, line.error.as_ref()?)));
    let failed = failed.collect::<String>();
    let advice = advice(lines, memory) + &shorter_codes(lines, distinct);
    let distinct = show::count(distinct);
    format!(
        "{table}{failed}\n\
         Coverage, errors and uplink were measured on a generated stream: {items} items over {distinct} keys, Zipf\n\
         distribution with skew {skew}. The modes learned and refined trained for {epochs} epochs.\n\
         To run a mode: ucl count --mode MODE --memory SIZE --expected-keys N, and --interval ITEMS for\n\
         \"every\", --uplink BYTES for \"uplink\", --code-bits BITS for \"code-bits\"\n\
         {advice}\n"
    )
}

/// Recommends a mode by the measured figures.
fn advice(lines: &[Line], memory: usize) -> String {
    let figures = |line: &Line| Some((line.aae?, line.uplink_bytes_per_item?));
    let named = |mode: &str| lines.iter().find(|line| line.mode == mode && line.error.is_none());
    if let Some(map) = named("exact-map").filter(|map| map.memory <= memory) {
        return format!("Use a hash map: it is exact, and takes {} for all keys.", show::bytes(map.memory));
    }
    let sketches = lines.iter().filter(|line| line.rows.is_some() && line.mode != "exact");
    let sketches = sketches.filter_map(|line| Some((line, figures(line)?)));
    let Some((exact, (_, sent))) = named("exact").and_then(|line| Some((line, figures(line)?))) else {
        let best = sketches.min_by(|(_, (aae, _)), (_, (other, _))| aae.total_cmp(other));
        return best.map_or(String::new(), |(line, _)| format!("Use {}: it has the smallest error.", described(line)));
    };
    let raw = named("send-keys").and_then(figures);
    if let Some((_, raw)) = raw.filter(|(_, raw)| *raw <= sent) {
        return format!("Send every key as it is: {} bytes per item, fewer than mode exact sends.", show::figure(raw));
    }
    // Whoever cannot send this much wants to send a good deal less: the best at half of it, or else
    // the one that sends least.
    let cheaper: Vec<_> = sketches.filter(|(_, (_, other))| *other < sent).collect();
    let half = cheaper.iter().filter(|(_, (_, other))| *other <= sent / 2.0);
    let other = half
        .min_by(|(_, (aae, _)), (_, (other, _))| aae.total_cmp(other))
        .or_else(|| cheaper.iter().min_by(|(_, (_, sent)), (_, (_, other))| sent.total_cmp(other)));
    let sent = show::figure(sent);
    match other {
        None => format!("Use {}: every count is exact, and no other mode sends less.", described(exact)),
        Some(&(other, (aae, less))) => format!(
            "Use {} if the link can carry {sent} bytes per item: every count is exact. Otherwise use {}: it\n\
             sends {} bytes per item and is off by {} per key on average.",
            described(exact),
            described(other),
            show::figure(less),
            show::figure(aae)
        ),
    }
}

/// Tells what shorter codes save in mode exact, if it is worth it.
fn shorter_codes(lines: &[Line], keys: u64) -> String {
    let sent = |coded: bool| {
        let exact = lines.iter().find(|line| line.mode == "exact" && line.code_bits.is_some() == coded)?;
        exact.uplink_bytes_per_item
    };
    match (sent(false), sent(true)) {
        (Some(whole), Some(short)) if short < 0.8 * whole => {
            let odds = (1u64 << SHORT_CODE) / keys.max(1);
            format!(
                "\nWith --code-bits {SHORT_CODE}, exact sends {} bytes per item. The chance that a count includes another\n\
                 key's is then 1 in {}.",
                show::figure(short),
                show::count(odds)
            )
        }
        _ => String::new(),
    }
}

/// A mode with its setting.
fn described(line: &Line) -> String {
    match (line.interval, line.limit) {
        (Some(items), _) => format!("{} every {} items", line.mode, show::count(items)),
        (None, Some(limit)) => format!("{} with --uplink {limit}", line.mode),
        (None, None) => line.mode.clone(),
    }
}

#[cfg(test)]
mod tests {
    use ucl_sketch::Epochs;

    use super::*;

    fn line(mode: &str, memory: usize, aae: f64, uplink: Option<f64>) -> Line {
        let sketch = (!["exact-map", "send-keys"].contains(&mode)).then_some(4);
        let epochs = if mode == "delta" { Epochs::Every(16_000) } else { Epochs::Open };
        Line {
            mode: mode.to_owned(),
            epochs: epochs.to_string(),
            interval: epochs.interval(),
            limit: None,
            code_bits: None,
            memory,
            slots: sketch,
            rows: sketch,
            width: sketch,
            counter_bits: sketch,
            bloom_bits: sketch,
            bloom_hashes: sketch,
            expected_coverage: Some(1.0),
            aae: Some(aae),
            are: Some(aae),
            uplink_bytes_per_item: uplink,
            control_bytes: None,
            error: None,
        }
    }

    #[test]
    fn shorter_codes_are_named_where_they_save() {
        let coded = |uplink| Line { code_bits: Some(SHORT_CODE), ..line("exact", 60_000, 0.0, Some(uplink)) };
        let told = |uplink| shorter_codes(&[line("exact", 60_000, 0.0, Some(0.5)), coded(uplink)], 1 << 14);
        assert_eq!(told(0.45), "");
        let want = "\nWith --code-bits 40, exact sends 0.200 bytes per item. The chance that a count includes another\n\
                    key's is then 1 in 67,108,864.";
        assert_eq!(told(0.2), want);
    }

    #[test]
    fn the_advice_follows_from_the_figures() {
        let mut lines = vec![
            line("exact", 60_000, 0.0, Some(0.4)),
            line("delta", 60_000, 0.01, Some(0.9)),
            line("em", 60_000, 1.6, Some(0.25)),
            line("send-keys", 0, 0.0, Some(4.0)),
            line("exact-map", 400_000, 0.0, None),
        ];
        let told = advice(&lines, 65_536);
        assert!(told.starts_with("Use exact if the link can carry 0.4") && told.contains("use em: it"), "{told}");
        assert_eq!(advice(&lines, 400_000), "Use a hash map: it is exact, and takes 391KB for all keys.");
        lines.push(Line { limit: Some(0.2), ..line("budget", 60_000, 1.1, Some(0.19)) });
        let told = advice(&lines, 65_536);
        assert!(told.contains("use budget with --uplink 0.2: it"), "{told}");
        lines.pop();
        // At half of it or below, the smallest error counts.
        lines.push(line("learned", 60_000, 0.9, Some(0.2)));
        assert!(advice(&lines, 65_536).contains("use learned: it"), "{}", advice(&lines, 65_536));
        lines.pop();
        lines[2].uplink_bytes_per_item = Some(0.5);
        assert!(advice(&lines, 65_536).ends_with("no other mode sends less."));
        lines[3].uplink_bytes_per_item = Some(0.3);
        assert!(advice(&lines, 65_536).starts_with("Send every key as it is: 0.3"));
        lines[0].error = Some("too small".into());
        assert_eq!(advice(&lines, 65_536), "Use delta every 16,000 items: it has the smallest error.");
    }
}
