//! Questions to a collector, over HTTP.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use ucl_link::{About, Client, Facts, Fleet, KeyRow, Keys, Range as Count, StreamRow, Whole};

use crate::fail::{Usage, harmless, tell};
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

    /// Only this stream; web-* means all whose names start with web-. May be repeated.
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

impl From<KeyRow> for Row {
    fn from(KeyRow { key, count }: KeyRow) -> Self {
        let data = key.bytes();
        // Keys come from anywhere, and so does whatever answers in place of a collector.
        let key = Key::received(harmless(&key.shown), data);
        let Count { estimate, lower, upper } = count;
        Self { key, estimate, lower, upper, source: "collector", truth: None }
    }
}

/// Says what has to be said beside an answer.
fn notes(facts: &Facts) {
    if let Some(range) = &facts.range {
        if !range.complete {
            tell(format_args!("note: a part of this time is no longer kept epoch by epoch; the answer leaves it out"));
        }
        if range.epochs == 0 {
            tell(format_args!("note: no epoch ended in this time"));
        }
    }
    if facts.unseen_items > 0 {
        tell(format_args!("note: {} are known to be missing", counted(facts.unseen_items, "item")));
    }
    if facts.unseen_unknown {
        tell(format_args!("note: an unknown number of items is missing: `ucl streams` shows from which streams"));
    }
}

/// Says what an answer lacks, and returns it.
fn with_notes<T>(whole: Whole<T>) -> T {
    let Whole { answer, silent, missing } = whole;
    for error in silent {
        tell(format_args!("note: not in this answer: {}", harmless(&error.to_string())));
    }
    if !missing.is_empty() {
        let number = counted(missing.len() as u64, "partition");
        let missing: Vec<String> = missing.iter().take(20).map(u32::to_string).collect();
        let list = missing.join(", ");
        tell(format_args!(
            "note: the streams of {number} are not in this answer ({list}): give the addresses of all collectors, with \
             commas between them"
        ));
    }
    answer
}

impl At {
    /// All collectors of an address, which has commas between them.
    fn fleet(&self, addresses: &str) -> anyhow::Result<Fleet> {
        let clients = addresses.split(',').map(|address| self.client(address.trim())).collect::<anyhow::Result<_>>()?;
        Ok(Fleet::new(clients)?)
    }

    fn client(&self, address: &str) -> anyhow::Result<Client> {
        let token = self.token.as_deref().ok_or_else(|| {
            Usage("a collector needs a token: give --token, or set UCL_TOKEN (`ucl serve` prints the first one)".into())
        })?;
        Ok(ucl_agentd::client(address, token, self.ca.as_deref()).map_err(Usage::because)?)
    }

    fn about(&self, range: &Range) -> anyhow::Result<About> {
        let tenant: ucl_link::Name = self.tenant.parse().map_err(Usage::because)?;
        let Range { last, from, to } = range.clone();
        Ok(About { tenant, streams: self.stream.clone(), format: self.format.clone(), last, from, to })
    }

    /// `ucl top URL`
    pub fn top(&self, address: &str, n: usize, range: &Range, json: bool) -> anyhow::Result<()> {
        let Keys { facts, keys } = with_notes(self.fleet(address)?.top(&self.about(range)?, n)?);
        notes(&facts);
        let total = facts.weight.unwrap_or(facts.items);
        let rows: Vec<Row> = keys.into_iter().map(Row::from).collect();
        if json { print(present::json_lines(&rows)?) } else { print(present::top(&rows, total, false)) }
    }

    /// `ucl query URL KEY...`
    pub fn query(&self, address: &str, keys: &[OsString], range: &Range, json: bool) -> anyhow::Result<()> {
        let mut asked = Vec::new();
        for key in keys {
            if key == "-" {
                let lines = std::io::stdin().lines().collect::<Result<Vec<_>, _>>()?;
                asked.extend(lines.into_iter().filter(|line| !line.is_empty()));
            } else {
                let text = key.to_str().ok_or_else(|| Usage("ask a collector for such a key as hex:…".to_owned()))?;
                asked.push(text.to_owned());
            }
        }
        let mut rows: Vec<Row> = Vec::new();
        if !asked.is_empty() {
            let Keys { facts, keys } = with_notes(self.fleet(address)?.estimate(&self.about(range)?, &asked)?);
            notes(&facts);
            rows.extend(keys.into_iter().map(Row::from));
        }
        if json { print(present::json_lines(&rows)?) } else { print(present::queries(&rows)) }
    }
}

/// Show the streams of a collector: items, keys, last epoch, what is missing.
#[derive(clap::Args)]
pub struct Args {
    /// Address of the collector, such as http://127.0.0.1:7070; of several, with commas.
    #[arg(value_name = "URL", env = "UCL_COLLECTOR", hide_env_values = true)]
    url: String,

    #[command(flatten)]
    at: At,

    /// Print the answer of the collector, as JSON.
    #[arg(long)]
    json: bool,
}

/// `ucl streams URL`
pub fn run(args: &Args) -> anyhow::Result<()> {
    let about = args.at.about(&Range::default())?;
    if args.json {
        let client = args.at.client(&args.url)?;
        let streams = about.streams.iter().map(|name| ("stream", name.clone()));
        let answer = client.get(&format!("/v1/{}/streams", about.tenant), streams)?;
        return print([&answer[..], b"\n"].concat());
    }
    let cells = |stream: StreamRow| {
        let missing = match (&stream.ended, stream.unseen) {
            (Some(why), _) => harmless(why),
            (None, None) => String::new(),
            (None, Some(ucl_link::Unseen { items: Some(items), .. })) => counted(items, "item"),
            (None, Some(_)) => "some, unknown".to_owned(),
        };
        let StreamRow { stream, health, epochs, items, keys, uplink_bytes, lag_ms, .. } = stream;
        let name = harmless(&stream);
        let health = harmless(&health);
        let lag = lag_ms.map_or_else(String::new, ago);
        vec![name, health, count(items), count(keys), count(epochs), bytes(uplink_bytes as usize), lag, missing]
    };
    let header = ["stream", "health", "items", "keys", "epochs", "uplink", "last epoch", "missing"];
    let right = [false, false, true, true, true, true, false, false];
    print(table(&header, &right, with_notes(args.at.fleet(&args.url)?.streams(&about)?).into_iter().map(cells)))
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
