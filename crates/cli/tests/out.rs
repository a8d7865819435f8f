//! Files of all known keys: the keys as they came, and a file whole or not at all.

mod common;

use common::Folder;
use serde_json::Value;

/// A tab, control characters, quotes, bytes that are not UTF-8, what looks like an escape, nothing
/// at all.
const ODD: [&[u8]; 12] = [
    b"plain",
    b"",
    b"tab\there",
    b"a \"quote\", and a comma",
    b"two\nlines\r\nof text",
    b"\x1b[31mred",
    b"\0",
    b"\xff\xfe",
    b"caf\xe9",
    "grün \u{202e}".as_bytes(),
    b"hex:00",
    b" blank ",
];

/// Counts the keys from a CSV, the first most often, into a file.
fn written(keys: &[&[u8]], name: &str) -> Vec<u8> {
    let folder = Folder::new();
    let mut table = csv::Writer::from_path(folder.path().join("in.csv")).unwrap();
    table.write_record(["what", "n"]).unwrap();
    for (i, key) in keys.iter().enumerate() {
        table.write_record([*key, (100 - i).to_string().as_bytes()]).unwrap();
    }
    table.flush().unwrap();
    folder.run(&format!("count in.csv --format csv:what --weight n --seed 1 --out {name}")).fine();
    folder.read(name)
}

fn keys_of_csv(file: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = csv::Reader::from_reader(file);
    reader.byte_records().map(|record| record.unwrap()[0].to_vec()).collect()
}

/// The key of a JSON object, by the two documented fields.
fn key_of_json(row: &Value) -> Vec<u8> {
    match (row["key"].as_str(), row.get("key_hex")) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(hex)) => {
            let digits = hex.as_str().unwrap();
            (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
        }
        _ => panic!("{row}"),
    }
}

/// The values of the first column, which is plain byte arrays in pages of at most 1 MB: here in
/// one.
fn keys_of_parquet(file: &[u8], keys: usize) -> Vec<Vec<u8>> {
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    // The page header ends its two nested structs with a zero byte each, after five numbers that
    // are none.
    let end_of_header = 4 + file[4..].windows(2).position(|pair| pair == [0, 0]).unwrap() + 2;
    let mut rest = &file[end_of_header..];
    let key = |_| {
        let (length, values) = rest.split_first_chunk::<4>().unwrap();
        let (key, after) = values.split_at(u32::from_le_bytes(*length) as usize);
        rest = after;
        key.to_vec()
    };
    (0..keys).map(key).collect()
}

#[test]
fn odd_keys_come_back_from_every_kind_of_file() {
    let jsonl = String::from_utf8(written(&ODD, "out.jsonl")).unwrap();
    let rows = jsonl.lines().map(|line| key_of_json(&serde_json::from_str(line).unwrap()));
    assert_eq!(rows.collect::<Vec<_>>(), ODD);
    assert_eq!(keys_of_csv(&written(&ODD, "out.csv")), ODD);
    assert_eq!(keys_of_parquet(&written(&ODD, "out.parquet"), ODD.len()), ODD);
}

/// The annotation of text in a Parquet file's schema: converted type UTF8, logical type STRING.
const TEXT: &[u8] = b"\x03key\x25\x00\x4c\x1c\x00";

#[test]
fn a_parquet_column_is_text_only_if_all_keys_are() {
    let is_text = |file: Vec<u8>| file.windows(TEXT.len()).any(|bytes| bytes == TEXT);
    let text: Vec<&[u8]> = ODD.into_iter().filter(|key| std::str::from_utf8(key).is_ok()).collect();
    assert!(is_text(written(&text, "out.parquet")) && !is_text(written(&ODD, "out.parquet")));
}

#[test]
fn json_and_piped_csv_hold_the_keys_too() {
    let folder = Folder::with("lines", b"\xff\tx\n\xff\tx\n\xff\tx\na\tb\na\tb\nplain\n");
    let keys = [&b"\xff\tx"[..], b"a\tb", b"plain"];
    let answer = folder.run("count lines --seed 1 --json --last 2 --query-file lines --save s.ucl").json();
    for rows in [&answer["top"], &answer["last"]["keys"]] {
        assert_eq!(rows.as_array().unwrap().iter().map(key_of_json).collect::<Vec<_>>(), keys);
    }
    // A query file need not be UTF-8 either.
    assert_eq!((key_of_json(&answer["queries"][0]), &answer["queries"][0]["estimate"]), (keys[0].to_vec(), &3.into()));
    let all = folder.command("count lines --seed 1 --all").output().unwrap();
    assert_eq!(keys_of_csv(&all.stdout), keys);
    let rows = |out: String| {
        let key = |line: &str| key_of_json(&serde_json::from_str(line).unwrap());
        out.lines().map(key).collect::<Vec<_>>()
    };
    assert_eq!(rows(folder.run("top s.ucl --json").fine()), keys);
    assert_eq!(rows(folder.pipe(b"a\tb\n\n\xff\tx\r\n", "query s.ucl - --json").fine()), [keys[1], keys[0]]);
    // People see none of it raw.
    assert!(folder.run("count lines --seed 1").fine().contains(" hex:ff0978 "));
}

#[test]
fn numbers_and_addresses_are_text() {
    let folder = Folder::with("basket", "1 2 beer\n1\n");
    folder.run("count basket --format fimi --seed 1 --out out.csv").fine();
    assert_eq!(keys_of_csv(&folder.read("out.csv")), [&b"1"[..], b"2", b"beer"]);
    folder.write("net.pcap", common::capture(&[common::tcp4(([10, 0, 0, 1], 443), ([10, 0, 0, 2], 80), 0)]));
    folder.run("count net.pcap --format pcap --seed 1 --out out.csv").fine();
    assert_eq!(keys_of_csv(&folder.read("out.csv")), [b"10.0.0.1:443 > 10.0.0.2:80 tcp"]);
}

/// A limit on the size of files stands for a full disk: writing fails half way.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_file() {
    let folder = Folder::with("out.csv", "precious\n");
    let ucl = assert_cmd::cargo::cargo_bin("ucl");
    for name in ["out.csv", "new.csv"] {
        // With the signal ignored, a write beyond 16 blocks is an error.
        let script = format!("trap '' XFSZ; ulimit -f 16; exec \"$0\" count zipf:0.5:20000:9000 --seed 1 --out {name}");
        let mut shell = std::process::Command::new("sh");
        let run = shell.args(["-c", &script]).arg(&ucl).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("ucl: cannot write {name}: ")), "{said}");
    }
    assert_eq!(folder.read("out.csv"), b"precious\n");
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["out.csv"]);
}

#[test]
fn a_run_that_fails_leaves_no_file() {
    let folder = Folder::with("log", "a 1\nb none\n");
    folder.run("count log --out new.csv --format pcap").failed(1);
    assert!(!folder.path().join("new.csv").exists());
}

/// What is not a regular file is written as it is, and not replaced.
#[cfg(unix)]
#[test]
fn a_pipe_is_written_directly() {
    let folder = Folder::with("words", "tea\n");
    let pipe = folder.path().join("pipe.csv");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn(move || std::fs::read(pipe).unwrap());
    folder.run("count words --seed 1 --out pipe.csv").fine();
    assert_eq!(reader.join().unwrap(), b"key,estimate,lower,upper,source\ntea,1,1,1,exact\n");
    std::os::unix::fs::symlink("/dev/full", folder.path().join("full.csv")).unwrap();
    let full = folder.run("count words --seed 1 --out full.csv");
    assert!(full.code == 1 && full.err.starts_with("ucl: cannot write full.csv: No space left"), "{}", full.err);
}
