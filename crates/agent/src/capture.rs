//! Captures the packets at both ends of every link, as `tcpdump` on the nodes would.

use std::io::{self, Write};
use std::os::fd::OwnedFd;

use bufferscope_endpoint::clock::RunClock;
use bufferscope_endpoint::receive::receive_beginning;
use bufferscope_plan::{hardware_address, link_devices};
use bufferscope_records::packets::{self, SeenPacket};
use bufferscope_scenario::Scenario;
use nix::net::if_::if_nametoindex;
use serde::Serialize;

use crate::kernel::packet_socket::{all_packets, packets_missed};
use crate::network::Network;
use crate::output::Output;
use crate::warnings::Warnings;

/// Time between two reads of the captured packets.
pub(crate) const INTERVAL_NS: u64 = 5_000_000;
/// Bytes stored of each packet: all headers of Ethernet, IPv4 without options, and TCP with all options.
const SNAP_BYTES: usize = 96;
/// Buffer of a device's socket. It holds the packets of 10 Gbit/s between two reads.
const SOCKET_BYTES: u32 = 16 << 20;
/// Packets are passed on in chunks of this size.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum number of bytes kept if packets are only delivered at the end. A guest has to hold them in memory.
const MOST_KEPT_BYTES: usize = 192 << 20;

/// What was captured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CaptureReport {
    /// Number of packets, counted at each end of each link.
    pub packets: u64,
    /// Number of packets that are missing because there was no room for them.
    pub missed: u64,
    /// Maximum number of bytes stored of each packet.
    pub snap_bytes: usize,
}

/// A capture under way.
#[derive(Debug)]
pub(crate) struct Capture {
    taps: Vec<Tap>,
    /// Packets that were read. Others that were captured before them may still be unread.
    taken: Vec<Taken>,
    piece: Vec<u8>,
    room_bytes: usize,
    packets: u64,
    missed: u64,
}

/// The packets of one device.
#[derive(Debug)]
struct Tap {
    socket: OwnedFd,
    hardware: [u8; 6],
    /// The interfaces of the packets that leave the device, and of those that arrive.
    interfaces: [u32; 2],
}

/// A packet that was read.
#[derive(Debug)]
struct Taken {
    t_ns: u64,
    interface: u32,
    length: u32,
    data: [u8; SNAP_BYTES],
}

impl Capture {
    /// Opens a socket for each end of each link.
    pub(crate) fn open(network: &Network, scenario: &Scenario, is_kept: bool) -> io::Result<Self> {
        let mut taps = Vec::with_capacity(2 * scenario.links.len());
        for (port, device) in (0_u32..).zip(link_devices(scenario)) {
            network.namespaces[device.namespace].enter()?;
            let socket = all_packets(if_nametoindex(device.name.as_str())?, SOCKET_BYTES)?;
            let hardware = hardware_address(port as usize / 2, port as usize % 2);
            // What arrives here has left through the port at the link's other end.
            taps.push(Tap { socket, hardware, interfaces: [2 * port, 2 * (port ^ 1) + 1] });
        }
        let room_bytes = if is_kept { MOST_KEPT_BYTES } else { usize::MAX };
        let piece = Vec::with_capacity(PIECE_BYTES);
        Ok(Self { taps, taken: Vec::new(), piece, room_bytes, packets: 0, missed: 0 })
    }

    /// Reads the packets that were captured since the last call, and passes them on in the order of their times.
    pub(crate) fn take<W: Write + Send + 'static>(&mut self, clock: RunClock, output: &Output<W>) -> io::Result<()> {
        let now_ns = clock.now_ns();
        self.receive(clock)?;
        // While the packets of one device are read, other devices capture more.
        self.pass_on(now_ns, output);
        Ok(())
    }

    fn receive(&mut self, clock: RunClock) -> io::Result<()> {
        let start_ns = clock.start_realtime_ns();
        for tap in &self.taps {
            let mut data = [0; SNAP_BYTES];
            while let Some(arrival) = receive_beginning(&tap.socket, &mut data)? {
                let seen_ns = arrival.realtime_ns.and_then(|stamp_ns| stamp_ns.checked_sub(start_ns));
                // What was captured before the run began does not belong to it.
                let Some(t_ns) = seen_ns else { continue };
                let interface = tap.interfaces[usize::from(data[6..12] != tap.hardware)];
                self.taken.push(Taken { t_ns, interface, length: arrival.bytes as u32, data });
            }
        }
        self.taken.sort_by_key(|packet| packet.t_ns);
        Ok(())
    }

    /// Passes on the packets before a time.
    fn pass_on<W: Write + Send + 'static>(&mut self, before_ns: u64, output: &Output<W>) {
        let count = self.taken.partition_point(|packet| packet.t_ns < before_ns);
        for Taken { t_ns, interface, length, data } in self.taken.drain(..count) {
            let data = &data[..SNAP_BYTES.min(length as usize)];
            if self.room_bytes < data.len() {
                self.missed += 1;
                continue;
            }
            let before = self.piece.len();
            packets::push(&mut self.piece, &SeenPacket { t_ns, interface, length, data });
            self.room_bytes = self.room_bytes.saturating_sub(self.piece.len() - before);
            self.packets += 1;
            if self.piece.len() + 2 * SNAP_BYTES > PIECE_BYTES {
                output.packets(std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES)));
            }
        }
    }

    /// Reads the last packets.
    pub(crate) fn finish<W: Write + Send + 'static>(
        mut self,
        clock: RunClock,
        output: &Output<W>,
        warnings: &mut Warnings,
    ) -> io::Result<CaptureReport> {
        self.receive(clock)?;
        self.pass_on(u64::MAX, output);
        output.packets(self.piece);
        for tap in &self.taps {
            self.missed += u64::from(packets_missed(&tap.socket)?);
        }
        let Self { packets, missed, .. } = self;
        if missed > 0 {
            warnings.add(format!(
                "the capture lacks {missed} of {} packets: the kernel's buffer was full",
                packets + missed
            ));
        }
        Ok(CaptureReport { packets, missed, snap_bytes: SNAP_BYTES })
    }
}
