//! What holds with any set of features: `cargo test -p ucl-sketch --no-default-features` runs this.

use ucl_sketch::{BuildError, DecoderKind, Settings, UclSketch};

#[test]
fn every_decoder_counts_or_says_which_feature_it_needs() {
    for decoder in DecoderKind::ALL {
        let settings = Settings { window: 4, train_every: None, ..Settings::default() };
        let builder = UclSketch::builder().memory("16KB").seed(1).settings(settings).decoder(decoder).interval(100);
        match builder.build() {
            Ok(mut sketch) => {
                assert!(decoder.is_built(), "{decoder}");
                for number in 0..1_000u32 {
                    sketch.insert(format!("key {}", number % 30)).unwrap();
                }
                let view = sketch.view();
                assert_eq!(view.items(), 1_000, "{decoder}");
                for number in 0..30u64 {
                    let hit = view.estimate(format!("key {number}"));
                    let truth = 33 + u64::from(number < 10);
                    assert!((hit.lower..=hit.upper).contains(&truth), "{decoder}: {hit:?}");
                }
            }
            Err(error) => {
                assert!(!decoder.is_built() && matches!(error, BuildError::Settings(_)), "{decoder}: {error}");
                assert!(error.to_string().contains("feature `learned` of ucl-sketch"), "{error}");
            }
        }
    }
}

#[test]
fn the_network_comes_with_its_feature() {
    assert_eq!(DecoderKind::Learned.is_built(), cfg!(feature = "learned"));
    assert_eq!(DecoderKind::Refined.is_built(), cfg!(feature = "learned"));
    assert!(DecoderKind::Delta.is_built() && DecoderKind::Em.is_built());
}

/// A state with a network in it is not damaged: the message says what is missing.
#[cfg(all(feature = "state", not(feature = "learned")))]
#[test]
fn a_state_with_a_network_says_which_feature_it_needs() {
    for version in ["v1", "v2"] {
        let path = format!("{}/tests/golden/{version}-learned.ucl", env!("CARGO_MANIFEST_DIR"));
        let error = UclSketch::load(path).unwrap_err().to_string();
        assert!(error.contains("feature `learned` of ucl-sketch"), "{error}");
    }
}
