//! The linear system `y = A x` of a sketch: columns, products and one solver a file.

mod columns;

pub use columns::{ColumnId, Columns};
