//! What is true, and that every answer agrees with it.

use ucl_collector::{Collector, Part, Selection, StreamInfo};
use ucl_sketch::{Config, UclSketch};
use ucl_storage::SimDisk;

use crate::setup::{KEYS, collector_settings, decoding, is_budget, key, seed_of};
use crate::skew;
use crate::world::World;

impl World<'_> {
    /// Every answer of the collector against exact counts.
    pub fn check(&mut self) {
        let Some(collector) = &mut self.collector else { return };
        if collector.has_failed() || self.disk.is_crashed() {
            return;
        }
        let selection = Selection::tenant("t".parse().unwrap());
        let infos = collector.streams(&selection);
        let snapshot = collector.snapshot(&selection).unwrap();
        assert_eq!(infos.len(), snapshot.parts().len());
        let mut sums = vec![0u64; KEYS as usize];
        for (info, Part { identity, view, .. }) in infos.iter().zip(snapshot.parts()) {
            assert_eq!((&info.stream, info.incarnation), (&identity.stream, identity.incarnation));
            assert!(!self.deleted.contains(identity), "{identity} was deleted");
            let history = &self.truth[&info.checksum];
            assert_eq!(view.items() as usize, history.inserted.len());
            let mut counts = vec![0u64; KEYS as usize];
            for &item in &history.inserted {
                counts[item as usize] += 1;
            }
            for (number, &count) in counts.iter().enumerate() {
                let answer = view.estimate(&key(number as u32));
                assert!(answer.lower <= count && count <= answer.upper, "{answer:?}, but {count}");
                sums[number] += count;
            }
        }
        for (number, &count) in sums.iter().enumerate() {
            let sum = snapshot.estimate(&key(number as u32));
            assert!(sum.lower <= count && count <= sum.upper && sum.parts == infos.len());
            self.tally.checked += 1;
        }
    }

    pub fn finish(&mut self) {
        self.heal();
        self.check();
        let selection = Selection::tenant("t".parse().unwrap());
        let mut collector = self.collector.take().expect("it runs");
        let infos = collector.streams(&selection);
        // Every item was counted, or is said to be missing.
        if !self.disturbed {
            for sender in &self.senders {
                let stream = Selection::stream(selection.tenant.clone(), sender.settings.stream.clone());
                let totals = collector.snapshot(&stream).unwrap().totals();
                let counted = sender.history.inserted.len() as u64;
                assert_eq!((totals.items, sender.earlier), (counted, 0));
                // Of a pipe, what came while nobody looked is gone, and the collector knows.
                let all = counted == sender.items.len() as u64;
                assert!(all || !sender.is_file);
                assert_eq!((totals.unseen_unknown, totals.unseen_items), (!all, 0));
                assert!(totals.parts == 1 || sender.items.is_empty());
            }
        }
        // One process that sees the same items gives the same answers; but what a table sends, and
        // what a sketch absorbs in its place, is a matter of the link.
        let by_items = |info: &&StreamInfo| !is_budget(seed_of(&info.stream));
        for info in infos.iter().filter(by_items) {
            self.compare_with_one_process(&mut collector, info);
        }
        let is_known = !self.wrote_older;
        let before = all_answers(&mut collector, is_known);
        drop(collector);
        // Read from the disk, and with a state damaged, the answers are the same.
        let mut again = Collector::open(self.disk.clone(), collector_settings()).unwrap();
        assert_eq!(all_answers(&mut again, is_known), before);
        again.flush().unwrap();
        again.maintain(100).unwrap();
        let names = ucl_storage::Storage::list(&self.disk).unwrap();
        let states: Vec<&String> = names.iter().filter(|name| name.starts_with("state")).collect();
        if !states.is_empty() {
            let name = states[self.rng.below(states.len() as u64) as usize];
            skew::check_that_newer_is_refused(&self.disk, name);
            let at = self.rng.next();
            self.disk.damage(name, |bytes| {
                let at = at as usize % bytes.len();
                bytes[at] ^= 0x55;
            });
        }
        let mut again = Collector::open(self.disk.clone(), collector_settings()).unwrap();
        assert_eq!(all_answers(&mut again, is_known), before);
    }

    pub fn compare_with_one_process(&mut self, collector: &mut Collector<SimDisk>, info: &StreamInfo) {
        let history = &self.truth[&info.checksum];
        let settings = &self.senders.iter().find(|sender| sender.settings.stream == info.stream).unwrap().settings;
        let Config { shape, rule, seed, .. } = settings.config;
        let builder = UclSketch::builder().shape(shape).report_rule(rule).interval(None).settings(decoding());
        let mut one = builder.seed(u128::from(seed_of(&info.stream))).build().unwrap();
        assert_eq!(one.config().seed, seed);
        let cuts: Vec<u64> = history.cuts.values().copied().collect();
        assert_eq!(cuts.len() as u64, info.epochs);
        let mut done = 0;
        for end in cuts {
            for &item in &history.inserted[done..end as usize] {
                one.insert(key(item)).unwrap();
            }
            one.cut();
            done = end as usize;
        }
        let stream = Selection::stream("t".parse().unwrap(), info.stream.clone());
        let snapshot = collector.snapshot(&stream).unwrap();
        let Part { view, .. } = snapshot.parts().find(|part| part.identity.incarnation == info.incarnation).unwrap();
        let local = one.query_view().unwrap();
        for number in 0..KEYS {
            assert_eq!(view.estimate(&key(number)), local.estimate(&key(number)));
            self.tally.checked += 1;
        }
        assert_eq!(view.unexplained(), local.unexplained());
    }
}

pub fn all_answers(collector: &mut Collector<SimDisk>, uplink_is_known: bool) -> Vec<String> {
    let selection = Selection::tenant("t".parse().unwrap());
    let mut all: Vec<String> = Vec::new();
    let snapshot = collector.snapshot(&selection).unwrap();
    for Part { identity, view, .. } in snapshot.parts() {
        all.push(format!("{identity} {} {} {:?}", view.items(), view.weight(), view.unexplained()));
        for number in 0..KEYS {
            all.push(format!("{:?}", view.estimate(&key(number))));
        }
    }
    all.push(format!("{:?}", snapshot.top(10)));
    let infos = collector.streams(&selection).into_iter();
    // When an epoch arrived is not part of the log.
    let uplink = |info: &StreamInfo| if uplink_is_known { info.uplink_bytes } else { 0 };
    all.extend(infos.map(|info| {
        let uplink_bytes = uplink(&info);
        format!("{:?}", StreamInfo { last: None, memory: 0, uplink_bytes, ..info })
    }));
    all
}
