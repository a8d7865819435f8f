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
        let target = if bit { 0 } else { 4096 };
        if seen == 15 {
            // Most of the time; from here on the upper limit is never reached.
            let zero = (zero + ((target - zero) >> SHIFT[15])).max(16);
            self.0 = (zero as u16) << 4 | 15;
            return;
        }
        // Never certain: the bits that are least expected cost eight bits.
        let zero = (zero + ((target - zero) >> SHIFT[usize::from(seen)])).clamp(16, 4080);
        self.0 = (zero as u16) << 4 | (seen + 1);
    }
}

/// One direction of coding. Whatever is coded is returned, so that one description of a message
/// serves for writing and for reading; a decoder ignores what it is given.
pub trait Coder {
    /// Codes a bit by a model.
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool;

    /// [`Coder::bit`] for one that says what comes next: there is a branch on it anyway.
    fn flag(&mut self, model: &mut Bit, bit: bool) -> bool;

    /// Codes `bits` bits (at most 16) of which nothing is known.
    fn raw(&mut self, value: u32, bits: u32) -> u32;

    /// Codes up to 64 bits of which nothing is known.
    #[inline(always)]
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

/// What changes with each bit that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Registers {
    /// From the lowest bit: 32 bits that are being coded, and four bytes that a carry may still
    /// change.
    low: u64,
    range: u32,
    /// Bytes in the chunk.
    filled: u8,
}

/// Bytes that wait in [`Registers::low`].
const WAITING: u8 = 4;

impl Registers {
    // Nothing waits yet: the bytes that leave first are none, and fill what is beyond the chunk.
    const START: Self = Self { low: 0, range: u32::MAX, filled: CHUNK as u8 - WAITING };
}

/// Writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeEncoder {
    /// Of the message that is being written; while it is, a copy is used.
    registers: Registers,
    /// `ff`s behind a full chunk: a carry would run through them into it.
    run: u32,
    /// One byte more than is handed on, so that any index of eight bits is within.
    chunk: [u8; CHUNK + 1],
    started: bool,
}

impl Default for RangeEncoder {
    fn default() -> Self {
        Self { registers: Registers::START, run: 0, chunk: [0; CHUNK + 1], started: false }
    }
}

impl RangeEncoder {
    /// Writes a message, whose bytes go to `out` piece by piece.
    #[inline(always)]
    pub fn write<F: FnMut(&[u8])>(&mut self, out: F, message: impl FnOnce(&mut Writing<'_, '_, F>)) {
        let registers = self.registers;
        let mut whole = Whole { encoder: self, out };
        let mut writing = Writing { registers, whole: &mut whole };
        message(&mut writing);
        let filled = writing.finish();
        whole.finish(filled);
    }
}

/// A message that is being written.
///
/// Most bits cannot be foreseen, and a branch on one of them costs more than coding it: so there is
/// none. The registers are a copy of their own, beside what holds the chunk: else they would be
/// read back from memory after each byte that is stored. (With branches and one byte of carries, a
/// five-tuple of the benchmark `exact` took 1.4 times as long. That a byte leaves can be foreseen
/// well enough: without that branch nothing was gained.)
pub struct Writing<'a, 'b, F> {
    registers: Registers,
    whole: &'a mut Whole<'b, F>,
}

/// What is rarely needed while bits are written.
struct Whole<'a, F> {
    encoder: &'a mut RangeEncoder,
    out: F,
}

impl<F: FnMut(&[u8])> Whole<'_, F> {
    /// A carry goes to where it belongs.
    #[cold]
    #[inline(never)]
    fn carry(&mut self, filled: u8) -> u8 {
        for byte in self.encoder.chunk[..usize::from(filled)].iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                break;
            }
        }
        // No byte is reached by two carries.
        if self.encoder.run > 0 { self.settle(0) } else { filled }
    }

    /// A byte leaves while the chunk is full.
    #[cold]
    #[inline(never)]
    fn overflow(&mut self, byte: u8) -> u8 {
        let filled = if !self.encoder.started {
            self.encoder.started = true;
            0
        } else if byte == 0xff {
            self.encoder.run += 1;
            return CHUNK as u8;
        } else {
            // A carry would end in this byte.
            self.settle(0xff)
        };
        self.encoder.chunk[usize::from(filled)] = byte;
        filled + 1
    }

    /// A full chunk goes out, and the run behind it, which became so many of `byte`. Returns how
    /// many bytes the chunk has then.
    fn settle(&mut self, byte: u8) -> u8 {
        let mut filled = CHUNK;
        for _ in 0..core::mem::take(&mut self.encoder.run) {
            if filled == CHUNK {
                (self.out)(&self.encoder.chunk[..CHUNK]);
                filled = 0;
            }
            self.encoder.chunk[filled] = byte;
            filled += 1;
        }
        if filled == CHUNK {
            (self.out)(&self.encoder.chunk[..CHUNK]);
            filled = 0;
        }
        filled as u8
    }

    /// Whatever is left goes out, and the encoder starts again.
    fn finish(&mut self, filled: u8) {
        let filled = if usize::from(filled) == CHUNK { self.settle(0xff) } else { filled };
        // Zeros at the end of this piece are as good as left out.
        let last = &self.encoder.chunk[..usize::from(filled)];
        let whole = last.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        if whole > 0 {
            (self.out)(&last[..whole]);
        }
        *self.encoder = RangeEncoder::default();
    }
}

impl<F: FnMut(&[u8])> Writing<'_, '_, F> {
    #[inline(always)]
    fn add(&mut self, amount: u64) {
        let (low, carry) = self.registers.low.overflowing_add(amount);
        self.registers.low = low;
        if carry {
            self.registers.filled = self.whole.carry(self.registers.filled);
        }
    }

    /// The oldest byte that waits leaves.
    #[inline(always)]
    fn shift(&mut self) {
        let Registers { low, filled, .. } = self.registers;
        let byte = (low >> 56) as u8;
        self.registers.low = low << 8;
        self.registers.filled = if usize::from(filled) == CHUNK {
            self.whole.overflow(byte)
        } else {
            self.whole.encoder.chunk[usize::from(filled)] = byte;
            filled + 1
        };
    }

    #[inline(always)]
    fn normalise_once(&mut self) {
        if self.registers.range < LEAST {
            self.registers.range <<= 8;
            self.shift();
        }
    }

    /// The shortest number in the range: bytes that would be 0 are left out, a reader takes them
    /// for that.
    fn finish(&mut self) -> u8 {
        let (low, range) = (u128::from(self.registers.low), u128::from(self.registers.range));
        let short = [24, 16, 8].into_iter().find_map(|bits| {
            let number = ((low >> bits) + 1) << bits;
            (number < low + range).then_some(number)
        });
        self.add(short.map_or(0, |number| (number - low) as u64));
        (0..WAITING + 4).for_each(|_| self.shift());
        self.registers.filled
    }
}

impl<F: FnMut(&[u8])> Coder for Writing<'_, '_, F> {
    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        // Of the range, the part of zeros, or of what is left: both factors are known before it is.
        let (zero, ones) = (model.zero(), u32::from(bit).wrapping_neg());
        let range = self.registers.range;
        let part = if bit { 4096 - zero } else { zero };
        self.registers.range = (range >> 12) * part + (range & 4095 & ones);
        self.add(u64::from((range >> 12) * (zero & ones)));
        model.learn(bit);
        self.normalise_once();
        bit
    }

    #[inline(always)]
    fn flag(&mut self, model: &mut Bit, bit: bool) -> bool {
        let bound = (self.registers.range >> 12) * model.zero();
        if bit {
            self.registers.range -= bound;
            self.add(bound.into());
            model.learn(true);
            self.normalise_once();
            true
        } else {
            self.registers.range = bound;
            model.learn(false);
            self.normalise_once();
            false
        }
    }

    #[inline(always)]
    fn raw(&mut self, value: u32, bits: u32) -> u32 {
        self.registers.range >>= bits;
        self.add(u64::from(value) * u64::from(self.registers.range));
        while self.registers.range < LEAST {
            self.normalise_once();
        }
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
    /// The next byte.
    at: usize,
}

impl<'a> RangeDecoder<'a> {
    /// Starts to read a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Self { code: 0, range: u32::MAX, bytes, at: 0 };
        for _ in 0..4 {
            decoder.shift();
        }
        decoder
    }

    #[inline(always)]
    fn shift(&mut self) {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        self.code = self.code << 8 | u32::from(byte);
    }
}

impl Coder for RangeDecoder<'_> {
    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, _: bool) -> bool {
        let bound = (self.range >> 12) * model.zero();
        let bit = self.code >= bound;
        let ones = u32::from(bit).wrapping_neg();
        self.code -= bound & ones;
        let range = core::hint::select_unpredictable(bit, self.range - bound, bound);
        model.learn(bit);
        // A byte at most, without a branch.
        let next = self.bytes.get(self.at).copied().unwrap_or(0);
        let short = range < LEAST;
        let bits = u32::from(short) * 8;
        self.range = range << bits;
        self.code = self.code << bits | u32::from(next) & u32::from(short).wrapping_neg();
        self.at += usize::from(short);
        bit
    }

    #[inline(always)]
    fn flag(&mut self, model: &mut Bit, _: bool) -> bool {
        let bound = (self.range >> 12) * model.zero();
        let bit = self.code >= bound;
        if bit {
            self.code -= bound;
            self.range -= bound;
            model.learn(true);
        } else {
            self.range = bound;
            model.learn(false);
        }
        if self.range < LEAST {
            self.range <<= 8;
            self.shift();
        }
        bit
    }

    #[inline(always)]
    fn raw(&mut self, _: u32, bits: u32) -> u32 {
        self.range >>= bits;
        // Bytes that no encoder wrote may lie beyond the range.
        let value = (self.code / self.range).min((1 << bits) - 1);
        self.code -= value * self.range;
        while self.range < LEAST {
            self.range <<= 8;
            self.shift();
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Bit(usize, bool),
        Flag(usize, bool),
        Raw(u32, u32),
        Long(u64, u32),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => (0usize..3, prop::bool::weighted(0.02)).prop_map(|(model, bit)| Step::Bit(model, bit)),
            2 => (0usize..3, any::<bool>()).prop_map(|(model, bit)| Step::Bit(model, bit)),
            2 => (0usize..3, prop::bool::weighted(0.9)).prop_map(|(model, bit)| Step::Flag(model, bit)),
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
                Step::Flag(model, bit) => coder.flag(&mut models[model], bit).into(),
                Step::Raw(value, bits) => coder.raw(value, bits).into(),
                Step::Long(value, bits) => coder.raw_long(value, bits),
            });
        }
        told
    }

    /// The plainest encoder: every byte is kept, and a carry runs back as far as it goes.
    struct Plain {
        low: u64,
        range: u32,
        bytes: Vec<u8>,
    }

    impl Plain {
        fn shift(&mut self) {
            if self.low > u64::from(u32::MAX) {
                for byte in self.bytes.iter_mut().rev() {
                    *byte = byte.wrapping_add(1);
                    if *byte != 0 {
                        break;
                    }
                }
            }
            self.bytes.push((self.low >> 24) as u8);
            self.low = (self.low & 0x00ff_ffff) << 8;
        }

        fn normalise(&mut self) {
            while self.range < LEAST {
                self.range <<= 8;
                self.shift();
            }
        }

        /// All pieces of a message of these steps.
        fn pieces(steps: &[Step]) -> Vec<Vec<u8>> {
            let mut plain = Self { low: 0, range: u32::MAX, bytes: Vec::new() };
            run(&mut plain, steps);
            let short = [24, 16, 8].into_iter().find_map(|bits| {
                let number = ((plain.low >> bits) + 1) << bits;
                (number < plain.low + u64::from(plain.range)).then_some(number)
            });
            plain.low = short.unwrap_or(plain.low);
            (0..4).for_each(|_| plain.shift());
            let mut pieces: Vec<Vec<u8>> = plain.bytes.chunks(CHUNK).map(<[u8]>::to_vec).collect();
            if let Some(last) = pieces.last_mut().filter(|last| last.len() < CHUNK) {
                while last.last() == Some(&0) {
                    last.pop();
                }
            }
            pieces.retain(|piece| !piece.is_empty());
            pieces
        }
    }

    impl Coder for Plain {
        fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
            let bound = (self.range >> 12) * model.zero();
            if bit {
                self.low += u64::from(bound);
                self.range -= bound;
            } else {
                self.range = bound;
            }
            model.learn(bit);
            self.normalise();
            bit
        }

        fn flag(&mut self, model: &mut Bit, bit: bool) -> bool {
            self.bit(model, bit)
        }

        fn raw(&mut self, value: u32, bits: u32) -> u32 {
            self.range >>= bits;
            self.low += u64::from(value) * u64::from(self.range);
            self.normalise();
            value
        }
    }

    /// The steps with other values.
    fn told_anew(steps: &[Step], told: &[u64]) -> Vec<Step> {
        let anew = |(step, &told): (&Step, _)| match *step {
            Step::Bit(model, _) => Step::Bit(model, told == 1),
            Step::Flag(model, _) => Step::Flag(model, told == 1),
            Step::Raw(_, bits) => Step::Raw(told as u32, bits),
            Step::Long(_, bits) => Step::Long(told, bits),
        };
        steps.iter().zip(told).map(anew).collect()
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(messages in prop::collection::vec(steps(), 1..4)) {
            let mut encoder = RangeEncoder::default();
            for steps in messages {
                let mut bytes = Vec::new();
                let mut told = Vec::new();
                encoder.write(|piece| bytes.extend_from_slice(piece), |writing| told = run(writing, &steps));
                let mut decoder = RangeDecoder::new(&bytes);
                prop_assert_eq!(run(&mut decoder, &steps), told);
            }
        }

        /// The bytes are those of the plain encoder, piece by piece: also next to numbers with long
        /// runs of ones and zeros, through which carries run or just do not.
        #[test]
        fn bytes_and_pieces_are_those_of_the_plain_encoder(
            steps in steps(),
            runs in prop::collection::vec((0usize..600, any::<u8>(), any::<bool>()), 1..4),
        ) {
            let number: Vec<u8> = runs
                .iter()
                .flat_map(|&(length, between, ones)| {
                    core::iter::repeat_n(if ones { 255 } else { 0 }, length).chain([between, between / 2])
                })
                .collect();
            let many: Vec<Step> = steps.iter().cycle().take(4 * steps.len()).copied().collect();
            let near = told_anew(&many, &run(&mut RangeDecoder::new(&number), &many));
            let mut encoder = RangeEncoder::default();
            for steps in [steps, near] {
                let mut pieces = Vec::new();
                encoder.write(|piece| pieces.push(piece.to_vec()), |writing| drop(run(writing, &steps)));
                prop_assert_eq!(pieces, Plain::pieces(&steps));
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
        let mut model = Bit::NEW;
        encoder.write(
            |piece| bytes += piece.len(),
            |writing| {
                for i in 0..80_000 {
                    writing.bit(&mut model, i % 20 == 0);
                }
            },
        );
        // 0.286 bits of entropy each; the model never stops learning, which costs a little.
        assert!((2864..3100).contains(&bytes), "{bytes}");
    }
}
