//! Everything that a device needs for exact counting is within its budget: what it allocates, and
//! the plane itself. An allocator that counts says so.

#![allow(unsafe_code, reason = "an allocator that counts has to be one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ucl_data_plane::mirrored::{Allowance, BudgetPlane, MirroredPlane, MirroredShape};
use ucl_data_plane::{Config, DataPlane, KeyFormat, Report, ReportRule, ReportSink, Shape};
use ucl_streams::SplitMix64;
use ucl_wire::{ExportFrames, Header};

struct Counting;

thread_local! {
    // For each thread, because the one that runs the tests allocates at any time.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Frames what a table sends, and counts its bytes.
struct Framed {
    frames: ExportFrames,
    bytes: usize,
}

impl Framed {
    fn new() -> Self {
        Self { frames: ExportFrames::new(Header::default()), bytes: 0 }
    }
}

impl ReportSink for Framed {
    fn report(&mut self, report: Report<'_>) {
        if let Report::Export(piece) = report {
            self.frames.write(piece, &mut |bytes| self.bytes += bytes.len());
        }
    }
}

#[test]
fn a_device_keeps_to_its_budget() {
    for budget in [8 << 10, 16 << 10, 64 << 10] {
        let keys = KeyFormat::Fixed(4);
        let beside = {
            let any = MirroredShape::within(1 << 20, keys).unwrap();
            Shape::mirrored(any, 0, 1).memory(keys).total() - any.memory(keys)
        };
        let table = MirroredShape::within(budget - beside, keys).unwrap();
        let config = Config { keys, shape: Shape::mirrored(table, 0, 1), rule: ReportRule::New, seed: 3.into() };
        let before = HELD.get();
        PEAK.set(before);
        let mut plane = MirroredPlane::<4>::new(config).unwrap();
        let mut sink = Framed::new();
        let mut random = SplitMix64::new(1);
        for i in 0..200_000u32 {
            // Half of the items are of few keys, the others are all different.
            let key = if i % 2 == 0 { (random.next_u64() % 1_000) as u32 } else { random.next_u64() as u32 };
            plane.insert(&key.to_le_bytes(), 1, &mut sink).unwrap();
            if i % 50_000 == 49_999 {
                plane.cut(&mut sink);
            }
        }
        let peak = (PEAK.get() - before) as usize;
        // What is not allocated: the plane, and the frame that is open.
        let whole = peak + size_of_val(&plane) + size_of::<ExportFrames>();
        assert!(sink.bytes > 100_000, "{} bytes were sent", sink.bytes);
        assert!(whole <= budget, "{whole} bytes in a budget of {budget}: {}", plane.memory());
        assert!(plane.memory().total() <= budget && plane.memory().total() > budget * 9 / 10);
    }
}

/// The same with a sketch behind the table, for what its limit does not let up the link. Carries
/// and counters leave as they are.
#[test]
fn a_device_with_a_limit_keeps_to_its_budget() {
    for budget in [8 << 10, 16 << 10, 64 << 10] {
        let keys = KeyFormat::Fixed(4);
        let absorbing = |table| Shape::absorbing(table, budget as u32 / 20, 0, 1);
        let beside = {
            let any = MirroredShape::within(1 << 20, keys).unwrap();
            absorbing(any).memory(keys).total() - any.memory(keys) + DataPlane::<4>::KNOWN_KEYS_BYTES
        };
        let table = MirroredShape::within(budget - beside, keys).unwrap();
        let config = Config { keys, shape: absorbing(table), rule: ReportRule::New, seed: 3.into() };
        let before = HELD.get();
        PEAK.set(before);
        let mut plane = BudgetPlane::<4>::new(config).unwrap();
        plane.watch_load().unwrap();
        plane.set_allowance(Allowance::per_item(0.3));
        let mut sink = Framed::new();
        let mut random = SplitMix64::new(1);
        for _ in 0..200_000 {
            let key = random.next_u64() % 20_000 * (random.next_u64() % 3);
            plane.insert(&(key as u32).to_le_bytes(), 1, &mut sink).unwrap();
            if plane.room() == Some(0) {
                plane.cut(&mut sink);
            }
        }
        plane.cut(&mut sink);
        let peak = (PEAK.get() - before) as usize;
        let whole = peak + size_of_val(&plane) + size_of::<ExportFrames>();
        let (sent, absorbed) = (sink.bytes, plane.absorbed());
        assert!(sent > 10_000 && absorbed > 10_000, "{sent} bytes, {absorbed} absorbed");
        assert!(whole <= budget, "{whole} bytes in a budget of {budget}: {}", plane.memory());
        assert!(plane.memory().total() <= budget && plane.memory().total() > budget * 9 / 10);
    }
}
