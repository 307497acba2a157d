//! The settings that are chosen anew for each connection of a host: its port, and whether it requests ECN.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use bufferscope_scenario::LAST_SERVER_PORT;

use crate::network::Network;

/// Ports of clients. They are chosen here instead of by the kernel, so that a seed reproduces them.
const FIRST_PORT: u16 = LAST_SERVER_PORT + 1;
const LAST_PORT: u16 = 59_999;

/// One host.
#[derive(Debug)]
pub(super) struct Host {
    /// `net.ipv4.tcp_ecn` of its namespace.
    ecn: File,
    asks_for_ecn: Option<bool>,
    next_port: u16,
}

impl Host {
    /// The host of a node.
    pub(super) fn open(network: &Network, node: usize) -> io::Result<Self> {
        network.namespaces[node].enter()?;
        let ecn = OpenOptions::new().write(true).open("/proc/sys/net/ipv4/tcp_ecn")?;
        Ok(Self { ecn, asks_for_ecn: None, next_port: FIRST_PORT })
    }

    /// The port for the next connection.
    pub(super) fn port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = if port == LAST_PORT { FIRST_PORT } else { port + 1 };
        port
    }

    /// Whether connections opened from now on request ECN. Linux has no socket option for this, only a setting of the
    /// namespace, which it reads when it creates the SYN: 1 requests and accepts ECN, 2 only accepts it.
    pub(super) fn ask_for_ecn(&mut self, asks: bool) -> io::Result<()> {
        if self.asks_for_ecn != Some(asks) {
            self.ecn.write_all_at(if asks { b"1" } else { b"2" }, 0)?;
            self.asks_for_ecn = Some(asks);
        }
        Ok(())
    }
}
