//! BBR, version 1 (Cardwell, Cheng, Gunn, Yeganeh, Jacobson: *BBR: Congestion-Based Congestion Control*, ACM Queue
//! 14(5), 2016), as implemented in the kernel's `tcp_bbr.c`.
//!
//! BBR measures the delivery rate and the minimum round-trip time. It sends at that rate, with as much in flight as the
//! product of the two, regardless of losses. It learns the path by sending faster and slower in turn:
//!
//! - [`startup`]: doubles the rate each round trip until the delivery rate stops growing;
//! - [`drain`]: sends slower until the queue that built up is gone;
//! - [`probe_bw`]: in cycles, sends a quarter faster, a quarter slower, then at the delivery rate;
//! - [`probe_rtt`]: every 10 s, briefly keeps next to nothing in flight, to measure the round trip without a queue.
//!
//! [`path`] is BBR's model of the path. [`window`] derives the window from it, with room for a [`burst`]. [`policer`]
//! detects rate limits that drop packets instead of queueing them.
//!
//! Departs from the kernel: times are exact, where the kernel counts its 10 s and 200 ms in jiffies. The window leaves
//! room for the bursts that the kernel would send at this rate, although packets leave one by one.

mod burst;
mod drain;
mod path;
mod policer;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;
mod window;

use crate::random::Random;
use crate::transport::congestion::helpers::bandwidth::{Bandwidth, Gain};
use crate::transport::congestion::helpers::pacing_rate::PacingRate;
use crate::transport::congestion::{Ack, Context, Control, Event, Report, Window};
use crate::transport::congestion::{Settings, State};

/// What the sender is doing (`enum bbr_mode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The state of BBR.
#[derive(Debug)]
pub(crate) struct Bbr {
    phase: Phase,
    /// Packets leave at this multiple of the bandwidth.
    pacing_gain: Gain,
    /// The window is this multiple of the bandwidth-delay product.
    cwnd_gain: Gain,
    path: path::Path,
    full_pipe: startup::FullPipe,
    cycle: probe_bw::Cycle,
    dip: probe_rtt::Dip,
    policer: policer::Policer,
    saved: window::Saved,
    pacing: PacingRate,
    /// The sender was idle, and nothing sent since has been delivered yet.
    idle_restart: bool,
    random: Random,
}

impl Control for Bbr {
    const BUFFERED_WINDOWS: u64 = 3;
    const GOVERNS: bool = true;

    /// `bbr_min_tso_segs`
    fn min_tso_segs(pacing_bytes_per_s: u64) -> Option<u32> {
        Some(burst::least_packets(pacing_bytes_per_s))
    }

    fn new(settings: &Settings) -> Self {
        Self {
            phase: Phase::Startup,
            pacing_gain: startup::HIGH_GAIN,
            cwnd_gain: startup::HIGH_GAIN,
            path: path::Path::new(),
            full_pipe: startup::FullPipe::default(),
            cycle: probe_bw::Cycle::default(),
            dip: probe_rtt::Dip::default(),
            policer: policer::Policer::default(),
            saved: window::Saved::new(),
            pacing: PacingRate::new(startup::HIGH_GAIN),
            idle_restart: false,
            random: Random::from_seed(settings.seed),
        }
    }

    fn init(&mut self, window: &mut Window, context: &Context) {
        self.path.begin(context);
        self.policer.reset(context);
        self.pacing.begin(window, context);
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        self.update_bandwidth(context, ack);
        self.path.update_aggregation(self.bandwidth(), window.cwnd, context, ack);
        self.update_cycle(window, context, ack);
        self.check_full_pipe(ack);
        self.check_drained(window, context);
        self.update_min_rtt(window, context, ack);
        self.update_gains();
        self.pace(window, context, self.pacing_gain);
        self.update_window(window, context, ack);
    }

    /// Losses do not reduce the window, but the window before them is saved, to be restored later.
    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        self.save_window(window.cwnd);
        window.ssthresh
    }

    fn undo(&mut self, window: &mut Window, context: &Context) -> u32 {
        self.full_pipe.restart();
        self.policer.reset(context);
        window.cwnd
    }

    fn on_state(&mut self, _window: &mut Window, context: &Context, state: State) {
        if state == State::Loss {
            self.saved.after_timeout();
            self.full_pipe.forget_bandwidth();
            // A timeout counts as the end of a round.
            self.path.round_begins = true;
            self.watch_for_policer(context, 1, false);
        }
    }

    fn on_event(&mut self, window: &mut Window, context: &Context, event: Event) {
        if event != Event::TxStart || !context.app_limited {
            return;
        }
        self.idle_restart = true;
        self.path.restart_aggregation(context.now_ns);
        match self.phase {
            // Pace at the bandwidth itself: the pipe is empty.
            Phase::ProbeBw => self.pace(window, context, Gain::ONE),
            Phase::ProbeRtt => self.end_dip_if_over(window, context),
            Phase::Startup | Phase::Drain => {}
        }
    }

    fn report(&self) -> Report {
        let phase = match self.phase {
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            Phase::ProbeBw if self.cycle.is_probing() => "probe_bw_up",
            Phase::ProbeBw if self.cycle.is_draining() => "probe_bw_down",
            Phase::ProbeBw => "probe_bw_cruise",
            Phase::ProbeRtt => "probe_rtt",
        };
        Report::of_phase(phase)
    }
}

impl Bbr {
    /// The bandwidth in use: the path's, or the policer's (`bbr_bw`).
    fn bandwidth(&self) -> Bandwidth {
        self.policer.bandwidth().unwrap_or(self.path.max_bandwidth())
    }

    fn pace(&mut self, window: &mut Window, context: &Context, gain: Gain) {
        self.pacing.update(window, context, (self.bandwidth(), gain), self.full_pipe.is_reached());
    }

    /// Takes in a new sample of the delivery rate (`bbr_update_bw`).
    fn update_bandwidth(&mut self, context: &Context, ack: &Ack) {
        self.path.round_begins = false;
        let Some(sample) = ack.rate else { return };
        let Some(bandwidth) = Bandwidth::sampled(&sample) else { return };
        if self.path.advance_round(context.delivered, sample.prior_delivered) {
            self.saved.end_conservation();
        }
        self.watch_for_policer(context, ack.lost, sample.is_app_limited);
        self.path.add_bandwidth(bandwidth, sample.is_app_limited);
    }

    /// `bbr_update_gains`
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.phase {
            Phase::Startup => (startup::HIGH_GAIN, startup::HIGH_GAIN),
            Phase::Drain => (drain::PACING_GAIN, startup::HIGH_GAIN),
            Phase::ProbeBw if self.policer.bandwidth().is_some() => (Gain::ONE, probe_bw::CWND_GAIN),
            Phase::ProbeBw => (self.cycle.pacing_gain(), probe_bw::CWND_GAIN),
            Phase::ProbeRtt => (Gain::ONE, Gain::ONE),
        };
    }

    /// Returns from ProbeRTT (`bbr_reset_mode`).
    fn resume(&mut self, context: &Context) {
        if self.full_pipe.is_reached() {
            self.enter_probe_bw(context);
        } else {
            self.phase = Phase::Startup;
        }
    }
}
