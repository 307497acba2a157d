//! The Unix socket on which a server shows its state, and its reader.
//!
//! It is an abstract one (unix(7)), named after the port that the server listens on, so it leaves no file behind and
//! belongs to the server's network namespace. Every user of the machine can connect to it, so the server answers its own user
//! and root only, which the kernel proves (`SO_PEERCRED`).

use std::io::{self, Read};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};

use super::Status;
use crate::server::{Server, log};

/// A reader takes the state within this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// No state is longer.
const LONGEST: u64 = 64 * 1024;

fn name(port: u16) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("bufferscope-live/{port}"))
}

/// Opens the socket of a server on this port.
pub(in crate::server) fn open(port: u16) -> io::Result<StdListener> {
    let listener = StdListener::bind_addr(&name(port)?)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Shows the state to those who may see it.
pub(in crate::server) async fn show(server: Arc<Server>, listener: StdListener) {
    let listener = match UnixListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return log(format_args!("no status: {error}")),
    };
    loop {
        match listener.accept().await {
            // One after the other: each is served in a moment, and none can hold many descriptors.
            Ok((stream, _)) if may_see(&stream) => {
                let _ = tokio::time::timeout(PATIENCE, answer(&server, stream)).await;
            }
            Ok(_) => {}
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

fn may_see(stream: &UnixStream) -> bool {
    let own = nix::unistd::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}

async fn answer(server: &Server, mut stream: UnixStream) -> io::Result<()> {
    let text = serde_json::to_vec(&server.status())?;
    stream.write_all(&text).await?;
    stream.shutdown().await
}

/// Reads the state of the server of this machine that listens on a port.
pub fn read(port: u16) -> Result<Status, String> {
    let connected = name(port).and_then(|name| StdStream::connect_addr(&name));
    let stream = connected.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            format!("no server on this machine, in this network namespace, listens on port {port}")
        }
        _ => format!("the server on port {port} cannot be asked: {error}"),
    })?;
    let mut text = Vec::new();
    let received = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.take(LONGEST).read_to_end(&mut text));
    received.map_err(|error| format!("the server on port {port} does not answer: {error}"))?;
    if text.is_empty() {
        return Err(format!("the server on port {port} belongs to another user: ask as that user or as root"));
    }
    serde_json::from_slice(&text).map_err(|error| format!("the server on port {port} is of another version: {error}"))
}
