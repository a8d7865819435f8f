//! Files of every version keep loading, and this version's are written as ever.
//!
//! After a change of a written type: raise `FORMAT_VERSION`, keep reading the older files, and
//! write the new ones with `UCL_REGENERATE=1 cargo test -p ucl-sketch --test state golden`

use std::path::PathBuf;

use ucl_sketch::state::{FORMAT_VERSION, Summary};
use ucl_sketch::{Base, CounterBits, DecoderKind, Hashing, HeavyKind, KeyFormat, ReportRule, UclSketch};

use crate::cases::{Case, answers, stream};

/// A file's name, its sketch, and whether every machine writes the same: trained weights differ in
/// their last digits.
pub fn files(version: u32) -> Vec<(&'static str, Case, bool)> {
    let hashing = if version == 1 { Hashing::V1 } else { Hashing::V2 };
    let delta = Case { uplink: true, ..Case::new(DecoderKind::Delta, KeyFormat::Fixed(4)) };
    let em = Case { interval: None, bits: CounterBits::B8, ..Case::new(DecoderKind::Em, KeyFormat::Digest) };
    let heavy = HeavyKind::Elastic;
    let signed = Case {
        base: Base::CountSketch,
        heavy,
        bits: CounterBits::B16,
        ..Case::new(DecoderKind::Lsmr, KeyFormat::Fixed(13))
    };
    let heavy = HeavyKind::Augmented;
    let flowradar = Case { base: Base::FlowRadar, heavy, ..Case::new(DecoderKind::Delta, KeyFormat::Digest) };
    let learned = Case { rule: ReportRule::Paper, ..Case::new(DecoderKind::Learned, KeyFormat::Fixed(8)) };
    let mut files = vec![
        ("delta", delta, true),
        ("em", em, true),
        ("lsmr-signed", signed, true),
        ("delta-flowradar", flowradar, true),
        ("learned", learned, false),
    ];
    if version > 2 {
        let by_load = Case { by_load: true, rule: ReportRule::Generations, ..delta };
        files.push(("delta-by-load", by_load, true));
    }
    files.retain(|(_, case, _)| case.decoder.is_built());
    for (_, case, _) in &mut files {
        case.hashing = hashing;
    }
    if version > 1 {
        // What an earlier version began, gone on with and saved by this one.
        files.push(("em-earlier-hashes", Case { hashing: Hashing::V1, ..em }, true));
    }
    files
}

pub fn path(version: u32, name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden", &format!("v{version}-{name}.ucl")].iter().collect()
}

fn sketch(case: &Case) -> UclSketch {
    let mut sketch = case.build();
    case.insert(&mut sketch, &stream(130));
    // Two segments are sealed, of which one is dropped, and another stream comes in.
    sketch.rehash(11).unwrap();
    case.insert(&mut sketch, &stream(30));
    sketch.rehash(case.seed).unwrap();
    sketch.drop_oldest_segment().unwrap();
    let mut other = case.build();
    case.insert(&mut other, &stream(30));
    sketch.merge(other).unwrap();
    case.insert(&mut sketch, &stream(50));
    sketch.set_label("format", "lines");
    sketch
}

#[test]
fn this_version_is_written_as_ever() {
    for (name, case, everywhere) in files(FORMAT_VERSION) {
        let written = sketch(&case).to_bytes().unwrap();
        let path = path(FORMAT_VERSION, name);
        if std::env::var_os("UCL_REGENERATE").is_some() {
            std::fs::write(&path, &written).unwrap();
        }
        let golden = std::fs::read(&path).unwrap();
        assert!(!everywhere || written == golden, "{name}: the format has changed, which makes it a new version");
        assert_eq!(Summary::read(&written).unwrap(), Summary::read(&golden).unwrap(), "{name}");
    }
}

#[test]
fn every_version_is_read_as_ever() {
    for version in 1..=FORMAT_VERSION {
        for (name, case, everywhere) in files(version) {
            let golden = std::fs::read(path(version, name)).unwrap();
            assert_eq!(Summary::read(&golden).unwrap().version, version);
            let (mut loaded, mut made) = (UclSketch::from_bytes(&golden).unwrap(), sketch(&case));
            assert_eq!(loaded.labels()["format"], "lines");
            if version == FORMAT_VERSION {
                assert!(loaded.to_bytes().unwrap() == golden, "{name}");
            }
            // It goes on from there.
            for sketch in [&mut loaded, &mut made] {
                case.insert(sketch, &stream(100));
            }
            let (loaded, made) = (loaded.query_view().unwrap(), made.query_view().unwrap());
            assert_eq!((loaded.items(), loaded.keys()), (340, made.keys()), "{name}");
            assert!(!everywhere || answers(&loaded) == answers(&made), "{name}");
        }
    }
}
