//! Parts of a packet that can be the key.

use std::fmt;
use std::str::FromStr;

/// Part of a packet that is used as the key, or as a part of it.
///
/// All keys are in network byte order. A five-tuple is source, destination, source port,
/// destination port, protocol: 13 bytes for IPv4, 37 for IPv6. Ports are 0 for protocols without
/// ports and for fragments other than the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PacketKey {
    /// `5tuple`: addresses, ports and protocol, 13 or 37 bytes.
    #[default]
    FiveTuple,
    /// `flow`: a five-tuple with the lower address and port first, so that both directions of a
    /// connection have the same key; 13 or 37 bytes.
    Flow,
    /// `src`: the source address, 4 or 16 bytes.
    Source,
    /// `dst`: the destination address, 4 or 16 bytes.
    Destination,
    /// `src/24`: the network of the source address, 4 or 16 bytes.
    SourceNet(Prefix),
    /// `dst/24`: the network of the destination address, 4 or 16 bytes.
    DestinationNet(Prefix),
    /// `srcport`: the source port, 2 bytes.
    SourcePort,
    /// `dstport`: the destination port, 2 bytes.
    DestinationPort,
    /// `proto`: the number of the protocol inside IP, 1 byte.
    Protocol,
}

/// Number of leading bits of an address that name its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Bits of an IPv4 address, up to 32.
    pub v4: u8,
    /// Bits of an IPv6 address, up to 128.
    pub v6: u8,
}

impl Prefix {
    /// Bits of an IPv6 address, if they are not given. The longest prefixes that are commonly
    /// routed on the internet are /24 for IPv4 and /48 for IPv6.
    const V6: u8 = 48;

    /// Returns the number of bits for an address of this many bytes.
    pub(crate) fn bits(self, address_bytes: usize) -> u8 {
        if address_bytes == 4 { self.v4 } else { self.v6 }
    }

    /// Clears the bits of an address that are not in the prefix.
    pub(crate) fn mask(self, address: &mut [u8]) {
        let bits = usize::from(self.bits(address.len()));
        for (at, byte) in address.iter_mut().enumerate() {
            let kept = bits.saturating_sub(8 * at).min(8);
            *byte &= !(0xff_u16 >> kept) as u8;
        }
    }
}

impl FromStr for PacketKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = match text {
            "5tuple" => Some(PacketKey::FiveTuple),
            "flow" => Some(PacketKey::Flow),
            "src" => Some(PacketKey::Source),
            "dst" => Some(PacketKey::Destination),
            "srcport" => Some(PacketKey::SourcePort),
            "dstport" => Some(PacketKey::DestinationPort),
            "proto" => Some(PacketKey::Protocol),
            _ => None,
        };
        if let Some(plain) = plain {
            return Ok(plain);
        }
        match text.split_once('/') {
            Some(("src", bits)) => Ok(PacketKey::SourceNet(prefix(text, bits)?)),
            Some(("dst", bits)) => Ok(PacketKey::DestinationNet(prefix(text, bits)?)),
            _ => Err(format!("a packet has no `{text}`")),
        }
    }
}

fn prefix(text: &str, bits: &str) -> Result<Prefix, String> {
    let (v4, v6) = bits.split_once('/').map_or((bits, None), |(v4, v6)| (v4, Some(v6)));
    let number = |bits: &str, most: u8| bits.parse::<u8>().ok().filter(|bits| *bits <= most);
    let v6 = v6.map_or(Some(Prefix::V6), |bits| number(bits, 128));
    number(v4, 32).zip(v6).map(|(v4, v6)| Prefix { v4, v6 }).ok_or_else(|| {
        format!("`{text}` is not a network: write src/24, or src/24/64 for 24 bits of IPv4 and 64 of IPv6 addresses")
    })
}

impl fmt::Display for PacketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PacketKey::FiveTuple => f.write_str("5tuple"),
            PacketKey::Flow => f.write_str("flow"),
            PacketKey::Source => f.write_str("src"),
            PacketKey::Destination => f.write_str("dst"),
            PacketKey::SourceNet(Prefix { v4, v6 }) => write!(f, "src/{v4}/{v6}"),
            PacketKey::DestinationNet(Prefix { v4, v6 }) => write!(f, "dst/{v4}/{v6}"),
            PacketKey::SourcePort => f.write_str("srcport"),
            PacketKey::DestinationPort => f.write_str("dstport"),
            PacketKey::Protocol => f.write_str("proto"),
        }
    }
}

impl PacketKey {
    /// Returns the size of the key in packets with addresses of this many bytes.
    pub(crate) fn bytes(self, address_bytes: usize) -> usize {
        match self {
            PacketKey::FiveTuple | PacketKey::Flow => 2 * address_bytes + 5,
            PacketKey::Source | PacketKey::Destination | PacketKey::SourceNet(_) | PacketKey::DestinationNet(_) => {
                address_bytes
            }
            PacketKey::SourcePort | PacketKey::DestinationPort => 2,
            PacketKey::Protocol => 1,
        }
    }

    /// Returns true if the ports have to be known.
    pub(crate) fn needs_ports(self) -> bool {
        use PacketKey::{DestinationPort, FiveTuple, Flow, SourcePort};
        matches!(self, FiveTuple | Flow | SourcePort | DestinationPort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn masks_keep_the_leading_bits(address in any::<u128>(), v4 in 0u8..=32, v6 in 0u8..=128) {
            let prefix = Prefix { v4, v6 };
            let mut short = (address as u32).to_be_bytes();
            prefix.mask(&mut short);
            let kept = (address as u32).checked_shr(32 - u32::from(v4)).unwrap_or(0);
            prop_assert_eq!(u32::from_be_bytes(short), kept.checked_shl(32 - u32::from(v4)).unwrap_or(0));
            let mut long = address.to_be_bytes();
            prefix.mask(&mut long);
            let kept = address.checked_shr(128 - u32::from(v6)).unwrap_or(0);
            prop_assert_eq!(u128::from_be_bytes(long), kept.checked_shl(128 - u32::from(v6)).unwrap_or(0));
        }
    }

    #[test]
    fn networks() {
        assert_eq!("src/24".parse(), Ok(PacketKey::SourceNet(Prefix { v4: 24, v6: 48 })));
        assert_eq!("dst/8/56".parse(), Ok(PacketKey::DestinationNet(Prefix { v4: 8, v6: 56 })));
        let mut address = Ipv4Addr::new(10, 1, 2, 255).octets();
        Prefix { v4: 20, v6: 0 }.mask(&mut address);
        assert_eq!(Ipv4Addr::from(address), Ipv4Addr::new(10, 1, 0, 0));
        for wrong in ["src/33", "src/", "src/24/129", "src/24/", "srcport/8", "5tuple/24", "src/-1", "mac"] {
            assert!(wrong.parse::<PacketKey>().is_err(), "{wrong}");
        }
    }
}
