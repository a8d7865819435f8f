//! Answers of a view as record batches.

use std::sync::Arc;

use arrow_array::builder::{FixedSizeBinaryBuilder, LargeBinaryBuilder, LargeStringBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, BooleanArray, Float64Array, PrimitiveArray, RecordBatch, StructArray, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{Field, Fields};
use ucl_sketch::{Estimate, KeyId, QueryView};
use ucl_streams::Format;

use crate::error::Error;
use crate::key_type::{IntType, KeyType};
use crate::rows::address;

/// One row of an answer.
pub struct Answer {
    /// `None` for nulls, and for a key whose name never arrived.
    pub key: Option<Vec<u8>>,
    pub count: u64,
    /// Range in which the count lies for certain.
    pub range: (u64, u64),
    /// Range in which the count lies with high probability.
    pub likely: (u64, u64),
}

impl Answer {
    fn new(key: Option<Vec<u8>>, certain: Estimate, likely: Estimate) -> Self {
        let Estimate { estimate: count, lower, upper, .. } = certain;
        Self { key, count, range: (lower, upper), likely: (likely.lower, likely.upper) }
    }

    /// The answer for a key.
    pub fn of(view: &QueryView, key: &[u8]) -> Self {
        Self::new(Some(key.to_vec()), view.estimate(key), view.likely(key))
    }

    /// A count that is certain: of nulls.
    pub fn exactly(count: u64) -> Self {
        Self { key: None, count, range: (count, count), likely: (count, count) }
    }

    /// The answer for a known key.
    fn known(view: &QueryView, (id, certain): (KeyId, Estimate)) -> Self {
        let registry = view.registry();
        let key = registry.is_named(id).then(|| registry.key(id).to_vec());
        Self::new(key, certain, view.likely_of(id))
    }
}

/// The keys with the largest counts, nulls among them.
pub fn top(view: Option<&QueryView>, nulls: u64, n: usize) -> Vec<Answer> {
    let mut answers: Vec<Answer> = match view {
        Some(view) => view.top(n).into_iter().map(|known| Answer::known(view, known)).collect(),
        None => vec![],
    };
    if nulls > 0 {
        let at = answers.partition_point(|answer| answer.count >= nulls);
        answers.insert(at, Answer::exactly(nulls));
        answers.truncate(n);
    }
    answers
}

/// The names of the columns of [`counts`].
pub const COUNTS: [&str; 7] = ["key", "count", "lower", "upper", "likely_lower", "likely_upper", "exact"];

/// Answers as a record batch.
pub fn counts(keys: Option<&KeyType>, answers: &[Answer]) -> Result<RecordBatch, Error> {
    let number = |of: fn(&Answer) -> u64| Arc::new(answers.iter().map(of).collect::<UInt64Array>()) as ArrayRef;
    let names: Vec<Option<&[u8]>> = answers.iter().map(|answer| answer.key.as_deref()).collect();
    let exact: BooleanArray = answers.iter().map(|answer| Some(answer.range.0 == answer.range.1)).collect();
    batch(COUNTS.into_iter().zip([
        key_array(keys, &names)?,
        number(|answer| answer.count),
        number(|answer| answer.range.0),
        number(|answer| answer.range.1),
        number(|answer| answer.likely.0),
        number(|answer| answer.likely.1),
        Arc::new(exact),
    ]))
}

/// A record batch of named columns.
pub fn batch<'n>(columns: impl IntoIterator<Item = (&'n str, ArrayRef)>) -> Result<RecordBatch, Error> {
    Ok(RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))?)
}

/// A column of numbers.
pub fn floats(values: impl IntoIterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<Float64Array>())
}

/// Keys as an Arrow array. Addresses, for which Arrow has no type, are text.
pub fn key_array(keys: Option<&KeyType>, values: &[Option<&[u8]>]) -> Result<ArrayRef, Error> {
    fn numbers<T: ArrowPrimitiveType>(int: IntType, values: &[Option<&[u8]>]) -> ArrayRef
    where
        T::Native: TryFrom<i128>,
    {
        let number = |value: &Option<&[u8]>| value.and_then(|bytes| int.decode(bytes).try_into().ok());
        Arc::new(values.iter().map(number).collect::<PrimitiveArray<T>>())
    }
    let text = |show: &dyn Fn(&[u8]) -> String| -> ArrayRef {
        let mut builder = LargeStringBuilder::new();
        values.iter().for_each(|value| builder.append_option(value.map(show)));
        Arc::new(builder.finish())
    };
    Ok(match keys {
        None => Arc::new(arrow_array::NullArray::new(values.len())),
        Some(KeyType::Int(int)) => match (int.signed, int.bytes) {
            (true, 1) => numbers::<Int8Type>(*int, values),
            (true, 2) => numbers::<Int16Type>(*int, values),
            (true, 4) => numbers::<Int32Type>(*int, values),
            (true, _) => numbers::<Int64Type>(*int, values),
            (false, 1) => numbers::<UInt8Type>(*int, values),
            (false, 2) => numbers::<UInt16Type>(*int, values),
            (false, 4) => numbers::<UInt32Type>(*int, values),
            (false, _) => numbers::<UInt64Type>(*int, values),
        },
        // A file may hold lines that are no text: they are shown as the command line shows them.
        Some(KeyType::Str) => text(&|bytes| match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => Format::Lines.key_display(bytes),
        }),
        Some(KeyType::Records(format)) => text(&|bytes| format.key_display(bytes)),
        Some(KeyType::Ipv4 | KeyType::Ipv6 | KeyType::Ip) => text(&|bytes| {
            address(bytes).map_or_else(|| Format::Lines.key_display(bytes), |address| address.to_string())
        }),
        Some(KeyType::Bytes) => {
            let mut builder = LargeBinaryBuilder::new();
            values.iter().for_each(|value| builder.append_option(*value));
            Arc::new(builder.finish())
        }
        Some(KeyType::Fixed(size)) => {
            let mut builder = FixedSizeBinaryBuilder::with_capacity(values.len(), *size as i32);
            for value in values {
                match value.filter(|value| value.len() == *size) {
                    Some(value) => builder.append_value(value)?,
                    None => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        Some(KeyType::Tuple(parts)) => {
            let split: Vec<Option<Vec<&[u8]>>> = values.iter().map(|value| split(parts, (*value)?)).collect();
            let column = |(at, part): (usize, &KeyType)| {
                let values: Vec<Option<&[u8]>> = split.iter().map(|key| key.as_ref().map(|key| key[at])).collect();
                key_array(Some(part), &values)
            };
            let columns = parts.iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
            let field = |(at, array): (usize, &ArrayRef)| Field::new(at.to_string(), array.data_type().clone(), true);
            let fields: Fields = columns.iter().enumerate().map(field).collect();
            let nulls: NullBuffer = split.iter().map(Option::is_some).collect::<Vec<bool>>().into();
            Arc::new(StructArray::try_new(fields, columns, Some(nulls))?)
        }
    })
}

/// The parts of an encoded tuple: the reverse of what [`crate::rows`] does.
pub fn split<'a>(parts: &[KeyType], mut bytes: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let mut out = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        let length = match part.size() {
            Some(size) => size,
            None if at + 1 == parts.len() => bytes.len(),
            None => {
                let (length, rest) = bytes.split_first_chunk::<4>()?;
                bytes = rest;
                u32::from_le_bytes(*length) as usize
            }
        };
        let (part, rest) = bytes.split_at_checked(length)?;
        out.push(part);
        bytes = rest;
    }
    bytes.is_empty().then_some(out)
}
