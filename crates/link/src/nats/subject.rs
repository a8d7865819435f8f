//! Where a stream's epochs go: names of subjects and of JetStream streams.

use xxhash_rust::xxh3::xxh3_64;

use crate::{Identity, Name};

/// The most partitions.
pub const MAX_PARTITIONS: u32 = 4_096;

/// The number of partitions. It never changes: all agents and collectors must agree on it, and it
/// is part of the names of the JetStream streams, where agents find it.
///
/// ```
/// use ucl_link::nats::Partitions;
/// let partitions = Partitions::new(16).expect("1 to 4096");
/// assert_eq!(partitions.stream_name(3), "ucl-v1-3-of-16");
/// assert_eq!(Partitions::from_stream_name("ucl-v1-3-of-16"), Some(partitions));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partitions(u32);

/// The place of one stream: its partition and its subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The partition.
    pub partition: u32,
    /// Subject on which epochs are published.
    pub subject: String,
    /// Subject on which the partition's collector is asked.
    pub ask: String,
}

impl Partitions {
    /// Returns this number of partitions, or `None` if it is not 1 to [`MAX_PARTITIONS`].
    pub fn new(number: u32) -> Option<Self> {
        (1..=MAX_PARTITIONS).contains(&number).then_some(Self(number))
    }

    /// Returns the number of partitions.
    pub fn number(self) -> u32 {
        self.0
    }

    /// Returns the partition of a stream.
    pub fn of(self, tenant: &Name, stream: &Name) -> u32 {
        // No name has a slash.
        (xxh3_64(format!("{tenant}/{stream}").as_bytes()) % u64::from(self.0)) as u32
    }

    /// Returns where a sender's epochs go.
    pub fn place(self, Identity { tenant, stream, .. }: &Identity) -> Place {
        let partition = self.of(tenant, stream);
        let rest = format!("{}.{partition}.{}", token(tenant), token(stream));
        Place { partition, subject: format!("ucl.v1.{rest}"), ask: format!("ucl.ask.v1.{rest}") }
    }

    /// Reads tenant and stream from a subject on which a partition's collector is asked.
    pub fn from_ask(subject: &str) -> Option<(Name, Name)> {
        let mut tokens = subject.strip_prefix("ucl.ask.v1.")?.split('.');
        let mut name = || tokens.next()?.replace('%', ".").parse::<Name>().ok();
        let tenant = name()?;
        name()?;
        let stream = name()?;
        tokens.next().is_none().then_some((tenant, stream))
    }

    /// Returns the name of the JetStream stream of a partition.
    pub fn stream_name(self, partition: u32) -> String {
        format!("ucl-v1-{partition}-of-{}", self.0)
    }

    /// Reads the number of partitions from the name of a JetStream stream.
    pub fn from_stream_name(name: &str) -> Option<Self> {
        let (partition, number) = name.strip_prefix("ucl-v1-")?.split_once("-of-")?;
        let (partition, partitions): (u32, _) = (partition.parse().ok()?, Self::new(number.parse().ok()?)?);
        (partition < partitions.0).then_some(partitions)
    }

    /// All subjects of a partition's epochs.
    pub fn subjects(partition: u32) -> String {
        format!("ucl.v1.*.{partition}.*")
    }

    /// All subjects on which a partition's collector is asked.
    pub fn asks(partition: u32) -> String {
        format!("ucl.ask.v1.*.{partition}.*")
    }
}

/// A name as one token of a subject: a dot would end it. `%` is in no name.
fn token(name: &Name) -> String {
    name.as_str().replace('.', "%")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Incarnation;

    fn identity(tenant: &str, stream: &str) -> Identity {
        Identity::new(tenant, stream, Incarnation { number: 1, nonce: 1 }).unwrap()
    }

    /// Agents and collectors of different versions must agree. The numbers are those of Python's
    /// `xxhash.xxh3_64_intdigest(b"shop/web-1.log") % 16`.
    #[test]
    fn a_streams_place_never_changes() {
        let partitions = Partitions::new(16).unwrap();
        let place = partitions.place(&identity("shop", "web-1.log"));
        assert_eq!(place.subject, "ucl.v1.shop.11.web-1%log");
        assert_eq!((place.partition, place.ask.as_str()), (11, "ucl.ask.v1.shop.11.web-1%log"));
        assert_eq!(partitions.place(&identity("shop", "web-2")).partition, 9);
    }

    #[test]
    fn questions_tell_whose_they_are() {
        let asked = identity("shop", "web-1.log");
        let (tenant, stream) = Partitions::from_ask(&Partitions::new(16).unwrap().place(&asked).ask).unwrap();
        assert_eq!((tenant, stream), (asked.tenant, asked.stream));
        for wrong in ["ucl.ask.v1.a.1", "ucl.ask.v1.a.1.b.c", "ucl.v1.a.1.b", "ucl.ask.v1.a.1.%b"] {
            assert_eq!(Partitions::from_ask(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn streams_are_spread_evenly() {
        let partitions = Partitions::new(16).unwrap();
        let mut streams = [0; 16];
        for number in 0..16_000 {
            streams[partitions.place(&identity("shop", &format!("web-{number}"))).partition as usize] += 1;
        }
        // 1,000 are expected in each, with a standard deviation of 31.
        assert!(streams.iter().all(|streams| (850..1_150).contains(streams)), "{streams:?}");
    }

    #[test]
    fn names_of_other_streams_are_none_of_ours() {
        for name in ["ucl-v1-3-of-3", "ucl-v1-0-of-0", "ucl-v1-0-of-5000", "orders", "ucl-v2-0-of-1", "ucl-v1-0"] {
            assert_eq!(Partitions::from_stream_name(name), None, "{name}");
        }
        assert_eq!(Partitions::new(0), None);
    }
}
