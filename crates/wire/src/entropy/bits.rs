//! Bits in bytes, the low bit first.

use alloc::vec::Vec;

use crate::WireError;
use crate::bytes::Reader;

/// Appends groups of bits to bytes. [`BitWriter::finish`] fills the last byte with zeros.
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    held: u64,
    filled: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, held: 0, filled: 0 }
    }

    /// Appends the low `bits` (up to 32) of `value`; the others must be zero.
    #[inline]
    pub(crate) fn put(&mut self, value: u64, bits: u32) {
        debug_assert!(bits <= 32 && value >> bits == 0);
        self.held |= value << self.filled;
        self.filled += bits;
        if self.filled >= 32 {
            self.out.extend_from_slice(&(self.held as u32).to_le_bytes());
            self.held >>= 32;
            self.filled -= 32;
        }
    }

    /// Appends up to 64 bits.
    #[inline]
    pub(crate) fn put_wide(&mut self, value: u64, bits: u32) {
        if bits > 32 {
            self.put(value & 0xffff_ffff, 32);
            self.put(value >> 32, bits - 32);
        } else {
            self.put(value, bits);
        }
    }

    pub(crate) fn finish(self) {
        let bytes = self.filled.div_ceil(8) as usize;
        self.out.extend_from_slice(&self.held.to_le_bytes()[..bytes]);
    }
}

/// Takes groups of bits from bytes.
pub(crate) struct BitReader<'r, 'a> {
    reader: &'r mut Reader<'a>,
    what: &'static str,
    held: u64,
    filled: u32,
}

impl<'r, 'a> BitReader<'r, 'a> {
    pub(crate) fn new(reader: &'r mut Reader<'a>, what: &'static str) -> Self {
        Self { reader, what, held: 0, filled: 0 }
    }

    /// Takes up to 32 bits.
    #[inline]
    pub(crate) fn take(&mut self, bits: u32) -> Result<u64, WireError> {
        // Only the bytes that are needed: what follows the last one belongs to someone else.
        while self.filled < bits {
            self.held |= u64::from(self.reader.byte(self.what)?) << self.filled;
            self.filled += 8;
        }
        let value = self.held & ((1 << bits) - 1);
        self.held >>= bits;
        self.filled -= bits;
        Ok(value)
    }

    /// Takes up to 64 bits.
    #[inline]
    pub(crate) fn take_wide(&mut self, bits: u32) -> Result<u64, WireError> {
        if bits > 32 { Ok(self.take(32)? | self.take(bits - 32)? << 32) } else { self.take(bits) }
    }

    /// The rest of the last byte must be zeros.
    pub(crate) fn finish(self) -> Result<(), WireError> {
        if self.held == 0 { Ok(()) } else { Err(WireError::Corrupt { what: self.what }) }
    }
}
