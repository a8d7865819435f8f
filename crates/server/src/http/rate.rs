//! Requests per second of each tenant.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use ucl_link::Name;

/// Requests that each tenant has left: it fills up by `per_second`, and holds a second's worth.
#[derive(Debug)]
pub struct Rates {
    per_second: f64,
    left: Mutex<HashMap<Name, (f64, Instant)>>,
}

impl Rates {
    pub fn new(per_second: usize) -> Self {
        Self { per_second: per_second as f64, left: Mutex::default() }
    }

    /// Counts a request of a tenant; returns true if it may be made.
    pub fn take(&self, tenant: &Name, now: Instant) -> bool {
        let mut all = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, since) = all.entry(tenant.clone()).or_insert((self.per_second, now));
        let passed = now.saturating_duration_since(*since).as_secs_f64();
        *left = (*left + passed * self.per_second).min(self.per_second);
        *since = now;
        let may = *left >= 1.0;
        *left -= if may { 1.0 } else { 0.0 };
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_second_fills_it() {
        let rates = Rates::new(3);
        let [one, two]: [Name; 2] = ["one", "two"].map(|name| name.parse().unwrap());
        let start = Instant::now();
        let taken =
            |tenant: &Name, ms: u64| (0..10).filter(|_| rates.take(tenant, start + Duration::from_millis(ms))).count();
        assert_eq!(taken(&one, 0), 3);
        assert_eq!(taken(&two, 0), 3, "each has its own");
        assert_eq!(taken(&one, 350), 1);
        assert_eq!(taken(&one, 60_000), 3, "no more than a second's worth");
    }
}
