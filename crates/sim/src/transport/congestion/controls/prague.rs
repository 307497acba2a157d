//! Prague (draft-briscoe-iccrg-prague-congestion-control-04): DCTCP adapted to the Internet. It counts marks as DCTCP
//! does, on packets that declare L4S ([`EcnUse::L4s`]), grows for every packet that is not marked, and gains no
//! advantage from a short round trip.
//!
//! Where the draft leaves details open, this follows its reference implementation, the module `tcp_prague` of
//! L4STeam/linux: the arithmetic, the window that follows its target packet by packet, and the pacing rate.
//!
//! Departs: the window leaves slow start at the first mark, as in the draft; that module waits for an acknowledgement
//! that covers only marked packets. Two fallbacks are left out. One is for queues that mark as for classic ECN; the
//! module does not do this by default. The other is to Reno, for connections without ECN. Both ends run this control, so
//! there is ECN unless two SYNs were lost.

use bufferscope_scenario::sizes::{MSS_BYTES, MTU_BYTES};

use crate::transport::congestion::helpers::rounds::ByteRounds;
use crate::transport::congestion::{Ack, Acked, Context, Control, EcnUse, Event, UNPACED, Window};
use crate::transport::congestion::{Settings, State};

/// Fractional bits of a window and of alpha (`CWND_UNIT`, `PRAGUE_ALPHA_BITS`).
const FRACTION_BITS: u32 = 20;
const ONE: u64 = 1 << FRACTION_BITS;
/// Weight of a round's share of marks: 1/16 (section 2.3.2: g).
const GAIN_SHIFT: u32 = 4;
/// Windows do not fall below this (`MIN_CWND`); the pace can fall further, down to 100 kbit/s (`MINIMUM_RATE`).
const MIN_CWND: u32 = 2;
const MIN_PACE_BYTES_PER_S: u64 = 12_500;
/// A flow with a shorter round trip takes as much as one whose round trip is this long (section 2.4.4: RTT_virt;
/// `prague_rtt_target`), once it has sent for this many rounds (`prague_rtt_transition`).
const TARGET_RTT_NS: u64 = 25_000_000;
const TRANSITION_ROUNDS: u32 = 500;
const NS_PER_US: u64 = 1_000;
const NS_PER_S: u128 = 1_000_000_000;
/// Headers of IP and TCP, which the pace also counts (`tcp_mss_to_mtu`).
const HEADER_BYTES: u32 = MTU_BYTES - MSS_BYTES;

/// The state of Prague.
#[derive(Debug)]
pub(crate) struct Prague {
    /// The target window, in packets with a fraction (`frac_cwnd`).
    target: u64,
    /// 16 times the average share of marked packets, which keeps what rounding would lose; 1 until the first mark
    /// (`upscaled_alpha`).
    alpha_16: u64,
    /// When alpha was last updated, and when marks last reduced the window.
    alpha_at_ns: u64,
    reduced_at_ns: u64,
    rounds: ByteRounds,
    /// Rounds since slow start.
    age: u32,
    /// Packets delivered, and those of them that were marked, when the round began.
    delivered: u64,
    delivered_ce: u64,
    /// Growth for a window without marks (`ai_ack_increase`).
    increase: u64,
    /// Packets of this acknowledgement that were marked.
    marked: u32,
    /// There has been a mark: something on the path marks.
    saw_mark: bool,
    /// The window is being reduced for a loss.
    in_loss: bool,
    /// Window and target before that.
    before_loss: (u32, u64),
}

impl Control for Prague {
    const GOVERNS: bool = true;
    const ECN: EcnUse = EcnUse::L4s;

    fn new(_settings: &Settings) -> Self {
        Self {
            target: ONE,
            alpha_16: ONE << GAIN_SHIFT,
            alpha_at_ns: 0,
            reduced_at_ns: 0,
            rounds: ByteRounds::default(),
            age: 0,
            delivered: 0,
            delivered_ce: 0,
            increase: ONE,
            marked: 0,
            saw_mark: false,
            in_loss: false,
            before_loss: (0, 0),
        }
    }

    fn init(&mut self, window: &mut Window, context: &Context) {
        self.target = packets(window.cwnd);
        self.alpha_at_ns = context.now_ns;
        self.rounds.restart(context.sent_bytes);
        self.begin_round(window, context);
        self.pace(window, context);
    }

    fn on_acked(&mut self, _window: &mut Window, _context: &Context, acked: &Acked) {
        self.marked = acked.ce_packets;
        self.saw_mark |= acked.ce_packets > 0;
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        let unmarked = ack.acked.saturating_sub(std::mem::take(&mut self.marked));
        // Not only in a full window: at the lowest pace, fewer packets are in flight than the window allows.
        if unmarked > 0 && !self.in_loss && !context.app_limited {
            self.grow(window, unmarked);
        }
        self.follow(window);
        if self.is_alpha_due(window, context) {
            self.update_alpha(context);
            self.begin_round(window, context);
        }
        self.pace(window, context);
    }

    /// The threshold is set when the state changes, as only then the reason is known.
    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.ssthresh
    }

    fn undo(&mut self, window: &mut Window, _context: &Context) -> u32 {
        let (cwnd, target) = self.before_loss;
        self.target = self.target.max(target);
        window.cwnd.max(cwnd)
    }

    fn on_state(&mut self, window: &mut Window, context: &Context, state: State) {
        match state {
            _ if state == context.state => {}
            State::Cwr => self.react_to_marks(window, context),
            State::Recovery => self.react_to_loss(window),
            State::Open => self.in_loss = false,
            State::Disorder | State::Loss => {}
        }
    }

    fn on_event(&mut self, window: &mut Window, _context: &Context, event: Event) {
        if event == Event::Timeout {
            self.react_to_loss(window);
        }
    }
}

impl Prague {
    /// Slow start, then one packet per round trip, for packets that were not marked (section 2.4.3).
    fn grow(&mut self, window: &mut Window, unmarked: u32) {
        let mut unmarked = unmarked;
        if window.in_slow_start() {
            unmarked = window.slow_start(unmarked);
            self.target = packets(window.cwnd);
        }
        let cwnd = u64::from(self.target_packets());
        let increase = (u64::from(unmarked) * self.increase + cwnd / 2) / cwnd;
        self.target += increase.max(u64::from(unmarked));
    }

    /// The window follows its target by one packet per acknowledgement.
    fn follow(&self, window: &mut Window) {
        let target = self.target_packets().max(MIN_CWND);
        if window.cwnd > target {
            window.cwnd -= 1;
        } else if window.cwnd < target {
            window.cwnd += 1;
        }
    }

    fn target_packets(&self) -> u32 {
        u32::try_from(self.target.div_ceil(ONE)).unwrap_or(u32::MAX).max(1)
    }

    /// alpha += (share of marked packets - alpha) / 16 (section 2.3.2), from the first mark on.
    fn update_alpha(&mut self, context: &Context) {
        if !self.saw_mark {
            return;
        }
        let (delivered, marked) = (context.delivered - self.delivered, context.delivered_ce - self.delivered_ce);
        let share = (marked << FRACTION_BITS) / delivered.max(1);
        self.alpha_16 = (self.alpha_16 - (self.alpha_16 >> GAIN_SHIFT) + share).min(ONE << GAIN_SHIFT);
        self.alpha_at_ns = context.now_ns;
    }

    fn begin_round(&mut self, window: &Window, context: &Context) {
        (self.delivered, self.delivered_ce) = (context.delivered, context.delivered_ce);
        if !window.in_slow_start() {
            self.age = self.age.saturating_add(1);
        }
        self.increase = self.scaled_increase(context.srtt_ns.unwrap_or(TARGET_RTT_NS));
    }

    /// A round trip has passed, and so has the target round trip.
    fn is_alpha_due(&mut self, window: &Window, context: &Context) -> bool {
        let waits = self.is_scaled(window) && context.now_ns < self.alpha_at_ns + TARGET_RTT_NS;
        !waits && self.rounds.advance(context.acked_bytes, context.sent_bytes)
    }

    /// Whether the flow is old enough to give up the advantage of a short round trip.
    fn is_scaled(&self, window: &Window) -> bool {
        !window.in_slow_start() && self.age >= TRANSITION_ROUNDS
    }

    /// One packet per target round trip, for as many packets as a flow of the same rate has in flight there. So (RTT /
    /// target)^2 packets per round trip (section 2.4.4).
    fn scaled_increase(&self, srtt_ns: u64) -> u64 {
        if self.age < TRANSITION_ROUNDS || srtt_ns >= TARGET_RTT_NS {
            return ONE;
        }
        let (rtt_us, target_us) = (srtt_ns / NS_PER_US, TARGET_RTT_NS / NS_PER_US);
        ((rtt_us * rtt_us) << FRACTION_BITS).div_ceil(target_us * target_us)
    }

    /// The target reduced by alpha / 2 of it, once per round trip (section 2.4.2).
    fn react_to_marks(&mut self, window: &mut Window, context: &Context) {
        if self.is_scaled(window) && context.now_ns < self.reduced_at_ns + TARGET_RTT_NS {
            return;
        }
        self.reduced_at_ns = context.now_ns;
        let alpha = u128::from(self.alpha_16 >> GAIN_SHIFT);
        // Half a unit more rounds to the nearest.
        let reduction = (alpha * u128::from(self.target) + u128::from(ONE)) >> (FRACTION_BITS + 1);
        self.target -= reduction as u64;
        window.ssthresh = self.target_packets().max(MIN_CWND);
    }

    /// Half of the target, as in Reno (section 2.4.1).
    fn react_to_loss(&mut self, window: &mut Window) {
        self.before_loss = (window.cwnd, self.target);
        self.target -= self.target / 2;
        self.in_loss = true;
        window.ssthresh = self.target_packets().max(MIN_CWND);
    }

    /// One target window per round trip, twice that early in slow start (section 2.5.1). The rate has a minimum:
    /// otherwise a flow whose every packet was marked would hardly send any that could show that this is over.
    fn pace(&self, window: &mut Window, context: &Context) {
        let Some(srtt_ns) = context.srtt_ns.filter(|&ns| ns > 0) else { return };
        let doubles = u32::from(window.cwnd < window.ssthresh / 2);
        let bytes = (u128::from(context.mss_bytes + HEADER_BYTES) * u128::from(self.target)) << doubles;
        let rate = (bytes * NS_PER_S / u128::from(srtt_ns)) >> FRACTION_BITS;
        window.pacing_bytes_per_s = u64::try_from(rate).unwrap_or(UNPACED - 1).max(MIN_PACE_BYTES_PER_S);
    }
}

fn packets(count: u32) -> u64 {
    u64::from(count) << FRACTION_BITS
}

#[cfg(test)]
mod tests;
