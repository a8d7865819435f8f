//! Values of options, and what they may be.

use ucl_sketch::{CounterBits, KeyFormat};

pub fn key_bytes(text: &str) -> Result<KeyFormat, String> {
    match text.parse::<usize>() {
        _ if text == "any" => Ok(KeyFormat::Digest),
        Ok(bytes) if KeyFormat::FIXED_SIZES.contains(&bytes) => Ok(KeyFormat::Fixed(bytes as u8)),
        _ => Err("give 4, 8, 13 or 16 if all keys have that size, or `any`".to_owned()),
    }
}

pub fn code_bits(text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|bits| (8..=KeyFormat::CODE_BITS).contains(bits)).ok_or_else(|| "give 8 to 64 bits".into())
}

pub fn bytes_per_item(text: &str) -> Result<f64, String> {
    let bytes = text.parse().ok().filter(|bytes: &f64| bytes.is_finite() && *bytes > 0.0);
    bytes.ok_or_else(|| "give a number of bytes per item above 0, such as 0.05".into())
}

pub fn epochs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a number of epochs, at least 1".to_owned()),
        Ok(epochs) => Ok(epochs),
    }
}

pub fn items(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("give a number of items, at least 1".to_owned()),
        Ok(items) => Ok(items),
    }
}

/// Each takes memory of its own, and thousands of them longer to start than to count.
const MOST_THREADS: usize = 1024;

pub fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=MOST_THREADS) => Ok(threads),
        _ => Err(format!("give a number of threads, from 1 to {MOST_THREADS}")),
    }
}

pub fn counter_bits(text: &str) -> Result<CounterBits, String> {
    let bits: u32 = text.parse().map_err(|_| "give a number of bits: 4, 8, 16 or 32".to_owned())?;
    CounterBits::new(bits).map_err(|error| error.to_string())
}
