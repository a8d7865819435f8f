//! The one place where time comes in.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::Now;

/// Source of time, for programs around agents and collectors.
///
/// ```
/// let clock = ucl_link::Clock::start();
/// assert!(clock.now().mono_ms < 60_000, "it counts from the start");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: Instant,
}

impl Clock {
    /// Starts the clock that does not jump.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Returns the present moment by both clocks.
    pub fn now(&self) -> Now {
        Now { wall_ms: Self::wall_ms(), mono_ms: self.started.elapsed().as_millis() as u64 }
    }

    /// Returns the milliseconds since 1970, by the system's clock.
    pub fn wall_ms() -> i64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
    }
}
