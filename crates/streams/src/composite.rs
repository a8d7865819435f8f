//! Keys of several parts, written as one record of CSV (RFC 4180): different parts give different
//! keys, and both people and programs can read them.

use std::fmt::Display;

/// Appends a part to a key. `first` tells whether it is the first one.
pub(crate) fn push_part(key: &mut Vec<u8>, part: &[u8], first: bool) {
    if !first {
        key.push(b',');
    }
    if !part.iter().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n')) {
        key.extend_from_slice(part);
        return;
    }
    key.push(b'"');
    for &byte in part {
        key.push(byte);
        if byte == b'"' {
            key.push(b'"');
        }
    }
    key.push(b'"');
}

/// Makes one key of parts: a record of CSV.
///
/// ```
/// assert_eq!(ucl_streams::join_parts(["a", "b, c"]), b"a,\"b, c\"");
/// ```
pub fn join<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Vec<u8> {
    let mut key = Vec::new();
    for (index, part) in parts.into_iter().enumerate() {
        push_part(&mut key, part.as_ref(), index == 0);
    }
    key
}

/// Writes places as they stand in a format.
pub(crate) fn list(places: &[impl Display]) -> String {
    let joined = join(places.iter().map(|place| place.to_string()));
    // The parts are text, and so are they together.
    String::from_utf8(joined).unwrap_or_default()
}

/// Splits a key that [`join`] made into its parts. `None` if it is not one record: a quote is not
/// closed, or something follows a closed one.
///
/// ```
/// assert_eq!(ucl_streams::split_parts(b"a,\"b, c\""), Some(vec![b"a".to_vec(), b"b, c".to_vec()]));
/// ```
pub fn split(record: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    let mut rest = record;
    loop {
        let mut part = Vec::new();
        if let Some(mut quoted) = rest.strip_prefix(b"\"") {
            loop {
                let quote = quoted.iter().position(|byte| *byte == b'"')?;
                part.extend_from_slice(&quoted[..quote]);
                quoted = &quoted[quote + 1..];
                match quoted.strip_prefix(b"\"") {
                    Some(more) => {
                        part.push(b'"');
                        quoted = more;
                    }
                    None => break,
                }
            }
            rest = quoted;
        } else {
            let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            part.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        parts.push(part);
        match rest.split_first() {
            None => return Some(parts),
            Some((b',', more)) => rest = more,
            Some(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let byte = prop::sample::select(b"ab,\"\r\n \xff\0".to_vec());
        prop::collection::vec(prop::collection::vec(byte, 0..5), 1..4)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn parts_come_back(parts in parts()) {
            prop_assert_eq!(split(&join(&parts)), Some(parts));
        }

        #[test]
        fn other_parts_are_another_key(a in parts(), b in parts()) {
            prop_assert_eq!(a == b, join(&a) == join(&b));
        }
    }

    #[test]
    fn records_as_people_write_them() {
        let text = |record: &str| {
            split(record.as_bytes())
                .map(|parts| parts.into_iter().map(|part| String::from_utf8(part).unwrap()).collect())
        };
        let parts = |parts: &[&str]| Some(parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        assert_eq!(text("a,b"), parts(&["a", "b"]));
        assert_eq!(text(""), parts(&[""]));
        assert_eq!(text(","), parts(&["", ""]));
        assert_eq!(text("\"a\",\"b, c\""), parts(&["a", "b, c"]));
        assert_eq!(text("say \"hi\",b"), parts(&["say \"hi\"", "b"]), "a quote in the middle is a quote");
        assert_eq!(text("\"a\"b,c"), None);
        assert_eq!(text("\"a,c"), None);
        assert_eq!(join(["a\"b", "c"]), b"\"a\"\"b\",c");
    }
}
