//! The machine's own network cards as senders: the ports with a driver's ring.
//!
//! A card does not report what is in its ring. But a packet that has left the queueing discipline and has not arrived
//! at the card at the other end is in the ring or being sent.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use bufferscope_endpoint::byte_limits::{Allowed, LimitFiles};
use bufferscope_endpoint::ring;
use bufferscope_endpoint::sysfs::number_in;
use bufferscope_plan::{Cards, Device, Plan, PortRing, ShapedPort};
use bufferscope_scenario::{ByteLimits, sizes};
use nix::net::if_::if_nametoindex;

use crate::kernel::namespace::Namespace;
use crate::kernel::packet_socket;

/// The directory that lists the machine's cards, in the namespace that they are in initially.
const DEVICES: &str = "/sys/class/net";
/// Descriptors that `virtio_net` keeps free. It stops the queue when fewer than 19 are left, because a packet may take
/// that many (`2 + MAX_SKB_FRAGS`); this constant is one less.
const SPARE_DESCRIPTORS: u64 = 18;
/// An Ethernet type for experiments (IEEE 802, local experimental 1), which no host accepts.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
/// Shorter frames are padded to this length.
const LEAST_FRAME_BYTES: usize = 60;
/// A full frame as the card counts it.
const FRAME_BYTES: u64 = sizes::FRAME_BYTES as u64;
const NS_PER_MS: u64 = 1_000_000;
/// How much longer than the time of a packet it may take until the card's driver knows that the packet was sent.
const GRACE: Duration = Duration::from_millis(2);

/// The cards of a plan, by the number of the pair and the end.
#[derive(Debug, Default)]
pub(crate) struct CardSet(Vec<[Card; 2]>);

/// One card. Its files are opened before the card changes its namespace, and stay readable.
#[derive(Debug)]
struct Card {
    /// The kernel's name for it.
    name: String,
    received_packets: File,
    received_bytes: File,
    /// `None` where the kernel has no BQL.
    limits: Option<LimitFiles>,
}

/// A plan's cards cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// The machine has none.
    #[error(
        "{0} has a ring, and the veth devices of network namespaces have none: use --engine guest, or leave the ring out"
    )]
    NoCard(String),
    /// The driver does not report to the kernel which packets it has sent.
    #[error(
        "`{port}` has bql = true, and virtio_net of this kernel ({kernel}) has no byte queue limits: \
         use a kernel from 6.11 on (--kernel 6.12), or bql = false"
    )]
    NoBql {
        /// The port.
        port: String,
        /// The kernel's release.
        kernel: String,
    },
    /// The system refused something.
    #[error("the network card of `{port}`: {source}")]
    Io {
        /// The port.
        port: String,
        /// What it said.
        source: io::Error,
    },
}

impl CardSet {
    /// Finds a plan's cards in the namespace that they are in initially, and sets the sizes of their rings. The calling
    /// thread remains in that namespace.
    pub(crate) fn open(plan: &Plan, home: &Namespace) -> Result<Self, CardError> {
        let cards = Self::find(plan)?;
        for (port, ring) in ringed(plan) {
            let failed = |source| CardError::Io { port: port.name.clone(), source };
            home.enter().map_err(failed)?;
            cards.set(ring).map_err(failed)?;
        }
        Ok(cards)
    }

    /// Finds a plan's cards.
    pub(crate) fn find(plan: &Plan) -> Result<Self, CardError> {
        let Some((first, _)) = ringed(plan).next() else { return Ok(Self::default()) };
        let failed = |source| CardError::Io { port: first.name.clone(), source };
        let missing = || CardError::NoCard(first.name.clone());
        let mut pairs = Vec::new();
        for cards in plan.cards() {
            let card = |end| Card::find(&Cards::factory_address(cards.number, end)).map_err(failed);
            pairs.push([card(0)?.ok_or_else(missing)?, card(1)?.ok_or_else(missing)?]);
        }
        Ok(Self(pairs))
    }

    /// Sets the size of a ring. If it is to have no byte queue limits, they are disabled by allowing as many bytes in
    /// the ring as it can hold. Without any limit, the kernel would take packets from the discipline when the ring has
    /// no room for them, and keep them in between.
    fn set(&self, ring: PortRing) -> io::Result<()> {
        let card = &self.0[ring.card.0][ring.card.1];
        ring::resize(&card.name, ring.size_packets)?;
        if card.limits.is_none() {
            return Ok(());
        }
        let room = (u64::from(ring.size_packets) - SPARE_DESCRIPTORS) * FRAME_BYTES;
        let limits = ring.bql.unwrap_or(ByteLimits { min_bytes: room, max_bytes: room, ..ByteLimits::DEFAULT });
        let set = |file: &str, value: u64| fs::write(limits_of(&card.name).join(file), value.to_string());
        set("limit_max", limits.max_bytes)?;
        set("limit_min", limits.min_bytes)?;
        set("hold_time", limits.hold_ns.div_ceil(NS_PER_MS))
    }

    /// The `ip` commands that make a pair the ends of a cable.
    pub(crate) fn commands(&self, cards: Cards, ends: &[Device; 2], path: impl Fn(usize) -> String) -> Vec<String> {
        let pair = self.0[cards.number].iter().zip(ends);
        let commands = |(card, end): (&Card, &Device)| {
            let Card { name, .. } = card;
            let Device { namespace, name: wanted, mac } = end;
            [
                format!("link set dev {name} address {mac}"),
                format!("link set dev {name} name {wanted} netns {}", path(*namespace)),
            ]
        };
        pair.flat_map(commands).collect()
    }

    /// Verifies that a port that should have byte queue limits has them: there must be a limit after a first frame. The
    /// calling thread is in the port's namespace.
    pub(crate) fn check_bql(
        &self,
        plan: &Plan,
        port: &ShapedPort,
        ring: PortRing,
        kernel: &str,
    ) -> Result<(), CardError> {
        let failed = |source| CardError::Io { port: port.name.clone(), source };
        let none = || CardError::NoBql { port: port.name.clone(), kernel: kernel.to_owned() };
        let (number, end) = ring.card;
        let cable = plan.cable_of(number).ok_or_else(none)?;
        let limits = self.0[number][end].limits.as_ref().ok_or_else(none)?;
        send_nothing(&port.device, &cable.ends[end], &cable.ends[1 - end]).map_err(failed)?;
        let wire_ns = cable.cards.and_then(|cards| cards.wire_ns[end]).unwrap_or(0);
        // The frame may have to wait for up to one tick before its own.
        sleep(Duration::from_nanos(2 * wire_ns) + GRACE);
        match limits.read().map_err(failed)?.limit_bytes {
            0 => Err(none()),
            _ => Ok(()),
        }
    }

    /// Makes a gauge that counts the packets that leave a port's ring.
    pub(crate) fn gauge(&self, ring: PortRing) -> io::Result<Gauge> {
        let (number, end) = ring.card;
        let [near, far] = [end, 1 - end].map(|end| &self.0[number][end]);
        let limits = near.limits.as_ref().filter(|_| ring.bql.is_some());
        Gauge::open(far, ring.frame_bytes, limits.map(LimitFiles::try_clone).transpose()?)
    }
}

impl Card {
    /// The card with that hardware address, if there is one.
    fn find(address: &str) -> io::Result<Option<Self>> {
        for device in fs::read_dir(DEVICES)? {
            let device = device?;
            let Ok(own) = fs::read_to_string(device.path().join("address")) else { continue };
            if own.trim_end() == address {
                return Self::open(device.file_name().to_string_lossy().into_owned()).map(Some);
            }
        }
        Ok(None)
    }

    fn open(name: String) -> io::Result<Self> {
        let count = |what: &str| File::open(Path::new(DEVICES).join(&name).join("statistics").join(what));
        Ok(Self {
            received_packets: count("rx_packets")?,
            received_bytes: count("rx_bytes")?,
            limits: LimitFiles::open(&limits_of(&name)).ok(),
            name,
        })
    }
}

/// The ports with a ring.
fn ringed(plan: &Plan) -> impl Iterator<Item = (&ShapedPort, PortRing)> {
    plan.ports.iter().filter_map(|port| Some((port, port.ring?)))
}

/// Counts the packets that arrive at the other end of a port's wire, and reads the byte queue limits of its ring.
#[derive(Debug)]
pub(crate) struct Gauge {
    packets: File,
    bytes: File,
    limits: Option<LimitFiles>,
    /// The counters when this gauge was made.
    before: [u64; 2],
    /// Bytes that the scenario counts for a packet in addition to those that the card counts.
    more_bytes: i64,
    pub(crate) frame_bytes: u64,
}

/// The packets that have arrived since a gauge was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) packets: u64,
    /// As the port counts them.
    pub(crate) bytes: u64,
}

impl Gauge {
    fn open(far: &Card, frame_bytes: u64, limits: Option<LimitFiles>) -> io::Result<Self> {
        let (packets, bytes) = (far.received_packets.try_clone()?, far.received_bytes.try_clone()?);
        let before = [number_in(&packets)?, number_in(&bytes)?];
        let more_bytes = frame_bytes as i64 - FRAME_BYTES as i64;
        Ok(Self { packets, bytes, limits, before, more_bytes, frame_bytes })
    }

    /// `None` if the ring has no byte queue limits.
    pub(crate) fn read_limits(&self) -> io::Result<Option<Allowed>> {
        self.limits.as_ref().map(LimitFiles::read).transpose()
    }

    pub(crate) fn read(&self) -> io::Result<Arrived> {
        let packets = number_in(&self.packets)?.saturating_sub(self.before[0]);
        let bytes = number_in(&self.bytes)?.saturating_sub(self.before[1]);
        let more = self.more_bytes.saturating_mul(i64::try_from(packets).unwrap_or(i64::MAX));
        Ok(Arrived { packets, bytes: bytes.saturating_add_signed(more) })
    }
}

fn limits_of(device: &str) -> PathBuf {
    Path::new(DEVICES).join(device).join("queues/tx-0/byte_queue_limits")
}

/// Sends a frame that its receiver drops.
fn send_nothing(device: &str, from: &Device, to: &Device) -> io::Result<()> {
    let mut frame = [mac(&to.mac)?, mac(&from.mac)?].concat();
    frame.extend(EXPERIMENTAL);
    frame.resize(LEAST_FRAME_BYTES, 0);
    packet_socket::send_past_queue(if_nametoindex(device)?, &frame)
}

fn mac(text: &str) -> io::Result<Vec<u8>> {
    let bytes: Result<Vec<u8>, _> = text.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
    bytes.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_addresses_of_the_plan() {
        assert_eq!(mac("02:00:00:00:01:0a").unwrap(), [2, 0, 0, 0, 1, 10]);
        assert!(mac("02:00:zz").is_err());
    }
}
