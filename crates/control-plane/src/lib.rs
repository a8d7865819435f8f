//! The slow half of UCL-sketch: registry, segments, window, decoders, queries.
