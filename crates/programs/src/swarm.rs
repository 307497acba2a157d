//! A seed of a torrent and its peers (BEP 3). The seed sends without pause to the peers that it does not choke.
//!
//! Departures from BEP 3: the peers do not trade with one another. There are no requests, because real peers keep so
//! many outstanding that the seed never has to wait. The torrent has no end.

use bufferscope_scenario::BittorrentTraffic;

use crate::agenda::{Agenda, Task};
use crate::choker::{Change, Choker};
use crate::random::{Random, Uniform};
use crate::sockets::{Opening, Role, Sockets};
use crate::starts::Starts;

/// Time between two choking decisions (BEP 3).
const ROUND_NS: u64 = 10_000_000_000;

/// The seed.
#[derive(Debug)]
pub(crate) struct Swarm {
    choker: Choker,
    opened: u32,
    stopped: bool,
}

impl Swarm {
    pub(crate) fn new<U: Uniform>(
        parameters: &BittorrentTraffic,
        random: Random,
        starts: &mut Starts<U>,
        agenda: &mut Agenda,
    ) -> Self {
        for _ in 0..parameters.peers {
            if let Some(at_ns) = starts.after(0) {
                agenda.plan(at_ns, Task::Begin);
            }
        }
        if let Some(at_ns) = starts.after(ROUND_NS) {
            agenda.plan(at_ns, Task::Choke);
        }
        Self { choker: Choker::new(parameters.unchoked, random), opened: 0, stopped: false }
    }

    pub(crate) fn begin<S: Sockets>(&mut self, sockets: &mut S) -> Result<(), S::Error> {
        self.opened += 1;
        sockets.open(&Opening { number: self.opened, data_from: Role::Client, expects: None })
    }

    pub(crate) fn on_established<S: Sockets>(&mut self, number: u32, sockets: &mut S) -> Result<(), S::Error> {
        if self.stopped {
            return Ok(());
        }
        let changes = self.choker.connected(number);
        carry_out(&changes, sockets)
    }

    /// It is time to decide which peers are choked.
    pub(crate) fn choke<S: Sockets>(
        &mut self,
        now_ns: u64,
        agenda: &mut Agenda,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        agenda.plan(now_ns + ROUND_NS, Task::Choke);
        let received: Vec<u64> =
            self.choker.connections().map(|connection| sockets.delivered(connection)).collect::<Result<_, _>>()?;
        let changes = self.choker.round(&received);
        carry_out(&changes, sockets)
    }

    pub(crate) fn on_stop<S: Sockets>(&mut self, sockets: &mut S) -> Result<(), S::Error> {
        self.stopped = true;
        for connection in 1..=self.opened {
            sockets.hold(connection)?;
            sockets.close(connection)?;
        }
        Ok(())
    }
}

fn carry_out<S: Sockets>(changes: &[Change], sockets: &mut S) -> Result<(), S::Error> {
    for &Change { connection, choked } in changes {
        if choked { sockets.hold(connection)? } else { sockets.write(connection, u64::MAX)? }
    }
    Ok(())
}
