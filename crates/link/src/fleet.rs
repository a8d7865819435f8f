//! Several collectors, asked as one.
//!
//! Collectors on NATS share out the streams, so that the count of a key is the sum of what they
//! answer, and so are its bounds. The largest counts take three rounds ([`Fleet::top`]). Every
//! answer says which partitions it is about, so that none counts twice while one moves, and what is
//! missing is known.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use crate::ask::{About, Covered, Facts, KeyRow, KeyText, Keys, MOST_KEYS, Range, Shared, StreamRow};
use crate::{Client, ClientError};

/// How often a question is asked while partitions move, and the pause before it is asked again.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Collectors that share out the streams.
#[derive(Clone, Debug)]
pub struct Fleet {
    clients: Vec<Client>,
}

/// Answer of a fleet: the answers of all collectors put together.
#[derive(Clone, Debug)]
pub struct Whole<T> {
    /// The answer, of all collectors that gave one.
    pub answer: T,
    /// Why the others gave none; each error names its collector.
    pub silent: Vec<ClientError>,
    /// Partitions that no answer is about.
    pub missing: BTreeSet<u32>,
}

impl<T> Whole<T> {
    fn map<U>(self, with: impl FnOnce(T) -> U) -> Whole<U> {
        let Self { answer, silent, missing } = self;
        Whole { answer: with(answer), silent, missing }
    }
}

/// One collector's answer to a round of questions.
struct Round<T> {
    answer: T,
    partitions: Option<Shared>,
}

impl From<Keys> for Round<Keys> {
    fn from(answer: Keys) -> Self {
        Self { partitions: answer.facts.partitions.clone(), answer }
    }
}

impl Fleet {
    /// Creates a fleet.
    ///
    /// # Errors
    /// If there is no collector in it.
    pub fn new(clients: Vec<Client>) -> Result<Self, ClientError> {
        if clients.is_empty() { Err(ClientError::Address(String::new())) } else { Ok(Self { clients }) }
    }

    /// Returns all streams. Format and time of `about` do not matter here.
    ///
    /// # Errors
    /// If no collector answers, or two answer for the same partition.
    pub fn streams(&self, about: &About) -> Result<Whole<Vec<StreamRow>>, ClientError> {
        let round = |client: &Client| {
            let (answer, partitions) = client.shared_streams(about)?;
            Ok(Round { answer, partitions })
        };
        let whole = self.ask(round)?.map(|answers| answers.into_iter().flat_map(|(_, rows)| rows).collect());
        Ok(whole.map(|mut rows: Vec<StreamRow>| {
            rows.sort_by(|a, b| (&a.stream, &a.incarnation).cmp(&(&b.stream, &b.incarnation)));
            rows
        }))
    }

    /// Returns the counts of some keys, in their order.
    ///
    /// # Errors
    /// As [`Fleet::streams`], and if keys have different formats.
    pub fn estimate(&self, about: &About, keys: &[String]) -> Result<Whole<Keys>, ClientError> {
        let whole = self.ask(|client| client.estimate(about, keys).map(Round::from))?;
        let answers: Vec<&Keys> = whole.answer.iter().map(|(_, answer)| answer).collect();
        let facts = facts(&answers)?;
        let rows = (0..keys.len()).map(|at| {
            // One that has seen a key knows its bytes; others answer with what was asked.
            let rows = answers.iter().map(|answer| &answer.keys[at]);
            let count = rows.clone().map(|row| row.count).reduce(and).unwrap_or(NOTHING);
            let key = rows.max_by_key(|row| row.count.estimate).map(|row| row.key.clone());
            KeyRow { key: key.unwrap_or_else(|| unknown(&keys[at])), count }
        });
        let keys = rows.collect();
        Ok(whole.map(|_| Keys { facts, keys }))
    }

    /// Returns the `n` keys with the largest counts.
    ///
    /// A key may be large in the sum and small everywhere. So each collector is asked for its `n`
    /// largest keys first; the `n`-th sum of these, shared out among `m` collectors, is what a key
    /// must have somewhere to be among the largest. All keys with as much are fetched, and those
    /// whose sum may be large enough are asked for by name (Cao and Wang, PODC 2004).
    ///
    /// # Errors
    /// As [`Fleet::estimate`].
    pub fn top(&self, about: &About, n: usize) -> Result<Whole<Keys>, ClientError> {
        let n = n.min(MOST_KEYS);
        let first = self.ask(|client| client.top(about, n).map(Round::from))?;
        if first.answer.len() == 1 {
            return Ok(first.map(|mut answers| answers.remove(0).1));
        }
        let bound = nth(&sums(first.answer.iter().map(|(_, answer)| answer)), n);
        let enough = bound.div_ceil(first.answer.len() as u64).max(1);
        let second = self.ask(|client| all_from(client, about, enough).map(Round::from))?;
        let answers: Vec<&Keys> = second.answer.iter().map(|(_, answer)| answer).collect();
        let facts = facts(&answers)?;
        let found = sums(answers.iter().copied());
        // Whoever did not name a key has less of it than `enough`.
        let bound = nth(&found, n);
        let may_be = |(_, _, times): &&(KeyText, Range, usize), sum: u64| {
            sum.saturating_add((answers.len() - times) as u64 * (enough - 1)) >= bound
        };
        let candidates = found.values().filter(|row| may_be(row, row.1.estimate));
        let (named, unnamed): (Vec<_>, Vec<_>) = candidates.partition(|(key, ..)| key.bytes().is_some());
        let asked: Vec<String> = named.iter().map(|(key, ..)| key.shown.clone()).collect();
        // A key whose name never arrived is known to one stream alone.
        let mut rows: Vec<KeyRow> =
            unnamed.into_iter().map(|(key, count, _)| KeyRow { key: key.clone(), count: *count }).collect();
        let mut whole = second.map(drop);
        if !asked.is_empty() {
            let third = self.estimate(about, &asked)?;
            rows.extend(third.answer.keys);
            whole = Whole { answer: (), silent: third.silent, missing: third.missing };
        }
        rows.sort_by(|a, b| b.count.estimate.cmp(&a.count.estimate).then_with(|| a.key.bytes().cmp(&b.key.bytes())));
        rows.truncate(n);
        Ok(whole.map(|()| Keys { facts, keys: rows }))
    }

    /// Asks all collectors at once, and again while partitions move between them.
    fn ask<T: Send>(
        &self,
        question: impl Fn(&Client) -> Result<Round<T>, ClientError> + Sync,
    ) -> Result<Whole<Vec<(usize, T)>>, ClientError> {
        let mut tries = 1;
        loop {
            let outcome = self.ask_once(&question);
            let moves = match &outcome {
                Ok(whole) => !whole.missing.is_empty() && whole.silent.is_empty(),
                Err(error) => matches!(error, ClientError::Claimed { .. }),
            };
            // With one collector asked, what others have is no news.
            if !moves || tries == TRIES || (self.clients.len() == 1 && outcome.is_ok()) {
                return outcome;
            }
            tries += 1;
            thread::sleep(PAUSE);
        }
    }

    fn ask_once<T: Send>(
        &self,
        question: &(impl Fn(&Client) -> Result<Round<T>, ClientError> + Sync),
    ) -> Result<Whole<Vec<(usize, T)>>, ClientError> {
        let answers: Vec<Result<Round<T>, ClientError>> = thread::scope(|scope| {
            let asked: Vec<_> = self.clients.iter().map(|client| scope.spawn(|| question(client))).collect();
            let panicked = |_| Err(self.clients[0].garbled("internal: a thread panicked"));
            asked.into_iter().map(|answer| answer.join().unwrap_or_else(panicked)).collect()
        });
        let (mut given, mut silent) = (Vec::new(), Vec::new());
        let mut all = BTreeSet::new();
        let mut owners = BTreeMap::new();
        for (number, answer) in answers.into_iter().enumerate() {
            let Round { answer, partitions } = match answer {
                Ok(round) => round,
                Err(error) => {
                    silent.push(error);
                    continue;
                }
            };
            for partition in partitions.iter().flat_map(|shared| shared.here.iter().copied()) {
                if let Some(other) = owners.insert(partition, number) {
                    let [first, second] = [other, number].map(|number| self.clients[number].address().to_owned());
                    return Err(ClientError::Claimed { partition, first, second });
                }
            }
            all.extend(partitions.into_iter().flat_map(|shared| 0..shared.of));
            given.push((number, answer));
        }
        if given.is_empty() {
            return Err(silent.remove(0));
        }
        all.retain(|partition| !owners.contains_key(partition));
        Ok(Whole { answer: given, silent, missing: all })
    }
}

/// All keys of a collector with so many or more, page by page.
fn all_from(client: &Client, about: &About, enough: u64) -> Result<Keys, ClientError> {
    let mut all = client.top_after(about, MOST_KEYS, 0)?;
    let mut last = all.keys.len();
    while last == MOST_KEYS && all.keys.last().is_some_and(|row| row.count.estimate >= enough) {
        let page = client.top_after(about, MOST_KEYS, all.keys.len())?;
        last = page.keys.len();
        all.keys.extend(page.keys);
    }
    all.keys.retain(|row| row.count.estimate >= enough);
    Ok(all)
}

const NOTHING: Range = Range { estimate: 0, lower: 0, upper: 0 };

fn and(one: Range, other: Range) -> Range {
    Range {
        estimate: one.estimate.saturating_add(other.estimate),
        lower: one.lower.saturating_add(other.lower),
        upper: one.upper.saturating_add(other.upper),
    }
}

fn unknown(shown: &str) -> KeyText {
    KeyText { key: Some(shown.to_owned()), key_hex: None, shown: shown.to_owned() }
}

/// The sums of several answers by key as it is shown, and how many answers have each.
fn sums<'a>(answers: impl IntoIterator<Item = &'a Keys>) -> BTreeMap<&'a str, (KeyText, Range, usize)> {
    let mut sums: BTreeMap<&str, (KeyText, Range, usize)> = BTreeMap::new();
    for KeyRow { key, count } in answers.into_iter().flat_map(|answer| &answer.keys) {
        let sum = sums.entry(&key.shown).or_insert_with(|| (key.clone(), NOTHING, 0));
        *sum = (sum.0.clone(), and(sum.1, *count), sum.2 + 1);
    }
    sums
}

/// The `n`-th largest estimate; 0 if there are fewer.
fn nth(sums: &BTreeMap<&str, (KeyText, Range, usize)>, n: usize) -> u64 {
    let mut all: Vec<u64> = sums.values().map(|(_, count, _)| count.estimate).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    n.checked_sub(1).and_then(|at| all.get(at).copied()).unwrap_or(0)
}

/// What all answers together are about.
fn facts(answers: &[&Keys]) -> Result<Facts, ClientError> {
    // A collector without streams names a format all the same.
    let mut used = answers.iter().map(|answer| &answer.facts).filter(|facts| facts.items > 0);
    let first = used.next().or(answers.first().map(|answer| &answer.facts));
    let Some(mut all) = first.cloned() else { return Err(ClientError::Address(String::new())) };
    for facts in used {
        if facts.format != all.format {
            return Err(ClientError::Formats(all.format, facts.format.clone()));
        }
        all.items = all.items.saturating_add(facts.items);
        all.weight = all.weight.zip(facts.weight).map(|(a, b)| a.saturating_add(b));
        all.range = all.range.zip(facts.range.clone()).map(|(a, b)| both(a, b));
    }
    all.unseen_items = answers.iter().map(|answer| answer.facts.unseen_items).fold(0, u64::saturating_add);
    all.unseen_unknown = answers.iter().any(|answer| answer.facts.unseen_unknown);
    all.partitions = None;
    Ok(all)
}

fn both(one: Covered, other: Covered) -> Covered {
    let first = [one.covered_from_ms, other.covered_from_ms].into_iter().flatten().min();
    let last = [one.covered_to_ms, other.covered_to_ms].into_iter().flatten().max();
    let (epochs, complete) = (one.epochs.saturating_add(other.epochs), one.complete && other.complete);
    Covered { covered_from_ms: first, covered_to_ms: last, epochs, complete, ..one }
}
