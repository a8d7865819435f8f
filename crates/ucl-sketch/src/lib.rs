//! Near-exact per-key counts of an unbounded stream, in kilobytes.
