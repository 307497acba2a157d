//! How many links away a server is that answers no probes of ours: the smallest TTL with which a SYN reaches it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use bufferscope_endpoint::options::set_int;
use nix::libc;
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::ladder::LONGEST;

/// Time between two attempts, so that routers' limits for *time exceeded* are kept for the ladder.
const BETWEEN: Duration = Duration::from_millis(100);
/// A SYN that is not answered within this time has not arrived.
const PATIENCE: Duration = Duration::from_secs(1);

/// The number of links to a TCP port that accepts connections, or refuses them; `None`: it cannot be found that way.
pub(super) async fn to(server: SocketAddr) -> Option<u8> {
    let mut attempts = JoinSet::new();
    let mut found: Option<u8> = None;
    for ttl in 1..=LONGEST {
        attempts.spawn(async move { reaches(server, ttl).await.then_some(ttl) });
        tokio::time::sleep(BETWEEN).await;
        while let Some(done) = attempts.try_join_next() {
            found = found.into_iter().chain(done.ok().flatten()).min();
        }
        if found.is_some() {
            break;
        }
    }
    // Earlier attempts may still be under way.
    while let Some(done) = attempts.join_next().await {
        found = found.into_iter().chain(done.ok().flatten()).min();
    }
    found
}

/// Whether a SYN with this TTL is answered by the server.
async fn reaches(server: SocketAddr, ttl: u8) -> bool {
    match tokio::time::timeout(PATIENCE, connect(server, ttl)).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => error.kind() == io::ErrorKind::ConnectionRefused,
        Err(_) => false,
    }
}

async fn connect(server: SocketAddr, ttl: u8) -> io::Result<()> {
    let socket = if server.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    let (level, option) = match server {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_TTL),
        SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
    };
    set_int(&socket.as_fd().try_clone_to_owned()?, level, option, i32::from(ttl))?;
    let stream = socket.connect(server).await?;
    // The end of a connection must arrive, too.
    set_int(&stream.as_fd().try_clone_to_owned()?, level, option, 64)?;

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn this_machine_is_one_link_away() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        assert_eq!(to(server).await, Some(1));
        drop(listener);
        assert_eq!(to(server).await, Some(1), "a refusal is an answer, too");
    }
}
