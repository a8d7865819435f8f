//! The edge where time comes in.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use ucl_link::Now;

/// This moment by both clocks; the one that does not jump counts from `started`.
pub fn now(started: Instant) -> Now {
    Now { wall_ms: wall_ms(), mono_ms: started.elapsed().as_millis() as u64 }
}

/// Milliseconds since 1970.
pub fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}
