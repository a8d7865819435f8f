//! Machine, program and time of a measurement.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Machine and program of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Name of the processor.
    pub cpu: String,
    /// Number of threads that can run at once.
    pub cores: usize,
    /// Name of the operating system.
    pub os: String,
    /// Version of the program and how it was built.
    pub version: String,
}

impl Environment {
    /// Returns the present machine and program.
    pub fn here() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let name = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let profile = if cfg!(debug_assertions) { "checked" } else { "release" };
        Self {
            cpu: name.map_or("unknown".to_owned(), |(_, name)| name.trim().to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            version: format!("ucl {}, {profile} build", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// This moment, as `2026-02-28T23:59:59Z`.
pub(super) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(since.as_secs())
}

/// Seconds since 1970 as a date. By hand: nothing else here needs a calendar. The algorithm is the
/// usual one, with years that begin in March so that the leap day comes last (Hinnant,
/// "chrono-compatible low-level date algorithms").
fn utc(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let rest = seconds % 86_400;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_all_kinds_of_years() {
        let dates = [0, 951_782_399, 951_782_400, 1_709_251_199, 4_107_542_400].map(utc);
        let expected = [
            "1970-01-01T00:00:00Z",
            "2000-02-28T23:59:59Z",
            "2000-02-29T00:00:00Z",
            "2024-02-29T23:59:59Z",
            "2100-03-01T00:00:00Z",
        ];
        assert_eq!(dates, expected);
        assert!(!Environment::here().os.is_empty());
    }
}
