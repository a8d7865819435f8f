//! A binary range coder with adaptive bits.
//!
//! The coder of LZMA: a range of 32 bits, carries propagated into bytes that are held back. Each
//! modelled bit costs a multiplication, bits without a model a shift. Both directions run the same
//! code ([`Coder`]): what the encoder is told, the decoder returns.
//!
//! Why by hand: the coders that are published want a whole buffer, an allocator or the standard
//! library. This one hands its bytes on in pieces of at most [`CHUNK`], so that a device needs no
//! room for a message.

/// Bytes are handed on in pieces of at most this many: what one byte can say.
pub const CHUNK: usize = 255;

/// The probability that a bit is 0, in 1/4096, and how many bits it has learned from, up to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bit(u16);

impl Bit {
    /// Whether learning can have led here: a probability of 0 would never end.
    #[cfg(feature = "serde")]
    pub fn is_sound(self) -> bool {
        (16..=4080).contains(&self.zero())
    }

    /// Nothing learned yet.
    pub const NEW: Self = Self(2048 << 4);

    #[inline(always)]
    fn zero(self) -> u32 {
        u32::from(self.0 >> 4)
    }

    /// Learns: fast at first, then by 1/32.
    #[inline(always)]
    fn learn(&mut self, bit: bool) {
        const SHIFT: [u8; 16] = [1, 2, 2, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5];
        let (zero, seen) = (i32::from(self.0 >> 4), self.0 & 15);
        let shift = SHIFT[usize::from(seen)];
        let target = if bit { 0 } else { 4096 };
        // Never certain: the bits that are least expected cost eight bits.
        let zero = (zero + ((target - zero) >> shift)).clamp(16, 4080);
        self.0 = (zero as u16) << 4 | (seen + 1).min(15);
    }
}

/// One direction of coding. Whatever is coded is returned, so that one description of a message
/// serves for writing and for reading; a decoder ignores what it is given.
pub trait Coder {
    /// Codes a bit by a model.
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool;

    /// Codes `bits` bits (at most 16) of which nothing is known.
    fn raw(&mut self, value: u32, bits: u32) -> u32;

    /// Codes up to 64 bits of which nothing is known.
    #[inline]
    fn raw_long(&mut self, value: u64, bits: u32) -> u64 {
        let (mut left, mut out) = (bits, 0);
        while left > 0 {
            let now = left.min(16);
            left -= now;
            out = out << now | u64::from(self.raw((value >> left) as u32 & ((1 << now) - 1), now));
        }
        out
    }
}

const LEAST: u32 = 1 << 24;

/// Writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeEncoder {
    low: u64,
    range: u32,
    /// The byte that a carry may still change, and how many `ff` follow it.
    cache: u8,
    pending: u64,
    chunk: [u8; CHUNK],
    filled: u8,
}

impl Default for RangeEncoder {
    fn default() -> Self {
        // The first byte out is always 0: it is not counted as pending.
        Self { low: 0, range: u32::MAX, cache: 0, pending: 0, chunk: [0; CHUNK], filled: 0 }
    }
}

/// An encoder and where its bytes go.
pub struct Writing<'a, F> {
    /// The encoder.
    pub encoder: &'a mut RangeEncoder,
    /// Is given each piece.
    pub out: F,
}

impl<F: FnMut(&[u8])> Writing<'_, F> {
    #[inline(always)]
    fn normalise(&mut self) {
        while self.encoder.range < LEAST {
            self.encoder.range <<= 8;
            self.shift();
        }
    }

    fn shift(&mut self) {
        let low = self.encoder.low;
        if low < 0xff00_0000 || low > u64::from(u32::MAX) || self.encoder.pending == 0 {
            let carry = (low >> 32) as u8;
            if self.encoder.pending > 0 {
                self.push(self.encoder.cache.wrapping_add(carry));
                for _ in 1..self.encoder.pending {
                    self.push(0xff_u8.wrapping_add(carry));
                }
            }
            self.encoder.pending = 0;
            self.encoder.cache = (low >> 24) as u8;
        }
        self.encoder.pending += 1;
        self.encoder.low = (low & 0x00ff_ffff) << 8;
    }

    fn push(&mut self, byte: u8) {
        let encoder = &mut *self.encoder;
        encoder.chunk[usize::from(encoder.filled)] = byte;
        encoder.filled += 1;
        if usize::from(encoder.filled) == CHUNK {
            (self.out)(&encoder.chunk);
            encoder.filled = 0;
        }
    }

    /// Ends the message: whatever is left goes out, and the encoder starts again.
    pub fn finish(mut self) {
        // The shortest number in the range: bytes that would be 0 are left out, a reader takes them
        // for that.
        let (low, range) = (self.encoder.low, u64::from(self.encoder.range));
        let short = [24, 16, 8].into_iter().find_map(|bits| {
            let number = ((low >> bits) + 1) << bits;
            (number < low + range).then_some(number)
        });
        self.encoder.low = short.unwrap_or(low);
        for _ in 0..5 {
            self.shift();
        }
        let encoder = &mut *self.encoder;
        let filled = usize::from(encoder.filled);
        // Zeros at the end of this piece are as good as left out.
        let whole = encoder.chunk[..filled].iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        if whole > 0 {
            (self.out)(&encoder.chunk[..whole]);
        }
        *self.encoder = RangeEncoder::default();
    }
}

impl<F: FnMut(&[u8])> Coder for Writing<'_, F> {
    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        let bound = (self.encoder.range >> 12) * model.zero();
        if bit {
            self.encoder.low += u64::from(bound);
            self.encoder.range -= bound;
        } else {
            self.encoder.range = bound;
        }
        model.learn(bit);
        self.normalise();
        bit
    }

    #[inline(always)]
    fn raw(&mut self, value: u32, bits: u32) -> u32 {
        self.encoder.range >>= bits;
        self.encoder.low += u64::from(value) * u64::from(self.encoder.range);
        self.normalise();
        value
    }
}

/// Reads what [`Writing`] wrote. Never fails: after the end it reads zeros, and what nobody wrote
/// reads as something.
#[derive(Clone, Debug)]
pub struct RangeDecoder<'a> {
    code: u32,
    range: u32,
    bytes: &'a [u8],
}

impl<'a> RangeDecoder<'a> {
    /// Starts to read a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { code: 0, range: u32::MAX, bytes };
        for _ in 0..4 {
            decoder.shift();
        }
        decoder
    }

    #[inline(always)]
    fn shift(&mut self) {
        let byte = match self.bytes.split_first() {
            Some((&byte, rest)) => {
                self.bytes = rest;
                byte
            }
            None => 0,
        };
        self.code = self.code << 8 | u32::from(byte);
    }

    #[inline(always)]
    fn normalise(&mut self) {
        while self.range < LEAST {
            self.range <<= 8;
            self.shift();
        }
    }
}

impl Coder for RangeDecoder<'_> {
    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, _: bool) -> bool {
        let bound = (self.range >> 12) * model.zero();
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
        } else {
            self.range = bound;
        }
        model.learn(bit);
        self.normalise();
        bit
    }

    #[inline(always)]
    fn raw(&mut self, _: u32, bits: u32) -> u32 {
        self.range >>= bits;
        // Bytes that no encoder wrote may lie beyond the range.
        let value = (self.code / self.range).min((1 << bits) - 1);
        self.code -= value * self.range;
        self.normalise();
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[derive(Clone, Debug)]
    enum Step {
        Bit(usize, bool),
        Raw(u32, u32),
        Long(u64, u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0usize..3, prop::bool::weighted(0.02)).prop_map(|(model, bit)| Step::Bit(model, bit)),
            2 => (0usize..3, any::<bool>()).prop_map(|(model, bit)| Step::Bit(model, bit)),
            1 => (any::<u32>(), 0u32..17).prop_map(|(value, bits)| Step::Raw(value & ((1 << bits) - 1), bits)),
            1 => (any::<u64>(), 0u32..65).prop_map(|(value, bits)| {
                Step::Long(if bits == 64 { value } else { value & ((1 << bits) - 1) }, bits)
            }),
            // All ones, which is where carries run.
            1 => (1u32..17).prop_map(|bits| Step::Raw((1 << bits) - 1, bits)),
        ];
        prop::collection::vec(step, 0..800)
    }

    fn run(coder: &mut impl Coder, steps: &[Step]) -> Vec<u64> {
        let mut models = [Bit::NEW; 3];
        let mut told = Vec::new();
        for step in steps {
            told.push(match *step {
                Step::Bit(model, bit) => coder.bit(&mut models[model], bit).into(),
                Step::Raw(value, bits) => coder.raw(value, bits).into(),
                Step::Long(value, bits) => coder.raw_long(value, bits),
            });
        }
        told
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(messages in prop::collection::vec(steps(), 1..4)) {
            let mut encoder = RangeEncoder::default();
            for steps in messages {
                let mut bytes = Vec::new();
                let mut writing = Writing { encoder: &mut encoder, out: |piece: &[u8]| bytes.extend_from_slice(piece) };
                let told = run(&mut writing, &steps);
                writing.finish();
                let mut decoder = RangeDecoder::new(&bytes);
                prop_assert_eq!(run(&mut decoder, &steps), told);
            }
        }

        #[test]
        fn any_bytes_can_be_read(bytes: Vec<u8>, steps in steps()) {
            run(&mut RangeDecoder::new(&bytes), &steps);
        }
    }

    /// A model that has learned costs what it should.
    #[test]
    fn likely_bits_are_cheap() {
        let (mut encoder, mut bytes) = (RangeEncoder::default(), 0);
        let mut writing = Writing { encoder: &mut encoder, out: |piece: &[u8]| bytes += piece.len() };
        let mut model = Bit::NEW;
        for i in 0..80_000 {
            writing.bit(&mut model, i % 20 == 0);
        }
        writing.finish();
        // 0.286 bits of entropy each; the model never stops learning, which costs a little.
        assert!((2864..3100).contains(&bytes), "{bytes}");
    }
}
