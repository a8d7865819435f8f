//! Bytes from anyone as a state file: an error, or a sketch that works.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ucl_sketch::state::mend;
use ucl_sketch::{KeyFormat, UclSketch};

fuzz_target!(|bytes: &[u8]| {
    // As they are (nearly always refused), and with checksums that hold.
    let _ = UclSketch::from_bytes(bytes);
    let mut mended = bytes.to_vec();
    mend(&mut mended);
    let Ok(mut sketch) = UclSketch::from_bytes(&mended) else { return };
    let saved = sketch.to_bytes().expect("what was loaded can be saved");
    let again = UclSketch::from_bytes(&saved).and_then(|mut again| Ok(again.to_bytes().expect("as before")));
    assert!(again.expect("what was saved can be loaded") == saved);
    for i in 0..20u8 {
        let key = match sketch.config().keys {
            KeyFormat::Fixed(bytes) => vec![i; bytes.into()],
            KeyFormat::Digest => vec![i],
        };
        let _ = sketch.insert_weighted(&key, u64::from(i) + 1);
    }
    // A file may ask for any number of iterations, up to a limit that is too high for a fuzzer's
    // patience.
    if sketch.with_control(|control| control.settings().em.iterations) < 1000
        && let Ok(view) = sketch.query_view()
    {
        assert!(view.all().all(|(_, answer)| answer.lower <= answer.estimate && answer.estimate <= answer.upper));
        let _ = (view.entropy(), view.mean_bound_width(), view.histogram(), view.estimated_lost_keys());
        // Nor training steps.
        if sketch.with_control(|control| control.network().is_none()) {
            sketch.cut();
            let _ = sketch.query_view();
        }
    }
});
