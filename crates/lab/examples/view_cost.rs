//! What asking costs: the time of a view, and the memory that it takes beside the control plane's.
//!
//! `cargo run --release -p ucl-lab --example view_cost [KEYS [MEMORY ...]]`: five million distinct
//! 4-byte keys unless told otherwise, in mode delta. Memory is what the allocator was asked for.
//! "At most" is while the view is made, "kept" what it has for itself afterwards. "Top 10" is the
//! time of that question, because answers are put together when they are asked for.
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ucl_sketch::{Bytes, DecoderKind, UclSketch};

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: everything is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Views of which the median counts.
const VIEWS: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let keys: u32 = arguments.next().map_or(Ok(5_000_000), |keys| keys.parse())?;
    let memories: Vec<String> = arguments.collect();
    println!("  memory       known    view ms   at most MB    kept MB   top 10 ms");
    for memory in
        if memories.is_empty() { vec!["64KB".to_owned(), "1MB".to_owned(), "16MB".to_owned()] } else { memories }
    {
        line(keys, &memory)?;
    }
    Ok(())
}

fn line(keys: u32, memory: &str) -> Result<(), Box<dyn Error>> {
    let bytes: Bytes = memory.parse()?;
    let mut sketch =
        UclSketch::builder().decoder(DecoderKind::Delta).memory_bytes(bytes.0).key_bytes(4).seed(1).build()?;
    let mut batch = Vec::with_capacity(4096);
    for start in (0..keys).step_by(4096) {
        batch.clear();
        batch.extend((start..keys.min(start.saturating_add(4096))).map(u32::to_le_bytes));
        sketch.insert_batch(&batch)?;
    }
    let mut measured = Vec::with_capacity(VIEWS);
    for _ in 0..VIEWS {
        let before = HELD.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let start = Instant::now();
        let view = sketch.query_view()?;
        let seconds = start.elapsed().as_secs_f64();
        let beside = |held: usize| held.saturating_sub(before) as f64 / 1e6;
        let (most, kept) = (beside(MOST.load(Ordering::Relaxed)), beside(HELD.load(Ordering::Relaxed)));
        let start = Instant::now();
        assert_eq!(view.top(10).len(), 10);
        measured.push([1e3 * seconds, most, kept, 1e3 * start.elapsed().as_secs_f64(), view.keys() as f64]);
    }
    let median = |at: usize| {
        let mut values: Vec<f64> = measured.iter().map(|row| row[at]).collect();
        values.sort_by(f64::total_cmp);
        values[VIEWS / 2]
    };
    let [view, most, kept, top, known] = [0, 1, 2, 3, 4].map(median);
    println!("{memory:>8}  {known:>10}  {view:>9.1}  {most:>11.1}  {kept:>9.1}  {top:>10.1}");
    Ok(())
}
