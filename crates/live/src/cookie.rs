//! Cookies: a server answers probes only from an address that has proved to receive what is sent to it.
//!
//! A cookie is a MAC of the address, the session and the time, so a server remembers none. It is valid for the period of ten
//! seconds in which it was made and the next.

use std::net::{IpAddr, SocketAddr};

use ring::hmac;
use ring::rand::SystemRandom;

use crate::time::SECOND;
use crate::wire::SessionId;
use crate::wire::probe::Cookie;
use crate::wire::token::are_equal;

const PERIOD_NS: u64 = 10 * SECOND;

/// Makes and checks cookies with a key that was drawn when the server started.
#[derive(Debug)]
pub struct Cookies {
    key: hmac::Key,
}

impl Cookies {
    /// A new key.
    pub fn new() -> Self {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Self { key: key.expect("the system has random numbers") }
    }

    /// The cookie of an address and a session at a time of the monotonic clock.
    pub fn cookie(&self, address: SocketAddr, session: SessionId, now_ns: u64) -> Cookie {
        self.of_period(address, session, now_ns / PERIOD_NS)
    }

    /// Whether a cookie was made for this address and session, in this period or the one before.
    pub fn is_valid(&self, cookie: &Cookie, address: SocketAddr, session: SessionId, now_ns: u64) -> bool {
        let period = now_ns / PERIOD_NS;
        [Some(period), period.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|period| are_equal(cookie, &self.of_period(address, session, period)))
    }

    fn of_period(&self, address: SocketAddr, session: SessionId, period: u64) -> Cookie {
        let ip = match address.ip() {
            IpAddr::V4(v4) => v4.to_ipv6_mapped(),
            IpAddr::V6(v6) => v6,
        };
        let mut text = Vec::with_capacity(34);
        text.extend(ip.octets());
        text.extend(address.port().to_be_bytes());
        text.extend(session.0.to_be_bytes());
        text.extend(period.to_be_bytes());
        let mac = hmac::sign(&self.key, &text);
        mac.as_ref()[..size_of::<Cookie>()].try_into().expect("SHA-256 is longer")
    }
}

impl Default for Cookies {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_valid_for_its_address_its_session_and_a_while() {
        let cookies = Cookies::new();
        let address: SocketAddr = "192.0.2.1:5000".parse().unwrap();
        let cookie = cookies.cookie(address, SessionId(1), 25 * SECOND);
        let is_valid = |address: &str, session, second| {
            cookies.is_valid(&cookie, address.parse().unwrap(), SessionId(session), second * SECOND)
        };
        assert!(is_valid("192.0.2.1:5000", 1, 25) && is_valid("192.0.2.1:5000", 1, 39));
        assert!(!is_valid("192.0.2.1:5000", 1, 40), "too old");
        assert!(!is_valid("192.0.2.1:5000", 1, 19), "from the future");
        assert!(!is_valid("192.0.2.2:5000", 1, 25) && !is_valid("192.0.2.1:5001", 1, 25));
        assert!(!is_valid("192.0.2.1:5000", 2, 25));
        assert!(!Cookies::new().is_valid(&cookie, address, SessionId(1), 25 * SECOND), "another server's");
    }
}
