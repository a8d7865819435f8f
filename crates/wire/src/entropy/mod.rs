//! Near-entropy coding of small integers: the one tool behind every section of a message.
//!
//! - [`values`] turns integers of any size into byte *tokens* and raw low bits;
//! - [`block`] writes a block of byte symbols in the cheapest of three ways (raw, constant, coded);
//! - [`text`] writes names, as predictions and the bytes where they fail;
//! - [`rans`] is the coder, [`table`] its frequencies on the wire, [`bits`] the raw bits.
//!
//! Every block stands alone: its frequencies travel with it, so that a message can be read without
//! the ones before it.

pub(crate) mod bits;
pub(crate) mod block;
pub(crate) mod rans;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod values;
