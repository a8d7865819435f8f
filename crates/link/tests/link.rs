//! Envelopes come back as they were, hostile bytes do nothing, and the rules hold for every order
//! in which a bad network delivers.

use proptest::prelude::*;
use ucl_link::{
    Backoff, Envelope, Identity, Incarnation, Judgement, LinkError, MAX_ENVELOPE, REMEMBERED, Sequence, Times, Unseen,
};

fn identity() -> Identity {
    Identity::new("tenant", "stream.1", Incarnation { number: 1, nonce: 2 }).unwrap()
}

fn envelope<'a>(seq: u64, previous: u64, messages: Vec<&'a [u8]>) -> Envelope<'a> {
    let times = Times { started_ms: -5, ended_ms: 7, duration_ms: 12 };
    Envelope { identity: identity(), format: "field:7", seq, previous, times, items: 3, unseen: None, messages }
}

fn checksum(bytes: &[u8]) -> u64 {
    Envelope::split(bytes).unwrap().0.checksum
}

/// `n` envelopes that follow on each other, the contents from `salt`.
fn chain(n: u64, salt: u8) -> Vec<Vec<u8>> {
    let mut previous = 0;
    (0..n)
        .map(|seq| {
            let bytes = envelope(seq, previous, vec![&[salt, seq as u8]]).to_bytes().unwrap();
            previous = checksum(&bytes);
            bytes
        })
        .collect()
}

fn unseen() -> impl Strategy<Value = Option<Unseen>> {
    prop::option::of((any::<i64>(), any::<i64>(), any::<Option<u64>>()).prop_map(|(from_ms, to_ms, items)| Unseen {
        from_ms,
        to_ms,
        items,
    }))
}

proptest! {
    #[test]
    fn envelopes_come_back(
        seq: u64,
        previous: u64,
        times: (i64, i64, u64),
        items: u64,
        format in "[a-z:0-9]{0,40}",
        unseen in unseen(),
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..9),
        rest in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let times = Times { started_ms: times.0, ended_ms: times.1, duration_ms: times.2 };
        let messages = messages.iter().map(Vec::as_slice).collect();
        let sent = Envelope { identity: identity(), format: &format, seq, previous, times, items, unseen, messages };
        let mut bytes = sent.to_bytes().unwrap();
        let length = bytes.len();
        bytes.extend(&rest);
        let (received, after) = Envelope::split(&bytes).unwrap();
        prop_assert_eq!(&received.envelope, &sent);
        prop_assert_eq!((received.bytes.len(), after), (length, &rest[..]));
        // Cut anywhere, it is not there; and a log ends before it.
        for cut in [0, 1, 4, 8, 9, length / 2, length - 1] {
            prop_assert!(Envelope::split(&bytes[..cut]).is_err());
            prop_assert_eq!(Envelope::split_log(&bytes[..cut]), Ok((vec![], 0)));
        }
    }

    #[test]
    fn changed_bytes_are_noticed(at in any::<prop::sample::Index>(), flip in 1u8..) {
        let mut bytes = envelope(4, 9, vec![b"one", b"two"]).to_bytes().unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(Envelope::split(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_an_error_or_an_envelope(mut bytes in prop::collection::vec(any::<u8>(), 0..300), whole: bool) {
        if whole && bytes.len() > 20 {
            // Past magic, version, length and checksum.
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(b"UCLE");
            bytes[4] = 1;
            bytes[5..9].copy_from_slice(&length.to_le_bytes());
            let content = bytes.len() - 8;
            let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..content]);
            bytes[content..].copy_from_slice(&checksum.to_le_bytes());
        }
        if let Ok((received, rest)) = Envelope::split(&bytes) {
            prop_assert_eq!(received.envelope.to_bytes().unwrap(), received.bytes);
            prop_assert_eq!(received.bytes.len() + rest.len(), bytes.len());
        }
    }

    /// Whatever the network does, each envelope is taken once, in order; none of a fork is.
    #[test]
    fn each_is_taken_once_and_in_order(
        deliveries in prop::collection::vec((0u64..100, prop::bool::weighted(0.2)), 0..400),
        fork_at in 1u64..100,
    ) {
        let honest = chain(100, 1);
        // A copy that was set back: the same up to the fork, and others from there.
        let mut forked = honest.clone();
        let mut previous = checksum(&honest[fork_at as usize - 1]);
        for seq in fork_at..100 {
            let bytes = envelope(seq, previous, vec![&[2, seq as u8]]).to_bytes().unwrap();
            previous = checksum(&bytes);
            forked[seq as usize] = bytes;
        }
        let mut sequence = Sequence::default();
        let mut taken = 0;
        for (seq, fork) in deliveries {
            let seq = if fork { seq } else { seq.min(taken + 1) };
            let bytes = if fork { &forked[seq as usize] } else { &honest[seq as usize] };
            let received = Envelope::split(bytes).unwrap().0;
            let judgement = sequence.judge(&received);
            if judgement == Judgement::Next {
                // The first after the fork may be of either: it is the history from then on.
                prop_assume!(!fork || seq < fork_at);
                prop_assert_eq!(seq, taken);
                sequence.take(&received);
                taken += 1;
            } else if seq > taken {
                prop_assert_eq!(judgement, Judgement::Missing);
            } else if !fork || seq < fork_at {
                prop_assert_eq!(judgement, Judgement::Repeated);
            } else if seq == taken || taken - seq <= REMEMBERED as u64 {
                prop_assert_eq!(judgement, Judgement::Forked);
            }
            prop_assert_eq!(sequence.next(), taken);
            let again: Sequence = postcard::from_bytes(&postcard::to_stdvec(&sequence).unwrap()).unwrap();
            prop_assert_eq!(&again, &sequence);
        }
    }

    #[test]
    fn waits_double_up_to_a_limit(randoms in prop::collection::vec(any::<u64>(), 1..50)) {
        let mut backoff = Backoff::default();
        for (failures, random) in (0u32..).zip(randoms) {
            let most = (Backoff::FIRST_MS << failures.min(20)).min(Backoff::MOST_MS);
            let wait = backoff.failed(random);
            prop_assert!((most / 2..=most).contains(&wait), "{} after {}", wait, failures);
        }
    }
}

/// A fork so far back that its checksums are forgotten is noticed at its first new envelope.
#[test]
fn an_old_fork_is_noticed_too() {
    let honest = chain(REMEMBERED as u64 + 20, 1);
    let mut sequence = Sequence::default();
    for bytes in &honest {
        sequence.take(&Envelope::split(bytes).unwrap().0);
    }
    let forked = chain(REMEMBERED as u64 + 21, 2);
    let judge = |seq: usize| sequence.judge(&Envelope::split(&forked[seq]).unwrap().0);
    assert_eq!(judge(3), Judgement::Repeated);
    assert_eq!(judge(REMEMBERED), Judgement::Forked);
    assert_eq!(judge(REMEMBERED + 20), Judgement::Forked);
}

#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let big = vec![0; MAX_ENVELOPE];
    assert!(matches!(envelope(0, 0, vec![&big]).to_bytes(), Err(LinkError::TooLarge { .. })));
    let many = vec![&b""[..]; ucl_link::MAX_MESSAGES + 1];
    assert!(matches!(envelope(0, 0, many).to_bytes(), Err(LinkError::TooLarge { .. })));
    let mut head = b"UCLE\x01".to_vec();
    head.extend(u32::MAX.to_le_bytes());
    assert!(matches!(Envelope::split(&head), Err(LinkError::TooLarge { .. })));
    assert_eq!(Envelope::split(b"GET /"), Err(LinkError::NotAnEnvelope));
}

/// What a newer version wrote is told from damage: a log must not be cut off before it.
#[test]
fn a_newer_version_is_not_damage() {
    let [first, mut second] = [0, 1].map(|seq| envelope(seq, 0, vec![b"one"]).to_bytes().unwrap());
    second[4] = 2;
    let log = |second: &[u8]| [&first, second].concat();
    assert_eq!(Envelope::split(&second), Err(LinkError::Checksum), "a version that was garbled is damage");
    assert_eq!(Envelope::split_log(&log(&second)).unwrap().1, first.len());
    let end = second.len() - 8;
    let checksum = xxhash_rust::xxh3::xxh3_64(&second[..end]);
    second[end..].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(Envelope::split(&second), Err(LinkError::NewerVersion(2)));
    assert_eq!(Envelope::split_log(&log(&second)), Err(LinkError::NewerVersion(2)));
}

#[test]
fn names_are_names() {
    for name in ["a", "web-1", "A.b_c-9", &"x".repeat(64)] {
        assert!(name.parse::<ucl_link::Name>().is_ok(), "{name}");
    }
    for name in ["", ".", "..", "a/b", "a b", "ü", "a\n", &"x".repeat(65)] {
        assert!(name.parse::<ucl_link::Name>().is_err(), "{name:?}");
    }
    for text in ["", "1", "-", "1-", "1-xyz", "01-0000000000000002", "1-2", "1-000000000000000G", "+1-0000000000000002"]
    {
        assert!(text.parse::<Incarnation>().is_err(), "{text:?}");
    }
}

/// The bytes of version 1, which later versions must read.
#[test]
fn version_1_is_pinned() {
    let unseen = Some(Unseen { from_ms: 1, to_ms: 2, items: Some(3) });
    let bytes = Envelope { unseen, ..envelope(4, 9, vec![b"one", b""]) }.to_bytes().unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN);
    assert_eq!(Envelope::split(&bytes).unwrap().0.envelope.unseen, unseen);
}

const GOLDEN: &str = concat!(
    "55434c45018d0000000674656e616e740873747265616d2e31010000000200000000000000076669656c643a370400000000",
    "0000000900000000000000fbffffffffffffff07000000000000000c00000000000000030000000000000002010000000000",
    "00000200000000000000030000000000000002000000030000006f6e6500000000dd4768cff7f23dd1",
);
