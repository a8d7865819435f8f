//! A counter while it is peeled: what remains in it, how many candidates it has, and the XOR of
//! their positions.
//!
//! All three are needed together and counters are visited at random, so they sit side by side; in
//! most systems in one word.

/// Operations of a counter that peeling needs.
pub(super) trait Counter: Copy {
    /// The memory for counters like this.
    fn kept<'a>(wide: &'a mut Vec<Wide>, narrow: &'a mut Vec<Narrow>) -> &'a mut Vec<Self>;
    /// A counter without candidates.
    fn new(mass: i64) -> Self;
    fn mass(self) -> i64;
    fn candidates(self) -> u32;
    /// The position of the only candidate, if there is one.
    fn only(self) -> u32;
    fn join(&mut self, position: u32);
    fn leave(&mut self, position: u32);
    /// Takes off what has been explained, which is no more than there is.
    fn explain(&mut self, value: i64);
}

/// For any system.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    mass: i64,
    count: u32,
    xor: u32,
}

impl Counter for Wide {
    fn kept<'a>(wide: &'a mut Vec<Wide>, _: &'a mut Vec<Narrow>) -> &'a mut Vec<Self> {
        wide
    }

    #[inline(always)]
    fn new(mass: i64) -> Self {
        Self { mass, count: 0, xor: 0 }
    }

    #[inline(always)]
    fn mass(self) -> i64 {
        self.mass
    }

    #[inline(always)]
    fn candidates(self) -> u32 {
        self.count
    }

    #[inline(always)]
    fn only(self) -> u32 {
        self.xor
    }

    #[inline(always)]
    fn join(&mut self, position: u32) {
        self.count += 1;
        self.xor ^= position;
    }

    #[inline(always)]
    fn leave(&mut self, position: u32) {
        self.count -= 1;
        self.xor ^= position;
    }

    #[inline(always)]
    fn explain(&mut self, value: i64) {
        self.mass -= value;
    }
}

/// For systems that [`Narrow::holds`]: 32 bits of mass, 16 of the number of candidates, 16 of their
/// XOR. One number is read and written where it was three, in half the memory: an epoch
/// (`cargo bench -p ucl-equations epoch`) peels in 0.83 of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrow(u64);

impl Narrow {
    const ONE: u64 = 1 << 32;

    /// Returns true if every counter of a system fits.
    pub fn holds(candidates: usize, largest: i64) -> bool {
        candidates <= usize::from(u16::MAX) && largest <= i64::from(u32::MAX)
    }
}

impl Counter for Narrow {
    fn kept<'a>(_: &'a mut Vec<Wide>, narrow: &'a mut Vec<Narrow>) -> &'a mut Vec<Self> {
        narrow
    }

    #[inline(always)]
    fn new(mass: i64) -> Self {
        Self(mass as u64)
    }

    #[inline(always)]
    fn mass(self) -> i64 {
        (self.0 & (Self::ONE - 1)) as i64
    }

    #[inline(always)]
    fn candidates(self) -> u32 {
        (self.0 >> 32) as u32 & 0xffff
    }

    #[inline(always)]
    fn only(self) -> u32 {
        (self.0 >> 48) as u32
    }

    #[inline(always)]
    fn join(&mut self, position: u32) {
        self.0 = (self.0 + Self::ONE) ^ u64::from(position) << 48;
    }

    #[inline(always)]
    fn leave(&mut self, position: u32) {
        self.0 = (self.0 - Self::ONE) ^ u64::from(position) << 48;
    }

    #[inline(always)]
    fn explain(&mut self, value: i64) {
        self.0 -= value as u64;
    }
}
