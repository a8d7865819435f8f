//! The format of inputs for which none was given: packet captures and tables with one column are
//! recognised; of other tables, the columns are listed with what to type.

use std::path::Path;

use ucl_streams::{Column, Content, Format, PacketKey, Source, content_of, head_of};

use crate::fail::{Usage, harmless};
use crate::show::shorten;

/// Bytes of a file that are looked at.
const HEAD: u64 = 1 << 16;
/// Columns that are listed.
const LISTED: usize = 30;

/// A format that the inputs themselves tell, and what to tell the user about it.
pub struct Inferred {
    pub format: Format,
    pub note: String,
}

/// Looks at the inputs, if all of them are files. Pipes cannot be looked at without taking
/// something away. `None` if nothing is known: they are then counted line by line.
///
/// # Errors
/// A table with several columns: which of them is the key has to be said.
pub fn infer(sources: &[Source]) -> Result<Option<Inferred>, Usage> {
    let file = |source: &Source| match source {
        Source::Path(path) if path.is_file() => Some(path.clone()),
        _ => None,
    };
    let Some(files) = sources.iter().map(file).collect::<Option<Vec<_>>>() else { return Ok(None) };
    let [first, others @ ..] = &files[..] else { return Ok(None) };
    let shown = harmless(&first.display().to_string());
    let is = |content: Content| move |path: &Path| content_of(path).is_ok_and(|found| found == Some(content));
    if files.iter().all(|path| is(Content::Capture)(path)) {
        let what = if others.is_empty() { "is a packet capture" } else { "and the others are packet captures" };
        let format = Format::Pcap(vec![PacketKey::FiveTuple]);
        let note = format!("{shown} {what}: --format {format} is used");
        return Ok(Some(Inferred { format, note }));
    }
    if is(Content::Parquet)(first) {
        return match parquet_columns(first) {
            Some(columns) => Err(which_column(&shown, "parquet", &columns, None)),
            None => Ok(None),
        };
    }
    let Some(kind) = Kind::of(first) else { return Ok(None) };
    // A file that cannot be read will be complained about when it is read.
    let Ok(head) = head_of(first, HEAD) else { return Ok(None) };
    if kind == Kind::Jsonl {
        return json_paths(&head).map_or(Ok(None), |paths| Err(which_column(&shown, "jsonl", &paths, None)));
    }
    let usual = if kind == Kind::Tsv { b'\t' } else { b',' };
    let delimiter = delimiter(&head, usual);
    let columns = first_row(&head, delimiter);
    match &columns[..] {
        [] => Ok(None),
        [_] if others.iter().all(|other| Kind::of(other) == Some(kind)) => {
            let format = if kind == Kind::Tsv { Format::Tsv } else { Format::Csv };
            let format = format(vec![Column::Number(1)]);
            let note = format!("{shown} is a table with one column: --format {format} is used");
            Ok(Some(Inferred { format, note }))
        }
        _ => {
            let given = (delimiter != usual).then_some(delimiter);
            Err(which_column(&shown, if kind == Kind::Tsv { "tsv" } else { "csv" }, &columns, given))
        }
    }
}

#[cfg(feature = "parquet")]
fn parquet_columns(path: &Path) -> Option<Vec<String>> {
    ucl_streams::parquet_columns(path).ok()
}

/// This build cannot read them; the reader will say so.
#[cfg(not(feature = "parquet"))]
fn parquet_columns(_: &Path) -> Option<Vec<String>> {
    None
}

/// Kind of file that a name suggests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Csv,
    Tsv,
    Jsonl,
}

impl Kind {
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let packed = [".gz", ".zst", ".xz", ".bz2"].iter().find_map(|ending| name.strip_suffix(ending));
        match packed.unwrap_or(&name).rsplit_once('.')?.1 {
            "csv" => Some(Kind::Csv),
            "tsv" => Some(Kind::Tsv),
            "jsonl" | "ndjson" => Some(Kind::Jsonl),
            _ => None,
        }
    }
}

/// The delimiter of a table: the usual one if its first line has it, or else another that it has.
fn delimiter(head: &[u8], usual: u8) -> u8 {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let candidates = [usual, b',', b';', b'\t', b'|'];
    candidates.into_iter().find(|delimiter| line.contains(delimiter)).unwrap_or(usual)
}

/// The fields of the first row.
fn first_row(head: &[u8], delimiter: u8) -> Vec<String> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(head);
    let row = reader.byte_records().next().and_then(Result::ok).unwrap_or_default();
    row.iter().map(|field| String::from_utf8_lossy(field).into_owned()).collect()
}

/// The paths to all strings and numbers of the first document; `None` if it is not an object.
fn json_paths(head: &[u8]) -> Option<Vec<String>> {
    let line = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    let document: serde_json::Value = serde_json::from_slice(line).ok()?;
    document.as_object()?;
    let mut paths = Vec::new();
    walk(&document, &mut Vec::new(), &mut paths);
    (!paths.is_empty()).then_some(paths)
}

fn walk(value: &serde_json::Value, steps: &mut Vec<String>, paths: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (name, value) in object {
                steps.push(name.clone());
                walk(value, steps, paths);
                steps.pop();
            }
        }
        serde_json::Value::String(_) | serde_json::Value::Number(_) => {
            let plain = |step: &String| !step.is_empty() && !step.contains(['.', '/']);
            paths.push(if steps.iter().all(plain) {
                steps.join(".")
            } else {
                steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect()
            });
        }
        _ => {}
    }
}

/// Lists the columns, and what to type.
fn which_column(shown: &str, format: &str, columns: &[String], delimiter: Option<u8>) -> Usage {
    let listed: Vec<String> = columns.iter().take(LISTED).map(|name| shorten(&harmless(name), 40)).collect();
    let more = columns.len().saturating_sub(LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    // A name that is a number would be taken for one, and one with a comma for two.
    let name = |(at, column): (usize, &String)| {
        let plain = |char: char| char.is_alphanumeric() || "_-./".contains(char);
        let is_name = column.parse::<usize>().is_err() && !column.is_empty() && column.chars().all(plain);
        if is_name || format == "jsonl" { column.clone() } else { (at + 1).to_string() }
    };
    let names: Vec<String> = columns.iter().enumerate().map(name).take(2).collect();
    let option = delimiter.map_or(String::new(), |byte| {
        if byte == b'\t' { " --delimiter tab".to_owned() } else { format!(" --delimiter '{}'", char::from(byte)) }
    });
    let what = match (format, columns.len()) {
        ("jsonl", 1) => "the field",
        ("jsonl", _) => "the fields",
        _ => "the columns",
    };
    let one = names.first().map_or("1", String::as_str);
    let both = names.join(",");
    let mut text = format!("{shown} has {what} {}{more}. Choose the key, for example:\n", listed.join(", "));
    text += &format!("  --format {format}:{one}{option}\n");
    if names.len() > 1 {
        text += &format!("  --format {format}:{both}{option}    (keys of two parts)\n");
    }
    text += "  --format lines    (every line is a key)";
    Usage(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_files() {
        let kind = |name: &str| Kind::of(Path::new(name)).is_some();
        assert!(["a.csv", "a.CSV.gz", "b/a.tsv.zst", "a.jsonl", "a.ndjson.xz", "x.csv.bz2"].into_iter().all(kind));
        assert!(!["csv", "a.gz", "a.log", "a.csv.log", ".gz"].into_iter().any(kind));
    }

    #[test]
    fn first_rows() {
        assert_eq!(delimiter(b"a;b\n1,2\n", b','), b';');
        assert_eq!(delimiter(b"a,b;c\n", b','), b',');
        assert_eq!(first_row(b"\xef\xbb\xbf\"a, b\",c\n1,2\n", b','), ["a, b", "c"]);
        let paths = json_paths(b"\n{\"user\":{\"id\":7,\"a.b\":\"x\"},\"tags\":[1],\"ok\":true}\n").unwrap();
        assert_eq!(paths, ["/user/a.b", "user.id"]);
        assert_eq!(json_paths(b"[1]\n"), None);
        assert_eq!(json_paths(b"{\"a\":"), None);
    }
}
