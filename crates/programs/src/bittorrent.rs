//! `bittorrent`: a seed of a torrent and its peers (BEP 3). The seed sends without pause to the peers that it does not choke.
//!
//! Departures from BEP 3: the peers do not trade with one another. There are no requests, because real peers keep so
//! many outstanding that the seed never has to wait. The torrent has no end.

use bufferscope_scenario::BittorrentTraffic;

use crate::agenda::{Agenda, Task};
use crate::choker::{Change, Choker};
use crate::random::{Random, Uniform};
use crate::sockets::{Opening, Role, Sockets};
use crate::starts::Starts;
use crate::streams::{Run, Stream};

/// Time between two choking decisions (BEP 3).
const ROUND_NS: u64 = 10_000_000_000;
/// Its only task besides beginning.
const CHOKE: Task = Task::Step(0);

/// The seed.
#[derive(Debug)]
pub(crate) struct Bittorrent {
    choker: Choker,
    opened: u32,
    stopped: bool,
}

impl Stream for Bittorrent {
    type Parameters = BittorrentTraffic;

    fn new<U: Uniform>(
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
            agenda.plan(at_ns, CHOKE);
        }
        Self { choker: Choker::new(parameters.unchoked, random), opened: 0, stopped: false }
    }

    /// The next peer connects, or it is time to decide which peers are choked.
    fn on_task<U: Uniform, S: Sockets>(&mut self, task: Task, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        if task == Task::Begin {
            self.opened += 1;
            return run.sockets.open(&Opening { number: self.opened, data_from: Role::Client, expects: None });
        }
        run.agenda.plan(run.now_ns + ROUND_NS, CHOKE);
        let received: Vec<u64> =
            self.choker.connections().map(|connection| run.sockets.delivered(connection)).collect::<Result<_, _>>()?;
        let changes = self.choker.round(&received);
        carry_out(&changes, run.sockets)
    }

    fn on_established<U: Uniform, S: Sockets>(&mut self, number: u32, run: &mut Run<'_, U, S>) -> Result<(), S::Error> {
        if self.stopped {
            return Ok(());
        }
        let changes = self.choker.connected(number);
        carry_out(&changes, run.sockets)
    }

    fn on_stop<S: Sockets>(&mut self, agenda: &mut Agenda, sockets: &mut S) -> Result<(), S::Error> {
        agenda.clear();
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
