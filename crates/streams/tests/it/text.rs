//! The formats of text, with the odd data that real files hold.

use std::num::NonZeroU64;

use crate::support::{bad, collect, keys, options, weighted};
use proptest::prelude::*;
use ucl_streams::{
    BadReason, Format, MAX_COLUMNS, MAX_KEY_BYTES, MAX_RECORD_BYTES, MAX_WEIGHT, OnError, ReadErrorKind, ReadOptions,
};

#[test]
fn lines() {
    assert_eq!(keys("lines", b""), [""; 0]);
    assert_eq!(keys("lines", b"\n\r\n\n"), [""; 3], "empty lines are items, as `wc -l` counts them");
    assert_eq!(keys("lines", b"a\n\nb\n"), ["a", "", "b"]);
    assert_eq!(keys("lines", b"a\nb b\n"), ["a", "b b"]);
    assert_eq!(keys("lines", b"a\r\nb\r\nno newline at the end"), ["a", "b", "no newline at the end"]);
    assert_eq!(keys("lines", b"a\rb\r\r\n \n"), ["a\rb\r", " "], "only the \\r of the line end goes");
    assert_eq!(keys("lines", b"last\r"), ["last"]);
    let (items, result) = collect(&b"\xff\xfe\n\0\0\n"[..], &options("lines", None, OnError::Stop));
    assert_eq!(items, [(vec![0xff, 0xfe], 1), (vec![0, 0], 1)], "keys are bytes, not text");
    assert_eq!(result.unwrap().skipped, 0);
}

#[test]
fn long_lines() {
    let longest = "k".repeat(MAX_KEY_BYTES);
    assert_eq!(keys("lines", format!("a\n{longest}\nb").as_bytes()), ["a", &longest, "b"]);
    let input = format!("a\n{longest}x\nb\n");
    bad("lines", None, input.as_bytes(), 1, "input, line 2: the key has 65536 bytes, the limit is 65535", &["a", "b"]);
    // A line too long to be held is given up, and the next one is found again; also when it is the
    // last.
    let endless = "z".repeat(MAX_RECORD_BYTES + 300_000);
    for (input, all) in [(format!("a\n{endless}\nb\n"), &["a", "b"][..]), (format!("a\n{endless}"), &["a"])] {
        for format in ["lines", "field:1", "fimi"] {
            let all: Vec<&str> = all.to_vec();
            bad(format, None, input.as_bytes(), 1, "input, line 2: the record is longer than 16777216 bytes", &all);
        }
    }
}

#[test]
fn fields() {
    assert_eq!(keys("field:2", b"a b c\n  a\t \tb\r\na b"), ["b", "b", "b"]);
    assert_eq!(keys("field:1", b"\n \t \n  one"), ["one"], "blank lines are no records");
    bad(
        "field:3",
        None,
        b"1 2 3\n1 2\n4 5 6\n",
        1,
        "input, line 2: column 3 is needed, but the record has only 2",
        &["3", "6"],
    );
    assert_eq!(weighted("field:1", "3", b"a x 5\nb x 1\n"), [("a".to_owned(), 5), ("b".to_owned(), 1)]);
    assert_eq!(weighted("field:2", "2", b"x 9223372036854775807\n"), [("9223372036854775807".to_owned(), MAX_WEIGHT)]);
}

#[test]
fn bad_weights() {
    let case = |text: &str, message: &str| {
        let input = format!("a 1\nb {text}\nc 2\n");
        bad("field:1", Some("2"), input.as_bytes(), 1, &format!("input, line 2: {message}"), &["a", "c"]);
    };
    for text in ["-1", "x", "1e3", "+1", "1,5"] {
        case(text, &format!("weight `{text}` is not a number from 0 to 9223372036854775807"));
    }
    case("1.5", "weight `1.5` is not a whole number");
    case("9223372036854775808", "weight `9223372036854775808` is over the limit of 9223372036854775807");
    case(
        "9223372036854775807",
        "with its weight of 9223372036854775807, all weights together are over the limit of 9223372036854775807",
    );
}

#[test]
fn decimal_weights_are_scaled() {
    let scaled = |scale| ReadOptions { scale: NonZeroU64::new(scale), ..options("csv:k", Some("w"), OnError::Stop) };
    let table = b"k,w\na,12.34\nb,5\nc,0.10\n";
    let (items, result) = collect(&table[..], &scaled(100));
    assert_eq!(items, [(b"a".to_vec(), 1234), (b"b".to_vec(), 500), (b"c".to_vec(), 10)]);
    assert_eq!(result.unwrap().weight, 1744);
    let (items, result) = collect(&table[..], &scaled(10));
    let error = result.unwrap_err();
    assert_eq!(
        (items.len(), error.to_string().as_str()),
        (0, "input, line 2: weight `12.34` is not a whole number at scale 10")
    );
    let ReadErrorKind::Bad(record) = error.kind else { panic!("{error}") };
    assert!(matches!(record.reason, BadReason::Fraction { needed: Some(100), .. }));
}

#[test]
fn a_weight_of_zero_counts_for_nothing() {
    for (format, weight, input) in [
        ("field:1", "2", &b"a 0\nb 2\na 0.0\n"[..]),
        ("csv:k", "w", b"k,w\na,0\nb,2\na,00\n"),
        ("jsonl:/k", "/w", b"{\"k\":\"a\",\"w\":0}\n{\"k\":\"b\",\"w\":2}\n{\"k\":\"a\",\"w\":0.00}\n"),
    ] {
        let (items, result) = collect(input, &options(format, Some(weight), OnError::Stop));
        let summary = result.unwrap();
        assert_eq!(items, [(b"b".to_vec(), 2)], "{format}");
        assert_eq!((summary.items, summary.zero_weight, summary.skipped), (1, 2, 0), "{format}");
    }
}

/// What a consumer cannot take is named by its place, like any other bad record.
#[test]
fn promised_sizes_and_weights_are_held() {
    let options = |format: &str, key_bytes, weight_before, on_error| ReadOptions {
        key_bytes,
        weight_before,
        ..options(format, None, on_error)
    };
    let cases = [
        (
            "lines",
            &b"abcd\nabc\nabcd\n"[..],
            Some(4),
            0,
            1,
            1,
            "input, line 2: every key must have 4 bytes, but this one has 3",
        ),
        (
            "records:3",
            b"abcdef",
            Some(4),
            0,
            0,
            2,
            "input, byte offset 0: every key must have 4 bytes, but this one has 3",
        ),
        (
            "records:3",
            b"abcdefghi",
            None,
            MAX_WEIGHT - 2,
            2,
            1,
            "input, byte offset 6: with its weight of 1, all weights together are over the limit of 9223372036854775807",
        ),
    ];
    for (format, input, key_bytes, weight_before, before, skipped, message) in cases {
        let (items, result) = collect(input, &options(format, key_bytes, weight_before, OnError::Stop));
        assert_eq!((items.len(), result.unwrap_err().to_string().as_str()), (before, message));
        let (_, result) = collect(input, &options(format, key_bytes, weight_before, OnError::Skip));
        let summary = result.unwrap();
        assert_eq!((summary.skipped, summary.first_skip.unwrap().to_string().as_str()), (skipped, message));
    }
}

#[test]
fn csv() {
    let table = b"id,name,n\r\n1,\"Doe, Jane\",2\r\n2,\"say \"\"hi\"\"\",3\n\n3,\"two\nlines\",4\n4,,5";
    assert_eq!(keys("csv:name", table), ["Doe, Jane", "say \"hi\"", "two\nlines", ""]);
    assert_eq!(keys("csv:2", table), ["Doe, Jane", "say \"hi\"", "two\nlines", ""]);
    let by_name = [("1", 2), ("2", 3), ("3", 4), ("4", 5)].map(|(key, weight)| (key.to_owned(), weight));
    assert_eq!(weighted("csv:id", "n", table), by_name);
    assert_eq!(weighted("csv:1", "n", table), by_name, "one name is enough for a header row");
    assert_eq!(keys("csv:a", b"\xef\xbb\xbfa,b\n1,2\n"), ["1"], "a byte order mark is no part of the name");
    assert_eq!(keys("csv:a", b""), [""; 0]);
    assert_eq!(keys("csv:a", b"a,b\n"), [""; 0]);
    assert_eq!(keys("tsv:b", b"a\tb\n1\t\"x\ty\"\n2\tz, z\n"), ["x\ty", "z, z"]);
    let (items, _) = collect(&b"a\n\xff\0\n"[..], &options("csv:a", None, OnError::Stop));
    assert_eq!(items, [(vec![0xff, 0], 1)]);
}

/// By number, a header row has to be told from data.
#[test]
fn header_rows() {
    let read = |format: &str, weight: Option<&str>, header, input: &[u8]| {
        let (items, result) = collect(input, &ReadOptions { header, ..options(format, weight, OnError::Stop) });
        let keys: Vec<_> = items.iter().map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect();
        (keys.join(" "), result.map(|summary| summary.assumed_header.map(|header| header.key)))
    };
    let table = b"name,n\na,1\nb,2\n";
    for (weight, header, keys, assumed) in [
        (None, None, "a b", Some("name")),
        (None, Some(true), "a b", None),
        (None, Some(false), "name a b", None),
        (Some("2"), None, "a b", Some("name")),
        (Some("2"), Some(true), "a b", None),
    ] {
        let (got, result) = read("csv:1", weight, header, table);
        assert_eq!((got.as_str(), result.unwrap().as_deref()), (keys, assumed), "{weight:?}, {header:?}");
    }
    // A number where the weight is: nobody calls a column so.
    assert_eq!(
        read("csv:1", Some("2"), None, b"a,1.5\nb,2\n").1.unwrap_err().to_string(),
        "input, line 1: weight `1.5` is not a whole number"
    );
    assert_eq!(read("tsv:1", Some("2"), None, b"a\t1\nb\t2\n").0, "a b");
    assert!(
        read("csv:1", Some("2"), Some(false), table)
            .1
            .unwrap_err()
            .to_string()
            .starts_with("input, line 1: weight `n`")
    );
    let named = read("csv:name", None, Some(false), table).1.unwrap_err().to_string();
    assert_eq!(named, "column `name` is given by name, but a table without a header row has only column numbers");
}

#[test]
fn wide_tables() {
    let wide = |columns: usize| format!("x{}\n", ",".repeat(columns - 1));
    let last = MAX_COLUMNS.to_string();
    for columns in [500_000, MAX_COLUMNS] {
        let input = format!("h\n{}", wide(columns));
        assert_eq!(keys("csv:1", input.as_bytes()), ["x"], "{columns} columns");
    }
    let input = format!("h\nx\n{}y\n", wide(MAX_COLUMNS + 1));
    bad(
        "csv:1",
        None,
        input.as_bytes(),
        1,
        &format!("input, line 3: the row has more than {last} columns"),
        &["x", "y"],
    );
    // Nothing can be found without a header, and the next row is none.
    let input = format!("{}y\n", wide(MAX_COLUMNS + 1));
    for on_error in [OnError::Stop, OnError::Skip] {
        let (items, result) = collect(input.as_bytes(), &options("csv:x", None, on_error));
        assert!(items.is_empty());
        assert_eq!(result.unwrap_err().to_string(), format!("input, line 1: the row has more than {last} columns"));
    }
}

#[test]
fn bad_csv() {
    // Line numbers count lines, not rows, and name the line on which a row starts.
    let table = b"a,b\n\"1\n1\",2\n\n3\n4,5\n";
    bad("csv:b", None, table, 1, "input, line 5: column 2 is needed, but the record has only 1", &["2", "5"]);
    bad(
        "csv:a",
        Some("b"),
        b"a,b\nx,7\ny,seven\nz,8\n",
        1,
        "input, line 3: weight `seven` is not a number from 0 to 9223372036854775807",
        &["x", "z"],
    );
    bad("csv:1", None, b"k,y\nx,y\n\"open,y\nz,y\n", 1, "input, line 3: a quote is opened and never closed", &["x"]);
    let long = format!("k\na\n\"{}\"\nb\n", "z\n".repeat(MAX_RECORD_BYTES));
    bad("csv:1", None, long.as_bytes(), 1, "input, line 3: the record is longer than 16777216 bytes", &["a", "b"]);
    // A column that is not there is no matter of one record.
    for on_error in [OnError::Stop, OnError::Skip] {
        let (_, result) = collect(&b"a,b\n1,2\n"[..], &options("csv:c", None, on_error));
        assert_eq!(result.unwrap_err().to_string(), "input has no column `c`; its columns are: a, b");
    }
}

#[test]
fn json() {
    let input = br#"{"u":{"id":"a\"\u00e9\n"},"n":[1,22]}
 {"x":[{"u":1}], "u" : {"id" : -1.50e3 },"n":[3,4]}

{"u":{"id":1},"u":{"id":"last"},"n":[1,5]}"#;
    assert_eq!(keys("jsonl:/u/id", input), ["a\"é\n", "-1.50e3", "last"]);
    assert_eq!(keys("jsonl:/n/1", input), ["22", "4", "5"]);
    assert_eq!(weighted("jsonl:/n/0", "/n/1", input), [("1".into(), 22), ("3".into(), 4), ("1".into(), 5)]);
    assert_eq!(
        keys("jsonl:", b"\"s\"\r\n12345678901234567890123\n"),
        ["s", "12345678901234567890123"],
        "numbers keep their text"
    );
    assert_eq!(keys("jsonl:/a~1b/~0", br#"{"a/b":{"~":7}}"#), ["7"]);
}

#[test]
fn bad_json() {
    let case = |line: &str, message: &str| {
        let input = format!("{{\"k\":\"a\"}}\n{line}\n{{\"k\":\"b\"}}\n");
        bad("jsonl:/k", None, input.as_bytes(), 1, &format!("input, line 2: {message}"), &["a", "b"]);
    };
    case("{}", "the JSON document has nothing at `/k`");
    case("[1]", "the JSON document has nothing at `/k`");
    case("17", "the JSON document has nothing at `/k`");
    for (value, what) in
        [("{}", "an object"), ("[1]", "an array"), ("null", "null"), ("true", "a boolean"), ("false", "a boolean")]
    {
        case(&format!("{{\"k\":{value}}}"), &format!("the JSON document has {what} at `/k`, not a string or a number"));
    }
    case("{\"k\":\"x\"", "not JSON: EOF while parsing an object at line 1 column 8");
    case("{\"k\":\"x\"} 1", "not JSON: trailing characters at line 1 column 11");
    let (items, result) =
        collect(&b"{\"k\":\"\xff\"}\n{\"k\":\"\\ud800\"}\n{\"k\":1}"[..], &options("jsonl:/k", None, OnError::Skip));
    assert_eq!((items.len(), result.unwrap().skipped), (1, 2), "strings that are not Unicode");
}

#[test]
fn fimi() {
    let (items, _) = collect(&b"39 48\n 7\t007\r\n\nbeer 4294967295"[..], &options("fimi", None, OnError::Stop));
    let keys: Vec<_> = items.into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, [&[39, 0, 0, 0][..], &[48, 0, 0, 0], &[7, 0, 0, 0], b"007", b"beer\0", &[255; 4]]);
    let input = format!("1\n{}\n2", "x".repeat(65_536));
    bad(
        "fimi",
        None,
        input.as_bytes(),
        1,
        "input, line 2: the key has 65536 bytes, the limit is 65535",
        &["\u{1}\0\0\0", "\u{2}\0\0\0"],
    );
}

proptest! {
    #[test]
    fn fimi_reads_what_a_user_may_ask_for(tokens in prop::collection::vec("0|[0-9]{1,12}|429496729[0-9]|[a-c0]{1,5}|-1", 0..50)) {
        let (items, result) = collect(tokens.join(" ").as_bytes(), &options("fimi", None, OnError::Stop));
        result.unwrap();
        let expected: Vec<_> = tokens.iter().map(|token| (Format::Fimi.parse_key(token).unwrap(), 1)).collect();
        prop_assert_eq!(items, expected);
    }
}

#[test]
fn records() {
    assert_eq!(keys("records:2", b"aabbcc"), ["aa", "bb", "cc"]);
    assert_eq!(keys("records:3", b""), [""; 0]);
    bad(
        "records:4",
        None,
        b"aaaabbbbcc",
        2,
        "input: the input ends 2 bytes into the 4-byte record at byte offset 8",
        &["aaaa", "bbbb"],
    );
    let many = vec![7; 13 * 100_000];
    assert_eq!(keys("records:13", &many).len(), 100_000);
}

#[test]
fn batches_of_one_key_size_are_flat() {
    for (format, width) in [("records:13", 13), ("fimi", 4)] {
        let input = if format == "fimi" { "17 ".repeat(10_000).into_bytes() } else { vec![7; 13 * 10_000] };
        let mut seen = 0;
        ucl_streams::read_from(&input[..], "input", &options(format, None, OnError::Stop), &mut |batch| {
            let (bytes, keys) = batch.fixed().expect("one size");
            assert_eq!((bytes, keys.len()), (width, width * batch.len()));
            assert!(batch.weights().is_none());
            seen += batch.len();
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(seen, 10_000);
    }
}

#[test]
fn a_weight_of_another_format_is_refused() {
    let mut options = options("lines", None, OnError::Stop);
    options.weight = Some(ucl_streams::Weight::Bytes);
    let (items, result) = collect(&b"a\n"[..], &options);
    assert!(items.is_empty());
    assert_eq!(
        result.unwrap_err().to_string(),
        "weight `bytes` does not fit format `lines`: this format has no weights"
    );
}
