//! Storage of packets. They are in one slab and linked into queues by index, so once the slab has grown, packets need
//! no allocation.

use std::iter::Sum;

use super::packet::{Body, Header};

/// Index of a packet in the [`Pool`]; the holder owns the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PacketId(u32);

impl PacketId {
    /// Where in the pool it is.
    pub(crate) fn slot(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
impl PacketId {
    /// For tests without a pool.
    pub(crate) fn numbered(number: u64) -> Self {
        Self(number as u32)
    }
}

/// End of a list.
const NIL: u32 = u32::MAX;

/// The slab. Headers and bodies are separate because hops only touch headers.
#[derive(Debug)]
pub(crate) struct Pool {
    headers: Vec<Header>,
    /// The next packet in the queue or on the free list that contains the packet.
    next: Vec<u32>,
    bodies: Vec<Body>,
    free: u32,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { headers: Vec::new(), next: Vec::new(), bodies: Vec::new(), free: NIL }
    }

    pub(crate) fn insert(&mut self, header: Header, body: Body) -> PacketId {
        let Some(next) = self.next.get(self.free as usize) else { return self.grow(header, body) };
        let index = std::mem::replace(&mut self.free, *next);
        self.headers[index as usize] = header;
        self.bodies[index as usize] = body;
        PacketId(index)
    }

    /// A copy of a packet, whose departure is not reported to its sender.
    pub(crate) fn copy(&mut self, id: PacketId) -> PacketId {
        let (mut header, body) = (*self.header(id), *self.body(id));
        header.load.take_awaited();
        self.insert(header, body)
    }

    /// Frees the packet.
    pub(crate) fn remove(&mut self, id: PacketId) {
        self.next[id.0 as usize] = self.free;
        self.free = id.0;
    }

    #[inline]
    pub(crate) fn header(&self, id: PacketId) -> &Header {
        &self.headers[id.0 as usize]
    }

    #[inline]
    pub(crate) fn header_mut(&mut self, id: PacketId) -> &mut Header {
        &mut self.headers[id.0 as usize]
    }

    pub(crate) fn body(&self, id: PacketId) -> &Body {
        &self.bodies[id.0 as usize]
    }

    pub(crate) fn body_mut(&mut self, id: PacketId) -> &mut Body {
        &mut self.bodies[id.0 as usize]
    }

    #[cold]
    fn grow(&mut self, header: Header, body: Body) -> PacketId {
        let index = u32::try_from(self.headers.len()).expect("fewer than 2^32 packets are alive");
        self.headers.push(header);
        self.next.push(NIL);
        self.bodies.push(body);
        PacketId(index)
    }
}

/// A first-in, first-out queue of packets, threaded through the [`Pool`].
#[derive(Debug)]
pub(crate) struct Fifo {
    head: u32,
    tail: u32,
    packets: u32,
    bytes: u64,
}

impl Fifo {
    pub(crate) fn new() -> Self {
        Self { head: NIL, tail: NIL, packets: 0, bytes: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, id: PacketId, pool: &mut Pool) {
        pool.next[id.0 as usize] = NIL;
        if self.packets == 0 {
            self.head = id.0;
        } else {
            pool.next[self.tail as usize] = id.0;
        }
        self.tail = id.0;
        self.packets += 1;
        self.bytes += u64::from(pool.header(id).frame_bytes);
    }

    #[inline]
    pub(crate) fn pop(&mut self, pool: &Pool) -> Option<PacketId> {
        let id = self.front()?;
        self.head = pool.next[id.0 as usize];
        self.packets -= 1;
        self.bytes -= u64::from(pool.header(id).frame_bytes);
        Some(id)
    }

    /// Takes the newest packet out. As packets only know the one behind them, this walks through the queue.
    pub(crate) fn pop_back(&mut self, pool: &mut Pool) -> Option<PacketId> {
        let before = (self.packets as usize).checked_sub(2).and_then(|index| self.iter(pool).nth(index));
        self.take_after(before, pool)
    }

    /// Takes the packet that follows `previous` out of the queue, or the first.
    pub(crate) fn take_after(&mut self, previous: Option<PacketId>, pool: &mut Pool) -> Option<PacketId> {
        let Some(previous) = previous else { return self.pop(pool) };
        let taken = pool.next[previous.0 as usize];
        if taken == NIL {
            return None;
        }
        pool.next[previous.0 as usize] = pool.next[taken as usize];
        if self.tail == taken {
            self.tail = previous.0;
        }
        self.packets -= 1;
        self.bytes -= u64::from(pool.header(PacketId(taken)).frame_bytes);
        Some(PacketId(taken))
    }

    /// The newest packet.
    pub(crate) fn back(&self) -> Option<PacketId> {
        (self.packets > 0).then_some(PacketId(self.tail))
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<PacketId> {
        (self.packets > 0).then_some(PacketId(self.head))
    }

    /// The packets, oldest first.
    pub(crate) fn iter(&self, pool: &Pool) -> impl Iterator<Item = PacketId> {
        let following = |id: &PacketId| Some(PacketId(pool.next[id.0 as usize])).filter(|next| next.0 != NIL);
        std::iter::successors(self.front(), following)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// Sum of the frames' sizes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.into(), bytes: self.bytes }
    }
}

/// The packets and bytes in one or several queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) packets: u64,
    /// Sum of the frames' sizes.
    pub(crate) bytes: u64,
}

impl Backlog {
    /// One of the queues held `before`, and now holds `after`.
    #[inline]
    pub(crate) fn adjust(&mut self, before: Self, after: Self) {
        self.packets = self.packets + after.packets - before.packets;
        self.bytes = self.bytes + after.bytes - before.bytes;
    }
}

impl Sum for Backlog {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        let add = |sum: Self, more: Self| Self { packets: sum.packets + more.packets, bytes: sum.bytes + more.bytes };
        each.fold(Self::default(), add)
    }
}
