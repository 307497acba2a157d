//! Messages to the service manager (sd_notify(3)): a datagram to the socket that `NOTIFY_SOCKET` names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Whether there is a service manager.
pub(super) fn has_manager() -> bool {
    std::env::var_os("NOTIFY_SOCKET").is_some()
}

/// Sends a message, if there is a service manager that wants it.
pub(super) fn notify(message: &str) {
    if let Some(socket) = std::env::var_os("NOTIFY_SOCKET")
        && let Err(error) = send(&socket, message)
    {
        super::log(format_args!("the service manager cannot be notified: {error}"));
    }
}

fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_at_a_socket_with_a_path_and_at_an_abstract_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("bufferscope-notify-{}", std::process::id());
        let abstract_name = SocketAddr::from_abstract_name(&name).unwrap();
        let sockets = [
            (path.clone().into_os_string(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{name}").into(), UnixDatagram::bind_addr(&abstract_name).unwrap()),
        ];
        for (address, socket) in sockets {
            send(&address, "READY=1").unwrap();
            let mut buffer = [0; 100];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1");
        }
    }
}
