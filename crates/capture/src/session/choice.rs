//! The user's filter of packets.

use std::net::IpAddr;

use crate::decode::{Decoded, Transport};

/// Packets from or to any of these hosts, and from or to any of these ports. An empty list allows all.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Addresses.
    pub hosts: Vec<IpAddr>,
    /// Ports of TCP or UDP.
    pub ports: Vec<u16>,
}

impl Choice {
    /// Whether nothing is left out.
    #[inline]
    pub fn is_everything(&self) -> bool {
        self.hosts.is_empty() && self.ports.is_empty()
    }

    /// Whether a packet is wanted.
    pub fn takes(&self, packet: &Decoded) -> bool {
        let of_host = self.hosts.is_empty() || self.hosts.iter().any(|host| [packet.from, packet.to].contains(host));
        of_host && (self.ports.is_empty() || self.takes_ports(packet.transport))
    }

    fn takes_ports(&self, transport: Transport) -> bool {
        let ends = match transport {
            Transport::Tcp(tcp) => [tcp.from_port, tcp.to_port],
            Transport::Udp { from, to, .. } => [from, to],
            Transport::Echo(_) | Transport::Other => return false,
        };
        self.ports.iter().any(|port| ends.contains(port))
    }
}
