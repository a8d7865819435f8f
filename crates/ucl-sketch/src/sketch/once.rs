//! What does not depend on the type of the keys. It is compiled here, once: generic methods are
//! compiled again in every crate that calls them, each with the insert paths of all kinds of keys,
//! heavy parts and sinks behind it.

use ucl_control_plane::{Fault, QueryView};
use ucl_data_plane::{Config, ConfigError, InsertError, MergeError};

use super::{Control, Tee};
use crate::plane::AnyPlane;

impl Control {
    pub(super) fn insert(&mut self, plane: &mut AnyPlane, key: &[u8], weight: u64) -> Result<(), InsertError> {
        with_sink!(self, sink => plane.insert(key, weight, sink))
    }

    pub(super) fn insert_batch(
        &mut self,
        plane: &mut AnyPlane,
        key_bytes: usize,
        count: usize,
        keys: &[u8],
        weights: Option<&[u64]>,
    ) -> Result<(), InsertError> {
        with_sink!(self, sink => plane.insert_batch(key_bytes, count, keys, weights, sink))
    }

    pub(super) fn cut(&mut self, plane: &mut AnyPlane) {
        with_sink!(self, sink => plane.cut(sink));
    }

    pub(super) fn change(&mut self, plane: &mut AnyPlane, config: Config) -> Result<(), ConfigError> {
        with_sink!(self, sink => plane.change(config, sink))
    }

    pub(super) fn reset(&mut self, plane: &mut AnyPlane, keep_weights: bool) {
        with_sink!(self, sink => plane.reset(keep_weights, sink));
    }

    pub(super) fn merge(&mut self, plane: &mut AnyPlane, other: &AnyPlane) -> Result<(), MergeError> {
        with_sink!(self, sink => plane.merge(other, sink))
    }

    pub(super) fn view(&mut self, plane: &AnyPlane) -> Result<QueryView, Fault> {
        self.with(|control| control.view(|sink| plane.peek(sink)))
    }
}
