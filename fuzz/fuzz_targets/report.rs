//! Bytes from anyone as the messages of a stream: errors, or reports that a control plane can take
//! in.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ucl_control_plane::{ControlPlane, DecoderKind, Settings};
use ucl_wire::{Message, Receiver, decode_message, split_message};

/// More counters than this, and a control plane is no longer cheap to make.
const MOST_COUNTERS: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    let mut config = None;
    let mut control: Option<ControlPlane> = None;
    let mut receiver = Receiver::new(300);
    while let Ok((message, later)) = split_message(rest) {
        rest = later;
        let mut message = message.to_vec();
        let end = message.len() - 4;
        let checksum = crc32fast::hash(&message[..end]);
        message[end..].copy_from_slice(&checksum.to_le_bytes());
        let _ = receiver.receive(&message);
        let Ok((_, decoded)) = decode_message(&message, config.as_ref()) else { continue };
        match decoded {
            Message::SegmentOpen(opened) | Message::Reset { config: opened, .. } => {
                let small = opened.shape.geometry().counters() <= MOST_COUNTERS && opened.shape.slots <= 1 << 16;
                config = Some(opened);
                let settings = Settings { decoder: DecoderKind::Cm, ..Settings::default() };
                control = small.then(|| ControlPlane::new(opened, settings).expect("any sketch will do"));
            }
            Message::Reports(reports) => {
                if let (Some(config), Some(control)) = (&config, &mut control) {
                    let _ = reports.replay(config, control);
                }
            }
        }
    }
});
