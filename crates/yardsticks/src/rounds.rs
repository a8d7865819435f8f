//! Interleaved rounds, and a table of ratios.

use std::fmt::Write;
use std::time::Instant;

/// Cases that run in turn: A B C, A B C, and so on. What else the machine does meets all of them.
pub struct Rounds<'a> {
    title: String,
    cases: Vec<Case<'a>>,
}

struct Case<'a> {
    name: String,
    /// Runs once; returns the seconds it took.
    run: Box<dyn FnMut() -> f64 + 'a>,
    times: Vec<f64>,
}

impl<'a> Rounds<'a> {
    /// Creates a table with this title. The first case that is added is the one that ratios refer
    /// to.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), cases: Vec::new() }
    }

    /// Adds a case. Only `work` is timed; `check` asserts that it did what it should.
    pub fn case<T, R>(
        &mut self,
        name: impl Into<String>,
        build: impl Fn() -> T + 'a,
        work: impl Fn(&mut T) -> R + 'a,
        check: impl Fn(T, R) + 'a,
    ) {
        let run = move || {
            let mut subject = build();
            let start = Instant::now();
            let result = work(&mut subject);
            let time = start.elapsed().as_secs_f64();
            check(subject, result);
            time
        };
        self.cases.push(Case { name: name.into(), run: Box::new(run), times: Vec::new() });
    }

    /// Runs all cases `rounds` times in turn and returns the table, for cases that each take in
    /// `items` items.
    pub fn run(mut self, rounds: usize, items: usize) -> String {
        for _ in 0..rounds {
            self.cases.iter_mut().for_each(|case| case.times.push((case.run)()));
        }
        let mut table = format!("{}, {rounds} rounds\n", self.title);
        let [best, median, ratio] = ["best", "median", "ratio"];
        let _ = writeln!(table, "{:<50}{best:>8} {ratio:>6}{median:>8} {ratio:>6}", "million a second");
        let summaries: Vec<[f64; 2]> = self.cases.iter_mut().map(|case| best_and_median(&mut case.times)).collect();
        for (case, times) in self.cases.iter().zip(&summaries) {
            let _ = write!(table, "{:<50}", case.name);
            for (time, first) in times.iter().zip(summaries[0]) {
                let _ = write!(table, "{:>8.1} {:>5.2}x", items as f64 / time / 1e6, first / time);
            }
            table.push('\n');
        }
        table
    }
}

fn best_and_median(times: &mut [f64]) -> [f64; 2] {
    times.sort_unstable_by(f64::total_cmp);
    [times[0], times[times.len() / 2]]
}

/// Returns the processor's name and number of cores as far as the system tells, to print above a
/// table.
pub fn machine() -> String {
    let name = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(": ")?.1.to_owned())
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", name.as_deref().unwrap_or("unknown processor"))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn cases_take_turns_and_are_checked() {
        let log = RefCell::new(String::new());
        let mut rounds = Rounds::new("letters");
        for name in ["a", "b", "c"] {
            let log = &log;
            rounds.case(
                name,
                move || name,
                |name| log.borrow_mut().push_str(name),
                move |built, ()| assert_eq!(built, name),
            );
        }
        let table = rounds.run(3, 1);
        assert_eq!(*log.borrow(), "abcabcabc");
        let names: Vec<&str> = table.lines().skip(2).map(|line| &line[..1]).collect();
        assert_eq!(names, ["a", "b", "c"]);
        assert!(table.starts_with("letters, 3 rounds\n"), "{table}");
    }

    #[test]
    #[should_panic(expected = "wrong total")]
    fn a_wrong_answer_stops_the_benchmark() {
        let mut rounds = Rounds::new("");
        rounds.case("liar", || (), |()| 1, |(), total| assert_eq!(total, 2, "wrong total"));
        rounds.run(1, 1);
    }

    #[test]
    fn best_and_median_of_times() {
        assert_eq!(best_and_median(&mut [3.0, 1.0, 2.0, 9.0, 4.0]), [1.0, 3.0]);
    }
}
