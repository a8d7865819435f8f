//! Weights: decimal numbers that scaling makes whole, exactly, without floating point.

use crate::MAX_WEIGHT;
use crate::collect::{Collector, Halt};
use crate::error::{BadReason, Place};

/// Reads a weight and scales it. `None` has been noted as a bad record.
pub(crate) fn weight(text: &[u8], place: Place, out: &mut Collector<'_>) -> Result<Option<u64>, Halt> {
    match scaled(text, out.scale) {
        Ok(number) => Ok(Some(number)),
        Err(fault) => {
            let scale = out.scale;
            let text = String::from_utf8_lossy(&text[..text.len().min(40)]).into_owned();
            let reason = match fault {
                Fault::NoNumber => BadReason::Weight { text },
                Fault::TooLarge => BadReason::WeightTooLarge { text, scale },
                Fault::Fraction { needed } => BadReason::Fraction { text, scale, needed },
            };
            out.bad(place, reason)?;
            Ok(None)
        }
    }
}

/// Returns true if the text is a number that could be a weight, at some scale.
pub(super) fn is_number(text: &[u8]) -> bool {
    !matches!(scaled(text, 1), Err(Fault::NoNumber))
}

#[derive(Debug, PartialEq, Eq)]
enum Fault {
    NoNumber,
    TooLarge,
    Fraction { needed: Option<u64> },
}

/// Digits with or without a decimal point, times `scale`.
fn scaled(text: &[u8], scale: u64) -> Result<u64, Fault> {
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let (whole, fraction) = (&text[..point], text.get(point + 1..).unwrap_or_default());
    let mut digits = whole.iter().chain(fraction);
    if whole.len() + fraction.len() == 0 || !digits.all(u8::is_ascii_digit) {
        return Err(Fault::NoNumber);
    }
    // Zeros at the end say nothing, and would only make the numbers below larger.
    let places = fraction.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    let number = whole
        .iter()
        .chain(&fraction[..places])
        .try_fold(0u128, |number, digit| number.checked_mul(10)?.checked_add(u128::from(digit - b'0')));
    let unit = u32::try_from(places).ok().and_then(|places| 10u128.checked_pow(places));
    let (Some(number), Some(unit)) = (number, unit) else {
        // Beyond 38 digits: too large, or too fine for any scale.
        return Err(if places == 0 { Fault::TooLarge } else { Fault::Fraction { needed: None } });
    };
    // In lowest terms the product cannot overflow for a weight within the limit.
    let common = gcd(unit, u128::from(scale));
    let (times, divisor) = (u128::from(scale) / common, unit / common);
    if !number.is_multiple_of(divisor) {
        // The least common multiple: it keeps whole what was whole.
        let needed = times.checked_mul(unit).and_then(|needed| u64::try_from(needed).ok());
        return Err(Fault::Fraction { needed });
    }
    let product = (number / divisor).checked_mul(times).and_then(|product| u64::try_from(product).ok());
    product.filter(|product| *product <= MAX_WEIGHT).ok_or(Fault::TooLarge)
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_scaled_exactly() {
        for (text, scale, expected) in [
            ("12.34", 100, 1234),
            ("0.1", 10, 1),
            (".5", 2, 1),
            ("7.", 1, 7),
            ("7.000000000000000000000000000000000000000000000", 1, 7),
            ("0", 1, 0),
            ("0.00", 1, 0),
            ("007", 1, 7),
            ("9223372036854775807", 1, MAX_WEIGHT),
            // Not a number that a 64-bit float can hold.
            ("90071992547409.93", 100, 9_007_199_254_740_993),
            ("9223372036854.775807", 1_000_000, MAX_WEIGHT),
        ] {
            assert_eq!(scaled(text.as_bytes(), scale), Ok(expected), "{text} at {scale}");
        }
    }

    #[test]
    fn faults_are_told_apart() {
        let fraction = |needed| Err(Fault::Fraction { needed });
        for (text, scale, expected) in [
            ("12.34", 1, fraction(Some(100))),
            ("12.345", 100, fraction(Some(1000))),
            ("0.1", 4, fraction(Some(20))),
            ("0.00000000000000000000000000000000000000000000001", 1, fraction(None)),
            ("9223372036854775808", 1, Err(Fault::TooLarge)),
            ("92233720368547758.08", 100, Err(Fault::TooLarge)),
            ("99999999999999999999999999999999999999999999", 1, Err(Fault::TooLarge)),
            ("1", u64::MAX, Err(Fault::TooLarge)),
            ("", 1, Err(Fault::NoNumber)),
            (".", 1, Err(Fault::NoNumber)),
            ("-1", 1, Err(Fault::NoNumber)),
            ("+1", 1, Err(Fault::NoNumber)),
            ("1e3", 1, Err(Fault::NoNumber)),
            ("1.2.3", 1, Err(Fault::NoNumber)),
            ("1,5", 1, Err(Fault::NoNumber)),
        ] {
            assert_eq!(scaled(text.as_bytes(), scale), expected, "{text} at {scale}");
        }
    }
}
