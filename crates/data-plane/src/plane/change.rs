//! Changes in mid-stream: other hashes, other sizes, a new cycle.
//!
//! A conventional sketch whose hash functions change has lost its past: its counters no longer say
//! whose they are. Here the counters are sent off first (a cut), under the configuration that they
//! were counted in, and new ones start from zero with an empty Bloom filter: a new *segment*. A
//! key's count is the sum over its segments, so nothing is lost and nothing is counted twice. (The
//! paper's "Coping with Sketch Changes" goes on in the same counters, with new columns; see
//! `ucl_control_plane::ChangeKind`.)
//!
//! The heavy part holds exact counts, and keeps them: its keys move to their new slots, the largest
//! first. One that finds its slot taken, or too few slots, enters the new segment's counters with
//! its count, as if it had been evicted there.

use alloc::vec::Vec;

use super::{DataPlane, Light};
use crate::config::{Config, ConfigError};
use crate::heavy::{HeavyChange, Reason};
use crate::key::KeyFormat;
use crate::load::KnownKeys;
use crate::report::{KeyFlags, KeyRef, Opening, Report, ReportRule, ReportSink};
use crate::table::{OutOfMemory, reserve};
use crate::totals::StreamTotals;

impl<const N: usize, H: HeavyChange<N>> DataPlane<N, H> {
    /// Ends the segment and goes on in another configuration: other hashes (a new seed), other
    /// sizes, or both. Keys keep their format. For the moment of the change both sketches are in
    /// memory.
    ///
    /// ```
    /// use ucl_data_plane::{Config, DataPlane, KeyFormat, Report, ReportRule, Shape};
    ///
    /// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
    /// let mut plane = DataPlane::<4>::new(config)?;
    /// let mut sink = |_: Report<'_>| (); // a control plane
    /// plane.insert(b"key1", 5, &mut sink)?;
    /// plane.change(Config { seed: 2.into(), ..config }, &mut sink)?;
    /// plane.insert(b"key1", 2, &mut sink)?;
    /// assert_eq!(plane.exact(b"key1"), 7); // the heavy part has moved
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn change(&mut self, config: Config, sink: &mut impl ReportSink) -> Result<(), ConfigError> {
        config.shape.validate()?;
        if config.keys != self.light.config.keys {
            let (want, got) = (self.light.config.keys.slot_bytes(), config.keys.slot_bytes());
            return Err(ConfigError::KeySize { want, got });
        }
        let (want, got) = (self.light.config.seed.hashing(), config.seed.hashing());
        if want != got {
            return Err(ConfigError::HashFunctions { want, got });
        }
        // All memory first: where there is none, the sketch goes on as it was.
        let mut light = Light::new(config, self.light.seed.rehashed(config.seed))?;
        let heavy = self.heavy.resized(&config.shape)?;
        let holders = self.holders()?;
        self.cut(sink);
        light.generations.held = self.light.generations.held;
        // None of the keys are known in the new columns.
        light.known = self.light.known.take();
        light.known.iter_mut().for_each(KnownKeys::clear);
        (self.light, self.heavy) = (light, heavy);
        sink.report(Report::Open { config: &config, opening: Opening::Change });
        self.move_heavy(holders, sink);
        Ok(())
    }

    /// Starts a new cycle, from zero: nothing was ever inserted. What the sink has not been told in
    /// a cut is gone. `keep_weights` is for a control plane that has trained a network.
    pub fn reset(&mut self, keep_weights: bool, sink: &mut impl ReportSink) {
        let config = self.light.config;
        self.heavy.clear();
        self.light.clear();
        self.totals = StreamTotals::default();
        sink.report(Report::Open { config: &config, opening: Opening::Reset { keep_weights } });
    }

    /// Returns the keys of the heavy part, the largest count first.
    fn holders(&self) -> Result<Vec<([u8; N], u64, bool)>, OutOfMemory> {
        // What holds a slot with nothing in it (exchanged in, never hit since) has all its weight
        // in the counters.
        let holders = || self.heavy.entries().filter(|&(_, _, count, _)| count > 0);
        let mut all = Vec::new();
        reserve(&mut all, holders().count())?;
        all.extend(holders().map(|(_, key, count, hot)| (key, count, hot)));
        all.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(all)
    }

    /// Gives the former holders their places in a heavy part that is empty.
    fn move_heavy(&mut self, holders: Vec<([u8; N], u64, bool)>, sink: &mut impl ReportSink) {
        for (key, count, hot) in holders {
            let hash = self.light.seed.hash(&key);
            if self.light.config.keys == KeyFormat::Digest {
                // A long key goes through the filter when it is first seen, not when it leaves its
                // slot: it has been seen.
                self.light.is_new(hash);
            }
            if !self.heavy.place(hash, &key, count, hot) {
                self.light.evict(&key, count, hot, sink);
            }
        }
    }
}

impl Light {
    /// Counts a key that leaves the heavy part other than by a vote, and reports it by the rule.
    pub(super) fn evict<const N: usize>(&mut self, key: &[u8; N], weight: u64, hot: bool, sink: &mut impl ReportSink) {
        if self.config.keys == KeyFormat::Fixed(N as u8) {
            let reason = if hot { Reason::EvictedHot } else { Reason::EvictedCold };
            return self.record(key, weight, reason, sink);
        }
        self.count(self.seed.hash(key), weight, sink);
        if hot && self.config.rule == ReportRule::Paper {
            let digest = key[..].try_into().expect("digests have 16 bytes");
            let flags = KeyFlags { hot, fresh: false };
            sink.report(Report::Key { key: KeyRef::Digest(digest), flags });
        }
    }
}
