//! Lengths of time, as people write them.

use std::time::Duration;

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Description of a length of time, to say after "is not".
pub const DURATIONS: &str = "a number and a unit: ms, s, m, h or d, as in 5m";

/// Reads a length of time of at least a millisecond, such as `5m`.
///
/// ```
/// assert_eq!(ucl_link::parse_duration("5m"), Some(std::time::Duration::from_secs(300)));
/// assert_eq!(ucl_link::parse_duration("5"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let length = number.parse::<u64>().ok()?.checked_mul(*unit)?;
    // As milliseconds of either sign too.
    (length > 0 && length <= i64::MAX as u64).then(|| Duration::from_millis(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let cases = [
            ("5m", Some(300_000)),
            ("250ms", Some(250)),
            ("2h", Some(7_200_000)),
            ("7d", Some(604_800_000)),
            ("0s", None),
            ("5", None),
            ("m", None),
            ("-5m", None),
            ("5 m", None),
            ("9999999999999999d", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_duration(text).map(|length| length.as_millis()), expected, "{text}");
        }
    }
}
