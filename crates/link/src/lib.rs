//! What an agent and a collector say to each other: rules and bytes. Input, output and time are
//! left to programs: the `Client` (feature `http`), the module `nats` (feature `nats`) and the
//! [`Clock`] are for those.
//!
//! An agent counts a stream and sends one [`Envelope`] per epoch. The collector judges each one by
//! the envelopes before it ([`Sequence`]) and answers with a [`Reply`].
//!
//! # Rules
//!
//! 1. A sender is a tenant, a stream and an [`Incarnation`] ([`Identity`]). A new incarnation
//!    starts only where the sender cannot go on exactly where it stopped.
//! 2. An epoch is the unit: its messages travel in one envelope, and count together or not at all.
//! 3. An envelope is sent only after the sender has it, and the state after it, on its disk.
//! 4. An acknowledgement means that the collector has the envelope on its disk. Only then does the
//!    sender forget it.
//! 5. A repeated envelope is acknowledged again. One with the number of another, or that follows on
//!    another than the collector has, is a *fork*: two senders have the same identity, or one was
//!    set back. It is refused, and the sender goes on with a new incarnation.
//! 6. The answer for a key is the sum over streams and incarnations.
//! 7. Order is by number, never by clock. Times are for people to read.
//!
//! ```
//! use ucl_link::{Envelope, Identity, Incarnation, Judgement, Sequence, Times};
//!
//! let identity = Identity::new("shop", "web-1", Incarnation { number: 1, nonce: 42 })?;
//! let times = Times { started_ms: 1_000, ended_ms: 11_000, duration_ms: 10_000 };
//! let messages = vec![&b"a message"[..]];
//! let envelope = Envelope { identity, format: "lines", seq: 0, previous: 0, times, items: 7, unseen: None, messages };
//! let bytes = envelope.to_bytes()?;
//!
//! let (read, rest) = Envelope::split(&bytes)?;
//! assert_eq!((&read.envelope, rest), (&envelope, &b""[..]));
//! let mut sequence = Sequence::default();
//! assert_eq!(sequence.judge(&read), Judgement::Next);
//! sequence.take(&read);
//! assert_eq!(sequence.judge(&read), Judgement::Repeated);
//! # Ok::<(), ucl_link::LinkError>(())
//! ```

#[cfg(feature = "http")]
mod ask;
mod backoff;
#[cfg(feature = "http")]
mod client;
mod clock;
mod duration;
mod envelope;
#[cfg(feature = "http")]
mod fleet;
mod identity;
#[cfg(feature = "nats")]
pub mod nats;
mod reply;
mod sequence;

#[cfg(feature = "http")]
pub use ask::{
    About, ChangeRow, Changes, Covered, Epoch, Facts, KeyRow, KeyText, Keys, LastEpoch, MOST_KEYS, PrefixRow, Prefixes,
    Range, Series, Shared, Step, StreamRow, StreamSeries,
};
pub use backoff::Backoff;
#[cfg(feature = "http")]
pub use client::{Client, ClientError};
pub use clock::Clock;
pub use duration::{DURATIONS, parse_duration};
pub use envelope::{Envelope, LinkError, MAX_ENVELOPE, MAX_MESSAGES, Now, Received, Times, Unseen, VERSION};
#[cfg(feature = "http")]
pub use fleet::{Fleet, Whole};
pub use identity::{Identity, Incarnation, MAX_NAME, Name, NameError};
pub use reply::{Refusal, Reply};
pub use sequence::{Judgement, REMEMBERED, Sequence};
