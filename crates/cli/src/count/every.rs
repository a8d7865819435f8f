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
use super::{Run, text};
use crate::progress::Bar;

/// Interval between two printed answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    Items(u64),
    Time(Duration),
}

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a period: give a number of items, such as 100000, or a time, such as 500ms, 10s, 2m or 1h"
            )
        };
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

/// A time, for `--cut-every`.
pub fn time(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(Every::Time(period)) => Ok(period),
        _ => Err(format!("`{text}` is not a time: give 500ms, 10s, 2m or 1h")),
    }
}

/// The counter while the stream runs, shared by the reader and the clock.
pub struct Live {
    pub counter: Counter,
    /// Error that ended the run: a bad item, or an output that is gone.
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
    pub fn take(&mut self, batch: Batch<'_>, run: &Run<'_>, bar: &Bar) -> Result<(), Stop> {
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
                self.print(run, bar);
            }
            self.until_save -= until as u64;
            if self.until_save == 0 {
                self.until_save = self.save_every;
                self.failure = self.failure.take().or(run.save(&mut self.counter).err());
            }
        }
        if self.failure.is_none() { Ok(()) } else { Err(Stop) }
    }

    /// Prints the answer of this moment, unless nothing came since the last one.
    fn print(&mut self, run: &Run<'_>, bar: &Bar) {
        let items = self.counter.sketch.items();
        if items == self.printed_at || self.failure.is_some() {
            return;
        }
        self.printed_at = items;
        let printed = run.answer(&mut self.counter, &ReadSummary::default()).and_then(|(answer, _)| {
            let text = if run.args.json { serde_json::to_string(&answer)? + "\n" } else { text::brief(&answer) };
            bar.aside(|| crate::show::print(text))
        });
        self.failure = printed.err();
    }
}

/// Actions that are due by the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Periods {
    print: Option<Duration>,
    cut: Option<Duration>,
}

impl Periods {
    pub fn new(every: Option<Every>, cut_every: Option<Duration>) -> Self {
        let print = if let Some(Every::Time(period)) = every { Some(period) } else { None };
        Self { print, cut: cut_every }
    }
}

/// When to do it next. The time comes from outside.
#[derive(Debug)]
struct Alarm {
    period: Duration,
    next: Instant,
}

impl Alarm {
    fn new(period: Option<Duration>, now: Instant) -> Option<Self> {
        period.map(|period| Self { period, next: now + period })
    }

    /// Runs `task` if it is time for it, and sets the next time. A task that takes longer than the
    /// period must not follow itself at once: `clock` tells the time after it.
    fn at(alarm: &mut Option<Self>, now: Instant, task: impl FnOnce(), clock: impl FnOnce() -> Instant) {
        if let Some(alarm) = alarm.as_mut().filter(|alarm| now >= alarm.next) {
            task();
            alarm.next = (alarm.next + alarm.period).max(clock() + alarm.period / 2);
        }
    }
}

/// Runs `reading`, with a clock in another thread that prints and cuts.
pub fn with_clock<T>(
    periods: Periods,
    live: &Mutex<Live>,
    interrupt: &AtomicBool,
    run: &Run<'_>,
    bar: &Bar,
    reading: impl FnOnce() -> T,
) -> T {
    let start = Instant::now();
    let mut print = Alarm::new(periods.print, start);
    let mut cut = Alarm::new(periods.cut, start);
    if print.is_none() && cut.is_none() {
        return reading();
    }
    std::thread::scope(|scope| {
        let (done, ended) = channel::<()>();
        scope.spawn(move || {
            loop {
                let next = print.iter().chain(&cut).map(|alarm| alarm.next).min().unwrap_or(start);
                let wait = next.saturating_duration_since(Instant::now());
                let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(wait) else { return };
                let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                Alarm::at(&mut cut, now, || live.counter.sketch.cut(), Instant::now);
                Alarm::at(&mut print, now, || live.print(run, bar), Instant::now);
                if live.failure.is_some() {
                    // The reader may wait for a pipe; it looks at this.
                    interrupt.store(true, Ordering::Relaxed);
                }
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

    /// The times at which a task of one length runs, if it is looked at in every millisecond.
    fn runs(period: u64, takes: u64, until: u64) -> Vec<u64> {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut alarm = Alarm::new(Some(Duration::from_millis(period)), start);
        let (mut now, mut ran) = (0, Vec::new());
        while now < until {
            let mut done = now;
            Alarm::at(
                &mut alarm,
                at(now),
                || ran.push(now),
                || {
                    done = now + takes;
                    at(done)
                },
            );
            now = done + 1;
        }
        ran
    }

    #[test]
    fn alarms_ring_by_the_clock_and_leave_time_to_count() {
        assert_eq!(runs(10, 0, 45), [10, 20, 30, 40]);
        assert_eq!(runs(10, 4, 45), [10, 20, 30, 40], "what a task takes does not add up");
        assert_eq!(runs(10, 30, 100), [10, 45, 80], "half a period in between");
        assert!(Alarm::new(None, Instant::now()).is_none());
    }

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
