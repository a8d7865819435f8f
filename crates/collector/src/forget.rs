//! Deleting streams, by order or because nothing came of them for long.

use std::io;

use ucl_link::{Identity, Now};
use ucl_storage::{Storage, is_full};

use crate::checkpoint::file_name;
use crate::collector::Collector;
use crate::life::Life;
use crate::selection::Selection;
use crate::settings::CollectorError;

impl<S: Storage> Collector<S> {
    /// Deletes all incarnations of a selection: once it returns, they are in no answer, also after
    /// a crash. An agent that still sends one of them is told to start a new one.
    ///
    /// # Errors
    /// If the disk fails, or is full: then nothing was deleted.
    pub fn delete(&mut self, selection: &Selection) -> Result<Vec<Identity>, CollectorError> {
        self.check()?;
        let gone: Vec<Identity> = self.lives.keys().filter(|identity| selection.has(identity)).cloned().collect();
        self.forget(&gone)?;
        Ok(gone)
    }

    /// Deletes incarnations of which nothing came for as long as the settings say.
    ///
    /// # Errors
    /// As [`Collector::delete`].
    pub fn delete_idle(&mut self, now: Now) -> Result<Vec<Identity>, CollectorError> {
        self.check()?;
        // When an epoch of the log arrived is not known: it counts as having come now.
        let first = *self.first_asked_ms.get_or_insert(now.wall_ms);
        let Some(after) = self.settings.forget_after_ms else { return Ok(Vec::new()) };
        let since = |life: &Life| life.epochs.back().and_then(|epoch| epoch.received_ms).unwrap_or(first);
        let is_idle = |life: &&Life| now.wall_ms.saturating_sub(since(life)) > i64::try_from(after).unwrap_or(i64::MAX);
        let gone: Vec<Identity> = self.lives.values().filter(is_idle).map(|life| life.identity.clone()).collect();
        self.forget(&gone)?;
        Ok(gone)
    }

    fn forget(&mut self, gone: &[Identity]) -> Result<(), CollectorError> {
        if gone.is_empty() {
            return Ok(());
        }
        // The list first: what is in it does not come back, whatever else is still there.
        self.deleted.add(&mut self.storage, gone).inspect_err(|error| {
            self.failed |= !is_full(error);
        })?;
        for identity in gone {
            self.lives.remove(identity);
            remove_states(&mut self.storage, identity).inspect_err(|_| self.failed = true)?;
        }
        Ok(())
    }
}

/// Removes the states of an incarnation.
pub(crate) fn remove_states(storage: &mut impl Storage, identity: &Identity) -> io::Result<()> {
    (0..2).try_for_each(|slot| storage.remove(&file_name(identity, slot)))
}
