//! An encoder that is written down between two messages, with what it has collected for the next
//! one.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use ucl_data_plane::{Config, CounterIndex, Inconsistent, ensure};

use crate::MAX_BUFFER;
use crate::encoder::{Encoder, Uplink};
use crate::message::Header;
use crate::sections::keys::Keys;
use crate::sections::slots::Slots;

/// No link has sent more messages or bytes than this: what counts them does not overflow.
const MOST: u64 = 1 << 60;

/// State of an encoder, from which it continues exactly where it stopped.
///
/// ```
/// use ucl_data_plane::{Config, CounterIndex, KeyFormat, Report, ReportRule, ReportSink, Shape};
/// use ucl_wire::Encoder;
///
/// let config = Config { keys: KeyFormat::Fixed(4), shape: Shape::PAPER_64KB, rule: ReportRule::New, seed: 1.into() };
/// let mut encoder = Encoder::new(7, config, |_: &[u8]| {})?;
/// encoder.report(Report::Carry { at: CounterIndex(3), times: 1 }); // waits for a message
/// let again = Encoder::restore(config, encoder.state(), |_: &[u8]| {})?;
/// assert_eq!(again.state(), encoder.state());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EncoderState {
    next: Header,
    keys: Keys,
    carries: Vec<(CounterIndex, i64)>,
    slots: Slots,
    limit: usize,
    uplink: Uplink,
}

impl EncoderState {
    /// Returns the header of the next message.
    pub fn next(&self) -> Header {
        self.next
    }
}

impl<F: FnMut(&[u8])> Encoder<F> {
    /// Returns the state of the encoder.
    pub fn state(&self) -> EncoderState {
        EncoderState {
            next: self.next,
            keys: self.keys.clone(),
            carries: self.carries.clone(),
            slots: self.slots.clone(),
            limit: self.limit,
            uplink: self.uplink,
        }
    }

    /// Restores an encoder from its state, in the same segment.
    pub fn restore(config: Config, state: EncoderState, out: F) -> Result<Self, Inconsistent> {
        let EncoderState { next, keys, carries, slots, limit, uplink } = state;
        let counters = config.shape.geometry().counters();
        keys.check(&config)?;
        slots.check(&config)?;
        let stray = carries.iter().find(|(at, _)| at.0 as usize >= counters);
        ensure(stray.is_none(), || format!("{stray:?} waits to be sent, but there are {counters} counters"))?;
        ensure(limit <= MAX_BUFFER, || format!("a buffer of {limit} bytes, more than {MAX_BUFFER}"))?;
        let Uplink { keys: a, carries: b, slots: c, counters: d, headers: e, messages: f } = uplink;
        let counts = [next.epoch, next.seq, a, b, c, d, e, f, next.segment.into()];
        ensure(counts.iter().all(|&count| count < MOST) && next.segment < u32::MAX, || {
            format!("{next:?} after {uplink:?}")
        })?;
        let mut encoder = Self::resume(next, config, out).map_err(|error| Inconsistent(error.to_string()))?;
        (encoder.keys, encoder.carries, encoder.slots) = (keys, carries, slots);
        (encoder.limit, encoder.uplink) = (limit, uplink);
        Ok(encoder)
    }
}
