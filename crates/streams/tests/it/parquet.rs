//! Parquet files, made here: every compression, several row groups, nulls, damage.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use ucl_streams::{OnError, ReadError, ReadSummary, Source, parquet_columns, read};

use crate::support::{Items, options};

const SCHEMA: &str = "message t { optional binary user (UTF8); required int64 n; required double price; \
                      optional group nested { required int64 x; } required binary raw; }";

/// One row: a user or none, a number, and some bytes.
type Line = (Option<String>, i64, Vec<u8>);

/// Writes row groups to a file.
fn write(path: &Path, groups: &[Vec<Line>], compression: Compression) {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, properties).unwrap();
    for rows in groups {
        let mut group = writer.next_row_group().unwrap();
        let users: Vec<ByteArray> = rows.iter().filter_map(|row| row.0.as_deref()).map(ByteArray::from).collect();
        let there: Vec<i16> = rows.iter().map(|row| i16::from(row.0.is_some())).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&users, Some(&there), None).unwrap();
        column.close().unwrap();
        let numbers: Vec<i64> = rows.iter().map(|row| row.1).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap();
        column.close().unwrap();
        let prices: Vec<f64> = rows.iter().map(|row| row.1 as f64 / 4.0).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&prices, None, None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[], Some(&vec![0; rows.len()]), None).unwrap();
        column.close().unwrap();
        let raw: Vec<ByteArray> = rows.iter().map(|row| row.2.clone().into()).collect();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&raw, None, None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn collect(path: &Path, format: &str, weight: Option<&str>) -> (Items, Result<ReadSummary, ReadError>) {
    let mut items = Items::new();
    let source = Source::Path(path.to_owned());
    let result = read(&[source], &options(format, weight, OnError::Stop), &mut |batch| {
        items.extend(batch.items().map(|(key, weight)| (key.to_vec(), weight)));
        ControlFlow::Continue(())
    });
    (items, result)
}

fn line() -> impl Strategy<Value = Line> {
    (prop::option::of("[a,é]{0,3}"), 0i64..9, prop::collection::vec(any::<u8>(), 0..3))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn rows_come_as_they_were_written(groups in prop::collection::vec(prop::collection::vec(line(), 0..20), 0..4)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::ZSTD(ZstdLevel::default()),
            Compression::GZIP(Default::default()),
            Compression::LZ4_RAW,
        ] {
            write(&path, &groups, compression);
            let rows = || groups.iter().flatten();
            let (items, result) = collect(&path, "parquet:user", None);
            let users: Items = rows().filter_map(|row| Some((row.0.clone()?.into_bytes(), 1))).collect();
            prop_assert_eq!(items, users);
            let nulls = rows().filter(|row| row.0.is_none()).count();
            prop_assert_eq!(result.unwrap().no_key, nulls as u64);
            let (items, _) = collect(&path, "parquet:raw", Some("n"));
            let raw: Items = rows().filter(|row| row.1 > 0).map(|row| (row.2.clone(), row.1 as u64)).collect();
            prop_assert_eq!(items, raw);
            let (items, _) = collect(&path, "parquet:n,1", None);
            let quoted = |text: &str| if text.contains(',') { format!("\"{text}\"") } else { text.to_owned() };
            let pairs: Items = rows()
                .filter_map(|row| Some((format!("{},{}", row.1, quoted(row.0.as_deref()?)).into_bytes(), 1)))
                .collect();
            prop_assert_eq!(items, pairs);
        }
    }

    /// A file that is cut off or changed gives a message, and what was read before.
    #[test]
    fn damage_is_an_error(at in 0usize..4000, byte in any::<u8>(), cut in prop::option::of(0usize..4000)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let row = |i: i64| (Some(format!("user {i}")), i, vec![7; 20]);
        write(&path, &[(0..40).map(row).collect(), (40..80).map(row).collect()], Compression::SNAPPY);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= byte;
        bytes.truncate(cut.unwrap_or(bytes.len()));
        std::fs::write(&path, bytes).unwrap();
        let (items, result) = collect(&path, "parquet:user", Some("n"));
        prop_assert!(items.len() <= 80);
        if let Err(error) = result {
            prop_assert!(error.to_string().contains("t.parquet"), "{}", error);
        }
        prop_assert!(parquet_columns(&path).map_or(true, |columns| columns.len() < 100));
    }
}

#[test]
fn columns_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, &[vec![(Some("a".into()), 1, vec![])]], Compression::SNAPPY);
    assert_eq!(parquet_columns(&path).unwrap(), ["user", "n", "price", "raw"], "without the nested one");
    let (_, result) = collect(&path, "parquet:nested", None);
    let message = result.unwrap_err().to_string();
    assert!(message.ends_with("has no column `nested`; its columns are: user, n, price, raw"), "{message}");
    let (_, result) = collect(&path, "parquet:user", Some("price"));
    let message = result.unwrap_err().to_string();
    assert!(message.ends_with("row 1: weight `0.25` is not a whole number"), "{message}");
    std::fs::write(&path, "text\n").unwrap();
    let (_, result) = collect(&path, "parquet:user", None);
    assert!(result.unwrap_err().to_string().contains("the Parquet file is damaged"));
}
