//! Keys of several parts, other delimiters, regular expressions and web logs, against naive
//! readers.

use proptest::prelude::*;
use ucl_streams::{MAX_RECORD_BYTES, OnError, ReadOptions};

use crate::support::{bad, collect, keys, options, weighted};

/// Options with a delimiter.
fn delimited(format: &str, delimiter: &str) -> ReadOptions {
    ReadOptions { delimiter: Some(delimiter.parse().unwrap()), ..options(format, None, OnError::Skip) }
}

/// A record of CSV, as the crate on top of ours writes it.
fn record<P: AsRef<[u8]>>(parts: &[P]) -> Vec<u8> {
    let quoted = |part: &P| {
        let text = part.as_ref();
        let special = text.iter().any(|byte| b",\"\r\n".contains(byte));
        let doubled = String::from_utf8_lossy(text).replace('"', "\"\"");
        if special { format!("\"{doubled}\"").into_bytes() } else { text.to_vec() }
    };
    parts.iter().map(quoted).collect::<Vec<_>>().join(&b","[..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn fields(lines in prop::collection::vec("[ab, \t]{0,12}", 0..8), numbers in prop::collection::vec(1usize..4, 1..4)) {
        let list = numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let last = *numbers.iter().max().unwrap();
        let of = |fields: Vec<&str>| {
            let parts: Vec<&str> = numbers.iter().map(|n| fields[n - 1]).collect();
            (if parts.len() == 1 { parts[0].as_bytes().to_vec() } else { record(&parts) }, 1)
        };
        let long_enough = |fields: &Vec<&str>| fields.len() >= last;
        let expected: Vec<_> =
            lines.iter().map(|line| line.split_whitespace().collect()).filter(long_enough).map(of).collect();
        let (items, _) = collect(text.as_bytes(), &options(&format!("field:{list}"), None, OnError::Skip));
        prop_assert_eq!(items, expected);
        // As `cut` splits them; lines of blanks alone are no records.
        let not_blank = lines.iter().filter(|line| !line.trim().is_empty());
        let expected: Vec<_> = not_blank.map(|line| line.split(',').collect()).filter(long_enough).map(of).collect();
        let (items, _) = collect(text.as_bytes(), &delimited(&format!("field:{list}"), ","));
        prop_assert_eq!(items, expected);
    }

    #[test]
    fn tables(
        rows in prop::collection::vec(prop::collection::vec("[ab,;\" \n]{0,4}", 3), 0..6),
        numbers in prop::collection::vec(1usize..4, 1..4),
        semicolon in any::<bool>(),
    ) {
        let delimiter = if semicolon { ";" } else { "," };
        let quoted = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
        let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(delimiter) + "\n";
        let text: String = std::iter::once("x;y;z\n".replace(';', delimiter)).chain(rows.iter().map(line)).collect();
        let names = numbers.iter().map(|n| ["x", "y", "z"][n - 1]).collect::<Vec<_>>().join(",");
        let of = |row: &Vec<String>| {
            let parts: Vec<&String> = numbers.iter().map(|n| &row[n - 1]).collect();
            (if parts.len() == 1 { parts[0].as_bytes().to_vec() } else { record(&parts) }, 1)
        };
        let expected: Vec<_> = rows.iter().map(of).collect();
        for format in [format!("csv:{names}"), format!("tsv:{names}")] {
            let (items, result) = collect(text.as_bytes(), &delimited(&format, delimiter));
            prop_assert_eq!(result.unwrap().skipped, 0);
            prop_assert_eq!(&items, &expected);
        }
    }

    #[test]
    fn documents(values in prop::collection::vec(("[a,\"é]{0,4}", 0u32..99), 0..6)) {
        let row = |(name, n): &(String, u32)| format!("{}\n", serde_json::json!({"user": {"name": name, "n": n}}));
        let text: String = values.iter().map(row).collect();
        let expected: Vec<_> = values.iter().map(|(name, n)| (record(&[n.to_string(), name.clone()]), 1)).collect();
        let (items, result) = collect(text.as_bytes(), &options("jsonl:user.n,/user/name", None, OnError::Stop));
        result.unwrap();
        prop_assert_eq!(items, expected);
    }

    #[test]
    fn expressions(lines in prop::collection::vec("[ab= 1-3]{0,10}", 0..10)) {
        let text: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        // The first `=` with a letter before and a digit behind it.
        let naive = |line: &String| {
            let bytes = line.as_bytes();
            let at = (1..bytes.len().saturating_sub(1)).find(|&at| {
                bytes[at] == b'=' && bytes[at - 1].is_ascii_lowercase() && bytes[at + 1].is_ascii_digit()
            })?;
            Some((vec![bytes[at - 1]], u64::from(bytes[at + 1] - b'0')))
        };
        let found: Vec<_> = lines.iter().filter_map(naive).collect();
        let (items, result) = collect(text.as_bytes(), &options("regex:([a-z])=(?<n>[0-9])", Some("n"), OnError::Stop));
        let unmatched = lines.iter().filter(|line| !line.is_empty() && naive(line).is_none()).count();
        prop_assert_eq!(items, found);
        prop_assert_eq!(result.unwrap().no_key, unmatched as u64);
    }
}

#[test]
fn the_group_of_an_expression() {
    let text = b"user=alice id=7\nnobody\n\nuser=bob id=8\n";
    assert_eq!(keys("regex:user=(?:\\w+) id=(\\d)", text), ["7", "8"], "the first group");
    assert_eq!(keys("regex:(user)=(?<key>\\w+)", text), ["alice", "bob"], "the group `key`");
    assert_eq!(keys("regex:id=\\d", text), ["id=7", "id=8"], "the whole match");
    assert_eq!(keys("regex:^(\\w*)$", text), ["nobody", ""], "an empty key is a key");
    let pair = [("alice".to_owned(), 7), ("bob".to_owned(), 8)];
    assert_eq!(weighted("regex:user=(\\w+) id=(\\d)", "2", text), pair);
    bad(
        "regex:(a)(?<n>\\d)?",
        Some("n"),
        b"a1\na\na2\n",
        1,
        "input, line 2: the line matches, but its weight, the group `n`, is missing",
        &["a", "a"],
    );
    // Bytes that are not text.
    let (items, _) = collect(&b"a\xff\n"[..], &options("regex:a(?-u:.)", None, OnError::Stop));
    assert_eq!(items, [(b"a\xff".to_vec(), 1)]);
}

#[test]
fn web_logs() {
    let log = br#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?x=1 HTTP/1.1" 200 2326 "-" "curl/8"
10.0.0.2 - bob [10/Oct/2000:13:55:37 -0700] "GET /a HTTP/1.1" 304 - "http://x/" "curl/8"

10.0.0.1 - - [10/Oct/2000:14:00:00 -0700] "\x16\x03" 400 150 "-" "-"
"#;
    assert_eq!(keys("combined:path", log), ["/a", "/a", "-"]);
    assert_eq!(keys("combined:ip,status", log), ["10.0.0.1,200", "10.0.0.2,304", "10.0.0.1,400"]);
    assert_eq!(keys("combined:hour", log), ["10/Oct/2000:13", "10/Oct/2000:13", "10/Oct/2000:14"]);
    let (items, result) = collect(&log[..], &options("combined:ip", Some("bytes"), OnError::Stop));
    assert_eq!(items, [(b"10.0.0.1".to_vec(), 2326), (b"10.0.0.1".to_vec(), 150)]);
    assert_eq!(result.unwrap().zero_weight, 1, "the answer that has no body");
    let input = b"x - - [t] \"r\" 200 1\nnot a log\nx - - [t] \"r\" 200 1\n";
    let message = "input, line 2: not a line of the combined log format: it has no [time]";
    bad("combined:status", None, input, 1, message, &["200", "200"]);
    let message = "input, line 1: not a line of the combined log format: it ends before the referer and the agent";
    bad("combined:agent", None, b"x - - [t] \"r\" 200 1\n", 0, message, &[]);
}

#[test]
fn quotes_can_be_ordinary() {
    let text = b"name\tn\n\"quoted\tx\tto here\"\n5\" pipe\ty\n";
    assert_eq!(keys("tsv:name", text), ["quoted\tx\tto here", "5\" pipe"]);
    let literal = ReadOptions { literal_quotes: true, ..options("tsv:name", None, OnError::Stop) };
    let (items, _) = collect(&text[..], &literal);
    assert_eq!(items, [(b"\"quoted".to_vec(), 1), (b"5\" pipe".to_vec(), 1)]);
}

#[test]
fn a_delimiter_for_other_formats_is_refused() {
    for (format, fine) in [("csv:1", true), ("tsv:1", true), ("field:1", true), ("lines", false), ("jsonl:a", false)] {
        assert_eq!(delimited(format, ";").check().is_ok(), fine, "{format}");
    }
    assert_eq!(delimited("field:1", "tab").delimiter, delimited("field:1", "\\t").delimiter);
    for wrong in ["", "ab", "é", "\"", "\n", "\0"] {
        assert!(wrong.parse::<ucl_streams::Delimiter>().is_err(), "{wrong:?}");
    }
}

/// Lines too long to be held are given up by the new formats, too.
#[test]
fn endless_lines() {
    let endless = "z ".repeat(MAX_RECORD_BYTES / 2 + 100_000);
    let entry = "10.0.0.1 - - [t] \"r\" 200 1";
    for (format, good) in
        [("regex:^1", entry), ("combined:ip", entry), ("field:1,2", entry), ("jsonl:a,b", "{\"a\":1,\"b\":2}")]
    {
        let input = format!("{good}\n{endless}\n{good}\n");
        let (items, result) = collect(input.as_bytes(), &options(format, None, OnError::Skip));
        assert_eq!((items.len(), result.unwrap().skipped), (2, 1), "{format}");
    }
}

/// Each part is within the limit, and the key is not.
#[test]
fn a_key_of_parts_has_the_limit_of_a_key() {
    let part = "k".repeat(40_000);
    let input = format!("a,b\n{part},{part}\nc,d\n");
    let message = "input, line 2: the key has 80001 bytes, the limit is 65535";
    let (items, result) =
        collect(input.as_bytes(), &ReadOptions { header: Some(false), ..options("csv:1,2", None, OnError::Skip) });
    assert_eq!(items, [(b"a,b".to_vec(), 1), (b"c,d".to_vec(), 1)]);
    assert_eq!(result.unwrap().first_skip.unwrap().to_string(), message);
}
