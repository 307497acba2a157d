//! The usual phases. *Down* drains what probing has queued. *Cruise* sends at the delivery rate. When it is time to
//! probe, *refill* fills the pipe, so that *up* can probe beyond that (section 5.3.3).

use bufferscope_programs::Uniform;

use super::{Bbr3, Phase, Sample};
use crate::transport::congestion::helpers::bandwidth::Gain;
use crate::transport::congestion::{Ack, Context, Window};

/// Packets leave this much slower than the bandwidth, so that the queue drains and others get a share.
pub(super) const DOWN_GAIN: Gain = Gain::of(9, 10);
/// Packets leave this much faster, to probe for more.
pub(super) const UP_GAIN: Gain = Gain::of(5, 4);
/// A probe begins after 2 s to 3 s: Reno at 25 Mbit/s and 30 ms loses a packet every 1.9 s (section 5.3.3.8.3).
const WAIT_NS: u64 = 2_000_000_000;
const WAIT_RANDOM_NS: u64 = 1_000_000_000;
/// Or after as many round trips as Reno would take to fill a window, but at most this many; the count begins with 0 or
/// 1.
const RENO_MAX_ROUNDS: u32 = 63;
const RENO_RANDOM_ROUNDS: u64 = 2;

/// What acknowledgements show about the probe (BBR.ack_phase).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acks {
    /// Nothing.
    Init,
    /// The pipe is being filled.
    Refilling,
    /// The first packets of the probe are under way.
    Starting,
    /// They are arriving.
    Feedback,
    /// The probe is over; its last packets are arriving.
    Stopping,
}

/// The probe for bandwidth.
#[derive(Debug)]
pub(super) struct Probe {
    pub(super) acks: Acks,
    /// What is delivered or lost now was sent in the probe, which has not been cut short yet (BBR.is_bw_probe_sample).
    pub(super) is_sample: bool,
    /// The last probe lost too much.
    pub(super) was_too_high: bool,
    /// The last probe stopped where the one before had lost too much.
    pub(super) was_precautionary: bool,
    /// Round trips since the last probe.
    pub(super) rounds_since_up: u32,
    /// When the last probe ended, and how long the next one waits.
    ended_ns: u64,
    wait_ns: u64,
}

impl Probe {
    pub(super) fn new() -> Self {
        Self {
            acks: Acks::Init,
            is_sample: false,
            was_too_high: false,
            was_precautionary: false,
            rounds_since_up: 0,
            ended_ns: 0,
            wait_ns: 0,
        }
    }
}

impl Bbr3 {
    /// UpdateProbeBWCyclePhase
    pub(super) fn update_cycle(&mut self, window: &Window, context: &Context, ack: &Ack, sample: &Sample) {
        if !self.full.is_reached() || self.adapt_long_term(window, context, ack, sample) {
            return;
        }
        match self.phase {
            Phase::Down | Phase::Cruise if self.is_time_for_more(window, context) => self.start_refill(context),
            Phase::Down if self.is_time_to_cruise(window, context, ack) => self.phase = Phase::Cruise,
            Phase::Refill if self.path.round_begins => self.start_up(window, context, sample),
            Phase::Up => self.check_up(window, context, ack, sample),
            _ => {}
        }
    }

    /// StartProbeBW_DOWN
    pub(super) fn start_down(&mut self, context: &Context) {
        self.short.forget_signals();
        self.long.stop_growth();
        self.pick_wait();
        self.probe.ended_ns = context.now_ns;
        self.probe.acks = Acks::Stopping;
        self.path.restart_round(context);
        self.phase = Phase::Down;
    }

    /// StartProbeBW_REFILL
    pub(super) fn start_refill(&mut self, context: &Context) {
        self.short.lift_bounds();
        self.long.restart_growth();
        self.probe.was_precautionary = false;
        self.probe.acks = Acks::Refilling;
        self.path.restart_round(context);
        self.phase = Phase::Refill;
    }

    /// StartProbeBW_UP, after one round of refilling.
    fn start_up(&mut self, window: &Window, context: &Context, sample: &Sample) {
        self.probe.is_sample = true;
        self.probe.acks = Acks::Starting;
        self.path.restart_round(context);
        self.full.restart(sample.bandwidth);
        self.phase = Phase::Up;
        self.long.raise_slope(window.cwnd);
    }

    /// PickProbeWait: randomised, so that flows that began together do not probe together.
    fn pick_wait(&mut self) {
        self.probe.rounds_since_up = self.random.below(RENO_RANDOM_ROUNDS) as u32;
        self.probe.wait_ns = WAIT_NS + self.random.below(WAIT_RANDOM_NS);
    }

    /// IsTimeToProbeBW
    fn is_time_for_more(&self, window: &Window, context: &Context) -> bool {
        let reno_rounds = self.target_in_flight(window).min(RENO_MAX_ROUNDS);
        context.now_ns > self.probe.ended_ns + self.probe.wait_ns || self.probe.rounds_since_up >= reno_rounds
    }

    /// IsTimeToCruise. Here and below, the amount in flight is taken before the acknowledgement, as Google does: after
    /// it, it never reaches the window.
    fn is_time_to_cruise(&self, window: &Window, context: &Context, ack: &Ack) -> bool {
        ack.prior_in_flight <= self.long.with_headroom()
            && ack.prior_in_flight <= self.in_flight_for(self.path.max_bandwidth(), window, context.mss_bytes)
    }

    /// IsTimeToGoDown, and what follows from it. If the last probe lost too much, this one goes just as far; otherwise
    /// it continues until the pipe is full.
    fn check_up(&mut self, window: &Window, context: &Context, ack: &Ack, sample: &Sample) {
        let is_risky = self.probe.was_too_high && ack.prior_in_flight >= self.long.in_flight;
        if !is_risky && self.is_bound_in_use(window, context) {
            // The bound limits the bandwidth, not the path: the bound has to grow first.
            self.full.restart(sample.bandwidth);
        } else if is_risky || self.full.is_now() {
            self.probe.was_precautionary |= is_risky;
            self.probe.was_too_high = false;
            self.start_down(context);
        }
    }
}
