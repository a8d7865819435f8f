//! The evaluation as a whole: every spec runs, a run can be stopped and resumed, the page of
//! results is not stale.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use ucl_lab::reproduce::{Event, Extent, ReproduceError, Reproduction, Scope, SpecResult, docs};
use ucl_lab::specs::{self, Spec};
use ucl_lab::{MethodRegistry, specs::ALL};

/// Runs a slice; how many jobs were started, and what came of all.
fn run(specs: Vec<&'static Spec>, out: &Path, resume: bool) -> (usize, Vec<SpecResult>) {
    let registry = MethodRegistry::standard();
    let reproduction = Reproduction {
        registry: &registry,
        specs,
        scope: Scope::new(Extent::Slice, None),
        data_dir: None,
        out: out.to_owned(),
        resume,
        workers: 2,
    };
    let started = AtomicUsize::new(0);
    let watch = |event: Event<'_>| {
        if matches!(event, Event::Start { .. }) {
            started.fetch_add(1, Ordering::Relaxed);
        }
    };
    let results = reproduction.run(&watch).unwrap();
    (started.into_inner(), results)
}

#[test]
fn every_spec_runs_and_has_something_to_show() {
    let folder = tempfile::tempdir().unwrap();
    let (_, results) = run(ALL.to_vec(), folder.path(), true);
    for result in &results {
        let name = result.spec.name;
        let failed: Vec<_> = result.outcomes.iter().filter_map(|outcome| outcome.error.as_ref()).collect();
        assert!(failed.is_empty() && !result.outcomes.is_empty(), "{name}: {failed:?}");
        assert!(result.outcomes.iter().all(|outcome| outcome.figure("bound_violations").is_none_or(|n| n == 0.0)));
        let shown = (result.spec.present)(&result.outcomes);
        assert!(!shown.figures.is_empty() && !shown.tables.is_empty(), "{name}");
        for table in shown.tables {
            let file = folder.path().join(name).join(format!("{}.csv", table.name));
            assert!(file.exists(), "{}", file.display());
            assert!(table.rows.iter().all(|row| row.len() == table.header.len()), "{name}: {}", table.title);
        }
        for (figure, ..) in shown.figures {
            let file = folder.path().join(name).join(format!("{figure}.svg"));
            assert!(file.exists(), "{}", file.display());
        }
    }
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(
        !page.contains("NaN") && !page.contains("src="),
        "every figure is one, and nothing is loaded from elsewhere"
    );
    assert!(page.contains("a generated stand-in"), "data that is not the paper's is labelled so");
    assert_eq!(std::fs::read_dir(folder.path().join("runs")).unwrap().count(), 1);
}

#[test]
fn a_stopped_run_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let spec = specs::find("ablation").unwrap();
    let (all, first) = run(vec![spec], folder.path(), true);
    assert_eq!(all, first[0].outcomes.len());
    let store = folder.path().join("jobs/ablation.jsonl");
    let text = std::fs::read_to_string(&store).unwrap();
    // Stopped while the last line was being written.
    std::fs::write(&store, &text[..text.len() - 20]).unwrap();
    let (again, second) = run(vec![spec], folder.path(), true);
    assert_eq!(again, 1);
    let errors = |results: &[SpecResult]| -> Vec<_> {
        results[0].outcomes.iter().map(|outcome| (outcome.job.clone(), outcome.figure("aae"))).collect()
    };
    assert_eq!(errors(&first), errors(&second), "a seed fixes everything");
    assert_eq!(run(vec![spec], folder.path(), true).0, 0);
    assert_eq!(run(vec![spec], folder.path(), false).0, all, "unless it is to be measured afresh");
}

#[test]
fn jobs_of_a_spec_have_names_of_their_own() {
    for extent in [Extent::Full, Extent::Quick, Extent::Slice] {
        for spec in ALL {
            let jobs: Vec<String> = (spec.jobs)(&Scope::new(extent, None)).iter().map(|job| job.id()).collect();
            let names: HashSet<&String> = jobs.iter().collect();
            assert!(!jobs.is_empty() && names.len() == jobs.len(), "{} {extent:?}", spec.name);
        }
    }
}

#[test]
fn methods_that_nobody_has_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut registry = MethodRegistry::default();
    registry.extend([*MethodRegistry::standard().find("cm").unwrap()]);
    let reproduction = Reproduction {
        registry: &registry,
        specs: vec![specs::find("accuracy-zipf").unwrap()],
        scope: Scope::new(Extent::Slice, None),
        data_dir: None,
        out: folder.path().to_owned(),
        resume: true,
        workers: 1,
    };
    let results = reproduction.run(&|_| ()).unwrap();
    assert_eq!(results[0].outcomes.len(), 1);
    assert!(results[0].missing.iter().any(|name| name == "elastic"), "{:?}", results[0].missing);
}

#[test]
fn a_stale_page_is_noticed() {
    let out = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (_, results) = run(vec![specs::find("convergence").unwrap()], out.path(), true);
    docs::update(dir.path(), &results).unwrap();
    assert_eq!(docs::check(dir.path()).unwrap(), Vec::<String>::new());
    let page = dir.path().join("results.md");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(
        text.contains("ucl reproduce convergence --slice --seeds 1") && text.contains("convergence-loss.svg"),
        "{text}"
    );
    std::fs::write(&page, "better figures").unwrap();
    let wrong = docs::check(dir.path()).unwrap();
    assert!(wrong.len() == 1 && wrong[0].contains("results.md is stale"), "{wrong:?}");

    let kept = dir.path().join("results/convergence.json");
    let data = std::fs::read_to_string(&kept).unwrap();
    let at = data.find("\"definition\":\"").unwrap() + "\"definition\":\"".len();
    std::fs::write(&kept, format!("{}0000{}", &data[..at], &data[at + 4..])).unwrap();
    assert!(docs::check(dir.path()).unwrap()[0].contains("measured by another definition"));
    std::fs::write(&kept, "{").unwrap();
    assert!(matches!(docs::check(dir.path()), Err(ReproduceError::Store { .. })));
}

/// Write it again with the command that the message names.
#[test]
fn the_results_page_is_up_to_date() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    assert_eq!(docs::check(&dir).unwrap(), Vec::<String>::new());
}
