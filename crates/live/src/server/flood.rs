//! The server's end of a flood: it counts the packets of its client, or sends its own.
//!
//! It sends only to the address from which a packet with a fresh cookie comes, while such packets keep coming and the session's
//! control connection lives, within the session's bytes, the server's pace and the rate that it accepts, and for five seconds at
//! most. Each session has one flood in each direction.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bufferscope_verdict::input::Direction;

use super::log;
use super::session::Session;
use crate::flood::{IP_BYTES, LONGEST_NS, Ramp};
use crate::load::{LONGEST_SLEEP, pool};
use crate::time::{SECOND, monotonic_ns};
use crate::udp::{Arrival, ProbeSocket};
use crate::wire::probe::{FLOOD_BYTES, HEADER_BYTES, PACKET_BYTES, Packet};

/// A client must begin within this time, beside that of the flood.
const BEGIN_NS: u64 = 3 * SECOND;
/// A client that has not been heard for this long is sent nothing more.
const SILENCE_NS: u64 = SECOND;
/// Time between two looks at what is due.
const TICK: Duration = Duration::from_millis(1);

/// A flood that a session may have now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flood {
    direction: Direction,
    peak_bps: u64,
    accepted_ns: u64,
    /// Where the server sends it, once it has begun.
    to: Option<SocketAddr>,
    /// When the client has asked for it last.
    heard_ns: u64,
}

/// The floods of a session.
#[derive(Debug, Default)]
pub(super) struct Floods {
    now: Option<Flood>,
    /// Whether there was one, up and down.
    had: [bool; 2],
}

impl Floods {
    /// Accepts one; the error says why not.
    pub(super) fn accept(&mut self, direction: Direction, bps: u64, most_bps: Option<u64>) -> Result<(), String> {
        let Some(most_bps) = most_bps else {
            return Err("the server does not accept floods (serve --accept-flood)".to_owned());
        };
        if bps > most_bps {
            return Err(format!("the server accepts floods of at most {} Mbit/s", most_bps as f64 / 1e6));
        }
        let had = &mut self.had[usize::from(direction == Direction::Down)];
        if std::mem::replace(had, true) {
            return Err("the test has had its flood in this direction".to_owned());
        }
        let now_ns = monotonic_ns();
        self.now = Some(Flood { direction, peak_bps: bps, accepted_ns: now_ns, to: None, heard_ns: now_ns });
        Ok(())
    }

    /// The one of a direction, if it may still go on.
    fn running(&mut self, direction: Direction, now_ns: u64) -> Option<&mut Flood> {
        let is_running = |flood: &&mut Flood| {
            flood.direction == direction && now_ns.saturating_sub(flood.accepted_ns) <= LONGEST_NS + BEGIN_NS
        };
        self.now.as_mut().filter(is_running)
    }
}

/// A client's packet with a valid cookie: a part of its flood, or its wish to get the server's.
pub(super) fn on_packet(session: &Arc<Session>, arrival: &Arrival, socket: &Arc<ProbeSocket>, now_ns: u64) {
    let mut state = session.state();
    if arrival.bytes > PACKET_BYTES {
        if state.floods.running(Direction::Up, now_ns).is_some() {
            state.up.has_received((arrival.bytes + HEADER_BYTES) as u64);
        }
        return;
    }
    let Some(flood) = state.floods.running(Direction::Down, now_ns) else { return };
    match flood.to {
        Some(to) if to == arrival.from => flood.heard_ns = now_ns,
        Some(_) => {}
        None => {
            (flood.to, flood.heard_ns) = (Some(arrival.from), now_ns);
            let peak_bps = flood.peak_bps;
            drop(state);
            let (session, socket, to) = (Arc::clone(session), Arc::clone(socket), arrival.from);
            let sends = move || send(&session, &socket, to, peak_bps);
            if let Err(error) = std::thread::Builder::new().stack_size(256 * 1024).spawn(sends) {
                log(format_args!("no thread for a flood: {error}"));
            }
        }
    }
}

/// Sends the flood.
fn send(session: &Session, socket: &ProbeSocket, to: SocketAddr, peak_bps: u64) {
    let begun_ns = monotonic_ns();
    let load = Arc::clone(&session.state().down);
    let mut ramp = Ramp::to(peak_bps);
    let mut seq = 0;
    let mut offset = 0;
    loop {
        let now_ns = monotonic_ns();
        let elapsed_ns = now_ns - begun_ns;
        let is_wanted = {
            let mut state = session.state();
            state.floods.running(Direction::Down, now_ns).is_some_and(|flood| now_ns - flood.heard_ns < SILENCE_NS)
        };
        if !is_wanted || elapsed_ns >= LONGEST_NS || session.has_ended() || load.stops() {
            return;
        }
        for _ in 0..ramp.due(elapsed_ns) {
            if let Some(wait) = load.pace.as_ref().and_then(|pace| pace.wait()) {
                std::thread::sleep(wait.min(LONGEST_SLEEP));
                break;
            }
            let padding = &pool()[offset..offset + FLOOD_BYTES - PACKET_BYTES];
            offset = (offset + FLOOD_BYTES) % (pool().len() - FLOOD_BYTES);
            // One that cannot be sent is a lost one.
            let _ = socket.send_flood(&Packet::flood(session.id, seq, [0; 16]), padding, to);
            seq += 1;
            ramp.has_sent();
            load.has_sent(IP_BYTES);
        }
        std::thread::sleep(TICK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MS;

    #[test]
    fn floods_are_accepted_once_for_each_direction_within_the_limit_and_for_a_time() {
        let mut floods = Floods::default();
        assert!(floods.accept(Direction::Up, 1, None).unwrap_err().contains("--accept-flood"));
        assert!(floods.accept(Direction::Up, 10_000_001, Some(10_000_000)).unwrap_err().contains("at most 10 Mbit/s"));
        floods.accept(Direction::Up, 10_000_000, Some(10_000_000)).unwrap();
        let accepted_ns = floods.now.unwrap().accepted_ns;
        assert!(floods.running(Direction::Up, accepted_ns).is_some());
        assert!(floods.running(Direction::Down, accepted_ns).is_none());
        assert!(floods.running(Direction::Up, accepted_ns + LONGEST_NS + BEGIN_NS + MS).is_none());
        assert!(floods.accept(Direction::Up, 1, Some(10_000_000)).unwrap_err().contains("has had"));
        floods.accept(Direction::Down, 1, Some(10_000_000)).unwrap();
    }
}
