//! Saving, going on, and asking later.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use common::{Folder, capture, tcp4};
use serde_json::{Value, json};

fn words() -> String {
    let word = |(i, word): (usize, &str)| format!("{word}\n").repeat(64 >> i);
    ["apple", "banana", "cherry", "date", "elder", "fig", "grape"].into_iter().enumerate().map(word).collect()
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// An answer without what differs from run to run.
fn timeless(mut answer: Value) -> Value {
    answer["seconds"].take();
    answer["peak_resident_bytes"].take();
    // Beside the sketch, vectors may have room to spare or not.
    answer["control"].take();
    answer
}

#[test]
fn the_limit_of_the_uplink_is_shown() {
    let folder = Folder::new();
    folder.run("count zipf:1.1:60000:8000 --memory 16KB --uplink 0.5 --seed 1 --save s.ucl").fine();
    let text = folder.run("inspect s.ucl").fine();
    assert!(text.contains(" uplink         at most 0.500 bytes per item, "), "{text}");
    let limit = &folder.run("inspect s.ucl --json").json()["uplink"];
    assert_eq!(limit["bytes_per_item"], 0.5);
    assert!((20_000..=30_000).contains(&limit["spent"].as_u64().unwrap()), "{limit}");
}

#[test]
fn a_state_can_be_asked_and_looked_at() {
    let folder = Folder::with("words", words());
    folder.run("count words --seed 1 --save s.ucl").fine();
    let mut text = String::new();
    for args in ["query s.ucl apple fig nothing", "top s.ucl -n 3", "inspect s.ucl"] {
        text += &format!("$ ucl {args}\n{}\n", folder.run(args).fine());
    }
    insta::assert_snapshot!(text);
    let rows = lines(&folder.run("query s.ucl apple nothing --json").fine());
    assert_eq!(
        rows[0],
        json!({"key": "apple", "estimate": 64, "lower": rows[0]["lower"], "upper": 64, "source": rows[0]["source"]})
    );
    assert_eq!((&rows[1]["estimate"], &rows[1]["source"]), (&json!(0), &json!("unknown")));
    let piped = folder.pipe("fig\r\n\ngrape\n", "query s.ucl - apple --json").fine();
    let keys: Vec<Value> = lines(&piped).into_iter().map(|mut row| row["key"].take()).collect();
    assert_eq!(keys, ["fig", "grape", "apple"]);
    let top = lines(&folder.run("top s.ucl -n 2 --json").fine());
    assert_eq!((top.len(), &top[0]["key"], &top[1]["estimate"]), (2, &json!("apple"), &json!(32)));
    let inspected = folder.run("inspect s.ucl --json").json();
    assert_eq!((&inspected["version"], &inspected["items"], &inspected["keys"]), (&json!(3), &json!(127), &json!(7)));
    assert_eq!(inspected["bytes"], folder.read("s.ucl").len());
    assert_eq!(inspected["labels"], json!({"format": "lines", "memory": "65536"}));
}

#[test]
fn going_on_is_as_never_having_stopped() {
    let all = words().repeat(3);
    let (one, two) = all.split_at(all.len() / 3 + "apple\n".len() * 7);
    let folder = Folder::with("both", &all);
    folder.write("one", one);
    folder.write("two", two);
    for decoder in ["delta", "em", "cm", "learned"] {
        let options = format!("--seed 1 --decoder {decoder} --interval 50 --memory 8KB --json");
        let straight = folder.run(&format!("count both {options} --save straight.ucl")).json();
        folder.run(&format!("count one {options} --save s.ucl")).json();
        let resumed = folder.run("count --resume s.ucl two --json --save s.ucl").json();
        assert_eq!(timeless(straight), timeless(resumed), "{decoder}");
        assert!(folder.read("straight.ucl") == folder.read("s.ucl"), "{decoder}");
        let asked = lines(&folder.run("query s.ucl apple --json").fine());
        assert_eq!(asked[0], lines(&folder.run("query straight.ucl apple --json").fine())[0], "{decoder}");
    }
}

#[test]
fn questions_about_time_go_on() {
    let all = words().repeat(3);
    let (one, two) = all.split_at(all.len() / 3 + "apple\n".len() * 7);
    let folder = Folder::with("both", &all);
    folder.write("one", one);
    folder.write("two", two);
    let options = "--interval 20 --last 3 --changes --json";
    let straight = folder.run(&format!("count both --seed 1 {options}")).json();
    folder.run(&format!("count one --seed 1 {options} --save s.ucl")).json();
    let resumed = folder.run(&format!("count --resume s.ucl two {options}")).json();
    assert_eq!(straight["last"], resumed["last"]);
    assert_eq!(straight["changes"], resumed["changes"]);
    assert!(!resumed["last"]["keys"].as_array().unwrap().is_empty());
}

/// Keys that only the heavy part has seen so far are known, too, whoever is asked.
#[test]
fn every_command_knows_as_many_keys() {
    let folder = Folder::new();
    let counted = folder.run("count zipf:1.1:1000:500 --seed 1 --save s.ucl --json").json()["keys"].take();
    assert_eq!(folder.run("inspect s.ucl --json").json()["keys"], counted);
    assert_eq!(folder.run("top s.ucl -n 1000 --json").fine().lines().count() as u64, counted);
    let merged = folder.run("merge s.ucl s.ucl -o both.ucl").fine();
    assert!(merged.ends_with(&format!(" {counted} known keys\n")), "{merged}");
}

/// Several inputs go on in the one data plane of the state; several data planes are saved as one.
#[test]
fn several_inputs_go_on_and_are_saved() {
    let folder = Folder::with("one", words());
    folder.write("two", words());
    folder.run("count one two --seed 1 --threads 2 --save s.ucl --json").json();
    let resumed = folder.run("count --resume s.ucl one two --threads 2 --save s.ucl --json").json();
    assert_eq!((&resumed["planes"], &resumed["items"]), (&Value::Null, &json!(4 * 127)));
    let asked = lines(&folder.run("query s.ucl apple grape --json").fine());
    assert_eq!((&asked[0]["estimate"], &asked[1]["estimate"]), (&json!(256), &json!(4)));
    // States in between are of all inputs in order.
    let saved = folder.run("count one two --seed 1 --threads 2 --save s.ucl --save-every 100 --json").json();
    assert_eq!(saved["planes"], Value::Null);
}

#[test]
fn a_state_knows_how_its_keys_are_written() {
    let (a, b) = (([10, 0, 0, 1], 443), ([10, 0, 0, 2], 51_234));
    let folder = Folder::with("net.pcap", capture(&[tcp4(a, b, 10), tcp4(b, a, 3), tcp4(a, b, 0)]));
    folder.run("count net.pcap --format pcap --key-bytes 13 --weight bytes --save s.ucl --json").json();
    let flow = "10.0.0.1:443 > 10.0.0.2:51234 tcp";
    let asked = |folder: &Folder| lines(&folder.run_of(&["query", "s.ucl", flow, "--json"]).fine()).swap_remove(0);
    assert_eq!((&asked(&folder)["key"], &asked(&folder)["estimate"]), (&json!(flow), &json!(118)));
    folder.run("count --resume s.ucl net.pcap --save s.ucl --json").json();
    assert_eq!(asked(&folder)["estimate"], 236);

    folder.write("basket", "1 2 3 beer\n1 2\n1\n");
    folder.run("count basket --format fimi --mode delta --save s.ucl --json").json();
    let top = lines(&folder.run("top s.ucl --json").fine());
    assert_eq!(top.iter().map(|row| row["key"].as_str().unwrap()).collect::<Vec<_>>(), ["1", "2", "3", "beer"]);
    folder.run("count zipf:1.1:1000:50 --seed 3 --save s.ucl --json").json();
    folder.run("count --resume s.ucl zipf:1.1:1000:50 --json").json();
}

#[test]
fn a_long_run_saves_as_it_goes() {
    let folder = Folder::new();
    let mut child = folder
        .command("count --seed 1 --save s.ucl --save-every 60 --every 130 --top 1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all((0..130).map(|i| format!("k{}\n", i % 9)).collect::<String>().as_bytes()).unwrap();
    // The answer after 130 items comes after the state of 120. Then the program has no time to end
    // well.
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(folder.run("inspect s.ucl --json").json()["items"], 120);
}

#[test]
fn what_contradicts_the_state_is_named() {
    let folder = Folder::with("words", words());
    folder.run("count words --seed 1 --mode delta --save s.ucl").fine();
    let cases = [
        "--memory 32KB",
        "--decoder em",
        "--base count-sketch",
        "--heavy elastic",
        "--key-bytes 4",
        "--expected-keys 100",
        "--interval 5",
        "--counter-bits 16",
        "--seed 2",
        "--format field:1",
        "--format field:1 --weight 2",
        "--audit",
        "--save-every 5",
        "--last 4",
        "--keep 2",
    ];
    let message = |args: &str| {
        let args = format!("count --resume s.ucl words {args}");
        format!("$ ucl {args}\n{}\n", folder.run(&args).failed(2).trim_end())
    };
    insta::assert_snapshot!(cases.map(message).join("\n"));
    // The same again is no contradiction.
    folder.run("count --resume s.ucl words --seed 1 --memory 64KB --decoder delta --format lines --json").json();
}

#[test]
fn files_that_cannot_be_used() {
    let folder = Folder::with("words", words());
    folder.run("count words --seed 1 --save good.ucl").fine();
    let good = folder.read("good.ucl");
    folder.write("cut.ucl", &good[..good.len() / 2]);
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    folder.write("damaged.ucl", &damaged);
    let mut newer = good.clone();
    newer[8] = 9;
    folder.write("newer.ucl", &newer);
    std::fs::create_dir(folder.path().join("folder")).unwrap();
    let cases = [
        "query words apple",
        "query no-such-file apple",
        "top damaged.ucl",
        "inspect cut.ucl",
        "inspect newer.ucl",
        "count --resume words words",
        "count words --save folder",
        "count words --save no-such-folder/s.ucl",
    ];
    let message = |args: &str| {
        let error = folder.run(args).failed(1).replace(&good.len().to_string(), "[all]");
        format!("$ ucl {args}\n{}\n", error.replace(&(good.len() / 2).to_string(), "[half]").trim_end())
    };
    insta::assert_snapshot!(cases.map(message).join("\n"));
}

/// Killed at whatever moment of a save: the file is an old state or a new one, whole, and the next
/// run can go on with it.
#[test]
fn killed_while_saving_leaves_a_whole_file() {
    let folder = Folder::new();
    let save = |items: u64| format!("count zipf:1.1:{items}:3000 --seed 1 --memory 16KB --save s.ucl");
    folder.run(&save(1_000)).fine();
    let items = |folder: &Folder| folder.run("inspect s.ucl --json").json()["items"].as_u64().unwrap();
    assert_eq!(items(&folder), 1_000);
    let mut killed = 0;
    for round in 0..20u64 {
        // A save after every 200 items: whenever the signal comes, one is likely under way.
        let args = save(2_000_000) + " --save-every 200";
        let mut child = folder.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(5 + 7 * round));
        killed += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let found = items(&folder);
        assert!(found == 1_000 || found == 2_000_000 || found.is_multiple_of(200), "{found}");
    }
    assert!(killed > 0, "every run had ended before it was killed");
    // Leftovers of the killed are in nobody's way.
    folder.run("count --resume s.ucl zipf:1.1:500:3000 --save s.ucl").fine();
}

/// A state that version 1 wrote: sketches of the library's tests, which are kept for every version.
fn of_an_earlier_version(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../ucl-sketch/tests/golden/{name}.ucl", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn a_state_of_an_earlier_version_says_that_it_keeps_its_hash_functions() {
    const SAID: &str = "the state uses those of an earlier version";
    let folder = Folder::with("old.ucl", of_an_earlier_version("v1-em"));
    folder.write("more", "one\ntwo\n");
    // Every command that goes on with it or looks at it says so, in text and in JSON.
    let inspected = folder.run("inspect old.ucl").fine();
    let line = inspected.lines().find(|line| line.starts_with(" hashes ")).expect("a line about hashes");
    assert!(line.contains(SAID), "{inspected}");
    assert_eq!(folder.run("inspect old.ucl --json").json()["hashing"], 1);
    for args in ["count --resume old.ucl more --save new.ucl --json", "count --resume new.ucl more --json"] {
        let run = folder.run(args);
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(run.err.contains("hash functions: ") && run.err.contains(SAID), "{args}: {}", run.err);
        let answer: Value = serde_json::from_str(&run.out).unwrap();
        let warnings = answer["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|warning| warning.as_str().unwrap().contains(SAID)), "{answer}");
    }
    // Saved anew, it is of this version, with the functions it had.
    let saved = folder.run("inspect new.ucl --json").json();
    folder.run("count more --seed 1 --save fresh.ucl").fine();
    let fresh = folder.run("inspect fresh.ucl --json").json();
    assert_eq!((&saved["version"], &saved["hashing"]), (&fresh["version"], &json!(1)));
    // One that began with this version says nothing of the kind.
    assert!(!folder.run("inspect fresh.ucl").fine().contains(SAID));
    assert_eq!(fresh["hashing"], 2);
    assert_eq!(folder.run("count --resume fresh.ucl more --json").json()["warnings"], json!([]));
}

#[test]
fn states_of_different_hash_functions_do_not_merge() {
    let folder = Folder::with("old.ucl", of_an_earlier_version("v1-em"));
    folder.write("carried-on.ucl", of_an_earlier_version("v2-em-earlier-hashes"));
    folder.write("new.ucl", of_an_earlier_version("v2-em"));
    for old in ["old.ucl", "carried-on.ucl"] {
        for args in [format!("merge {old} new.ucl -o both.ucl"), format!("merge new.ucl {old} -o both.ucl")] {
            let message = folder.run(&args).failed(2);
            assert!(message.contains("hash functions"), "{args}: {message}");
            assert!(!folder.path().join("both.ucl").exists(), "{args}");
        }
    }
    // What an earlier version began merges with itself, whichever version wrote it.
    let merged = folder.run("merge old.ucl carried-on.ucl -o both.ucl");
    assert_eq!(merged.code, 0, "{}", merged.err);
    assert_eq!(folder.run("inspect both.ucl --json").json()["hashing"], 1);
}
