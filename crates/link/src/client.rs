//! The link over HTTP: a client of the collector.

use std::time::Duration;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::{Identity, Reply};

/// How long a request may take, its body aside, and a connection to be made.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a body for which a second more may pass.
const SLOWEST: u64 = 4 << 10;
const CONNECT: Duration = Duration::from_secs(10);
/// Bytes of an answer, at most.
const LARGEST_ANSWER: u64 = 256 << 20;

/// A client of one collector, with its token. Cheap to clone; connections are shared and kept open.
#[derive(Clone, Debug)]
pub struct Client {
    http: ureq::Agent,
    address: String,
    bearer: String,
}

/// Error of a request that the collector did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The address is not that of a collector.
    #[error("{0:?} is not the address of a collector: write http://HOST:PORT or https://HOST:PORT")]
    Address(String),
    /// The token cannot be one: a part of it is missing, or something else came along.
    #[error("the token has a space or another character that cannot be part of a token")]
    Token,
    /// The file of certificates has none.
    #[error("there is no certificate to trust: give a file in PEM format")]
    Certificate,
    /// The collector is down, or something is in between.
    #[error("cannot reach {address}: {why}")]
    Unreachable {
        /// The collector's address.
        address: String,
        /// Message of the system.
        why: String,
    },
    /// The collector answered that it will not.
    #[error("{address}: {detail} (status {status})")]
    Refused {
        /// The collector's address.
        address: String,
        /// The HTTP status.
        status: u16,
        /// Message of the collector.
        detail: String,
    },
    /// Two collectors answer for the same streams: one of them has lost touch with its broker.
    #[error("{first} and {second} both answer for partition {partition}: ask again, or leave one of them out")]
    Claimed {
        /// Which streams.
        partition: u32,
        /// A collector's address.
        first: String,
        /// Another one's.
        second: String,
    },
    /// The keys of different collectors cannot be compared.
    #[error("the streams have keys of different formats: choose one of {0}, {1}")]
    Formats(String, String),
    /// Something else than a collector answered.
    #[error("{address} is not a collector: {why}")]
    Garbled {
        /// Address that answered.
        address: String,
        /// Defect of the answer.
        why: String,
    },
}

impl Client {
    /// Creates a client; nothing is sent yet.
    ///
    /// # Errors
    /// If the address is not a URL of the form `http://HOST:PORT` or `https://HOST:PORT`.
    pub fn new(address: &str, token: &str) -> Result<Self, ClientError> {
        Self::build(address, token, RootCerts::WebPki)
    }

    /// Creates a client that trusts only these certificates (PEM), as `ucl serve --tls-self-signed`
    /// writes one.
    ///
    /// # Errors
    /// As [`Client::new`], and if there is no certificate in it.
    pub fn trusting(address: &str, token: &str, certificates: &[u8]) -> Result<Self, ClientError> {
        let found = parse_pem(certificates).filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        });
        let found: Vec<_> = found.collect();
        if found.is_empty() {
            return Err(ClientError::Certificate);
        }
        Self::build(address, token, RootCerts::from(found))
    }

    fn build(address: &str, token: &str, trusted: RootCerts) -> Result<Self, ClientError> {
        let address = address.trim_end_matches('/');
        let token = token.trim();
        let host = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://"));
        if host.is_none_or(|host| host.is_empty() || host.contains(['/', '?', '#', '@'])) {
            return Err(ClientError::Address(address.to_owned()));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ClientError::Token);
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .timeout_connect(Some(CONNECT))
            .http_status_as_error(false)
            .max_redirects(0)
            .tls_config(TlsConfig::builder().root_certs(trusted).build())
            .build();
        Ok(Self { http: config.into(), address: address.to_owned(), bearer: format!("Bearer {token}") })
    }

    /// The collector's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends envelopes of one incarnation, laid end to end.
    ///
    /// # Errors
    /// If there is no answer, or none that a collector gives.
    pub fn send(&self, identity: &Identity, body: &[u8]) -> Result<Reply, ClientError> {
        let Identity { tenant, stream, incarnation } = identity;
        let url = format!("{}/v1/{tenant}/{stream}/{incarnation}", self.address);
        let request = self.http.post(url).header("Authorization", &self.bearer);
        let patience = PATIENCE + Duration::from_secs(body.len() as u64 / SLOWEST);
        let request = request.config().timeout_global(Some(patience)).build();
        let answer = self.read(request.content_type("application/octet-stream").send(body))?;
        serde_json::from_slice(&answer).map_err(|error| self.garbled(error))
    }

    /// Asks for what stands at a path, with parameters that are encoded here.
    ///
    /// # Errors
    /// If there is no answer, or the collector refuses.
    pub fn get<'q>(
        &self,
        path: &str,
        parameters: impl IntoIterator<Item = (&'q str, String)>,
    ) -> Result<Vec<u8>, ClientError> {
        let request = self.http.get(format!("{}{path}", self.address)).header("Authorization", &self.bearer);
        self.read(request.query_pairs(parameters).call())
    }

    /// Asks with a body in JSON, and reads the answer as JSON.
    ///
    /// # Errors
    /// As [`Client::get_json`].
    pub fn post_json<'q, T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        parameters: impl IntoIterator<Item = (&'q str, String)>,
        body: &serde_json::Value,
    ) -> Result<T, ClientError> {
        let request = self.http.post(format!("{}{path}", self.address)).header("Authorization", &self.bearer);
        let request = request.query_pairs(parameters).content_type("application/json");
        let answer = self.read(request.send(body.to_string()))?;
        serde_json::from_slice(&answer).map_err(|error| self.garbled(error))
    }

    fn read(&self, response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Vec<u8>, ClientError> {
        let unreachable = |error: ureq::Error| {
            let why = match error {
                ureq::Error::Io(error) => error.to_string(),
                other => other.to_string(),
            };
            // As the TLS library has it, it says nothing to anybody else.
            let is_plain = self.address.starts_with("https:") && why.contains("InvalidContentType");
            let why = if is_plain { "it does not speak HTTPS: write http://".to_owned() } else { why };
            ClientError::Unreachable { address: self.address.clone(), why }
        };
        let mut response = response.map_err(unreachable)?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(LARGEST_ANSWER).read_to_vec().map_err(unreachable)?;
        if status.is_success() {
            return Ok(body);
        }
        let problem: Option<serde_json::Value> = serde_json::from_slice(&body).ok();
        let detail =
            problem.as_ref().and_then(|problem| problem.get("detail")?.as_str()).unwrap_or("no reason is given");
        // It may come from anywhere, and will be printed.
        let detail = detail.chars().filter(|char| !char.is_control()).take(500).collect();
        Err(ClientError::Refused { address: self.address.clone(), status: status.as_u16(), detail })
    }

    pub(crate) fn garbled(&self, error: impl std::fmt::Display) -> ClientError {
        ClientError::Garbled { address: self.address.clone(), why: error.to_string() }
    }

    /// Asks as [`Client::get`] does, and reads the answer as JSON.
    ///
    /// # Errors
    /// As [`Client::get`], and if the answer is something else.
    pub fn get_json<'q, T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        parameters: impl IntoIterator<Item = (&'q str, String)>,
    ) -> Result<T, ClientError> {
        let answer = self.get(path, parameters)?;
        serde_json::from_slice(&answer).map_err(|error| self.garbled(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in ["http://127.0.0.1:7070", "http://collector/", "http://[::1]:7070", "https://a:1"] {
            assert!(Client::new(good, "t").is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:7070", "http://", "ftp://a", "http://a/b", "http://user@host"] {
            assert_eq!(Client::new(bad, "t").unwrap_err(), ClientError::Address(bad.trim_end_matches('/').to_owned()));
        }
    }

    #[test]
    fn tokens() {
        for good in ["ucl_0af", "", "ucl_0af\n"] {
            assert!(Client::new("http://a", good).is_ok(), "{good:?}");
        }
        for bad in ["a b", "tök", "a\nb"] {
            assert_eq!(Client::new("http://a", bad).unwrap_err(), ClientError::Token, "{bad:?}");
        }
    }

    #[test]
    fn a_file_without_certificates_is_refused() {
        assert_eq!(Client::trusting("https://a:1", "t", b"no PEM").unwrap_err(), ClientError::Certificate);
    }

    #[test]
    fn a_collector_that_is_down_is_named() {
        // A port that nobody listens on: it was given back.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("http://127.0.0.1:{port}");
        let error = Client::new(&address, "t").unwrap().get("/healthz", []).unwrap_err();
        assert!(matches!(&error, ClientError::Unreachable { .. }), "{error:?}");
        assert!(error.to_string().starts_with(&format!("cannot reach {address}: ")), "{error}");
    }
}
