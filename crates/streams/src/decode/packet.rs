//! Extracts the key of a captured frame: link layers, VLAN tags, IPv4, IPv6 with extension headers,
//! ports.
//!
//! Headers are sliced laxly, because captures are often cut to a snap length: whatever the key
//! needs must be there, the rest need not. Tunnels are not opened: the key is that of the outer
//! packet.

use etherparse::err::packet::SliceError;
use etherparse::{EtherType, IpNumber, LaxNetSlice, LaxSlicedPacket};

use crate::error::BadReason;
use crate::format::{PacketKey, Prefix};

/// Headers that a key can be made of.
struct Headers<'f> {
    source: &'f [u8],
    destination: &'f [u8],
    /// Source port and destination port, if they are needed; 0 where there are none.
    ports: [u8; 4],
    protocol: u8,
}

/// Appends the key of a frame; `false` if it carries no IP.
pub(super) fn push_key(parts: &[PacketKey], link: i32, frame: &[u8], key: &mut Vec<u8>) -> Result<bool, BadReason> {
    let cut = |missing| BadReason::PacketCut { captured: frame.len(), missing };
    let Some(packet) = slice(link, frame)? else { return Ok(false) };
    let (v4, v6);
    let (source, destination, payload, later_fragment): (&[u8], &[u8], _, _) = match &packet.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            v4 = (ip.header().source(), ip.header().destination());
            (&v4.0, &v4.1, ip.payload(), ip.header().fragments_offset().value() != 0)
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            v6 = (ip.header().source(), ip.header().destination());
            let later = is_later_fragment(ip.header().next_header(), ip.extensions().slice());
            (&v6.0, &v6.1, ip.payload(), later)
        }
        Some(LaxNetSlice::Arp(_)) => return Ok(false),
        None => {
            return match &packet.stop_err {
                None => Ok(false),
                Some((_, etherparse::err::Layer::Arp)) => Ok(false),
                Some((SliceError::Len(_), _)) => Err(cut("its headers")),
                Some((error, _)) => Err(BadReason::Packet(error.to_string())),
            };
        }
    };
    let protocol = payload.ip_number;
    let addresses_do = |part: &PacketKey| !part.needs_ports() && *part != PacketKey::Protocol;
    let ports = if later_fragment || parts.iter().all(addresses_do) {
        [0; 4]
    } else if protocol.is_ipv6_ext_header_value()
        && packet.net.as_ref().is_some_and(|net| matches!(net, LaxNetSlice::Ipv6(_)))
    {
        // The chain of extension headers could not be followed to its end.
        return match &packet.stop_err {
            Some((SliceError::Len(_), _)) | None => Err(cut("its extension headers")),
            Some((error, _)) => Err(BadReason::Packet(error.to_string())),
        };
    } else if has_ports(protocol) && parts.iter().any(|part| part.needs_ports()) {
        match payload.payload.first_chunk::<4>() {
            Some(ports) => *ports,
            None if payload.incomplete => return Err(cut("its ports")),
            None => return Err(BadReason::Packet("its payload is too short to hold ports".to_owned())),
        }
    } else {
        [0; 4]
    };
    let headers = Headers { source, destination, ports, protocol: protocol.0 };
    parts.iter().for_each(|part| headers.push(*part, key));
    Ok(true)
}

impl Headers<'_> {
    fn push(&self, part: PacketKey, key: &mut Vec<u8>) {
        let masked = |prefix: Prefix, address: &[u8], key: &mut Vec<u8>| {
            let start = key.len();
            key.extend_from_slice(address);
            prefix.mask(&mut key[start..]);
        };
        let (source_port, destination_port) = self.ports.split_at(2);
        match part {
            PacketKey::FiveTuple => self.push_tuple(false, key),
            PacketKey::Flow => {
                let turned = (self.source, source_port) > (self.destination, destination_port);
                self.push_tuple(turned, key);
            }
            PacketKey::Source => key.extend_from_slice(self.source),
            PacketKey::Destination => key.extend_from_slice(self.destination),
            PacketKey::SourceNet(prefix) => masked(prefix, self.source, key),
            PacketKey::DestinationNet(prefix) => masked(prefix, self.destination, key),
            PacketKey::SourcePort => key.extend_from_slice(source_port),
            PacketKey::DestinationPort => key.extend_from_slice(destination_port),
            PacketKey::Protocol => key.push(self.protocol),
        }
    }

    fn push_tuple(&self, turned: bool, key: &mut Vec<u8>) {
        let [a, b, c, d] = self.ports;
        if turned {
            key.extend_from_slice(self.destination);
            key.extend_from_slice(self.source);
            key.extend_from_slice(&[c, d, a, b, self.protocol]);
        } else {
            key.extend_from_slice(self.source);
            key.extend_from_slice(self.destination);
            key.extend_from_slice(&[a, b, c, d, self.protocol]);
        }
    }
}

/// Returns true if a fragment header with an offset is among the IPv6 extension headers.
///
/// Walked here because etherparse 0.21's own iterator reads past the end (unchecked) when the chain
/// was cut off by a snap length.
fn is_later_fragment(first: IpNumber, mut headers: &[u8]) -> bool {
    let mut kind = first;
    while let Some(&[next, length, high, low]) = headers.first_chunk() {
        let bytes = match kind {
            IpNumber::IPV6_FRAGMENTATION_HEADER => return u16::from_be_bytes([high, low]) >> 3 != 0,
            IpNumber::AUTHENTICATION_HEADER => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        kind = IpNumber(next);
        headers = headers.get(bytes..).unwrap_or_default();
    }
    false
}

/// TCP, UDP, DCCP, SCTP and UDP-Lite all begin with the two ports.
fn has_ports(protocol: IpNumber) -> bool {
    matches!(protocol.0, 6 | 17 | 33 | 132 | 136)
}

/// Takes off the link layer (numbers as in the registry of link types at tcpdump.org); `None` if no
/// IP can be inside.
fn slice(link: i32, frame: &[u8]) -> Result<Option<LaxSlicedPacket<'_>>, BadReason> {
    let cut = |missing| BadReason::PacketCut { captured: frame.len(), missing };
    let by_type = |ether_type: Option<&[u8; 2]>, header: usize| match (ether_type, frame.get(header..)) {
        (Some(ether_type), Some(rest)) => {
            Ok(Some(LaxSlicedPacket::from_ether_type(EtherType(u16::from_be_bytes(*ether_type)), rest)))
        }
        _ => Err(cut("its link header")),
    };
    match link {
        // Ethernet.
        1 => LaxSlicedPacket::from_ethernet(frame).map(Some).map_err(|_| cut("its link header")),
        // Raw IP, under the numbers of several systems.
        12 | 14 | 101 | 228 | 229 => from_ip(frame, frame),
        // Linux cooked capture: the protocol is at the end of a 16-byte header, or (v2) at the
        // start of a 20-byte one.
        113 => by_type(frame.get(14..).and_then(|rest| rest.first_chunk()), 16),
        276 => by_type(frame.first_chunk(), 20),
        // BSD loopback: an address family of 4 bytes, in the byte order of whoever captured (0) or
        // of the network (108).
        0 | 108 => match frame.split_first_chunk::<4>() {
            Some(([0, 0, 0, f] | [f, 0, 0, 0], rest)) if is_ip_family(*f) => from_ip(rest, frame),
            Some(_) => Ok(None),
            None => Err(cut("its link header")),
        },
        other => Err(BadReason::LinkType(other)),
    }
}

/// The values of `AF_INET` and, on the various systems, `AF_INET6`.
fn is_ip_family(family: u8) -> bool {
    matches!(family, 2 | 10 | 24 | 28 | 30)
}

fn from_ip<'f>(ip: &'f [u8], frame: &[u8]) -> Result<Option<LaxSlicedPacket<'f>>, BadReason> {
    use etherparse::err::ip::LaxHeaderSliceError::{Content, Len};
    match LaxSlicedPacket::from_ip(ip) {
        Ok(packet) => Ok(Some(packet)),
        Err(Len(_)) => Err(BadReason::PacketCut { captured: frame.len(), missing: "its headers" }),
        Err(Content(error)) => Err(BadReason::Packet(error.to_string())),
    }
}
