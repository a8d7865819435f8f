//! Packets on Linux.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_no_new_privs};

use super::Interface;
use super::ring::{Packet, Ring, SNAP};

/// How often a silent interface looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How often the kernel is asked what it dropped.
const DROPS: Duration = Duration::from_secs(1);

/// An open interface. Its packets wait in a ring from the time it is opened.
pub struct Capture {
    pub interface: Interface,
    ring: Ring,
    link: u32,
}

impl Capture {
    /// Opens an interface, with `bytes` for packets that wait.
    ///
    /// # Errors
    /// If there is no such interface, its packets cannot be read, or it may not be opened.
    pub fn open(interface: Interface, bytes: usize) -> io::Result<Self> {
        let ring = Ring::open(&interface.0, bytes)?;
        let link = link(ring.hardware()).ok_or_else(|| {
            let kind = ring.hardware();
            io::Error::new(ErrorKind::Unsupported, format!("packets of interfaces of type {kind} cannot be read"))
        })?;
        Ok(Self { interface, ring, link })
    }

    /// Starts reading, until `stop`. `lost` is told how many packets the kernel dropped.
    pub fn start<L: FnMut(u64)>(&mut self, stop: Arc<AtomicBool>, lost: L) -> Packets<'_, L> {
        let pending = io::Cursor::new(file_header(self.link));
        Packets { ring: &mut self.ring, pending, stop, lost, looked: Instant::now() }
    }
}

/// The kind of frames in a capture (`LINKTYPE_…`) that an interface gives, by the kind of the
/// interface (`ARPHRD_…`).
fn link(hardware: u16) -> Option<u32> {
    match hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Some(1),
        // Tunnels, whose packets start with IP.
        libc::ARPHRD_NONE | libc::ARPHRD_TUNNEL => Some(101),
        _ => None,
    }
}

/// The start of a capture with nanoseconds.
fn file_header(link: u32) -> Vec<u8> {
    let mut header = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
    header.extend([2, 0, 4, 0]);
    header.extend([0; 8]);
    header.extend(SNAP.to_le_bytes());
    header.extend(link.to_le_bytes());
    header
}

/// The packets of an interface, as a capture that never ends.
pub struct Packets<'c, L> {
    ring: &'c mut Ring,
    /// Bytes that did not fit the last time.
    pending: io::Cursor<Vec<u8>>,
    stop: Arc<AtomicBool>,
    lost: L,
    looked: Instant,
}

impl<L: FnMut(u64)> Packets<'_, L> {
    fn count_drops(&mut self) -> io::Result<()> {
        self.looked = Instant::now();
        match self.ring.dropped()? {
            0 => {}
            dropped => (self.lost)(dropped),
        }
        Ok(())
    }
}

impl<L: FnMut(u64)> Read for Packets<'_, L> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.looked.elapsed() >= DROPS {
                self.count_drops()?;
            }
            let mut filled = self.pending.read(buffer)?;
            while filled < buffer.len()
                && let Some(packet) = self.ring.next()?
            {
                let record = record(&packet);
                let mut room = &mut buffer[filled..];
                let mut written = room.write(&record)?;
                written += room.write(packet.bytes)?;
                filled += written;
                if written < record.len() + packet.bytes.len() {
                    let whole = [&record, packet.bytes].concat();
                    self.pending = io::Cursor::new(whole[written..].to_vec());
                }
            }
            if filled > 0 {
                return Ok(filled);
            }
            if self.stop.load(Relaxed) {
                self.count_drops()?;
                return Err(ErrorKind::Interrupted.into());
            }
            self.ring.wait(LOOK)?;
        }
    }
}

/// What stands before a packet in a capture.
fn record(packet: &Packet<'_>) -> [u8; 16] {
    let parts = [packet.at.as_secs() as u32, packet.at.subsec_nanos(), packet.bytes.len() as u32, packet.length];
    let mut record = [0; 16];
    record.chunks_exact_mut(4).zip(parts).for_each(|(to, part)| to.copy_from_slice(&part.to_le_bytes()));
    record
}

/// Gives up what this thread, and those that it starts, may do beyond other programs of its
/// user. What other inputs need can be kept: to read files of others, and to listen on low
/// ports.
///
/// # Errors
/// If the system refuses.
pub fn drop_privileges(read_files: bool, bind_ports: bool) -> io::Result<()> {
    let mut kept = CapabilitySet::empty();
    kept.set(CapabilitySet::DAC_READ_SEARCH, read_files);
    kept.set(CapabilitySet::NET_BIND_SERVICE, bind_ports);
    let had = capabilities(None)?;
    let (effective, permitted) = (had.effective & kept, had.permitted & kept);
    set_no_new_privs(true)?;
    Ok(set_capabilities(None, CapabilitySets { effective, permitted, inheritable: CapabilitySet::empty() })?)
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use ucl_streams::{Format, ReadOptions, read_from};

    /// What is handed on is a capture that our reader reads, whatever the size of its buffers.
    #[test]
    fn records_make_a_capture() {
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 53, 0, 54, 0, 8, 0, 0]);
        let packet = Packet { at: Duration::new(1_700_000_000, 5), length: 1_500, bytes: &frame };
        let capture = [&file_header(1), &record(&packet)[..], packet.bytes].concat();
        let format: Format = "pcap:src".parse().unwrap();
        let weight = Some(format.parse_weight("bytes").unwrap());
        let options = ReadOptions { format, weight, raw: true, ..ReadOptions::default() };
        let mut items = Vec::new();
        let summary = read_from(&capture[..], "memory", &options, &mut |batch| {
            items.extend(batch.items().map(|(key, weight)| (key.to_vec(), weight)));
            ControlFlow::Continue(())
        });
        assert_eq!(summary.unwrap().skipped, 0);
        assert_eq!(items, [(vec![10, 0, 0, 1], 1_500)]);
    }

    /// Runs this test in a network of its own, where nobody else sends. Returns true inside. The
    /// system may not permit it: then the test says so, and checks nothing.
    fn in_a_network_of_its_own(test: &str) -> bool {
        const INSIDE: &str = "UCL_TEST_INSIDE";
        if std::env::var_os(INSIDE).is_some() {
            return true;
        }
        let unshare = |command: &str| {
            let mut unshare = std::process::Command::new("unshare");
            unshare.args(["-rn", "sh", "-c", command]).arg(std::env::current_exe().unwrap());
            unshare.args(["--exact", test, "--nocapture"]).env(INSIDE, "1");
            unshare.status().is_ok_and(|status| status.success())
        };
        if unshare("ip link set lo up") {
            assert!(unshare("ip link set lo up && exec \"$0\" \"$@\""), "{test} failed inside");
        } else {
            eprintln!("{test}: not checked, because a network namespace is not permitted here");
        }
        false
    }

    /// A ring that nobody reads overflows; what it held and what was dropped make up all that was
    /// sent, each once, although loopback shows packets twice.
    #[test]
    fn every_packet_is_read_or_counted_as_dropped() {
        if !in_a_network_of_its_own("packets::linux::tests::every_packet_is_read_or_counted_as_dropped") {
            return;
        }
        const SENT: u64 = 20_000;
        let mut capture = Capture::open("packets:lo".parse().unwrap(), 0).unwrap();
        let sink = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..SENT {
            sender.send_to(&[7; 1_000], sink.local_addr().unwrap()).unwrap();
        }
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let dropped = std::cell::Cell::new(0);
        let packets = capture.start(stop, |lost| dropped.set(dropped.get() + lost));
        let format: Format = "pcap:dstport".parse().unwrap();
        let weight = Some(format.parse_weight("bytes").unwrap());
        let interrupt = Some(Arc::clone(&flag));
        let options = ReadOptions { format, weight, raw: true, interrupt, ..ReadOptions::default() };
        let (mut items, mut bytes) = (0, 0);
        let port = sink.local_addr().unwrap().port().to_be_bytes();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(1_500));
                flag.store(true, Relaxed);
            });
            let summary = read_from(packets, "lo", &options, &mut |batch| {
                for (key, weight) in batch.items() {
                    assert_eq!(key, port);
                    items += 1;
                    bytes += weight;
                }
                ControlFlow::Continue(())
            });
            assert_eq!(summary.unwrap().skipped, 0);
        });
        assert!(items > 0 && dropped.get() > 0, "{items} read, {dropped:?} dropped");
        assert_eq!(items + dropped.get(), SENT);
        assert_eq!(bytes, items * (14 + 20 + 8 + 1_000), "packets weigh what they weighed on the wire");
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let error = Capture::open("packets:nosuch0".parse().unwrap(), 0).err().unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
