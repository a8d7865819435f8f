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
        "count log --format jsonl:user.",
        "count log --format regex:(",
        "count log --format combined:cookie",
        "count log --format pcap:src/40",
        "count log --format parquet:user",
        "count log --delimiter ;",
        "count log --format csv:1 --delimiter ;;",
        "count log --no-quotes",
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
        "count counts.csv",
        "count counts.csv --format lines --out ./counts.csv",
        "count log --out - --json",
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
        "count log --scale 0 --format field:1 --weight 2",
        "count log --scale 100",
        "count log --header",
        "count counts.csv --format csv:1 --header --no-header",
        "count counts.csv --format csv:a --no-header",
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
        "count *.txt",
        "count log no-such-file",
        "count log --query-file no-such-file",
        "count not-a-capture --format pcap",
        "count log --format field:3",
        "count table.csv --format csv:nam",
        "count table.csv --format csv:5",
        "count rows.jsonl --format jsonl:/user",
        "count log --out no-such-folder/out.csv",
        "token list --data no-such-folder",
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

/// However the input ends, in every way of asking: the records before count, the state is saved,
/// and the exit code tells.
#[test]
fn what_was_read_before_an_error_is_answered_for_and_saved() {
    let folder = Folder::with("good", "x 1\ny 1\n");
    let many = "a 1\n".repeat(30_000);
    let table = "k,w\n".to_owned() + &"a,1\n".repeat(30_000);
    folder.write("fields", many.clone() + "b\n");
    folder.write("weights.csv", table.clone() + "b,none\n");
    folder.write("huge.csv", table.clone() + "b,9223372036854775807\n");
    folder.write("quote.csv", table + "\"b,1\n");
    folder.write("rows.jsonl", "{\"k\":\"a\"}\n".repeat(30_000) + "{\"k\":\n");
    folder.write("keys", many.replace(" 1", "aaa") + "b\n");
    #[cfg(unix)]
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("unreadable")).unwrap();
    let cases = [
        (
            "fields --format field:2",
            "fields, line 30001: column 2 is needed, but the record has only 1 (--on-error skip skips it)",
        ),
        (
            "weights.csv --format csv:k --weight w",
            "weights.csv, line 30002: weight `none` is not a number from 0 to 9223372036854775807 (--on-error skip skips it)",
        ),
        (
            "huge.csv --format csv:k --weight w",
            "huge.csv, line 30002: with its weight of 9223372036854775807, all weights together are over the limit of 9223372036854775807 (--on-error skip skips it)",
        ),
        (
            "quote.csv --format csv:k",
            "quote.csv, line 30002: a quote is opened and never closed (--no-quotes reads quotes as ordinary characters, --on-error skip skips it)",
        ),
        (
            "rows.jsonl --format jsonl:/k",
            "rows.jsonl, line 30001: not JSON: EOF while parsing a value at line 1 column 5 (--on-error skip skips it)",
        ),
        (
            "keys --key-bytes 4",
            "keys, line 30001: every key must have 4 bytes, but this one has 1 (--on-error skip skips it)",
        ),
        #[cfg(unix)]
        ("weights.csv unreadable --format csv:k", "cannot open unreadable: "),
    ];
    for (args, message) in cases {
        let items = if args.contains("unreadable") { 30_001 } else { 30_000 };
        for how in [
            "",
            "--json",
            "--all",
            "--out out.csv",
            "--save state",
            "--every 20000 --json",
            "--save state --save-every 7000",
        ] {
            let run = folder.run(&format!("count {args} --seed 1 {how}"));
            assert_eq!(run.code, 1, "{args} {how}: {}", run.err);
            assert!(run.err.starts_with(&format!("ucl: {message}")), "{args} {how}: {}", run.err);
            let covers = if items == 30_000 { "30,000" } else { "30,001" };
            assert!(run.err.ends_with(&format!("; the answer covers the {covers} items before\n")), "{}", run.err);
            assert!(run.out.contains("30000") || run.out.contains("30,000"), "{args} {how}: {}", run.out);
        }
        let out = String::from_utf8(folder.read("out.csv")).unwrap();
        assert!(out.lines().nth(1).unwrap().contains(",30000,30000,30000,"), "{args}: {out}");
        let state = folder.run("inspect state --json").json();
        assert_eq!(state["items"], items, "{args}");
    }
    // Side by side, the other inputs are read to their ends.
    let run = folder.run("count fields good --format field:2 --threads 2 --json --save state");
    let answer: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((run.code, &answer["items"]), (1, &serde_json::json!(30_002)));
    assert!(
        run.err.starts_with("ucl: fields, line 30001: column 2 is needed") && run.err.contains("the 30,002 items"),
        "{}",
        run.err
    );
    assert_eq!(folder.run("inspect state --json").json()["items"], 30_002);
}

/// A reader of the answers that has gone takes nothing away from the state.
#[test]
fn the_state_is_saved_when_nobody_reads_the_answers() {
    let folder = Folder::with("lines", "a\n".repeat(100_000));
    let mut child = folder
        .command("count lines --every 10 --save state")
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let items = folder.run("inspect state --json").json()["items"].as_u64().unwrap();
    assert!(items >= 10, "{items}");
}

/// An output that nobody reads, as that of `ucl … | head` when `head` has seen enough.
fn unread() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

/// `ucl … 2>&1 | head` ended in a panic, without a state, as soon as there was something to say.
#[test]
fn notes_that_nobody_reads_cost_nothing() {
    let folder = Folder::with("t.csv", "k,w\na,1\na,1\nb,x\n");
    let mut command = folder.command("count t.csv --format csv:1 --weight 2 --json --save state");
    let run: common::Run = command.stderr(unread()).output().unwrap().into();
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    assert!(run.out.contains("\"items\":2"), "{}", run.out);
    assert_eq!(folder.run("query state a --json").json()["estimate"], 2);
    for (wrong, code) in [("count t.csv --no-such-option", 2), ("count no-such-file", 1), ("top t.csv", 1)] {
        let run: common::Run = folder.command(wrong).stderr(unread()).output().unwrap().into();
        assert_eq!(run.code, code, "{wrong}");
    }
}

/// A reader that stops takes nothing with it but what it would have read: files are written, and
/// failures told.
#[test]
fn answers_that_nobody_reads_hide_no_failure() {
    let folder = Folder::with("log", "a 1\na 1\n");
    folder.write("bad", "a 1\na 1\nb\n");
    let run = |args: &str| -> common::Run { folder.command(args).stdout(unread()).output().unwrap().into() };
    let all = run("count log --format field:1 --all --out keys.csv");
    assert_eq!((all.code, all.err.as_str()), (0, ""));
    assert!(String::from_utf8(folder.read("keys.csv")).unwrap().contains("\na,2,2,2,"));
    let unsaved = run("count log --format field:1 --save no-such-folder/state");
    assert!(unsaved.code == 1 && unsaved.err.starts_with("ucl: cannot write no-such-folder/state"), "{}", unsaved.err);
    let unfiled = run("count log --format field:1 --all --out /dev/null/keys.csv");
    assert!(unfiled.code == 1 && unfiled.err.starts_with("ucl: cannot write /dev/null/keys.csv"), "{}", unfiled.err);
    let cut = run("count bad --format field:2");
    assert!(cut.code == 1 && cut.err.ends_with("; the answer covers the 2 items before\n"), "{}", cut.err);
}

#[test]
fn the_smallest_budget_that_is_named_does() {
    let folder = Folder::new();
    for mode in ["exact", "delta"] {
        let message = folder.run(&format!("count /dev/null --memory 10 --mode {mode}")).failed(2);
        let least = message.split("at least ").nth(1).unwrap().split(' ').next().unwrap();
        folder.run(&format!("count /dev/null --memory {least} --mode {mode}")).fine();
        let less = least.parse::<usize>().unwrap() - 1;
        folder.run(&format!("count /dev/null --memory {less} --mode {mode}")).failed(2);
    }
}

#[test]
fn a_weight_beyond_the_limit_is_a_bad_record() {
    let folder = Folder::with("log", "a 1\nb 9223372036854775808\nc 3\n");
    let args = "count log --format field:1 --weight 2";
    insta::assert_snapshot!(folder.run(args).err, @"ucl: log, line 2: weight `9223372036854775808` is over the limit of 9223372036854775807 (--on-error skip skips it); the answer covers the 1 item before");
    assert_eq!(folder.run(&format!("{args} --on-error skip --json")).json()["weight"], 4);

    // Each of them would do, but not their sum.
    folder.write("log", "a 9223372036854775807\na 2\n");
    insta::assert_snapshot!(folder.run(args).err, @"ucl: log, line 2: with its weight of 2, all weights together are over the limit of 9223372036854775807 (--on-error skip skips it); the answer covers the 1 item before");
    assert_eq!(folder.run(&format!("{args} --on-error skip --json")).json()["top"][0]["estimate"], i64::MAX);
    // Nor does the sum of two runs.
    assert_eq!(folder.run(&format!("{args} --on-error skip --save state")).code, 0);
    folder.write("more", "a 1\n");
    insta::assert_snapshot!(folder.run("count more --resume state").failed(1), @"ucl: more, line 1: with its weight of 1, all weights together are over the limit of 9223372036854775807 (--on-error skip skips it)");
}

/// A terminal obeys some characters: those that a message quotes are shown.
#[test]
fn messages_carry_no_commands_to_the_terminal() {
    let folder = Folder::with("t.csv", "a\x1b[31mb,c\n1,2\n");
    let said = folder.run("count t.csv --format csv:x").failed(1);
    assert!(said.contains("a\\u{1b}[31mb") && !said.contains('\x1b'), "{said}");
    // U+202E turns around what follows it.
    folder.write("t.csv", "a\u{202e}b,c\n1,2\n");
    let said = folder.run("count t.csv --format csv:x").failed(1);
    assert!(said.contains("a\\u{202e}b") && !said.contains('\u{202e}'), "{said}");
    folder.write("keys", "a\u{202e}b\na\u{2066}b\n");
    let said = folder.run("count keys --query a\u{202e}b").fine();
    assert!(said.contains("hex:61e280ae62") && !said.contains(['\u{202e}', '\u{2066}']), "{said}");
    folder.write("log", "a 1\nb \x1b[31m\n");
    for command in ["count log --all", "count log", "eval log --method cm"] {
        let run = folder.run(&format!("{command} --format field:1 --weight 2 --on-error skip"));
        let said = run.out + &run.err;
        assert!(run.code == 0 && said.contains("`\\u{1b}[31m`") && !said.contains('\x1b'), "{command}: {said}");
    }
}
