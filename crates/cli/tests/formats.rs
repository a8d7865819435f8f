//! Formats, inputs and outputs of `ucl count`, from the file to what is printed and back.

mod common;

use common::{Folder, Run, capture, tcp4, tcp6};
use serde_json::{Value, json};

/// Keys and estimates of an answer's top.
fn top(answer: &Value) -> Vec<(String, u64)> {
    let row = |row: &Value| (row["key"].as_str().unwrap().to_owned(), row["estimate"].as_u64().unwrap());
    answer["top"].as_array().unwrap().iter().map(row).collect()
}

fn pairs(expected: &[(&str, u64)]) -> Vec<(String, u64)> {
    expected.iter().map(|&(key, n)| (key.to_owned(), n)).collect()
}

const LOG: &str = r#"10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a?x=1 HTTP/1.1" 200 2326 "-" "curl/8"
10.0.0.2 - bob [10/Oct/2000:13:55:37 -0700] "GET /a HTTP/1.1" 304 - "http://x/" "curl/8"
10.0.0.1 - - [10/Oct/2000:14:00:00 -0700] "POST /b HTTP/1.1" 200 150 "-" "-"
"#;

/// Every command shows the parts of a key alike, and takes them as it shows them.
#[test]
fn keys_of_several_parts_are_kept_by_a_state() {
    let folder = Folder::with("t.csv", "user,\"page, name\",n\nalice,/a,1\nbob,\"/x,y\",1\nalice,/a,1\n");
    folder.write("more.csv", "n,user,\"page, name\"\n1,alice,/a\n");
    let count = ["count", "t.csv", "--format", "csv:user,\"page, name\"", "--seed", "1"];
    let run = folder.run_of(&[&count[..], &["--save", "s.ucl", "--json", "--query", "bob,\"/x,y\""]].concat());
    let answer = run.json();
    assert_eq!(top(&answer), pairs(&[("alice,/a", 2), ("bob,\"/x,y\"", 1)]));
    assert_eq!(answer["queries"][0]["estimate"], 1);
    assert_eq!(folder.run("inspect s.ucl --json").json()["format"], "csv:user,\"page, name\"");
    assert_eq!(folder.run("query s.ucl alice,/a --json").json()["estimate"], 2);
    assert_eq!(folder.run_of(&["query", "s.ucl", "\"alice\",\"/a\"", "--json"]).json()["estimate"], 2);
    let wrong = folder.run("query s.ucl alice").failed(2);
    assert!(wrong.contains("give 2 parts with commas between them"), "{wrong}");
    // The columns of another file are found by their names.
    folder.run("count --resume s.ucl more.csv --save s.ucl").fine();
    let text = folder.run("top s.ucl").fine();
    assert!(text.contains(" 1  alice,/a           3         3        3 "), "{text}");
    folder.run_of(&[&count[..], &["--save", "b.ucl"]].concat()).fine();
    folder.run("merge s.ucl b.ucl -o both.ucl").fine();
    assert_eq!(folder.run("query both.ucl alice,/a --json").json()["estimate"], 5);
    let csv = folder.run_of(&[&count[..], &["--all"]].concat()).fine();
    assert!(csv.contains("\"alice,/a\",2,2,2,") && csv.contains("\"bob,\"\"/x,y\"\"\",1,1,1,"), "{csv}");
}

#[test]
fn web_logs_and_expressions() {
    let folder = Folder::with("access.log", LOG);
    let of = |args: &[&str]| folder.run_of(&[&["count", "access.log", "--json", "--seed", "1"], args].concat()).json();
    assert_eq!(top(&of(&["--format", "combined:path"])), pairs(&[("/a", 2), ("/b", 1)]));
    let both = of(&["--format", "combined:ip,status", "--weight", "bytes"]);
    assert_eq!(top(&both), pairs(&[("10.0.0.1,200", 2476)]));
    assert_eq!(both["zero_weight"], 1);
    let found = of(&["--format", r"regex:(?<key>/\w+)\?x=(?<n>\d)", "--weight", "n"]);
    assert_eq!(
        (top(&found), &found["warnings"]),
        (pairs(&[("/a", 1)]), &json!(["2 records without a key: no match, or null"]))
    );
    let said = folder.run_of(&["count", "access.log", "--format", "regex:nothing", "--all"]);
    assert_eq!((said.code, said.err.as_str()), (0, "ucl: note: 3 records without a key, not counted\n"));
}

#[test]
fn parts_of_packets() {
    let (a, b) = (([10, 0, 0, 1], 443), ([10, 0, 1, 2], 51_234));
    let folder = Folder::with("net.pcap", capture(&[tcp4(a, b, 10), tcp4(b, a, 0), tcp6(1, 2)]));
    let of = |format: &str| top(&folder.run(&format!("count net.pcap --format {format} --json --seed 1")).json());
    let flow = "10.0.0.1:443 <> 10.0.1.2:51234 tcp";
    assert_eq!(of("pcap:flow"), pairs(&[(flow, 2), ("[::a]:1 <> [::b]:2 tcp", 1)]));
    assert_eq!(of("pcap:proto"), pairs(&[("tcp", 3)]));
    let mut nets = of("pcap:src/23,dst/8/16");
    nets.sort();
    assert_eq!(nets, pairs(&[("10.0.0.0/23,10.0.0.0/8", 2), ("::/48,::/16", 1)]));
    folder.run("count net.pcap --format pcap:flow --save s.ucl --seed 1").fine();
    let turned = folder.run_of(&["query", "s.ucl", "10.0.1.2:51234 <> 10.0.0.1:443 tcp", "--json"]).json();
    assert_eq!((&turned["key"], &turned["estimate"]), (&json!(flow), &json!(2)));
    assert_eq!(folder.run("count net.pcap --format pcap:src/24 --prefix 10. --json").json()["prefixes"][0]["keys"], 2);
}

#[test]
fn tables_with_other_delimiters() {
    let folder = Folder::with("t.csv", "name;n\n\"a;b\";2\nc;3\n");
    folder.write("users", "root:x:0\nbin:x:1\n");
    let args = ["count", "t.csv", "--format", "csv:name", "--weight", "n", "--delimiter", ";", "--seed", "1"];
    let answer = folder.run_of(&[&args[..], &["--json", "--save", "s.ucl"]].concat()).json();
    assert_eq!(top(&answer), pairs(&[("c", 3), ("a;b", 2)]));
    // A state remembers it.
    assert_eq!(folder.run("count t.csv --resume s.ucl --json").json()["weight"], 10);
    let answer = folder.run("count users --format field:3,1 --delimiter : --json --seed 1").json();
    assert_eq!(answer["keys"], 2);
    assert_eq!(
        folder.run("count users --format field:3 --delimiter : --prefix 0 --json").json()["prefixes"][0]["keys"],
        1
    );
    folder.write("quotes.tsv", "q\n\"never closed\n5 pipe\n");
    let said = folder.run("count quotes.tsv --format tsv:q").failed(1);
    assert!(said.contains("--no-quotes reads quotes as ordinary characters"), "{said}");
    let answer = folder.run("count quotes.tsv --format tsv:q --no-quotes --json").json();
    assert_eq!(answer["items"], 2);
}

/// Which column is meant has to be said, and how is shown.
#[test]
fn tables_without_a_format_list_their_columns() {
    let folder = Folder::with("sales.csv", "product,amount\ntea,1\n");
    folder.write("german.csv", "Name;Betrag in €;3\na;1;2\n");
    folder.write("rows.jsonl", "{\"user\":{\"id\":7,\"name\":\"x\"},\"ok\":true}\n");
    folder.write("ids.jsonl", "{\"id\":7}\n");
    folder.write("words.csv", "word\ntea\ntea\n");
    folder.write("hostile.csv", "a\x1b[31m,b\n1,2\n");
    let message = |file: &str| format!("$ ucl count {file}\n{}", folder.run(&format!("count {file}")).failed(2));
    insta::assert_snapshot!(
        ["sales.csv", "german.csv", "rows.jsonl", "ids.jsonl", "hostile.csv"].map(message).join("\n")
    );
    assert_eq!(folder.run("count sales.csv --format lines --json").json()["items"], 2);
    assert_eq!(folder.run("count sales.csv --raw --json").json()["items"], 2);
    let Run { code, out, err } = folder.run("count words.csv --json --seed 1");
    assert!(err.starts_with("ucl: note: words.csv is a table with one column: --format csv:1 is used\n"), "{err}");
    assert_eq!((code, top(&serde_json::from_str(&out).unwrap())), (0, pairs(&[("tea", 2)])));
}

#[test]
fn folders_and_patterns_are_inputs() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path().join("logs/old")).unwrap();
    folder.write("logs/b.log", "b\n");
    folder.write("logs/a.log", "a\na\n");
    folder.write("logs/.hidden", "hidden\n");
    folder.write("logs/old/c.log", "a\n");
    let answer = folder.run("count logs --json --seed 1").json();
    assert_eq!(top(&answer), pairs(&[("a", 3), ("b", 1)]));
    assert_eq!(folder.run("count logs/*.log --json --seed 1").json()["items"], 3);
    // What cannot be read is left out, and told of.
    folder.write("logs/z.zip", b"PK\x03\x04 and so on\n");
    let run = folder.run("count logs --json --seed 1");
    assert_eq!(
        (run.code, run.err.as_str()),
        (0, "ucl: note: 3 files to read, 1 skipped: logs/z.zip is a zip archive\n")
    );
    // Named by itself, it is an error.
    assert_eq!(folder.run("count logs logs/z.zip").code, 1);
    let (a, b) = (([10, 0, 0, 1], 443), ([10, 0, 0, 2], 51_234));
    std::fs::create_dir(folder.path().join("net")).unwrap();
    folder.write("net/1.pcap", capture(&[tcp4(a, b, 10)]));
    folder.write("net/2.pcap", capture(&[tcp4(a, b, 10)]));
    let run = folder.run("count net --json --seed 1");
    assert!(run.err.contains("net/1.pcap and the others are packet captures"), "{}", run.err);
    assert_eq!(serde_json::from_str::<Value>(&run.out).unwrap()["items"], 2);
}

#[test]
fn output_to_standard_output() {
    let folder = Folder::with("words", "tea\nmilk\ntea\n");
    let csv = folder.run("count words --seed 1 -o -").fine();
    assert_eq!(csv, folder.run("count words --seed 1 --all").fine());
    let jsonl = folder.run("count words --seed 1 -o -.jsonl").fine();
    assert_eq!(serde_json::from_str::<Value>(jsonl.lines().next().unwrap()).unwrap()["key"], "tea");
    let parquet = folder.command("count words --seed 1 -o -.parquet").output().unwrap().stdout;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no file of that name");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_comes_back() {
    let folder = Folder::with("words", "tea\nmilk\ntea\n");
    folder.run("count words --seed 1 -o counts.parquet").fine();
    let said = folder.run("count counts.parquet").failed(2);
    assert!(said.contains("key, estimate, lower, upper, source") && said.contains("--format parquet:key"), "{said}");
    let args = "count counts.parquet --format parquet:key,source --weight estimate --json --seed 1 --save s.ucl";
    assert_eq!(top(&folder.run(args).json()), pairs(&[("tea,decoded", 2), ("milk,decoded", 1)]));
    assert_eq!(folder.run("query s.ucl tea,decoded --json").json()["estimate"], 2);
    let none = folder.run("count counts.parquet --format parquet:kay").failed(1);
    assert!(none.contains("has no column `kay`; its columns are: key, estimate"), "{none}");
    // Damage anywhere is an error, and no panic.
    let whole = folder.read("counts.parquet");
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        folder.write("damaged.parquet", &damaged);
        let run = folder.run("count damaged.parquet --format parquet:1 --json");
        assert!([0, 1].contains(&run.code), "{at}: {}", run.err);
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_is_named_with_what_to_type() {
    let folder = Folder::with("words", "tea\nmilk\ntea\n");
    folder.run("count words --seed 1 -o counts.parquet").fine();
    let said = folder.run("count counts.parquet").failed(1);
    assert!(
        said.contains("counts.parquet is a Parquet file: this build cannot read it; type `cargo install"),
        "{said}"
    );
    let said = folder.run("count counts.parquet --format parquet:key").failed(2);
    assert!(said.contains("build it with `--features parquet`"), "{said}");
}
