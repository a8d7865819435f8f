//! What `ucl` makes of an input: its content, header rows, weights, blank lines, pipes.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Folder, capture, tcp4};
use serde_json::json;

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn packets() -> Vec<u8> {
    let (a, b) = (([10, 0, 0, 1], 443), ([10, 0, 0, 2], 51_234));
    capture(&[tcp4(a, b, 10), tcp4(a, b, 0)])
}

/// Nothing of this was ever meant to be counted as lines of text.
#[test]
fn content_that_cannot_be_read_is_named_with_what_to_type() {
    let folder = Folder::with("log.xz.gz", gzip(b"\xfd7zXZ\0\0\x04 and so on\n"));
    folder.write("log.lz4", b"\x04\x22\x4d\x18 and so on\n");
    folder.write("it's a log.zip", b"PK\x03\x04 and so on\n");
    folder.write("log.7z", b"7z\xbc\xaf\x27\x1c and so on\n");
    folder.write("t.parquet", b"PAR1\x15\x04 and so on\n");
    folder.write("t.parquet.gz", gzip(b"PAR1\x15\x04 and so on\n"));
    folder.write("t.db", b"SQLite format 3\0 and so on\n");
    folder.write("net.pcap", packets());
    folder.write("words", "a\nb\n");
    folder.run("count words --save words.ucl").fine();
    let mut messages = String::new();
    let files = ["log.xz.gz", "log.lz4", "it's a log.zip", "log.7z", "t.parquet", "t.parquet.gz", "t.db"];
    for args in files.map(|file| vec![file]).into_iter().chain([
        vec!["words.ucl"],
        vec!["words", "net.pcap"],
        vec!["net.pcap", "--format", "lines"],
        vec!["log.7z", "--format", "pcap"],
        vec!["words", "log.7z", "--on-error", "skip"],
    ]) {
        let args = [vec!["count"], args].concat();
        messages += &format!("$ ucl {}\n{}\n", args.join(" "), folder.run_of(&args).failed(1));
    }
    for (file, option) in [("net.pcap", ""), ("log.7z", "--format field:1"), ("words.ucl", "")] {
        messages += &format!("$ ucl count {option} < {file}\n");
        messages += &folder.pipe(folder.read(file), &format!("count {option}")).failed(1);
        messages.push('\n');
    }
    insta::assert_snapshot!(messages.trim_end());
    // Whoever insists may have it.
    assert_eq!(folder.run("count log.7z --raw --json").json()["items"], 1);
    folder.run("eval log.7z --method cm").failed(1);
}

#[test]
fn captures_need_no_format() {
    let folder = Folder::with("net.pcap", packets());
    folder.write("net.pcap.gz", gzip(&packets()));
    for (inputs, items, note) in [
        ("net.pcap", 2, "ucl: note: net.pcap is a packet capture: --format pcap:5tuple is used\n"),
        (
            "net.pcap.gz net.pcap",
            4,
            "ucl: note: net.pcap.gz and the others are packet captures: --format pcap:5tuple is used\n",
        ),
    ] {
        let run = folder.run(&format!("count {inputs} --json --seed 1"));
        assert_eq!((run.code, run.err.as_str()), (0, note));
        let answer: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(answer["top"][0]["key"], "10.0.0.1:443 > 10.0.0.2:51234 tcp");
        assert_eq!(answer["top"][0]["estimate"], items);
    }
    let weighed = folder.run("count net.pcap --weight bytes --json");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&weighed.out).unwrap()["weight"], 118);
}

/// One signal has to do, also while a named pipe waits to be opened.
#[cfg(unix)]
#[test]
fn a_signal_ends_the_wait_for_a_writer() {
    for signal in ["-INT", "-TERM"] {
        let folder = Folder::new();
        assert!(std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap().success());
        let mut child = folder
            .command("count - pipe --every 1 --json --seed 1 --save state")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The first input ends. Its answer shows that signals are handled by now.
        child.stdin.take().unwrap().write_all(b"one\n").unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        let pid = child.id().to_string();
        assert!(std::process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        // A program that waits for ever fails this test, and does not hang it.
        let patience = Instant::now() + Duration::from_secs(60);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > patience {
                child.kill().unwrap();
                panic!("still waiting for a writer after {signal}");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        let ended = child.wait_with_output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(
            (ended.status.code(), said.as_str()),
            (Some(0), "ucl: stopped: the answer covers the 1 item before\n")
        );
        assert_eq!(folder.run("query state one --json").json()["estimate"], 1);
    }
}

#[test]
fn a_header_row_is_no_record() {
    let folder = Folder::with("t.csv", "name,n\na,1\nb,2\n");
    folder.write("bare.csv", "a,1\nb,2\n");
    let items = |args: &str| {
        let run = folder.run(&format!("count {args} --json --seed 1"));
        assert_eq!(run.code, 0, "{args}: {}", run.err);
        (serde_json::from_str::<serde_json::Value>(&run.out).unwrap()["items"].as_u64().unwrap(), run.err)
    };
    let (quiet, note) = (String::new(), |file: &str, key: &str| {
        format!(
            "ucl: note: the first row of {file} is taken for a header, with `{key}` in the key's column; \
             add --no-header if it is data, --header to confirm\n"
        )
    });
    assert_eq!(items("t.csv --format csv:name"), (2, quiet.clone()));
    assert_eq!(items("t.csv --format csv:1"), (2, note("t.csv", "name")));
    assert_eq!(items("t.csv --format csv:1 --header"), (2, quiet.clone()));
    assert_eq!(items("t.csv --format csv:1 --no-header"), (3, quiet.clone()));
    assert_eq!(items("t.csv --format csv:1 --weight 2"), (2, note("t.csv", "name")));
    assert_eq!(items("bare.csv --format csv:1 --weight 2"), (2, quiet.clone()));
    assert_eq!(items("bare.csv --format csv:1"), (1, note("bare.csv", "a")));
    // A state remembers what was said.
    assert_eq!(items("bare.csv --format csv:1 --no-header --save state"), (2, quiet.clone()));
    assert_eq!(items("bare.csv --resume state"), (4, quiet));
}

/// As many items as `wc -l` has lines; the formats that look for something in a line pass over
/// empty ones.
#[test]
fn blank_lines() {
    let text = "a\n\nb\r\n\r\n\na\n";
    let answer = Folder::new().pipe(text, "count --json --seed 1 --query \"\"").json();
    assert_eq!(answer["items"], text.matches('\n').count());
    assert_eq!((&answer["top"][0]["key"], &answer["top"][0]["estimate"]), (&json!(""), &json!(3)));
    assert_eq!(answer["queries"][0]["estimate"], 3);
    for (format, items) in [("field:1", 3), ("csv:1 --no-header", 3), ("fimi", 3)] {
        let answer = Folder::new().pipe(text, &format!("count --json --format {format}")).json();
        assert_eq!(answer["items"], items, "{format}");
    }
}

#[test]
fn decimal_weights() {
    let folder = Folder::with("sales.csv", "what,price\ntea,1.25\ncake,12.5\ntea,0.00\nrum,3\n");
    let args = "count sales.csv --format csv:what --weight price --seed 1";
    let run = folder.run(args).failed(1);
    assert_eq!(
        run,
        "ucl: sales.csv, line 2: weight `1.25` is not a whole number (--scale 100 makes it whole, --on-error skip skips \
         it)\n"
    );
    assert!(folder.run(&format!("{args} --scale 10")).failed(1).contains(" at scale 10 (--scale 100 makes it whole"));
    let text = folder.run(&format!("{args} --scale 100 --save state")).fine();
    assert!(
        text.contains(" counted   3 items of weight 1,675 (weights times 100, by --scale), 3 keys known, "),
        "{text}"
    );
    assert!(text.contains(" weight 0  1 record, not counted\n"), "{text}");
    let answer = folder.run(&format!("{args} --scale 100 --json")).json();
    let of = |field: &str| answer[field].as_u64().unwrap();
    assert_eq!((of("items"), of("weight"), of("scale"), of("zero_weight"), of("keys")), (3, 1675, 100, 1, 3));
    assert_eq!((&answer["top"][0]["key"], &answer["top"][0]["estimate"]), (&json!("cake"), &json!(1250)));
    let all = folder.run(&format!("{args} --scale 100 --all"));
    assert_eq!((all.code, all.err.as_str()), (0, "ucl: note: 1 record of weight 0, not counted\n"));
    // A state goes on with its scale, and with no other.
    assert_eq!(folder.run("count sales.csv --resume state --json").json()["weight"], 2 * 1675);
    let other = folder.run("count sales.csv --resume state --scale 10").failed(2);
    assert_eq!(
        other,
        "ucl: state was made with --scale 100, so --scale 10 cannot continue it: leave the option out, or start a new count\n"
    );
}
