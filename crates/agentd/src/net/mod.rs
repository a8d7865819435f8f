//! Lines that come over the network: `udp:ADDRESS:PORT` and `tcp:ADDRESS:PORT`.
//!
//! A datagram holds one or more lines. A TCP connection sends lines, or frames that say their
//! length (syslog's octet counting, RFC 6587), which become lines. What the system dropped before
//! it was read is reported.

mod frames;

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use frames::Frames;

/// How often a silent socket looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How often the system is asked what it dropped.
const DROPS: Duration = Duration::from_secs(1);
/// The largest datagram.
const DATAGRAM: usize = 1 << 16;
/// Connections at once.
const CONNECTIONS: usize = 256;
/// Pieces of connections that wait.
const QUEUE: usize = 64;

/// A place to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listener {
    /// Datagrams.
    Udp(SocketAddr),
    /// Connections.
    Tcp(SocketAddr),
}

impl FromStr for Listener {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = |address: &str| {
            address
                .parse()
                .map_err(|_| format!("{text:?}: write udp:ADDRESS:PORT or tcp:ADDRESS:PORT, as udp:127.0.0.1:5140"))
        };
        match text.split_once(':') {
            Some(("udp", address)) => parse(address).map(Self::Udp),
            Some(("tcp", address)) => parse(address).map(Self::Tcp),
            _ => Err(format!("{text:?} is not an address to listen on")),
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl Listener {
    /// Returns true if the input's name starts like an address to listen on.
    pub fn is_named(text: &str) -> bool {
        text.starts_with("udp:") || text.starts_with("tcp:")
    }

    /// Starts to listen. `lost` is told how many datagrams the system dropped.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn start<'l>(&self, stop: Arc<AtomicBool>, lost: impl FnMut(u64) + 'l) -> io::Result<Box<dyn Read + 'l>> {
        match self {
            Self::Udp(address) => {
                let socket = UdpSocket::bind(address)?;
                socket.set_read_timeout(Some(LOOK))?;
                let drops = Drops::of(&socket);
                Ok(Box::new(Datagrams { socket, stop, drops, lost, buffer: vec![0; DATAGRAM], start: 0, end: 0 }))
            }
            Self::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let (pieces, queue) = sync_channel(QUEUE);
                let flag = Arc::clone(&stop);
                std::thread::Builder::new().name("accept".into()).spawn(move || accept(&listener, &pieces, &flag))?;
                Ok(Box::new(Pieces { queue, stop, current: io::Cursor::default() }))
            }
        }
    }
}

/// Datagrams as lines.
struct Datagrams<L> {
    socket: UdpSocket,
    stop: Arc<AtomicBool>,
    drops: Drops,
    lost: L,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<L: FnMut(u64)> Datagrams<L> {
    /// Takes one datagram; false if there is none.
    fn receive(&mut self) -> io::Result<bool> {
        match self.socket.recv(&mut self.buffer[..DATAGRAM - 1]) {
            Ok(0) => Ok(true),
            Ok(n) => {
                (self.start, self.end) = (0, n);
                if self.buffer[n - 1] != b'\n' {
                    self.buffer[n] = b'\n';
                    self.end += 1;
                }
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn hand_out(&mut self, mut buffer: &mut [u8]) -> usize {
        let waiting = &self.buffer[self.start..self.end];
        let n = waiting.len().min(buffer.len());
        // A slice takes what fits.
        let _ = buffer.write(&waiting[..n]);
        self.start += n;
        n
    }
}

impl<L: FnMut(u64)> Read for Datagrams<L> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.start == self.end {
            if let Some(lost) = self.drops.since_last() {
                (self.lost)(lost);
            }
            if self.stop.load(Relaxed) {
                return Err(ErrorKind::Interrupted.into());
            }
            self.receive()?;
        }
        let mut filled = self.hand_out(buffer);
        // What else waits comes along: one hand-over for many datagrams.
        self.socket.set_nonblocking(true)?;
        while filled < buffer.len() && self.start == self.end && self.receive()? {
            filled += self.hand_out(&mut buffer[filled..]);
        }
        self.socket.set_nonblocking(false)?;
        Ok(filled)
    }
}

/// How many datagrams the system dropped, where it tells.
struct Drops {
    socket: Option<u64>,
    seen: u64,
    looked: Instant,
}

impl Drops {
    fn of(socket: &UdpSocket) -> Self {
        Self { socket: number(socket), seen: 0, looked: Instant::now() }
    }

    /// Returns the datagrams dropped since the last time, if there are any; looks once a second.
    fn since_last(&mut self) -> Option<u64> {
        let number = self.socket.filter(|_| self.looked.elapsed() >= DROPS)?;
        self.looked = Instant::now();
        let tables = ["/proc/net/udp", "/proc/net/udp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
        let drops = tables.iter().find_map(|table| dropped(table, number))?;
        let more = drops.saturating_sub(self.seen);
        self.seen = drops;
        Some(more).filter(|more| *more > 0)
    }
}

/// The last column of a socket's row in the system's table.
fn dropped(table: &str, socket: u64) -> Option<u64> {
    let rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let mut rows = rows.filter(|row| row.get(9).is_some_and(|number| number.parse() == Ok(socket)));
    rows.next()?.last()?.parse().ok()
}

#[cfg(target_os = "linux")]
fn number(socket: &UdpSocket) -> Option<u64> {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::metadata(format!("/proc/self/fd/{}", socket.as_raw_fd())).ok()?.ino())
}

#[cfg(not(target_os = "linux"))]
fn number(_: &UdpSocket) -> Option<u64> {
    None
}

fn accept(listener: &TcpListener, pieces: &SyncSender<Vec<u8>>, stop: &Arc<AtomicBool>) {
    let open = Arc::new(AtomicUsize::new(0));
    while !stop.load(Relaxed) {
        match listener.accept() {
            Ok((stream, _)) if open.fetch_add(1, Relaxed) < CONNECTIONS => {
                let (pieces, stop, counted) = (pieces.clone(), Arc::clone(stop), Arc::clone(&open));
                let spawned = std::thread::Builder::new().name("connection".into()).spawn(move || {
                    // What went wrong with a connection is the sender's affair.
                    let _ = converse(stream, &pieces, &stop);
                    counted.fetch_sub(1, Relaxed);
                });
                if spawned.is_err() {
                    open.fetch_sub(1, Relaxed);
                }
            }
            // Too many: it is closed again.
            Ok(_) => {
                open.fetch_sub(1, Relaxed);
            }
            Err(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Takes the lines of one connection until it ends.
fn converse(mut stream: TcpStream, pieces: &SyncSender<Vec<u8>>, stop: &AtomicBool) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    let mut frames = Frames::default();
    let mut buffer = vec![0; DATAGRAM];
    while !stop.load(Relaxed) {
        let n = match stream.read(&mut buffer) {
            Ok(n) => n,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let mut lines = Vec::new();
        let more = if n > 0 { frames.push(&buffer[..n], &mut lines) } else { frames.finish(&mut lines) };
        if !lines.is_empty() && pieces.send(lines).is_err() {
            break;
        }
        if n == 0 || more.is_err() {
            break;
        }
    }
    Ok(())
}

/// What connections sent.
struct Pieces {
    queue: Receiver<Vec<u8>>,
    stop: Arc<AtomicBool>,
    current: io::Cursor<Vec<u8>>,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.current.read(buffer)? {
                0 => {}
                n => return Ok(n),
            }
            match self.queue.recv_timeout(LOOK) {
                Ok(piece) => self.current = io::Cursor::new(piece),
                // What was received before the stop is handed on first.
                Err(_) if self.stop.load(Relaxed) => return Err(ErrorKind::Interrupted.into()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!("udp:127.0.0.1:514".parse::<Listener>().unwrap().to_string(), "udp:127.0.0.1:514");
        assert_eq!("tcp:[::1]:514".parse::<Listener>().unwrap().to_string(), "tcp:[::1]:514");
        assert!("udp:514".parse::<Listener>().unwrap_err().contains("udp:ADDRESS:PORT"));
    }

    #[test]
    fn drops_are_in_the_last_column() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
                     1: 0100007F:1F90 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0 42\n";
        assert_eq!((dropped(table, 4711), dropped(table, 1)), (Some(42), None));
    }

    /// Reads until so many bytes came.
    fn take(reader: &mut dyn Read, bytes: usize) -> String {
        let mut all = Vec::new();
        while all.len() < bytes {
            let mut buffer = [0; 64];
            let n = reader.read(&mut buffer).unwrap();
            all.extend(&buffer[..n]);
        }
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn datagrams_and_connections_become_lines() {
        let free = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let mut lines = Listener::Udp(free).start(Arc::clone(&stop), |_| {}).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for datagram in [&b"one"[..], b"two\nthree\n", b""] {
            sender.send_to(datagram, free).unwrap();
        }
        assert_eq!(take(&mut lines, 14), "one\ntwo\nthree\n");
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut lines = Listener::Tcp(free).start(Arc::clone(&stop), |_| {}).unwrap();
        TcpStream::connect(free).unwrap().write_all(b"a\nb").unwrap();
        assert_eq!(take(&mut lines, 4), "a\nb\n");
        stop.store(true, Relaxed);
        assert_eq!(lines.read(&mut [0; 9]).unwrap_err().kind(), ErrorKind::Interrupted);
    }
}
