//! Python objects, one by one, as Arrow arrays.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int64Array, LargeBinaryArray, LargeStringArray, NullArray, StructArray, UInt64Array, make_array,
};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{Field, Fields};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::error::Error;
use crate::key_type::{IntType, KeyType};

/// So many objects are taken between two looks at signals.
const BETWEEN_SIGNALS: usize = 1 << 16;

/// Takes all values of an iterable. The type is `None` if all of them are null.
pub fn import(values: &Bound<'_, PyAny>) -> Result<(ArrayRef, Option<KeyType>), Error> {
    let mut builder = Builder::default();
    for (row, value) in values.try_iter()?.enumerate() {
        builder.push(&value?, row)?;
        if row % BETWEEN_SIGNALS == BETWEEN_SIGNALS - 1 {
            values.py().check_signals()?;
        }
    }
    builder.finish()
}

/// Takes one value.
pub fn import_one(value: &Bound<'_, PyAny>) -> Result<(ArrayRef, Option<KeyType>), Error> {
    let mut builder = Builder::default();
    builder.push(value, 0)?;
    builder.finish()
}

/// Returns true if this is one key, and not a column of keys.
pub fn is_key(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    kind_of(value).map(|kind| kind.is_some())
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Int,
    Str,
    Bytes,
    Ip,
    Tuple,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Null => "None",
            Self::Int => "int",
            Self::Str => "str",
            Self::Bytes => "bytes",
            Self::Ip => "an address",
            Self::Tuple => "tuple",
        }
    }
}

fn kind_of(value: &Bound<'_, PyAny>) -> PyResult<Option<Kind>> {
    Ok(if value.is_instance_of::<PyString>() {
        Some(Kind::Str)
    } else if value.is_instance_of::<PyInt>() {
        Some(Kind::Int)
    } else if value.is_none() {
        Some(Kind::Null)
    } else if value.is_instance_of::<PyBytes>() {
        Some(Kind::Bytes)
    } else if value.is_instance_of::<PyTuple>() {
        Some(Kind::Tuple)
    } else if let Ok(float) = value.cast::<PyFloat>() {
        // How pandas writes what is missing.
        float.value().is_nan().then_some(Kind::Null)
    } else if is_address(value)? {
        Some(Kind::Ip)
    } else if value.get_type().name()? == "NAType" {
        Some(Kind::Null)
    } else if value.hasattr("__index__")? && !value.hasattr("__len__")? {
        Some(Kind::Int)
    } else {
        None
    })
}

fn is_address(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    static V4: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static V6: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = value.py();
    Ok(value.is_instance(V4.import(py, "ipaddress", "IPv4Address")?)?
        || value.is_instance(V6.import(py, "ipaddress", "IPv6Address")?)?)
}

/// Values so far.
#[derive(Default)]
struct Builder {
    store: Store,
    nulls: Option<NullBufferBuilder>,
    len: usize,
}

#[derive(Default)]
enum Store {
    /// Nothing but nulls yet.
    #[default]
    Unknown,
    Ints(Vec<i128>),
    Bytes {
        kind: Kind,
        bytes: Vec<u8>,
        ends: Vec<i64>,
        /// Lengths of addresses that occurred: 4, 16.
        v4: bool,
        v6: bool,
    },
    Tuple(Vec<Builder>),
}

impl Builder {
    fn push(&mut self, value: &Bound<'_, PyAny>, row: usize) -> Result<(), Error> {
        let Some(kind) = kind_of(value)? else {
            let name = value.get_type().name()?;
            return Err(Error::Type(format!(
                "row {row} is a {name}: keys are int, str, bytes, tuple, or addresses of ipaddress"
            )));
        };
        if kind == Kind::Null {
            self.push_null();
            return Ok(());
        }
        if let Store::Unknown = self.store {
            self.begin(kind, value)?;
        }
        match &mut self.store {
            Store::Ints(numbers) if kind == Kind::Int => numbers.push(number(value, row)?),
            Store::Bytes { kind: ours, bytes, ends, v4, v6 } if kind == *ours => {
                match kind {
                    Kind::Str => {
                        bytes.extend_from_slice(value.cast::<PyString>().map_err(PyErr::from)?.to_str()?.as_bytes())
                    }
                    Kind::Bytes => bytes.extend_from_slice(value.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes()),
                    _ => {
                        let packed = value.getattr("packed")?;
                        let packed = packed.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
                        *(if packed.len() == 4 { v4 } else { v6 }) = true;
                        bytes.extend_from_slice(packed);
                    }
                }
                ends.push(bytes.len() as i64);
            }
            Store::Tuple(parts) if kind == Kind::Tuple => {
                let values = value.cast::<PyTuple>().map_err(PyErr::from)?;
                if values.len() != parts.len() {
                    let (got, want) = (values.len(), parts.len());
                    return Err(Error::Type(format!(
                        "row {row} is a tuple of {got} values, but the rows before have {want}"
                    )));
                }
                for (part, value) in parts.iter_mut().zip(values.iter()) {
                    part.push(&value, row)?;
                }
            }
            other => {
                let (got, want) = (kind.name(), other.name());
                return Err(Error::Type(format!(
                    "row {row} is {got}, but the rows before are {want}: keys are of one type"
                )));
            }
        }
        self.len += 1;
        if let Some(nulls) = &mut self.nulls {
            nulls.append_non_null();
        }
        Ok(())
    }

    fn push_null(&mut self) {
        let len = self.len;
        let nulls = self.nulls.get_or_insert_with(|| {
            let mut nulls = NullBufferBuilder::new(len + 1);
            nulls.append_n_non_nulls(len);
            nulls
        });
        nulls.append_null();
        self.store.push_nothing();
        self.len += 1;
    }

    /// The first value that is not null decides.
    fn begin(&mut self, kind: Kind, value: &Bound<'_, PyAny>) -> Result<(), Error> {
        self.store = match kind {
            Kind::Int => Store::Ints(vec![]),
            Kind::Tuple => {
                let parts = value.len()?;
                if parts == 0 {
                    return Err(Error::Type("an empty tuple is no key".into()));
                }
                Store::Tuple((0..parts).map(|_| Self::default()).collect())
            }
            _ => Store::Bytes { kind, bytes: vec![], ends: vec![0], v4: false, v6: false },
        };
        (0..self.len).for_each(|_| self.store.push_nothing());
        Ok(())
    }

    fn finish(self) -> Result<(ArrayRef, Option<KeyType>), Error> {
        let nulls = self.nulls.and_then(|mut nulls| nulls.finish());
        Ok(match self.store {
            Store::Unknown => (Arc::new(NullArray::new(self.len)), None),
            Store::Ints(numbers) if numbers.iter().all(|&number| IntType::I64.holds(number)) => {
                let numbers: Vec<i64> = numbers.into_iter().map(|number| number as i64).collect();
                (Arc::new(Int64Array::new(numbers.into(), nulls)), Some(KeyType::Int(IntType::I64)))
            }
            Store::Ints(numbers) => {
                if let Some(negative) = numbers.iter().find(|&&number| number < 0) {
                    let why = format!("{negative} and numbers beyond 2^63 - 1 do not fit one 64-bit type");
                    return Err(Error::Value(why));
                }
                let numbers: Vec<u64> = numbers.into_iter().map(|number| number as u64).collect();
                (Arc::new(UInt64Array::new(numbers.into(), nulls)), Some(KeyType::Int(IntType::U64)))
            }
            Store::Bytes { kind, bytes, ends, v4, v6 } => {
                let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
                let array: ArrayRef = match kind {
                    Kind::Str => Arc::new(LargeStringArray::try_new(ends, bytes.into(), nulls)?),
                    _ => Arc::new(LargeBinaryArray::try_new(ends, bytes.into(), nulls)?),
                };
                let keys = match (kind, v4, v6) {
                    (Kind::Str, ..) => KeyType::Str,
                    (Kind::Bytes, ..) => KeyType::Bytes,
                    (_, true, true) => KeyType::Ip,
                    (_, true, false) => KeyType::Ipv4,
                    _ => KeyType::Ipv6,
                };
                (array, Some(keys))
            }
            Store::Tuple(parts) => {
                let parts = parts.into_iter().map(Self::finish).collect::<Result<Vec<_>, _>>()?;
                let (arrays, types): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
                let field =
                    |(at, array): (usize, &ArrayRef)| Field::new(at.to_string(), array.data_type().clone(), true);
                let fields: Fields = arrays.iter().enumerate().map(field).collect();
                let array = StructArray::try_new(fields, arrays, nulls)?;
                // A part that is always null makes every row null.
                let keys = types.into_iter().collect::<Option<Vec<_>>>().map(KeyType::Tuple);
                match keys {
                    Some(_) => (Arc::new(array), keys),
                    None => (make_array(arrow_array::Array::to_data(&NullArray::new(self.len))), None),
                }
            }
        })
    }
}

impl Store {
    fn push_nothing(&mut self) {
        match self {
            Self::Unknown => {}
            Self::Ints(numbers) => numbers.push(0),
            Self::Bytes { bytes, ends, .. } => ends.push(bytes.len() as i64),
            Self::Tuple(parts) => parts.iter_mut().for_each(Builder::push_null),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Unknown => Kind::Null.name(),
            Self::Ints(_) => Kind::Int.name(),
            Self::Bytes { kind, .. } => kind.name(),
            Self::Tuple(_) => Kind::Tuple.name(),
        }
    }
}

fn number(value: &Bound<'_, PyAny>, row: usize) -> Result<i128, Error> {
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    match value.extract::<u64>() {
        Ok(number) => Ok(number.into()),
        Err(_) => Err(Error::Value(format!("row {row}: {value} does not fit 64 bits: count it as str"))),
    }
}
