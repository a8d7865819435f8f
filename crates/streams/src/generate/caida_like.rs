//! Packets as on a backbone link: flows start, send in bursts, and end.
//!
//! Real CAIDA traces may not be handed on, so this makes up one whose *counts* look alike: about
//! 100,000 flows per million packets, half of them a single packet, the largest above 1% of all,
//! and the ten largest just below a tenth. Neither addresses nor times mean anything.
//!
//! The model, a small discrete-event simulation in which the unit of time is about one packet:
//! - flows arrive as a Poisson process;
//! - a flow has `floor(U^(-1/a))` packets, `a` = 0.97, a Pareto law cut off at 2% of the stream's
//!   length;
//! - between two packets it waits for an exponential time. The mean is smaller for larger flows,
//!   and spread log-normally from flow to flow; one time in three the next packet follows within a
//!   burst, almost at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::rng::{Rng, mix};

/// Exponent of the flow sizes.
const SIZE_EXPONENT: f64 = 0.97;
/// The largest flow, as a share of the stream.
const LARGEST_SHARE: f64 = 0.02;
/// Mean pause of a flow with two packets, in packets of the whole stream.
const PAUSE: f64 = 2400.0;
/// Exponent of the speed of large flows: the pause shrinks with size to this power.
const HASTE: f64 = 0.35;
/// Mean wait inside a burst.
const BURST_PAUSE: f64 = 20.0;
/// Chance that the next packet belongs to the same burst.
const BURST: f64 = 1.0 / 3.0;
/// Ticks per unit of time.
const TICKS: f64 = 1024.0;

/// Destination port, protocol, share of flows in percent.
const SERVICES: [(u16, u8, u64); 8] =
    [(443, 6, 40), (443, 17, 6), (80, 6, 25), (53, 17, 12), (8080, 6, 5), (51413, 17, 4), (22, 6, 5), (25, 6, 3)];

#[derive(Debug, Clone, Copy)]
struct Flow {
    key: [u8; 13],
    packets_left: u64,
    pause: f64,
}

/// Endless stream of 13-byte IPv4 five-tuples, encoded as in `pcap:5tuple`.
///
/// ```
/// use ucl_streams::{CaidaLike, Format};
///
/// let flows: Format = "pcap".parse()?;
/// let first = CaidaLike::new(1_000_000, 1).next().unwrap();
/// assert!(flows.key_display(&first).contains(" > "));
/// # Ok::<(), ucl_streams::SpecError>(())
/// ```
#[derive(Debug, Clone)]
pub struct CaidaLike {
    rng: Rng,
    seed: u64,
    /// `U` is drawn from here on, which cuts off the sizes.
    smallest_u: f64,
    /// Mean ticks between two arrivals.
    arrival_pause: f64,
    next_arrival: u64,
    /// When each live flow sends next, and its place in `flows`.
    agenda: BinaryHeap<Reverse<(u64, u32)>>,
    flows: Vec<Flow>,
    /// Places in `flows` that are free.
    vacant: Vec<u32>,
}

impl CaidaLike {
    /// Creates a stream for `packets` packets. The number limits the size of the largest flows.
    pub fn new(packets: u64, seed: u64) -> Self {
        let largest = libm::fmax(packets as f64 * LARGEST_SHARE, 16.0);
        Self {
            rng: Rng::new(seed),
            seed,
            smallest_u: libm::pow(largest, -SIZE_EXPONENT),
            arrival_pause: mean_size(largest) * TICKS,
            next_arrival: 0,
            agenda: BinaryHeap::new(),
            flows: Vec::new(),
            vacant: Vec::new(),
        }
    }

    fn new_flow(&mut self) -> Flow {
        let u = self.smallest_u + self.rng.unit() * (1.0 - self.smallest_u);
        let size = libm::floor(libm::pow(u, -1.0 / SIZE_EXPONENT));
        // Three uniforms make a normal distribution that is good enough, with standard deviation
        // 1/2.
        let spread = self.rng.unit() + self.rng.unit() + self.rng.unit() - 1.5;
        let pause = PAUSE * libm::pow(size, -HASTE) * libm::exp(1.4 * spread) * TICKS;
        Flow { key: self.new_key(), packets_left: size as u64, pause }
    }

    fn new_key(&mut self) -> [u8; 13] {
        let source = self.host(1);
        let destination = self.host(2);
        let source_port = 1024 + self.rng.below(65_536 - 1024) as u16;
        let mut pick = self.rng.below(100);
        let service = SERVICES.iter().find(|service| {
            let hit = pick < service.2;
            pick = pick.saturating_sub(service.2);
            hit
        });
        let &(port, protocol, _) = service.unwrap_or(&SERVICES[0]);
        let mut key = [0; 13];
        key[..4].copy_from_slice(&source);
        key[4..8].copy_from_slice(&destination);
        key[8..10].copy_from_slice(&source_port.to_be_bytes());
        key[10..12].copy_from_slice(&port.to_be_bytes());
        key[12] = protocol;
        key
    }

    /// One of 32,768 hosts, some of them much busier than others.
    fn host(&mut self, side: u64) -> [u8; 4] {
        let u = self.rng.unit();
        let host = (u * u * 32_768.0) as u64;
        let [a, b, c, d, ..] = mix(self.seed ^ mix(side << 32 | host)).to_le_bytes();
        // Unicast addresses outside the private and loopback ranges.
        [11 + a % 112, b, c, 1 + d % 254]
    }
}

/// Mean of the cut-off Pareto sizes: `sum over n of P(size >= n)`, by the Euler-Maclaurin formula.
fn mean_size(largest: f64) -> f64 {
    let a = SIZE_EXPONENT;
    let tail = libm::pow(largest, -a);
    let integral = (libm::pow(largest, 1.0 - a) - 1.0) / (1.0 - a);
    let sum = integral + (1.0 + tail) / 2.0 + a / 12.0 * (1.0 - tail / largest);
    (sum - largest * tail) / (1.0 - tail)
}

impl Iterator for CaidaLike {
    type Item = [u8; 13];

    fn next(&mut self) -> Option<[u8; 13]> {
        while self.agenda.peek().is_none_or(|Reverse((time, _))| self.next_arrival <= *time) {
            let flow = self.new_flow();
            let place = self.vacant.pop().unwrap_or_else(|| {
                self.flows.push(flow);
                (self.flows.len() - 1) as u32
            });
            self.flows[place as usize] = flow;
            self.agenda.push(Reverse((self.next_arrival, place)));
            self.next_arrival += 1 + (self.rng.exponential() * self.arrival_pause) as u64;
        }
        let Reverse((time, place)) = self.agenda.pop()?;
        let flow = &mut self.flows[place as usize];
        flow.packets_left -= 1;
        if flow.packets_left == 0 {
            self.vacant.push(place);
        } else {
            let mean = if self.rng.unit() < BURST { BURST_PAUSE * TICKS } else { flow.pause };
            self.agenda.push(Reverse((time + 1 + (self.rng.exponential() * mean) as u64, place)));
        }
        Some(flow.key)
    }
}
