//! What a server gives its clients, in all and each.

use std::net::IpAddr;
use std::time::Duration;

use crate::time::SECOND;
use crate::wire::control::SessionLimits;

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// What each session may use.
    pub session: SessionLimits,
    /// Tests at the same time.
    pub tests: usize,
    /// Clients that may wait.
    pub waiting: usize,
    /// Clients of one address at the same time, waiting ones included.
    pub per_address: usize,
    /// Bytes of load that an address may use in an hour, both directions together.
    pub bytes_per_hour: u64,
    /// Tests that an address may begin in an hour.
    pub tests_per_hour: u64,
    /// Tests of all addresses in an hour.
    pub all_tests_per_hour: u64,
    /// Control connections of one address in an hour; each costs a TLS handshake.
    pub connections_per_hour: u64,
    /// Connections that have not shown a secret yet.
    pub unknown: usize,
    /// Such connections of one address.
    pub unknown_per_address: usize,
    /// Monitors at the same time.
    pub monitors: usize,
    /// Monitors of one address at the same time.
    pub monitors_per_address: usize,
    /// Length of a monitor's session; its client may begin another one.
    pub monitor_session: Duration,
    /// The highest rate of a flood in either direction, in bit/s; `None`: floods are not accepted.
    pub flood_bps: Option<u64>,
    /// Control messages of a client per second, on average.
    pub messages_per_s: u64,
    /// A connection must say what it is, and show a secret, within this time.
    pub opening: Duration,
    /// A client that sends no message for this long is gone.
    pub silence: Duration,
    /// A test of another program, which says no end, ends so long after its last request.
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            session: SessionLimits { seconds: 180, flows: 32, bytes: 200_000_000_000, rate_bps: None },
            tests: 1,
            waiting: 256,
            per_address: 8,
            bytes_per_hour: 1_000_000_000_000,
            tests_per_hour: 60,
            all_tests_per_hour: 600,
            connections_per_hour: 1000,
            unknown: 512,
            unknown_per_address: 16,
            monitors: 64,
            monitors_per_address: 4,
            monitor_session: Duration::from_secs(3600),
            flood_bps: None,
            messages_per_s: 10,
            opening: Duration::from_secs(8),
            silence: Duration::from_secs(20),
            linger: Duration::from_secs(5),
        }
    }
}

/// Messages that may come at once.
const BURST_S: u64 = 4;

/// Counts the messages of a client.
#[derive(Debug)]
pub struct Messages {
    interval_ns: u64,
    /// When the messages so far would have come, had they come at the highest rate.
    due_ns: u64,
}

impl Messages {
    /// Allows so many messages per second.
    pub fn new(per_s: u64) -> Self {
        Self { interval_ns: SECOND / per_s.max(1), due_ns: 0 }
    }

    /// Whether one more message is allowed now.
    pub fn allows(&mut self, now_ns: u64) -> bool {
        self.due_ns = self.due_ns.max(now_ns) + self.interval_ns;
        self.due_ns <= now_ns + BURST_S * SECOND
    }
}

/// Whom limits apply to: an IPv4 address, or the IPv6 network of 64 bits that one user has at least.
pub fn user(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or_else(
            || {
                let [a, b, c, d, ..] = v6.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            },
            IpAddr::V4,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_may_come_in_a_burst_but_not_for_long() {
        let mut messages = Messages::new(10);
        let now_ns = 100 * SECOND;
        assert_eq!((0..100).filter(|_| messages.allows(now_ns)).count(), 40);
        let mut messages = Messages::new(10);
        assert!((0..1000).all(|n| messages.allows(now_ns + n * SECOND / 10)));
    }

    #[test]
    fn an_ipv6_user_has_a_whole_network() {
        let user = |text: &str| user(text.parse().unwrap()).to_string();
        assert_eq!(user("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(user("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(user("192.0.2.1"), "192.0.2.1");
    }
}
