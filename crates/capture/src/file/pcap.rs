//! The classic format of libpcap: a header of 24 bytes, then packets with headers of 16.

use std::io::Read;

use super::{Current, FileError, Interface, MOST_PACKET_BYTES, Order, Window, filled, whole};

const HEADER_BYTES: usize = 24;

/// The layout that a magic number identifies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pcap {
    order: Order,
    ns_per_fraction: i64,
    record_header_bytes: usize,
}

impl Pcap {
    /// The layout of a magic number.
    pub(super) fn magic(magic: [u8; 4]) -> Option<Self> {
        [Order::Little, Order::Big].into_iter().find_map(|order| {
            let (ns_per_fraction, record_header_bytes) = match order.u32(&magic, 0) {
                0xa1b2_c3d4 => (1000, 16),
                0xa1b2_3c4d => (1, 16),
                // Alexey Kuznetsov's variant: eight more bytes for each packet (interface, protocol, packet type).
                0xa1b2_cd34 => (1000, 24),
                _ => return None,
            };
            Some(Self { order, ns_per_fraction, record_header_bytes })
        })
    }

    /// Reads the file's header; the magic number is known to be right.
    pub(super) fn open(window: &mut Window<impl Read>, interfaces: &mut Vec<Interface>) -> Result<Self, FileError> {
        whole(window, HEADER_BYTES, "the file's header")?;
        let header = window.ahead();
        let pcap = Self::magic([header[0], header[1], header[2], header[3]]).expect("the caller has checked it");
        let (major, minor) = (pcap.order.u16(header, 4), pcap.order.u16(header, 6));
        if major != 2 {
            let what = format!("found version {major}.{minor} of pcap; allowed: 2.x");
            return Err(FileError::Malformed { at: 4, what });
        }
        interfaces.push(Interface {
            // The upper bits are the length of a frame check sequence, which IP's own lengths leave out.
            link_type: pcap.order.u16(header, if pcap.order == Order::Little { 20 } else { 22 }),
            snap_bytes: pcap.order.u32(header, 16),
            ..Interface::default()
        });
        window.pass(HEADER_BYTES);
        Ok(pcap)
    }

    pub(super) fn next(&self, window: &mut Window<impl Read>) -> Result<Option<Current>, FileError> {
        let header_bytes = self.record_header_bytes;
        if filled(window, header_bytes)? == 0 {
            return Ok(None);
        }
        whole(window, header_bytes, "a packet's header")?;
        let header = window.ahead();
        let seconds = i64::from(self.order.u32(header, 0));
        let fraction = i64::from(self.order.u32(header, 4));
        let captured = self.order.u32(header, 8);
        let wire_bytes = self.order.u32(header, 12);
        if captured > MOST_PACKET_BYTES {
            let what = format!("found a packet of {captured} captured bytes; allowed: at most {MOST_PACKET_BYTES}");
            return Err(FileError::Malformed { at: window.passed() + 8, what });
        }
        let record_bytes = header_bytes + captured as usize;
        whole(window, record_bytes, "a packet")?;
        Ok(Some(Current {
            t_ns: Some(seconds * 1_000_000_000 + fraction * self.ns_per_fraction),
            interface: 0,
            wire_bytes: wire_bytes.max(captured),
            from: header_bytes,
            to: record_bytes,
            record_bytes,
        }))
    }
}
