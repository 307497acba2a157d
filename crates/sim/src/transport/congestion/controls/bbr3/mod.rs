//! BBR, version 3: draft-ietf-ccwg-bbr-06, in the fixed-point arithmetic of Google's implementation (the branch `v3` of
//! google/bbr).
//!
//! Like version 1, it sends at the delivery rate of the path, with the matching amount in flight. In addition, losses
//! bound both: a short-term bound holds until the next probe for bandwidth ([`short_term`]), and a long-term bound is
//! the amount that such a probe found to be too much ([`long_term`]).
//!
//! - [`startup`]: doubles the rate each round trip until the delivery rate stops growing or too much is lost;
//! - [`drain`]: sends slower until the queue that built up is gone;
//! - [`probe_bw`]: down, cruise, refill, up; sends faster only once every few seconds, or as often as Reno would lose a
//!   packet;
//! - [`probe_rtt`]: every 5 s, briefly keeps half as much in flight, to measure the round trip without a queue.
//!
//! [`path`] is BBR's model of the path. [`window`] derives the window from it. [`undo`] reverts the response to
//! spurious losses.
//!
//! Where the draft leaves something open, this follows Google's implementation, and the code says so there. ECN is one
//! such case: the draft asks only that marks count as congestion; see [`ecn`].
//!
//! Departs from the draft: losses in a round of startup are counted as acknowledgements that report losses, as Google
//! does, instead of as sequence ranges. The window leaves room for bursts although packets leave one by one.

mod drain;
mod ecn;
mod long_term;
mod path;
mod probe_bw;
mod probe_rtt;
mod short_term;
mod startup;
#[cfg(test)]
mod tests;
mod undo;
mod window;

use crate::random::Random;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::helpers::pacing_rate::PacingRate;
use crate::transport::congestion::{Ack, Context, Control, Event, LostPacket, Report, Window};
use crate::transport::congestion::{Settings, State};

/// What the sender is doing (section 5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// The state of BBRv3.
#[derive(Debug)]
pub(crate) struct Bbr3 {
    phase: Phase,
    path: path::Path,
    full: startup::FullBandwidth,
    startup: startup::Startup,
    /// Round in which draining began.
    drain_began: u64,
    probe: probe_bw::Probe,
    short: short_term::ShortTerm,
    long: long_term::LongTerm,
    dip: probe_rtt::Dip,
    undo: undo::Undo,
    saved: window::Saved,
    pacing: PacingRate,
    /// The sender was idle, and nothing sent since has been delivered yet.
    idle_restart: bool,
    random: Random,
}

/// The sample of the path from an acknowledgement (section 2.3); all zero if the acknowledgement gives no sample.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Delivery rate; zero if not known.
    bandwidth: Bandwidth,
    /// Packets delivered since the newest delivered packet was sent.
    delivered: u32,
    /// Packets found to be lost since then.
    lost: u32,
    /// Packets delivered before it was sent; `None` if the sample is not valid.
    prior_delivered: Option<u64>,
    /// Packets in flight when it was sent.
    tx_in_flight: u32,
    is_app_limited: bool,
}

impl Control for Bbr3 {
    const BUFFERED_WINDOWS: u64 = 3;
    const GOVERNS: bool = true;
    const WATCHES_LOSSES: bool = true;

    /// The least of `C.send_quantum` (section 5.6.3), at any rate.
    fn min_tso_segs(_pacing_bytes_per_s: u64) -> Option<u32> {
        Some(path::BURST_MIN_PACKETS as u32)
    }

    fn new(settings: &Settings) -> Self {
        Self {
            phase: Phase::Startup,
            path: path::Path::new(),
            full: startup::FullBandwidth::default(),
            startup: startup::Startup::default(),
            drain_began: 0,
            probe: probe_bw::Probe::new(),
            short: short_term::ShortTerm::new(),
            long: long_term::LongTerm::new(),
            dip: probe_rtt::Dip::default(),
            undo: undo::Undo::default(),
            saved: window::Saved::default(),
            pacing: PacingRate::new(startup::PACING_GAIN),
            idle_restart: false,
            random: Random::from_seed(settings.seed),
        }
    }

    fn init(&mut self, window: &mut Window, context: &Context) {
        self.path.begin(window, context);
        self.dip.begin(context);
        self.pacing.begin(window, context);
    }

    /// Section 5.2.3.
    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        let sample = Sample::of(ack);
        self.short.update(context, &sample);
        self.update_bandwidth(context, &sample);
        if self.short.round_begins {
            self.end_loss_round(window, context);
        }
        self.path.update_aggregation(self.bandwidth(), window.cwnd, context, ack);
        self.check_full_bandwidth(&sample);
        self.check_startup_done(window, context, ack, &sample);
        self.check_drained(window, context);
        self.update_cycle(window, context, ack, &sample);
        self.update_min_rtt(context, ack);
        self.check_probe_rtt(window, context, &sample);
        self.short.advance(&sample);
        self.pace(window, context, self.phase.pacing_gain());
        self.update_window(window, context, ack.acked);
    }

    /// Losses do not reduce the window here, but the window before them is saved, to be restored later.
    fn ssthresh(&mut self, window: &mut Window, context: &Context) -> u32 {
        self.save_upon_loss(window, context);
        window.ssthresh
    }

    fn undo(&mut self, window: &mut Window, context: &Context) -> u32 {
        self.take_back(context);
        self.saved.restored(window.cwnd)
    }

    fn on_state(&mut self, window: &mut Window, context: &Context, state: State) {
        match state {
            State::Cwr => self.on_single_loss(window, context),
            State::Open | State::Disorder => {
                self.undo.end_episode();
                if context.state >= State::Recovery {
                    window.cwnd = self.saved.restored(window.cwnd);
                }
            }
            State::Recovery | State::Loss => {}
        }
    }

    /// Section 5.4.1.
    fn on_event(&mut self, window: &mut Window, context: &Context, event: Event) {
        if event != Event::TxStart || !context.app_limited {
            return;
        }
        self.idle_restart = true;
        self.path.restart_aggregation(context.now_ns);
        if self.phase.is_probe_bw() {
            self.pace(window, context, Gain::ONE);
        } else if self.phase == Phase::ProbeRtt {
            self.end_dip_if_over(window, context);
        }
    }

    fn on_lost(&mut self, window: &mut Window, context: &Context, lost: &LostPacket) {
        self.note_loss(window, context);
        if self.probe.is_sample {
            self.check_lost_packet(window, context, lost);
        }
    }

    fn report(&self) -> Report {
        Report::of_phase(match self.phase {
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            Phase::Down => "probe_bw_down",
            Phase::Cruise => "probe_bw_cruise",
            Phase::Refill => "probe_bw_refill",
            Phase::Up => "probe_bw_up",
            Phase::ProbeRtt => "probe_rtt",
        })
    }
}

impl Bbr3 {
    /// The bandwidth in use (BBR.bw).
    fn bandwidth(&self) -> Bandwidth {
        self.path.max_bandwidth().min(self.short.bandwidth)
    }

    /// UpdateMaxBw, UpdateRound (sections 5.5.1 and 5.5.5).
    fn update_bandwidth(&mut self, context: &Context, sample: &Sample) {
        self.path.round_begins = false;
        let Some(prior_delivered) = sample.prior_delivered else { return };
        if self.path.advance_round(context.delivered, prior_delivered) {
            self.probe.rounds_since_up = self.probe.rounds_since_up.saturating_add(1);
            self.watch_marks(context);
        }
        self.path.add_bandwidth(sample.bandwidth, sample.is_app_limited);
    }

    fn pace(&mut self, window: &mut Window, context: &Context, gain: Gain) {
        self.pacing.update(window, context, (self.bandwidth(), gain), self.full.is_reached());
    }
}

impl Sample {
    fn of(ack: &Ack) -> Self {
        let Some(rate) = &ack.rate else { return Self::NOTHING };
        let bandwidth = Bandwidth::sampled(rate);
        Self {
            // Rounded up, as Google does, so that a small bandwidth can grow.
            bandwidth: bandwidth.map_or(Bandwidth::ZERO, Bandwidth::next_up),
            prior_delivered: bandwidth.map(|_| rate.prior_delivered),
            delivered: rate.delivered,
            lost: rate.lost,
            tx_in_flight: rate.tx_in_flight,
            is_app_limited: rate.is_app_limited,
        }
    }

    const NOTHING: Self = Self {
        bandwidth: Bandwidth::ZERO,
        delivered: 0,
        lost: 0,
        prior_delivered: None,
        tx_in_flight: 0,
        is_app_limited: false,
    };
}

impl Phase {
    /// IsInAProbeBWState
    fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// IsProbingBW
    fn looks_for_more(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// Packets leave at this multiple of the bandwidth (section 5.6.1).
    fn pacing_gain(self) -> Gain {
        match self {
            Self::Startup => startup::PACING_GAIN,
            Self::Drain => drain::PACING_GAIN,
            Self::Down => probe_bw::DOWN_GAIN,
            Self::Up => probe_bw::UP_GAIN,
            Self::Cruise | Self::Refill | Self::ProbeRtt => Gain::ONE,
        }
    }

    /// The window is this multiple of the bandwidth-delay product (section 5.6.1).
    fn cwnd_gain(self) -> Gain {
        match self {
            Self::Up => window::UP_GAIN,
            Self::ProbeRtt => probe_rtt::CWND_GAIN,
            _ => window::GAIN,
        }
    }
}
