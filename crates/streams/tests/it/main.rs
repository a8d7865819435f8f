//! Everything a user can feed the readers, against what must come out.

mod boundaries;
mod captures;
mod compression;
mod generators;
mod live;
#[cfg(feature = "parquet")]
mod parquet;
mod parts;
mod support;
mod text;
