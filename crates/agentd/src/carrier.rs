//! The way to the collector: over HTTP, or by way of a broker.

#[cfg(feature = "nats")]
use ucl_link::nats::{self, Broker};
use ucl_link::{Client, Identity, Reply};

use crate::AgentdError;
use crate::args::{Args, client};
#[cfg(feature = "nats")]
use crate::worker::random;

/// Sends one stream's requests. Clones share connections.
#[derive(Clone)]
pub enum Carrier {
    Http(Client),
    #[cfg(feature = "nats")]
    Nats(nats::Carrier),
}

impl Carrier {
    /// Opens the way that the address names. Nothing is sent yet.
    pub fn open(args: &Args) -> Result<Self, AgentdError> {
        if ["nats://", "tls://"].iter().any(|scheme| args.to.starts_with(scheme)) {
            return Self::over_nats(args);
        }
        let Some(token) = &args.token else {
            return Err(AgentdError::usage("a collector needs a token: give --token, or set UCL_TOKEN"));
        };
        client(&args.to, token, args.ca.as_deref()).map(Self::Http)
    }

    #[cfg(feature = "nats")]
    fn over_nats(args: &Args) -> Result<Self, AgentdError> {
        let broker = Broker::new(&args.to).map_err(AgentdError::usage)?.with_ca(args.ca.clone());
        Ok(Self::Nats(nats::Carrier::start(&broker).map_err(AgentdError::usage)?))
    }

    #[cfg(not(feature = "nats"))]
    fn over_nats(_: &Args) -> Result<Self, AgentdError> {
        Err(AgentdError::usage(
            "this program was built without NATS (feature `nats`): give the collector's http:// address",
        ))
    }

    /// Sends a request and waits for the reply.
    pub fn send(&mut self, identity: &Identity, body: &[u8]) -> Result<Reply, String> {
        match self {
            Self::Http(client) => client.send(identity, body).map_err(|error| error.to_string()),
            #[cfg(feature = "nats")]
            Self::Nats(carrier) => carrier.send(identity, body, random()),
        }
    }
}
