//! The library against exact counts, at random.
//!
//! A *program* is a random sketch, small enough that everything collides, and random calls: inserts
//! of every kind, cuts, changes, merges, saves, bad input. It runs on several sketches side by side
//! ([`lanes`]), and after some calls every key is asked for, known or not: its bounds must contain
//! the truth and its estimate, and totals must be exact. A synchronous sketch, a pipelined one and
//! one that is saved and loaded again must agree in every bit of their state.
//!
//! A (program, key, view) is one *check*. `cargo test` makes some;
//! `cargo xtask explore checks 100000000` makes that many. Overflow checks are on in both: what
//! wraps silently would not be found. A failure names the seed of its program: `UCL_PROGRAM=SEED`
//! runs that one alone.

mod case;
mod lanes;
mod random;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Checks of one `cargo test`.
const CHECKS: u64 = 300_000;

fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a whole number")))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}

#[test]
fn bounds_hold_for_every_key_of_every_program() {
    if let Some(seed) = setting("UCL_PROGRAM") {
        eprintln!("program {seed}: {} checks", lanes::run(seed, true));
        return;
    }
    let wanted = setting("UCL_CHECKS").unwrap_or(CHECKS);
    let first = setting("PROPTEST_RNG_SEED").unwrap_or(0) << 32;
    let next = AtomicU64::new(first);
    let made = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let failed = Mutex::new(None);
    let start = Instant::now();
    let work = || {
        while !stop.load(Ordering::Relaxed) && made.load(Ordering::Relaxed) < wanted {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            match catch_unwind(AssertUnwindSafe(|| lanes::run(seed, false))) {
                Ok(checks) => made.fetch_add(checks, Ordering::Relaxed),
                Err(panic) => {
                    stop.store(true, Ordering::Relaxed);
                    failed.lock().expect("no panic under the lock").get_or_insert((seed, message(&*panic).to_owned()));
                    return;
                }
            };
        }
    };
    let tell = || {
        let (programs, checks) = (next.load(Ordering::Relaxed) - first, made.load(Ordering::Relaxed));
        eprintln!("{checks} key checks in {programs} programs, {:.0} s", start.elapsed().as_secs_f64());
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            (0..thread::available_parallelism().map_or(1, usize::from)).map(|_| scope.spawn(work)).collect();
        let mut told = Instant::now();
        while workers.iter().any(|worker| !worker.is_finished()) {
            thread::sleep(Duration::from_millis(20));
            if told.elapsed() > Duration::from_secs(30) {
                tell();
                told = Instant::now();
            }
        }
    });
    tell();
    let failed = failed.into_inner().expect("no panic under the lock");
    if let Some((seed, message)) = failed {
        panic!("{message}\nreproduce: UCL_PROGRAM={seed} cargo test -p ucl-sketch --test differential -- --nocapture");
    }
    assert!(made.into_inner() >= wanted);
}
