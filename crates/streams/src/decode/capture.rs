//! `pcap`: packet captures, classic (either byte order, micro- or nanoseconds) and pcapng (any
//! number of sections and interfaces), told apart by their first bytes.

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    Block, parse_block_be, parse_block_le, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};

use super::packet;
use super::{Decode, ReadWindow};
use crate::MAX_RECORD_BYTES;
use crate::collect::{Collector, Halt};
use crate::error::{BadReason, Place};
use crate::format::PacketKey;

/// First bytes of a pcapng section, the same in either byte order.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// A packet block that pcapng gave up long ago.
const OBSOLETE_PACKET: u32 = 2;

pub(super) struct Capture {
    parts: Vec<PacketKey>,
    /// The key of the current packet.
    key: Vec<u8>,
    /// Items weigh their packet's original length.
    weigh_bytes: bool,
    kind: Kind,
}

enum Kind {
    /// No header was read yet.
    Unknown,
    Classic {
        layout: Layout,
        link: i32,
    },
    NextGeneration {
        big_endian: bool,
        interfaces: Vec<Interface>,
    },
}

#[derive(Clone, Copy)]
enum Layout {
    Little,
    Big,
    /// Little-endian with longer packet headers, from patched kernels of old.
    Modified,
}

#[derive(Clone, Copy)]
struct Interface {
    link: i32,
    snap_len: usize,
}

/// Result of one look at the window.
enum Step {
    Used(usize),
    NeedMore,
}

impl Capture {
    /// Creates a decoder for keys of these parts, of which there is at least one.
    pub fn new(parts: Vec<PacketKey>, weigh_bytes: bool) -> Self {
        Self { parts, key: Vec::new(), weigh_bytes, kind: Kind::Unknown }
    }

    fn step(&mut self, bytes: &[u8], offset: u64, out: &mut Collector<'_>) -> Result<Step, Halt> {
        match self.kind {
            Kind::Unknown => self.begin(bytes, out),
            Kind::Classic { layout, link } => {
                let frame = match layout {
                    Layout::Little => parse_pcap_frame(bytes),
                    Layout::Big => parse_pcap_frame_be(bytes),
                    Layout::Modified => parse_pcap_frame_modified(bytes),
                };
                match frame {
                    Ok((rest, frame)) => {
                        self.packet(link, frame.data, frame.origlen, offset, out)?;
                        Ok(Step::Used(bytes.len() - rest.len()))
                    }
                    Err(_) => Ok(Step::NeedMore),
                }
            }
            Kind::NextGeneration { .. } => self.block(bytes, offset, out),
        }
    }

    fn begin(&mut self, bytes: &[u8], out: &Collector<'_>) -> Result<Step, Halt> {
        if bytes.starts_with(&SECTION) {
            self.kind = Kind::NextGeneration { big_endian: false, interfaces: Vec::new() };
            return Ok(Step::Used(0));
        }
        match parse_pcap_header(bytes) {
            Ok((rest, header)) => {
                let layout = match (header.is_modified_format(), header.is_bigendian()) {
                    (true, _) => Layout::Modified,
                    (false, true) => Layout::Big,
                    (false, false) => Layout::Little,
                };
                // The upper half tells about frame check sequences.
                self.kind = Kind::Classic { layout, link: header.network.0 & 0xffff };
                Ok(Step::Used(bytes.len() - rest.len()))
            }
            Err(error) if error.is_incomplete() => Ok(Step::NeedMore),
            Err(_) => Err(Halt::Damaged(format!(
                "{} is not a pcap or pcapng capture: it starts with bytes {:02x?}",
                out.input,
                &bytes[..bytes.len().min(4)]
            ))),
        }
    }

    /// One block of a pcapng file. The length of the block is looked at here and not left to the
    /// parser, so that a block with nonsense inside can be told from one that is not yet there, and
    /// passed over.
    fn block(&mut self, bytes: &[u8], offset: u64, out: &mut Collector<'_>) -> Result<Step, Halt> {
        let Kind::NextGeneration { big_endian, interfaces } = &mut self.kind else { return Ok(Step::NeedMore) };
        let Some(&[t0, t1, t2, t3, l0, l1, l2, l3, m0, m1, m2, m3]) = bytes.first_chunk() else {
            return Ok(Step::NeedMore);
        };
        if [t0, t1, t2, t3] == SECTION {
            *big_endian = match [m0, m1, m2, m3] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                magic => return Err(damaged(out, offset, &format!("byte order mark {magic:02x?} is unknown"))),
            };
            interfaces.clear();
        }
        let number = |bytes| if *big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) };
        let length = number([l0, l1, l2, l3]) as usize;
        if length < 12 || !length.is_multiple_of(4) || length > MAX_RECORD_BYTES {
            return Err(damaged(out, offset, &format!("a block cannot have {length} bytes")));
        }
        let Some(block) = bytes.get(..length) else { return Ok(Step::NeedMore) };
        let parsed = if *big_endian { parse_block_be(block) } else { parse_block_le(block) };
        let place = Place::Byte(offset);
        match parsed {
            Ok((_, Block::InterfaceDescription(description))) => {
                let snap_len = if description.snaplen == 0 { usize::MAX } else { description.snaplen as usize };
                interfaces.push(Interface { link: description.linktype.0, snap_len });
            }
            Ok((_, Block::EnhancedPacket(packet))) => match interfaces.get(packet.if_id as usize) {
                Some(&Interface { link, .. }) => {
                    self.packet(link, packet.packet_data(), packet.origlen, offset, out)?
                }
                None => out.bad(place, BadReason::Block(format!("interface {} was never described", packet.if_id)))?,
            },
            Ok((_, Block::SimplePacket(packet))) => match interfaces.first() {
                Some(&Interface { link, snap_len }) => {
                    let data = packet.packet_data();
                    self.packet(link, &data[..data.len().min(snap_len)], packet.origlen, offset, out)?;
                }
                None => out.bad(place, BadReason::Block("interface 0 was never described".to_owned()))?,
            },
            Ok((_, Block::Unknown(_))) if number([t0, t1, t2, t3]) == OBSOLETE_PACKET => {
                out.bad(place, BadReason::Block("packet blocks of the obsolete kind are not supported".to_owned()))?;
            }
            Ok(_) => {}
            Err(_) => {
                let kind = number([t0, t1, t2, t3]);
                out.bad(place, BadReason::Block(format!("type {kind:#x}, {length} bytes")))?;
            }
        }
        Ok(Step::Used(length))
    }

    fn packet(
        &mut self,
        link: i32,
        frame: &[u8],
        original: u32,
        offset: u64,
        out: &mut Collector<'_>,
    ) -> Result<(), Halt> {
        let place = Place::Byte(offset);
        let weight = if self.weigh_bytes { u64::from(original) } else { 1 };
        self.key.clear();
        match packet::push_key(&self.parts, link, frame, &mut self.key) {
            Ok(true) => out.key(&self.key, weight, place),
            Ok(false) => {
                out.summary.no_ip += 1;
                Ok(())
            }
            Err(reason) => out.bad(place, reason),
        }
    }
}

impl Decode for Capture {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let mut used = 0;
        while used < window.bytes.len() {
            match self.step(&window.bytes[used..], window.offset + used as u64, out)? {
                Step::Used(n) => used += n,
                Step::NeedMore => break,
            }
        }
        let left = window.bytes.len() - used;
        let offset = window.offset + used as u64;
        if window.end && left > 0 {
            return Err(Halt::Damaged(format!(
                "{}: the capture is truncated: it ends {left} bytes into the record at byte offset {offset}",
                out.input
            )));
        }
        if left > MAX_RECORD_BYTES {
            return Err(damaged(out, offset, &format!("a packet cannot have more than {MAX_RECORD_BYTES} bytes")));
        }
        Ok(used)
    }
}

fn damaged(out: &Collector<'_>, offset: u64, why: &str) -> Halt {
    Halt::Damaged(format!("{}: the capture is damaged at byte offset {offset}: {why}", out.input))
}
