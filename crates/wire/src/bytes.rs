//! Fixed-width integers and varints over a byte slice that is never read past its end.

use alloc::vec::Vec;

use crate::WireError;

/// Appends `value` in seven-bit groups, low ones first; the top bit of a byte says that another
/// follows.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Signed to unsigned with small magnitudes staying small: 0, -1, 1, -2, ...
#[inline]
pub(crate) fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// A place in a byte slice. Every read is checked, and says what it was for when it fails.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, bytes: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let Some((taken, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(WireError::Truncated { what, needed: bytes, left: self.rest.len() });
        };
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(crate) fn byte(&mut self, what: &'static str) -> Result<u8, WireError> {
        Ok(self.array::<1>(what)?[0])
    }

    /// A varint in its shortest form: a message has one spelling.
    pub(crate) fn varint(&mut self, what: &'static str) -> Result<u64, WireError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what)?;
            let group = u64::from(byte & 0x7f);
            if shift == 63 && group > 1 {
                break;
            }
            value |= group << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    break;
                }
                return Ok(value);
            }
        }
        Err(WireError::Corrupt { what })
    }

    /// A varint that may not be larger than `most`.
    pub(crate) fn bounded(&mut self, what: &'static str, most: u64) -> Result<u64, WireError> {
        let value = self.varint(what)?;
        if value > most { Err(WireError::TooLarge { what, value, most }) } else { Ok(value) }
    }

    pub(crate) fn end(&self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::TrailingBytes { bytes: self.rest.len() }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn varints_round_trip(value in prop_oneof![0u64..300, any::<u64>()]) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            prop_assert_eq!(Reader::new(&bytes).varint("test")?, value);
            prop_assert!(Reader::new(&bytes[..bytes.len() - 1]).varint("test").is_err());
        }

        #[test]
        fn zigzag_round_trips(value: i64) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
        }
    }

    #[test]
    fn varints_have_one_spelling() {
        let corrupt = Err(WireError::Corrupt { what: "test" });
        assert_eq!(Reader::new(&[0x80, 0x00]).varint("test"), corrupt);
        assert_eq!(Reader::new(&[0xff; 12]).varint("test"), corrupt);
        let mut most = [0xff; 10];
        most[9] = 1;
        assert_eq!(Reader::new(&most).varint("test"), Ok(u64::MAX));
        most[9] = 2;
        assert_eq!(Reader::new(&most).varint("test"), corrupt);
    }
}
