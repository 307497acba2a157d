//! What the two ends of one connection want of one another.

use std::collections::VecDeque;

use crate::sockets::Ask;

/// The requests under way on a connection, and what the receiver of its data waits for.
#[derive(Debug)]
pub struct Exchange {
    /// Payload at whose arrival the programs are told; `u64::MAX`: none.
    expects: u64,
    /// What had arrived when that was told last.
    arrived: u64,
    /// Requests on their way: what the server has received when it has all of it, and the answer to it.
    asks: VecDeque<(u64, Ask)>,
    /// Payload of all requests.
    asked: u64,
}

impl Exchange {
    /// The receiver waits for so much payload, if for any.
    pub fn new(expects: Option<u64>) -> Self {
        Self { expects: expects.unwrap_or(u64::MAX), arrived: 0, asks: VecDeque::new(), asked: 0 }
    }

    /// The client asks for something, and waits for the answer too.
    pub fn ask(&mut self, ask: Ask) {
        self.asked += ask.request_bytes;
        self.asks.push_back((self.asked, ask));
        let before = if self.expects == u64::MAX { self.arrived } else { self.expects };
        self.expects = before + ask.response_bytes;
    }

    /// The receiver has so much payload: whether that is all it has waited for. It is so once.
    #[inline]
    pub fn has_arrived(&mut self, received: u64) -> bool {
        let has_arrived = received >= self.expects;
        if has_arrived {
            self.arrived = std::mem::replace(&mut self.expects, u64::MAX);
        }
        has_arrived
    }

    /// The next request that the server, with so much payload received, has whole.
    #[inline]
    pub fn take_asked(&mut self, received: u64) -> Option<Ask> {
        self.asks.front().filter(|(asked, _)| *asked <= received)?;
        self.asks.pop_front().map(|(_, ask)| ask)
    }
}
