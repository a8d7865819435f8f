//! Takes partitions, and gives them up, so that all collectors have as many.
//!
//! Every collector sees the others in the bucket of leases, and reckons with the same rule how many
//! partitions each of them is due ([`share`]). One with too many gives some up; one with too few
//! takes what is free, or what its owner has let expire.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::lease::{LEASE, Lease, LeaseError, Leases, RENEW};
use super::source::SourceError;
use super::{Opener, told};

/// How often the bucket is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// The one task that decides what this collector has.
pub struct Keeper {
    opener: Opener,
    member: String,
    held: BTreeMap<u32, Reader>,
    /// When each entry was first seen with its revision.
    seen: HashMap<String, (u64, Instant)>,
    appeared: Option<Instant>,
}

/// A partition that is being read.
struct Reader {
    stop: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Keeper {
    /// Has nothing yet.
    pub fn new(opener: Opener) -> Self {
        let member = format!("{:016x}", random());
        Self { opener, member, held: BTreeMap::new(), seen: HashMap::new(), appeared: None }
    }

    /// Keeps partitions until it is told to stop; then gives them up.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut leases = None;
        while !*stop.borrow() {
            let looked = match &leases {
                Some(leases) => self.look(leases).await,
                None => Leases::open(&self.opener.context, self.opener.replicas).await.map(|opened| {
                    leases = Some(opened);
                }),
            };
            let mut pause = LOOK;
            if let Err(error) = looked {
                tracing::warn!(%error, "the leases of partitions cannot be read; trying again");
                pause = LEASE / 2;
            }
            tokio::select! {
                () = sleep(pause) => {}
                () = told(&mut stop) => {}
            }
        }
        let all: Vec<u32> = self.held.keys().copied().collect();
        self.give_up(all).await;
        if let Some(leases) = leases
            && let Err(error) = leases.leave(&self.member).await
        {
            tracing::warn!(%error, "other collectors were not told of our end");
        }
    }

    /// Looks once at who is there and who has what.
    async fn look(&mut self, leases: &Leases) -> Result<(), SourceError> {
        self.held.retain(|_, reader| !reader.task.is_finished());
        if self.appeared.is_none_or(|last| last.elapsed() >= RENEW) {
            leases.appear(&self.member).await?;
            self.appeared = Some(Instant::now());
        }
        let mut alive = Vec::new();
        for (member, revision) in leases.members().await? {
            if member == self.member || !self.is_expired(&format!("member.{member}"), revision) {
                alive.push(member);
            }
        }
        let due = share(&alive, &self.member, self.opener.partitions.number());
        if self.held.len() > due {
            let surplus = self.held.keys().rev().take(self.held.len() - due).copied().collect();
            self.give_up(surplus).await;
        }
        for partition in 0..self.opener.partitions.number() {
            if self.held.contains_key(&partition) {
                continue;
            }
            let entry = leases.get(partition).await?;
            let (is_free, revision) = match &entry {
                None => (true, 0),
                Some((held, revision)) => {
                    let expired = self.is_expired(&format!("partition.{partition}"), *revision);
                    (held.owner.is_empty() || expired, *revision)
                }
            };
            if is_free
                && self.held.len() < due
                && let Some(lease) = leases.take(partition, &self.member, random(), revision).await?
            {
                self.begin(partition, lease);
            }
        }
        Ok(())
    }

    /// Whether nobody has written an entry for long, since we saw it first.
    fn is_expired(&mut self, key: &str, revision: u64) -> bool {
        let now = Instant::now();
        let seen = self.seen.entry(key.to_owned()).or_insert((revision, now));
        if seen.0 != revision {
            *seen = (revision, now);
        }
        now.duration_since(seen.1) > LEASE
    }

    /// Opens a partition that we have taken, and reads it.
    fn begin(&mut self, partition: u32, lease: Lease) {
        tracing::info!(partition, fence = lease.fence, "this collector has taken a partition");
        let lease = Arc::new(lease);
        let stop = Arc::new(watch::Sender::new(false));
        let opener = self.opener.clone();
        let told = stop.subscribe();
        let renewing = tokio::spawn(renew(partition, Arc::clone(&lease), Arc::clone(&stop)));
        let task = tokio::spawn(async move {
            if let Err(error) = opener.read(partition, &lease, told).await {
                tracing::error!(partition, %error, "a partition cannot be opened");
                // Another collector may be able to.
                sleep(RENEW).await;
            }
            renewing.abort();
            match lease.release().await {
                Ok(()) => tracing::info!(partition, "this collector has given a partition up"),
                Err(error) => tracing::warn!(partition, %error, "a partition ended here"),
            }
        });
        self.held.insert(partition, Reader { stop, task });
    }

    /// Gives partitions up, once everything of them is written down.
    async fn give_up(&mut self, partitions: Vec<u32>) {
        let readers: Vec<Reader> = partitions.iter().filter_map(|partition| self.held.remove(partition)).collect();
        readers.iter().for_each(|reader| {
            reader.stop.send_replace(true);
        });
        for reader in readers {
            if reader.task.await.is_err() {
                tracing::error!("the reader of a partition panicked");
            }
        }
    }
}

/// Writes a lease again and again, and stops the partition once another collector has it.
async fn renew(partition: u32, lease: Arc<Lease>, stop: Arc<watch::Sender<bool>>) {
    loop {
        sleep(RENEW).await;
        match lease.confirm().await {
            Ok(()) => {}
            Err(LeaseError::Lost) => {
                stop.send_replace(true);
                return;
            }
            Err(error) => tracing::warn!(partition, %error, "a lease could not be renewed; trying again"),
        }
    }
}

fn random() -> u64 {
    // A system without randomness has a clock.
    getrandom::u64().unwrap_or_else(|_| ucl_link::Clock::wall_ms() as u64)
}

/// How many partitions a member is due: all as many, and those that are left over one by one to the
/// first by name.
fn share(members: &[String], member: &str, partitions: u32) -> usize {
    let number = members.len().max(1);
    let rank = members.iter().position(|other| other == member).unwrap_or(number);
    let (each, over) = (partitions as usize / number, partitions as usize % number);
    each + usize::from(rank < over)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_partition_is_somebodys_due() {
        let members: Vec<String> = ["a", "b", "c"].map(str::to_owned).to_vec();
        for number in 1..=3 {
            let members = &members[..number];
            for partitions in [1, 2, 3, 4, 16, 17] {
                let due: Vec<usize> = members.iter().map(|member| share(members, member, partitions)).collect();
                assert_eq!(due.iter().sum::<usize>(), partitions as usize);
                assert!(due.iter().max().unwrap() - due.iter().min().unwrap() <= 1, "{due:?}");
            }
        }
        assert_eq!(share(&[], "a", 4), 4, "alone");
    }
}
