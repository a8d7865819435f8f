//! A mirrored table, and its mirror, that were written down and read back.
//!
//! What follows from the configuration is not written. Whoever wrote the rest may have meant harm:
//! every length and number is held against the configuration before it is used.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::allowance::{Allowance, Prices};
use super::batch::{Batch, Waiting};
use super::budget::{BudgetPlane, Names};
use super::mirror::Holder;
use super::model::Models;
use super::names::NamesSent;
use super::plane::MirroredPlane;
use super::{Mirror, MirroredPart, MirroredShape, WAYS};
use crate::bloom::{BloomFilter, BloomKind};
use crate::config::{Config, Shape};
use crate::hash::HashSeed;
use crate::heavy::HeavyKind;
use crate::key::KeyFormat;
use crate::load::KnownKeys;
use crate::plane::Light;
use crate::state::{Inconsistent, ensure};
use crate::totals::StreamTotals;

/// What is written of a [`MirroredPlane`], field by field.
#[derive(Deserialize)]
pub struct StoredPlane {
    config: Config,
    seed: HashSeed,
    part: StoredPart,
    names: Option<NamesSent>,
    totals: StreamTotals,
}

/// What is written of a [`BudgetPlane`], field by field.
#[derive(Deserialize)]
pub struct StoredBudgetPlane {
    part: StoredPart,
    light: Light,
    names: Option<Box<Names>>,
    totals: StreamTotals,
    allowance: Allowance,
    prices: Prices,
    exported: u64,
    absorbed_before: u64,
    spent_before: u64,
}

#[derive(Deserialize)]
struct StoredPart {
    #[serde(with = "serde_bytes")]
    table: Vec<u8>,
    batch: StoredBatch,
    models: Models,
}

#[derive(Deserialize)]
struct StoredBatch {
    #[serde(with = "serde_bytes")]
    buffer: Vec<u8>,
    records: usize,
    kept: usize,
}

/// What is written of a [`Mirror`].
#[derive(Clone, Serialize, Deserialize)]
pub struct StoredMirror {
    holders: Vec<Holder>,
    models: Models,
}

impl<const N: usize> MirroredPlane<N> {
    /// Makes a data plane that was just read usable, or says why it cannot be one of this
    /// configuration.
    ///
    /// # Errors
    /// If something contradicts the configuration, or is nothing that inserting leads to.
    pub fn restored(stored: StoredPlane, config: &Config) -> Result<Self, Inconsistent> {
        config.check()?;
        let StoredPlane { config: own, seed, part, names, totals } = stored;
        ensure(own.hashed_by(config.seed.hashing()) == *config, || {
            "the data plane has another configuration than the file".into()
        })?;
        part.check_sizes(config)?;
        check_names(names.as_ref(), config)?;
        totals.check()?;
        let mut plane = Self::new(*config).map_err(|error| Inconsistent(format!("{error}")))?;
        plane.part.restore(part)?;
        plane.seed = seed.restored(config.seed)?;
        plane.names = names;
        plane.totals = totals;
        Ok(plane)
    }
}

impl<const N: usize> BudgetPlane<N> {
    /// Makes a data plane that was just read usable, or says why it cannot be one of this
    /// configuration.
    ///
    /// # Errors
    /// If something contradicts the configuration, or is nothing that inserting leads to.
    pub fn restored(stored: StoredBudgetPlane, config: &Config) -> Result<Self, Inconsistent> {
        config.check()?;
        let StoredBudgetPlane {
            part,
            mut light,
            names,
            totals,
            allowance,
            prices,
            exported,
            absorbed_before,
            spent_before,
        } = stored;
        let own = light.config.hashed_by(config.seed.hashing());
        ensure(own == *config, || "the data plane has another configuration than the file".into())?;
        part.check_sizes(config)?;
        light.restore(own)?;
        check_names(names.as_ref().map(|names| &names.sent), config)?;
        ensure(names.as_ref().is_none_or(|names| names.price.is_whole()), || "prices of names of another size".into())?;
        totals.check()?;
        prices.check()?;
        let mut plane = Self::new(*config).map_err(|error| Inconsistent(format!("{error}")))?;
        plane.part.restore(part)?;
        let absorbed = light.sketch_weight;
        let live = plane.part.live_weight();
        let sum = exported.checked_add(absorbed).and_then(|sum| sum.checked_add(live));
        ensure(sum == Some(totals.weight), || {
            let weight = totals.weight;
            format!("{exported} were sent, {absorbed} absorbed and {live} are in the table, of {weight} in all")
        })?;
        light.check_counters()?;
        ensure(absorbed_before <= absorbed, || format!("a sketch of {absorbed} that had {absorbed_before} before"))?;
        let spent = allowance.spent();
        ensure(spent_before <= spent, || format!("{spent} bytes spent, after {spent_before}"))?;
        Ok(Self { light, names, totals, allowance, prices, exported, absorbed_before, spent_before, ..plane })
    }

    /// Returns the notes of [`BudgetPlane::watch_load`], for [`BudgetPlane::watch_load_from`].
    pub fn known_keys(&self) -> Option<&[u8]> {
        self.light.known.as_ref().map(KnownKeys::registers)
    }

    /// Continues from the notes that [`BudgetPlane::known_keys`] returned.
    ///
    /// # Errors
    /// If this cannot have come from there.
    pub fn watch_load_from(&mut self, registers: Vec<u8>) -> Result<(), Inconsistent> {
        self.light.watch_load_from(registers)
    }
}

impl StoredPart {
    /// Nothing larger than what the file brought may be built.
    fn check_sizes(&self, config: &Config) -> Result<(), Inconsistent> {
        let HeavyKind::Mirrored(table) = config.shape.heavy else {
            return Err(Inconsistent("a mirrored table in a configuration without one".into()));
        };
        let want = table.table_bytes(config.keys);
        ensure(self.table.len() == want, || format!("a table of {} bytes, not {want}", self.table.len()))?;
        let bytes = self.batch.buffer.len();
        ensure(bytes == table.buffer as usize, || format!("a buffer of {bytes} bytes, not {}", table.buffer))
    }
}

fn check_names(names: Option<&NamesSent>, config: &Config) -> Result<(), Inconsistent> {
    let wanted = config.keys.any_length();
    ensure(names.is_some() == wanted, || format!("a filter of names: {}, not {wanted}", names.is_some()))?;
    let Some(NamesSent { younger, older }) = names else { return Ok(()) };
    let half = Shape { bloom: BloomKind::Classic, bloom_bits: NamesSent::half_bits(&config.shape), ..config.shape };
    younger.check(&half)?;
    BloomFilter::check(older, &half)
}

impl Prices {
    fn check(&self) -> Result<(), Inconsistent> {
        let Self { record, live, counters } = *self;
        let known = record <= Self::MOST_RECORD && live <= 100 && counters <= 100;
        ensure(known, || format!("a record takes {record}, counts {live}% and counters {counters}% of the most"))
    }
}

impl<const N: usize> MirroredPart<N> {
    /// What the slots have counted since it was sent.
    fn live_weight(&self) -> u64 {
        (0..self.table.sets()).flat_map(|set| self.table.standings(set)).map(|slot| slot.count).sum()
    }

    fn restore(&mut self, stored: StoredPart) -> Result<(), Inconsistent> {
        let StoredPart { table, batch, models } = stored;
        models.check_like(&self.models)?;
        self.models = models;
        self.table.restore(&table);
        let StoredBatch { buffer, records, kept } = batch;
        self.batch.restore(buffer, records, kept)?;
        self.fresh = fresh_of(&self.batch, &self.shape)?;
        Ok(())
    }
}

/// How many holders of each set came in a batch, as its records tell; the records must be what a
/// table can have led to.
fn fresh_of(batch: &Batch, shape: &MirroredShape) -> Result<Vec<u8>, Inconsistent> {
    let mut fresh = alloc::vec![0u8; shape.sets as usize];
    let mut kept = 0;
    for at in 0..batch.len() {
        let (set, number, waiting) = batch.get(at);
        let known = set < shape.sets && number as usize == at;
        ensure(known, || format!("record {at} has number {number} and set {set}"))?;
        let Waiting::Miss { way, .. } = waiting else { continue };
        let fresh = &mut fresh[set as usize];
        if way >= WAYS - usize::from(*fresh) {
            ensure(batch.kept_number(kept) == Some(number), || format!("no tag is kept for record {number}"))?;
            kept += 1;
        } else {
            *fresh += 1;
        }
    }
    ensure(batch.kept_number(kept).is_none(), || "tags are kept for no record".into())?;
    Ok(fresh.chunks(2).map(|pair| pair[0] | pair.get(1).copied().unwrap_or(0) << 4).collect())
}

impl MirroredShape {
    fn table_bytes(&self, keys: KeyFormat) -> usize {
        let code = super::code::KeyCode::new(keys, self.sets, crate::Seed::new(0));
        super::table::Table::bytes_of(&self.layout(&code), self.sets)
    }
}

impl Mirror {
    /// Returns what is to be written of it.
    pub fn stored(&self) -> StoredMirror {
        StoredMirror { holders: self.holders.clone(), models: self.models.clone() }
    }

    /// Makes a mirror that was just read usable, or says why it cannot be one of this configuration
    /// with so many known keys.
    ///
    /// # Errors
    /// If something contradicts the configuration.
    pub fn restored(stored: StoredMirror, config: &Config, known: usize) -> Result<Self, Inconsistent> {
        let HeavyKind::Mirrored(table) = config.shape.heavy else {
            return Err(Inconsistent("the mirror of a table in a configuration without one".into()));
        };
        let StoredMirror { holders, models } = stored;
        ensure(holders.len() == table.slots(), || format!("{} slots, not {}", holders.len(), table.slots()))?;
        let stray = holders.iter().find(|&&holder| holder as usize >= known + WAYS);
        ensure(stray.is_none(), || format!("a slot is held by {stray:?}, of {known} keys"))?;
        let mut mirror = Self::new(table, config.keys, config.seed);
        models.check_like(&mirror.models)?;
        (mirror.holders, mirror.models) = (holders, models);
        Ok(mirror)
    }
}
