//! NumPy arrays as Arrow arrays over the same memory.
//!
//! By `__array_interface__`, NumPy's own description of an array: Python's buffer protocol is not
//! part of the stable interface of Python 3.10.
#![allow(unsafe_code, reason = "the array's memory is borrowed from NumPy")]

use std::panic::AssertUnwindSafe;
use std::ptr::NonNull;
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, FixedSizeBinaryArray, PrimitiveArray};
use arrow_buffer::{Buffer, ScalarBuffer};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Error;

/// An imported array.
pub enum Imported {
    /// Numbers, or bytes of one length; whether zeros at the end of the latter are padding.
    Array(ArrayRef, bool),
    /// Python objects or text: to be taken one by one.
    Objects,
}

/// Imports a NumPy array. Copies only what is not contiguous, aligned and in this machine's byte
/// order.
pub fn import(array: &Bound<'_, PyAny>) -> Result<Imported, Error> {
    let py = array.py();
    // Masked values are nulls, which only the array itself knows.
    if array.hasattr(intern!(py, "mask"))? {
        return Ok(Imported::Objects);
    }
    let shape = array.getattr(intern!(py, "shape"))?.cast_into::<PyTuple>().map_err(PyErr::from)?;
    if shape.len() != 1 {
        return Err(Error::Value(format!("a column has one dimension, not {}", shape.len())));
    }
    let rows: usize = shape.get_item(0)?.extract()?;
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let size: usize = dtype.getattr(intern!(py, "itemsize"))?.extract()?;
    match (&*kind, size) {
        ("O" | "U", _) => return Ok(Imported::Objects),
        ("i" | "u" | "b", 1..=8) => {}
        ("S" | "V", 1..) => {}
        ("S" | "V", 0) => return Err(Error::Type("a column of 0 bytes a value has no keys".into())),
        _ => return Err(unsupported(&dtype)),
    }
    if dtype.getattr(intern!(py, "names")).is_ok_and(|names| !names.is_none()) {
        return Err(Error::Type("columns with fields are not counted: pass a table, or one field".into()));
    }
    let flags = array.getattr(intern!(py, "flags"))?;
    let flag = |name| flags.getattr(name).and_then(|flag| flag.extract::<bool>());
    let native: bool = dtype.getattr(intern!(py, "isnative"))?.extract()?;
    let as_is = native && flag("c_contiguous")? && flag("aligned")?;
    let array = if as_is {
        array.clone()
    } else {
        let native = dtype.call_method1(intern!(py, "newbyteorder"), ("=",))?;
        py.import("numpy")?.call_method1("require", (array, native, ("C", "A")))?
    };
    let buffer = memory(&array, rows * size)?;
    Ok(match (&*kind, size) {
        ("i", 1) => numbers::<Int8Type>(buffer, rows),
        ("i", 2) => numbers::<Int16Type>(buffer, rows),
        ("i", 4) => numbers::<Int32Type>(buffer, rows),
        ("i", 8) => numbers::<Int64Type>(buffer, rows),
        ("u" | "b", 1) => numbers::<UInt8Type>(buffer, rows),
        ("u", 2) => numbers::<UInt16Type>(buffer, rows),
        ("u", 4) => numbers::<UInt32Type>(buffer, rows),
        ("u", 8) => numbers::<UInt64Type>(buffer, rows),
        ("S" | "V", size) => {
            let size = i32::try_from(size).map_err(|_| Error::Value("values of 2^31 bytes are no keys".into()))?;
            Imported::Array(Arc::new(FixedSizeBinaryArray::try_new(size, buffer, None)?), kind == "S")
        }
        _ => return Err(unsupported(&dtype)),
    })
}

fn numbers<T: ArrowPrimitiveType>(buffer: Buffer, rows: usize) -> Imported {
    Imported::Array(Arc::new(PrimitiveArray::<T>::new(ScalarBuffer::new(buffer, 0, rows), None)), false)
}

fn unsupported(dtype: &Bound<'_, PyAny>) -> Error {
    Error::Type(format!(
        "columns of {dtype} are not counted: convert it to whole numbers or text, which are equal exactly when the \
         keys are"
    ))
}

/// The memory of an array that is contiguous, aligned and has so many bytes.
fn memory(array: &Bound<'_, PyAny>, bytes: usize) -> Result<Buffer, Error> {
    if bytes == 0 {
        return Ok(Buffer::from_vec(Vec::<u64>::new()));
    }
    let interface = array.getattr(intern!(array.py(), "__array_interface__"))?;
    let interface = interface.cast_into::<PyDict>().map_err(PyErr::from)?;
    let data = interface.get_item("data")?.ok_or_else(|| Error::Type("the array does not show its memory".into()))?;
    let (address, _): (usize, bool) = data.extract()?;
    let start = NonNull::new(address as *mut u8).ok_or_else(|| Error::Value("the array has no memory".into()))?;
    let owner = Arc::new(AssertUnwindSafe(array.clone().unbind()));
    // SAFETY: by its description, the array's memory begins at `start`, and has as many bytes as
    // its rows take, for it is contiguous. The array owns the memory or has a reference to who
    // does, and is kept alive by `owner`. A program that writes to the array in another thread
    // while it is counted gets the counts of whatever was read, as with every library that releases
    // the interpreter lock.
    Ok(unsafe { Buffer::from_custom_allocation(start, bytes, owner) })
}
