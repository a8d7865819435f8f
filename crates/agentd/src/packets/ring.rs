//! A packet socket whose packets lie in memory that is shared with the kernel (`TPACKET_V3`).
//!
//! The kernel fills blocks in turn and hands each over whole, when it is full or some milliseconds
//! old. While a block is ours, the kernel does not write to it; so its bytes are an ordinary slice,
//! read with ordinary checks.
#![allow(unsafe_code, reason = "socket options of packet sockets, and memory shared with the kernel")]

use std::ffi::CString;
use std::io::{self, Error};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::{c_int, c_void, sockaddr_ll, socklen_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Bytes of a block.
const BLOCK: usize = 1 << 18;
/// Milliseconds after which a block that is not full is handed over.
const RETIRE_MS: u32 = 20;
/// Bytes of a packet that are kept: all headers with room to spare, and no more of its content than
/// that.
pub const SNAP: u32 = 192;

/// Offsets in a block and in a packet's header (`tpacket_block_desc`, `tpacket3_hdr`).
const STATUS: usize = 8;
const PACKETS: usize = 12;
const FIRST: usize = 16;
const NEXT: usize = 0;
const SECONDS: usize = 4;
const NANOSECONDS: usize = 8;
const CAPTURED: usize = 12;
const LENGTH: usize = 16;
const DATA: usize = 24;

/// The owner of a block, in its status.
const USER: u32 = 1;
const KERNEL: u32 = 0;

/// An open interface.
pub struct Ring {
    socket: OwnedFd,
    base: NonNull<u8>,
    blocks: usize,
    index: c_int,
    hardware: u16,
    /// The block that is read next, or now.
    block: usize,
    /// Packets of it that were not read yet, and where the next one is.
    left: u32,
    next: usize,
    /// Whether a block is ours.
    held: bool,
}

/// A packet, as it lies in the ring.
pub struct Packet<'r> {
    /// Time of arrival, since 1970.
    pub at: Duration,
    /// Length of the packet on the wire.
    pub length: u32,
    /// First bytes of the packet.
    pub bytes: &'r [u8],
}

// SAFETY: the memory belongs to the ring alone, which is used by one thread at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// Opens an interface, with about so many bytes for packets that wait.
    pub fn open(interface: &str, bytes: usize) -> io::Result<Self> {
        let name = CString::new(interface)?;
        // SAFETY: the name is a string that ends with 0.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let index = c_int::try_from(index).map_err(Error::other)?;
        if index == 0 {
            return Err(Error::last_os_error());
        }
        // No protocol yet: packets come only once the socket is bound to the interface.
        // SAFETY: no pointers are passed.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(Error::last_os_error());
        }
        // SAFETY: the socket was just opened, and nobody else has it.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let blocks = (bytes / BLOCK).max(2);
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        set(&socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        keep_headers(&socket)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: blocks as u32,
            tp_frame_size: 1 << 11,
            tp_frame_nr: (blocks * (BLOCK >> 11)) as u32,
            tp_retire_blk_tov: RETIRE_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping, of the size that was asked for.
        let base = unsafe { libc::mmap(ptr::null_mut(), blocks * BLOCK, access, shared, socket.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or_else(|| Error::other("the ring lies at address 0"))?;
        let mut ring = Self { socket, base, blocks, index, hardware: 0, block: 0, left: 0, next: 0, held: false };
        ring.bind()?;
        Ok(ring)
    }

    fn bind(&mut self) -> io::Result<()> {
        // SAFETY: a structure of numbers, for which 0 is a value.
        let mut address: sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = self.index;
        let length = size_of::<sockaddr_ll>() as socklen_t;
        // SAFETY: the address has the length that is passed.
        check(unsafe { libc::bind(self.socket.as_raw_fd(), ptr::from_ref(&address).cast(), length) })?;
        self.hardware = self.address()?.sll_hatype;
        if self.is_loopback() {
            // Each packet is seen leaving and arriving.
            set(&self.socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        } else {
            let promiscuous = libc::packet_mreq {
                mr_ifindex: self.index,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            set(&self.socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &promiscuous)?;
        }
        Ok(())
    }

    /// What the socket is bound to.
    fn address(&self) -> io::Result<sockaddr_ll> {
        // SAFETY: a structure of numbers, for which 0 is a value.
        let mut address: sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut length = size_of::<sockaddr_ll>() as socklen_t;
        let to = ptr::from_mut(&mut address).cast();
        // SAFETY: there is room for the length that is passed.
        check(unsafe { libc::getsockname(self.socket.as_raw_fd(), to, &mut length) })?;
        Ok(address)
    }

    /// The kind of the interface (`ARPHRD_…`).
    pub fn hardware(&self) -> u16 {
        self.hardware
    }

    fn is_loopback(&self) -> bool {
        self.hardware == libc::ARPHRD_LOOPBACK
    }

    /// Returns the next packet that has come, if any.
    pub fn next(&mut self) -> io::Result<Option<Packet<'_>>> {
        while self.left == 0 {
            if self.held {
                self.status().store(KERNEL, Ordering::Release);
                self.held = false;
                self.block = (self.block + 1) % self.blocks;
            }
            if self.status().load(Ordering::Acquire) & USER == 0 {
                return Ok(None);
            }
            self.held = true;
            self.left = word(self.bytes(), PACKETS)?;
            self.next = word(self.bytes(), FIRST)? as usize;
        }
        let header = self.next;
        let block = self.bytes();
        let at = Duration::new(word(block, header + SECONDS)?.into(), word(block, header + NANOSECONDS)?);
        let length = word(block, header + LENGTH)?;
        let data = header + usize::from(half(block, header + DATA)?);
        let captured = data..data + word(block, header + CAPTURED)? as usize;
        let next = header + word(block, header + NEXT)? as usize;
        self.left -= 1;
        self.next = next;
        let bytes = self.bytes().get(captured).ok_or_else(damaged)?;
        Ok(Some(Packet { at, length, bytes }))
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the word lies in the mapping and is aligned, as blocks are; the kernel changes it
        // as a whole.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(self.block * BLOCK + STATUS).cast()) }
    }

    /// The block that is ours.
    fn bytes(&self) -> &[u8] {
        debug_assert!(self.held, "the kernel may write to the block");
        // SAFETY: the block lies in the mapping, and the kernel does not write to it before its
        // status is given back, for which the ring is borrowed as a whole.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(self.block * BLOCK), BLOCK) }
    }

    /// Waits until packets come, or some time.
    ///
    /// # Errors
    /// If the interface is gone. One that is down may come back.
    pub fn wait(&self, most: Duration) -> io::Result<()> {
        let timeout = Timespec { tv_sec: 0, tv_nsec: most.subsec_nanos().into() };
        let events = PollFlags::IN | PollFlags::ERR;
        let mut waiting = [PollFd::from_borrowed_fd(self.socket.as_fd(), events)];
        match poll(&mut waiting, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        if waiting[0].revents().contains(PollFlags::ERR) {
            let error: c_int = get(&self.socket, libc::SOL_SOCKET, libc::SO_ERROR)?;
            if self.address()?.sll_ifindex != self.index {
                return Err(Error::new(io::ErrorKind::NotFound, "the interface is gone"));
            }
            if error != 0 && error != libc::ENETDOWN {
                return Err(Error::from_raw_os_error(error));
            }
        }
        Ok(())
    }

    /// Returns the packets that the kernel dropped since the last call, for want of room.
    pub fn dropped(&self) -> io::Result<u64> {
        let counts: libc::tpacket_stats_v3 = get(&self.socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
        Ok(counts.tp_drops.into())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is as long, and nothing borrows from it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.blocks * BLOCK) };
    }
}

/// Has the kernel copy the first bytes of packets only, by a filter that takes them all.
fn keep_headers(socket: &OwnedFd) -> io::Result<()> {
    let mut take = [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: SNAP }];
    let program = libc::sock_fprog { len: 1, filter: take.as_mut_ptr() };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn set<T>(socket: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as socklen_t;
    let value: *const c_void = ptr::from_ref(value).cast();
    // SAFETY: the value has the length that is passed, and outlives the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value, length) })
}

/// Reads an option that is a structure of numbers.
fn get<T: Copy>(socket: &OwnedFd, level: c_int, option: c_int) -> io::Result<T> {
    // SAFETY: numbers, for which 0 is a value.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = size_of::<T>() as socklen_t;
    let to: *mut c_void = ptr::from_mut(&mut value).cast();
    // SAFETY: there is room for the length that is passed.
    check(unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, to, &mut length) })?;
    Ok(value)
}

fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn word(block: &[u8], at: usize) -> io::Result<u32> {
    let bytes = block.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(damaged)?;
    Ok(u32::from_ne_bytes(*bytes))
}

fn half(block: &[u8], at: usize) -> io::Result<u16> {
    let bytes = block.get(at..).and_then(<[u8]>::first_chunk).ok_or_else(damaged)?;
    Ok(u16::from_ne_bytes(*bytes))
}

fn damaged() -> Error {
    Error::new(io::ErrorKind::InvalidData, "the kernel's packet ring makes no sense")
}
