//! Streams of keys: readers, seeded generators, exact counts.
