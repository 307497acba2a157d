//! Acknowledgements for tests of controls that model the path, as they would arrive over a given path. No network is
//! simulated.

use super::{Ack, Context, Control, LostPacket, RateSample, Window};
use crate::transport::congestion::{Settings, State};

pub(crate) const MS: u64 = 1_000_000;
/// Round-trip time, unless a test says otherwise.
pub(crate) const RTT_NS: u64 = 20 * MS;

/// A connection as seen by its congestion control.
pub(crate) struct Run<C> {
    pub(crate) control: C,
    pub(crate) window: Window,
    pub(crate) context: Context,
    /// Whether the next acknowledgements deliver packets that were sent while the application was the limit.
    pub(crate) app_limited: bool,
    /// The round-trip time of the next acknowledgements.
    pub(crate) rtt_ns: u64,
    /// Packets that the next acknowledgement shows to be lost.
    newly_lost: u32,
}

impl<C: Control> Run<C> {
    /// The handshake is done.
    pub(crate) fn begin() -> Self {
        Self::with_seed(1)
    }

    /// The same, with random numbers of another seed.
    pub(crate) fn with_seed(seed: u64) -> Self {
        let settings = Settings { seed, ..Settings::DEFAULT };
        let (srtt_ns, min_rtt_ns) = (Some(RTT_NS), Some(RTT_NS));
        let context = Context { now_ns: RTT_NS, srtt_ns, min_rtt_ns, window_full: false, ..Context::EMPTY };
        let mut run = Self {
            control: C::new(&settings),
            window: Window::new(settings.initial_window_packets),
            context,
            app_limited: false,
            rtt_ns: RTT_NS,
            newly_lost: 0,
        };
        run.control.init(&mut run.window, &run.context);
        run
    }

    /// One round trip later, everything in flight is acknowledged, which is `packets` packets.
    pub(crate) fn round(&mut self, packets: u32) {
        self.acknowledge(packets, 0, self.rtt_ns);
    }

    /// After `interval_ns`, `packets` more are delivered and `lost` are found to be lost. This begins a round.
    pub(crate) fn acknowledge(&mut self, packets: u32, lost: u32, interval_ns: u64) {
        self.deliver(packets, lost, interval_ns, self.context.delivered);
    }

    /// After `interval_ns`, `packets` more are delivered. They were sent when nothing had been delivered, so they begin
    /// no round.
    pub(crate) fn acknowledge_early(&mut self, packets: u32, interval_ns: u64) {
        self.deliver(packets, 0, interval_ns, 0);
    }

    /// A packet is marked lost. When it was sent, this many were in flight; this many of those are lost now.
    pub(crate) fn lose(&mut self, tx_in_flight: u32, lost_since: u32) {
        self.context.lost += 1;
        self.newly_lost += 1;
        let lost = LostPacket { tx_in_flight, lost_since, is_app_limited: self.app_limited };
        self.control.on_lost(&mut self.window, &self.context, &lost);
    }

    /// The sender enters a state.
    pub(crate) fn enter(&mut self, state: State) {
        if state >= State::Cwr {
            self.control.ssthresh(&mut self.window, &self.context);
        }
        self.control.on_state(&mut self.window, &self.context, state);
        self.context.state = state;
    }

    fn deliver(&mut self, packets: u32, lost: u32, interval_ns: u64, prior_delivered: u64) {
        let context = &mut self.context;
        context.now_ns += interval_ns;
        context.next_send_ns = context.now_ns;
        context.delivered += u64::from(packets);
        context.delivered_ns = context.now_ns;
        context.lost += u64::from(lost);
        let lost = lost + std::mem::take(&mut self.newly_lost);
        let rate = RateSample {
            delivered: packets,
            delivered_ce: 0,
            lost,
            interval_ns: Some(interval_ns),
            prior_delivered,
            tx_in_flight: context.in_flight,
            is_app_limited: self.app_limited,
            is_retransmission: false,
        };
        let rtt_ns = Some(self.rtt_ns);
        let ack = Ack {
            acked: packets,
            lost,
            prior_in_flight: context.in_flight,
            rtt_ns,
            may_be_delayed: false,
            rate: Some(rate),
        };
        self.control.on_ack(&mut self.window, &self.context, &ack);
    }
}
