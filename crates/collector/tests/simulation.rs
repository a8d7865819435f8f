//! Agents and a collector on disks that crash at any write, over a network that loses, repeats,
//! reorders and garbles, with full disks, clocks that jump, copied agents and lost disks: every
//! answer is held against exact counts, and against one process that saw the same items.
//!
//! A seed decides everything. `UCL_RUNS=10000 UCL_SEED=1` runs more, from that seed on
//! (`cargo xtask explore simulation 10000`).

use std::collections::{BTreeMap, HashMap};

use ucl_agent::{Agent, AgentError, AgentSettings, Request};
use ucl_collector::{Collector, CollectorError, CollectorSettings, Limits, Part, Selection, StreamInfo};
use ucl_link::{Envelope, Identity, Now, Reply, Unseen};
use ucl_sketch::{Base, BloomKind, Config, CounterBits, Epochs, HeavyKind, ReportRule, Settings, Shape, UclSketch};
use ucl_storage::SimDisk;

const KEYS: u32 = 40;

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

fn key(number: u32) -> Vec<u8> {
    // Some are longer than a digest.
    format!("key-{number:0>width$}", width = if number.is_multiple_of(3) { 20 } else { 2 }).into_bytes()
}

fn config(seed: u64) -> Config {
    let shape = Shape {
        heavy: HeavyKind::Voting,
        slots: 4,
        vote_ratio: 2,
        base: Base::CountMin,
        rows: 2,
        width: 16,
        counter_bits: CounterBits::B4,
        bloom: BloomKind::Classic,
        bloom_bits: 256,
        bloom_hashes: 2,
    };
    let rule = [ReportRule::New, ReportRule::Refresh, ReportRule::Rotate][seed as usize % 3];
    UclSketch::builder().shape(shape).report_rule(rule).seed(seed.into()).plan().unwrap().0
}

fn decoding() -> Settings {
    Settings { retain_epochs: 4, ..Settings::default() }
}

fn collector_settings() -> CollectorSettings {
    CollectorSettings {
        decoding: decoding(),
        log_file_bytes: 4_000,
        log_bytes: 12_000,
        checkpoint_epochs: 7,
        kept_epochs: 10_000,
        ..CollectorSettings::default()
    }
}

/// The items of an incarnation, and where its epochs end.
#[derive(Clone, Default)]
struct History {
    inserted: Vec<u32>,
    /// Items at the end of each epoch that was sent.
    cuts: BTreeMap<u64, u64>,
}

impl History {
    /// Notes where the last epoch ended. It may have reached the disk in the moment of a crash.
    fn note_cut(&mut self, status: &ucl_agent::Status) {
        if status.epochs > self.cuts.len() as u64 {
            self.cuts.insert(status.epochs - 1, status.items - status.open_items);
        }
        assert_eq!(status.epochs, self.cuts.len() as u64);
    }
}

/// One agent with its disk and its source.
struct Sender {
    disk: SimDisk,
    settings: AgentSettings,
    agent: Option<Agent<SimDisk>>,
    /// The source: a file that can be read again, or a pipe.
    items: Vec<u32>,
    is_file: bool,
    read: usize,
    /// What the agent has inserted in its present incarnation.
    history: History,
    incarnation: Option<ucl_link::Incarnation>,
    past: HashMap<ucl_link::Incarnation, History>,
    /// Items inserted in earlier incarnations.
    earlier: u64,
    process: u64,
    outstanding: Option<(u64, u64)>,
}

struct Parcel {
    sender: usize,
    process: u64,
    id: u64,
    identity: Identity,
    body: Vec<u8>,
}

struct Answered {
    sender: usize,
    process: u64,
    id: u64,
    reply: Result<Reply, String>,
}

#[derive(Default, Debug)]
struct Tally {
    runs: u64,
    agent_crashes: u64,
    collector_crashes: u64,
    lost: u64,
    repeated: u64,
    garbled: u64,
    reordered: u64,
    forks: u64,
    wipes: u64,
    full: u64,
    jumps: u64,
    checked: u64,
}

struct World<'a> {
    rng: Rng,
    now: Now,
    senders: Vec<Sender>,
    disk: SimDisk,
    collector: Option<Collector<SimDisk>>,
    network: Vec<Parcel>,
    answers: Vec<Answered>,
    /// By the checksum of the envelope: the whole history up to its end.
    truth: HashMap<u64, History>,
    disturbed: bool,
    tally: &'a mut Tally,
}

fn is_crash(error: &dyn std::error::Error) -> bool {
    error.to_string().contains("simulated disk has crashed")
}

impl World<'_> {
    fn open_collector(&mut self) {
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

    fn collector_died(&mut self, error: &CollectorError) {
        assert!(self.disk.is_crashed(), "the collector gave up: {error}");
        self.tally.collector_crashes += 1;
        self.collector = None;
        self.disk.reboot();
        if self.rng.chance(3) {
            self.disk.crash_after(self.rng.below(3));
        }
        self.open_collector();
    }

    fn open_agent(&mut self, at: usize) {
        loop {
            let (now, nonce) = (self.now, self.rng.next());
            let sender = &mut self.senders[at];
            let opened = Agent::open(sender.disk.clone(), sender.settings.clone(), now, nonce);
            match opened {
                Ok((mut agent, resumed)) => {
                    sender.process += 1;
                    sender.outstanding = None;
                    let status = agent.status();
                    // A new incarnation that did not reach the disk is forgotten.
                    if let Some(history) = sender.past.remove(&status.incarnation) {
                        sender.earlier -= history.inserted.len() as u64;
                        sender.history = history;
                        sender.incarnation = Some(status.incarnation);
                    }
                    if sender.incarnation == Some(status.incarnation) {
                        assert!(status.items as usize <= sender.history.inserted.len());
                        sender.history.inserted.truncate(status.items as usize);
                        sender.history.cuts.retain(|&seq, _| seq < status.epochs);
                        sender.history.note_cut(&status);
                    } else {
                        // Nothing of it was sent, or the folder is new.
                        assert_eq!(status.items, 0);
                        sender.history = History::default();
                    }
                    sender.incarnation = Some(status.incarnation);
                    let position = resumed.position.try_into().map_or(0, u64::from_le_bytes) as usize;
                    if sender.is_file {
                        sender.read = position;
                    } else if let Some(written_ms) = resumed.written_ms {
                        // What the pipe brought since is gone.
                        let gone = (sender.read - position) as u64;
                        if gone > 0 {
                            let unseen = Unseen { from_ms: written_ms, to_ms: now.wall_ms, items: None };
                            agent.report_unseen(unseen);
                        }
                    } else {
                        assert_eq!(sender.read, 0);
                    }
                    sender.agent = Some(agent);
                    return;
                }
                Err(error) => {
                    assert!(is_crash(&error) || sender.disk.used() > 0 && is_full(&error), "{error}");
                    sender.disk.set_room(None);
                    sender.disk.reboot();
                }
            }
        }
    }

    fn agent_died(&mut self, at: usize, error: &AgentError) {
        assert!(self.senders[at].disk.is_crashed(), "an agent gave up: {error}");
        self.tally.agent_crashes += 1;
        self.senders[at].agent = None;
        self.senders[at].disk.reboot();
        if self.rng.chance(3) {
            self.senders[at].disk.crash_after(self.rng.below(3));
        }
        self.open_agent(at);
    }

    /// The agent reads some items and does what is due.
    fn step_agent(&mut self, at: usize) {
        let count = self.rng.below(30);
        let sender = &mut self.senders[at];
        let Some(agent) = &mut sender.agent else { return };
        if !agent.is_stalled() {
            for _ in 0..count {
                let Some(&item) = sender.items.get(sender.read) else { break };
                agent.insert(&key(item), 1).unwrap();
                sender.history.inserted.push(item);
                sender.read += 1;
            }
        }
        let result = agent.advance(self.now, &(sender.read as u64).to_le_bytes());
        self.settle(at, result);
    }

    /// Sees whether the agent still runs, and as whom.
    fn settle(&mut self, at: usize, result: Result<(), AgentError>) {
        if let Err(error) = result {
            self.agent_died(at, &error);
            return;
        }
        let sender = &mut self.senders[at];
        let Some(agent) = &sender.agent else { return };
        let status = agent.status();
        if sender.incarnation != Some(status.incarnation) {
            sender.earlier += sender.history.inserted.len() as u64;
            let history = std::mem::take(&mut sender.history);
            sender.past.extend(sender.incarnation.map(|before| (before, history)));
            sender.incarnation = Some(status.incarnation);
        }
        assert_eq!(status.items as usize, sender.history.inserted.len());
        sender.history.note_cut(&status);
    }

    fn request(&mut self, at: usize) {
        let sender = &mut self.senders[at];
        let Some(agent) = &mut sender.agent else { return };
        match agent.request(self.now) {
            Ok(None) => {}
            Ok(Some(Request { id, identity, body })) => {
                for received in Envelope::split_all(&body).unwrap() {
                    let envelope = &received.envelope;
                    let mut history = sender.history.clone();
                    history.inserted.truncate(envelope.items as usize);
                    history.cuts.retain(|&seq, _| seq <= envelope.seq);
                    let known = self.truth.entry(received.checksum).or_insert(history);
                    assert_eq!(known.inserted.len() as u64, envelope.items);
                }
                sender.outstanding = Some((sender.process, id));
                self.network.push(Parcel { sender: at, process: sender.process, id, identity, body });
            }
            Err(error) => self.agent_died(at, &error),
        }
    }

    fn deliver(&mut self) {
        let mut parcels: Vec<Parcel> = Vec::new();
        for _ in 0..=self.rng.below(3) {
            if self.network.is_empty() {
                break;
            }
            let at = self.rng.below(self.network.len() as u64) as usize;
            self.tally.reordered += u64::from(at > 0);
            let mut parcel = self.network.swap_remove(at);
            if self.rng.chance(6) {
                self.tally.lost += 1;
                continue;
            }
            if self.rng.chance(6) {
                self.tally.repeated += 1;
                let Parcel { sender, process, id, ref identity, ref body } = parcel;
                let again = Parcel { sender, process, id, identity: identity.clone(), body: body.clone() };
                self.network.push(again);
            }
            if self.rng.chance(20) {
                self.tally.garbled += 1;
                let at = self.rng.below(parcel.body.len() as u64) as usize;
                if self.rng.chance(2) {
                    parcel.body[at] ^= 1 + self.rng.below(255) as u8;
                } else {
                    parcel.body.truncate(at);
                }
            }
            parcels.push(parcel);
        }
        if parcels.is_empty() {
            return;
        }
        let requests: Vec<(&Identity, &[u8])> =
            parcels.iter().map(|parcel| (&parcel.identity, &parcel.body[..])).collect();
        let Some(collector) = &mut self.collector else { return };
        match collector.submit(&requests, self.now) {
            Ok(replies) => {
                for (parcel, reply) in parcels.iter().zip(replies) {
                    let Parcel { sender, process, id, .. } = *parcel;
                    let reply = reply.map_err(|rejected| rejected.to_string());
                    self.answers.push(Answered { sender, process, id, reply });
                }
            }
            Err(error) => self.collector_died(&error),
        }
    }

    fn answer(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let at = self.rng.below(self.answers.len() as u64) as usize;
        let Answered { sender, process, id, reply } = self.answers.swap_remove(at);
        if self.rng.chance(6) {
            self.tally.lost += 1;
            return;
        }
        self.reply(sender, process, id, reply);
    }

    fn reply(&mut self, at: usize, process: u64, id: u64, reply: Result<Reply, String>) {
        let random = self.rng.next();
        let sender = &mut self.senders[at];
        // A reply to a process that is no more reaches nobody.
        if sender.outstanding != Some((process, id)) {
            return;
        }
        sender.outstanding = None;
        let Some(agent) = &mut sender.agent else { return };
        let result = agent.on_reply(self.now, id, reply, random);
        self.settle(at, result);
    }

    /// A request of which nothing is heard any more.
    fn time_out(&mut self, at: usize) {
        if let Some((process, id)) = self.senders[at].outstanding {
            self.reply(at, process, id, Err("no answer".into()));
        }
    }

    fn maintain(&mut self) {
        let most = self.rng.below(4) as usize;
        let Some(collector) = &mut self.collector else { return };
        if let Err(error) = collector.maintain(most) {
            self.collector_died(&error);
        }
    }

    fn disturb(&mut self) {
        let at = self.rng.below(self.senders.len() as u64) as usize;
        match self.rng.below(9) {
            0 | 1 => self.senders[at].disk.crash_after(self.rng.below(6)),
            2 | 3 => self.disk.crash_after(self.rng.below(6)),
            4 => {
                self.tally.full += 1;
                let disk = if self.rng.chance(2) { &self.disk } else { &self.senders[at].disk };
                disk.set_room(Some(disk.used() + self.rng.below(400) as usize));
            }
            5 => {
                self.disk.set_room(None);
                self.senders.iter().for_each(|sender| sender.disk.set_room(None));
            }
            6 => {
                self.tally.jumps += 1;
                self.now.wall_ms += self.rng.below(1 << 40) as i64 - (1 << 39);
            }
            // A machine is copied, and both copies run.
            7 if self.senders.len() < 5 && self.rng.chance(6) => {
                self.tally.forks += 1;
                self.disturbed = true;
                let (seed, sender) = (self.rng.next(), &self.senders[at]);
                let copy = Sender {
                    disk: sender.disk.copied(seed),
                    settings: sender.settings.clone(),
                    agent: None,
                    items: sender.items.clone(),
                    is_file: true,
                    read: 0,
                    history: sender.history.clone(),
                    incarnation: sender.incarnation,
                    past: sender.past.clone(),
                    earlier: sender.earlier,
                    process: 0,
                    outstanding: None,
                };
                self.senders.push(copy);
                let at = self.senders.len() - 1;
                self.open_agent(at);
            }
            8 if self.rng.chance(12) => {
                self.tally.wipes += 1;
                self.disturbed = true;
                self.disk.crash();
                self.disk.reboot();
                self.disk.wipe();
                self.open_collector();
            }
            _ => {}
        }
    }

    /// Every answer of the collector against exact counts.
    fn check(&mut self) {
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

    /// No more faults: everything arrives.
    fn heal(&mut self) {
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

    fn finish(&mut self) {
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
        // One process that sees the same items gives the same answers.
        for info in &infos {
            self.compare_with_one_process(&mut collector, info);
        }
        let before = all_answers(&mut collector);
        drop(collector);
        // Read from the disk, and with a state damaged, the answers are the same.
        let mut again = Collector::open(self.disk.clone(), collector_settings()).unwrap();
        assert_eq!(all_answers(&mut again), before);
        again.flush().unwrap();
        again.maintain(100).unwrap();
        let names = ucl_storage::Storage::list(&self.disk).unwrap();
        let states: Vec<&String> = names.iter().filter(|name| name.starts_with("state")).collect();
        if !states.is_empty() {
            let name = states[self.rng.below(states.len() as u64) as usize];
            let at = self.rng.next();
            self.disk.damage(name, |bytes| {
                let at = at as usize % bytes.len();
                bytes[at] ^= 0x55;
            });
        }
        let mut again = Collector::open(self.disk.clone(), collector_settings()).unwrap();
        assert_eq!(all_answers(&mut again), before);
    }

    fn compare_with_one_process(&mut self, collector: &mut Collector<SimDisk>, info: &StreamInfo) {
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

fn is_full(error: &AgentError) -> bool {
    matches!(error, AgentError::Storage(error) if error.kind() == std::io::ErrorKind::StorageFull)
}

fn seed_of(stream: &ucl_link::Name) -> u64 {
    stream.as_str().bytes().fold(7, |seed, byte| seed * 31 + u64::from(byte))
}

fn all_answers(collector: &mut Collector<SimDisk>) -> Vec<String> {
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
    all.extend(infos.map(|info| format!("{:?}", StreamInfo { last: None, memory: 0, ..info })));
    all
}

fn run(seed: u64, tally: &mut Tally) {
    let mut rng = Rng(seed);
    let agents = 1 + rng.below(3);
    let senders = (0..agents).map(|number| {
        let stream: ucl_link::Name = format!("s{number}").parse().unwrap();
        let config = config(seed_of(&stream));
        let settings = AgentSettings {
            epochs: if rng.chance(2) { Epochs::ByLoad } else { Epochs::Every(10 + rng.below(40)) },
            cut_ms: 5_000 + rng.below(20_000),
            checkpoint_ms: 1 + rng.below(30_000),
            commit_ms: rng.below(20_000),
            buffer_bytes: 200,
            spool_bytes: 24_000 + rng.below(20_000),
            request_bytes: 1 + rng.below(4_000),
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

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

fn simulate(first: u64, runs: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in first..first + runs {
        let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &mut tally)));
        let again = format!("UCL_SEED={seed} UCL_RUNS=1 cargo test -p ucl-collector --test simulation");
        assert!(passed.is_ok(), "seed {seed} fails: {again}");
    }
    tally
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_counts_twice() {
    let (first, runs) = (number("UCL_SEED", 0), number("UCL_RUNS", 300));
    // Decoding is parallel, and handing it to other threads would take longer than doing it.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let tally = pool.install(|| simulate(first, runs));
    println!("{tally:?}");
    assert!(tally.checked > 100 * runs);
    if runs >= 100 {
        let happened = [
            tally.agent_crashes,
            tally.collector_crashes,
            tally.lost,
            tally.repeated,
            tally.garbled,
            tally.reordered,
            tally.forks,
            tally.wipes,
            tally.full,
            tally.jumps,
        ];
        assert!(happened.iter().all(|&times| times > 0), "{tally:?}");
    }
}

/// A tenant at its limits cannot go on, and no other tenant notices.
#[test]
fn limits_are_per_tenant() {
    let limits = Limits { streams: 2, incarnations: 3, keys: 60, counters: 100, memory: 1 << 30 };
    let settings = CollectorSettings { limits, ..collector_settings() };
    let mut collector = Collector::open(SimDisk::new(1), settings).unwrap();
    let mut now = Now::default();
    let mut send = |collector: &mut Collector<SimDisk>, tenant: &str, stream: &str, keys: std::ops::Range<u32>| {
        let settings = AgentSettings::new(tenant.parse().unwrap(), stream.parse().unwrap(), config(1));
        now.mono_ms += 1;
        let (mut agent, _) = Agent::open(SimDisk::new(1), settings, now, now.mono_ms).unwrap();
        for number in keys {
            agent.insert(format!("{number}").as_bytes(), 1).unwrap();
        }
        agent.finish(now, b"").unwrap();
        let request = agent.request(now).unwrap().unwrap();
        collector.submit(&[(&request.identity, &request.body)], now).unwrap().remove(0).unwrap()
    };
    let why = |reply: &Reply| format!("{:?}", reply.refusal);
    assert_eq!(send(&mut collector, "a", "one", 0..30).refusal, None);
    let reply = send(&mut collector, "a", "two", 0..40);
    assert!(why(&reply).contains("may have 60 keys") && reply.retry_after_ms > 0, "{reply:?}");
    assert_eq!(send(&mut collector, "b", "two", 0..40).refusal, None);
    assert_eq!(send(&mut collector, "a", "two", 0..3).refusal, None);
    assert!(why(&send(&mut collector, "a", "three", 0..1)).contains("may have 2 streams"));
    assert_eq!(send(&mut collector, "a", "one", 0..1).refusal, None);
    assert!(why(&send(&mut collector, "a", "one", 0..1)).contains("may have 3 incarnations"));
    let settings = CollectorSettings { limits: Limits { counters: 10, ..limits }, ..collector_settings() };
    let mut small = Collector::open(SimDisk::new(1), settings).unwrap();
    assert!(why(&send(&mut small, "a", "one", 0..1)).contains("at most 10 are allowed"));
    assert_eq!(small.tenants().len() + collector.tenants().len(), 2);
}

/// Messages that contradict each other end an incarnation; what came before stays, and a restart
/// changes nothing.
#[test]
fn an_incarnation_that_contradicts_itself_ends() {
    let disk = SimDisk::new(1);
    let mut collector = Collector::open(disk.clone(), collector_settings()).unwrap();
    let now = Now::default();
    let settings = AgentSettings::new("t".parse().unwrap(), "s".parse().unwrap(), config(1));
    let (mut agent, _) = Agent::open(SimDisk::new(1), settings, now, 1).unwrap();
    let mut bodies = Vec::new();
    for epoch in 0..3u32 {
        for number in 0..100 {
            agent.insert(&key((number * epoch) % KEYS), 1).unwrap();
        }
        agent.finish(now, b"").unwrap();
        let request = agent.request(now).unwrap().unwrap();
        let checksum = Envelope::split(&request.body).unwrap().0.checksum;
        let reply = Reply { durable_seq: u64::from(epoch) + 1, checksum, window: 1, retry_after_ms: 0, refusal: None };
        agent.on_reply(now, request.id, Ok(reply), 1).unwrap();
        bodies.push(request);
    }
    let submit = |collector: &mut Collector<SimDisk>, body: &[u8]| {
        collector.submit(&[(&bodies[0].identity, body)], now).unwrap().remove(0).unwrap()
    };
    assert_eq!(submit(&mut collector, &bodies[0].body).durable_seq, 1);
    let answers = all_answers(&mut collector);
    // The third epoch's messages in the second's envelope, its number and checksum mended.
    let second = Envelope::split(&bodies[1].body).unwrap().0;
    let third = Envelope::split(&bodies[2].body).unwrap().0;
    let forged = Envelope { messages: third.envelope.messages.clone(), ..second.envelope.clone() };
    let reply = submit(&mut collector, &forged.to_bytes().unwrap());
    assert!(matches!(reply.refusal, Some(ucl_link::Refusal::Ended { .. })), "{reply:?}");
    let reply = submit(&mut collector, &bodies[1].body);
    assert!(matches!(reply.refusal, Some(ucl_link::Refusal::Ended { .. })), "{reply:?}");
    let shown = |answers: &[String]| answers[..answers.len() - 1].to_vec();
    assert_eq!(shown(&all_answers(&mut collector)), shown(&answers));
    drop(collector);
    let mut again = Collector::open(disk, collector_settings()).unwrap();
    assert_eq!(all_answers(&mut again), answers);
}
