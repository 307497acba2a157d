//! What the two ends of a connection expect from each other. Each end has its half.

use std::collections::VecDeque;

use crate::sockets::Ask;

/// The half of the end that receives the connection's data: what it waits for.
#[derive(Debug)]
pub struct Awaited {
    /// The programs are notified when this much payload has arrived; `u64::MAX`: never.
    expects: u64,
    /// Payload that had arrived at the last notification.
    arrived: u64,
}

/// The server's half: the requests that it will receive.
#[derive(Debug, Default)]
pub struct Requests {
    /// Requests under way. For each, how much the server has received when it has the whole request, and the answer to
    /// it.
    under_way: VecDeque<(u64, Ask)>,
    /// Payload of all requests.
    asked: u64,
}

impl Awaited {
    /// Waits for this much payload, if for any.
    pub fn new(expects: Option<u64>) -> Self {
        Self { expects: expects.unwrap_or(u64::MAX), arrived: 0 }
    }

    /// Waits for the answer to this request too.
    pub fn ask(&mut self, ask: Ask) {
        let before = if self.expects == u64::MAX { self.arrived } else { self.expects };
        self.expects = before + ask.response_bytes;
    }

    /// This much payload has arrived. Returns whether that is all that was awaited; this is true only once.
    #[inline]
    pub fn has_arrived(&mut self, received: u64) -> bool {
        let has_arrived = received >= self.expects;
        if has_arrived {
            self.arrived = std::mem::replace(&mut self.expects, u64::MAX);
        }
        has_arrived
    }
}

impl Requests {
    /// The client makes a request.
    pub fn ask(&mut self, ask: Ask) {
        self.asked += ask.request_bytes;
        self.under_way.push_back((self.asked, ask));
    }

    /// The next request that the server has received completely, if it has received this much payload in total.
    #[inline]
    pub fn take_asked(&mut self, received: u64) -> Option<Ask> {
        self.under_way.front().filter(|(asked, _)| *asked <= received)?;
        self.under_way.pop_front().map(|(_, ask)| ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(request_bytes: u64, response_bytes: u64) -> Ask {
        Ask { request_bytes, response_bytes, last: false }
    }

    #[test]
    fn all_that_is_awaited_has_arrived_only_once() {
        let mut awaited = Awaited::new(Some(1000));
        assert_eq!([999, 1000, 1001].map(|received| awaited.has_arrived(received)), [false, true, false]);
        assert!(!Awaited::new(None).has_arrived(u64::MAX - 1));
    }

    #[test]
    fn answers_to_requests_made_together_are_awaited_together() {
        let mut awaited = Awaited::new(None);
        awaited.ask(ask(100, 5000));
        awaited.ask(ask(100, 3000));
        assert_eq!([5000, 8000].map(|received| awaited.has_arrived(received)), [false, true]);
        awaited.ask(ask(100, 1));
        assert_eq!([8000, 8001].map(|received| awaited.has_arrived(received)), [false, true]);
    }

    #[test]
    fn the_server_has_a_request_once_its_last_byte_has_come() {
        let mut requests = Requests::default();
        requests.ask(ask(100, 5000));
        requests.ask(ask(50, 3000));
        assert_eq!(requests.take_asked(99), None);
        assert_eq!(requests.take_asked(149), Some(ask(100, 5000)));
        assert_eq!(requests.take_asked(149), None);
        assert_eq!(requests.take_asked(150), Some(ask(50, 3000)));
    }
}
