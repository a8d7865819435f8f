//! Waiting longer after each failure, and never all at once.

/// Waiting time that doubles after each failure, with jitter: a thousand agents that lose their
/// collector do not come back in the same moment.
///
/// ```
/// use ucl_link::Backoff;
/// let mut backoff = Backoff::default();
/// let first = backoff.failed(7);
/// assert!((Backoff::FIRST_MS / 2..=Backoff::FIRST_MS).contains(&first));
/// backoff.succeeded();
/// assert_eq!(backoff.failed(7), first);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Longest wait after the first failure, in milliseconds.
    pub const FIRST_MS: u64 = 500;
    /// Longest wait after any number of failures, in milliseconds.
    pub const MOST_MS: u64 = 60_000;

    /// Returns how many milliseconds to wait after a failure: from half to all of a time that
    /// doubles. `random` decides where in between.
    pub fn failed(&mut self, random: u64) -> u64 {
        let most = Self::FIRST_MS.checked_shl(self.failures).unwrap_or(Self::MOST_MS).min(Self::MOST_MS);
        self.failures = (self.failures + 1).min(32);
        most / 2 + random % (most / 2 + 1)
    }

    /// Starts again from the first wait.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}
