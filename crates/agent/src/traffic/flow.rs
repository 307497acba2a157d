//! One connection with both of its ends, as the programs and the records know it.

use std::io;

use bufferscope_programs::{Ask, Awaited, ConnectionEvents, Opening, Requests, Role};
use bufferscope_records::Name;

use super::connection::{Connection, Served};
use super::tcp_checks::Supply;

/// One connection.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) name: Name,
    pub(super) traffic: usize,
    /// Its number among the connections of the traffic.
    pub(super) number: u32,
    pub(super) started_ns: u64,
    /// The connection's ends, client first, as long as they exist.
    pub(super) ends: [Option<u32>; 2],
    pub(super) data_from: Role,
    /// The data that the receiver under test still expects.
    awaited: Awaited,
    /// The requests that the server will receive.
    requests: Requests,
}

/// The events of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Notification {
    pub(super) traffic: usize,
    pub(super) number: u32,
    pub(super) events: ConnectionEvents,
}

impl Flow {
    /// A flow that begins now.
    pub(super) fn new(name: Name, traffic: usize, opening: &Opening, started_ns: u64) -> Self {
        let &Opening { number, data_from, expects } = opening;
        let (awaited, requests) = (Awaited::new(expects), Requests::default());
        Self { name, traffic, number, started_ns, ends: [None; 2], data_from, awaited, requests }
    }

    /// The client makes a request.
    pub(super) fn ask(&mut self, ask: Ask) {
        self.awaited.ask(ask);
        self.requests.ask(ask);
    }

    /// The server answers the requests that it has received completely.
    pub(super) fn answer(&mut self, connection: &mut Connection, received: u64) -> io::Result<()> {
        if connection.role == Role::Client {
            return Ok(());
        }
        while let Some(ask) = self.requests.take_asked(received) {
            connection.outgoing.write(ask.response_bytes);
            if ask.last {
                connection.outgoing.close();
            }
        }
        connection.pump()
    }

    /// The events for the programs after an end was served.
    pub(super) fn events(&mut self, role: Role, served: &Served) -> Option<Notification> {
        let arrived = role != self.data_from && self.awaited.has_arrived(served.received);
        let is_client = role == Role::Client;
        let (established, closed) = (is_client && served.agreed.is_some(), is_client && served.done);
        let events = ConnectionEvents { established, arrived, closed };
        events.is_any().then_some(Notification { traffic: self.traffic, number: self.number, events })
    }

    /// Takes the final statistics of an end.
    pub(super) fn conclude(&self, connection: &Connection, supplies: &mut [Supply]) -> io::Result<()> {
        if connection.role == self.data_from
            && let Some(info) = connection.info()?
        {
            supplies[self.traffic].add(&info);
        }
        Ok(())
    }
}
