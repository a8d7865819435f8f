//! Gradients against finite differences of a second, naive implementation, and networks that have
//! collapsed.

mod collapse;
mod gradient;
mod reference;
