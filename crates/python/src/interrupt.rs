//! Long work without the interpreter lock, that Ctrl-C ends, also in a process that was forked.

use std::panic::resume_unwind;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use rayon::ThreadPool;

use crate::error::Error;

/// How often signals are looked at while something is at work.
const LOOK: Duration = Duration::from_millis(20);

/// Runs work in a thread of its own, and looks for signals meanwhile if this is the main thread,
/// which alone gets them. When one of them raises an exception, the call ends with it at once. The
/// work gets a flag that is set then: where it looks at it, it ends early; else it runs to its
/// end, as does a decoder that is in the middle of its equations. Whatever it works on has to be
/// behind a lock, so that later calls wait for it.
pub fn long<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let gets_signals = is_main_thread(py)?;
    py.detach(|| {
        let (done, answer) = sync_channel(1);
        let worker = thread::Builder::new().spawn(move || {
            // If nobody waits any more, nobody wants it.
            let _ = done.send(in_pool(|| work(&flag)));
        });
        let worker = worker.map_err(|error| Error::Thread(error.to_string()))?;
        loop {
            match answer.recv_timeout(LOOK) {
                Ok(result) => return result,
                // A daemon thread outlives the interpreter, and must not look into it.
                Err(RecvTimeoutError::Timeout) if !gets_signals => {}
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = Python::attach(|py| py.check_signals()) {
                        stop.store(true, Ordering::Relaxed);
                        return Err(error.into());
                    }
                }
                // The work has panicked.
                Err(RecvTimeoutError::Disconnected) => match worker.join() {
                    Ok(()) => return Err(Error::Broken),
                    Err(panic) => resume_unwind(panic),
                },
            }
        }
    })
}

fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let main = threading.call_method0(intern!(py, "main_thread"))?.getattr(intern!(py, "ident"))?;
    threading.call_method0(intern!(py, "get_ident"))?.eq(main)
}

/// Runs work that takes no time to speak of without the interpreter lock.
pub fn short<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    py.detach(|| in_pool(work))
}

/// The process that has imported the module.
static HOME: OnceLock<u32> = OnceLock::new();

/// Notes which process this is.
pub fn remember_process() {
    HOME.get_or_init(process::id);
}

/// Runs work with threads to decode in. A forked process has none of its parent's, whose pool would
/// wait for them for ever: it gets a pool of its own.
fn in_pool<T: Send>(work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    static FORKED: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
    let here = process::id();
    if HOME.get().is_none_or(|&home| home == here) {
        return work();
    }
    let pool = {
        let mut forked = FORKED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*forked {
            Some((process, pool)) if *process == here => Arc::clone(pool),
            _ => {
                let pool = rayon::ThreadPoolBuilder::new().build().map_err(|error| Error::Thread(error.to_string()))?;
                let pool = Arc::new(pool);
                // The pool of a parent has no threads here that its end could wait for.
                if let Some((_, parents)) = forked.replace((here, Arc::clone(&pool))) {
                    std::mem::forget(parents);
                }
                pool
            }
        }
    };
    pool.install(work)
}
