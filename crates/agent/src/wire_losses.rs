//! Losses on wires, from the counters of the netem that loses the packets. The resulting rows of `drops` have no flow
//! and no size. Their time is that of the sample that found a counter increased.

use std::io;

use bufferscope_endpoint::netlink::Netlink;
use bufferscope_endpoint::qdisc_stats;
use bufferscope_plan::FAULTS_HANDLE;
use bufferscope_records::{DropReason, DropRow, Layer, Name, Observed};
use bufferscope_scenario::Reason;
use nix::net::if_::if_nametoindex;

use crate::traffic::RunContext;

/// The wires that lose packets.
#[derive(Debug)]
pub(crate) struct WireLosses(Vec<LossyWire>);

#[derive(Debug)]
struct LossyWire {
    netlink: Netlink,
    interface: u32,
    /// The port that sends on this wire.
    port: Name,
    /// The losses that already have a row.
    reported: u64,
}

impl WireLosses {
    /// Opens a socket in the namespace of every wire that loses packets.
    pub(crate) fn open(context: &mut RunContext<'_>) -> io::Result<Self> {
        let mut wires = Vec::new();
        for delay in &context.network.plan.delays {
            let link = &context.scenario.links[delay.link];
            // A wire is at the device through which its packets leave: forward ones towards the second end.
            let [towards_first, towards_second] = &delay.devices;
            let names = link.port_names(&context.scenario.nodes);
            for ((port, name), device) in link.ports().into_iter().zip(names).zip([towards_second, towards_first]) {
                if port.faults.is_some_and(|faults| faults.loss.is_some()) {
                    context.network.namespaces[delay.namespace].enter()?;
                    let (netlink, interface) = (Netlink::open()?, if_nametoindex(device.as_str())?);
                    wires.push(LossyWire { netlink, interface, port: context.recorder.intern(&name), reported: 0 });
                }
            }
        }
        Ok(Self(wires))
    }

    /// Records the losses since the last sample.
    pub(crate) fn sample(&mut self, context: &mut RunContext<'_>) -> io::Result<()> {
        for LossyWire { netlink, interface, port, reported } in &mut self.0 {
            let t_ns = context.now_ns();
            let lost = qdisc_stats::read_one(netlink, *interface, FAULTS_HANDLE)?.drops;
            for _ in *reported..lost {
                context.recorder.dropped(DropRow {
                    t_ns,
                    port: *port,
                    layer: Layer::Wire,
                    flow: None,
                    bytes: None,
                    reason: DropReason::new(Reason::NETEM_LOSS.word),
                    observed: Observed::Counter,
                });
            }
            *reported = lost;
        }
        Ok(())
    }
}
