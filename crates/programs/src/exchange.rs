//! What the two ends of a connection expect from each other.

use std::collections::VecDeque;

use crate::sockets::Ask;

/// The requests under way on a connection, and what the receiver of its data waits for.
#[derive(Debug)]
pub struct Exchange {
    /// The programs are told when this much payload has arrived; `u64::MAX`: never.
    expects: u64,
    /// Payload that had arrived when they were last told.
    arrived: u64,
    /// Requests under way. For each, how much the server has received when it has the whole request, and the answer to
    /// it.
    asks: VecDeque<(u64, Ask)>,
    /// Payload of all requests.
    asked: u64,
}

impl Exchange {
    /// The receiver waits for this much payload, if for any.
    pub fn new(expects: Option<u64>) -> Self {
        Self { expects: expects.unwrap_or(u64::MAX), arrived: 0, asks: VecDeque::new(), asked: 0 }
    }

    /// The client makes a request, and waits for the answer too.
    pub fn ask(&mut self, ask: Ask) {
        self.asked += ask.request_bytes;
        self.asks.push_back((self.asked, ask));
        let before = if self.expects == u64::MAX { self.arrived } else { self.expects };
        self.expects = before + ask.response_bytes;
    }

    /// The receiver has this much payload. Returns whether that is all that it has waited for; this is true only once.
    #[inline]
    pub fn has_arrived(&mut self, received: u64) -> bool {
        let has_arrived = received >= self.expects;
        if has_arrived {
            self.arrived = std::mem::replace(&mut self.expects, u64::MAX);
        }
        has_arrived
    }

    /// The next request that the server has received completely, if it has received this much payload in total.
    #[inline]
    pub fn take_asked(&mut self, received: u64) -> Option<Ask> {
        self.asks.front().filter(|(asked, _)| *asked <= received)?;
        self.asks.pop_front().map(|(_, ask)| ask)
    }
}
