//! The fast half of UCL-sketch: heavy part, linear sketch and Bloom filter, per item, in a fixed budget.
