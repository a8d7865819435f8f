//! UCL-sketch for Python: the native half of the package `ucl_sketch`.
//!
//! Thin by intent: it turns Python values into keys and back, and calls the facade. A column, from
//! wherever it comes, becomes Arrow arrays without a copy ([`column`]); one encoder turns those
//! into keys (`rows`); `sketch` hands them to [`ucl_sketch::UclSketch`] with the interpreter
//! lock released. Answers go back as Arrow record batches (`table`). `agent` and `collector` are
//! the same for two machines, where keys travel as text (`text_key`).

mod agent;
mod answers;
mod collector;
mod column;
mod error;
mod functions;
mod interrupt;
mod key_type;
mod numpy;
mod objects;
mod options;
mod rows;
mod sketch;
mod table;
mod text_key;

/// The native module. People import `ucl_sketch`, which has everything that is here.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::agent::Agent;
    #[pymodule_export]
    use super::collector::Collector;
    #[pymodule_export]
    use super::error::UclError;
    #[pymodule_export]
    use super::functions::{count, evaluate, plan};
    #[pymodule_export]
    use super::sketch::{Sketch, restore};
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::interrupt::remember_process();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
