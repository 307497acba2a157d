//! The frames of one sender to one receiver: the window of a block acknowledgement.
//!
//! The driver has frames that no aggregate has taken yet, frames in aggregates that the hardware has, and frames that have
//! arrived while an earlier one is still missing. The receiver passes packets on in order, so the last kind stays here until
//! the earlier one has arrived or was given up.

use std::collections::VecDeque;

use super::airtime::Phy;
use crate::network::pool::PacketId;

/// Frames that a block acknowledgement covers (IEEE 802.11-2012, 9.21.7).
const MOST_FRAMES: usize = 64;

/// Which of a window's aggregates a frame is in. The hardware has at most two of them.
pub(super) type Tag = u8;

#[derive(Clone, Copy, Debug)]
struct Frame {
    packet: PacketId,
    ip_bytes: u32,
    /// Transmissions that failed.
    failures: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not in an aggregate, or no longer.
    Waiting,
    InAggregate(Tag),
    Received,
}

/// Frames under way from one sender to one receiver, in order.
#[derive(Debug, Default)]
pub(super) struct Window {
    frames: VecDeque<Frame>,
    waiting: usize,
    last_tag: Tag,
}

/// What an aggregate holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) tag: Tag,
    pub(super) frames: u32,
    pub(super) bytes: u64,
}

/// How much an aggregate may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) frames: u32,
    pub(super) bytes: u64,
}

impl Window {
    /// Does it have frames for an aggregate?
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Has it room for another frame?
    pub(super) fn has_room(&self) -> bool {
        self.frames.len() < MOST_FRAMES
    }

    /// Puts waiting frames into an aggregate, and then new ones, which `next` passes on with the size of their IP packet. A new one that does not fit waits
    /// for the next aggregate. There is at least one frame.
    pub(super) fn aggregate(
        &mut self,
        phy: Phy,
        most: Most,
        mut next: impl FnMut() -> Option<(PacketId, u32)>,
    ) -> Option<Contents> {
        let tag = self.last_tag ^ 1;
        let mut contents = Contents { tag, frames: 0, bytes: 0 };
        for frame in self.frames.iter_mut().filter(|frame| frame.state == State::Waiting) {
            if !contents.add(phy.frame_bytes(frame.ip_bytes), most) {
                break;
            }
            frame.state = State::InAggregate(tag);
            self.waiting -= 1;
        }
        while self.waiting == 0
            && self.has_room()
            && contents.frames < most.frames
            && let Some((packet, ip_bytes)) = next()
        {
            let fits = contents.add(phy.frame_bytes(ip_bytes), most);
            let state = if fits { State::InAggregate(tag) } else { State::Waiting };
            self.waiting += usize::from(!fits);
            self.frames.push_back(Frame { packet, ip_bytes, failures: 0, state });
        }
        if contents.frames == 0 {
            return None;
        }
        self.last_tag = tag;
        Some(contents)
    }

    /// The aggregate was sent; `is_received` says of each frame whether it has arrived.
    pub(super) fn sent(&mut self, tag: Tag, mut is_received: impl FnMut() -> bool) {
        for frame in self.frames.iter_mut().filter(|frame| frame.state == State::InAggregate(tag)) {
            if is_received() {
                frame.state = State::Received;
            } else {
                frame.failures += 1;
                frame.state = State::Waiting;
                self.waiting += 1;
            }
        }
    }

    /// Takes a frame out that has failed more often than allowed.
    pub(super) fn give_up(&mut self, retries: u32) -> Option<PacketId> {
        let is_hopeless = |frame: &Frame| frame.state == State::Waiting && frame.failures > retries;
        let place = self.frames.iter().position(is_hopeless)?;
        self.waiting -= 1;
        self.frames.remove(place).map(|frame| frame.packet)
    }

    /// Takes the next packet out that the receiver passes on.
    pub(super) fn deliver(&mut self) -> Option<PacketId> {
        let frame = self.frames.front().filter(|frame| frame.state == State::Received)?;
        let packet = frame.packet;
        self.frames.pop_front();
        Some(packet)
    }

    /// Its packets, in order.
    pub(super) fn packets(&self) -> impl Iterator<Item = PacketId> {
        self.frames.iter().map(|frame| frame.packet)
    }
}

impl Contents {
    /// Adds a frame if it fits. The first always does.
    fn add(&mut self, bytes: u32, most: Most) -> bool {
        let fits = self.frames == 0 || self.frames < most.frames && self.bytes + u64::from(bytes) <= most.bytes;
        if fits {
            self.frames += 1;
            self.bytes += u64::from(bytes);
        }
        fits
    }
}
