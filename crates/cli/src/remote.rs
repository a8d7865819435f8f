//! Questions to a collector, over HTTP.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde::Deserialize;
use ucl_link::Client;

use crate::fail::{Usage, harmless};
use crate::key::Key;
use crate::present::{self, Row};
use crate::show::{bytes, count, counted, print, table};

/// Which collector's streams a question is about.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Collector")]
pub struct At {
    /// Token that allows to read. Better given as UCL_TOKEN, which other users cannot see.
    #[arg(long, value_name = "TOKEN", env = "UCL_TOKEN", hide_env_values = true)]
    token: Option<String>,

    /// File with the certificate (PEM) of a collector that made its own.
    #[arg(long, value_name = "FILE", env = "UCL_CA", hide_env_values = true)]
    ca: Option<PathBuf>,

    /// Tenant to ask about.
    #[arg(long, value_name = "NAME", default_value = "default")]
    tenant: String,

    /// Only this stream, or with `*` behind it, streams whose names start so. May be repeated.
    #[arg(long, value_name = "NAME")]
    stream: Vec<String>,

    /// Only streams whose keys have this format.
    #[arg(long, value_name = "FORMAT")]
    format: Option<String>,
}

/// The time that a question to a collector is about.
#[derive(Clone, Default, clap::Args)]
#[command(next_help_heading = "Collector")]
pub struct Range {
    /// Only the last 5m, 2h or 7d.
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "to"])]
    last: Option<String>,

    /// Only from this time on: UTC as in 2026-01-31T09:30:00Z, or milliseconds since 1970.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,

    /// Only until this time.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
}

impl Range {
    fn parameters(&self) -> Vec<(&'static str, String)> {
        let given = [("last", &self.last), ("from", &self.from), ("to", &self.to)];
        given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect()
    }

    /// A file has no times.
    pub fn refuse_for_file(&self) -> Result<(), Usage> {
        match self.parameters().first() {
            Some((name, _)) => Err(Usage(format!("--{name} is for collectors: a state file does not have times"))),
            None => Ok(()),
        }
    }
}

/// A collector's address, if that is what was given in place of a file.
pub fn address(place: &OsStr) -> Option<&str> {
    place.to_str().filter(|text| text.starts_with("http://") || text.starts_with("https://"))
}

#[derive(Deserialize)]
struct KeyRow {
    key: Option<String>,
    key_hex: Option<String>,
    shown: String,
    estimate: u64,
    lower: u64,
    upper: u64,
}

impl From<KeyRow> for Row {
    fn from(row: KeyRow) -> Self {
        let data = match (row.key, row.key_hex) {
            (Some(text), _) => Some(text.into_bytes()),
            (None, Some(hex)) => from_hex(&hex),
            (None, None) => None,
        };
        // Keys come from anywhere, and so does whatever answers in place of a collector.
        let key = Key::received(harmless(&row.shown), data);
        Self { key, estimate: row.estimate, lower: row.lower, upper: row.upper, source: "collector", truth: None }
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(pair).collect()
}

#[derive(Deserialize)]
struct Covered {
    complete: bool,
    epochs: u64,
}

#[derive(Deserialize)]
struct Keys {
    items: u64,
    weight: Option<u64>,
    unseen_items: u64,
    unseen_unknown: bool,
    range: Option<Covered>,
    keys: Vec<KeyRow>,
}

impl Keys {
    /// What has to be said beside the answer.
    fn notes(&self) {
        if let Some(range) = &self.range {
            if !range.complete {
                eprintln!("ucl: note: a part of this time is no longer kept epoch by epoch; the answer leaves it out");
            }
            if range.epochs == 0 {
                eprintln!("ucl: note: no epoch ended in this time");
            }
        }
        if self.unseen_items > 0 {
            eprintln!("ucl: note: {} are known to be missing", counted(self.unseen_items, "item"));
        }
        if self.unseen_unknown {
            eprintln!("ucl: note: items are missing, and nobody knows how many: `ucl streams` shows of which streams");
        }
    }
}

impl At {
    fn client(&self, address: &str) -> anyhow::Result<Client> {
        let token = self.token.as_deref().ok_or_else(|| {
            Usage("a collector needs a token: give --token, or set UCL_TOKEN (`ucl serve` prints the first one)".into())
        })?;
        Ok(ucl_agentd::client(address, token, self.ca.as_deref()).map_err(Usage::because)?)
    }

    fn parameters(&self) -> impl Iterator<Item = (&'static str, String)> {
        let streams = self.stream.iter().map(|name| ("stream", name.clone()));
        streams.chain(self.format.iter().map(|format| ("format", format.clone())))
    }

    fn path(&self, question: &str) -> anyhow::Result<String> {
        let tenant: ucl_link::Name = self.tenant.parse().map_err(Usage::because)?;
        Ok(format!("/v1/{tenant}/{question}"))
    }

    /// `ucl top URL`
    pub fn top(&self, address: &str, n: usize, range: &Range, json: bool) -> anyhow::Result<()> {
        let parameters = self.parameters().chain(range.parameters()).chain([("n", n.to_string())]);
        let answer: Keys = self.client(address)?.get_json(&self.path("top")?, parameters)?;
        answer.notes();
        let total = answer.weight.unwrap_or(answer.items);
        let rows: Vec<Row> = answer.keys.into_iter().map(Row::from).collect();
        if json { print(present::json_lines(&rows)?) } else { print(present::top(&rows, total, false)) }
    }

    /// `ucl query URL KEY...`
    pub fn query(&self, address: &str, keys: &[OsString], range: &Range, json: bool) -> anyhow::Result<()> {
        let text = |key: &OsString| {
            let text = key.to_str().ok_or_else(|| Usage("ask a collector for such a key as hex:…".to_owned()));
            text.map(|text| ("key", text.to_owned()))
        };
        let mut asked = Vec::new();
        for key in keys {
            if key == "-" {
                let lines = std::io::stdin().lines().collect::<Result<Vec<_>, _>>()?;
                asked.extend(lines.into_iter().filter(|line| !line.is_empty()).map(|line| ("key", line)));
            } else {
                asked.push(text(key)?);
            }
        }
        let client = self.client(address)?;
        let path = self.path("estimate")?;
        let mut rows: Vec<Row> = Vec::new();
        // As many as fit an address.
        for (first, some) in asked.chunks(100).enumerate() {
            let parameters = self.parameters().chain(range.parameters()).chain(some.iter().cloned());
            let answer: Keys = client.get_json(&path, parameters)?;
            if first == 0 {
                answer.notes();
            }
            rows.extend(answer.keys.into_iter().map(Row::from));
        }
        if json { print(present::json_lines(&rows)?) } else { print(present::queries(&rows)) }
    }
}

/// Show the streams of a collector: items, keys, last epoch, what is missing.
#[derive(clap::Args)]
pub struct Args {
    /// Address of the collector, such as http://127.0.0.1:7070.
    #[arg(value_name = "URL", env = "UCL_COLLECTOR", hide_env_values = true)]
    url: String,

    #[command(flatten)]
    at: At,

    /// Print the answer of the collector, as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Streams {
    streams: Vec<Stream>,
}

#[derive(Deserialize)]
struct Stream {
    stream: String,
    health: String,
    epochs: u64,
    items: u64,
    keys: u64,
    uplink_bytes: usize,
    lag_ms: Option<i64>,
    unseen: Option<ucl_link::Unseen>,
    ended: Option<String>,
}

/// `ucl streams URL`
pub fn run(args: &Args) -> anyhow::Result<()> {
    let client = args.at.client(&args.url)?;
    let answer = client.get(&args.at.path("streams")?, args.at.parameters())?;
    if args.json {
        return print([&answer[..], b"\n"].concat());
    }
    let Streams { streams } = serde_json::from_slice(&answer)?;
    let cells = |stream: Stream| {
        let missing = match (&stream.ended, stream.unseen) {
            (Some(why), _) => harmless(why),
            (None, None) => String::new(),
            (None, Some(ucl_link::Unseen { items: Some(items), .. })) => counted(items, "item"),
            (None, Some(_)) => "some, unknown".to_owned(),
        };
        let Stream { stream, health, epochs, items, keys, uplink_bytes, lag_ms, .. } = stream;
        let name = harmless(&stream);
        let health = harmless(&health);
        let lag = lag_ms.map_or_else(String::new, ago);
        vec![name, health, count(items), count(keys), count(epochs), bytes(uplink_bytes), lag, missing]
    };
    let header = ["stream", "health", "items", "keys", "epochs", "uplink", "last epoch", "missing"];
    let right = [false, false, true, true, true, true, false, false];
    print(table(&header, &right, streams.into_iter().map(cells)))
}

/// `12 s ago`.
fn ago(ms: i64) -> String {
    match ms.max(0) / 1_000 {
        seconds @ 0..120 => format!("{seconds} s ago"),
        seconds @ 120..7_200 => format!("{} min ago", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// The place of a question: a state file, or a collector.
#[derive(Clone, Debug)]
pub enum Place {
    File(PathBuf),
    Collector(String),
}

impl From<&OsString> for Place {
    fn from(text: &OsString) -> Self {
        match address(text) {
            Some(address) => Self::Collector(address.to_owned()),
            None => Self::File(text.into()),
        }
    }
}
