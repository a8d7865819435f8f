//! With the control plane in threads of its own.

use ucl_sketch::{DecoderKind, Execution, KeyFormat, UclSketch};

use crate::cases::{Case, stream};

#[test]
fn a_background_sketch_goes_on_in_the_background() {
    for decoder in [DecoderKind::Em, DecoderKind::Delta, DecoderKind::Learned].into_iter().filter(|d| d.is_built()) {
        let case = Case::new(decoder, KeyFormat::Fixed(8));
        let items = stream(600);
        let mut sketch = case.builder().execution(Execution::Background).build().unwrap();
        case.insert(&mut sketch, &items[..130]);
        sketch.rehash(3).unwrap();
        case.insert(&mut sketch, &items[130..250]);
        let saved = sketch.to_bytes().unwrap();
        let before = sketch.uplink().unwrap();
        let mut resumed = UclSketch::from_bytes(&saved).unwrap();
        assert_eq!(resumed.uplink().unwrap(), before);
        case.insert(&mut resumed, &items[250..]);
        let view = resumed.query_view().unwrap();
        assert_eq!(view.items(), 600);
        assert!(resumed.uplink().unwrap().total() > before.total());
        for number in 0..=255u8 {
            let truth: u64 = items.iter().filter(|item| item.0 == number).map(|item| item.1).sum();
            let answer = view.estimate(&case.key(number));
            assert!((answer.lower..=answer.upper).contains(&truth), "{decoder}: {number} {truth} {answer:?}");
        }
        // When the trainer trains is in the file. A training of the first sketch may end any time;
        // the second one has none.
        let once = resumed.to_bytes().unwrap();
        assert!(UclSketch::from_bytes(&once).unwrap().to_bytes().unwrap() == once, "{decoder}: not what was saved");
    }
}
