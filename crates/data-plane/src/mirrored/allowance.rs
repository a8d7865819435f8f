//! What may go up the link: a token bucket in bytes.
//!
//! Nothing is earned before the first item, and a table that is still empty has the most to say. So
//! the first bytes go ahead of the items that earn them ([`Allowance::with_advance`]): in all, what
//! is spent keeps to the larger of what was earned and the advance.
//!
//! The plane has no clock, so tokens come with the items ([`Allowance::per_item`]) or from outside
//! ([`Allowance::grant`]). What is debited is what the wire format takes at most, about: the pieces
//! of a table's messages are known to the byte, frames, names, carries and counters by a bound.

use crate::load::ln;

/// Bytes of uplink that a plane may use.
///
/// ```
/// use ucl_data_plane::mirrored::Allowance;
///
/// let mut allowance = Allowance::per_item(0.25);
/// assert_eq!(allowance.left(1_000), 250);
/// allowance.grant(50);
/// assert_eq!(allowance.left(1_000), 300);
/// assert_eq!(Allowance::UNLIMITED.left(0), i64::MAX);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Allowance {
    /// In units of `1 / UNITS` bytes; `None` if there is no limit.
    per_item: Option<u32>,
    advance: u64,
    granted: u64,
    spent: u64,
}

const UNITS: u64 = 1 << 12;

impl Allowance {
    /// As much as it takes.
    pub const UNLIMITED: Self = Self { per_item: None, advance: 0, granted: 0, spent: 0 };

    /// So many bytes for each item, up to a million; more with [`Allowance::grant`].
    pub fn per_item(bytes: f64) -> Self {
        // Not a number is nothing.
        let units = bytes.clamp(0.0, 1e6) * UNITS as f64;
        Self { per_item: Some(units as u32), ..Self::UNLIMITED }
    }

    /// The same, with so many bytes in advance.
    pub(super) fn with_advance(self, bytes: u64) -> Self {
        Self { advance: bytes, ..self }
    }

    /// Bytes for each item; `None` if there is no limit.
    pub fn bytes_per_item(&self) -> Option<f64> {
        self.per_item.map(|units| f64::from(units) / UNITS as f64)
    }

    /// Returns true if there is no limit.
    #[inline]
    pub fn is_unlimited(&self) -> bool {
        self.per_item.is_none()
    }

    /// Adds tokens from outside: what a link can take in the next second, say.
    pub fn grant(&mut self, bytes: u64) {
        self.granted = self.granted.saturating_add(bytes);
    }

    /// Bytes debited so far.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    #[inline]
    pub(super) fn debit(&mut self, bytes: u64) {
        self.spent = self.spent.saturating_add(bytes);
    }

    /// Bytes that may be spent in all by the time of so many items.
    pub fn allowed(&self, items: u64) -> u64 {
        let Some(per_item) = self.per_item else { return u64::MAX };
        let earned = (u128::from(items) * u128::from(per_item) / u128::from(UNITS)).min(u64::MAX.into()) as u64;
        earned.saturating_add(self.granted).max(self.advance)
    }

    /// Bytes that are left after so many items; negative if what had to go was more.
    pub fn left(&self, items: u64) -> i64 {
        let left = i128::from(self.allowed(items)) - i128::from(self.spent);
        left.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The same limit, with nothing granted or spent.
    pub(super) fn anew(&self) -> Self {
        Self { per_item: self.per_item, ..Self::UNLIMITED }
    }

    /// The same limit, with the tokens of both.
    pub(super) fn unite(&mut self, other: &Self) {
        self.grant(other.granted);
        self.debit(other.spent);
    }
}

/// What things take on the wire, as learned from what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub(super) struct Prices {
    /// Sixteenths of a bit for a record.
    pub record: u32,
    /// What live counts, and counters, take of [`entropy_bound`], in percent.
    pub live: u32,
    pub counters: u32,
}

impl Prices {
    /// No record takes more.
    pub const MOST_RECORD: u32 = 16 * 256;

    /// At most, before anything was sent: records of so many bits.
    pub fn at_most(record_bits: u32) -> Self {
        Self { record: 16 * record_bits, live: 100, counters: 100 }
    }

    /// Records took so many bytes.
    pub fn learn_record(&mut self, records: usize, bytes: u64) {
        if records > 0 {
            self.record = (bytes * 128 / records as u64).min(Self::MOST_RECORD.into()) as u32;
        }
    }

    /// The share of a bound that was needed, with a margin for what comes next.
    pub fn share(bytes: u64, bound: u64) -> u32 {
        ((bytes * 110).div_ceil(bound.max(1)) as u32).clamp(1, 100)
    }
}

/// The most bytes that `count` numbers can take which add up to `sum`, in an entropy code: no
/// distribution of whole numbers with this mean has more entropy than the geometric one.
pub(super) fn entropy_bound(count: u64, sum: u64, most_bits: u32) -> u64 {
    if sum == 0 || count == 0 {
        return 0;
    }
    let mean = sum as f64 / count as f64;
    let bits = (ln(1.0 + mean) + mean * ln(1.0 + 1.0 / mean)) / core::f64::consts::LN_2;
    (count as f64 * bits.min(f64::from(most_bits)) / 8.0) as u64 + 1
}

/// The bytes that so many of each symbol take in an entropy code.
pub(super) fn entropy(counts: &[u32]) -> u64 {
    let total: f64 = counts.iter().map(|&count| f64::from(count)).sum();
    let bits = |&count: &u32| f64::from(count) * ln(total / f64::from(count));
    let nats: f64 = counts.iter().filter(|count| **count > 0).map(bits).sum();
    (nats / core::f64::consts::LN_2 / 8.0) as u64 + 1
}

/// How often which counts of slots are there.
pub(super) struct CountSizes {
    counts: [u32; 256],
    /// Bits of wide counts that no model foretells.
    raw_bits: u64,
}

impl Default for CountSizes {
    fn default() -> Self {
        Self { counts: [0; 256], raw_bits: 0 }
    }
}

impl CountSizes {
    /// Counts below this are told apart; of those above, what the model of counts sees: their
    /// lengths, and the two bits after the first.
    const NARROW: u64 = 128;

    /// Adds a count of at most 20 bits.
    pub fn add(&mut self, count: u64) {
        if count < Self::NARROW {
            self.counts[count as usize] += 1;
            return;
        }
        let raw_bits = u64::from(count.ilog2() - 2);
        let size = 4 * (raw_bits - 5) + (count >> raw_bits & 3);
        self.counts[(Self::NARROW + size) as usize % 256] += 1;
        self.raw_bits += raw_bits;
    }

    /// The bytes that all of them take.
    pub fn bytes(&self) -> u64 {
        entropy(&self.counts) + self.raw_bits / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The defect: all counts from 255 on were one, and cost nothing.
    #[test]
    fn wide_counts_have_a_price() {
        let size = |counts: &[u64]| {
            let mut sizes = CountSizes::default();
            counts.iter().for_each(|&count| sizes.add(count));
            sizes.bytes()
        };
        assert_eq!(size(&[127; 1_000]), 1);
        // Their length and two bits are foreseen, eleven bits are not.
        assert_eq!(size(&[9_000; 1_000]), 1 + 11 * 1_000 / 8);
        assert_eq!(size(&[(1 << 20) - 1; 8]), 1 + 17);
        let spread: std::vec::Vec<u64> = (0..1 << 14).collect();
        assert_eq!(size(&spread).div_ceil(100), (14u64 << 14 >> 3).div_ceil(100), "of 14 bits each");
    }

    #[test]
    fn tokens_are_earned_granted_and_spent() {
        let mut allowance = Allowance::per_item(0.5);
        allowance.debit(100);
        assert_eq!((allowance.left(0), allowance.left(300), allowance.spent()), (-100, 50, 100));
        allowance.grant(u64::MAX);
        allowance.debit(u64::MAX);
        assert_eq!(allowance.left(u64::MAX), 0, "nothing wraps");
        assert_eq!(Allowance::per_item(f64::NAN).left(1_000), 0);
        assert_eq!(Allowance::per_item(1e9).left(1), 1_000_000);
        let ahead = Allowance::per_item(0.5).with_advance(100);
        assert_eq!([0, 100, 300].map(|items| ahead.left(items)), [100, 100, 150]);
    }

    /// No histogram of numbers with a sum takes more than the bound says.
    #[test]
    fn the_bound_holds_for_every_distribution() {
        let histograms: [&[u32]; 6] =
            [&[1000], &[500, 500], &[900, 50, 25, 12, 6, 7], &[100; 40], &[0, 0, 0, 700], &[4096, 1, 0, 0, 0, 0, 0, 1]];
        for counts in histograms {
            let count: u64 = counts.iter().map(|&count| u64::from(count)).sum();
            let sum: u64 = (0..).zip(counts).map(|(value, &count)| value * u64::from(count)).sum();
            assert!(entropy(counts) <= entropy_bound(count, sum, 64) + 1, "{counts:?}");
        }
        // The geometric one takes all of it.
        let geometric: std::vec::Vec<u32> = (0..20).map(|value| 1 << (20 - value)).collect();
        let (count, sum) = (0..20u64).fold((0, 0), |(n, s), v| (n + (1 << (20 - v)), s + (v << (20 - v))));
        assert!(entropy(&geometric) as f64 > 0.999 * entropy_bound(count, sum, 64) as f64);
        assert_eq!(entropy_bound(1000, 1 << 40, 6), 751);
    }
}
