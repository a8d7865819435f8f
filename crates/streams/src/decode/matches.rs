//! `regex:PATTERN`: the key is a group of the first match in each line.

use regex::bytes::CaptureLocations;

use super::lines::Splitter;
use super::weight::weight;
use super::{Decode, ReadWindow};
use crate::collect::{Collector, Halt};
use crate::error::BadReason;
use crate::format::Pattern;

pub(super) struct Matches {
    splitter: Splitter,
    key_group: usize,
    /// Number of the group that is the weight, and how it was given.
    weight: Option<(usize, String)>,
    groups: CaptureLocations,
    pattern: Pattern,
}

impl Matches {
    /// The weight is a group of the pattern; that it has such a group is checked before.
    pub fn new(pattern: Pattern, weight: Option<String>) -> Self {
        let weight = weight.and_then(|name| pattern.group(&name).map(|number| (number, name)));
        let key_group = pattern.key_group();
        let groups = pattern.regex.capture_locations();
        Self { splitter: Splitter::default(), key_group, weight, groups, pattern }
    }
}

impl Decode for Matches {
    fn decode(&mut self, window: ReadWindow<'_>, out: &mut Collector<'_>) -> Result<usize, Halt> {
        let Self { splitter, key_group, weight: weight_group, groups, pattern } = self;
        splitter.split(window, out, |line, place, out| {
            let matched = pattern.regex.captures_read(groups, line).and_then(|_| groups.get(*key_group));
            let Some((start, end)) = matched else {
                // Empty lines are no records in any format but `lines`.
                out.summary.no_key += u64::from(!line.is_empty());
                return Ok(());
            };
            let weight = match weight_group {
                None => 1,
                Some((number, name)) => match groups.get(*number) {
                    None => return out.bad(place, BadReason::NoGroup(name.clone())),
                    Some((start, end)) => match weight(&line[start..end], place, out)? {
                        Some(weight) => weight,
                        None => return Ok(()),
                    },
                },
            };
            out.key(&line[start..end], weight, place)
        })
    }

    fn can_start_here(&self) -> bool {
        self.splitter.is_between_lines()
    }
}
