//! Agents and a collector on disks that crash at any write, over a network that loses, repeats,
//! reorders and garbles, with full disks, clocks that jump, copied agents, lost disks, streams that
//! are deleted and programs of other versions: every answer is held against exact counts, and
//! against one process that saw the same items.
//!
//! A seed decides everything. `UCL_RUNS=10000 UCL_SEED=1` runs more, from that seed on
//! (`cargo xtask explore simulation 10000`).

mod faults;
mod network;
mod rules;
mod sender;
mod setup;
mod skew;
mod truth;
mod world;

use world::{Tally, run};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

fn simulate(first: u64, runs: u64) -> Tally {
    let mut tally = Tally::default();
    for seed in first..first + runs {
        let passed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &mut tally)));
        let again = format!("UCL_SEED={seed} UCL_RUNS=1 cargo test -p ucl-collector --test simulation");
        assert!(passed.is_ok(), "seed {seed} fails: {again}");
    }
    tally
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_counts_twice() {
    let first = number("UCL_SEED", 0);
    let runs = number("UCL_RUNS", 300);
    // Decoding is parallel, and handing it to other threads would take longer than doing it.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let tally = pool.install(|| simulate(first, runs));
    println!("{tally:?}");
    assert!(tally.checked > 100 * runs);
    if runs >= 100 {
        let happened = [
            tally.agent_crashes,
            tally.collector_crashes,
            tally.lost,
            tally.repeated,
            tally.garbled,
            tally.reordered,
            tally.forks,
            tally.wipes,
            tally.full,
            tally.jumps,
            tally.deleted,
            tally.refused_as_newer,
            tally.older_states,
        ];
        assert!(happened.iter().all(|&times| times > 0), "{tally:?}");
    }
}
