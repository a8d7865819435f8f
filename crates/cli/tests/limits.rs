//! At the limits of weights, sizes and memory: a right answer or a clear message, never a panic.

mod common;

use common::Folder;

/// 2,147,483,647 was said before, with a range that did not have the truth in it.
#[test]
fn count_sketch_counts_an_item_of_the_largest_weight() {
    let folder = Folder::new();
    for bits in [4, 8, 16, 32] {
        let args = format!(
            "count --format csv:k --weight w --base count-sketch --decoder cm --seed 1 --audit --json --counter-bits {bits}"
        );
        let run = folder.pipe("k,w\na,9223372036854775807\n", &args);
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(run.out.contains("9223372036854775807"), "{bits} bits: {}", run.out);
        assert!(!run.out.contains("2147483647"), "{bits} bits: {}", run.out);
    }
}

/// More counters than a remote reader takes by default.
#[test]
fn a_sketch_of_32_megabytes_is_measured() {
    let run = Folder::new().run("eval zipf:1.1:1000:100 --method ucl-em --memory 32MB");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.out.contains("ucl-em"), "{}", run.out);
}

#[test]
fn a_budget_beyond_all_limits_is_refused() {
    let folder = Folder::with("log", "a\n");
    let run = folder.run("count log --memory 1TB");
    assert_eq!((run.code, &*run.out), (2, ""), "{}", run.err);
    let start = "ucl: a budget of 1024GB is too large for one sketch: its table would have ";
    assert!(run.err.starts_with(start), "{}", run.err);
}

/// The system refuses the memory: that is a message, where the process was aborted before.
#[cfg(target_os = "linux")]
#[test]
fn running_out_of_memory_is_an_error() {
    let folder = Folder::with("log", "a\n");
    let ucl = folder.command("").get_program().to_owned();
    for decoder in ["cm", "delta"] {
        let script = format!("ulimit -v 400000; exec \"$0\" count log --memory 500MB --threads 1 --decoder {decoder}");
        let output =
            std::process::Command::new("sh").args(["-c", &script]).arg(&ucl).current_dir(folder.path()).output();
        let run = common::Run::from(output.unwrap());
        assert_eq!((run.code, &*run.out), (2, ""), "{decoder}: {}", run.err);
        assert!(run.err.starts_with("ucl: out of memory: a table of "), "{decoder}: {}", run.err);
    }
}

/// Two runs that save to a link whose target is not there yet: the target is written, the link
/// stays.
#[cfg(unix)]
#[test]
fn a_state_is_saved_where_a_link_leads() {
    let folder = Folder::with("log", "a\nb\na\n");
    std::fs::create_dir(folder.path().join("states")).unwrap();
    std::os::unix::fs::symlink("states/monday.ucl", folder.path().join("today.ucl")).unwrap();
    for resumed in ["", "--resume today.ucl"] {
        let run = folder.run(&format!("count log {resumed} --save today.ucl"));
        assert_eq!(run.code, 0, "{}", run.err);
        assert!(std::fs::symlink_metadata(folder.path().join("today.ucl")).unwrap().is_symlink());
        assert!(folder.path().join("states/monday.ucl").is_file());
    }
}

/// It was noticed only after everything had been counted.
#[cfg(unix)]
#[test]
fn a_place_where_no_state_can_be_is_noticed_before_anything_is_counted() {
    let folder = Folder::with("log", "a\nb\na\n");
    std::os::unix::fs::symlink("no-such-folder/today.ucl", folder.path().join("today.ucl")).unwrap();
    for (place, why) in [("today.ucl", "there is no such folder"), ("/dev/null", "it is not a regular file")] {
        let run = folder.run(&format!("count log --save {place}"));
        assert_eq!((run.code, run.out, run.err), (1, String::new(), format!("ucl: cannot write {place}: {why}\n")));
    }
}

/// It was read until the memory was full, and the process aborted.
#[cfg(target_os = "linux")]
#[test]
fn a_query_file_without_lines_is_refused() {
    let folder = Folder::with("log", "a\n");
    let run = folder.run("count log --query-file /dev/zero");
    assert_eq!((run.code, &*run.out), (2, ""), "{}", run.err);
    assert!(run.err.starts_with("ucl: /dev/zero, line 1: the line is longer than 16777216 bytes"), "{}", run.err);
}

/// Ten items a key were more than 64 bits hold.
#[test]
fn more_keys_than_any_stream_has_are_refused() {
    let run = Folder::new().run("plan --expected-keys 18446744073709551615");
    assert_eq!((run.code, &*run.out), (2, ""), "{}", run.err);
    assert!(run.err.contains("keys cannot occur in a stream of 2000000 items: raise --items"), "{}", run.err);
}

/// A missing input is noticed before the others are read.
#[test]
fn a_missing_input_fails_before_anything_is_read() {
    let folder = Folder::with("log", "a\n");
    let run = folder.run("count log no-such-file --save state.ucl");
    assert_eq!((run.code, &*run.out), (1, ""), "{}", run.err);
    assert!(run.err.starts_with("ucl: cannot open no-such-file"), "{}", run.err);
    assert!(!folder.path().join("state.ucl").exists());
}
