//! The frames of one sender to one receiver: the window of a block acknowledgement.
//!
//! The driver has frames that no aggregate has taken yet, frames in aggregates that the hardware has, and frames that
//! have arrived while an earlier one is still missing. The receiver passes packets on in order, so the last kind
//! stays here until the earlier one has arrived or was given up.

use std::collections::VecDeque;

use super::airtime::Phy;
use crate::network::pool::PacketId;

/// Frames that a block acknowledgement covers (IEEE 802.11-2012, 9.21.7).
const MOST_FRAMES: usize = 64;

/// Identifies the aggregate that a frame is in. The hardware has at most two of a window's aggregates.
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

/// Frames in flight from one sender to one receiver, in order.
#[derive(Debug, Default)]
pub(super) struct Window {
    frames: VecDeque<Frame>,
    waiting: usize,
    last_tag: Tag,
}

/// The contents of an aggregate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    pub(super) tag: Tag,
    pub(super) frames: u32,
    pub(super) bytes: u64,
}

/// The limits of an aggregate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    pub(super) frames: u32,
    pub(super) bytes: u64,
}

impl Window {
    /// Whether it has frames for an aggregate.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether it has room for another frame.
    pub(super) fn has_room(&self) -> bool {
        self.frames.len() < MOST_FRAMES
    }

    /// Puts waiting frames into an aggregate, and then new ones, which `next` passes on with the size of their IP
    /// packet. A new one that does not fit waits for the next aggregate. There is at least one frame.
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
        let index = self.frames.iter().position(is_hopeless)?;
        self.waiting -= 1;
        self.frames.remove(index).map(|frame| frame.packet)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::packet::{Body, Echo, EchoKind, Header, Load};
    use crate::network::pool::Pool;
    use crate::network::traffic_class::{Ecn, TrafficClass};

    const MOST: Most = Most { frames: 4, bytes: 65_535 };

    /// Packets, oldest first.
    fn packets(count: usize) -> Vec<PacketId> {
        let header = Header {
            at_ns: 0,
            ip_bytes: 1500,
            frame_bytes: 1514,
            flow: 0,
            hash: 0,
            port: 0,
            source: 0,
            destination: 0,
            class: TrafficClass::new(0, Ecn::NotEct),
            load: Load::of(1),
        };
        let mut pool = Pool::new();
        (0..count).map(|_| pool.insert(header, Body::Echo(Echo { ping: 0, seq: 0, kind: EchoKind::Request }))).collect()
    }

    fn aggregate(window: &mut Window, most: Most, new: &mut impl Iterator<Item = PacketId>) -> Option<Contents> {
        window.aggregate(Phy::at(144_400_000), most, || new.next().map(|packet| (packet, 1500)))
    }

    /// The frames of an aggregate are sent; these arrive.
    fn send(window: &mut Window, tag: Tag, arrive: &[bool]) {
        let mut each = arrive.iter();
        window.sent(tag, || *each.next().expect("as many frames as the aggregate has"));
        assert_eq!(each.next(), None);
    }

    #[test]
    fn lost_frames_go_into_the_next_aggregate_and_packets_leave_in_order() {
        let all = packets(10);
        let (mut window, mut new) = (Window::default(), all.iter().copied());
        let first = aggregate(&mut window, MOST, &mut new).unwrap();
        let second = aggregate(&mut window, MOST, &mut new).unwrap();
        assert_eq!((first.frames, first.bytes, second.frames), (4, 4 * 1544, 4));
        assert_ne!(first.tag, second.tag, "the hardware has both");
        send(&mut window, first.tag, &[true, false, true, true]);
        assert_eq!([window.deliver(), window.deliver()], [Some(all[0]), None], "the second is missing");
        // The lost frame, and the two that are left.
        let third = aggregate(&mut window, MOST, &mut new).unwrap();
        assert_eq!(third.frames, 3);
        send(&mut window, second.tag, &[true; 4]);
        assert_eq!(window.deliver(), None, "these are later ones");
        send(&mut window, third.tag, &[true; 3]);
        let left: Vec<PacketId> = std::iter::from_fn(|| window.deliver()).collect();
        assert_eq!(left, all[1..]);
    }

    #[test]
    fn a_frame_that_does_not_fit_waits_for_the_next_aggregate() {
        let all = packets(3);
        let (mut window, mut new) = (Window::default(), all.iter().copied());
        let most = Most { frames: 64, bytes: 3600 };
        assert_eq!(aggregate(&mut window, most, &mut new).unwrap().frames, 2);
        assert!(window.has_waiting() && new.next().is_none(), "the third was taken");
        assert_eq!(aggregate(&mut window, most, &mut new).unwrap().frames, 1);
        assert_eq!(aggregate(&mut window, most, &mut new), None);
    }

    #[test]
    fn the_window_holds_64_frames_from_the_oldest_that_is_missing_on() {
        let all = packets(70);
        let (mut window, mut new) = (Window::default(), all.iter().copied());
        let most = Most { frames: 64, bytes: u64::MAX };
        let first = aggregate(&mut window, most, &mut new).unwrap();
        assert!(first.frames == 64 && !window.has_room());
        let arrive: Vec<bool> = (0..64).map(|frame| frame != 0).collect();
        send(&mut window, first.tag, &arrive);
        assert!(window.deliver().is_none() && !window.has_room(), "63 wait behind the first");
        let again = aggregate(&mut window, most, &mut new).unwrap();
        assert_eq!(again.frames, 1);
        send(&mut window, again.tag, &[true]);
        assert_eq!(std::iter::from_fn(|| window.deliver()).count(), 64);
    }

    #[test]
    fn a_frame_is_given_up_after_its_retries_and_no_longer_holds_up_the_others() {
        let all = packets(2);
        let (mut window, mut new) = (Window::default(), all.iter().copied());
        let first = aggregate(&mut window, MOST, &mut new).unwrap();
        send(&mut window, first.tag, &[false, true]);
        assert_eq!(window.give_up(1), None, "one retry is allowed");
        let second = aggregate(&mut window, MOST, &mut new).unwrap();
        send(&mut window, second.tag, &[false]);
        assert_eq!([window.give_up(1), window.give_up(1)], [Some(all[0]), None]);
        assert_eq!([window.deliver(), window.deliver()], [Some(all[1]), None]);
    }
}
