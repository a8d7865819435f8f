//! State files: going on as if there had been no stop, files of older versions, damage and malice.
#![allow(unsafe_code, reason = "an allocator that remembers the largest request")]

mod background;
mod cases;
mod damage;
mod errors;
mod exact;
mod golden;
mod resume;
