//! A connection to the broker.

use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, ServerAddr, jetstream};

/// How long the broker may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a connection may take to be made, and the longest wait before another attempt.
const CONNECT: Duration = Duration::from_secs(5);
const RECONNECT: Duration = Duration::from_secs(2);
/// How often the broker is asked whether it is still there.
const PING: Duration = Duration::from_secs(10);

/// Address of a broker, and the credentials for it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Broker {
    servers: Vec<String>,
    ca: Option<PathBuf>,
}

/// Why there is no connection to the broker.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// An address is none.
    #[error("{0:?} is not the address of a NATS server: write nats://HOST:PORT, several with commas between them")]
    Address(String),
    /// The broker cannot be reached, or does not let us in.
    #[error("cannot reach the broker: {0}")]
    Unreachable(String),
}

/// What may be shown: no password.
impl std::fmt::Debug for Broker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Broker").field("servers", &self.servers.len()).finish_non_exhaustive()
    }
}

impl Broker {
    /// Returns true if an address is that of a broker.
    pub fn is_named(address: &str) -> bool {
        address.starts_with("nats://") || address.starts_with("tls://")
    }

    /// Reads addresses with commas between them: `nats://HOST:PORT`, or `tls://` for an encrypted
    /// connection. A user and password go before the host, as in `nats://user:password@host:4222`,
    /// or a token, as in `nats://token@host:4222`.
    ///
    /// # Errors
    /// If one is not an address.
    pub fn new(addresses: &str) -> Result<Self, BrokerError> {
        let servers: Vec<String> = addresses.split(',').map(|address| address.trim().to_owned()).collect();
        let has_host = |server: &String| server.parse::<ServerAddr>().is_ok_and(|server| !server.host().is_empty());
        match servers.iter().find(|server| !Self::is_named(server) || !has_host(server)) {
            Some(wrong) => Err(BrokerError::Address(without_password(wrong))),
            None => Ok(Self { servers, ca: None }),
        }
    }

    /// Trusts the certificates of a file (PEM).
    pub fn with_ca(self, ca: Option<PathBuf>) -> Self {
        Self { ca, ..self }
    }

    /// The addresses, for people to read.
    pub fn shown(&self) -> String {
        self.servers.iter().map(|server| without_password(server)).collect::<Vec<_>>().join(",")
    }

    /// Connects. A connection that breaks is made again, for ever. With `patient`, this one returns
    /// at once even if the broker is down.
    ///
    /// # Errors
    /// If the addresses or certificates cannot be used, or the broker cannot be reached.
    pub async fn connect(&self, name: &str, patient: bool) -> Result<jetstream::Context, BrokerError> {
        let mut options = ConnectOptions::new()
            .name(name)
            .ping_interval(PING)
            .connection_timeout(CONNECT)
            .request_timeout(Some(PATIENCE))
            .max_reconnects(None)
            .reconnect_delay_callback(|attempts| RECONNECT.min(Duration::from_millis(50 << attempts.clamp(1, 8))));
        if patient {
            options = options.retry_on_initial_connect();
        }
        if let Some(ca) = &self.ca {
            options = options.add_root_certificates(ca.clone());
        }
        let address = |server: &String| server.parse().map_err(|_| BrokerError::Address(without_password(server)));
        let servers = self.servers.iter().map(address).collect::<Result<Vec<ServerAddr>, BrokerError>>()?;
        // All servers of a cluster know the same users.
        let named = servers.iter().find_map(|server| Some((server.username()?, server.password())));
        options = match named {
            Some((user, Some(password))) => options.user_and_password(user.to_owned(), password.to_owned()),
            Some((token, None)) => options.token(token.to_owned()),
            None => options,
        };
        let client: Client =
            options.connect(servers).await.map_err(|error| BrokerError::Unreachable(error.to_string()))?;
        let mut context = jetstream::new(client);
        context.set_timeout(PATIENCE);
        Ok(context)
    }
}

fn without_password(address: &str) -> String {
    match (address.split_once("://"), address.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let broker = Broker::new("nats://user:secret@a:4222, tls://b").unwrap();
        assert_eq!(broker.shown(), "nats://a:4222,tls://b");
        assert!(!format!("{broker:?}").contains("secret"));
        for wrong in ["", "http://a", "nats://a,b", "nats://"] {
            assert!(matches!(Broker::new(wrong), Err(BrokerError::Address(_))), "{wrong}");
        }
    }
}
