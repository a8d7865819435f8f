//! The command line of UCL-sketch.
fn main() {}
