//! Answers while the stream runs: after so many items, exactly, or by the clock, even when a pipe
//! has gone silent.

use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ucl_streams::{Batch, ReadSummary};

use super::counter::Counter;
use super::{Job, text};
use crate::progress::Bar;

/// How often to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    Items(u64),
    Time(Duration),
}

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("`{text}` is not a period: write 100000 for items, or a time such as 500ms, 10s, 2m, 1h");
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        if unit.is_empty() {
            return number.parse().ok().filter(|&items| items > 0).map(Self::Items).ok_or_else(wrong);
        }
        let second: f64 = match unit {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(wrong()),
        };
        let seconds = number.parse::<f64>().map_err(|_| wrong())? * second;
        // A period too short to answer in would leave no time to count.
        if (1e-3..1e9).contains(&seconds) { Ok(Self::Time(Duration::from_secs_f64(seconds))) } else { Err(wrong()) }
    }
}

/// The counter while the stream runs, shared by the reader and the clock.
pub struct Live {
    pub counter: Counter,
    /// Why to stop: a bad item, or an output that is gone.
    pub failure: Option<anyhow::Error>,
    until_print: u64,
    period: u64,
    printed_at: u64,
    until_save: u64,
    save_every: u64,
}

/// The reason is in [`Live::failure`].
pub struct Stop;

impl Live {
    pub fn new(counter: Counter, every: Option<Every>, save_every: Option<NonZeroU64>) -> Self {
        let period = if let Some(Every::Items(items)) = every { items } else { u64::MAX };
        let save_every = save_every.map_or(u64::MAX, NonZeroU64::get);
        let (until_print, until_save) = (period, save_every);
        Self { counter, failure: None, until_print, period, printed_at: 0, until_save, save_every }
    }

    /// Counts a batch; prints wherever in it an answer is due, and saves wherever that is.
    pub fn take(&mut self, batch: Batch<'_>, job: &Job<'_>, bar: &Bar) -> Result<(), Stop> {
        let mut at = 0;
        while at < batch.len() && self.failure.is_none() {
            let until = self.until_print.min(self.until_save).min((batch.len() - at) as u64) as usize;
            if let Err(error) = self.counter.insert(batch, at..at + until) {
                self.failure = Some(error.into());
                break;
            }
            at += until;
            self.until_print -= until as u64;
            if self.until_print == 0 {
                self.until_print = self.period;
                self.print(job, bar);
            }
            self.until_save -= until as u64;
            if self.until_save == 0 {
                self.until_save = self.save_every;
                self.failure = self.failure.take().or(job.save(&mut self.counter).err());
            }
        }
        if self.failure.is_none() { Ok(()) } else { Err(Stop) }
    }

    /// Prints the answer of this moment, unless nothing came since the last one.
    fn print(&mut self, job: &Job<'_>, bar: &Bar) {
        let items = self.counter.sketch.items();
        if items == self.printed_at || self.failure.is_some() {
            return;
        }
        self.printed_at = items;
        let printed = job.answer(&mut self.counter, &ReadSummary::default()).and_then(|(answer, _)| {
            let text = if job.args.json { serde_json::to_string(&answer)? + "\n" } else { text::brief(&answer) };
            bar.aside(|| crate::show::print(text))
        });
        self.failure = printed.err();
    }
}

/// Runs `reading`, with a clock beside it that prints every so often.
pub fn with_clock<T>(
    every: Option<Every>,
    live: &Mutex<Live>,
    interrupt: &AtomicBool,
    job: &Job<'_>,
    bar: &Bar,
    reading: impl FnOnce() -> T,
) -> T {
    let Some(Every::Time(period)) = every else { return reading() };
    std::thread::scope(|scope| {
        let (done, ended) = channel::<()>();
        scope.spawn(move || {
            let mut next = Instant::now() + period;
            while let Err(RecvTimeoutError::Timeout) =
                ended.recv_timeout(next.saturating_duration_since(Instant::now()))
            {
                let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
                live.print(job, bar);
                if live.failure.is_some() {
                    // The reader may wait for a pipe; it looks at this.
                    interrupt.store(true, Ordering::Relaxed);
                }
                // An answer that takes longer than the period must not be followed by the next one
                // at once.
                next = (next + period).max(Instant::now() + period / 2);
            }
        });
        let result = reading();
        drop(done);
        result
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods() {
        assert_eq!("100000".parse(), Ok(Every::Items(100_000)));
        assert_eq!("10s".parse(), Ok(Every::Time(Duration::from_secs(10))));
        assert_eq!("1.5m".parse(), Ok(Every::Time(Duration::from_secs(90))));
        assert_eq!("500ms".parse(), Ok(Every::Time(Duration::from_millis(500))));
        for wrong in ["", "0", "1.5", "s", "10 s", "10d", "0s", "-1s", "9e9h"] {
            assert!(wrong.parse::<Every>().is_err(), "{wrong}");
        }
    }
}
