//! One run: its machines, its clock, and its end, when everything heals.

use std::collections::{BTreeSet, HashMap};

use ucl_agent::AgentSettings;
use ucl_collector::{Collector, CollectorError};
use ucl_link::{Identity, Now};
use ucl_sketch::Epochs;
use ucl_storage::SimDisk;

use crate::network::{Answered, Parcel};
use crate::sender::{History, Sender};
use crate::setup::{KEYS, Rng, collector_settings, config, is_budget, seed_of};

#[derive(Default, Debug)]
pub struct Tally {
    pub runs: u64,
    pub agent_crashes: u64,
    pub collector_crashes: u64,
    pub lost: u64,
    pub repeated: u64,
    pub garbled: u64,
    pub reordered: u64,
    pub forks: u64,
    pub wipes: u64,
    pub full: u64,
    pub jumps: u64,
    pub deleted: u64,
    pub refused_as_newer: u64,
    pub older_states: u64,
    pub checked: u64,
}

pub struct World<'a> {
    pub rng: Rng,
    pub now: Now,
    pub senders: Vec<Sender>,
    pub disk: SimDisk,
    pub collector: Option<Collector<SimDisk>>,
    pub network: Vec<Parcel>,
    pub answers: Vec<Answered>,
    /// By the checksum of the envelope: the whole history up to its end.
    pub truth: HashMap<u64, History>,
    pub disturbed: bool,
    /// Incarnations that were deleted: nothing of them may come back.
    pub deleted: BTreeSet<Identity>,
    /// Whether the collector is of an older version than what the agents send.
    pub is_older: bool,
    /// Whether an older version wrote states: it did not write how many bytes came.
    pub wrote_older: bool,
    pub tally: &'a mut Tally,
}

pub fn is_crash(error: &dyn std::error::Error) -> bool {
    error.to_string().contains("simulated disk has crashed")
}

impl World<'_> {
    pub fn open_collector(&mut self) {
        loop {
            match Collector::open(self.disk.clone(), collector_settings()) {
                Ok(collector) => {
                    self.collector = Some(collector);
                    return;
                }
                Err(error) => {
                    assert!(is_crash(&error), "{error}");
                    self.disk.reboot();
                }
            }
        }
    }

    pub fn collector_died(&mut self, error: &CollectorError) {
        assert!(self.disk.is_crashed(), "the collector gave up: {error}");
        self.tally.collector_crashes += 1;
        self.collector = None;
        self.disk.reboot();
        if self.rng.chance(3) {
            self.disk.crash_after(self.rng.below(3));
        }
        self.open_collector();
    }

    pub fn maintain(&mut self) {
        let most = self.rng.below(4) as usize;
        let Some(collector) = &mut self.collector else { return };
        if let Err(error) = collector.maintain(most) {
            self.collector_died(&error);
        }
    }

    /// No more faults: everything arrives.
    pub fn heal(&mut self) {
        self.is_older = false;
        self.disk.set_room(None);
        if self.disk.is_crashed() {
            self.disk.reboot();
            self.open_collector();
        }
        self.disk.crash_after(u64::MAX / 2);
        for at in 0..self.senders.len() {
            self.senders[at].disk.set_room(None);
            if self.senders[at].disk.is_crashed() {
                self.senders[at].disk.reboot();
                self.open_agent(at);
            }
            self.senders[at].disk.crash_after(u64::MAX / 2);
        }
        self.network.clear();
        self.answers.clear();
        for round in 0.. {
            assert!(round < 2_000, "the agents never finish");
            self.now.mono_ms += 100_000;
            self.now.wall_ms += 100_000;
            let mut busy = false;
            for at in 0..self.senders.len() {
                self.time_out(at);
                self.step_agent(at);
                let sender = &mut self.senders[at];
                let Some(agent) = &mut sender.agent else { continue };
                if sender.read == sender.items.len() {
                    let position = (sender.read as u64).to_le_bytes();
                    let result = agent.finish(self.now, &position);
                    self.settle(at, result);
                }
                self.now.mono_ms += 100_000;
                self.request(at);
                let parcels: Vec<Parcel> = self.network.drain(..).collect();
                for Parcel { sender, process, id, identity, body } in parcels {
                    let collector = self.collector.as_mut().expect("it runs");
                    let reply = collector.submit(&[(&identity, &body)], self.now).unwrap().remove(0);
                    self.reply(sender, process, id, reply.map_err(|rejected| rejected.to_string()));
                }
                let sender = &self.senders[at];
                let status = sender.agent.as_ref().expect("it runs").status();
                let whole = sender.history.cuts.last_key_value().is_some_and(|(_, &items)| items == status.items);
                busy |= sender.read < sender.items.len() || status.waiting > 0 || !(whole || status.items == 0);
            }
            if !busy {
                return;
            }
        }
    }
}

pub fn run(seed: u64, tally: &mut Tally) {
    let mut rng = Rng(seed);
    let agents = 1 + rng.below(3);
    let senders = (0..agents).map(|number| {
        let stream: ucl_link::Name = format!("s{number}").parse().unwrap();
        let seed = seed_of(&stream);
        let config = config(seed);
        let uplink_per_second = (is_budget(seed) && rng.chance(2)).then(|| 1 + rng.below(200));
        let settings = AgentSettings {
            epochs: if rng.chance(2) { Epochs::ByLoad } else { Epochs::Every(10 + rng.below(40)) },
            cut_ms: 5_000 + rng.below(20_000),
            checkpoint_ms: 1 + rng.below(30_000),
            commit_ms: rng.below(20_000),
            buffer_bytes: 200,
            spool_bytes: 24_000 + rng.below(20_000),
            request_bytes: 1 + rng.below(4_000),
            uplink_per_second,
            ..AgentSettings::new("t".parse().unwrap(), stream, config)
        };
        let length = rng.below(1_500);
        // Few keys are frequent.
        let items =
            (0..length).map(|_| (rng.below(u64::from(KEYS)) * rng.below(u64::from(KEYS)) / 40) as u32).collect();
        Sender {
            disk: SimDisk::new(rng.next()),
            settings,
            agent: None,
            items,
            is_file: !rng.chance(3),
            read: 0,
            history: History::default(),
            incarnation: None,
            past: HashMap::new(),
            earlier: 0,
            process: 0,
            outstanding: None,
        }
    });
    let senders: Vec<Sender> = senders.collect();
    let disk = SimDisk::new(rng.next());
    let mut world = World {
        rng,
        now: Now { wall_ms: 1_700_000_000_000, mono_ms: 0 },
        senders,
        disk,
        collector: None,
        network: Vec::new(),
        answers: Vec::new(),
        truth: HashMap::new(),
        disturbed: false,
        deleted: BTreeSet::new(),
        is_older: false,
        wrote_older: false,
        tally,
    };
    world.tally.runs += 1;
    world.open_collector();
    for at in 0..world.senders.len() {
        world.open_agent(at);
    }
    let steps = 100 + world.rng.below(300);
    // For a while the collector is away, and spools fill.
    let outage = world.rng.below(steps)..world.rng.below(steps);
    for step in 0..steps {
        let more = world.rng.below(3_000);
        world.now.mono_ms += more;
        world.now.wall_ms += more as i64;
        let at = world.rng.below(world.senders.len() as u64) as usize;
        world.step_agent(at);
        world.request(at);
        if !outage.contains(&step) {
            world.deliver();
            world.answer();
        }
        if world.rng.chance(8) {
            world.time_out(at);
        }
        if world.rng.chance(6) {
            world.maintain();
        }
        if world.rng.chance(10) {
            world.disturb();
        }
        if world.rng.chance(25) {
            world.check();
        }
    }
    world.finish();
}
