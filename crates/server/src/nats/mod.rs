//! Epochs from NATS JetStream: this collector's partitions, each read in order.
//!
//! A [`Partition`] is a [place](place) on disk, a collector with its thread, and a task that reads
//! what the broker has and answers agents. What was read is durable in the collector's log; how far
//! is noted beside it ([`position`]), and below that the broker's messages are removed. A note that
//! is lost or old does no harm: the collector knows the epochs that it has, and takes none twice.
//!
//! Which partitions those are is configured (`own`), or decided among all collectors by
//! [leases](lease), which a [`Keeper`] takes and gives up.

mod keeper;
mod lease;
mod partition;
mod place;
mod position;
mod source;

use std::sync::Arc;

use async_nats::jetstream::Context;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use ucl_collector::CollectorSettings;
use ucl_link::nats::{Broker, Partitions};

use crate::config::Config;
use crate::cores::Cores;
use crate::nats_config::NatsConfig;
use crate::serve::StartError;
use keeper::Keeper;
use lease::Lease;
use partition::Partition;
use place::Places;
use source::Source;

/// The readers of all partitions of this collector.
pub struct Readers {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

/// Opens partitions.
#[derive(Clone)]
struct Opener {
    context: Context,
    partitions: Partitions,
    replicas: usize,
    places: Places,
    settings: CollectorSettings,
    cores: Cores,
}

impl Opener {
    fn source(&self, number: u32) -> Source {
        let Self { context, partitions, replicas, .. } = self;
        Source { context: context.clone(), partitions: *partitions, number, replicas: *replicas }
    }

    /// Opens a partition that nobody else may have.
    fn open(&self, number: u32) -> Result<Partition, StartError> {
        let place = self.places.last(number).map_err(|error| StartError::Nats(error.to_string()))?;
        Partition::open(self.source(number), &place, None, &self.settings, &self.cores)
    }

    /// Takes a partition over, and reads it until it is told to stop or the lease is lost.
    async fn read(&self, number: u32, lease: &Arc<Lease>, stop: watch::Receiver<bool>) -> Result<(), StartError> {
        let opener = self.clone();
        let holding = Arc::clone(lease);
        let opened = spawn_blocking(move || {
            let Self { places, settings, cores, .. } = &opener;
            let place = places.take_over(number, holding.fence);
            let place = place.map_err(|error| StartError::Nats(error.to_string()))?;
            Partition::open(opener.source(number), &place, Some(holding), settings, cores)
        });
        let partition = opened.await.map_err(|error| StartError::Nats(error.to_string()))??;
        // Nobody else can have begun to copy what is removed here.
        if lease.confirm().await.is_ok() {
            let places = self.places.clone();
            let fence = lease.fence;
            if let Ok(Err(error)) = spawn_blocking(move || places.remove_before(number, fence)).await {
                tracing::warn!(partition = number, %error, "the folder of the last owner could not be removed");
            }
        }
        partition.run(stop).await;
        Ok(())
    }
}

impl Readers {
    /// Begins to read. Does not wait for the broker.
    ///
    /// # Errors
    /// If the broker's address cannot be used, or a folder cannot be opened.
    pub fn start(runtime: &Runtime, nats: &NatsConfig, config: &Config, cores: &Cores) -> Result<Self, StartError> {
        let wrong = |error: &dyn std::fmt::Display| StartError::Nats(error.to_string());
        let broker = Broker::new(&nats.servers).map_err(|error| wrong(&error))?.with_ca(nats.ca.clone());
        let partitions = Partitions::new(nats.partitions).ok_or_else(|| wrong(&"no partitions"))?;
        let opener = Opener {
            places: Places::open(&config.data, partitions).map_err(|error| wrong(&error))?,
            context: runtime.block_on(broker.connect("ucl serve", true)).map_err(|error| wrong(&error))?,
            partitions,
            replicas: nats.replicas,
            settings: config.collector(),
            cores: cores.clone(),
        };
        tracing::info!(broker = broker.shown(), "reading from NATS");
        let mut readers = Self { stop: watch::Sender::new(false), tasks: Vec::new() };
        let Some(own) = &nats.own else {
            let keeper = Keeper::new(opener).run(readers.stop.subscribe());
            readers.tasks.push(runtime.spawn(keeper));
            return Ok(readers);
        };
        for &number in own {
            match opener.open(number) {
                Ok(partition) => readers.tasks.push(runtime.spawn(partition.run(readers.stop.subscribe()))),
                Err(error) => {
                    runtime.block_on(readers.stop());
                    return Err(error);
                }
            }
        }
        Ok(readers)
    }

    /// Stops reading, and writes everything down.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            if task.await.is_err() {
                tracing::error!("the reader of a partition panicked");
            }
        }
    }
}

/// Returns once it is time to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    // Whoever could tell may be gone, and then it is time too.
    let _ = stop.wait_for(|stop| *stop).await;
}
