//! What goes wrong beside the network: crashes, full and lost disks, clocks, copies, orders to
//! delete, and programs of other versions.

use ucl_collector::{CollectorError, Selection};

use crate::sender::Sender;
use crate::skew;
use crate::world::World;

impl World<'_> {
    pub fn disturb(&mut self) {
        let at = self.rng.below(self.senders.len() as u64) as usize;
        match self.rng.below(12) {
            0 | 1 => self.senders[at].disk.crash_after(self.rng.below(6)),
            2 | 3 => self.disk.crash_after(self.rng.below(6)),
            4 => {
                self.tally.full += 1;
                let disk = if self.rng.chance(2) { &self.disk } else { &self.senders[at].disk };
                disk.set_room(Some(disk.used() + self.rng.below(400) as usize));
            }
            5 => {
                self.disk.set_room(None);
                self.senders.iter().for_each(|sender| sender.disk.set_room(None));
            }
            6 => {
                self.tally.jumps += 1;
                self.now.wall_ms += self.rng.below(1 << 40) as i64 - (1 << 39);
            }
            // A machine is copied, and both copies run.
            7 if self.senders.len() < 5 && self.rng.chance(6) => {
                self.tally.forks += 1;
                self.disturbed = true;
                let seed = self.rng.next();
                let sender = &self.senders[at];
                let copy = Sender {
                    disk: sender.disk.copied(seed),
                    settings: sender.settings.clone(),
                    agent: None,
                    items: sender.items.clone(),
                    is_file: true,
                    read: 0,
                    history: sender.history.clone(),
                    incarnation: sender.incarnation,
                    past: sender.past.clone(),
                    earlier: sender.earlier,
                    process: 0,
                    outstanding: None,
                };
                self.senders.push(copy);
                let at = self.senders.len() - 1;
                self.open_agent(at);
            }
            8 if self.rng.chance(12) => {
                self.tally.wipes += 1;
                self.disturbed = true;
                self.disk.crash();
                self.disk.reboot();
                self.disk.wipe();
                // It does not know any more what was deleted.
                self.deleted.clear();
                self.open_collector();
            }
            9 if self.rng.chance(4) => self.delete(at),
            10 => self.is_older = !self.is_older,
            // An older version ran for a while, and wrote the states.
            11 if self.rng.chance(3) => {
                self.disk.crash();
                self.disk.reboot();
                let older = skew::write_older_states(&self.disk);
                self.tally.older_states += older;
                self.wrote_older |= older > 0;
                self.open_collector();
            }
            _ => {}
        }
    }

    /// Somebody deletes a stream.
    fn delete(&mut self, at: usize) {
        let sender = &self.senders[at].settings;
        let selection = Selection::stream(sender.tenant.clone(), sender.stream.clone());
        let Some(collector) = &mut self.collector else { return };
        match collector.delete(&selection) {
            Ok(gone) => {
                self.tally.deleted += gone.len() as u64;
                self.disturbed |= !gone.is_empty();
                self.deleted.extend(gone);
            }
            Err(CollectorError::Storage(error)) if ucl_storage::is_full(&error) => {}
            Err(error) => {
                // Whether it was deleted is known when it is looked for.
                self.disturbed = true;
                self.collector_died(&error);
            }
        }
    }
}
