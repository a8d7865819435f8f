//! Every way in which input or command line can be wrong: what is said, and with which exit code.

mod common;

use std::io::Write;

use common::{Folder, capture, tcp4};

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// All messages of wrong command lines in one snapshot: that is how their wording stays even.
#[test]
fn wrong_usage() {
    let folder = Folder::with("log", "a 1\n");
    folder.write("keys", "good\nalso good\n");
    folder.write("counts.csv", "a,1\n");
    let cases = [
        "count log --format line",
        "count log --format field:0",
        "count log --format jsonl:user",
        "count log --format pcap:mac",
        "count log --weight 2",
        "count log --format field:1 --weight x",
        "count log --memory lots",
        "count log --memory 100",
        "count log --memory 200 --key-bytes 4",
        "count log --decoder best",
        "count log --base count-sketch",
        "count log --base flowradar --decoder map",
        "count log --base sketchy",
        "count log --heavy light",
        "count log --key-bytes 5",
        "count log --counter-bits 12",
        "count log --interval 0",
        "count log --threads 0",
        "count log --save log",
        "count counts.csv --out ./counts.csv",
        "count log --out new.csv --save new.csv",
        "count log --every never",
        "count log --out counts.xls",
        "count log --on-error retry",
        "count zipf:much",
        "count zipf:1.1 log",
        "count zipf:1.1 --format lines",
        "count log --all --json",
        "count log --format records:4 --query abc",
        "count log --format pcap --query 10.0.0.1",
        "count log --format pcap:dstport --query-file keys",
        "count log --no-such-option",
        "completions klingon",
        "no-such-command",
    ];
    let message = |args: &str| format!("$ ucl {args}\n{}\n", folder.run(args).failed(2).trim_end());
    insta::assert_snapshot!(cases.map(message).join("\n"));
}

#[test]
fn failures() {
    let folder = Folder::with("log", "a 1\nb\nc 3\n");
    folder.write("table.csv", "name,amount\na,1\nb,none\n");
    folder.write("rows.jsonl", "{\"id\":1}\n{\"id\":\n");
    folder.write("short", "12345");
    folder.write("not-a-capture", "hello, this is certainly not a capture file at all");
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let cases = [
        "count no-such-file",
        "count folder",
        "count log no-such-file",
        "count log --query-file no-such-file",
        "count log --format field:2",
        "count log --format field:1 --weight 2",
        "count table.csv --format csv:nam",
        "count table.csv --format csv:name --weight amount",
        "count table.csv --format csv:5",
        "count rows.jsonl --format jsonl:/id",
        "count rows.jsonl --format jsonl:/user",
        "count log --out no-such-folder/out.csv",
    ];
    let message = |args: &str| format!("$ ucl {args}\n{}\n", folder.run(args).failed(1).trim_end());
    insta::assert_snapshot!(cases.map(message).join("\n"));
}

#[test]
fn what_was_read_of_a_damaged_input_is_answered_for() {
    let folder = Folder::new();
    let lines: String = (0..50_000u64).map(|i| format!("{}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40)).collect();
    let packed = gzip(lines.as_bytes());
    folder.write("cut.gz", &packed[..packed.len() / 2]);
    let (a, b) = (([10, 0, 0, 1], 443), ([10, 0, 0, 2], 51_234));
    let whole = capture(&[tcp4(a, b, 0), tcp4(a, b, 0)]);
    folder.write("cut.pcap", &whole[..whole.len() - 7]);
    folder.write("cut.records", "12345678abc");
    let mut messages = String::new();
    for (args, least) in [
        ("count cut.gz", 20_000),
        ("count cut.gz --on-error skip", 20_000),
        ("count cut.pcap --format pcap", 1),
        ("count cut.records --format records:4", 2),
    ] {
        let run = folder.run(&format!("{args} --json"));
        let answer: serde_json::Value = serde_json::from_str(&run.out).unwrap();
        assert!(answer["items"].as_u64().unwrap() >= least, "{args}");
        assert_eq!(run.code, 1, "{args}");
        messages += &format!("$ ucl {args}\n{}", run.err);
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn the_smallest_budget_that_is_named_does() {
    let folder = Folder::new();
    let message = folder.run("count /dev/null --memory 10").failed(2);
    let least = message.split("at least ").nth(1).unwrap().split(' ').next().unwrap();
    folder.run(&format!("count /dev/null --memory {least}")).fine();
    let less = least.parse::<usize>().unwrap() - 1;
    folder.run(&format!("count /dev/null --memory {less}")).failed(2);
}

#[test]
fn a_weight_beyond_the_sketch_is_a_bad_record() {
    let folder = Folder::with("log", "a 1\nb 9223372036854775808\nc 3\n");
    let args = "count log --format field:1 --weight 2";
    insta::assert_snapshot!(folder.run(args).failed(1), @"ucl: item 2: an item's weight is from 1 to 2^63 - 1, not 9223372036854775808 (--on-error skip leaves it out)");
    assert_eq!(folder.run(&format!("{args} --on-error skip --json")).json()["weight"], 4);

    // Each of them would do, but not their sum.
    folder.write("log", "a 9223372036854775807\na 2\n");
    insta::assert_snapshot!(folder.run(args).failed(1), @"ucl: item 2: with its weight of 2 all weights come to 2^63 or more (--on-error skip leaves it out)");
    assert_eq!(folder.run(&format!("{args} --on-error skip --json")).json()["top"][0]["estimate"], i64::MAX);
}

/// A terminal obeys some characters: those that a message quotes are shown.
#[test]
fn messages_carry_no_commands_to_the_terminal() {
    let folder = Folder::with("t.csv", "a\x1b[31mb,c\n1,2\n");
    let said = folder.run("count t.csv --format csv:x").failed(1);
    assert!(said.contains("a\\u{1b}[31mb") && !said.contains('\x1b'), "{said}");
    folder.write("log", "a 1\nb \x1b[31m\n");
    for command in ["count log --all", "count log", "eval log --method cm"] {
        let run = folder.run(&format!("{command} --format field:1 --weight 2 --on-error skip"));
        let said = run.out + &run.err;
        assert!(run.code == 0 && said.contains("`\\u{1b}[31m`") && !said.contains('\x1b'), "{command}: {said}");
    }
}
