//! The learned solver of UCL-sketch: network, equivariant loss, trainer, checkpoints.
