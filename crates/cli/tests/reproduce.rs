//! `ucl reproduce` as a person meets it.

mod common;

use common::Folder;

#[test]
fn an_experiment_from_the_command_line() {
    let folder = Folder::new();
    let run = folder.run("reproduce convergence --slice --out results");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("convergence: 1 job to run"), "{}", run.err);
    assert!(
        run.out.contains("a generated stand-in") && run.out.ends_with("Report: results/report.html\n"),
        "{}",
        run.out
    );
    for file in ["report.html", "convergence/loss.svg", "convergence/convergence.csv"] {
        assert!(folder.path().join("results").join(file).exists(), "{file}");
    }
    let again = folder.run("reproduce convergence --slice --out results");
    assert!(again.err.contains("0 jobs to run, 1 already stored"), "{}", again.err);
}

#[test]
fn what_cannot_be_run() {
    let folder = Folder::new();
    let unknown = folder.run("reproduce accuracy").failed(2);
    assert!(unknown.contains("there is no experiment 'accuracy'; there are accuracy-real, "), "{unknown}");
    assert!(folder.run("reproduce").failed(2).contains("name an experiment or give --all"));
    let nowhere = folder.run("reproduce theory --quick --data-dir none --out results").failed(1);
    assert!(nowhere.starts_with("ucl: cannot read none: "), "{nowhere}");
}
