//! The ports at which the servers of traffic listen.

use std::collections::{HashMap, HashSet};

use crate::error::{Problem, Problems};
use crate::model::{NodeIndex, Scenario, Traffic};
use crate::path::{join, of_traffic};

/// Servers without a port in the file listen on this port and those after it.
const FIRST_SERVER_PORT: u16 = 5001;
/// The last port that a server may have. Clients use those above.
pub const LAST_SERVER_PORT: u16 = 19_999;

/// The transport of an entry's data. TCP and UDP have separate ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// An end of an entry of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The node `from`.
    From,
    /// The node `to`.
    To,
}

impl Traffic {
    /// The transport; `None` for ICMP, which has no ports.
    pub fn transport(&self) -> Option<Transport> {
        self.kind.transport()
    }

    /// The node of its server, which waits for the other to begin.
    pub fn server(&self) -> NodeIndex {
        match self.kind.server_end() {
            End::From => self.from,
            End::To => self.to,
        }
    }

    /// The node of its client, which begins.
    pub fn client(&self) -> NodeIndex {
        match self.kind.server_end() {
            End::From => self.to,
            End::To => self.from,
        }
    }
}

impl Scenario {
    /// The port of each entry's server, by index; 0 for traffic without ports. It is the one in the file, or else 5001
    /// plus the entry's index, or the next that is free on that node.
    pub fn server_ports(&self) -> Vec<u16> {
        server_ports(&self.traffic)
    }
}

/// See [`Scenario::server_ports`].
pub(crate) fn server_ports(all: &[Traffic]) -> Vec<u16> {
    let socket = |traffic: &Traffic, port| (traffic.transport(), traffic.server(), port);
    let named = all.iter().filter_map(|traffic| Some(socket(traffic, traffic.port?)));
    let mut taken: HashSet<_> = named.collect();
    let range = u32::from(LAST_SERVER_PORT - FIRST_SERVER_PORT) + 1;
    let mut port = |(index, traffic): (u32, &Traffic)| match (traffic.transport(), traffic.port) {
        (None, _) => 0,
        (_, Some(port)) => port,
        (Some(_), None) => {
            let candidates = (index..index.saturating_add(range)).map(|n| FIRST_SERVER_PORT + (n % range) as u16);
            let is_free = |port: &u16| taken.insert(socket(traffic, *port));
            // The loader refuses traffic with so many servers that none is free.
            candidates.into_iter().find(is_free).unwrap_or(LAST_SERVER_PORT)
        }
    };
    (0..).zip(all).map(&mut port).collect()
}

/// Refuses two servers on the same port of a node.
pub(crate) fn check_ports(traffic: &[Traffic], problems: &mut Problems) {
    let mut servers = HashMap::new();
    for entry in traffic {
        let Some(port) = entry.port else { continue };
        if let Some(other) = servers.insert((entry.transport(), entry.server(), port), entry) {
            let found = format!("{port}, a port that the same node already uses for {}", of_traffic(other));
            let path = join(&of_traffic(entry), "port");
            problems.add(|| Problem::new(path, found, "a different port for each server of a node"));
        }
    }
}
