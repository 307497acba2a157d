//! Statistics of the classes of queueing disciplines (`RTM_GETTCLASS`). The flow queues of `fq_codel`, `sfq` and `cake`
//! are classes; `fq` and `fq_pie` show none of theirs.

use std::io;

use bufferscope_scenario::{Kind, Queues};

use crate::netlink::{Malformed, Netlink};
use crate::qdisc_stats::{Parts, question};

const RTM_NEWTCLASS: u16 = 40;
const RTM_GETTCLASS: u16 = 42;

/// The packets in a flow queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowQueue {
    /// The handle of its discipline.
    pub discipline: u32,
    /// The minor number of its class.
    pub number: u16,
    /// Packets in it now; at least one.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Passes every flow queue with packets to `each`: those of all disciplines of a device in the socket's namespace. A
/// queue without packets may have a class, too, and is left out.
pub fn read_flow_queues(netlink: &mut Netlink, interface: u32, mut each: impl FnMut(FlowQueue)) -> io::Result<()> {
    netlink.dump(RTM_GETTCLASS, &question(interface, 0, 0), |kind, payload| {
        if kind == RTM_NEWTCLASS
            && let Some(queue) = parse(payload)?
        {
            each(queue);
        }
        Ok(())
    })
}

/// `None` for a class that is no flow queue, such as those of `htb`, and for one without packets.
fn parse(payload: &[u8]) -> Result<Option<FlowQueue>, Malformed> {
    let Parts { stats, kind, has_queue, .. } = Parts::of(payload)?;
    let named = kind.strip_suffix(b"\0").and_then(|name| str::from_utf8(name).ok()).and_then(Kind::named);
    let is_flow_queue = named.is_some_and(|kind| kind.queues == Queues::PerFlow);
    if !is_flow_queue {
        return Ok(None);
    }
    if !has_queue {
        return Err(Malformed("a flow queue has no statistics"));
    }
    let (discipline, number) = (stats.handle & 0xffff_0000, stats.handle as u16);
    Ok((stats.packets > 0).then_some(FlowQueue { discipline, number, packets: stats.packets, bytes: stats.bytes }))
}

#[cfg(test)]
mod tests;
