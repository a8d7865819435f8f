//! Which streams a question is about.

use std::collections::BTreeSet;

use ucl_link::{Identity, Name};

/// Streams by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Streams {
    /// All of them.
    #[default]
    All,
    /// Those whose names start so.
    Prefix(String),
    /// These.
    Named(BTreeSet<Name>),
    /// Those that are in any of these.
    Any(Vec<Streams>),
}

impl Streams {
    /// Whether a stream is one of them.
    pub fn has(&self, stream: &Name) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(prefix) => stream.as_str().starts_with(prefix.as_str()),
            Self::Named(names) => names.contains(stream),
            Self::Any(any) => any.iter().any(|streams| streams.has(stream)),
        }
    }
}

/// Which streams a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Whose.
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

    /// Whether a sender is selected.
    pub fn has(&self, identity: &Identity) -> bool {
        identity.tenant == self.tenant && self.streams.iter().all(|streams| streams.has(&identity.stream))
    }
}
