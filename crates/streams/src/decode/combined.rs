//! `combined:FIELD`: logs of Apache and nginx in the combined format, or in the common one, which
//! ends before the referer.
//!
//! ```text
//! 10.0.0.1 - alice [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.1" 200 2326 "http://x/"
//! "curl/8"
//! ```
//! Text in quotes is taken as it is written, with its escapes (`\"`, `\x16`).

use memchr::memmem;

use super::lines::Splitter;
use super::weight::weight;
use super::{Decode, ReadWindow};
use crate::collect::{Collector, Halt};
use crate::composite::push_part;
use crate::error::BadReason;
use crate::format::LogField;

pub(super) struct Combined {
    splitter: Splitter,
    fields: Vec<LogField>,
    /// Items weigh the size of the answer.
    weigh_bytes: bool,
    /// A key of several parts.
    key: Vec<u8>,
}

impl Combined {
    /// Creates a decoder for keys of these fields, of which there is at least one.
    pub fn new(fields: Vec<LogField>, weigh_bytes: bool) -> Self {
        Self { splitter: Splitter::default(), fields, weigh_bytes, key: Vec::new() }
    }
}

impl Decode for Combined {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let Self { splitter, fields, weigh_bytes, key } = self;
        splitter.split(window, out, |line, place, out| {
            if line.iter().all(u8::is_ascii_whitespace) {
                return Ok(());
            }
            let entry = match Entry::parse(line) {
                Ok(entry) => entry,
                Err(problem) => return out.bad(place, BadReason::LogLine(problem)),
            };
            key.clear();
            for (index, field) in fields.iter().enumerate() {
                match entry.field(*field) {
                    Ok(part) if fields.len() == 1 => key.extend_from_slice(part),
                    Ok(part) => push_part(key, part, index == 0),
                    Err(problem) => return out.bad(place, BadReason::LogLine(problem)),
                }
            }
            let weight = match entry.bytes {
                _ if !*weigh_bytes => 1,
                b"-" => 0,
                text => match weight(text, place, out)? {
                    Some(weight) => weight,
                    None => return Ok(()),
                },
            };
            out.key(key, weight, place)
        })
    }

    fn can_start_here(&self) -> bool {
        self.splitter.is_between_lines()
    }
}

/// The parts of a line.
#[derive(Debug, PartialEq, Eq)]
struct Entry<'l> {
    ip: &'l [u8],
    user: &'l [u8],
    time: &'l [u8],
    request: &'l [u8],
    status: &'l [u8],
    bytes: &'l [u8],
    /// Referer and agent, which the common format does not have.
    end: Option<(&'l [u8], &'l [u8])>,
}

impl<'l> Entry<'l> {
    fn parse(line: &'l [u8]) -> Result<Self, &'static str> {
        let (ip, rest) = word(line).ok_or("it has no client address")?;
        let (_, rest) = word(rest).ok_or("it ends after the client address")?;
        let bracket = memmem::find(rest, b" [").ok_or("it has no [time]")?;
        let user = &rest[..bracket];
        let rest = &rest[bracket + 2..];
        let bracket = memmem::find(rest, b"] ").ok_or("it has no [time]")?;
        let time = &rest[..bracket];
        let rest = &rest[bracket + 2..];
        let (request, rest) = quoted(rest).ok_or("it has no \"request\" behind the time")?;
        let rest = rest.strip_prefix(b" ").ok_or("it ends after the request")?;
        let (status, rest) = word(rest).ok_or("it ends after the status")?;
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (bytes, rest) = rest.split_at(end);
        if bytes.is_empty() {
            return Err("it ends after the status");
        }
        let text = |rest: &'l [u8]| rest.strip_prefix(b" ").and_then(quoted);
        let end = text(rest).and_then(|(referer, rest)| Some((referer, text(rest)?.0)));
        Ok(Self { ip, user, time, request, status, bytes, end })
    }

    fn field(&self, field: LogField) -> Result<&'l [u8], &'static str> {
        const NO_END: &str = "it ends before the referer and the agent";
        let time = |length| self.time.get(..length).ok_or("its [time] is too short");
        Ok(match field {
            LogField::Ip => self.ip,
            LogField::User => self.user,
            LogField::Time => self.time,
            // 10/Oct/2000:13:55:36 -0700
            LogField::Day => time(11)?,
            LogField::Hour => time(14)?,
            LogField::Minute => time(17)?,
            LogField::Request => self.request,
            LogField::Method => self.method_and_url().0,
            LogField::Url => self.method_and_url().1,
            LogField::Path => {
                let url = self.method_and_url().1;
                &url[..memchr::memchr(b'?', url).unwrap_or(url.len())]
            }
            LogField::Status => self.status,
            LogField::Bytes => self.bytes,
            LogField::Referer => self.end.ok_or(NO_END)?.0,
            LogField::Agent => self.end.ok_or(NO_END)?.1,
        })
    }

    /// The first word of the request, and the rest of it without the protocol. Both are `-` if it
    /// has no second word: that is no request, but whatever a client sent.
    fn method_and_url(&self) -> (&'l [u8], &'l [u8]) {
        let Some((method, rest)) = word(self.request) else { return (b"-", b"-") };
        let last = memchr::memrchr(b' ', rest).filter(|at| rest[at + 1..].starts_with(b"HTTP/"));
        (method, &rest[..last.unwrap_or(rest.len())])
    }
}

/// Splits the text at its first blank, which something must precede.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = memchr::memchr(b' ', text).filter(|end| *end > 0)?;
    Some((&text[..end], &text[end + 1..]))
}

/// Text in double quotes, without them, and what follows. A backslash takes the meaning from the
/// next character.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', &text[from..])?;
        if text[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        from = at + 2;
        if from > text.len() {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use regex::bytes::Regex;

    const LINE: &[u8] =
        br#"10.0.0.1 - alice [10/Oct/2000:13:55:36 -0700] "GET /a?b=1 HTTP/1.1" 200 2326 "http://x/" "c\"url""#;

    /// The same by a regular expression. The longest time that has `] "` behind it in the one and
    /// the shortest in the other would differ, so neither allows brackets in it.
    fn reference(line: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
        let quoted = r#""((?s-u:[^"\\]|\\.)*)""#;
        let tail = format!(r"(?: {quoted} {quoted})?");
        let pattern = format!(r"(?s-u)^([^ ]+) [^ ]+ (.*?) \[(.*?)\] {quoted} ([^ ]+) ([^ ]+){tail}");
        let groups = Regex::new(&pattern).unwrap();
        let found = groups.captures(line)?;
        Some((1..=8).map(|group| found.get(group).map(|text| text.as_bytes().to_vec())).collect())
    }

    fn parsed(line: &[u8]) -> Option<Vec<Option<Vec<u8>>>> {
        let entry = Entry::parse(line).ok()?;
        let fields = [entry.ip, entry.user, entry.time, entry.request, entry.status, entry.bytes];
        let (referer, agent) = entry.end.unzip();
        let fields = fields.into_iter().map(Some).chain([referer, agent]);
        Some(fields.map(|field| field.map(<[u8]>::to_vec)).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]
        #[test]
        fn lines_are_split_as_a_regular_expression_does(
            ip in "[0-9a-f:.]{0,6}", user in "[a-z -]{1,6}", time in "[0-9/:A-Z ]{0,20}",
            texts in prop::collection::vec(r#"([a-z/? \x{e9}]|\\["\\nx]){0,8}"#, 3),
            numbers in prop::collection::vec("[0-9-]{0,4}", 2), common in any::<bool>(),
            cut in prop::option::of(0usize..90), flip in prop::option::of((0usize..90, prop::sample::select(b" \"[]\\".to_vec()))),
        ) {
            let [request, referer, agent] = &texts[..] else { unreachable!() };
            let mut line = format!("{ip} - {user} [{time}] \"{request}\" {} {}", numbers[0], numbers[1]).into_bytes();
            if !common {
                line.extend(format!(" \"{referer}\" \"{agent}\"").bytes());
            }
            if let Some((at, byte)) = flip.filter(|(at, _)| *at < line.len()) {
                line[at] = byte;
            }
            line.truncate(cut.unwrap_or(line.len()));
            // Where one part could end in two places, the expression tries again and we do not.
            if let Some(parsed) = parsed(&line) {
                prop_assert_eq!(Some(parsed), reference(&line), "{}", String::from_utf8_lossy(&line));
            } else {
                prop_assert!(reference(&line).is_none() || flip.is_some(), "{}", String::from_utf8_lossy(&line));
            }
        }
    }

    #[test]
    fn every_field() {
        let entry = Entry::parse(LINE).unwrap();
        for (field, expected) in [
            ("ip", "10.0.0.1"),
            ("user", "alice"),
            ("time", "10/Oct/2000:13:55:36 -0700"),
            ("day", "10/Oct/2000"),
            ("hour", "10/Oct/2000:13"),
            ("minute", "10/Oct/2000:13:55"),
            ("request", "GET /a?b=1 HTTP/1.1"),
            ("method", "GET"),
            ("url", "/a?b=1"),
            ("path", "/a"),
            ("status", "200"),
            ("bytes", "2326"),
            ("referer", "http://x/"),
            ("agent", r#"c\"url"#),
        ] {
            let found = entry.field(field.parse().unwrap()).unwrap();
            assert_eq!(String::from_utf8_lossy(found), expected, "{field}");
        }
    }

    #[test]
    fn odd_requests() {
        let of = |request: &'static str| {
            let entry = Entry { request: request.as_bytes(), ..Entry::parse(LINE).unwrap() };
            let (method, url) = entry.method_and_url();
            (String::from_utf8_lossy(method).into_owned(), String::from_utf8_lossy(url).into_owned())
        };
        for (request, method, url) in [
            ("-", "-", "-"),
            ("", "-", "-"),
            (r"\x16\x03\x01", "-", "-"),
            ("GET /a b HTTP/1.1", "GET", "/a b"),
            ("GET /a", "GET", "/a"),
            ("GET /a b", "GET", "/a b"),
        ] {
            assert_eq!(of(request), (method.to_owned(), url.to_owned()), "{request}");
        }
    }
}
