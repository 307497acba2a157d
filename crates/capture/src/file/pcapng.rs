//! pcapng: blocks in sections, each section with its own byte order and its own interfaces.
//!
//! Blocks of packets, of interfaces and of their statistics are read. All others (names, comments, secrets, custom
//! blocks) are skipped without being held in memory.

use std::io::Read;

use super::options::{BlockOptions, Clock};
use super::{Current, FileError, Interface, MOST_INTERFACES, MOST_PACKET_BYTES, Order, Window, filled, whole};

/// The type of a section header block, the same in both byte orders.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

/// Type and length before a block's body, and the length again after it.
const HEAD_BYTES: usize = 8;
const FRAME_BYTES: usize = 12;

/// The largest block that is held in memory: a packet with its options.
const MOST_BLOCK_BYTES: u32 = MOST_PACKET_BYTES + 256 * 1024;

/// The state of the current section.
#[derive(Debug, Default)]
pub(super) struct Pcapng {
    order: Order,
    /// The index, among the file's interfaces, of the first one of this section.
    first_interface: usize,
    /// Number of sections so far.
    sections: u32,
    clocks: Vec<Clock>,
}

impl Pcapng {
    pub(super) fn next(
        &mut self,
        window: &mut Window<impl Read>,
        interfaces: &mut Vec<Interface>,
    ) -> Result<Option<Current>, FileError> {
        loop {
            if filled(window, HEAD_BYTES)? == 0 {
                return Ok(None);
            }
            whole(window, HEAD_BYTES, "a block's header")?;
            if window.ahead().starts_with(&SECTION) {
                self.section(window, interfaces)?;
                continue;
            }
            let kind = self.order.u32(window.ahead(), 0);
            let block_bytes = checked_length(window, self.order)?;
            match kind {
                ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET | INTERFACE | STATISTICS => {
                    hold(window, block_bytes)?;
                }
                _ => {
                    skip(window, block_bytes)?;
                    continue;
                }
            }
            let block_bytes = block_bytes as usize;
            match kind {
                INTERFACE => self.interface(window, block_bytes, interfaces)?,
                STATISTICS => self.statistics(&window.ahead()[..block_bytes], interfaces),
                _ => return self.packet(kind, window, block_bytes, interfaces).map(Some),
            }
            window.pass(block_bytes);
        }
    }

    /// Begins a section: the byte order may change, and interfaces count from 0 again.
    fn section(&mut self, window: &mut Window<impl Read>, interfaces: &[Interface]) -> Result<(), FileError> {
        whole(window, 16, "a section's header")?;
        let header = window.ahead();
        self.order = match &header[8..12] {
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            other => {
                let what = format!("found the byte order mark {other:02x?}; allowed: 1a 2b 3c 4d, or its reverse");
                return Err(FileError::Malformed { at: window.passed() + 8, what });
            }
        };
        let (major, minor) = (self.order.u16(header, 12), self.order.u16(header, 14));
        if major != 1 {
            let what = format!("found version {major}.{minor} of pcapng; allowed: 1.x");
            return Err(FileError::Malformed { at: window.passed() + 12, what });
        }
        self.first_interface = interfaces.len();
        self.sections = self.sections.saturating_add(1);
        self.clocks.clear();
        let block_bytes = checked_length(window, self.order)?;
        skip(window, block_bytes)
    }

    fn interface(
        &mut self,
        window: &Window<impl Read>,
        block_bytes: usize,
        interfaces: &mut Vec<Interface>,
    ) -> Result<(), FileError> {
        let block = &window.ahead()[..block_bytes];
        if block_bytes < FRAME_BYTES + 8 {
            return Err(too_short(window, "an interface", block_bytes));
        }
        if interfaces.len() >= MOST_INTERFACES {
            let what = format!("found more interfaces than the allowed {MOST_INTERFACES}");
            return Err(FileError::Malformed { at: window.passed(), what });
        }
        let (mut name, mut resolution, mut offset_s) = (None, 6, 0);
        for (code, value) in BlockOptions::new(self.order, &block[16..block_bytes - 4]) {
            match (code, value) {
                (2, value) => name = Some(String::from_utf8_lossy(&value[..value.len().min(255)]).into_owned()),
                (9, &[exponent, ..]) => resolution = exponent,
                (14, value) if value.len() == 8 => offset_s = self.order.u64(value, 0) as i64,
                _ => {}
            }
        }
        self.clocks.push(Clock::new(resolution, offset_s));
        interfaces.push(Interface {
            link_type: self.order.u16(block, 8),
            name,
            snap_bytes: self.order.u32(block, 12),
            lost: None,
            section: self.sections,
        });
        Ok(())
    }

    /// What the capturing program counted: `isb_ifdrop` and `isb_osdrop`, since the capture began.
    fn statistics(&self, block: &[u8], interfaces: &mut [Interface]) {
        if block.len() < FRAME_BYTES + 12 {
            return;
        }
        let number = self.order.u32(block, 8) as usize;
        let Some(interface) = interfaces.get_mut(self.first_interface..).and_then(|here| here.get_mut(number)) else {
            return;
        };
        let lost = BlockOptions::new(self.order, &block[20..block.len() - 4])
            .filter(|(code, value)| matches!(code, 5 | 7) && value.len() == 8)
            .map(|(_, value)| self.order.u64(value, 0))
            .fold(None, |sum: Option<u64>, more| Some(sum.unwrap_or(0).saturating_add(more)));
        interface.lost = lost.or(interface.lost);
    }

    fn packet(
        &self,
        kind: u32,
        window: &Window<impl Read>,
        block_bytes: usize,
        interfaces: &[Interface],
    ) -> Result<Current, FileError> {
        let block = &window.ahead()[..block_bytes];
        let header_bytes = if kind == SIMPLE_PACKET { 4 } else { 20 };
        if block_bytes < FRAME_BYTES + header_bytes {
            return Err(too_short(window, "a packet", block_bytes));
        }
        let number = match kind {
            ENHANCED_PACKET => self.order.u32(block, 8) as usize,
            OBSOLETE_PACKET => usize::from(self.order.u16(block, 8)),
            _ => 0,
        };
        let interface = self.first_interface + number;
        let Some(clock) = self.clocks.get(number) else {
            let what = format!(
                "found a packet of interface {number}; allowed: one of the {} of its section",
                self.clocks.len()
            );
            return Err(FileError::Malformed { at: window.passed() + 8, what });
        };
        let room = (block_bytes - FRAME_BYTES - header_bytes) as u32;
        let (t_ns, captured, wire_bytes) = if kind == SIMPLE_PACKET {
            let wire_bytes = self.order.u32(block, 8);
            let snap_bytes = match interfaces[interface].snap_bytes {
                0 => u32::MAX,
                limit => limit,
            };
            (None, wire_bytes.min(snap_bytes).min(room), wire_bytes)
        } else {
            let units = u64::from(self.order.u32(block, 12)) << 32 | u64::from(self.order.u32(block, 16));
            (Some(clock.t_ns(units)), self.order.u32(block, 20), self.order.u32(block, 24))
        };
        if captured > room {
            let what = format!("found a packet of {captured} captured bytes in a block that has room for {room}");
            return Err(FileError::Malformed { at: window.passed() + 20, what });
        }
        let from = 8 + header_bytes;
        Ok(Current {
            t_ns,
            interface,
            wire_bytes: wire_bytes.max(captured),
            from,
            to: from + captured as usize,
            record_bytes: block_bytes,
        })
    }
}

/// The length of the block ahead.
fn checked_length(window: &Window<impl Read>, order: Order) -> Result<u32, FileError> {
    let length = order.u32(window.ahead(), 4);
    // Lengths are multiples of four; some programs forget the padding in the length.
    let padded = length.checked_next_multiple_of(4).filter(|padded| *padded as usize >= FRAME_BYTES);
    padded.ok_or_else(|| FileError::Malformed {
        at: window.passed() + 4,
        what: format!("found a block of {length} bytes; allowed: at least {FRAME_BYTES}"),
    })
}

/// Makes a whole block available.
fn hold(window: &mut Window<impl Read>, block_bytes: u32) -> Result<(), FileError> {
    if block_bytes > MOST_BLOCK_BYTES {
        let what = format!("found a block of {block_bytes} bytes; allowed: at most {MOST_BLOCK_BYTES}");
        return Err(FileError::Malformed { at: window.passed() + 4, what });
    }
    whole(window, block_bytes as usize, "a block")
}

fn skip(window: &mut Window<impl Read>, block_bytes: u32) -> Result<(), FileError> {
    let at = window.passed();
    let skipped = window.skip(u64::from(block_bytes)).map_err(|source| FileError::Read { at, source })?;
    if skipped < u64::from(block_bytes) {
        return Err(FileError::CutOff { at: at + skipped, within: "a block" });
    }
    Ok(())
}

fn too_short(window: &Window<impl Read>, what: &str, block_bytes: usize) -> FileError {
    let what = format!("found a block of {block_bytes} bytes, which is too short for {what}");
    FileError::Malformed { at: window.passed() + 4, what }
}
