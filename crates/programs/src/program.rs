//! The programs of one entry of traffic.

use bufferscope_scenario::{NodeIndex, Traffic, TrafficKind};

use crate::agenda::{Agenda, Task};
use crate::bulk::Bulk;
use crate::random::{Random, Uniform};
use crate::sockets::{Sockets, Transfer};
use crate::starts::Starts;
use crate::swarm::Swarm;
use crate::web::Web;

/// The programs of one entry of traffic, at both ends.
///
/// `U` draws the random delays with which flows and pages begin.
#[derive(Debug)]
pub struct Program<U> {
    kind: Kind,
    ends: [NodeIndex; 2],
    starts: Starts<U>,
    agenda: Agenda,
}

/// The events of a connection since the last notification.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionEvents {
    /// The client's handshake has completed.
    pub established: bool,
    /// All expected payload has arrived.
    pub arrived: bool,
    /// The server has closed its side, as the client sees it.
    pub closed: bool,
}

#[derive(Debug)]
enum Kind {
    Bulk(Bulk),
    Web(Web),
    Swarm(Swarm),
}

impl ConnectionEvents {
    /// Whether there is any event.
    #[inline]
    pub fn is_any(self) -> bool {
        self.established || self.arrived || self.closed
    }
}

impl<U: Uniform> Program<U> {
    /// The programs of the scenario's entry of traffic with this index; `None` if it opens no TCP connections.
    pub fn new(traffic: &Traffic, index: usize, seed: u64, jitter: U) -> Option<Self> {
        let mut starts = Starts::new(traffic, jitter);
        let mut agenda = Agenda::default();
        // These random numbers are the same on every engine, unlike the jitter.
        let random = Random::new(seed, index).split(0);
        let kind = match &traffic.kind {
            TrafficKind::Tcp(parameters) => Kind::Bulk(Bulk::new(parameters, random, &mut starts, &mut agenda)),
            TrafficKind::Web(parameters) => Kind::Web(Web::new(parameters, &mut starts, &mut agenda)),
            TrafficKind::Bittorrent(parameters) => {
                Kind::Swarm(Swarm::new(parameters, random, &mut starts, &mut agenda))
            }
            _ => return None,
        };
        let ends = match kind {
            Kind::Bulk(_) | Kind::Swarm(_) => [traffic.from, traffic.to],
            Kind::Web(_) => [traffic.to, traffic.from],
        };
        Some(Self { kind, ends, starts, agenda })
    }

    /// The nodes of client and server.
    pub fn ends(&self) -> [NodeIndex; 2] {
        self.ends
    }

    /// When [`on_time`](Self::on_time) has to be called next.
    pub fn next_ns(&self) -> Option<u64> {
        self.agenda.next_ns()
    }

    /// Whether [`on_stop`](Self::on_stop) must be called at its stop.
    pub fn has_to_be_stopped(&self) -> bool {
        !matches!(self.kind, Kind::Web(_))
    }

    /// Carries out the first task that is due, if there is one.
    pub fn on_time<S: Sockets>(&mut self, now_ns: u64, sockets: &mut S) -> Result<(), S::Error> {
        let Self { kind, starts, agenda, .. } = self;
        match (agenda.due(now_ns), kind) {
            (Some(Task::Begin), Kind::Bulk(bulk)) => bulk.begin(now_ns, agenda, sockets),
            (Some(Task::Begin), Kind::Web(web)) => web.begin(now_ns, starts, agenda, sockets),
            (Some(Task::Begin), Kind::Swarm(swarm)) => swarm.begin(sockets),
            (Some(Task::Write(number)), Kind::Bulk(bulk)) => bulk.write(number, agenda, sockets),
            (Some(Task::Choke), Kind::Swarm(swarm)) => swarm.choke(now_ns, agenda, sockets),
            (Some(Task::Write(_) | Task::Choke) | None, _) => Ok(()),
        }
    }

    /// Handles the events of a connection.
    pub fn on_events<S: Sockets>(
        &mut self,
        now_ns: u64,
        number: u32,
        events: ConnectionEvents,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        if events.established {
            self.on_established(number, sockets)?;
        }
        if events.arrived {
            self.on_arrived(now_ns, number, sockets)?;
        }
        if events.closed {
            self.on_closed(now_ns, number, sockets)?;
        }
        Ok(())
    }

    fn on_established<S: Sockets>(&mut self, number: u32, sockets: &mut S) -> Result<(), S::Error> {
        match &mut self.kind {
            Kind::Bulk(_) => Ok(()),
            Kind::Web(web) => web.on_established(number, sockets),
            Kind::Swarm(swarm) => swarm.on_established(number, sockets),
        }
    }

    fn on_arrived<S: Sockets>(&mut self, now_ns: u64, number: u32, sockets: &mut S) -> Result<(), S::Error> {
        match &mut self.kind {
            Kind::Bulk(bulk) => bulk.on_arrived(now_ns, number, sockets),
            Kind::Web(web) => web.on_arrived(now_ns, number, sockets),
            Kind::Swarm(_) => Ok(()),
        }
    }

    fn on_closed<S: Sockets>(&mut self, now_ns: u64, number: u32, sockets: &mut S) -> Result<(), S::Error> {
        match &mut self.kind {
            Kind::Bulk(bulk) => bulk.on_closed(now_ns, number, &mut self.agenda, sockets),
            Kind::Web(_) | Kind::Swarm(_) => Ok(()),
        }
    }

    /// The entry's stop: unbounded flows are closed.
    pub fn on_stop<S: Sockets>(&mut self, sockets: &mut S) -> Result<(), S::Error> {
        match &mut self.kind {
            Kind::Bulk(bulk) => bulk.on_stop(sockets),
            Kind::Web(_) => Ok(()),
            Kind::Swarm(swarm) => {
                self.agenda.clear();
                swarm.on_stop(sockets)
            }
        }
    }

    /// The stop is brought forward: nothing new begins at `stop_ns` or later. If the programs [have to be
    /// stopped](Self::has_to_be_stopped), [`on_stop`](Self::on_stop) has to be called then.
    pub fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.starts.stop_ns = stop_ns;
        self.agenda.forget(Task::Begin, stop_ns);
        if let Kind::Bulk(bulk) = &mut self.kind {
            bulk.set_stop(stop_ns);
        }
    }

    /// Changes the number of flows, which must be endless: further ones begin, or the newest ones end.
    pub fn set_flows<S: Sockets>(&mut self, now_ns: u64, flows: u32, sockets: &mut S) -> Result<(), S::Error> {
        let Self { kind, starts, agenda, .. } = self;
        match kind {
            Kind::Bulk(bulk) => bulk.set_flows(now_ns, flows, starts, agenda, sockets),
            Kind::Web(_) | Kind::Swarm(_) => Ok(()),
        }
    }

    /// The run is over: returns the transfers that did not complete.
    pub fn unfinished(&mut self) -> Vec<Transfer> {
        match &mut self.kind {
            Kind::Bulk(bulk) => bulk.unfinished(),
            Kind::Web(web) => web.unfinished(),
            Kind::Swarm(_) => Vec::new(),
        }
    }
}
