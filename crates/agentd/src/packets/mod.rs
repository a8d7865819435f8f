//! Packets from a network interface: `packets:eth0`.
//!
//! They are handed on as a capture (pcap), of which the reader of captures makes keys. What the
//! kernel dropped because nobody read it in time is reported. Needs Linux and the right to open
//! packet sockets (`CAP_NET_RAW`), which [`drop_privileges`] gives up once they are open.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod ring;

use std::fmt;
use std::io;
use std::str::FromStr;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Capture, drop_privileges};
#[cfg(target_os = "linux")]
pub use linux::{Capture, drop_privileges};

/// What an interface's name starts with.
const PREFIX: &str = "packets:";
/// Longer names are none.
const LONGEST: usize = 15;

/// The name of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface(String);

impl Interface {
    /// Returns true if the input's name starts like one of an interface.
    pub fn is_named(text: &str) -> bool {
        text.starts_with(PREFIX)
    }
}

impl FromStr for Interface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(PREFIX) {
            Some(name) if (1..=LONGEST).contains(&name.len()) && !name.contains(['/', '\0', ' ']) => {
                Ok(Self(name.to_owned()))
            }
            _ => Err(format!("`{text}` names no interface: write {PREFIX}eth0")),
        }
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

/// Says what an error of opening an interface means.
pub fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ": run as root, or allow it: setcap cap_net_raw+ep on the program, or AmbientCapabilities=CAP_NET_RAW"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!("packets:eth0".parse::<Interface>().unwrap().to_string(), "packets:eth0");
        for wrong in ["packets:", "packets:an-interface-too-long", "packets:a/b", "eth0"] {
            assert!(wrong.parse::<Interface>().unwrap_err().contains("write packets:eth0"), "{wrong}");
        }
    }
}
