//! A tap that writes what it sees.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};

use bufferscope_plan::{hardware_address, node_addresses};
use bufferscope_programs::scramble;
use bufferscope_scenario::sizes::DATAGRAM_HEADER_BYTES;
use bufferscope_scenario::{NodeIndex, PortIndex, Scenario};
use bufferscope_sim::tcp::window_scale;
use bufferscope_sim::{Contents, Hook, Sighting, Tap};

use crate::blocks::Blocks;
use crate::headers::{self, Beginning, Path, Transport};

/// Time to live of a packet when Linux sends it.
const TTL: u32 = 64;
/// Linux' `ip_local_port_range`: where a client's ports begin, and how many there are.
const EPHEMERAL: (u16, u16) = (32768, 28232);

/// An interface of the file: a hook of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The port.
    pub port: PortIndex,
    /// The hook.
    pub hook: Hook,
    /// Its name in the file.
    pub name: String,
    /// Its description, in a sentence.
    pub description: String,
}

/// What was written.
#[derive(Debug)]
pub struct Outcome<W> {
    /// The writer.
    pub out: W,
    /// Packets by interface.
    pub packets: Vec<u64>,
}

/// A capture that is being written. Its clones write to the same file.
#[derive(Debug)]
pub struct Capture<W>(Arc<Mutex<Option<Inner<W>>>>, Arc<Interfaces>);

/// The numbers of the interfaces, by port and hook.
#[derive(Debug)]
struct Interfaces(Vec<[Option<u32>; HOOKS]>);

const HOOKS: usize = Hook::Dropped as usize + 1;

#[derive(Debug)]
struct Inner<W> {
    blocks: Blocks<W>,
    network: Addresses,
    snaplen: u32,
    packets: Vec<u64>,
    /// The first error, after which nothing is written.
    failed: Option<io::Error>,
    frame: Vec<u8>,
    comment: String,
}

/// What packets of a scenario have in their headers.
#[derive(Debug)]
struct Addresses {
    nodes: Vec<Ipv4Addr>,
    window_scales: Vec<u8>,
    seed: u64,
    clients: HashMap<(u32, u32), u16>,
}

impl<W: Write> Capture<W> {
    /// A capture of a run of this scenario with this seed, with these interfaces. Stores at most `snaplen` bytes of
    /// each packet.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(
        scenario: &Scenario,
        seed: u64,
        interfaces: &[Interface],
        snaplen: u32,
        (application, comment): (&str, &str),
        out: W,
    ) -> io::Result<Self> {
        let mut blocks = Blocks::begin(out, application, comment)?;
        let mut numbers = vec![[None; HOOKS]; 2 * scenario.links.len()];
        for (number, interface) in (0..).zip(interfaces) {
            blocks.interface(&interface.name, &interface.description, snaplen)?;
            numbers[interface.port as usize][interface.hook as usize] = Some(number);
        }
        let inner = Inner {
            blocks,
            network: Addresses::of(scenario, seed),
            snaplen,
            packets: vec![0; interfaces.len()],
            failed: None,
            frame: Vec::with_capacity(128),
            comment: String::new(),
        };
        Ok(Self(Arc::new(Mutex::new(Some(inner))), Arc::new(Interfaces(numbers))))
    }

    /// Whether writing has failed. [`finish`](Self::finish) says why.
    pub fn has_failed(&self) -> bool {
        self.inner().as_ref().is_none_or(|inner| inner.failed.is_some())
    }

    /// Completes the file: the run ended at `end_ns`.
    ///
    /// # Errors
    /// The first that occurred while writing.
    ///
    /// # Panics
    /// If it was finished before.
    pub fn finish(self, end_ns: u64) -> io::Result<Outcome<W>> {
        let Inner { mut blocks, packets, failed, .. } = self.inner().take().expect("a capture is finished once");
        if let Some(error) = failed {
            return Err(error);
        }
        for (interface, packets) in (0..).zip(&packets) {
            blocks.statistics(interface, end_ns, *packets)?;
        }
        Ok(Outcome { out: blocks.finish()?, packets })
    }

    fn inner(&self) -> MutexGuard<'_, Option<Inner<W>>> {
        self.0.lock().expect("no panic while it is locked")
    }
}

impl<W> Clone for Capture<W> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0), Arc::clone(&self.1))
    }
}

impl<W: Write + Send + std::fmt::Debug> Tap for Capture<W> {
    fn wants(&self, port: PortIndex, hook: Hook) -> bool {
        self.1.0[port as usize][hook as usize].is_some()
    }

    fn see(&mut self, sighting: &Sighting) {
        let Some(interface) = self.1.0[sighting.port as usize][sighting.hook as usize] else { return };
        let mut guard = self.inner();
        let Some(inner) = guard.as_mut().filter(|inner| inner.failed.is_none()) else { return };
        if let Err(error) = inner.write(interface, sighting) {
            inner.failed = Some(error);
        }
    }
}

impl<W: Write> Inner<W> {
    fn write(&mut self, interface: u32, sighting: &Sighting) -> io::Result<()> {
        let path = self.network.path(sighting);
        let transport = self.network.transport(sighting);
        let length = headers::write(&path, &transport, sighting.is_corrupt, &mut self.frame);
        // What is stored of the payload.
        self.frame.resize(length.min(self.snaplen) as usize, 0);
        self.comment.clear();
        if let Some(reason) = sighting.reason {
            self.comment.push_str("dropped: ");
            self.comment.push_str(reason);
        }
        let comment = Some(self.comment.as_str()).filter(|comment| !comment.is_empty());
        self.packets[interface as usize] += 1;
        self.blocks.packet(interface, sighting.t_ns, &self.frame, length, comment)
    }
}

impl Addresses {
    fn of(scenario: &Scenario, seed: u64) -> Self {
        let scale = |node: &bufferscope_scenario::Node| {
            window_scale(node.tcp.rmem_default_bytes, node.tcp.rmem_max_bytes) as u8
        };
        Self {
            nodes: node_addresses(scenario),
            window_scales: scenario.nodes.iter().map(scale).collect(),
            seed,
            clients: HashMap::new(),
        }
    }

    fn path(&self, sighting: &Sighting) -> Path {
        let (link, side) = (sighting.port as usize / 2, sighting.port as usize % 2);
        Path {
            hardware: [hardware_address(link, side), hardware_address(link, 1 - side)],
            addresses: [sighting.source, sighting.destination].map(|node| self.nodes[usize::from(node)]),
            traffic_class: sighting.traffic_class,
            id: identification(&sighting.contents),
            ttl: TTL.saturating_sub(sighting.forwarded).max(1) as u8,
        }
    }

    fn transport(&mut self, sighting: &Sighting) -> Transport {
        let payload_bytes = sighting.ip_bytes.saturating_sub(DATAGRAM_HEADER_BYTES);
        match sighting.contents {
            Contents::Segment { connection, to_server, segment } => {
                let client = ephemeral(connection);
                let nodes = [sighting.source, sighting.destination];
                let begins = [to_server, !to_server].map(u8::from);
                Transport::Tcp {
                    ports: in_order([client, sighting.server_port], to_server),
                    segment,
                    begins: [0, 1].map(|end| self.beginning(connection, begins[end], nodes[end])),
                }
            }
            Contents::Datagram { traffic, stream, to_server, .. } => {
                let before = self.clients.len() as u64;
                let client = *self.clients.entry((traffic, stream)).or_insert_with(|| ephemeral(before));
                Transport::Udp { ports: in_order([client, sighting.server_port], to_server), payload_bytes }
            }
            Contents::Echo { traffic, seq, is_reply } => {
                // Linux' ping begins with 1.
                Transport::Echo { is_reply, id: traffic as u16 + 1, seq: (seq + 1) as u16, payload_bytes }
            }
        }
    }

    fn beginning(&self, connection: u64, way: u8, sender: NodeIndex) -> Beginning {
        let random = scramble(self.seed ^ scramble(connection << 1 | u64::from(way)));
        let window_scale = self.window_scales[usize::from(sender)];
        Beginning { seq: random as u32, clock: (random >> 32) as u32, window_scale }
    }
}

/// The ports of a packet: the client's and the server's, in the order of its direction.
fn in_order([client, server]: [u16; 2], to_server: bool) -> [u16; 2] {
    if to_server { [client, server] } else { [server, client] }
}

/// The port of the client with this number.
fn ephemeral(number: u64) -> u16 {
    EPHEMERAL.0 + (number % u64::from(EPHEMERAL.1)) as u16
}

/// What identifies a packet at every hook where it is seen. (A discipline may split a packet; each part has its own.)
fn identification(contents: &Contents) -> u16 {
    let number = match contents {
        Contents::Segment { connection, segment, .. } => {
            let sent = u64::from(segment.ts_val) << 32 ^ segment.ack;
            scramble(segment.seq ^ scramble(sent ^ scramble(*connection)))
        }
        Contents::Echo { seq, .. } | Contents::Datagram { seq, .. } => *seq,
    };
    number as u16
}
