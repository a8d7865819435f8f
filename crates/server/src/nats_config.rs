//! What the service is told about NATS.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Partitions unless another number is given.
const PARTITIONS: u32 = 16;
/// As [`ucl_link`] has it, which is built without NATS where nobody asks for it.
const MOST_PARTITIONS: u32 = 4_096;
/// The most copies that NATS keeps.
const MOST_REPLICAS: usize = 5;

/// The NATS servers that epochs come from, and the partitions that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsConfig {
    /// Addresses, with commas between them.
    pub servers: String,
    /// Certificates to trust.
    pub ca: Option<PathBuf>,
    /// Copies of each message.
    pub replicas: usize,
    /// Number of partitions.
    pub partitions: u32,
    /// Partitions of this collector; `None` if collectors share them out by leases.
    pub own: Option<BTreeSet<u32>>,
}

impl NatsConfig {
    /// Fills in the defaults, and adds what is wrong to the list.
    pub(crate) fn new(
        nats: Option<String>,
        ca: Option<PathBuf>,
        replicas: Option<usize>,
        partitions: Option<u32>,
        own: Option<String>,
        wrong: &mut Vec<String>,
    ) -> Option<Self> {
        let own = own.filter(|own| !own.is_empty());
        let Some(servers) = nats.filter(|nats| !nats.is_empty()) else {
            if own.is_some() || ca.is_some() {
                wrong.push("own and nats_ca are for collectors on NATS: give `nats` too".to_owned());
            }
            return None;
        };
        if !cfg!(feature = "nats") {
            wrong.push("this program was built without NATS (feature `nats`)".to_owned());
        }
        let partitions = partitions.unwrap_or(PARTITIONS);
        if !(1..=MOST_PARTITIONS).contains(&partitions) {
            wrong.push(format!("partitions must be 1 to {MOST_PARTITIONS}"));
        }
        let replicas = replicas.unwrap_or(1);
        if !(1..=MOST_REPLICAS).contains(&replicas) {
            wrong.push(format!("nats_replicas must be 1 to {MOST_REPLICAS}"));
        }
        let own = own.map(|text| {
            list(&text, partitions.min(MOST_PARTITIONS)).unwrap_or_else(|| {
                wrong.push(format!("own: give partitions from 0 to {}, as in 0,3-5", partitions.saturating_sub(1)));
                BTreeSet::new()
            })
        });
        Some(Self { servers, ca, replicas, partitions, own })
    }
}

/// Reads numbers below `end` and ranges of them.
fn list(text: &str, end: u32) -> Option<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= end {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_read_from_a_list() {
        assert_eq!(list("0,3-5", 6), Some(BTreeSet::from([0, 3, 4, 5])));
        for wrong in ["", "6", "4-6", "5-3", "a", "1,,2", "-1"] {
            assert_eq!(list(wrong, 6), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let mut wrong = Vec::new();
        let (many, few) = (Some(9), Some(0));
        let config = NatsConfig::new(Some("nats://a".into()), None, many, few, Some("1".into()), &mut wrong);
        assert!(config.is_some());
        assert_eq!(wrong.len(), 3 + usize::from(!cfg!(feature = "nats")), "{wrong:?}");
        wrong.clear();
        assert_eq!(NatsConfig::new(None, None, None, None, Some("1".into()), &mut wrong), None);
        assert_eq!(wrong.len(), 1, "{wrong:?}");
        // As the lines of the default file have it.
        wrong.clear();
        assert_eq!(NatsConfig::new(Some("".into()), None, Some(1), Some(16), Some("".into()), &mut wrong), None);
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
