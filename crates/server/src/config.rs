//! What the service is told: by flags, by environment variables and by a file, in this order, all
//! three read into [`Options`]; then [`Config`], whole and valid.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use ucl_collector::{CollectorSettings, Limits};
use ucl_link::{DURATIONS, parse_duration};
use ucl_sketch::Settings;

use crate::nats_config::NatsConfig;

/// The default configuration as a file, each line explained.
pub const DEFAULT_FILE: &str = include_str!("../ucl-serve.toml");

/// Options of the service, as given. A flag counts before its variable, and that before the line of
/// the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, clap::Args)]
#[serde(default, deny_unknown_fields)]
pub struct Options {
    /// Address and port to listen on [default: 127.0.0.1:7070].
    #[arg(long, value_name = "ADDRESS:PORT", env = "UCL_LISTEN", hide_env_values = true)]
    pub listen: Option<SocketAddr>,

    /// Folder for tokens, logs and counts [default: ucl-data].
    #[arg(long, value_name = "DIR", env = "UCL_DATA", hide_env_values = true)]
    pub data: Option<PathBuf>,

    /// Epochs kept one by one for each stream, for questions about time [default: 360].
    #[arg(long, value_name = "N", env = "UCL_KEEP_EPOCHS", hide_env_values = true)]
    pub keep_epochs: Option<usize>,

    /// Delete a stream after this long without an epoch, as in 30d [default: never].
    #[arg(long, value_name = "TIME", env = "UCL_FORGET_AFTER", hide_env_values = true)]
    pub forget_after: Option<String>,

    /// File with the certificate chain for HTTPS, as PEM.
    #[arg(long, value_name = "FILE", env = "UCL_TLS_CERT", hide_env_values = true)]
    pub tls_cert: Option<PathBuf>,

    /// File with the certificate's private key, as PEM.
    #[arg(long, value_name = "FILE", env = "UCL_TLS_KEY", hide_env_values = true)]
    pub tls_key: Option<PathBuf>,

    /// Use a self-signed certificate for HTTPS, kept in the data folder: for a first try.
    #[arg(
        long,
        value_name = "BOOL",
        env = "UCL_TLS_SELF_SIGNED",
        hide_env_values = true,
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub tls_self_signed: Option<bool>,

    /// Bytes of requests held in memory at once [default: 67108864].
    #[arg(long, value_name = "BYTES", env = "UCL_BODY_BYTES", hide_env_values = true)]
    pub body_bytes: Option<usize>,

    /// Connections at once [default: 4096].
    #[arg(long, value_name = "N", env = "UCL_CONNECTIONS", hide_env_values = true)]
    pub connections: Option<usize>,

    /// Requests of one tenant in a second [default: 2000].
    #[arg(long, value_name = "N", env = "UCL_MAX_REQUESTS", hide_env_values = true)]
    pub max_requests: Option<usize>,

    /// Streams of one tenant [default: 1000].
    #[arg(long, value_name = "N", env = "UCL_MAX_STREAMS", hide_env_values = true)]
    pub max_streams: Option<usize>,

    /// Keys known in all streams of one tenant [default: 20000000].
    #[arg(long, value_name = "N", env = "UCL_MAX_KEYS", hide_env_values = true)]
    pub max_keys: Option<usize>,

    /// Counters of one device [default: 1048576].
    #[arg(long, value_name = "N", env = "UCL_MAX_COUNTERS", hide_env_values = true)]
    pub max_counters: Option<usize>,

    /// Bytes of memory for the streams of one tenant [default: 2147483648].
    #[arg(long, value_name = "BYTES", env = "UCL_MAX_MEMORY", hide_env_values = true)]
    pub max_memory: Option<usize>,

    /// Address of a NATS server to take epochs from, as nats://HOST:PORT; several with commas.
    #[arg(long, value_name = "URL", env = "UCL_NATS", hide_env_values = true, help_heading = "NATS")]
    pub nats: Option<String>,

    /// File with certificates (PEM) to trust for tls:// addresses of NATS servers.
    #[arg(long, value_name = "FILE", env = "UCL_NATS_CA", hide_env_values = true, help_heading = "NATS")]
    pub nats_ca: Option<PathBuf>,

    /// Copies that NATS keeps of each message [default: 1].
    #[arg(long, value_name = "N", env = "UCL_NATS_REPLICAS", hide_env_values = true, help_heading = "NATS")]
    pub nats_replicas: Option<usize>,

    /// Partitions that streams are spread over; never to be changed [default: 16].
    #[arg(long, value_name = "N", env = "UCL_PARTITIONS", hide_env_values = true, help_heading = "NATS")]
    pub partitions: Option<u32>,

    /// Partitions of this collector, as in 0,3-5 [default: collectors share them out].
    #[arg(long, value_name = "LIST", env = "UCL_OWN", hide_env_values = true, help_heading = "NATS")]
    pub own: Option<String>,
}

/// A configuration that cannot be used, with everything that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{0}")]
    File(String),
    /// Settings are invalid.
    #[error("{}", .0.join("; "))]
    Invalid(Vec<String>),
}

impl Options {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or has a line that is not known.
    pub fn from_file(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |error: String| ConfigError::File(format!("{}: {error}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        Self::from_text(&text).map_err(wrong)
    }

    pub(crate) fn from_text(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns these options, and where one is not given, that of `other`.
    pub fn or(self, other: Self) -> Self {
        Self {
            listen: self.listen.or(other.listen),
            data: self.data.or(other.data),
            keep_epochs: self.keep_epochs.or(other.keep_epochs),
            forget_after: self.forget_after.or(other.forget_after),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_key: self.tls_key.or(other.tls_key),
            tls_self_signed: self.tls_self_signed.or(other.tls_self_signed),
            body_bytes: self.body_bytes.or(other.body_bytes),
            connections: self.connections.or(other.connections),
            max_requests: self.max_requests.or(other.max_requests),
            max_streams: self.max_streams.or(other.max_streams),
            max_keys: self.max_keys.or(other.max_keys),
            max_counters: self.max_counters.or(other.max_counters),
            max_memory: self.max_memory.or(other.max_memory),
            nats: self.nats.or(other.nats),
            nats_ca: self.nats_ca.or(other.nats_ca),
            nats_replicas: self.nats_replicas.or(other.nats_replicas),
            partitions: self.partitions.or(other.partitions),
            own: self.own.or(other.own),
        }
    }
}

/// Encryption of connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tls {
    /// Connections are not encrypted.
    #[default]
    Off,
    /// The certificate comes from files.
    Files {
        /// The certificate, and those that signed it.
        cert: PathBuf,
        /// Private key of the certificate.
        key: PathBuf,
    },
    /// The certificate is a self-signed one, kept in the data folder.
    SelfSigned,
}

/// Settings of the service, whole and valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The folder of everything that is kept.
    pub data: PathBuf,
    /// Epochs whose counts are kept one by one for each stream, for questions about time.
    pub keep_epochs: usize,
    /// Milliseconds after which a stream is deleted from which nothing came; `None` for never.
    pub forget_after_ms: Option<u64>,
    /// Encryption of connections.
    pub tls: Tls,
    /// Bytes of request bodies in memory at once.
    pub body_bytes: usize,
    /// Connections at once.
    pub connections: usize,
    /// Requests of one tenant in a second.
    pub max_requests: usize,
    /// Limits of one tenant.
    pub limits: Limits,
    /// The NATS servers that epochs come from; `None` for HTTP.
    pub nats: Option<NatsConfig>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 7070)),
            data: "ucl-data".into(),
            keep_epochs: 360,
            forget_after_ms: None,
            tls: Tls::Off,
            body_bytes: 64 << 20,
            connections: 4_096,
            max_requests: 2_000,
            limits: Limits::default(),
            nats: None,
        }
    }
}

impl Config {
    /// Fills in the defaults.
    ///
    /// # Errors
    /// If settings are invalid: all of them are named.
    pub fn new(options: Options) -> Result<Self, ConfigError> {
        let Options {
            listen,
            data,
            keep_epochs,
            forget_after,
            tls_cert,
            tls_key,
            tls_self_signed,
            body_bytes,
            connections,
            max_requests,
            max_streams,
            max_keys,
            max_counters,
            max_memory,
            nats,
            nats_ca,
            nats_replicas,
            partitions,
            own,
        } = options;
        let default = Self::default();
        let limits = Limits {
            streams: max_streams.unwrap_or(default.limits.streams),
            keys: max_keys.unwrap_or(default.limits.keys),
            counters: max_counters.unwrap_or(default.limits.counters),
            memory: max_memory.unwrap_or(default.limits.memory),
            ..default.limits
        };
        let mut wrong = Vec::new();
        let forget_after_ms = match forget_after.as_deref() {
            None | Some("never") => None,
            Some(text) => parse_duration(text).map(|length| length.as_millis() as u64).or_else(|| {
                wrong.push(format!("forget_after: {text:?} is neither `never` nor {DURATIONS}"));
                None
            }),
        };
        // An empty name in a file is none.
        let named = |path: Option<PathBuf>| path.filter(|path| !path.as_os_str().is_empty());
        let tls = match (named(tls_cert), named(tls_key), tls_self_signed.unwrap_or(false)) {
            (None, None, false) => Tls::Off,
            (None, None, true) => Tls::SelfSigned,
            (Some(cert), Some(key), false) => Tls::Files { cert, key },
            (Some(_), Some(_), true) => {
                wrong.push("tls_self_signed makes a certificate: give it, or tls_cert and tls_key".to_owned());
                Tls::Off
            }
            _ => {
                wrong.push("tls_cert and tls_key belong together: give both".to_owned());
                Tls::Off
            }
        };
        let nats = NatsConfig::new(nats, named(nats_ca), nats_replicas, partitions, own, &mut wrong);
        let config = Self {
            listen: listen.unwrap_or(default.listen),
            data: data.unwrap_or(default.data),
            keep_epochs: keep_epochs.unwrap_or(default.keep_epochs),
            forget_after_ms,
            tls,
            body_bytes: body_bytes.unwrap_or(default.body_bytes),
            connections: connections.unwrap_or(default.connections),
            max_requests: max_requests.unwrap_or(default.max_requests),
            limits,
            nats,
        };
        wrong.extend(config.wrong());
        if wrong.is_empty() { Ok(config) } else { Err(ConfigError::Invalid(wrong)) }
    }

    fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut unless = |fine: bool, why: String| {
            if !fine {
                wrong.push(why);
            }
        };
        let least = ucl_link::MAX_ENVELOPE;
        unless(self.body_bytes >= least, format!("body_bytes must be at least {least}: one request may be as large"));
        unless(self.body_bytes <= 64 << 30, "body_bytes must be at most 64 GiB".to_owned());
        unless((1..=1 << 20).contains(&self.connections), "connections must be 1 to 1048576".to_owned());
        unless(self.max_requests > 0, "max_requests must be at least 1".to_owned());
        let is_off = self.tls == Tls::Off;
        unless(is_off || cfg!(feature = "tls"), "this program was built without TLS (feature `tls`)".to_owned());
        unless(
            !is_off || self.listen.ip().is_loopback(),
            format!(
                "{} can be reached from other machines: give tls_cert and tls_key, or tls_self_signed, or listen on \
                 127.0.0.1",
                self.listen.ip()
            ),
        );
        wrong
    }

    pub(crate) fn collector(&self) -> CollectorSettings {
        let decoding = Settings { retain_epochs: self.keep_epochs, ..Settings::default() };
        let kept_epochs = self.keep_epochs.max(1);
        let limits = self.limits;
        let forget_after_ms = self.forget_after_ms;
        CollectorSettings { decoding, kept_epochs, limits, forget_after_ms, ..CollectorSettings::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_has_every_option_at_its_default() {
        // Every line is a comment that only has to be uncommented.
        let lines = DEFAULT_FILE.lines().filter_map(|line| line.strip_prefix('#'));
        let lines: Vec<&str> = lines.filter(|line| !line.starts_with(' ') && line.contains(" = ")).collect();
        let options = Options::from_text(&lines.join("\n")).unwrap();
        assert_eq!(Config::new(options.clone()), Ok(Config::default()));
        assert_eq!(Options::from_text(DEFAULT_FILE), Ok(Options::default()), "as it is, it says nothing");
        let described = format!("{options:?}");
        assert!(!described.contains("None"), "an option is not in the file: {described}");
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let options = Options::from_text("connections = 0\nbody_bytes = 7\nlisten = \"0.0.0.0:1\"").unwrap();
        let Err(ConfigError::Invalid(wrong)) = Config::new(options) else { panic!("it is wrong") };
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        let options = Options::from_text("forget_after = \"soon\"\ntls_key = \"key.pem\"\nmax_requests = 0").unwrap();
        let Err(ConfigError::Invalid(wrong)) = Config::new(options) else { panic!("it is wrong") };
        assert_eq!(wrong.len(), 3, "{wrong:?}");
        assert!(Options::from_text("conections = 1").is_err(), "a misspelt option is not ignored");
    }

    #[test]
    fn flags_count_before_the_file() {
        let [flags, file] =
            ["keep_epochs = 1", "keep_epochs = 2\nconnections = 3"].map(|text| Options::from_text(text).unwrap());
        let both = flags.or(file);
        assert_eq!((both.keep_epochs, both.connections, both.data), (Some(1), Some(3), None));
    }

    #[test]
    fn other_machines_need_tls() {
        let config = |more: &str| {
            let text = format!("listen = \"0.0.0.0:7070\"\n{more}");
            Config::new(Options::from_text(&text).unwrap()).map(|config| config.tls)
        };
        assert!(config("").is_err() && config("tls_self_signed = false").is_err());
        let files = Tls::Files { cert: "a".into(), key: "b".into() };
        assert_eq!(config("tls_self_signed = true").is_ok(), cfg!(feature = "tls"));
        assert_eq!(config("tls_cert = \"a\"\ntls_key = \"b\"") == Ok(files), cfg!(feature = "tls"));
        assert!(config("tls_self_signed = true\ntls_cert = \"a\"\ntls_key = \"b\"").is_err());
    }

    #[test]
    fn streams_are_forgotten_on_request() {
        let forget = |text: &str| {
            let options = Options { forget_after: Some(text.into()), ..Options::default() };
            Config::new(options).map(|config| config.forget_after_ms).ok()
        };
        assert_eq!((forget("30d"), forget("never"), forget("30")), (Some(Some(2_592_000_000)), Some(None), None));
    }
}
