//! Deleting streams, with crashes at every write.

use ucl_agent::{Agent, AgentSettings};
use ucl_collector::{Collector, CollectorSettings, Selection};
use ucl_link::{Now, Refusal};
use ucl_sketch::{Mode, UclSketch};
use ucl_storage::{SimDisk, Storage};

fn settings() -> CollectorSettings {
    // Small files, so that the log is trimmed.
    CollectorSettings { log_file_bytes: 1_000, checkpoint_epochs: 2, ..CollectorSettings::default() }
}

struct Sender {
    agent: Agent<SimDisk>,
    now: Now,
}

impl Sender {
    fn new(stream: &str) -> Self {
        let (config, _) = UclSketch::builder().mode(Mode::Exact).memory("4KB").seed(1).plan().unwrap();
        let settings = AgentSettings::new("t".parse().unwrap(), stream.parse().unwrap(), config);
        let now = Now { wall_ms: 1_000, mono_ms: 0 };
        let (agent, _) = Agent::open(SimDisk::new(1), settings, now, 42).unwrap();
        Self { agent, now }
    }

    fn send(&mut self, collector: &mut Collector<SimDisk>, random: u64) -> Option<Refusal> {
        self.agent.insert(b"tea", 1).unwrap();
        self.now = Now { wall_ms: self.now.wall_ms + 20_000, mono_ms: self.now.mono_ms + 20_000 };
        self.agent.advance(self.now, b"").unwrap();
        let request = self.agent.request(self.now).unwrap().expect("an epoch");
        let requests = [(&request.identity, &request.body[..])];
        let reply = collector.submit(&requests, self.now).unwrap().remove(0).unwrap();
        self.agent.on_reply(self.now, request.id, Ok(reply.clone()), random).unwrap();
        reply.refusal
    }
}

fn count(collector: &mut Collector<SimDisk>, stream: &str) -> Option<u64> {
    let selection = Selection::stream("t".parse().unwrap(), stream.parse().unwrap());
    let is_there = !collector.streams(&selection).is_empty();
    is_there.then(|| collector.snapshot(&selection).unwrap().estimate(b"tea").count)
}

fn one() -> Selection {
    Selection::stream("t".parse().unwrap(), "one".parse().unwrap())
}

/// Two streams, with states and a log.
fn filled(disk: &SimDisk) -> (Collector<SimDisk>, Sender, Sender) {
    let mut collector = Collector::open(disk.clone(), settings()).unwrap();
    let (mut one, mut two) = (Sender::new("one"), Sender::new("two"));
    for _ in 0..5 {
        assert_eq!(one.send(&mut collector, 7), None);
        assert_eq!(two.send(&mut collector, 7), None);
        collector.maintain(10).unwrap();
    }
    (collector, one, two)
}

#[test]
fn a_crash_while_deleting_leaves_all_or_nothing() {
    let mut crashed = 0;
    for writes in 0.. {
        let disk = SimDisk::new(writes);
        let (mut collector, ..) = filled(&disk);
        disk.crash_after(writes);
        let deleted = collector.delete(&one()).is_ok();
        drop(collector);
        let done = !disk.is_crashed();
        crashed += u64::from(!done);
        disk.reboot();
        // Whatever it was, it stays so.
        let mut known = None;
        for _ in 0..3 {
            let mut again = Collector::open(disk.clone(), settings()).unwrap();
            assert_eq!(count(&mut again, "two"), Some(5));
            let found = count(&mut again, "one");
            assert!(found.is_none() || found == Some(5) && !deleted, "{found:?} after {writes} writes");
            assert_eq!(*known.get_or_insert(found), found);
            again.flush().unwrap();
        }
        if done {
            break;
        }
    }
    assert!(crashed >= 3, "it crashed {crashed} times");
}

#[test]
fn what_is_deleted_stays_so_and_its_agent_goes_on() {
    let disk = SimDisk::new(5);
    let (mut collector, mut first, mut second) = filled(&disk);
    let old = collector.delete(&one()).unwrap();
    assert_eq!((old.len(), count(&mut collector, "one"), count(&mut collector, "two")), (1, None, Some(5)));
    assert!(disk.list().unwrap().iter().all(|name| !name.contains("%one%")));
    assert_eq!(collector.delete(&one()).unwrap(), []);
    // The agent hears of it, and starts a new life.
    let refusal = first.send(&mut collector, 8);
    assert!(matches!(&refusal, Some(Refusal::Ended { why }) if why.contains("deleted")), "{refusal:?}");
    first.now.mono_ms += 600_000;
    assert_eq!(first.send(&mut collector, 9), None);
    assert_eq!(count(&mut collector, "one"), Some(1));
    for _ in 0..20 {
        second.send(&mut collector, 7);
        first.send(&mut collector, 7);
        collector.maintain(10).unwrap();
    }
    let mut again = Collector::open(disk.clone(), settings()).unwrap();
    assert_eq!((count(&mut again, "one"), count(&mut again, "two")), (Some(21), Some(25)));
}

/// An epoch that was under way all the time, or comes again, does not bring back what was deleted,
/// also when the log has nothing of it any more.
#[test]
fn a_late_epoch_brings_nothing_back() {
    let disk = SimDisk::new(5);
    let (mut collector, _, mut second) = filled(&disk);
    let mut late = Sender::new("late");
    late.agent.insert(b"tea", 1).unwrap();
    late.agent.finish(late.now, b"").unwrap();
    let request = late.agent.request(late.now).unwrap().unwrap();
    let send = |collector: &mut Collector<SimDisk>| {
        let requests = [(&request.identity, &request.body[..])];
        collector.submit(&requests, late.now).unwrap().remove(0).unwrap().refusal
    };
    assert_eq!(send(&mut collector), None);
    let selection = Selection::stream("t".parse().unwrap(), "late".parse().unwrap());
    assert_eq!(collector.delete(&selection).unwrap().len(), 1);
    let logs = |disk: &SimDisk| disk.list().unwrap().into_iter().find(|name| name.starts_with("log-"));
    let before = logs(&disk);
    for _ in 0..40 {
        second.send(&mut collector, 7);
        collector.maintain(10).unwrap();
    }
    collector.flush().unwrap();
    assert_ne!(logs(&disk), before, "the log's beginning is gone");
    assert!(matches!(send(&mut collector), Some(Refusal::Ended { .. })));
    let mut again = Collector::open(disk, settings()).unwrap();
    assert!(matches!(send(&mut again), Some(Refusal::Ended { .. })));
    assert_eq!((count(&mut again, "late"), count(&mut again, "two")), (None, Some(45)));
}

#[test]
fn a_full_disk_deletes_nothing() {
    let disk = SimDisk::new(5);
    let (mut collector, mut first, _) = filled(&disk);
    disk.set_room(Some(0));
    assert!(collector.delete(&one()).is_err());
    assert_eq!(count(&mut collector, "one"), Some(5));
    disk.set_room(None);
    assert_eq!(first.send(&mut collector, 7), None);
    assert_eq!(collector.delete(&one()).unwrap().len(), 1);
}

#[test]
fn a_damaged_list_is_not_ignored() {
    let disk = SimDisk::new(5);
    let (mut collector, ..) = filled(&disk);
    collector.delete(&one()).unwrap();
    drop(collector);
    disk.damage("deleted", |bytes| bytes[10] ^= 1);
    let error = Collector::open(disk, settings()).err().expect("it is damaged").to_string();
    assert!(error.contains("deleted streams is damaged"), "{error}");
}

#[test]
fn idle_streams_are_deleted() {
    let disk = SimDisk::new(5);
    let (mut collector, _, mut second) = filled(&disk);
    let at = |now: Now, seconds: i64| Now { wall_ms: now.wall_ms + seconds * 1_000, ..now };
    let last = second.now;
    assert_eq!(collector.delete_idle(at(last, 10_000_000)).unwrap(), [], "not unless it is asked for");
    collector.flush().unwrap();
    drop(collector);
    let settings = CollectorSettings { forget_after_ms: Some(3_600_000), ..settings() };
    let mut collector = Collector::open(disk.clone(), settings.clone()).unwrap();
    second.now.wall_ms += 1_800_000;
    assert_eq!(second.send(&mut collector, 7), None);
    assert_eq!(collector.delete_idle(at(last, 3_590)).unwrap(), []);
    let gone = collector.delete_idle(at(last, 3_610)).unwrap();
    assert_eq!(gone.iter().map(|identity| identity.stream.as_str()).collect::<Vec<_>>(), ["one"]);
    assert_eq!((count(&mut collector, "one"), count(&mut collector, "two")), (None, Some(6)));
    drop(collector);
    // When the last epoch came is in no state: it counts from now.
    let mut collector = Collector::open(disk, settings).unwrap();
    assert_eq!(collector.delete_idle(at(last, 100_000)).unwrap(), []);
    assert_eq!(collector.delete_idle(at(last, 103_610)).unwrap().len(), 1);
}
