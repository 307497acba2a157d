//! Statistics of queueing disciplines (`RTM_GETQDISC`).

use std::io;

use bufferscope_scenario::{Kind, Reason};

use crate::bytes::{read_u32, read_u64};
use crate::netlink::{Malformed, Netlink, attributes};

pub(crate) const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
/// Length of `struct tcmsg`.
pub(crate) const TCMSG_BYTES: usize = 20;
/// `TC_H_ROOT`, the parent of a device's own discipline.
const ROOT: u32 = u32::MAX;

pub(crate) const TCA_KIND: u16 = 1;
pub(crate) const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
pub(crate) const TCA_STATS_QUEUE: u16 = 3;
pub(crate) const TCA_STATS_APP: u16 = 4;

/// Packets dropped and marked since the start, by reason.
pub type ByReason = [Option<(Reason, u64)>; Kind::MOST_COUNTED];

/// One queueing discipline's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QdiscStats {
    /// Its device.
    pub interface: u32,
    /// Its handle on that device; 0 for one that the kernel chose itself.
    pub handle: u32,
    /// Packets in it now.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets dequeued since the start (the kernel counts them in 32 bits).
    pub sent_packets: u64,
    /// Bytes dequeued since the start.
    pub sent_bytes: u64,
    /// Dropped since the start, for any reason.
    pub drops: u64,
    /// Packets dropped and marked since the start, by the reasons that the discipline distinguishes. Empty if the
    /// discipline is not one for ports.
    pub by_reason: ByReason,
}

/// The statistics of one discipline in the socket's namespace, by its device and handle.
pub fn read_one(netlink: &mut Netlink, interface: u32, handle: u32) -> io::Result<QdiscStats> {
    let asked_for = |stats: &QdiscStats| stats.interface == interface && stats.handle == handle;
    let found = get(netlink, interface, handle, parse)?;
    found.filter(asked_for).ok_or_else(|| Malformed("an answer is not about the qdisc asked for").into())
}

/// What `read` makes of the kernel's message about one discipline; `None` without such a message.
pub(crate) fn get<T>(
    netlink: &mut Netlink,
    interface: u32,
    handle: u32,
    read: impl Fn(&[u8]) -> Result<T, Malformed>,
) -> io::Result<Option<T>> {
    let mut found = None;
    netlink.get(RTM_GETQDISC, &question(interface, handle, 0), |kind, payload| {
        if kind == RTM_NEWQDISC {
            found = Some(read(payload)?);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The statistics of a device's root discipline, inner disciplines included: their packets wait in the root discipline
/// too, and it counts their drops. (`mq` adds up the disciplines of all transmit queues when it is asked.) Reasons for
/// drops are left out.
///
/// Fails if the device has none, because it is down: the kernel then answers nothing.
pub fn read_root(netlink: &mut Netlink, interface: u32) -> io::Result<QdiscStats> {
    let mut found = None;
    netlink.get_if_any(RTM_GETQDISC, &question(interface, 0, ROOT), |kind, payload| {
        if kind == RTM_NEWQDISC {
            let Parts { stats, has_queue, .. } = Parts::of(payload)?;
            found = has_queue.then_some(stats);
        }
        Ok(())
    })?;
    let asked_for = |stats: &QdiscStats| stats.interface == interface;
    found
        .filter(asked_for)
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the device has no queueing discipline"))
}

/// `struct tcmsg`: family and padding, then the device, the handle, the parent, and a word that is 0 here.
pub(crate) fn question(interface: u32, handle: u32, parent: u32) -> [u8; TCMSG_BYTES] {
    let mut question = [0; TCMSG_BYTES];
    question[4..8].copy_from_slice(&interface.to_ne_bytes());
    question[8..12].copy_from_slice(&handle.to_ne_bytes());
    question[12..16].copy_from_slice(&parent.to_ne_bytes());
    question
}

/// Passes the statistics of every discipline in the socket's namespace to `each`.
pub fn read(netlink: &mut Netlink, mut each: impl FnMut(QdiscStats)) -> io::Result<()> {
    netlink.dump(RTM_GETQDISC, &[0; TCMSG_BYTES], |kind, payload| {
        if kind == RTM_NEWQDISC {
            each(parse(payload)?);
        }
        Ok(())
    })
}

/// The message of a discipline, or of one of its classes, with its own statistics still as bytes.
#[derive(Debug, Default)]
pub(crate) struct Parts<'a> {
    pub(crate) stats: QdiscStats,
    pub(crate) kind: &'a [u8],
    own: &'a [u8],
    /// Whether the message has the queue's length.
    pub(crate) has_queue: bool,
}

impl<'a> Parts<'a> {
    pub(crate) fn of(payload: &'a [u8]) -> Result<Self, Malformed> {
        let cut = Malformed("a qdisc's message is cut off");
        let mut parts = Parts::default();
        parts.stats.interface = read_u32(payload, 4).ok_or(cut)?;
        parts.stats.handle = read_u32(payload, 8).ok_or(cut)?;
        for attribute in attributes(payload.get(TCMSG_BYTES..).ok_or(cut)?) {
            match attribute? {
                (TCA_KIND, value) => parts.kind = value,
                (TCA_STATS2, value) => parts.read_stats(value)?,
                _ => {}
            }
        }
        Ok(parts)
    }

    /// Reads the nested `TCA_STATS2`.
    fn read_stats(&mut self, bytes: &'a [u8]) -> Result<(), Malformed> {
        let cut = Malformed("a qdisc's statistics are cut off");
        let stats = &mut self.stats;
        for attribute in attributes(bytes) {
            match attribute? {
                // struct gnet_stats_basic: u64 bytes, u32 packets.
                (TCA_STATS_BASIC, value) => {
                    stats.sent_bytes = read_u64(value, 0).ok_or(cut)?;
                    stats.sent_packets = read_u32(value, 8).ok_or(cut)?.into();
                }
                // struct gnet_stats_queue: u32 qlen, backlog, drops, requeues, overlimits.
                (TCA_STATS_QUEUE, value) => {
                    stats.packets = read_u32(value, 0).ok_or(cut)?.into();
                    stats.bytes = read_u32(value, 4).ok_or(cut)?.into();
                    stats.drops = read_u32(value, 8).ok_or(cut)?.into();
                    self.has_queue = true;
                }
                (TCA_STATS_APP, value) => self.own = value,
                _ => {}
            }
        }
        Ok(())
    }
}

fn parse(payload: &[u8]) -> Result<QdiscStats, Malformed> {
    let Parts { mut stats, kind, own, .. } = Parts::of(payload)?;
    if let Some(kind) = kind.strip_suffix(b"\0").and_then(|name| str::from_utf8(name).ok()).and_then(Kind::named) {
        stats.by_reason = by_reason(kind.counts(stats.drops, &own_words(kind, own)?));
    }
    Ok(stats)
}

/// These counts as [`QdiscStats`] holds them.
pub fn by_reason(counts: impl IntoIterator<Item = (Reason, u64)>) -> ByReason {
    let mut counts = counts.into_iter();
    std::array::from_fn(|_| counts.next())
}

/// The words of its own statistics, at least as many as the discipline reads.
fn own_words(kind: &Kind, bytes: &[u8]) -> Result<Vec<u32>, Malformed> {
    let words: Vec<u32> = (0..).map_while(|index| read_u32(bytes, 4 * index)).collect();
    if words.len() < kind.own_words { Err(Malformed("a qdisc's own statistics are cut off")) } else { Ok(words) }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::{messages, push_attribute};

    pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_attribute(&mut bytes, kind, value);
        bytes
    }

    pub(crate) fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    /// A `codel` in which 7 packets with 10,598 bytes wait. It has sent 40,000 bytes in 30 packets, and dropped 5
    /// packets, 2 of them at the limit.
    fn codel_message() -> Vec<u8> {
        let basic = [40_000_u64.to_ne_bytes().to_vec(), words(&[30, 0])].concat();
        let own = words(&[0, 1514, 0, 0, 0, 2, 3, 0, 1])[..].to_vec();
        let stats = [
            attribute(TCA_STATS_BASIC, &basic),
            attribute(TCA_STATS_QUEUE, &words(&[7, 10_598, 5, 0, 0])),
            attribute(TCA_STATS_APP, &own),
        ]
        .concat();
        [words(&[0, 3, 0x10_0000, 0x1_0001, 1]), attribute(TCA_KIND, b"codel\0"), attribute(TCA_STATS2, &stats)]
            .concat()
    }

    #[test]
    fn codel_statistics_are_read() {
        let expected = QdiscStats {
            interface: 3,
            handle: 0x10_0000,
            packets: 7,
            bytes: 10_598,
            sent_packets: 30,
            sent_bytes: 40_000,
            drops: 5,
            by_reason: by_reason([(Reason::OVERLIMIT, 2), (Reason::CODEL, 3), (Reason::CODEL_MARK, 4)]),
        };
        assert_eq!(parse(&codel_message()), Ok(expected));
    }

    #[test]
    fn a_message_cut_anywhere_is_refused_or_lacks_whole_attributes() {
        let whole = codel_message();
        for length in 0..whole.len() {
            if let Ok(stats) = parse(&whole[..length]) {
                assert_eq!(stats.by_reason, by_reason([]), "cut at {length} of {}", whole.len());
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&bytes);
            let _ = Parts::of(&bytes);
            for message in messages(&bytes) {
                let _ = message.map(|message| parse(message.payload));
            }
        }

        #[test]
        fn a_flipped_byte_never_panics(at in 0_usize..200, value: u8) {
            let mut bytes = codel_message();
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = parse(&bytes);
        }
    }
}
