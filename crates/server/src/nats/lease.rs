//! Leases: which collector has a partition.
//!
//! A lease is an entry of a bucket that the broker keeps (JetStream key-value), and is written by
//! compare-and-set alone: whoever writes must name the revision that it saw. The holder writes it
//! again and again; one that nobody has written for [`LEASE`], by the clock of whoever wants it,
//! may be taken. The revision of the write that took it is the *fence*: it grows with every owner,
//! and names the owner's folder.
//!
//! Whoever was held up for longer, and takes itself for the owner still, does no harm: what it
//! writes to its own folder, nobody reads, and before it tells an agent that an epoch is durable it
//! writes the lease once more ([`Lease::confirm`]), which fails. If it succeeds, the next owner
//! comes later, and reads the folder with the epoch.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::kv::{Config, CreateErrorKind, Entry, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::StorageType;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use super::source::SourceError;

/// A lease that was not written for so long may be taken.
pub const LEASE: Duration = Duration::from_secs(10);
/// How often the holder writes it.
pub const RENEW: Duration = Duration::from_secs(2);
const BUCKET: &str = "ucl-v1";
/// How often a write is tried whose outcome is not known.
const TRIES: usize = 3;

/// Holder of a partition, as it stands in the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The collector; empty if the partition is free.
    pub owner: String,
    /// Tells this time of owning it from all others.
    pub term: u64,
}

/// Why a lease is not ours, or not known to be.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// Another collector has it.
    #[error("another collector has taken the partition")]
    Lost,
    /// The broker does not answer.
    #[error("the lease: {0}")]
    Broker(#[from] SourceError),
}

/// The bucket.
#[derive(Clone)]
pub struct Leases {
    store: Store,
}

impl Leases {
    /// Opens the bucket, and makes it if it is not there.
    pub async fn open(broker: &Context, replicas: usize) -> Result<Self, SourceError> {
        let version = broker.client().server_info().version;
        if is_too_old(&version) {
            let remedy = "use 2.10 or later, or give each collector its partitions (--own)";
            return Err(format!("nats-server {version} keeps no leases: {remedy}").into());
        }
        if let Ok(store) = broker.get_key_value(BUCKET).await {
            return Ok(Self { store });
        }
        let config = Config {
            bucket: BUCKET.into(),
            description: "collectors of UCL-sketch and their partitions".into(),
            history: 1,
            storage: StorageType::File,
            num_replicas: replicas,
            ..Config::default()
        };
        Ok(Self { store: broker.create_key_value(config).await? })
    }

    /// The entry of a partition, with its revision. It may be old, never invented.
    pub async fn get(&self, partition: u32) -> Result<Option<(Held, u64)>, SourceError> {
        let entry = self.store.entry(key(partition)).await?;
        Ok(entry.map(|entry| (held(&entry), entry.revision)))
    }

    /// Takes a partition whose entry has this revision; 0 if there is none. `None` if somebody else
    /// was first.
    pub async fn take(&self, partition: u32, owner: &str, term: u64, seen: u64) -> Result<Option<Lease>, SourceError> {
        let held = Held { owner: owner.into(), term };
        let key = key(partition);
        let value = serde_json::to_vec(&held)?;
        let written = match seen {
            0 => match self.store.create(&key, value.into()).await {
                Err(error) if error.kind() == CreateErrorKind::AlreadyExists => return Ok(None),
                written => written?,
            },
            _ => match self.store.update(&key, value.into(), seen).await {
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => return Ok(None),
                written => written?,
            },
        };
        Ok(Some(Lease { leases: self.clone(), partition, held, fence: written, revision: Mutex::new(written) }))
    }

    /// Says that a collector is there.
    pub async fn appear(&self, member: &str) -> Result<(), SourceError> {
        self.store.put(format!("member.{member}"), Default::default()).await?;
        Ok(())
    }

    /// Says that it is not there any more.
    pub async fn leave(&self, member: &str) -> Result<(), SourceError> {
        Ok(self.store.purge(format!("member.{member}")).await?)
    }

    /// All collectors that appeared and did not leave, by name, with the revision of their last
    /// appearance.
    pub async fn members(&self) -> Result<Vec<(String, u64)>, SourceError> {
        let mut keys = self.store.keys().await?;
        let mut members = Vec::new();
        while let Some(key) = futures_util::StreamExt::next(&mut keys).await {
            let key = key?;
            let Some(member) = key.strip_prefix("member.") else { continue };
            let Some(entry) = self.store.entry(&key).await?.filter(|entry| entry.operation == Operation::Put) else {
                continue;
            };
            members.push((member.to_owned(), entry.revision));
        }
        members.sort();
        Ok(members)
    }
}

/// Whether a broker is older than 2.10. One that is not connected has no version yet.
fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < (2, 10),
        _ => false,
    }
}

fn key(partition: u32) -> String {
    format!("partition.{partition}")
}

/// What cannot be read is nobody's.
fn held(entry: &Entry) -> Held {
    let free = Held { owner: String::new(), term: 0 };
    if entry.operation == Operation::Put { serde_json::from_slice(&entry.value).unwrap_or(free) } else { free }
}

/// A partition that this collector has.
pub struct Lease {
    leases: Leases,
    partition: u32,
    held: Held,
    /// Larger than that of every owner before.
    pub fence: u64,
    revision: Mutex<u64>,
}

impl Lease {
    /// Writes the lease again. Once it returns, nobody had taken the partition when it was called.
    ///
    /// # Errors
    /// If somebody has, or the broker does not say.
    pub async fn confirm(&self) -> Result<(), LeaseError> {
        let mut revision = self.revision.lock().await;
        *revision = self.write(&self.held, *revision).await?;
        Ok(())
    }

    /// Gives the partition up, for others to take at once.
    pub async fn release(&self) -> Result<(), LeaseError> {
        let revision = self.revision.lock().await;
        self.write(&Held { owner: String::new(), term: 0 }, *revision).await?;
        Ok(())
    }

    async fn write(&self, held: &Held, mut revision: u64) -> Result<u64, LeaseError> {
        let value = serde_json::to_vec(held).map_err(SourceError::from)?;
        let mut unknown = LeaseError::Lost;
        for _ in 0..TRIES {
            match self.leases.store.update(key(self.partition), value.clone().into(), revision).await {
                Ok(written) => return Ok(written),
                Err(error) if error.kind() != UpdateErrorKind::WrongLastRevision => {
                    unknown = LeaseError::Broker(error.into());
                }
                Err(_) => {}
            }
            // A write of ours may have arrived without our knowing.
            match self.leases.get(self.partition).await? {
                Some((held, seen)) if held == self.held => revision = seen,
                _ => return Err(LeaseError::Lost),
            }
        }
        Err(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert!(is_too_old("2.9.10") && is_too_old("1.4.1"));
        assert!(!is_too_old("2.10.0") && !is_too_old("2.15.1") && !is_too_old("") && !is_too_old("3.0.0"));
    }
}
