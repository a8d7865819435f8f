//! Keys as readable text: [`Format::key_display`] and its inverse [`Format::parse_key`].
//!
//! Each format has a plain way to write its keys (numbers, addresses, text); the empty text is
//! `""`. A key of several parts is written as a record of CSV: `alice,/index.html`. A key that
//! would not come back from it, or could not be shown safely ([`acts_on_terminal`]), is written in
//! hexadecimal: `0x…` for `records` and captures, `hex:…` for the formats of text, where a key that
//! *reads* `0x1f` is quite usual. So `parse_key(key_display(k)) == k` for every key.
//!
//! Such escapes are for people. Programs want the key itself: [`Format::key_data`].

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::format::{Format, PacketKey};
use crate::{MAX_KEY_BYTES, SpecError, composite};

/// Text of the empty key: nothing at all would be overlooked.
const EMPTY: &str = "\"\"";

const PROTOCOLS: [(u8, &str); 12] = [
    (1, "icmp"),
    (2, "igmp"),
    (6, "tcp"),
    (17, "udp"),
    (33, "dccp"),
    (47, "gre"),
    (50, "esp"),
    (51, "ah"),
    (58, "icmpv6"),
    (89, "ospf"),
    (132, "sctp"),
    (136, "udplite"),
];

impl Format {
    /// Formats a key for people.
    ///
    /// ```
    /// use ucl_streams::Format;
    ///
    /// let flows: Format = "pcap:5tuple".parse().unwrap();
    /// let key = [10, 0, 0, 1, 10, 0, 0, 2, 1, 187, 200, 34, 6];
    /// assert_eq!(flows.key_display(&key), "10.0.0.1:443 > 10.0.0.2:51234 tcp");
    /// assert_eq!(Format::Lines.key_display(b"\xff\x00"), "hex:ff00");
    /// assert_eq!(Format::Records(2).key_display(b"\xff\x00"), "0xff00");
    /// ```
    pub fn key_display(&self, key: &[u8]) -> String {
        self.plain(key)
            .filter(|text| self.parse_key(text).is_ok_and(|back| back == key))
            .unwrap_or_else(|| hex(self.hex_mark(), key))
    }

    /// Returns a key as data files hold it: the bytes of the record without escapes, or the text of
    /// a number, address, port or five-tuple.
    ///
    /// ```
    /// use ucl_streams::Format;
    ///
    /// assert_eq!(*Format::Lines.key_data(b"tab\there\xff"), *b"tab\there\xff");
    /// assert_eq!(*Format::Fimi.key_data(&7u32.to_le_bytes()), *b"7");
    /// ```
    pub fn key_data<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match self {
            Format::Fimi => fimi_token(key),
            Format::Pcap(_) => self.key_display(key).into_bytes().into(),
            _ => key.into(),
        }
    }

    /// Parses a key in the form that [`key_display`](Self::key_display) writes.
    ///
    /// # Errors
    /// When the text is no key of this format; the message shows one.
    pub fn parse_key(&self, text: &str) -> Result<Vec<u8>, SpecError> {
        self.parse_key_bytes(text.as_bytes())
    }

    /// Parses a key that need not be valid UTF-8, in any form that [`parse_key`](Self::parse_key)
    /// accepts or as plain bytes.
    ///
    /// ```
    /// use ucl_streams::Format;
    ///
    /// assert_eq!(Format::Lines.parse_key_bytes(b"caf\xe9").unwrap(), b"caf\xe9");
    /// assert_eq!(Format::Lines.parse_key_bytes(b"hex:e9").unwrap(), b"\xe9");
    /// ```
    ///
    /// # Errors
    /// When the bytes are no key of this format; the message shows one.
    pub fn parse_key_bytes(&self, bytes: &[u8]) -> Result<Vec<u8>, SpecError> {
        let text = String::from_utf8_lossy(bytes);
        let wrong = |expected: String| SpecError::Key { given: text.to_string(), format: self.to_string(), expected };
        if let Some(key) = bytes.strip_prefix(self.hex_mark().as_bytes()).and_then(unhex) {
            return if key.len() <= MAX_KEY_BYTES { Ok(key) } else { Err(wrong(too_long())) };
        }
        let parts = self.parts();
        let key = match self {
            Format::Pcap(kinds) => parse_packet(kinds, &text).ok_or_else(|| wrong(packet_example(kinds)))?,
            _ if parts > 1 => match composite::split(bytes).filter(|found| found.len() == parts) {
                Some(found) => composite::join(found),
                None => return Err(wrong(format!("give {parts} parts with commas between them, as in a CSV file"))),
            },
            Format::Fimi => fimi_key(bytes),
            Format::Records(size) if bytes.len() == *size => bytes.to_vec(),
            Format::Records(size) => {
                return Err(wrong(format!("give {size} characters, or 0x and {} digits", 2 * size)));
            }
            _ if bytes == EMPTY.as_bytes() => Vec::new(),
            _ => bytes.to_vec(),
        };
        if key.len() <= MAX_KEY_BYTES { Ok(key) } else { Err(wrong(too_long())) }
    }

    fn hex_mark(&self) -> &'static str {
        match self {
            Format::Records(_) | Format::Pcap(_) => "0x",
            _ => "hex:",
        }
    }

    /// The format's own way to write a key, if it has one for these bytes.
    fn plain(&self, key: &[u8]) -> Option<String> {
        match self {
            Format::Fimi => printable(&fimi_token(key)),
            Format::Pcap(kinds) => packet(kinds, key),
            _ => printable(key),
        }
    }
}

/// The key of a `fimi` token (see [`Format`]).
pub(crate) fn fimi_key(token: &[u8]) -> Vec<u8> {
    match canonical_u32(token) {
        Some(number) => number.to_le_bytes().to_vec(),
        None => {
            let mut key = token.to_vec();
            if token.len() == 4 || (token.len() > 4 && token.ends_with(&[0])) {
                key.push(0);
            }
            key
        }
    }
}

/// The `fimi` token of a key: the inverse of [`fimi_key`].
fn fimi_token(key: &[u8]) -> Cow<'_, [u8]> {
    match key {
        &[a, b, c, d] => u32::from_le_bytes([a, b, c, d]).to_string().into_bytes().into(),
        [token @ .., 0] if token.len() >= 4 => token.into(),
        token => token.into(),
    }
}

/// The number a token stands for, if this is the only way to write it.
fn canonical_u32(token: &[u8]) -> Option<u32> {
    if token.is_empty() || token.len() > 10 || (token[0] == b'0' && token.len() > 1) {
        return None;
    }
    let mut number = 0u64;
    for &byte in token {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    u32::try_from(number).ok()
}

fn too_long() -> String {
    format!("keys have up to {MAX_KEY_BYTES} bytes")
}

fn printable(key: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(key).ok()?;
    match text {
        "" => Some(EMPTY.to_owned()),
        text => (!text.chars().any(acts_on_terminal)).then(|| text.to_owned()),
    }
}

/// Returns true if a terminal would act on this character instead of showing it: control
/// characters, changes of the writing direction, line separators, and invisible characters.
///
/// The two joiners are let through. Several scripts cannot be written without them, and they move
/// nothing.
///
/// ```
/// use ucl_streams::acts_on_terminal;
///
/// assert!(['\x1b', '\n', '\u{202e}', '\u{200b}'].into_iter().all(acts_on_terminal));
/// assert!(!"grün, سلام, שלום, می\u{200c}خواهم, 👩\u{200d}🔬".chars().any(acts_on_terminal));
/// ```
pub fn acts_on_terminal(char: char) -> bool {
    char.is_control()
        || matches!(char,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn hex(mark: &str, key: &[u8]) -> String {
    key.iter().fold(mark.to_owned(), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
        }
        text
    })
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|d| d as u8);
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?)).collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
        16 => Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
        _ => None,
    }
}

fn port(bytes: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.try_into().ok()?))
}

fn protocol(number: u8) -> String {
    let named = PROTOCOLS.iter().find(|(known, _)| *known == number);
    named.map_or_else(|| number.to_string(), |(_, name)| (*name).to_owned())
}

fn parse_protocol(text: &str) -> Option<u8> {
    let named = PROTOCOLS.iter().find(|(_, name)| *name == text);
    named.map_or_else(|| text.parse().ok(), |(number, _)| Some(*number))
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// Writes the parts of a packet's key, which has to have their size for IPv4 or IPv6.
fn packet(kinds: &[PacketKey], mut key: &[u8]) -> Option<String> {
    let size = |address: usize| kinds.iter().map(|kind| kind.bytes(address)).sum::<usize>();
    let address_bytes = [4, 16].into_iter().find(|&address| size(address) == key.len())?;
    let part = |kind: &PacketKey| {
        let (part, rest) = key.split_at_checked(kind.bytes(address_bytes))?;
        key = rest;
        packet_part(*kind, part)
    };
    let parts: Option<Vec<String>> = kinds.iter().map(part).collect();
    parts.map(|parts| parts.join(","))
}

fn packet_part(kind: PacketKey, part: &[u8]) -> Option<String> {
    match kind {
        PacketKey::FiveTuple => five_tuple(part, ">"),
        PacketKey::Flow => five_tuple(part, "<>"),
        PacketKey::Source | PacketKey::Destination => address(part).map(|address| address.to_string()),
        PacketKey::SourceNet(prefix) | PacketKey::DestinationNet(prefix) => {
            address(part).map(|address| format!("{address}/{}", prefix.bits(part.len())))
        }
        PacketKey::SourcePort | PacketKey::DestinationPort => port(part).map(|port| port.to_string()),
        PacketKey::Protocol => part.first().copied().map(protocol),
    }
}

/// Reads what [`packet`] writes. All addresses must be of one kind.
fn parse_packet(kinds: &[PacketKey], text: &str) -> Option<Vec<u8>> {
    let texts: Vec<&str> = text.split(',').map(str::trim).collect();
    if texts.len() != kinds.len() {
        return None;
    }
    let parts: Option<Vec<Vec<u8>>> =
        kinds.iter().zip(texts).map(|(kind, text)| parse_packet_part(*kind, text)).collect();
    let parts = parts?;
    let of_one_kind = |address| kinds.iter().zip(&parts).all(|(kind, part)| part.len() == kind.bytes(address));
    [4, 16].into_iter().any(of_one_kind).then(|| parts.concat())
}

fn parse_packet_part(kind: PacketKey, text: &str) -> Option<Vec<u8>> {
    match kind {
        PacketKey::FiveTuple => parse_five_tuple(text, ">"),
        PacketKey::Flow => parse_five_tuple(text, "<>"),
        PacketKey::Source | PacketKey::Destination => text.parse().ok().map(octets),
        PacketKey::SourceNet(prefix) | PacketKey::DestinationNet(prefix) => {
            let (text, bits) = text.split_once('/').map_or((text, None), |(text, bits)| (text, Some(bits)));
            let mut address = text.parse().ok().map(octets)?;
            let named = prefix.bits(address.len());
            if bits.is_some_and(|bits| bits.parse() != Ok(named)) {
                return None;
            }
            prefix.mask(&mut address);
            Some(address)
        }
        PacketKey::SourcePort | PacketKey::DestinationPort => Some(text.parse::<u16>().ok()?.to_be_bytes().to_vec()),
        PacketKey::Protocol => parse_protocol(text).map(|number| vec![number]),
    }
}

/// Returns an example of such a key, for messages.
fn packet_example(kinds: &[PacketKey]) -> String {
    let example = |kind: &PacketKey| match kind {
        PacketKey::FiveTuple => "10.0.0.1:443 > 10.0.0.2:51234 tcp".to_owned(),
        PacketKey::Flow => "10.0.0.1:443 <> 10.0.0.2:51234 tcp".to_owned(),
        PacketKey::Source | PacketKey::Destination => "10.0.0.1".to_owned(),
        PacketKey::SourceNet(prefix) | PacketKey::DestinationNet(prefix) => {
            let mut address = [10, 20, 30, 40];
            prefix.mask(&mut address);
            packet_part(*kind, &address).unwrap_or_default()
        }
        PacketKey::SourcePort | PacketKey::DestinationPort => "443".to_owned(),
        PacketKey::Protocol => "tcp".to_owned(),
    };
    format!("write it as `{}`", kinds.iter().map(example).collect::<Vec<_>>().join(","))
}

fn five_tuple(key: &[u8], arrow: &str) -> Option<String> {
    let width = match key.len() {
        13 => 4,
        37 => 16,
        _ => return None,
    };
    let (addresses, rest) = key.split_at(2 * width);
    let source = SocketAddr::new(address(&addresses[..width])?, port(&rest[..2])?);
    let destination = SocketAddr::new(address(&addresses[width..])?, port(&rest[2..4])?);
    Some(format!("{source} {arrow} {destination} {}", protocol(rest[4])))
}

/// Reads what [`five_tuple`] writes. With `<>`, the order of the two ends does not matter.
fn parse_five_tuple(text: &str, arrow: &str) -> Option<Vec<u8>> {
    let mut words = text.split_whitespace();
    let (source, middle, destination, protocol) = (words.next()?, words.next()?, words.next()?, words.next()?);
    if middle != arrow || words.next().is_some() {
        return None;
    }
    let protocol = parse_protocol(protocol)?;
    let mut ends: [SocketAddr; 2] = [source.parse().ok()?, destination.parse().ok()?];
    if ends[0].is_ipv4() != ends[1].is_ipv4() {
        return None;
    }
    if arrow == "<>" {
        ends.sort_by_key(|end| (end.ip(), end.port()));
    }
    let mut key = ends.map(|end| octets(end.ip())).concat();
    key.extend(ends.map(|end| end.port().to_be_bytes()).concat());
    key.push(protocol);
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [&str; 20] = [
        "csv:a,b",
        "field:1,2,3",
        "jsonl:a,b.c",
        "combined:ip,agent",
        "regex:(a)",
        "pcap:flow",
        "pcap:src/24/48",
        "pcap:src,dstport",
        "pcap:proto",
        "lines",
        "field:1",
        "csv:a",
        "jsonl:/a",
        "fimi",
        "records:4",
        "records:13",
        "pcap:5tuple",
        "pcap:src",
        "pcap:dstport",
        "tsv:1",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn every_key_comes_back(
            key in prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                "(0x|hex:)?[0-9a-f]{0,8}".prop_map(String::into_bytes),
                "[a-z]{3,5}\0{0,2}".prop_map(String::into_bytes),
                "[a-c,\"]{0,6}".prop_map(String::into_bytes),
                prop::collection::vec(any::<u8>(), 6),
                prop::collection::vec(any::<u8>(), 13),
                prop::collection::vec(any::<u8>(), 37),
            ],
        ) {
            for format in ALL {
                let format: Format = format.parse().unwrap();
                let shown = format.key_display(&key);
                prop_assert_eq!(format.parse_key(&shown).unwrap(), key.clone(), "{} shows {}", format, shown);
            }
        }

        #[test]
        fn data_is_the_key_without_escapes(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            for format in ["lines", "field:1", "csv:a", "jsonl:/a", "tsv:1", "records:4"] {
                prop_assert_eq!(&*format.parse::<Format>().unwrap().key_data(&bytes), &bytes[..]);
            }
            let number_or_token = fimi_key(&bytes);
            prop_assert_eq!(&*Format::Fimi.key_data(&number_or_token), &bytes[..]);
            for format in ["pcap:5tuple", "pcap:src", "pcap:dstport", "pcap:flow", "pcap:src,dst/16"] {
                let format: Format = format.parse().unwrap();
                prop_assert_eq!(format.parse_key_bytes(&format.key_data(&bytes)).unwrap(), bytes.clone(), "{}", format);
            }
        }

        #[test]
        fn fimi_tokens_never_collide(a in "[0-9a-c]{1,5}\0{0,2}", b in "[0-9a-c]{1,5}\0{0,2}") {
            prop_assert_eq!(a == b, fimi_key(a.as_bytes()) == fimi_key(b.as_bytes()));
        }
    }

    #[test]
    fn text_is_shown_as_it_is() {
        let fimi = Format::Fimi;
        assert_eq!(Format::Lines.key_display("grün 0x1f".as_bytes()), "grün 0x1f");
        assert_eq!(Format::Lines.key_display(b"0x1f"), "0x1f");
        assert_eq!(Format::Lines.parse_key("0x1f").unwrap(), b"0x1f");
        assert_eq!(Format::Lines.key_display(b"hex:1f"), "hex:6865783a3166");
        assert_eq!(Format::Lines.key_display(b"tab\there"), "hex:7461620968657265");
        assert_eq!(
            Format::Lines.key_display("a\u{202e}b".as_bytes()),
            "hex:61e280ae62",
            "it would turn the text around"
        );
        assert_eq!(Format::Lines.key_display(b""), "\"\"");
        assert_eq!(Format::Lines.key_display(b"\"\""), "hex:2222");
        assert_eq!(Format::Lines.parse_key("").unwrap(), b"", "nothing at all will do, too");
        assert_eq!(Format::Records(4).key_display(b"abcd"), "abcd");
        for (token, key) in [
            ("0", &[0, 0, 0, 0][..]),
            ("4294967295", &[255; 4]),
            ("4294967296", b"4294967296"),
            ("007", b"007"),
            ("+7", b"+7"),
            ("beer", b"beer\0"),
            ("ale", b"ale"),
        ] {
            assert_eq!(fimi.parse_key(token).unwrap(), key);
            assert_eq!(fimi.key_display(key), token);
        }
    }

    #[test]
    fn addresses_and_ports() {
        let format = |text: &str| text.parse::<Format>().unwrap();
        let v6 = "[2001:db8::1]:443 > [2001:db8::2]:51234 udp";
        let key = format("pcap").parse_key(v6).unwrap();
        assert_eq!(key.len(), 37);
        assert_eq!(format("pcap").key_display(&key), v6);
        assert_eq!(format("pcap").key_display(&[1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 200]), "1.2.3.4:0 > 5.6.7.8:0 200");
        assert_eq!(format("pcap:src").parse_key("::1").unwrap().len(), 16);
        assert_eq!(format("pcap:dstport").parse_key("443").unwrap(), [1, 187]);
        for (f, text) in [
            ("pcap", "1.2.3.4 > 5.6.7.8"),
            ("pcap", "1.2.3.4:1 > [::1]:2 tcp"),
            ("pcap:src", "x"),
            ("pcap:srcport", "65536"),
            ("records:4", "abc"),
        ] {
            let message = format(f).parse_key(text).unwrap_err().to_string();
            assert!(message.contains("write it as `") || message.contains("give 4 characters"), "{message}");
        }
    }

    #[test]
    fn keys_of_several_parts() {
        let format = |text: &str| text.parse::<Format>().unwrap();
        let pair = format("csv:user,path");
        assert_eq!(pair.parse_key("alice,/a").unwrap(), b"alice,/a");
        assert_eq!(pair.parse_key("\"alice\",\"/a,b\"").unwrap(), b"alice,\"/a,b\"");
        assert_eq!(pair.key_display(b"alice,\"/a,b\""), "alice,\"/a,b\"");
        assert_eq!(pair.key_display(b"\xff,b"), "hex:ff2c62");
        for wrong in ["alice", "a,b,c", "\"a,b"] {
            let message = pair.parse_key(wrong).unwrap_err().to_string();
            assert!(message.contains("give 2 parts with commas between them"), "{message}");
        }
        for (f, text) in [
            ("pcap:flow", "10.0.0.1:443 <> 10.0.0.2:80 tcp"),
            ("pcap:flow", "[2001:db8::1]:443 <> [2001:db8::2]:80 udp"),
            ("pcap:src/24", "10.0.0.0/24"),
            ("pcap:dst/24/64", "2001:db8::/64"),
            ("pcap:proto", "tcp"),
            ("pcap:proto", "200"),
            ("pcap:src,dstport,proto", "10.0.0.1,443,tcp"),
            ("pcap:dst/16/32,srcport", "2001:db8::/32,53"),
        ] {
            assert_eq!(format(f).key_display(&format(f).parse_key(text).unwrap()), text);
        }
        let flow = format("pcap:flow");
        let turned = flow.parse_key("10.0.0.2:80 <> 10.0.0.1:443 tcp").unwrap();
        assert_eq!(turned, flow.parse_key("10.0.0.1:443 <> 10.0.0.2:80 tcp").unwrap());
        assert_eq!(format("pcap:src/24").parse_key("10.0.0.77").unwrap(), [10, 0, 0, 0]);
        for (f, text) in
            [("pcap:src/24", "10.0.0.0/16"), ("pcap:src,dst", "10.0.0.1,::1"), ("pcap:src,dst", "10.0.0.1")]
        {
            assert!(format(f).parse_key(text).is_err(), "{f} {text}");
        }
    }
}
