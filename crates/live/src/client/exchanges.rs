//! Probes by new TCP connections: paths that treat UDP differently show.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::time::realtime_ns;
use crate::wire::load::{ACCEPTED, Opening};

/// Time between two connections' beginnings.
const INTERVAL: Duration = Duration::from_millis(250);
/// A connection that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// A thread looks at the request to stop at least this often.
const LOOK: Duration = Duration::from_millis(100);

/// A new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was begun.
    pub t_ns: u64,
    /// Time of its handshake; `None`: it failed, or took too long.
    pub connect_ns: Option<u64>,
    /// Time of the handshake of TLS, per round trip that it takes; `None`: it failed, or the connection has none.
    pub tls_ns: Option<u64>,
    /// Time from the first byte sent to the first byte received.
    pub exchange_ns: Option<u64>,
}

/// The connections so far, shared with their thread.
pub type Exchanges = Arc<Mutex<Vec<Exchange>>>;

/// Connects again and again until `stop` is set.
pub fn run(server: SocketAddr, opening: &Opening, stop: &AtomicBool, found: &Exchanges) {
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        let exchange = exchange(server, opening);
        found.lock().unwrap_or_else(PoisonError::into_inner).push(exchange);
        while begun.elapsed() < INTERVAL && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK.min(INTERVAL.saturating_sub(begun.elapsed())));
        }
    }
}

fn exchange(server: SocketAddr, opening: &Opening) -> Exchange {
    let mut found = Exchange { t_ns: realtime_ns(), connect_ns: None, tls_ns: None, exchange_ns: None };
    let begun = Instant::now();
    let Ok(mut stream) = TcpStream::connect_timeout(&server, PATIENCE) else { return found };
    found.connect_ns = Some(begun.elapsed().as_nanos() as u64);
    let begun = Instant::now();
    let mut answer = [0];
    let done = stream
        .set_nodelay(true)
        .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
        .and_then(|()| stream.write_all(&opening.bytes()))
        .and_then(|()| stream.read_exact(&mut answer));
    if done.is_ok() && answer[0] == ACCEPTED {
        found.exchange_ns = Some(begun.elapsed().as_nanos() as u64);
    }
    found
}
