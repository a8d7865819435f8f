//! The options of `ucl agent` and `ucl-agent`.

use std::cell::RefCell;
use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ucl_link::{Client, DURATIONS, Name, parse_duration};
use ucl_sketch::plan::WEIGHTED_COUNT_BITS;
use ucl_sketch::{Bytes, Config, DecoderKind, HeavyKind, KeyFormat, Mode, UclSketch};
use ucl_streams::{Delimiter, Format, OnError, PacketKey, ReadOptions, Source};

use crate::AgentdError;
use crate::feed::Input;
use crate::net::Listener;
use crate::packets::{self, Capture, Interface};

/// Count streams here and send the counts to a collector (`ucl serve`).
///
/// Counts in a fixed memory and sends every epoch over HTTP. What is sent is on disk first, and
/// stays there until the collector has it on its own disk: nothing is lost and nothing counts twice
/// when the agent, the collector or the link fails. An agent that starts again goes on in a file
/// where it stopped. While the collector cannot be reached, counting goes on, at first with all
/// epochs kept, and once the spool is full with longer ones.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Files, `-` for standard input (the default), udp:ADDRESS:PORT or tcp:ADDRESS:PORT for lines
    /// over the network, packets:INTERFACE for packets (Linux), or generators (zipf:1.1:ITEMS).
    ///
    /// Several inputs are read one after the other, as one stream.
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<OsString>,

    /// Address of the collector (http://HOST:PORT) or of a NATS server (nats://HOST:PORT).
    #[arg(long, value_name = "URL", env = "UCL_COLLECTOR", hide_env_values = true)]
    pub to: String,

    /// Token that allows to write. Better given as UCL_TOKEN, which other users cannot see.
    #[arg(long, value_name = "TOKEN", env = "UCL_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// File with the certificate (PEM) of a collector or NATS server that made its own.
    #[arg(long, value_name = "FILE", env = "UCL_CA", hide_env_values = true)]
    pub ca: Option<PathBuf>,

    /// Name of the stream. NAME=INPUT gives it an input of its own, and may be repeated.
    #[arg(long, value_name = "NAME[=INPUT]", required = true)]
    pub stream: Vec<StreamSpec>,

    /// Tenant that the streams belong to.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub tenant: Name,

    /// Wait for more at the end of a file, and follow its name when it is rotated.
    #[arg(long)]
    pub follow: bool,

    /// Key of each record: lines, field:N, csv:COLUMN and others, as in `ucl count` [default:
    /// lines; of packets, pcap].
    #[arg(short, long, value_name = "FORMAT", help_heading = "Reading")]
    pub format: Option<Format>,

    /// Add up a weight instead of counting items, as in `ucl count`.
    #[arg(short, long, value_name = "WHERE", help_heading = "Reading")]
    pub weight: Option<String>,

    /// Multiply every weight by N.
    #[arg(long, value_name = "N", help_heading = "Reading")]
    pub scale: Option<NonZeroU64>,

    /// Character between columns.
    #[arg(long, value_name = "CHAR", help_heading = "Reading")]
    pub delimiter: Option<Delimiter>,

    /// Treat the first row of a csv or tsv input as data.
    #[arg(long, help_heading = "Reading")]
    pub no_header: bool,

    /// Stop at a bad record, instead of skipping it.
    #[arg(long, help_heading = "Reading")]
    pub strict: bool,

    /// Memory of each stream's sketch.
    #[arg(short, long, value_name = "SIZE", default_value = "64KB", help_heading = "Counting")]
    pub memory: Bytes,

    /// Counting mode: budget, delta or em [default: budget; delta for a stream that was begun so].
    ///
    /// budget counts exactly while the link takes what leaves the sketch, and goes on in a smaller
    /// sketch beyond --uplink or while the collector cannot be reached: those counts have ranges.
    #[arg(long, value_name = "MODE", help_heading = "Counting")]
    pub mode: Option<Mode>,

    /// Bytes a second that may go up the link, as 100KB/s, shared by the streams [default: no
    /// limit]. Only for mode budget.
    #[arg(long, value_name = "RATE", value_parser = rate, help_heading = "Counting")]
    pub uplink: Option<u64>,

    /// End an epoch after N items [default: before the sketch holds more keys than it can tell
    /// apart].
    #[arg(long, value_name = "N", help_heading = "Counting")]
    pub cut_items: Option<NonZeroU64>,

    /// End an epoch after this time: 500ms, 10s, 2m.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time, help_heading = "Counting")]
    pub cut_every: Duration,

    /// Folder for the states and spools; each stream has a folder in it.
    #[arg(long, value_name = "DIR", default_value = "ucl-agent-data", env = "UCL_STATE", hide_env_values = true)]
    pub state: PathBuf,

    /// Disk space for epochs that wait to be sent, for each stream; `none` on a device without a
    /// disk, where they wait in memory and end with the process.
    #[arg(long, value_name = "SIZE", default_value = "64MB", value_parser = spool)]
    pub spool: Bytes,

    /// Memory of the system for packets that wait, for each interface.
    #[arg(long, value_name = "SIZE", default_value = "16MB", help_heading = "Reading")]
    pub ring: Bytes,

    /// Report every acknowledgement.
    #[arg(short, long)]
    pub verbose: bool,
}

const EXAMPLES: &str = "\
Examples:
  tail -F access.log | ucl agent --to http://127.0.0.1:7070 --stream web-1 --format field:7
  ucl agent --to http://127.0.0.1:7070 --stream web-1 --follow access.log --format combined:path
  ucl agent --to http://127.0.0.1:7070 --stream a=/var/log/a.log --stream b=/var/log/b.log --follow
  ucl agent --to http://127.0.0.1:7070 --stream syslog udp:127.0.0.1:5140 --format field:3
  ucl agent --to http://127.0.0.1:7070 --stream gate-1 packets:eth0 --format pcap:src/24 --weight bytes";

/// A stream, and its input if it has one of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamSpec {
    /// The stream's name.
    pub name: Name,
    /// Input of the stream.
    pub input: Option<OsString>,
}

impl std::str::FromStr for StreamSpec {
    type Err = ucl_link::NameError;

    fn from_str(text: &str) -> Result<Self, ucl_link::NameError> {
        match text.split_once('=') {
            Some((name, input)) => Ok(Self { name: name.parse()?, input: Some(input.into()) }),
            None => Ok(Self { name: text.parse()?, input: None }),
        }
    }
}

/// The size of a spool, 0 for none.
fn spool(text: &str) -> Result<Bytes, String> {
    if text == "none" { Ok(Bytes(0)) } else { text.parse::<Bytes>().map_err(|error| error.to_string()) }
}

/// Bytes a second: a size, with `/s` or without.
fn rate(text: &str) -> Result<u64, String> {
    let size: Bytes = text
        .strip_suffix("/s")
        .unwrap_or(text)
        .parse()
        .map_err(|_| format!("`{text}` is not a rate such as 100KB/s"))?;
    if size.0 == 0 { Err("a link of 0 bytes a second takes nothing".to_owned()) } else { Ok(size.0 as u64) }
}

fn time(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| format!("`{text}` is not {DURATIONS}"))
}

/// A client of a collector, which trusts the certificates of a file, or those that browsers trust.
///
/// # Errors
/// If the file cannot be read, or the address is none.
pub fn client(address: &str, token: &str, ca: Option<&Path>) -> Result<Client, AgentdError> {
    match ca {
        None => Ok(Client::new(address, token)?),
        Some(path) => {
            let certificates = std::fs::read(path);
            let certificates =
                certificates.map_err(|error| AgentdError::usage(format!("{}: {error}", path.display())))?;
            Ok(Client::trusting(address, token, &certificates)?)
        }
    }
}

/// One stream to count.
pub(crate) struct Stream {
    pub name: Name,
    pub inputs: Vec<Input>,
    pub options: ReadOptions,
    pub keys: KeyFormat,
}

impl Args {
    /// Checks everything, and returns the streams.
    pub(crate) fn streams(&self) -> Result<Vec<Stream>, AgentdError> {
        if self.mode == Some(Mode::Exact) {
            return Err(AgentdError::usage(
                "an agent cannot count in mode exact: it has no room for counts while the collector cannot be reached; \
                 leave --mode out, which is exact while it can be",
            ));
        }
        if self.uplink.is_some() && self.mode.is_some_and(|mode| mode != Mode::Budget) {
            return Err(AgentdError::usage("--uplink is for --mode budget: other modes send what they have to"));
        }
        let mut streams: Vec<Stream> = Vec::new();
        for StreamSpec { name, input } in &self.stream {
            if streams.iter().any(|stream| stream.name == *name) {
                return Err(AgentdError::usage(format!("the stream {name} is named twice")));
            }
            let inputs = match input {
                Some(input) => vec![self.named(input)?],
                None if self.stream.len() > 1 => {
                    let why = format!("with several streams, each needs an input: --stream {name}=INPUT");
                    return Err(AgentdError::usage(why));
                }
                None if self.inputs.is_empty() => vec![Input::Source(Source::Stdin)],
                None => self.inputs.iter().map(|input| self.named(input)).collect::<Result<_, _>>()?,
            };
            if input.is_some() && !self.inputs.is_empty() {
                return Err(AgentdError::usage("give inputs either as --stream NAME=INPUT, or at the end, not both"));
            }
            if !self.has_disk()
                && let Some(file) = inputs.iter().find(|input| matches!(input, Input::Source(Source::Path(_))))
            {
                return Err(AgentdError::usage(format!(
                    "{} would be counted again after a restart: with --spool none there is no state that knows how far \
                     it was read; pipe it",
                    file.name()
                )));
            }
            let options = self.read_options(&inputs)?;
            let keys = key_format(&inputs, &options.format);
            streams.push(Stream { name: name.clone(), inputs, options, keys });
        }
        Ok(streams)
    }

    /// The input of this name. An interface is open from now on.
    fn named(&self, text: &OsString) -> Result<Input, AgentdError> {
        match text.to_str() {
            Some(text) if Listener::is_named(text) => text.parse().map(Input::Net).map_err(AgentdError::usage),
            Some(text) if Interface::is_named(text) => {
                let interface: Interface = text.parse().map_err(AgentdError::usage)?;
                let opened = Capture::open(interface, self.ring.0);
                let capture = opened.map_err(|error| {
                    AgentdError::Input(format!("cannot open {text}: {error}{}", packets::advice(&error)))
                })?;
                Ok(Input::Packets(RefCell::new(capture)))
            }
            Some(text) => text.parse().map(Input::Source).map_err(AgentdError::usage),
            // No generator or address has such a name, and any file may.
            None => Ok(Input::Source(Source::Path(text.into()))),
        }
    }

    fn read_options(&self, inputs: &[Input]) -> Result<ReadOptions, AgentdError> {
        let own = inputs.iter().find_map(|input| match input {
            Input::Source(source) => source.own_format(),
            Input::Net(_) => None,
            Input::Packets(_) => Some(Format::Pcap(vec![PacketKey::default()])),
        });
        let format = self.format.clone().or(own).unwrap_or_default();
        let packets = inputs.iter().filter(|input| matches!(input, Input::Packets(_))).count();
        if packets > 0 && !matches!(format, Format::Pcap(_)) {
            return Err(AgentdError::usage(format!("packets have no {format}: use --format pcap:src or the like")));
        }
        if packets > 0 && inputs.len() > 1 {
            return Err(AgentdError::usage("packets never end: give each interface a stream, as --stream NAME=INPUT"));
        }
        let weight = self.weight.as_deref().map(|text| format.parse_weight(text)).transpose();
        let options = ReadOptions {
            weight: weight.map_err(AgentdError::usage)?,
            format,
            header: self.no_header.then_some(false),
            delimiter: self.delimiter,
            scale: self.scale,
            on_error: if self.strict { OnError::Stop } else { OnError::Skip },
            ..ReadOptions::default()
        };
        options.check().map_err(AgentdError::usage)?;
        Ok(options)
    }

    /// Whether there is a disk for states and spools.
    pub(crate) fn has_disk(&self) -> bool {
        self.spool.0 > 0
    }

    /// A builder for the sketch of a stream, which was begun in a configuration if it goes on.
    pub(crate) fn builder(&self, keys: KeyFormat, begun: Option<&Config>) -> ucl_sketch::Builder {
        let mode = self.mode.unwrap_or(match begun {
            Some(config) if !config.shape.absorbs() => Mode::Sketch(DecoderKind::Delta),
            _ => Mode::Budget,
        });
        // A table keeps the sizes that it was begun with.
        let count_bits = match begun.map(|config| config.shape.heavy) {
            Some(HeavyKind::Mirrored(table)) => Some(table.count_bits),
            Some(_) => None,
            None => self.weight.as_ref().map(|_| WEIGHTED_COUNT_BITS),
        };
        let builder = UclSketch::builder().memory_bytes(self.memory.0).mode(mode);
        let builder = count_bits.into_iter().fold(builder, ucl_sketch::Builder::count_bits);
        let builder = match keys {
            KeyFormat::Fixed(bytes) => builder.key_bytes(bytes.into()),
            KeyFormat::Digest | KeyFormat::Code(_) => builder,
        };
        // And so do its sketch and its filter, whether or not the uplink has a limit now.
        let limited = match begun {
            Some(begun) => builder.plan().is_ok_and(|(without, _)| without.shape != begun.shape),
            None => self.uplink.is_some(),
        };
        if limited && mode == Mode::Budget { builder.uplink_per_item(0.0) } else { builder }
    }
}

/// The size of the keys, where the inputs guarantee it.
fn key_format(inputs: &[Input], format: &Format) -> KeyFormat {
    let made = |input: &Input| matches!(input, Input::Source(source) if source.own_format().is_some());
    let guaranteed = matches!(format, Format::Records(_)) || inputs.iter().all(made);
    let bytes = format.key_bytes_hint().filter(|_| guaranteed);
    bytes.and_then(|bytes| KeyFormat::for_key_bytes(bytes).ok()).unwrap_or(KeyFormat::Digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_streams() {
        assert_eq!(time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(time("5").unwrap_err(), "`5` is not a number and a unit: ms, s, m, h or d, as in 5m");
        let spec: StreamSpec = "web-1=/var/log/a=b.log".parse().unwrap();
        assert_eq!((spec.name.as_str(), spec.input), ("web-1", Some("/var/log/a=b.log".into())));
        assert!("a/b".parse::<StreamSpec>().is_err());
        assert_eq!((rate("100KB/s"), rate("2MB")), (Ok(102_400), Ok(2 << 20)));
        assert!(rate("0/s").is_err() && rate("fast").is_err());
    }

    #[test]
    fn a_stream_keeps_its_sizes() {
        use clap::Parser;

        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            args: Args,
        }
        let line = |more: &[&str]| {
            let line = ["agent", "--to", "http://127.0.0.1:7070", "--stream", "a", "-"];
            Line::parse_from(line.iter().chain(more)).args
        };
        let count_bits = |more: &[&str], begun: Option<&Config>| {
            let (config, _) = line(more).builder(KeyFormat::Digest, begun).plan().unwrap();
            let HeavyKind::Mirrored(table) = config.shape.heavy else { panic!("{config:?}") };
            (config, table.count_bits)
        };
        let weight = &["--weight", "bytes"][..];
        let (plain, bits) = count_bits(&[], None);
        assert_eq!(bits, 6);
        let (weighted, bits) = count_bits(weight, None);
        assert_eq!(bits, WEIGHTED_COUNT_BITS);
        let limit = &["--uplink", "1KB/s"][..];
        let (limited, _) = count_bits(limit, None);
        assert_ne!(limited.shape, plain.shape);
        for (begun, more) in [(plain, weight), (weighted, &[]), (limited, &[]), (plain, limit)] {
            assert_eq!(count_bits(more, Some(&begun)).0.shape, begun.shape, "what was begun goes on");
        }
    }
}
