//! Gradients against finite differences of a second, naive implementation.

mod gradient;
mod reference;
