//! The backlog and the memory of all tins, updated as packets come and go.

use super::tins::Tin;
use crate::network::pool::{Backlog, PacketId, Pool};
use crate::network::truesize::truesize;

/// The backlog, and its memory.
#[derive(Debug, Default)]
pub(super) struct Stock {
    pub(super) backlog: Backlog,
    /// Memory that the packets would take in Linux.
    pub(super) memory: u64,
}

impl Stock {
    /// A packet has been put into a queue of the tin.
    #[inline]
    pub(super) fn add(&mut self, packet: PacketId, tin: &mut Tin, pool: &Pool) {
        let bytes = u64::from(pool.header(packet).frame_bytes);
        tin.bytes += bytes;
        self.backlog.bytes += bytes;
        self.backlog.packets += 1;
        self.memory += truesize(packet, pool);
    }

    /// A packet has been taken out of a queue of the tin.
    #[inline]
    pub(super) fn remove(&mut self, packet: PacketId, tin: &mut Tin, pool: &Pool) {
        let bytes = u64::from(pool.header(packet).frame_bytes);
        tin.bytes -= bytes;
        self.backlog.bytes -= bytes;
        self.backlog.packets -= 1;
        self.memory -= truesize(packet, pool);
    }
}
