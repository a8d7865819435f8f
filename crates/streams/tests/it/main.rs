//! Everything a user can feed the readers, against what must come out.

mod boundaries;
mod captures;
mod compression;
mod generators;
mod live;
mod support;
mod text;
