//! What is said of files that cannot be loaded, and of sketches that cannot be saved.

use ucl_sketch::state::{FORMAT_VERSION, Section, Summary, mend};
use ucl_sketch::{DecoderKind, KeyFormat, SaveError, UclSketch};

use crate::cases::{Case, stream};

fn state() -> Vec<u8> {
    let case = Case::new(DecoderKind::Delta, KeyFormat::Fixed(4));
    let mut sketch = case.build();
    case.insert(&mut sketch, &stream(300));
    sketch.to_bytes().unwrap()
}

fn message(bytes: &[u8]) -> String {
    UclSketch::from_bytes(bytes).map(drop).unwrap_err().to_string()
}

/// Where a section starts.
fn start(bytes: &[u8], wanted: Section) -> usize {
    let summary = Summary::read(bytes).unwrap();
    let before = summary.sections.iter().take_while(|(section, _)| *section != wanted);
    24 + 16 * summary.sections.len() + before.map(|(_, bytes)| bytes).sum::<usize>()
}

#[test]
fn each_error_says_what_is_wrong() {
    let good = state();
    assert_eq!(message(b""), "not a UCL-sketch state file");
    assert_eq!(message(b"\x7fELF and so on"), "not a UCL-sketch state file");
    assert_eq!(message(&good[..5]), "the state file is cut short: it has 5 bytes of 32");
    let (half, all) = (good.len() / 2, good.len());
    assert_eq!(message(&good[..half]), format!("the state file is cut short: it has {half} bytes of {all}"));
    assert_eq!(message(&[&good[..], b"\n"].concat()), "1 bytes follow where the state file should end");

    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        bytes
    };
    let newer = (FORMAT_VERSION ^ 4).to_string();
    let error = message(&changed(8));
    assert_eq!(
        error,
        format!(
            "the state file has version {newer}, but versions up to {FORMAT_VERSION} can be read: update this program"
        )
    );
    let mut many = good.clone();
    many[12] = 200;
    assert_eq!(message(&many), "the state file's table of sections is damaged: 200 sections, of 16 that there are");
    assert_eq!(message(&changed(24)), "the state file's table of sections is damaged: two sections 'window'");
    assert_eq!(message(&changed(all - 1)), "the state file is damaged: its checksum is wrong");
    for section in [Section::Configuration, Section::DataPlane, Section::Delta] {
        let error = message(&changed(start(&good, section) + 3));
        assert_eq!(error, format!("the state file is damaged: the checksum of its section '{section}' is wrong"));
    }
}

/// The checksums are right, the content is not.
#[test]
fn made_up_content_is_refused() {
    let good = state();
    let made_up = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        mend(&mut bytes);
        bytes
    };
    let registry = start(&good, Section::Registry);
    // The format of the keys, and the size of those that have one size.
    let error = message(&made_up(registry, 9));
    assert!(error.starts_with("the state file's section 'registry' cannot be read: "), "{error}");
    let error = message(&made_up(registry + 1, 8));
    assert_eq!(error, "the state file contradicts itself: a registry of 8-byte keys, not of 4-byte keys");
    let plane = start(&good, Section::DataPlane);
    let error = message(&made_up(plane, 1));
    assert!(error.starts_with("the state file's section 'data plane' cannot be read"), "{error}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = UclSketch::load("no-such-file.ucl").map(drop).unwrap_err().to_string();
    assert!(error.starts_with("cannot read no-such-file.ucl: "), "{error}");
}

#[cfg(unix)]
#[test]
fn what_has_no_end_is_not_read_to_it() {
    let error = UclSketch::load("/dev/zero").map(drop).unwrap_err().to_string();
    assert_eq!(error, "not a UCL-sketch state file");
}

#[test]
fn what_cannot_be_saved_says_why() {
    let case = Case::new(DecoderKind::Em, KeyFormat::Fixed(4));
    let error = case.build().save("no-such-folder/state.ucl").unwrap_err();
    assert!(error.to_string().starts_with("cannot write no-such-folder/state.ucl: "), "{error}");

    let mut failed = case.build();
    failed.with_control(|control| control.fail("the link went down".into()));
    let error = failed.to_bytes().unwrap_err();
    assert!(matches!(error, SaveError::Fault(_)));
    assert_eq!(
        error.to_string(),
        "a sketch that has failed cannot be saved: the reports can no longer be followed: the link went down"
    );

    let mut settings = ucl_sketch::Settings { decoder: DecoderKind::Em, ..Default::default() };
    settings.em.iterations = usize::MAX;
    let error = case.builder().settings(settings).build().unwrap().to_bytes().unwrap_err();
    assert!(matches!(error, SaveError::Settings(_)), "{error}");
}
