//! Moments and durations in parameters.

use ucl_collector::TimeRange;
use ucl_link::{DURATIONS, parse_duration};

use super::params::Params;
use super::problem::Problem;

/// Names of the parameters.
pub const PARAMETERS: [&str; 3] = ["from", "to", "last"];

/// The range that a question is about: `last=5m`, or `from` and `to`; `None` for everything.
pub fn range(params: &Params, now_ms: i64) -> Result<Option<TimeRange>, Problem> {
    let moment = |name: &str| {
        let text = params.one(name)?;
        text.map(|text| moment(text).ok_or_else(|| wrong(name, text, MOMENTS))).transpose()
    };
    let (from, to) = (moment("from")?, moment("to")?);
    let range = match (params.one("last")?, from, to) {
        (None, None, None) => return Ok(None),
        (Some(text), None, None) => {
            let length = milliseconds("last", text)?;
            TimeRange { from_ms: now_ms.saturating_sub(length), to_ms: now_ms }
        }
        (Some(_), ..) => return Err(Problem::bad_request("give `last`, or `from` and `to`, but not both")),
        (None, from, to) => TimeRange { from_ms: from.unwrap_or(0), to_ms: to.unwrap_or(now_ms) },
    };
    if range.from_ms >= range.to_ms {
        return Err(Problem::bad_request("the range is empty: `from` must be before `to`"));
    }
    Ok(Some(range))
}

const MOMENTS: &str = "milliseconds since 1970, or UTC as in 2026-01-31 or 2026-01-31T09:30:00Z";

fn wrong(name: &str, text: &str, wanted: &str) -> Problem {
    Problem::bad_request(format!("{name}: {text:?} is not {wanted}"))
}

/// A length of time as a parameter, in milliseconds.
pub fn length(params: &Params, name: &str) -> Result<Option<i64>, Problem> {
    let text = params.one(name)?;
    text.map(|text| milliseconds(name, text)).transpose()
}

fn milliseconds(name: &str, text: &str) -> Result<i64, Problem> {
    let length = parse_duration(text).and_then(|length| i64::try_from(length.as_millis()).ok());
    length.ok_or_else(|| wrong(name, text, DURATIONS))
}

/// Milliseconds since 1970 of `1700000000000`, `2026-01-31` or `2026-01-31T09:30:00.5Z`.
fn moment(text: &str) -> Option<i64> {
    if let Ok(number) = text.parse() {
        return Some(number);
    }
    let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00Z"));
    let [year, month, day] = numbers(date, '-')?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    let (clock, fraction) = time.strip_suffix('Z')?.split_once('.').unwrap_or((time.strip_suffix('Z')?, "0"));
    let [hour, minute, second] = numbers(clock, ':')?;
    let valid = (1970..=9999).contains(&year)
        && (1..=days).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit());
    if !valid {
        return None;
    }
    let milliseconds: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    // Days since 1970 of a date, by years that begin in March.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 719_469;
    Some((((day * 24 + hour) * 60 + minute) * 60 + second) * 1_000 + milliseconds)
}

fn numbers<const N: usize>(text: &str, separator: char) -> Option<[i64; N]> {
    let digits = |part: &str| (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<i64> =
        text.split(separator).map(|part| part.parse().ok().filter(|_| digits(part))).collect::<Option<_>>()?;
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read() {
        // `date -u -d 2024-02-29T12:34:56Z +%s`
        let cases = [
            ("1700000000123", Some(1_700_000_000_123)),
            ("1970-01-01", Some(0)),
            ("2024-02-29T12:34:56Z", Some(1_709_210_096_000)),
            ("2024-02-29 12:34:56.25Z", Some(1_709_210_096_250)),
            ("2000-03-01", Some(951_868_800_000)),
            ("9999-12-31T23:59:59Z", Some(253_402_300_799_000)),
            ("2023-02-29", None),
            ("2024-13-01", None),
            ("2024-01-01T24:00:00Z", None),
            ("2024-01-01T10:00:00", None),
            ("2024-01-01T10:00:00.Z", None),
            ("2024-01", None),
            ("+2024-01-01", None),
            ("yesterday", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(moment(text), expected, "{text}");
        }
    }

    #[test]
    fn a_range_is_said_in_one_way() {
        let read = |query: &str| range(&Params::read(Some(query), &PARAMETERS).unwrap(), 1_000_000).ok();
        assert_eq!(read(""), Some(None));
        assert_eq!(read("last=5m"), Some(Some(TimeRange { from_ms: 700_000, to_ms: 1_000_000 })));
        assert_eq!(read("from=5"), Some(Some(TimeRange { from_ms: 5, to_ms: 1_000_000 })));
        assert_eq!(read("from=5&to=9"), Some(Some(TimeRange { from_ms: 5, to_ms: 9 })));
        for query in ["last=5m&from=1", "from=9&to=9", "from=x", "last=x", "last=1s&last=2s"] {
            assert_eq!(read(query), None, "{query}");
        }
    }
}
