//! The paper's claims, one by one, beside the stored results of our experiments.
//!
//! A claim is *held* by a rule that is written here beside it, never by hand: the page is made from
//! `docs/results` as [`results.md`](crate::reproduce::docs) is. Four systems that the paper
//! compares with are unsound in its public code (Count Sketch and learned Count Sketch sign keys
//! alike, NitroSketch is that Count Sketch, Elastic Sketch is fed key totals), so a claim may hold
//! only against those. Each reason names the test that shows it.

mod list;

use list::CLAIMS;

use super::common::{mean, unbounded, values};
use crate::reproduce::Outcome;

/// What our results say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Yes,
    No,
    /// The paper's figures say so, but only because of baselines with errors.
    UnsoundOnly,
}

impl Held {
    fn name(self) -> &'static str {
        match self {
            Self::Yes => "held",
            Self::No => "not held",
            Self::UnsoundOnly => "held only against unsound baselines",
        }
    }

    fn of(held: bool) -> Self {
        if held { Self::Yes } else { Self::No }
    }

    /// By whether it holds against all baselines, and against those that are sound in the paper's
    /// code.
    fn against(all: bool, sound: bool) -> Self {
        match (all, sound) {
            (true, _) => Self::Yes,
            (false, true) => Self::UnsoundOnly,
            (false, false) => Self::No,
        }
    }
}

/// A claim of the paper.
struct Claim {
    /// The claim, in the paper's words as far as they fit.
    says: &'static str,
    /// Where it is: a section, or the label of a table or figure.
    place: &'static str,
    /// The experiments that measure it.
    specs: &'static [&'static str],
    /// What they say; `None` where they lack the figures.
    ours: fn(&Results<'_>) -> Option<(Held, String)>,
    /// The reason, with the test that shows it.
    why: &'static str,
}

/// The stored outcomes of all experiments.
struct Results<'a> {
    of: &'a dyn Fn(&str) -> Vec<Outcome>,
}

/// The systems that the paper compares with in its main tables.
const RIVALS: [&str; 7] = ["cm", "cs", "lcm", "lcs", "elastic", "univmon", "nitro"];
/// Those of them that are sound in the paper's public code, as far as we know.
const SOUND: [&str; 3] = ["cm", "lcm", "univmon"];
const OURS: &str = "ucl-learned";

/// One dataset and budget.
struct Cell<'o> {
    outcomes: &'o [Outcome],
    dataset: String,
    memory: String,
}

impl Cell<'_> {
    /// Of a network its own answers, where they were stored.
    fn figure(&self, method: &str, figure: &str) -> Option<f64> {
        let labels = [("dataset", &self.dataset[..]), ("memory", &self.memory[..]), ("method", method)];
        mean(self.outcomes, &labels, &unbounded(figure)).or_else(|| mean(self.outcomes, &labels, figure))
    }

    /// How many times ours the smallest error of some rivals is.
    fn lead(&self, rivals: &[&str], figure: &str) -> Option<f64> {
        let best = rivals.iter().filter_map(|rival| self.figure(rival, figure)).reduce(f64::min)?;
        Some(best / self.figure(OURS, figure)?)
    }
}

fn cells<'o>(outcomes: &'o [Outcome], keep: impl Fn(&str, f64) -> bool) -> Vec<Cell<'o>> {
    let mut cells = Vec::new();
    for dataset in values(outcomes, "dataset") {
        let memories = outcomes.iter().filter(|outcome| outcome.label("dataset") == dataset);
        let mut seen: Vec<&str> = Vec::new();
        for memory in memories.map(|outcome| outcome.label("memory")) {
            if !seen.contains(&memory) && keep(dataset, super::common::bytes(memory) / 1024.0) {
                cells.push(Cell { outcomes, dataset: dataset.to_owned(), memory: memory.to_owned() });
                seen.push(memory);
            }
        }
    }
    cells
}

/// Whether ours is nearly always the best, by one figure.
fn best_throughout(cells: &[Cell<'_>], figure: &str) -> Option<(Held, String)> {
    let leads = |cell: &Cell<'_>, rivals: &[&str]| cell.lead(rivals, figure).is_some_and(|lead| lead > 1.0);
    let wins = |rivals: &[&str]| cells.iter().filter(|cell| leads(cell, rivals)).count();
    let all = wins(&RIVALS);
    let sound = wins(&SOUND);
    let n = cells.iter().filter(|cell| cell.lead(&RIVALS, figure).is_some()).count();
    // "Nearly always": nine of ten.
    let nearly = |wins: usize| 10 * wins >= 9 * n;
    let text =
        format!("best in {all} of {n} cases by {}; against `cm`, `lcm`, `univmon` alone in {sound}", name(figure));
    (n > 0).then(|| (Held::against(nearly(all), nearly(sound)), text))
}

/// How many times ours each rival's figure is, on the mean over cells, beside what is printed.
fn ratios(cells: &[Cell<'_>], figure: &str, printed: [f64; 7]) -> Option<(Held, String)> {
    let ratio = |rival: &str| {
        let each = cells.iter().filter_map(|cell| Some(cell.figure(rival, figure)? / cell.figure(OURS, figure)?));
        let each: Vec<f64> = each.collect();
        (!each.is_empty()).then(|| each.iter().sum::<f64>() / each.len() as f64)
    };
    let mut text = Vec::new();
    let mut all = true;
    let mut sound = true;
    for (rival, printed) in RIVALS.iter().zip(printed) {
        let ours = ratio(rival)?;
        // Held: at least half of the lead that is printed.
        let held = ours >= printed / 2.0;
        all &= held;
        sound &= held || !SOUND.contains(rival);
        text.push(format!("`{rival}` {ours:.1} ({printed})"));
    }
    Some((Held::against(all, sound), format!("times ours, printed in brackets: {}", text.join(", "))))
}

fn name(figure: &str) -> &str {
    match figure {
        "aae" => "AAE",
        "are" => "ARE",
        "wmrd" => "WMRD",
        _ => "entropy error",
    }
}

/// The page; `of` gives the stored outcomes of an experiment.
pub(crate) fn page(of: &dyn Fn(&str) -> Vec<Outcome>) -> String {
    let results = Results { of };
    let mut rows = String::new();
    let mut counts = [0usize; 4];
    for (number, claim) in (1..).zip(CLAIMS) {
        let (verdict, ours) = match (claim.ours)(&results) {
            Some((held, ours)) => {
                counts[held as usize] += 1;
                (held.name(), ours)
            }
            None => {
                counts[3] += 1;
                ("not measured", String::new())
            }
        };
        let specs = claim.specs.iter().map(|spec| format!("`{spec}`")).collect::<Vec<_>>().join(", ");
        let says = claim.says;
        let place = claim.place;
        let why = claim.why;
        rows += &format!("| {number} | {says} | {place} | {ours} ({specs}) | **{verdict}** | {why} |\n");
    }
    let [held, not, unsound, missing] = counts;
    let missing = if missing > 0 { format!(", {missing} not measured") } else { String::new() };
    format!(
        "# The paper's claims\n\n\
         <!-- Written by `ucl reproduce … --docs docs` from docs/results; edit crates/lab/src/specs/claims instead. -->\n\n\
         Each claim of the paper beside what our [results](results.md) say. The verdict follows from the stored figures by a\n\
         rule in `crates/lab/src/specs/claims`; the reason names the test that shows it. \"Unsound baselines\" are systems\n\
         that have errors in the paper's public code: Count Sketch, learned Count Sketch and NitroSketch sign keys alike in\n\
         half of their rows, and Elastic Sketch is fed key totals instead of the stream (but with the paper's sizes ours is as\n\
         weak on the stream, see `retail-paper`: its sizes are the cause). Figures of `ucl-learned` are the\n\
         network's own answers where they were stored (\"unbounded\" in the results), and otherwise answers within bounds,\n\
         which flatter it.\n\n\
         {} claims: {held} held, {unsound} held only against unsound baselines, {not} not held{missing}.\n\n\
         | # | the paper says | where | ours (experiment) | | why, and the test that shows it |\n\
         |---:|---|---|---|---|---|\n{rows}",
        CLAIMS.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(dataset: &str, memory: &str, method: &str, are: f64) -> Outcome {
        serde_json::from_value(serde_json::json!({
            "job": format!("{dataset} {memory} {method}"),
            "labels": { "dataset": dataset, "memory": memory, "method": method },
            "figures": { "are": are, "aae": are, "wmrd": are }, "seconds": 0.0, "version": "0",
        }))
        .unwrap()
    }

    /// Ours at 1, the sound baselines at 10, and the others as given.
    fn table(others: f64) -> Vec<Outcome> {
        let mut outcomes = vec![outcome("retail", "64KB", OURS, 1.0)];
        for rival in RIVALS {
            outcomes.push(outcome("retail", "64KB", rival, if SOUND.contains(&rival) { 10.0 } else { others }));
        }
        outcomes
    }

    #[test]
    fn a_verdict_tells_sound_baselines_from_others() {
        let verdict = |outcomes: &[Outcome]| best_throughout(&cells(outcomes, |_, _| true), "are").unwrap().0;
        assert_eq!(verdict(&table(5.0)), Held::Yes);
        assert_eq!(verdict(&table(0.5)), Held::UnsoundOnly);
        let mut lost = table(0.5);
        lost.iter_mut().filter(|outcome| outcome.label("method") == "cm").for_each(|outcome| {
            outcome.finding.figures.insert("are".to_owned(), 0.1);
        });
        assert_eq!(verdict(&lost), Held::No);
        let printed = [10.0; 7];
        let (held, text) = ratios(&cells(&table(5.0), |_, _| true), "are", printed).unwrap();
        assert_eq!(held, Held::Yes, "half of what is printed is near enough");
        assert!(text.contains("`cs` 5.0 (10)"), "{text}");
        assert_eq!(ratios(&cells(&table(4.0), |_, _| true), "are", printed).unwrap().0, Held::UnsoundOnly);
    }

    #[test]
    fn without_results_nothing_is_claimed() {
        let page = page(&|_| Vec::new());
        assert!(page.contains(&format!(
            "{0} claims: 0 held, 0 held only against unsound baselines, 0 not held, {0} not",
            CLAIMS.len()
        )));
        let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #"));
        assert!(
            rows.clone().count() == CLAIMS.len() && rows.clone().all(|row| row.matches(" | ").count() == 5),
            "{page}"
        );
    }

    /// Every reason names something that can be looked up.
    #[test]
    fn every_claim_has_a_reason_and_an_experiment() {
        for claim in CLAIMS {
            assert!(claim.why.contains('`'), "{}: no test is named", claim.says);
            assert!(claim.specs.iter().all(|spec| crate::specs::find(spec).is_ok()), "{:?}", claim.specs);
        }
    }
}
