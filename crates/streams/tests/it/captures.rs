//! Captures: built here packet by packet, and one real one that tshark has counted.

use std::ops::ControlFlow;

use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv6Extensions, Ipv6FragmentHeader, Ipv6Header, Ipv6RawExtHeader,
    PacketBuilder, VlanId,
};
use ucl_streams::{ExactCounts, Format, OnError, Source, read};

use proptest::prelude::*;

use crate::support::{collect, options};

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const A6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const B6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
const UDP4: &str = "10.0.0.1:53 > 10.0.0.2:5353 udp";

/// A finished packet with a payload of ten bytes.
macro_rules! packet {
    ($builder:expr) => {{
        let mut bytes = Vec::new();
        $builder.write(&mut bytes, &[7; 10]).unwrap();
        bytes
    }};
}

fn ethernet() -> etherparse::PacketBuilderStep<etherparse::Ethernet2Header> {
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
}

fn ip4_udp() -> Vec<u8> {
    packet!(PacketBuilder::ipv4(A, B, 64).udp(53, 5353))
}

fn under_ethernet(ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &ether_type.to_be_bytes(), payload].concat()
}

/// How a capture file is laid out.
#[derive(Clone, Copy)]
struct Layout {
    big_endian: bool,
    magic: u32,
}

impl Layout {
    const LITTLE: Layout = Layout { big_endian: false, magic: 0xa1b2_c3d4 };

    fn n32(self, n: usize) -> [u8; 4] {
        let n = n as u32;
        if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn n16(self, n: u16) -> [u8; 2] {
        if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn pcap(self, link: u32, snap_len: usize, packets: &[Vec<u8>]) -> Vec<u8> {
        let mut file = self.n32(self.magic as usize).to_vec();
        file.extend([self.n16(2), self.n16(4)].concat());
        file.extend([self.n32(0), self.n32(0), self.n32(snap_len), self.n32(link as usize)].concat());
        for packet in packets {
            let kept = &packet[..packet.len().min(snap_len)];
            file.extend([self.n32(1), self.n32(2), self.n32(kept.len()), self.n32(packet.len())].concat());
            file.extend(kept);
        }
        file
    }

    fn block(self, kind: usize, body: &[u8]) -> Vec<u8> {
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        let length = self.n32(body.len() + padding.len() + 12);
        [&self.n32(kind)[..], &length, body, &padding, &length].concat()
    }

    fn section(self) -> Vec<u8> {
        self.block(0x0a0d_0d0a, &[&self.n32(0x1a2b_3c4d)[..], &self.n16(1), &self.n16(0), &[0xff; 8]].concat())
    }

    fn interface(self, link: u16, snap_len: usize) -> Vec<u8> {
        // With an option (a name of two letters), which nobody here needs.
        let option = [&self.n16(2)[..], &self.n16(2), b"lo\0\0", &[0; 4]].concat();
        self.block(1, &[&self.n16(link)[..], &self.n16(0), &self.n32(snap_len), &option].concat())
    }

    fn enhanced(self, interface: usize, original: usize, data: &[u8]) -> Vec<u8> {
        let head = [self.n32(interface), self.n32(0), self.n32(9), self.n32(data.len()), self.n32(original)].concat();
        self.block(6, &[&head[..], data].concat())
    }

    fn simple(self, original: usize, data: &[u8]) -> Vec<u8> {
        self.block(3, &[&self.n32(original)[..], data].concat())
    }
}

/// A small mixed bag of packets.
fn bag() -> Vec<Vec<u8>> {
    vec![
        packet!(ethernet().ipv4(A, B, 64).tcp(443, 51234, 1, 1000)),
        packet!(ethernet().ipv6(A6, B6, 64).udp(1, 65535)),
        under_ethernet(0x0806, &[0; 28]),
        packet!(ethernet().ipv4(A, B, 64).icmpv4_echo_request(1, 1)),
    ]
}

const BAG: [&str; 3] =
    ["10.0.0.1:443 > 10.0.0.2:51234 tcp", "[2001:db8::1]:1 > [2001:db8::2]:65535 udp", "10.0.0.1:0 > 10.0.0.2:0 icmp"];

/// The bag in every kind of file there is.
pub fn every_container() -> Vec<(&'static str, Vec<u8>)> {
    let big = Layout { big_endian: true, ..Layout::LITTLE };
    let modified = {
        // Packet headers have eight more bytes in this old variant.
        let layout = Layout { magic: 0xa1b2_cd34, ..Layout::LITTLE };
        let mut file = layout.pcap(1, 65_535, &[]);
        for packet in bag() {
            let n = layout.n32(packet.len());
            file.extend([&layout.n32(1)[..], &layout.n32(2), &n, &n, &[0; 8], &packet].concat());
        }
        file
    };
    let next_generation = |layout: Layout| {
        let [a, b, c, d] = <[Vec<u8>; 4]>::try_from(bag()).unwrap();
        let other = layout.block(0x0bad_0bad, b"of a kind nobody knows");
        [
            layout.section(),
            layout.interface(1, 0),
            layout.enhanced(0, a.len(), &a),
            other,
            layout.interface(101, 65_535),
            layout.enhanced(1, b.len() - 14, &b[14..]),
            // A new section forgets the interfaces, and may have the other byte order.
            big.section(),
            big.interface(1, 65_535),
            big.simple(c.len(), &c),
            big.enhanced(0, d.len(), &d),
        ]
        .concat()
    };
    vec![
        ("pcap", Layout::LITTLE.pcap(1, 65_535, &bag())),
        ("big-endian", big.pcap(1, 65_535, &bag())),
        ("nanoseconds", Layout { magic: 0xa1b2_3c4d, ..Layout::LITTLE }.pcap(1, 65_535, &bag())),
        ("big-endian nanoseconds", Layout { magic: 0xa1b2_3c4d, big_endian: true }.pcap(1, 65_535, &bag())),
        ("with check sequences", Layout::LITTLE.pcap(1 | 4 << 28 | 1 << 26, 65_535, &bag())),
        ("modified", modified),
        ("pcapng", next_generation(Layout::LITTLE)),
        ("big-endian pcapng", next_generation(big)),
    ]
}

/// Keys as people see them, of a capture without fault.
fn shown(format: &str, capture: &[u8]) -> Vec<String> {
    let (items, result) = collect(capture, &options(format, None, OnError::Stop));
    result.unwrap();
    let format: Format = format.parse().unwrap();
    items.iter().map(|(key, _)| format.key_display(key)).collect()
}

/// The five-tuples of single packets on Ethernet.
fn on_ethernet(packets: &[Vec<u8>]) -> Vec<String> {
    shown("pcap", &Layout::LITTLE.pcap(1, 65_535, packets))
}

#[test]
fn every_container_holds_the_same() {
    for (name, capture) in every_container() {
        assert_eq!(shown("pcap", &capture), BAG, "{name}");
        let (items, result) = collect(&capture[..], &options("pcap:src", Some("bytes"), OnError::Stop));
        assert_eq!(result.unwrap().no_ip, 1, "{name}: the ARP packet");
        let weights: Vec<_> = items.iter().map(|(_, weight)| *weight).collect();
        let v6 = if name.contains("pcapng") { 58 } else { 72 };
        assert_eq!(weights, [64, v6, 52], "{name}");
        assert_eq!(shown("pcap:src", &capture), ["10.0.0.1", "2001:db8::1", "10.0.0.1"]);
        assert_eq!(shown("pcap:dst", &capture), ["10.0.0.2", "2001:db8::2", "10.0.0.2"]);
        assert_eq!(shown("pcap:srcport", &capture), ["443", "1", "0"]);
        assert_eq!(shown("pcap:dstport", &capture), ["51234", "65535", "0"]);
    }
    assert_eq!(shown("pcap", b""), [""; 0], "an empty file is an empty stream");
}

#[test]
fn key_bytes_are_in_network_order() {
    let (items, _) = collect(&Layout::LITTLE.pcap(1, 65_535, &bag())[..], &options("pcap", None, OnError::Stop));
    assert_eq!(items[0].0, [10, 0, 0, 1, 10, 0, 0, 2, 1, 187, 200, 34, 6]);
    assert_eq!(items[1].0, [&A6[..], &B6, &[0, 1, 255, 255, 17]].concat());
}

#[test]
fn parts_of_packets() {
    let v6 = packet!(ethernet().ipv6(A6, B6, 64).tcp(443, 51_234, 1, 1));
    let packets = [
        packet!(ethernet().ipv4(A, B, 64).udp(53, 5353)),
        packet!(ethernet().ipv4(B, A, 64).udp(5353, 53)),
        v6,
        packet!(ethernet().ipv6(B6, A6, 64).tcp(51_234, 443, 1, 1)),
    ];
    let capture = Layout::LITTLE.pcap(1, 65_535, &packets);
    let shown = |format: &str| shown(format, &capture);
    assert_eq!(shown("pcap:proto"), ["udp", "udp", "tcp", "tcp"]);
    assert_eq!(shown("pcap:src/31"), ["10.0.0.0/31", "10.0.0.2/31", "2001:db8::/48", "2001:db8::/48"]);
    assert_eq!(shown("pcap:dst/8/127"), ["10.0.0.0/8", "10.0.0.0/8", "2001:db8::2/127", "2001:db8::/127"]);
    let (udp, tcp) = ("10.0.0.1:53 <> 10.0.0.2:5353 udp", "[2001:db8::1]:443 <> [2001:db8::2]:51234 tcp");
    assert_eq!(shown("pcap:flow"), [udp, udp, tcp, tcp], "both directions");
    assert_eq!(shown("pcap:src,dstport")[..2], ["10.0.0.1,5353", "10.0.0.2,53"]);
    assert_eq!(shown("pcap:dst,proto")[2], "2001:db8::2,tcp");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The two directions of a connection are one flow, and no others are.
    #[test]
    fn flows_have_two_directions(a in any::<(u8, u16)>(), b in any::<(u8, u16)>(), c in any::<(u8, u16)>()) {
        let packet = |(from, from_port): (u8, u16), (to, to_port): (u8, u16)| {
            packet!(ethernet().ipv4([10, 0, 0, from], [10, 0, 0, to], 64).udp(from_port, to_port))
        };
        let capture = Layout::LITTLE.pcap(1, 65_535, &[packet(a, b), packet(b, a), packet(a, c)]);
        let flows = shown("pcap:flow", &capture);
        prop_assert_eq!(&flows[0], &flows[1]);
        prop_assert_eq!(flows[0] == flows[2], b == c);
    }
}

#[test]
fn vlan_tags() {
    let id = |n| VlanId::try_new(n).unwrap();
    let tagged = packet!(ethernet().single_vlan(id(7)).ipv4(A, B, 64).udp(53, 5353));
    let twice = packet!(ethernet().double_vlan(id(7), id(8)).ipv4(A, B, 64).udp(53, 5353));
    assert_eq!(twice[12..14], [0x88, 0xa8], "this is QinQ");
    let mut old_twice = twice.clone();
    old_twice[12..14].copy_from_slice(&[0x91, 0]);
    let both_8100 = under_ethernet(0x8100, &[&[0, 7, 0x81, 0, 0, 8, 8, 0][..], &ip4_udp()].concat());
    assert_eq!(on_ethernet(&[tagged, twice, old_twice, both_8100]), [UDP4; 4]);
}

#[test]
fn link_types() {
    let udp = ip4_udp();
    let cooked = [&[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0][..], &udp].concat();
    let cooked2 = [&[8, 0, 0, 0, 0, 0, 0, 1, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0][..], &udp].concat();
    let cooked_tagged = [&[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 7, 8, 0][..], &udp].concat();
    let little = [&[2, 0, 0, 0][..], &udp].concat();
    let big = [&[0, 0, 0, 2][..], &udp].concat();
    for (link, packet) in [
        (0, &little),
        (0, &big),
        (108, &big),
        (12, &udp),
        (14, &udp),
        (101, &udp),
        (228, &udp),
        (113, &cooked),
        (113, &cooked_tagged),
        (276, &cooked2),
    ] {
        assert_eq!(
            shown("pcap", &Layout::LITTLE.pcap(link, 65_535, std::slice::from_ref(packet))),
            [UDP4],
            "link type {link}"
        );
    }
    let v6 = packet!(PacketBuilder::ipv6(A6, B6, 64).udp(1, 65535));
    let v6_null = [&[30, 0, 0, 0][..], &v6].concat();
    assert_eq!(shown("pcap", &Layout::LITTLE.pcap(229, 65_535, &[v6])), BAG[1..2]);
    assert_eq!(shown("pcap", &Layout::LITTLE.pcap(0, 65_535, &[v6_null])), BAG[1..2]);

    let (_, result) = collect(&Layout::LITTLE.pcap(105, 65_535, &[udp])[..], &options("pcap", None, OnError::Stop));
    let message = result.unwrap_err().to_string();
    assert!(
        message.starts_with("input, byte offset 24: link type 105 is not supported (supported: Ethernet 1,"),
        "{message}"
    );
}

#[test]
fn extension_headers() {
    let raw = |n| Ipv6RawExtHeader::new_raw(IpNumber::UDP, &[n; 6]).unwrap();
    let header = Ipv6Header { source: A6, destination: B6, hop_limit: 64, ..Ipv6Header::default() };
    let extensions = Ipv6Extensions {
        hop_by_hop_options: Some(raw(1)),
        destination_options: Some(raw(0)),
        ..Ipv6Extensions::default()
    };
    let long = packet!(ethernet().ip(IpHeaders::Ipv6(header.clone(), extensions.clone())).udp(1, 65535));
    assert_eq!(on_ethernet(std::slice::from_ref(&long)), BAG[1..2]);

    // First and later fragments.
    let fragment = |offset, more| {
        let fragment = Ipv6FragmentHeader::new(IpNumber::UDP, IpFragOffset::try_new(offset).unwrap(), more, 77);
        let extensions = Ipv6Extensions { fragment: Some(fragment), ..extensions.clone() };
        packet!(ethernet().ip(IpHeaders::Ipv6(header.clone(), extensions)).udp(1, 65535))
    };
    let later = "[2001:db8::1]:0 > [2001:db8::2]:0 udp";
    assert_eq!(on_ethernet(&[fragment(0, true), fragment(100, true), fragment(100, false)]), [BAG[1], later, later]);

    // The chain is cut off: addresses are known, the rest is not.
    let cut = Layout::LITTLE.pcap(1, 14 + 40 + 10, &[long]);
    assert_eq!(shown("pcap:dst", &cut), ["2001:db8::2"]);
    let (_, result) = collect(&cut[..], &options("pcap", None, OnError::Stop));
    let message =
        "input, byte offset 24: only 64 bytes of the packet were captured, which cuts off its extension headers";
    assert_eq!(result.unwrap_err().to_string(), message);
}

#[test]
fn fragments_and_portless_protocols() {
    let with = |protocol, offset, more| {
        let mut header = Ipv4Header::new(18, 64, IpNumber(protocol), A, B).unwrap();
        header.fragment_offset = IpFragOffset::try_new(offset).unwrap();
        header.more_fragments = more;
        header.header_checksum = header.calc_header_checksum();
        let mut packet = Vec::new();
        header.write(&mut packet).unwrap();
        packet.extend([0, 53, 0x14, 0xe9, 0, 18, 0, 0]);
        packet.extend([7; 10]);
        under_ethernet(0x0800, &packet)
    };
    let packets = [
        with(17, 0, true),
        with(17, 9, false),
        with(132, 0, false),
        with(33, 0, false),
        with(136, 0, false),
        with(47, 0, false),
        with(50, 0, false),
        with(253, 0, false),
    ];
    let expected = [
        UDP4,
        "10.0.0.1:0 > 10.0.0.2:0 udp",
        "10.0.0.1:53 > 10.0.0.2:5353 sctp",
        "10.0.0.1:53 > 10.0.0.2:5353 dccp",
        "10.0.0.1:53 > 10.0.0.2:5353 udplite",
        "10.0.0.1:0 > 10.0.0.2:0 gre",
        "10.0.0.1:0 > 10.0.0.2:0 esp",
        "10.0.0.1:0 > 10.0.0.2:0 253",
    ];
    assert_eq!(on_ethernet(&packets), expected);
}

#[test]
fn packets_without_ip_are_counted_not_bad() {
    let packets = [
        under_ethernet(0x0806, &[0; 28]),
        under_ethernet(0x0806, &[0; 5]),
        under_ethernet(0x88cc, &[1; 40]),
        under_ethernet(38, &[0xaa; 40]),
    ];
    let (items, result) = collect(&Layout::LITTLE.pcap(1, 65_535, &packets)[..], &options("pcap", None, OnError::Stop));
    let summary = result.unwrap();
    assert_eq!((items.len(), summary.no_ip, summary.skipped), (0, 4, 0));
}

#[test]
fn snap_lengths() {
    let packets = [packet!(ethernet().ipv4(A, B, 64).tcp(443, 51234, 1, 1000))];
    // Four bytes of the TCP header are enough for the ports, 20 of IP for the addresses, and the
    // weight is the original length.
    let capture = |snap_len| Layout::LITTLE.pcap(1, snap_len, &packets);
    assert_eq!(shown("pcap", &capture(38)), BAG[..1]);
    let (items, _) = collect(&capture(38)[..], &options("pcap", Some("bytes"), OnError::Stop));
    assert_eq!(items[0].1, 64);
    assert_eq!(shown("pcap:src", &capture(34)), ["10.0.0.1"]);
    for (snap_len, format, missing) in [
        (37, "pcap", "its ports"),
        (34, "pcap:dstport", "its ports"),
        (33, "pcap:src", "its headers"),
        (13, "pcap:src", "its link header"),
    ] {
        let (_, result) = collect(&capture(snap_len)[..], &options(format, None, OnError::Stop));
        let message = format!(
            "input, byte offset 24: only {snap_len} bytes of the packet were captured, which cuts off {missing}"
        );
        assert_eq!(result.unwrap_err().to_string(), message);
    }
    // A simple packet block does not say how much was kept; its interface does.
    let layout = Layout::LITTLE;
    let simple = [layout.section(), layout.interface(1, 38), layout.simple(64, &packets[0][..38])].concat();
    assert_eq!(shown("pcap", &simple), BAG[..1]);
    let (items, _) = collect(&simple[..], &options("pcap", Some("bytes"), OnError::Stop));
    assert_eq!(items[0].1, 64);
}

#[test]
fn truncated_captures_keep_what_came_before() {
    for (name, capture) in every_container() {
        let cut = &capture[..capture.len() - 5];
        let (items, result) = collect(cut, &options("pcap", None, OnError::Stop));
        let error = result.unwrap_err();
        assert_eq!(items.len(), 2, "{name}");
        assert!(error.to_string().starts_with("input: the capture is truncated: it ends "), "{name}: {error}");
        let (again, result) = collect(cut, &options("pcap", None, OnError::Skip));
        assert_eq!(again, items);
        assert_eq!(result.unwrap().truncated.unwrap(), error.to_string());
    }
    let header = &Layout::LITTLE.pcap(1, 100, &[])[..20];
    let (_, result) = collect(header, &options("pcap", None, OnError::Stop));
    let message = "input: the capture is truncated: it ends 20 bytes into the record at byte offset 0";
    assert_eq!(result.unwrap_err().to_string(), message);
}

#[test]
fn damaged_captures() {
    let case = |capture: Vec<u8>, message: &str, items_with_skip: usize| {
        let (_, result) = collect(&capture[..], &options("pcap", None, OnError::Stop));
        assert_eq!(result.unwrap_err().to_string(), message);
        let (items, result) = collect(&capture[..], &options("pcap", None, OnError::Skip));
        let summary = result.unwrap();
        assert_eq!(items.len(), items_with_skip);
        assert!(summary.truncated.is_some() || summary.skipped == 1);
    };
    case(b"not a capture".to_vec(), "input is not a pcap or pcapng capture: it starts with bytes [6e, 6f, 74, 20]", 0);
    let layout = Layout::LITTLE;
    let packet = bag().swap_remove(0);
    let good = layout.enhanced(0, packet.len(), &packet);
    let start = [layout.section(), layout.interface(1, 0)].concat();
    let at = start.len();
    // What is wrong inside of one block is passed over with it.
    case(
        [&start[..], &layout.enhanced(3, 9, &packet), &good].concat(),
        &format!("input, byte offset {at}: malformed capture block: interface 3 was never described"),
        1,
    );
    case(
        [&start[..], &layout.block(2, &packet), &good].concat(),
        &format!(
            "input, byte offset {at}: malformed capture block: packet blocks of the obsolete kind are not supported"
        ),
        1,
    );
    case(
        [&start[..], &layout.block(6, &[0; 8]), &good].concat(),
        &format!("input, byte offset {at}: malformed capture block: type 0x6, 20 bytes"),
        1,
    );
    // Where the length itself is wrong there is no telling where the next block starts.
    let mut lying = good.clone();
    lying[4..8].copy_from_slice(&[13, 0, 0, 0]);
    case(
        [&start[..], &good, &lying].concat(),
        &format!("input: the capture is damaged at byte offset {}: a block cannot have 13 bytes", at + good.len()),
        1,
    );
    // A packet that contradicts itself: an IPv4 header of 8 bytes.
    let mut wrong = packet.clone();
    wrong[14] = 0x42;
    let capture = layout.pcap(1, 65_535, &[wrong, packet]);
    let (items, result) = collect(&capture[..], &options("pcap", None, OnError::Skip));
    assert_eq!(items.len(), 1);
    assert!(result.unwrap().first_skip.unwrap().to_string().starts_with("input, byte offset 24: malformed packet: "));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever a packet holds and wherever it is cut: an item, no IP, or a bad record, and nothing
    /// worse.
    #[test]
    fn any_packet_is_accounted_for(
        link in prop::sample::select(vec![0u32, 1, 101, 108, 113, 276]),
        which in 0usize..6,
        cut in 0usize..120,
        flips in prop::collection::vec((0usize..100, any::<u8>()), 0..4),
    ) {
        let raw = |next| Ipv6RawExtHeader::new_raw(IpNumber(next), &[0; 14]).unwrap();
        let header = Ipv6Header { source: A6, destination: B6, hop_limit: 64, ..Ipv6Header::default() };
        let extensions = Ipv6Extensions {
            hop_by_hop_options: Some(raw(0)),
            destination_options: Some(raw(0)),
            fragment: Some(Ipv6FragmentHeader::new(IpNumber::UDP, IpFragOffset::try_new(0).unwrap(), true, 77)),
            ..Ipv6Extensions::default()
        };
        let mut packets = bag();
        packets.push(packet!(PacketBuilder::ip(IpHeaders::Ipv6(header, extensions)).udp(1, 65535)));
        packets.push(ip4_udp());
        let mut packet = packets.swap_remove(which);
        if link != 1 && which > 3 {
            let front: &[u8] = match link {
                0 => &[30, 0, 0, 0],
                108 => &[0, 0, 0, 2],
                113 => &[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0x86, 0xdd],
                276 => &[0x86, 0xdd, 0, 0, 0, 0, 0, 1, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0],
                _ => &[],
            };
            packet = [front, &packet].concat();
        }
        for (at, flip) in flips {
            if let Some(byte) = packet.get_mut(at) {
                *byte ^= flip;
            }
        }
        let capture = Layout::LITTLE.pcap(link, cut, &[packet]);
        for format in ["pcap", "pcap:src", "pcap:dstport"] {
            let (items, result) = collect(&capture[..], &options(format, None, OnError::Skip));
            let summary = result.unwrap();
            prop_assert_eq!(items.len() as u64 + summary.no_ip + summary.skipped, 1);
        }
    }
}

/// See `tests/data/README.md`.
#[test]
fn real_captures_count_as_tshark_counts() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let expected = std::fs::read_to_string(data.join("loopback.counts")).unwrap();
    for (name, times) in [("loopback.pcap", 1), ("loopback.pcapng", 2)] {
        let options = options("pcap", None, OnError::Stop);
        let mut counts = ExactCounts::new();
        let summary = read(&[Source::Path(data.join(name))], &options, &mut |batch| {
            counts.insert_batch(batch);
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!((summary.items, summary.no_ip), (62 * times, 0), "{name}");
        let mut got: Vec<_> = counts
            .iter()
            .map(|(key, count)| format!("{}\t{}", count / times, options.format.key_display(key)))
            .collect();
        let mut wanted: Vec<_> = expected.lines().map(str::to_owned).collect();
        got.sort();
        wanted.sort();
        assert_eq!(got, wanted, "{name}");
        assert!(counts.iter().all(|(_, count)| count % times == 0));
    }
}
