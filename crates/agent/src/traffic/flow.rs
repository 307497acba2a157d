//! One connection as the programs and the records know it: both of its ends.

use std::collections::VecDeque;
use std::io;

use bufferscope_programs::{Ask, Opening, Side};
use bufferscope_records::Name;

use super::connection::{Connection, Served};
use super::scrutiny::Supply;

/// One connection.
#[derive(Debug)]
pub(super) struct Flow {
    pub(super) name: Name,
    pub(super) traffic: usize,
    /// Among the traffic's.
    pub(super) number: u32,
    pub(super) started_ns: u64,
    /// The connection's ends, client first, while they are there.
    pub(super) ends: [Option<u32>; 2],
    pub(super) data_from: Side,
    /// Payload at whose arrival the programs are told; `None`: they are not.
    expects: Option<u64>,
    /// What had arrived when that was told last.
    arrived: u64,
    /// Requests on their way: what the server has received when it has all of it, and the answer to it.
    asks: VecDeque<(u64, Ask)>,
    /// Payload of all requests.
    asked: u64,
}

/// What has become of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    pub(super) traffic: usize,
    pub(super) number: u32,
    /// The client's handshake is done.
    pub(super) stands: bool,
    /// All has arrived that was expected.
    pub(super) arrived: bool,
    /// The server has closed its side, as the client sees it.
    pub(super) over: bool,
}

impl Flow {
    /// A flow that begins now.
    pub(super) fn new(name: Name, traffic: usize, opening: &Opening, started_ns: u64) -> Self {
        let &Opening { number, data_from, expects } = opening;
        let (ends, asks) = ([None; 2], VecDeque::new());
        Self { name, traffic, number, started_ns, ends, data_from, expects, arrived: 0, asks, asked: 0 }
    }

    /// The client asks for something.
    pub(super) fn expect(&mut self, ask: Ask) {
        self.asked += ask.request_bytes;
        self.asks.push_back((self.asked, ask));
        self.expects = Some(self.expects.unwrap_or(self.arrived) + ask.response_bytes);
    }

    /// The server answers the requests that it has whole.
    pub(super) fn answer(&mut self, connection: &mut Connection, received: u64) -> io::Result<()> {
        if connection.side == Side::Client {
            return Ok(());
        }
        while let Some(&(_, ask)) = self.asks.front().filter(|(asked, _)| *asked <= received) {
            self.asks.pop_front();
            connection.outgoing.write(ask.response_bytes);
            if ask.last {
                connection.outgoing.close();
            }
        }
        connection.pump()
    }

    /// What the programs want to know after an end was served.
    pub(super) fn news(&mut self, side: Side, served: &Served) -> Option<News> {
        let arrived = side != self.data_from && self.expects.is_some_and(|expects| served.received >= expects);
        if arrived {
            self.arrived = self.expects.take().unwrap_or(0);
        }
        let is_client = side == Side::Client;
        let (stands, over) = (is_client && served.agreed.is_some(), is_client && served.done);
        let news = News { traffic: self.traffic, number: self.number, stands, arrived, over };
        (stands || arrived || over).then_some(news)
    }

    /// An end is looked at for the last time.
    pub(super) fn conclude(&self, connection: &Connection, supplies: &mut [Supply]) -> io::Result<()> {
        if connection.side == self.data_from
            && let Some(info) = connection.info()?
        {
            supplies[self.traffic].add(&info);
        }
        Ok(())
    }
}
