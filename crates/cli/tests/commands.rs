//! The commands around counting: help, version, completions, the generated reference, the demo.

mod common;

use common::Folder;

#[test]
fn help() {
    let folder = Folder::new();
    insta::assert_snapshot!("help", folder.run("--help").fine());
    insta::assert_snapshot!("count_short_help", folder.run("count -h").fine());
    assert!(folder.run("count --help").fine().contains("zcat access.log.gz | ucl count"));
    assert!(folder.run("").failed(2).contains("Usage: ucl <COMMAND>"));
}

#[test]
fn version() {
    let folder = Folder::new();
    let number = format!("ucl {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(folder.run("-V").fine(), number);
    let long = folder.run("--version").fine();
    assert!(long.starts_with(&number), "{long}");
    let labels: Vec<&str> = long.lines().skip(1).filter_map(|line| Some(line.split_once(':')?.0)).collect();
    assert_eq!(labels, ["build", "features", "kernels", "paper"]);
    assert!(long.contains("without Ground Truth") && long.contains("Yuan"), "{long}");
}

#[test]
fn completions_for_every_shell() {
    let folder = Folder::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = folder.run(&format!("completions {shell}")).fine();
        assert!(script.contains("key-bytes") && script.contains("ucl"), "{shell}");
    }
}

/// The reference in the repository is what the commands say of themselves. Write it again with
/// `cargo run -p ucl-cli -- generate-docs docs`.
#[test]
fn the_reference_is_up_to_date() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    assert_eq!(Folder::new().run_of(&["generate-docs", docs, "--check"]).fine(), "");
}

#[test]
fn a_stale_reference_is_named() {
    let folder = Folder::new();
    folder.run("generate-docs docs --man man").fine();
    assert_eq!(folder.run("generate-docs docs --man man --check").fine(), "");
    let page = String::from_utf8(folder.read("man/ucl-count.1")).unwrap();
    assert!(page.contains("ucl\\-count") && page.contains("\\-\\-memory"), "{page}");
    folder.write("docs/cli.md", "old");
    insta::assert_snapshot!(folder.run("generate-docs docs --check").failed(1), @"ucl: docs/cli.md is stale: write it again with `ucl generate-docs`");
    std::fs::remove_file(folder.path().join("man/ucl.1")).unwrap();
    folder.run("generate-docs docs").fine();
    assert!(folder.run("generate-docs docs --man man --check").failed(1).contains("man/ucl.1"));
}

#[test]
fn the_demo_writes_a_page_that_needs_nothing_else() {
    let folder = Folder::new();
    let out = folder.run("demo --items 20000 --out report.html").fine();
    let methods: Vec<&str> =
        out.lines().skip_while(|line| !line.starts_with(" method")).take(7).map(str::trim).collect();
    let names =
        ["method", "Count-Min", "UCL, learned", "UCL, EM", "UCL, delta", "UCL, exact (default)", "exact hash map"];
    assert!(methods.iter().zip(names).all(|(line, name)| line.starts_with(name)), "{out}");
    assert!(out.ends_with("Report with plots: report.html\n"), "{out}");
    let page = String::from_utf8(folder.read("report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 3);
    assert!(!page.contains("http") && !page.contains("src="), "nothing is loaded from elsewhere");
    assert!(!page.contains("NaN") && !page.contains("inf\""), "every figure is one");
    assert!(folder.run("demo --items 20000 --out none/report.html").failed(1).starts_with("ucl: cannot write none/"));
}
