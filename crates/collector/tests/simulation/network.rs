//! A network that loses, repeats, reorders and garbles.

use ucl_link::{Identity, Reply};

use crate::skew;
use crate::world::World;

pub struct Parcel {
    pub sender: usize,
    pub process: u64,
    pub id: u64,
    pub identity: Identity,
    pub body: Vec<u8>,
}

pub struct Answered {
    pub sender: usize,
    pub process: u64,
    pub id: u64,
    pub reply: Result<Reply, String>,
}

impl World<'_> {
    pub fn deliver(&mut self) {
        let mut parcels: Vec<Parcel> = Vec::new();
        for _ in 0..=self.rng.below(3) {
            if self.network.is_empty() {
                break;
            }
            let at = self.rng.below(self.network.len() as u64) as usize;
            self.tally.reordered += u64::from(at > 0);
            let mut parcel = self.network.swap_remove(at);
            if self.rng.chance(6) {
                self.tally.lost += 1;
                continue;
            }
            if self.rng.chance(6) {
                self.tally.repeated += 1;
                let Parcel { sender, process, id, ref identity, ref body } = parcel;
                let again = Parcel { sender, process, id, identity: identity.clone(), body: body.clone() };
                self.network.push(again);
            }
            if self.rng.chance(20) {
                self.tally.garbled += 1;
                let at = self.rng.below(parcel.body.len() as u64) as usize;
                if self.rng.chance(2) {
                    parcel.body[at] ^= 1 + self.rng.below(255) as u8;
                } else {
                    parcel.body.truncate(at);
                }
            }
            parcels.push(parcel);
        }
        if parcels.is_empty() {
            return;
        }
        if self.is_older {
            for parcel in &mut parcels {
                self.tally.refused_as_newer += u64::from(skew::make_newer(&mut parcel.body));
            }
        }
        let requests: Vec<(&Identity, &[u8])> =
            parcels.iter().map(|parcel| (&parcel.identity, &parcel.body[..])).collect();
        let Some(collector) = &mut self.collector else { return };
        match collector.submit(&requests, self.now) {
            Ok(replies) => {
                for (parcel, reply) in parcels.iter().zip(replies) {
                    let Parcel { sender, process, id, .. } = *parcel;
                    let reply = reply.map_err(|rejected| rejected.to_string());
                    self.answers.push(Answered { sender, process, id, reply });
                }
            }
            Err(error) => self.collector_died(&error),
        }
    }

    pub fn answer(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        let at = self.rng.below(self.answers.len() as u64) as usize;
        let Answered { sender, process, id, reply } = self.answers.swap_remove(at);
        if self.rng.chance(6) {
            self.tally.lost += 1;
            return;
        }
        self.reply(sender, process, id, reply);
    }

    pub fn reply(&mut self, at: usize, process: u64, id: u64, reply: Result<Reply, String>) {
        let random = self.rng.next();
        let sender = &mut self.senders[at];
        // A reply to a process that is no more reaches nobody.
        if sender.outstanding != Some((process, id)) {
            return;
        }
        sender.outstanding = None;
        let Some(agent) = &mut sender.agent else { return };
        let result = agent.on_reply(self.now, id, reply, random);
        self.settle(at, result);
    }

    /// A request of which nothing is heard any more.
    pub fn time_out(&mut self, at: usize) {
        if let Some((process, id)) = self.senders[at].outstanding {
            self.reply(at, process, id, Err("no answer".into()));
        }
    }
}
