//! Codes: 64 bits that stand for a key of any length.
//!
//! A mirrored table ([`mirrored`](crate::mirrored)) wants keys of one size. Many keys fit into 64
//! bits as they are, and then the code *is* the key: it cannot collide, and no name has to travel
//! beside it.
//!
//! ```text
//! 00 | 62 bits     the number that the key writes in at most 18 digits: "0", "17", but not "017"
//! 01 | 000 | len | 7 bytes     a key of at most seven bytes, and its length
//! 1  | 63 bits     of SipHash-2-4 of any other key, under a secret key
//! ```
//! Codes of fewer bits, on request, are hashes of all keys.

use siphasher::sip128::SipHasher24;

use crate::key::DigestKey;

/// The longest key whose bytes fit into a code.
const SHORT: usize = 7;
/// Numbers of more than eighteen digits are no numbers here.
const NUMBER_LIMIT: u64 = 1_000_000_000_000_000_000;
const BYTES: u64 = 1 << 62;
const HASH: u64 = 1 << 63;
const LENGTH_AT: u32 = 56;

/// The key that a code stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodedKey {
    bytes: [u8; 20],
    from: u8,
    to: u8,
}

impl CodedKey {
    /// Returns the bytes of the key.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.from.into()..self.to.into()]
    }
}

impl DigestKey {
    /// Returns the code of a key, of `bits` bits (at most 64).
    ///
    /// ```
    /// use ucl_data_plane::HashSeed;
    /// let key = HashSeed::new(1.into()).digest_key();
    /// assert_eq!(key.code(b"1234567890", 64), 1_234_567_890);
    /// let code = key.code(b"/home", 64);
    /// assert_eq!(key.key_of_code(code, 64).unwrap().bytes(), b"/home");
    /// assert!(key.key_of_code(key.code(b"/articles/2024", 64), 64).is_none());
    /// assert!(key.code(b"/articles/2024", 36) < 1 << 36);
    /// ```
    #[inline]
    pub fn code(self, key: &[u8], bits: u8) -> u64 {
        if bits < 64 {
            return self.code_hash(key) & ((1 << bits) - 1);
        }
        if let Some(number) = decimal(key) {
            return number;
        }
        if key.len() <= SHORT {
            let bytes = key.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            return BYTES | (key.len() as u64) << LENGTH_AT | bytes;
        }
        HASH | self.code_hash(key)
    }

    /// Returns the key that a code of `bits` bits stands for, where the code tells.
    pub fn key_of_code(self, code: u64, bits: u8) -> Option<CodedKey> {
        if bits < 64 || code >= HASH {
            return None;
        }
        let mut bytes = [0; 20];
        if code < NUMBER_LIMIT {
            let mut from = bytes.len();
            let mut left = code;
            loop {
                from -= 1;
                bytes[from] = b'0' + (left % 10) as u8;
                left /= 10;
                if left == 0 {
                    break;
                }
            }
            return Some(CodedKey { bytes, from: from as u8, to: 20 });
        }
        let len = (code >> LENGTH_AT & 63) as u8;
        if code < BYTES || usize::from(len) > SHORT || code & ((1 << LENGTH_AT) - 1) >> (8 * len) << (8 * len) != 0 {
            return None;
        }
        bytes[..SHORT].copy_from_slice(&code.to_le_bytes()[..SHORT]);
        // The same text as a number has that code, and no other.
        let key = CodedKey { bytes, from: 0, to: len };
        decimal(key.bytes()).is_none().then_some(key)
    }

    /// Returns the probability that a key has the code of at least one of `others` other keys.
    ///
    /// ```
    /// use ucl_data_plane::HashSeed;
    /// let key = HashSeed::new(1.into()).digest_key();
    /// assert_eq!(key.confusion(1 << 10, 20), 1.0 / 1024.0);
    /// assert!(key.confusion(100_000, 64) < 2e-14);
    /// ```
    pub fn confusion(self, others: u64, bits: u8) -> f64 {
        // One bit says that it is a hash.
        let hashed = if bits < 64 { u32::from(bits) } else { 63 };
        (others as f64 / (1u64 << hashed) as f64).min(1.0)
    }

    fn code_hash(self, key: &[u8]) -> u64 {
        let (low, high) = self.halves();
        // Another function of the secret than digests are: the halves change places.
        SipHasher24::new_with_keys(high, !low).hash(key).as_u128() as u64 & (HASH - 1)
    }
}

/// The number that a key writes as a decimal, without leading zeros.
#[inline]
fn decimal(key: &[u8]) -> Option<u64> {
    let (&first, rest) = key.split_first()?;
    // Eighteen digits stay below 2^62.
    if rest.len() >= 18 || !first.is_ascii_digit() || (first == b'0' && !rest.is_empty()) {
        return None;
    }
    key.iter().try_fold(0, |number, &byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashSeed;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};
    use std::format;
    use std::string::String;
    use std::vec::Vec;

    fn digest_key() -> DigestKey {
        HashSeed::new(7.into()).digest_key()
    }

    proptest! {
        /// A code that tells a key tells the one it was made from, and short keys and numbers are
        /// always told.
        #[test]
        fn codes_tell_their_keys(
            key in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..10),
                "[0-9]{0,22}".prop_map(String::into_bytes),
                any::<u64>().prop_map(|number| format!("{number}").into_bytes()),
            ],
        ) {
            let code = digest_key().code(&key, 64);
            let told = digest_key().key_of_code(code, 64);
            prop_assert!(told.is_some() || key.len() > 7);
            if let Some(told) = told {
                prop_assert_eq!(told.bytes(), &key[..]);
            }
            prop_assert!(digest_key().code(&key, 36) < 1 << 36);
        }

        /// Codes that no key has tell none, so that nothing is shown under two names.
        #[test]
        fn a_told_key_has_that_code(code: u64) {
            for code in [code, code >> 2, code >> 1 & !(63 << 56) | BYTES, BYTES | 3 << LENGTH_AT | code & 0xff_ffff] {
                if let Some(key) = digest_key().key_of_code(code, 64) {
                    prop_assert_eq!(digest_key().code(key.bytes(), 64), code);
                }
            }
        }
    }

    #[test]
    fn no_two_keys_share_a_code() {
        let mut keys: Vec<Vec<u8>> = (0..2000u32).map(|i| format!("{i}").into_bytes()).collect();
        keys.extend((0..2000u32).map(|i| format!("0{i}").into_bytes()));
        keys.extend((0..2000u32).map(|i| format!("/a/long/path/{i}").into_bytes()));
        keys.extend((0..8).map(|len| std::vec![0; len]));
        let codes: HashSet<u64> = keys.iter().map(|key| digest_key().code(key, 64)).collect();
        assert_eq!(codes.len(), keys.len());
    }

    /// Where codes are short enough for confusions to be counted, as many come as are stated.
    #[test]
    fn confusions_are_as_likely_as_stated() {
        for bits in [20, 22, 24] {
            let keys = 40_000u64;
            let mut holders: HashMap<u64, u64> = HashMap::new();
            let mut confused = 0u64;
            for seed in 0..4u128 {
                let key = HashSeed::new(seed.into()).digest_key();
                holders.clear();
                for i in 0..keys {
                    *holders.entry(key.code(format!("key {i}").as_bytes(), bits)).or_default() += 1;
                }
                confused += holders.values().filter(|&&count| count > 1).sum::<u64>();
            }
            let stated = 4.0 * keys as f64 * digest_key().confusion(keys - 1, bits);
            // Confused keys come in pairs: the standard deviation is that of half as many events.
            let spread = 4.0 * (2.0 * stated).sqrt();
            // The statement is an upper bound: three keys of one code count once.
            assert!((confused as f64) < stated + spread, "{bits} bits: {confused}, stated {stated}");
            assert!((confused as f64) > 0.93 * stated - spread, "{bits} bits: {confused}, stated {stated}");
        }
    }
}
