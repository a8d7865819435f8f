//! States that become one.

mod common;

use common::Folder;
use serde_json::Value;

fn estimates(folder: &Folder, state: &str) -> Vec<(String, u64)> {
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        (row["key"].as_str().unwrap().to_owned(), row["estimate"].as_u64().unwrap())
    };
    folder.run(&format!("top {state} --json")).fine().lines().map(row).collect()
}

#[test]
fn what_was_counted_apart_adds_up() {
    let folder = Folder::with("monday", "tea\n".repeat(30) + &"milk\n".repeat(5));
    folder.write("tuesday", "tea\n".repeat(12) + &"sugar\n".repeat(20));
    folder.write("wednesday", "milk\n".repeat(3));
    for decoder in ["delta", "em", "learned"] {
        for day in ["monday", "tuesday", "wednesday"] {
            folder
                .run(&format!("count {day} --seed 7 --decoder {decoder} --interval 9 --save {day}.ucl --json"))
                .json();
        }
        let said = folder.run("merge monday.ucl tuesday.ucl wednesday.ucl -o all.ucl").fine();
        assert_eq!(said, "merged 3 states into all.ucl: 70 items, 3 known keys\n", "{decoder}");
        let sums = [("tea", 42), ("sugar", 20), ("milk", 8)].map(|(key, count)| (key.to_owned(), count));
        assert_eq!(estimates(&folder, "all.ucl"), sums, "{decoder}");
        // It goes on, and may take the place of one it came from.
        folder.run("count --resume all.ucl wednesday --save all.ucl --json").json();
        folder.run("merge all.ucl wednesday.ucl --out all.ucl").fine();
        assert_eq!(estimates(&folder, "all.ucl")[2], ("milk".to_owned(), 14), "{decoder}");
    }
}

#[test]
fn what_was_not_counted_alike_is_refused() {
    let folder = Folder::with("words", "tea 2\ntea 3\n");
    folder.run("count words --format field:1 --seed 1 --save a.ucl").fine();
    let others = [
        "--format field:1 --seed 2",
        "--format field:1 --seed 1 --memory 32KB",
        "--format field:1 --seed 1 --decoder em --interval 100 --counter-bits 8",
        "--format field:1 --seed 1 --heavy elastic",
        "--format field:1 --seed 1 --key-bytes 4",
        "--format fimi --seed 1",
        "--format field:1 --weight 2 --seed 1",
        "--format field:2 --seed 1",
        "--format lines --seed 1",
    ];
    let message = |options: &str| {
        folder.run(&format!("count words {options} --on-error skip --save b.ucl --json")).json();
        let args = "merge a.ucl b.ucl -o c.ucl";
        format!("$ ucl count words {options} --save b.ucl; ucl {args}\n{}\n", folder.run(args).failed(2).trim_end())
    };
    insta::assert_snapshot!(others.map(message).join("\n"));
    assert!(!folder.path().join("c.ucl").exists());
}

/// What --resume refuses, merge refuses, and the other way round.
#[test]
fn merge_and_resume_have_one_rule() {
    let folder = Folder::with("words", "1 2\n1 3\n");
    let readings = ["--format lines", "--format field:1", "--format field:2", "--format field:1 --weight 2"];
    for (i, reading) in readings.iter().enumerate() {
        folder.run(&format!("count words {reading} --seed 1 --save {i}.ucl")).fine();
    }
    for (i, a) in readings.iter().enumerate() {
        for (j, b) in readings.iter().enumerate() {
            let code = if i == j { 0 } else { 2 };
            assert_eq!(folder.run(&format!("merge {i}.ucl {j}.ucl -o sum.ucl")).code, code, "{a}, {b}");
            // What is not said is as in the state: a weight that it has cannot be taken away.
            let resumed = folder.run(&format!("count --resume {i}.ucl words {b}")).code;
            let unsaid = a.starts_with(b);
            assert_eq!(resumed, if unsaid { 0 } else { code }, "{a}, {b}");
        }
    }
}

#[test]
fn files_that_cannot_be_merged() {
    let folder = Folder::with("words", "tea\n");
    folder.run("count words --seed 1 --save a.ucl").fine();
    let message = |(args, code): (&str, i32)| format!("$ ucl {args}\n{}\n", folder.run(args).failed(code).trim_end());
    let cases = [
        ("merge a.ucl words -o c.ucl", 1),
        ("merge a.ucl none.ucl -o c.ucl", 1),
        ("merge a.ucl a.ucl -o none/c.ucl", 1),
        ("merge a.ucl -o c.ucl", 2),
        ("merge a.ucl a.ucl", 2),
    ];
    insta::assert_snapshot!(cases.map(message).join("\n"));
}
