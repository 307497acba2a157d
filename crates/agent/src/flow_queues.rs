//! Samples of the flow queues inside the ports' queueing disciplines.

use std::io;

use bufferscope_endpoint::class_stats::{self, FlowQueue};
use bufferscope_endpoint::netlink::Netlink;
use bufferscope_plan::LEAF_HANDLE;
use bufferscope_records::{FlowQueueRow, Name};
use bufferscope_scenario::{Scenario, Table};

use crate::traffic::RunContext;

/// Which samples of the queues are also samples of the flow queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Schedule {
    next_ns: u64,
    /// `None` if flow queues are not recorded.
    interval_ns: Option<u64>,
}

impl Schedule {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self { next_ns: 0, interval_ns: scenario.sampled_every_ns(Table::FlowQueues) }
    }

    /// Whether the sample that was due at this time is one. The next one is then due an interval later.
    pub(crate) fn take(&mut self, due_ns: u64) -> bool {
        let Some(interval_ns) = self.interval_ns.filter(|_| due_ns >= self.next_ns) else { return false };
        self.next_ns = due_ns + interval_ns;
        true
    }
}

/// Records the flow queues of a port that hold packets. The kernel does not say whose packets they are. `inner` are the
/// handles of the disciplines inside the port's own.
pub(crate) fn record(
    t_ns: u64,
    (port, interface): (Name, u32),
    inner: impl Iterator<Item = u32>,
    netlink: &mut Netlink,
    context: &mut RunContext<'_>,
) -> io::Result<()> {
    let handles: Vec<u32> = [LEAF_HANDLE].into_iter().chain(inner).collect();
    class_stats::read_flow_queues(netlink, interface, |FlowQueue { discipline, number, packets, bytes }| {
        if let Some(inside) = handles.iter().position(|handle| *handle == discipline) {
            let queue = (inside as u64) << 16 | u64::from(number);
            context.recorder.flow_queue(FlowQueueRow { t_ns, port, queue, flow: None, packets, bytes });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_queues_are_sampled_with_every_tenth_sample_of_queues() {
        let mut schedule = Schedule { next_ns: 0, interval_ns: Some(100) };
        let taken: Vec<u64> = (0..=250).step_by(10).filter(|due_ns| schedule.take(*due_ns)).collect();
        assert_eq!(taken, [0, 100, 200]);
    }

    #[test]
    fn a_sample_that_comes_late_delays_the_next_one() {
        let mut schedule = Schedule { next_ns: 0, interval_ns: Some(100) };
        let taken: Vec<u64> = [0, 130, 200, 230].into_iter().filter(|due_ns| schedule.take(*due_ns)).collect();
        assert_eq!(taken, [0, 130, 230]);
    }

    #[test]
    fn nothing_is_sampled_that_is_not_recorded() {
        assert!(!Schedule { next_ns: 0, interval_ns: None }.take(0));
    }
}
