//! `ucl inspect`: what is in a state file.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use serde::Serialize;
use ucl_sketch::state::{Section, Summary, read_file};
use ucl_sketch::{BloomKind, Epochs, Mode, Seed, UclSketch};

use crate::show::{as_text, bytes, count, counted, figure, print};
use crate::stored::{Stored, earlier_hashes, key_bytes};

/// Show the contents of a state file: settings, progress, memory, sizes of its sections.
#[derive(clap::Args)]
pub struct Args {
    /// State file, written by `ucl count --save`.
    #[arg(value_name = "STATE")]
    state: PathBuf,

    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Everything there is to say. The order of the fields is the order in JSON.
#[derive(Serialize)]
struct Inspected {
    version: u32,
    bytes: usize,
    /// Bytes by section.
    sections: Vec<NamedBytes>,
    items: u64,
    weight: u64,
    /// Known keys.
    keys: usize,
    /// Segments that were sealed when the sketch changed, and still count.
    sealed: usize,
    /// Epochs that were closed.
    epochs: u64,
    interval: Option<u64>,
    by_load: bool,
    decoder: &'static str,
    /// Limit of the uplink in bytes per item, and what was sent of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    uplink: Option<Limit>,
    #[serde(serialize_with = "as_text")]
    seed: Seed,
    /// The version of the hash functions.
    hashing: u8,
    /// As `--format` takes it.
    format: String,
    /// As `--key-bytes` takes it.
    key_bytes: String,
    report_rule: String,
    shape: Sizes,
    memory: Vec<NamedBytes>,
    control_memory: Vec<NamedBytes>,
    network: Option<Network>,
    labels: BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Limit {
    bytes_per_item: f64,
    spent: u64,
}

#[derive(Serialize)]
struct NamedBytes {
    name: String,
    bytes: usize,
}

#[derive(Serialize)]
struct Sizes {
    heavy: &'static str,
    slots: u32,
    vote_ratio: u32,
    base: &'static str,
    rows: u16,
    width: u32,
    counter_bits: u32,
    bloom_bits: u32,
    /// None where the filter has fingerprints.
    #[serde(skip_serializing_if = "Option::is_none")]
    bloom_hashes: Option<u8>,
}

#[derive(Serialize)]
struct Network {
    parameters: usize,
    steps: u64,
    /// Residuals on the row left out: the network's, and the classic decoder's.
    verdict: Option<[f64; 2]>,
}

pub fn run(args: &Args) -> anyhow::Result<()> {
    let shown = args.state.display();
    let file = read_file(&args.state)?;
    let named = |error: ucl_sketch::LoadError| anyhow::anyhow!("{shown}: {error}");
    let summary = Summary::read(&file).map_err(named)?;
    let stored = Stored::of(UclSketch::from_bytes(&file).map_err(named)?);
    let inspected = Inspected::new(&summary, file.len(), stored)?;
    print(if args.json { serde_json::to_string(&inspected)? + "\n" } else { inspected.text() })
}

impl Inspected {
    fn new(summary: &Summary, bytes: usize, stored: Stored) -> anyhow::Result<Self> {
        let Stored { mut sketch, reading, .. } = stored;
        // A view knows the keys that only the heavy part has seen, too: the number that every
        // command gives.
        let keys = sketch.query_view()?.keys();
        let part = |(name, bytes): &(&'static str, usize)| NamedBytes { name: (*name).to_owned(), bytes: *bytes };
        let parts = |memory: ucl_sketch::Memory| memory.parts().iter().map(part).collect();
        let section = |(section, bytes): &(Section, usize)| NamedBytes { name: section.to_string(), bytes: *bytes };
        let decoder = sketch.mode().name();
        let (sealed, epochs, network) = sketch.with_control(|control| {
            let network = control.network().map(|network| Network {
                parameters: network.solver().parameters(),
                steps: network.solver().steps(),
                verdict: network.verdict().map(|verdict| [verdict.learned, verdict.classic]),
            });
            (control.sealed().count(), control.cuts(), network)
        });
        let config = *sketch.config();
        let shape = config.shape;
        Ok(Self {
            version: summary.version,
            bytes,
            sections: summary.sections.iter().map(section).collect(),
            items: sketch.items(),
            weight: sketch.weight(),
            keys,
            sealed,
            epochs,
            interval: sketch.interval(),
            by_load: sketch.epochs() == Epochs::ByLoad,
            decoder,
            uplink: sketch.allowance().and_then(|allowance| {
                Some(Limit { bytes_per_item: allowance.bytes_per_item()?, spent: allowance.spent() })
            }),
            seed: config.seed,
            hashing: config.seed.hashing().number(),
            format: reading.format.to_string(),
            key_bytes: key_bytes(config.keys),
            report_rule: config.rule.to_string(),
            shape: Sizes {
                heavy: shape.heavy.name(),
                slots: shape.slots,
                vote_ratio: shape.vote_ratio,
                base: shape.base.name(),
                rows: shape.rows,
                width: shape.width,
                counter_bits: shape.counter_bits.bits(),
                bloom_bits: shape.bloom_bits,
                bloom_hashes: (shape.bloom != BloomKind::Recent).then_some(shape.bloom_hashes),
            },
            memory: parts(sketch.memory()),
            control_memory: parts(sketch.control_memory()),
            network,
            labels: sketch.labels().clone(),
        })
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |label: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, " {label:<14} {value}");
        };
        let sum = |parts: &[NamedBytes]| {
            let each: Vec<String> = parts.iter().map(|part| format!("{} {}", part.name, bytes(part.bytes))).collect();
            format!("{}: {}", bytes(parts.iter().map(|part| part.bytes).sum()), each.join(", "))
        };
        line("version", self.version.to_string());
        line("file", sum(&self.sections));
        line("items", format!("{} of weight {}", count(self.items), count(self.weight)));
        line("keys", format!("{} known, format {}", count(self.keys as u64), self.format));
        let every = match self.interval {
            Some(items) => format!("one every {}", counted(items, "item")),
            None if self.by_load => "by load".to_owned(),
            None => "no cuts".to_owned(),
        };
        line("epochs", format!("{} closed; {every}", count(self.epochs)));
        if self.sealed > 0 {
            line(
                "changes",
                format!("{} from before a change of the sketch", counted(self.sealed as u64, "sealed segment")),
            );
        }
        line("mode", self.decoder.to_owned());
        if let Some(limit) = &self.uplink {
            let spent = bytes(limit.spent as usize);
            line("uplink", format!("at most {} bytes per item, {spent} spent", figure(limit.bytes_per_item)));
        }
        line("seed", self.seed.to_string());
        if let Some(warning) = earlier_hashes(self.seed) {
            line("hashes", warning.to_owned());
        }
        let shape = &self.shape;
        let heavy = shape.heavy;
        let slots = count(shape.slots);
        let key_bytes = &self.key_bytes;
        let bits = count(shape.bloom_bits);
        let filter = match shape.bloom_hashes {
            Some(hashes) => format!("{bits} bits, {hashes} per key"),
            None => format!("{bits} bits, the latest {} keys", count(BloomKind::recent_keys(shape.bloom_bits))),
        };
        if self.decoder == Mode::Exact.name() {
            line("slots", format!("{heavy}, {slots}, key bytes: {key_bytes}"));
            if shape.bloom_bits > 0 {
                line("name filter", filter);
            }
        } else {
            let base = shape.base;
            let rows = shape.rows;
            let width = count(shape.width);
            line("counters", format!("{base}, {rows} × {width} of {} bits", shape.counter_bits));
            line("slots", format!("{heavy}, {slots}, vote ratio {}, key bytes: {key_bytes}", shape.vote_ratio));
            line(if shape.bloom_hashes.is_some() { "Bloom filter" } else { "filter" }, filter);
            line("report rule", self.report_rule.clone());
        }
        line("memory", sum(&self.memory));
        line("decoder memory", sum(&self.control_memory));
        if let Some(network) = &self.network {
            let trained = counted(network.steps, "training step");
            line("network", format!("{} parameters, {trained}", count(network.parameters as u64)));
            if let Some([learned, classic]) = network.verdict {
                line("verdict", format!("self-check of the network {learned:.3}, of the classic decoder {classic:.3}"));
            }
        }
        for (name, value) in &self.labels {
            line("label", format!("{name} = {value}"));
        }
        text
    }
}
