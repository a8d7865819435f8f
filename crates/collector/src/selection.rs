//! Which streams a question is about.

use std::collections::BTreeSet;

use ucl_link::{Identity, Name};

/// Streams by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// All streams.
    #[default]
    All,
    /// All streams whose names start with this text.
    Prefix(String),
    /// The named streams.
    Named(BTreeSet<Name>),
    /// All streams that any of these selects.
    Any(Vec<Streams>),
}

impl Streams {
    /// Returns true if a stream is selected.
    pub fn has(&self, stream: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(prefix) => stream.as_str().starts_with(prefix.as_str()),
            Self::Named(names) => names.contains(stream),
            Self::Any(any) => any.iter().any(|streams| streams.has(stream)),
        }
    }
}

/// Streams that a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Tenant of the streams.
    pub tenant: Name,
    /// A stream must be in each of them.
    pub streams: Vec<Streams>,
}

impl Selection {
    /// Selects all streams of a tenant.
    pub fn tenant(tenant: Name) -> Self {
        Self { tenant, streams: Vec::new() }
    }

    /// Selects one stream.
    pub fn stream(tenant: Name, stream: Name) -> Self {
        Self { tenant, streams: vec![Streams::Named(BTreeSet::from([stream]))] }
    }

    /// Returns true if a sender is selected.
    pub fn has(&self, identity: &Identity) -> bool {
        identity.tenant == self.tenant && self.streams.iter().all(|streams| streams.has(&identity.stream))
    }
}
