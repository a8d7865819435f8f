//! A column of keys or weights, from wherever it comes, as Arrow arrays.
//!
//! Arrow data (pandas, polars, pyarrow, DuckDB) come by the PyCapsule interface and are not copied;
//! nor are NumPy's arrays ([`numpy`]). Other iterables are taken value by value ([`objects`]).
#![allow(unsafe_code, reason = "Arrow's C data interface hands over pointers")]

use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayRef, StructArray, cast::AsArray, make_array};
use arrow_schema::{DataType, Field};
use pyo3::exceptions::PyImportError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyMapping, PyTuple};

use crate::error::Error;
use crate::key_type::{IntType, KeyType};
use crate::numpy::{self, Imported};
use crate::objects;

/// A column in memory.
pub struct Column {
    pub chunks: Vec<ArrayRef>,
    /// The type of its values as keys; `None` if there are none but nulls.
    pub keys: Option<KeyType>,
    /// Whether zeros at the end of values of one length are padding, as in NumPy's `S13`.
    pub padded: bool,
}

impl Column {
    /// Imports any column.
    pub fn import(values: &Bound<'_, PyAny>) -> Result<Self, Error> {
        let py = values.py();
        if objects::is_key(values)? && values.cast::<PyTuple>().is_err() {
            let name = values.get_type().name()?;
            return Err(Error::Type(format!("a single {name} is no column: count one key with add()")));
        }
        if values.cast::<PyMapping>().is_ok() && !values.hasattr(intern!(py, "__arrow_c_stream__"))? {
            let name = values.get_type().name()?;
            return Err(Error::Type(format!("a {name} is no column: pass its keys, with its values as weights")));
        }
        // pandas gives objects of mixed types to Arrow, which refuses addresses and tuples.
        let dtype = values.getattr(intern!(py, "dtype")).and_then(|dtype| dtype.str());
        if dtype.is_ok_and(|dtype| dtype == "object") {
            return Self::of_objects(values);
        }
        if values.hasattr(intern!(py, "__arrow_c_stream__"))? {
            match values.call_method0(intern!(py, "__arrow_c_stream__")) {
                Ok(stream) => return Self::of_stream(&stream),
                // pandas needs pyarrow for this, but not for the next best way.
                Err(error) if error.is_instance_of::<PyImportError>(py) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if values.hasattr(intern!(py, "__arrow_c_array__"))? {
            return Self::of_array(&values.call_method0(intern!(py, "__arrow_c_array__"))?);
        }
        let to_numpy = intern!(py, "to_numpy");
        let values = if values.hasattr(to_numpy)? { &values.call_method0(to_numpy)? } else { values };
        if values.hasattr(intern!(py, "__array_interface__"))? {
            return match numpy::import(values)? {
                Imported::Array(array, padded) => Self::new(vec![array], padded),
                Imported::Objects => Self::of_objects(&values.call_method0(intern!(py, "tolist"))?),
            };
        }
        Self::of_objects(values)
    }

    /// Takes one key as a column of one row.
    pub fn of_key(key: &Bound<'_, PyAny>) -> Result<Self, Error> {
        let (array, keys) = objects::import_one(key)?;
        Ok(Self { chunks: vec![array], keys, padded: false })
    }

    fn of_objects(values: &Bound<'_, PyAny>) -> Result<Self, Error> {
        let (array, keys) = objects::import(values)?;
        Ok(Self { chunks: vec![array], keys, padded: false })
    }

    fn of_stream(capsule: &Bound<'_, PyAny>) -> Result<Self, Error> {
        let capsule = capsule.cast::<PyCapsule>().map_err(PyErr::from)?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name holds such a stream, by the Arrow PyCapsule interface. It
        // is moved out of the capsule, which then has a released one.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        Self::new(read(capsule.py(), stream)?, false)
    }

    fn of_array(capsules: &Bound<'_, PyAny>) -> Result<Self, Error> {
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = capsules.extract()?;
        let pointer = |capsule: &Bound<'_, PyAny>, name| -> PyResult<_> {
            capsule.cast::<PyCapsule>()?.pointer_checked(Some(name))
        };
        let schema = pointer(&schema, c"arrow_schema")?.cast::<FFI_ArrowSchema>();
        let array = pointer(&array, c"arrow_array")?.cast::<FFI_ArrowArray>();
        // SAFETY: capsules of these names hold such a schema and such an array, by the Arrow
        // PyCapsule interface, and the array is as the schema says. The array is moved out of its
        // capsule, which then has a released one.
        let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) }?;
        Self::new(vec![make_array(data)], false)
    }

    fn new(chunks: Vec<ArrayRef>, padded: bool) -> Result<Self, Error> {
        let chunks: Vec<ArrayRef> = chunks.into_iter().map(without_index).collect();
        let keys = match chunks.first() {
            Some(chunk) => natural(chunk.data_type(), padded)?,
            None => None,
        };
        Ok(Self { chunks, keys, padded })
    }

    pub fn rows(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Checks that there are as many weights as rows.
    pub fn check_weights(&self, weights: Option<&[u64]>) -> Result<(), Error> {
        match weights {
            Some(weights) if weights.len() != self.rows() => {
                Err(Error::Value(format!("{} weights for {} keys", weights.len(), self.rows())))
            }
            _ => Ok(()),
        }
    }

    /// Imports weights: whole numbers from 0 on.
    pub fn import_weights(values: &Bound<'_, PyAny>) -> Result<Vec<u64>, Error> {
        let column = Self::import(values)?;
        let mut weights = Vec::with_capacity(column.rows());
        for chunk in column.chunks.iter().filter(|chunk| !chunk.is_empty()) {
            let Some(KeyType::Int(_)) = natural(chunk.data_type(), false).ok().flatten() else {
                return Err(Error::Type(format!("weights are whole numbers, not {}", chunk.data_type())));
            };
            if let Some(row) = chunk.logical_nulls().and_then(|nulls| (0..nulls.len()).find(|&at| nulls.is_null(at))) {
                return Err(Error::Value(format!("the weight of row {} is null", weights.len() + row)));
            }
            let number = crate::rows::numbers(chunk)?;
            for at in 0..chunk.len() {
                let weight = u64::try_from(number(at)).ok().filter(|&weight| weight <= ucl_streams::MAX_WEIGHT);
                let wrong = || format!("row {}: a weight is from 0 to 2^63 - 1, not {}", weights.len(), number(at));
                let weight = weight.ok_or_else(|| Error::Value(wrong()))?;
                weights.push(weight);
            }
        }
        Ok(weights)
    }
}

/// Reads a stream to its end. Who makes it may compute it meanwhile, for long, and in threads that
/// need the interpreter lock.
fn read(py: Python<'_>, stream: FFI_ArrowArrayStream) -> Result<Vec<ArrayRef>, Error> {
    let mut reader = py.detach(|| ArrayStreamReader::try_new(stream))?;
    let mut chunks = vec![];
    let ended = loop {
        match py.detach(|| reader.next()) {
            Some(Ok(chunk)) => chunks.push(chunk),
            Some(Err(error)) => break Err(error.into()),
            None => break Ok(()),
        }
        if let Err(raised) = py.check_signals() {
            break Err(raised.into());
        }
    };
    // Its end may wait for such threads, too.
    py.detach(|| drop(reader));
    ended.map(|()| chunks)
}

/// The table without the columns that pandas makes of its index.
fn without_index(array: ArrayRef) -> ArrayRef {
    let Some(table) = array.as_struct_opt() else { return array };
    let is_index = |field: &Field| field.name().starts_with("__index_level_") && field.name().ends_with("__");
    if !table.fields().iter().any(|field| is_index(field)) {
        return array;
    }
    let (fields, columns, nulls) = table.clone().into_parts();
    let kept = fields.iter().zip(columns).filter(|(field, _)| !is_index(field));
    let (fields, columns): (Vec<_>, Vec<_>) = kept.map(|(field, column)| (field.clone(), column)).unzip();
    match StructArray::try_new_with_length(fields.into(), columns, nulls, array.len()) {
        Ok(table) => Arc::new(table),
        Err(_) => array,
    }
}

/// The type that values of an Arrow type are counted as, unless told; `None` if there are none.
pub fn natural(data: &DataType, padded: bool) -> Result<Option<KeyType>, Error> {
    let int = |signed, bytes| Ok(Some(KeyType::Int(IntType { signed, bytes }.roomy())));
    match data {
        DataType::Null => Ok(None),
        DataType::Int8 | DataType::Int16 | DataType::Int32 => int(true, 4),
        DataType::Int64 => int(true, 8),
        DataType::Boolean | DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => int(false, 4),
        DataType::UInt64 => int(false, 8),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Ok(Some(KeyType::Str)),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(Some(KeyType::Bytes)),
        DataType::FixedSizeBinary(_) if padded => Ok(Some(KeyType::Bytes)),
        DataType::FixedSizeBinary(bytes @ 1..) => Ok(Some(KeyType::Fixed(*bytes as usize))),
        DataType::Dictionary(_, values) => natural(values, false),
        DataType::Struct(fields) if !fields.is_empty() => {
            let parts = fields.iter().map(|field| natural(field.data_type(), false));
            Ok(parts.collect::<Result<Option<Vec<_>>, _>>()?.map(KeyType::Tuple))
        }
        other => Err(Error::Type(format!(
            "columns of {other} are not counted: convert it to whole numbers or text, which are equal exactly when the \
             keys are"
        ))),
    }
}
