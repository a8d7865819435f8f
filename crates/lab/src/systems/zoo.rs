//! The systems of [`ucl_zoo`] as measured systems.

use std::time::Instant;

use ucl_streams::{Batch, ExactCounts};
use ucl_zoo::{Entry, Knowledge, Oracle, Rival, RivalPlan};

use crate::registry::{Build, Method};
use crate::system::{Answer, Extras, Request, System, SystemError};
use ucl_sketch::Memory;

/// A learned oracle is trained on the first of so many parts of the stream.
const SAMPLE_PART: u64 = 10;

/// System of the zoo. Only this type gives it knowledge of the stream: the true ranking of the keys
/// for an ideal oracle, the exact counts of the first tenth for a learned one.
pub struct Zoo {
    rival: Box<dyn Rival>,
    /// What came, where the system is to be fed totals instead of the stream.
    totals: Option<ExactCounts>,
    decode_ms: Option<f64>,
}

impl Zoo {
    /// Creates the system with this name.
    ///
    /// # Panics
    /// If there is none: names are written in the source.
    pub fn new(name: &str, request: &Request<'_>) -> Result<Self, SystemError> {
        let entry = ucl_zoo::find(name).expect("the zoo has a system of this name");
        let plan = RivalPlan {
            budget: request.budget,
            keys: request.keys,
            seed: request.seed,
            expected_keys: request.options.expected_keys,
            paper_shape: request.options.paper_shapes,
            knowledge: None,
        };
        let rival = match entry.oracle {
            Oracle::None => entry.build(&plan)?,
            Oracle::Ideal => {
                // More than fit into the budget are of no use.
                let top = request.stream.truth().top(request.budget / 4);
                let ranking: Vec<&[u8]> = top.into_iter().map(|(key, _)| key).collect();
                entry.build(&RivalPlan { knowledge: Some(Knowledge::Ranking(&ranking)), ..plan })?
            }
            Oracle::Trained => {
                let mut counts = ExactCounts::new();
                let items = request.stream.items().div_ceil(SAMPLE_PART) as usize;
                request.stream.batch().items().take(items).for_each(|(key, weight)| counts.insert(key, weight));
                let sample: Vec<(&[u8], u64)> = counts.iter().collect();
                entry.build(&RivalPlan { knowledge: Some(Knowledge::Sample(&sample)), ..plan })?
            }
        };
        Ok(Self { rival, totals: None, decode_ms: None })
    }

    /// Creates the system so that it is fed the total of every key, in ascending order, instead of
    /// the stream: what no system that sees a stream can be, and what the code of the UCL-sketch
    /// paper does with its baselines.
    pub fn fed_totals(name: &str, request: &Request<'_>) -> Result<Self, SystemError> {
        Ok(Self { totals: Some(ExactCounts::new()), ..Self::new(name, request)? })
    }
}

impl System for Zoo {
    fn insert(&mut self, batch: Batch<'_>) -> Result<(), SystemError> {
        if let Some(totals) = &mut self.totals {
            totals.insert_batch(batch);
            return Ok(());
        }
        match batch.fixed() {
            Some((bytes, keys)) => self.rival.insert_flat(bytes, keys, batch.weights())?,
            None => batch.items().try_for_each(|(key, weight)| self.rival.insert(key, weight))?,
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SystemError> {
        if let Some(totals) = self.totals.take() {
            let mut ascending: Vec<(u64, &[u8])> = totals.iter().map(|(key, count)| (count, key)).collect();
            ascending.sort_unstable();
            ascending.into_iter().try_for_each(|(count, key)| self.rival.insert(key, count))?;
        }
        let start = Instant::now();
        self.rival.finish()?;
        self.decode_ms = Some(start.elapsed().as_secs_f64() * 1e3);
        Ok(())
    }

    fn estimate(&self, key: &[u8]) -> Answer {
        Answer { estimate: self.rival.estimate(key), bounds: self.rival.bounds(key) }
    }

    fn knows(&self, key: &[u8]) -> Option<bool> {
        self.rival.knows(key)
    }

    fn memory(&self) -> Memory {
        self.rival.memory()
    }

    fn extras(&self) -> Extras {
        let cost = self.rival.cost();
        Extras {
            // Only systems that send something decode something.
            decode_ms: cost.uplink_bytes.and(self.decode_ms),
            uplink_bytes: cost.uplink_bytes,
            control_bytes: cost.control_bytes,
            shape: self.rival.shape().into_iter().collect(),
            ..Extras::default()
        }
    }
}

/// Returns all systems of the zoo, in its order.
pub fn methods() -> Vec<Method> {
    fn method(name: &'static str, build: Build) -> Method {
        let &Entry { name, about, reference, variant, .. } = ucl_zoo::find(name).expect("a name of the zoo");
        Method { name, about, reference, baseline: false, variant, build }
    }
    // A function apiece: a method has no place for anything but its name.
    macro_rules! methods {
        ($($name:literal)*) => { vec![$(method($name, |request| Ok(Box::new(Zoo::new($name, request)?)))),*] };
    }
    methods![
        "cm" "cu" "cs" "asketch" "elastic" "univmon" "nitro" "lcm" "lcs" "flowradar" "pr" "seq" "hist" "lss"
        "nitro-line" "cs-alike" "lcs-alike" "lcm-trained" "lcs-trained" "lcm-rnn" "lcs-rnn"
    ]
}

#[cfg(test)]
mod tests {
    use ucl_streams::{BatchBuf, ReadOptions};

    use crate::experiment::measure_accuracy;
    use crate::{MethodRegistry, Options, Recording};

    #[test]
    fn the_whole_zoo_can_be_measured() {
        let names: Vec<&str> = super::methods().iter().map(|method| method.name).collect();
        let zoo: Vec<&str> = ucl_zoo::ENTRIES.iter().map(|entry| entry.name).collect();
        assert_eq!(names, zoo);
    }

    /// The variant is Elastic Sketch on a stream that has every key once, with its total, the
    /// smallest first.
    #[test]
    fn fed_totals_are_the_stream_of_totals_in_ascending_order() {
        let stream = Recording::read(&["zipf:1.1:60000:6000".parse().unwrap()], &ReadOptions::default()).unwrap();
        let mut ascending = stream.truth().top(usize::MAX);
        ascending.sort_unstable_by_key(|&(key, count)| (count, key));
        let mut totals = Recording::new("totals".to_owned());
        let mut items = BatchBuf::new();
        ascending.iter().for_each(|(key, count)| items.push(key, *count));
        totals.extend(items.as_batch());
        let registry = MethodRegistry::standard();
        let aae = |name: &str, stream: &Recording| {
            let method = registry.find(name).unwrap();
            measure_accuracy(method, stream, 16 << 10, 1, &Options::default()).row.aae.unwrap()
        };
        assert_eq!(aae("elastic-sum", &stream), aae("elastic", &totals));
        assert_ne!(aae("elastic-sum", &stream), aae("elastic", &stream));
    }
}
