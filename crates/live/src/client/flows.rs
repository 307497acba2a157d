//! The client's end of the load connections.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use crate::load::{Marks, Shared};
use crate::wire::load::{ACCEPTED, Opening, Purpose};

/// A connection must be open, and accepted, within this time; under load, both take some round trips.
const PATIENCE: Duration = Duration::from_secs(20);

/// Opens a load connection on a thread of its own, which ends when `shared` asks for it.
pub(super) fn start(server: SocketAddr, opening: Opening, shared: &Arc<Shared>) -> io::Result<()> {
    let shared = Arc::clone(shared);
    let body = move || match open(server, &opening) {
        Ok(socket) => match opening.purpose {
            Purpose::Upload => crate::load::send(&socket, opening.index, opening.send_buffer, Marks::Makes, &shared),
            _ => crate::load::receive(&socket, Marks::Makes, &shared),
        },
        Err(error) => shared.fail(format!("a load connection could not be opened: {error}")),
    };
    std::thread::Builder::new().stack_size(256 * 1024).spawn(body).map(|_| ())
}

fn open(server: SocketAddr, opening: &Opening) -> io::Result<OwnedFd> {
    let mut stream = TcpStream::connect_timeout(&server, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(&opening.bytes())?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    if answer[0] != ACCEPTED {
        return Err(io::Error::other(match opening.congestion.as_str() {
            "" => "the server refused it".to_owned(),
            name => format!("the server refused it: perhaps it has no congestion control `{name}`"),
        }));
    }
    let socket = OwnedFd::from(stream);
    crate::load::prepare(&socket)?;
    if opening.purpose == Purpose::Upload && !opening.congestion.is_empty() {
        crate::load::set_congestion(&socket, &opening.congestion)
            .map_err(|error| io::Error::other(format!("congestion control `{}`: {error}", opening.congestion)))?;
    }
    Ok(socket)
}
