//! Which envelope may come next: repeated, lost and forked ones each have their rule.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::envelope::Received;

/// Number of remembered checksums, of the last envelopes. A fork further back is noticed all the
/// same, at its first envelope that would be new.
pub const REMEMBERED: usize = 64;

/// The envelopes of one incarnation that have been taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sequence {
    next: u64,
    /// Checksums of the last ones, oldest first.
    recent: VecDeque<u64>,
}

/// Relation of an envelope to a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The envelope comes next.
    Next,
    /// The envelope came before.
    Repeated,
    /// Envelopes before it are missing.
    Missing,
    /// Another one came in its place, or it follows on another one.
    Forked,
}

impl Sequence {
    /// The number of the envelope that comes next: so many were taken.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The checksum of the last one; 0 if there is none.
    pub fn last(&self) -> u64 {
        self.recent.back().copied().unwrap_or(0)
    }

    /// Judges an envelope of the same incarnation. Changes nothing.
    pub fn judge(&self, received: &Received<'_>) -> Judgement {
        let envelope = &received.envelope;
        if envelope.seq > self.next {
            return Judgement::Missing;
        }
        if envelope.seq == self.next {
            return if envelope.previous == self.last() { Judgement::Next } else { Judgement::Forked };
        }
        let back = self.next - envelope.seq;
        let known = usize::try_from(back).ok().and_then(|back| self.recent.len().checked_sub(back));
        match known.map(|at| self.recent[at]) {
            Some(checksum) if checksum != received.checksum => Judgement::Forked,
            _ => Judgement::Repeated,
        }
    }

    /// Appends the envelope that comes next.
    ///
    /// # Panics
    /// If it is not [`Judgement::Next`].
    pub fn take(&mut self, received: &Received<'_>) {
        assert_eq!(self.judge(received), Judgement::Next, "only the next envelope can be taken");
        self.next += 1;
        self.recent.push_back(received.checksum);
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
    }
}
