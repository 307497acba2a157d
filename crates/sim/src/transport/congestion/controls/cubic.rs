//! CUBIC (RFC 9438), in the integer arithmetic of the kernel's `tcp_cubic.c`.
//!
//! The window follows W(t) = C (t - K)^3 + W_max, where t is the time since the last reduction in units of 1/1024 s,
//! and C = 410/1024. Where Reno would be faster, it follows Reno (section 4.3). As in the kernel, t is read from the
//! jiffies clock. That clock is out of step with the sawtooth, so no two teeth are exactly alike. The target is updated
//! at most once per jiffy.
//!
//! Departs: the cube root is exact (the kernel's is within 0.2 %).

use crate::timers::Timers;
use crate::transport::congestion::helpers::hystart::HyStart;
use crate::transport::congestion::{self, Report};
use crate::transport::congestion::{Ack, Acked, Context, Control, Event, MIN_SSTHRESH_PACKETS, Window};
use crate::transport::congestion::{Settings, State};

/// The window after congestion: 717/1024, about 0.7 (section 4.6).
const BETA: u32 = 717;
const BETA_SCALE: u32 = 1024;
/// C in 1/1024 packets per s^3, about 0.4 (section 5).
const C_SCALED: u64 = 410;
/// Fractional bits of C_SCALED's scale (10) and of the cube of the time unit (3 * 10).
const CUBE_SHIFT: u32 = 40;
const NS_PER_S: u64 = 1_000_000_000;
/// The target is kept for this long while the window does not change.
const TARGET_HOLD_NS: u64 = NS_PER_S / 32;
/// Round-trip times within this of a reduction still carry the queue that caused it.
const SETTLING_NS: u64 = NS_PER_S;
/// Packets per increment of the Reno window, in windows: 15/8 = (1 + beta) / (3 (1 - beta)) (section 4.3).
const RENO_PACKETS: (u32, u32) = (15, 8);

/// The state of CUBIC.
#[derive(Debug)]
pub(crate) struct Cubic {
    timers: Timers,
    slow_start: HyStart,
    curve: Curve,
}

/// The growth above the threshold, and what it has learnt about the path.
#[derive(Debug, Default)]
struct Curve {
    /// `W_max` (section 4.1.2): the window before the last reduction; 0 before the first.
    w_max: u32,
    /// The growth since the last reduction; `None` until the first acknowledgement after it.
    epoch: Option<Epoch>,
    /// Smallest round-trip time.
    min_rtt_ns: Option<u64>,
}

/// One period of growth between two reductions.
#[derive(Debug)]
struct Epoch {
    /// When congestion avoidance began or resumed (`epoch_start`, section 4.1.2).
    epoch_start_ns: u64,
    /// `K` (section 4.2), in 1/1024 s.
    k: u64,
    /// The plateau: `W_max`, or the window if it is larger (`bic_origin_point`).
    origin_point: u32,
    /// `W_est` (section 4.3), the window that Reno would have, and packets acknowledged towards its next increment.
    w_est: u32,
    w_est_acked: u32,
    /// When and at which window the pace was last set, and the pace itself.
    updated_ns: u64,
    updated_cwnd: u32,
    per_increment: u32,
}

impl Control for Cubic {
    fn new(settings: &Settings) -> Self {
        Self { timers: settings.timers, slow_start: HyStart::default(), curve: Curve::default() }
    }

    fn init(&mut self, _window: &mut Window, context: &Context) {
        self.slow_start.restart(context);
    }

    fn on_acked(&mut self, window: &mut Window, context: &Context, acked: &Acked) {
        let Some(rtt_ns) = acked.rtt_ns else { return };
        let Some(min_rtt_ns) = self.curve.note_rtt(self.timers.clock_ns(context.now_ns), rtt_ns) else { return };
        if window.in_slow_start() && self.slow_start.is_over(window, context, rtt_ns, min_rtt_ns) {
            window.ssthresh = window.cwnd;
        }
    }

    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack) {
        if !context.cwnd_limited {
            return;
        }
        let left = if window.in_slow_start() { window.slow_start(ack.acked) } else { ack.acked };
        if left > 0 {
            let per_increment = self.curve.packets_per_increment(self.timers, context.now_ns, window.cwnd, left);
            window.grow(per_increment, left);
        }
    }

    fn ssthresh(&mut self, window: &mut Window, _context: &Context) -> u32 {
        self.curve.reduce(window.cwnd).max(MIN_SSTHRESH_PACKETS)
    }

    /// After a timeout, what was learnt no longer holds.
    fn on_state(&mut self, _window: &mut Window, context: &Context, state: State) {
        if state == State::Loss {
            self.curve = Curve::default();
            self.slow_start.restart(context);
        }
    }

    fn on_event(&mut self, _window: &mut Window, context: &Context, event: Event) {
        if event == Event::TxStart {
            self.curve.shift(self.timers.clock_ns(context.now_ns), self.timers.clock_ns(context.last_sent_ns));
        }
    }

    fn report(&self) -> Report {
        let epoch = self.curve.epoch.as_ref().map(|epoch| congestion::Epoch {
            w_max_packets: self.curve.w_max,
            k_ns: epoch.k * NS_PER_S / 1024,
            origin_point_packets: epoch.origin_point,
        });
        Report { phase: None, slow_start: self.slow_start.sign(), epoch }
    }
}

impl Curve {
    /// Packets that have to be acknowledged for the window to grow by one; `acked` more just were (`bictcp_update`).
    fn packets_per_increment(&mut self, timers: Timers, now_ns: u64, cwnd: u32, acked: u32) -> u32 {
        let now_ns = timers.clock_ns(now_ns);
        let (w_max, min_rtt_ns) = (self.w_max, timers.timeout_ns(self.min_rtt_ns.unwrap_or(0)));
        let epoch = match &mut self.epoch {
            Some(epoch) => {
                epoch.w_est_acked += acked;
                if epoch.updated_cwnd == cwnd && now_ns - epoch.updated_ns <= TARGET_HOLD_NS {
                    return epoch.per_increment;
                }
                if epoch.updated_ns == now_ns {
                    return epoch.keep_up(cwnd);
                }
                epoch
            }
            none => none.insert(Epoch::begin(now_ns, cwnd, w_max, acked)),
        };
        let first = w_max == 0;
        epoch.update(now_ns, min_rtt_ns, cwnd, first);
        epoch.per_increment
    }

    /// Multiplicative decrease (section 4.6) and fast convergence (section 4.7).
    fn reduce(&mut self, cwnd: u32) -> u32 {
        self.epoch = None;
        self.w_max = if cwnd < self.w_max { scaled(cwnd, BETA_SCALE + BETA) / 2 } else { cwnd };
        scaled(cwnd, BETA)
    }

    /// Takes in a round-trip time; returns the smallest so far, or `None` if this one says nothing about the path.
    fn note_rtt(&mut self, now_ns: u64, rtt_ns: u64) -> Option<u64> {
        if self.epoch.as_ref().is_some_and(|epoch| now_ns - epoch.epoch_start_ns < SETTLING_NS) {
            return None;
        }
        self.min_rtt_ns = Some(self.min_rtt_ns.map_or(rtt_ns, |min| min.min(rtt_ns)));
        self.min_rtt_ns
    }

    /// An idle time does not count as growth (section 4.2): shifts the curve by it.
    fn shift(&mut self, now_ns: u64, idle_since_ns: u64) {
        if let Some(epoch) = &mut self.epoch {
            epoch.epoch_start_ns = (epoch.epoch_start_ns + (now_ns - idle_since_ns)).min(now_ns);
        }
    }
}

impl Epoch {
    fn begin(now_ns: u64, cwnd: u32, w_max: u32, acked: u32) -> Self {
        let below = u64::from(w_max.saturating_sub(cwnd));
        Self {
            epoch_start_ns: now_ns,
            k: cube_root((below << CUBE_SHIFT) / C_SCALED),
            origin_point: w_max.max(cwnd),
            w_est: cwnd,
            w_est_acked: acked,
            updated_ns: now_ns,
            updated_cwnd: cwnd,
            per_increment: 0,
        }
    }

    fn update(&mut self, now_ns: u64, min_rtt_ns: u64, cwnd: u32, first: bool) {
        self.updated_ns = now_ns;
        self.updated_cwnd = cwnd;
        // The target is where the curve will be one round trip from now (section 4.2).
        let target = self.curve(now_ns - self.epoch_start_ns + min_rtt_ns);
        let mut per_increment = if target > u64::from(cwnd) {
            cwnd / (target - u64::from(cwnd)).min(u64::from(cwnd)) as u32
        } else {
            100 * cwnd
        };
        if first {
            // Before the first reduction there is no plateau to respect: grow by at least 5 % per round trip.
            per_increment = per_increment.min(20);
        }
        self.per_increment = per_increment;
        self.keep_up(cwnd);
    }

    /// The pace, which is no slower than Reno's; the window grows by at most one packet per two packets acknowledged.
    fn keep_up(&mut self, cwnd: u32) -> u32 {
        self.per_increment = self.per_increment.min(self.reno_pace(cwnd)).max(2);
        self.per_increment
    }

    /// W(t) in packets, t given in ns.
    fn curve(&self, t_ns: u64) -> u64 {
        let t = (u128::from(t_ns) * 1024 / u128::from(NS_PER_S)) as u64;
        let offset = u128::from(t.abs_diff(self.k));
        let delta = ((u128::from(C_SCALED) * offset * offset * offset) >> CUBE_SHIFT) as u64;
        let origin_point = u64::from(self.origin_point);
        if t < self.k { origin_point.saturating_sub(delta) } else { origin_point.saturating_add(delta) }
    }

    /// The pace that keeps up with Reno, `u32::MAX` where CUBIC is ahead anyway (section 4.3).
    fn reno_pace(&mut self, cwnd: u32) -> u32 {
        let per_increment = (cwnd * RENO_PACKETS.0 / RENO_PACKETS.1).max(1);
        // `while credit > n: credit -= n`, in one step.
        let increments = self.w_est_acked.saturating_sub(1) / per_increment;
        self.w_est += increments;
        self.w_est_acked -= increments * per_increment;
        match self.w_est.saturating_sub(cwnd) {
            0 => u32::MAX,
            ahead => cwnd / ahead,
        }
    }
}

fn scaled(cwnd: u32, factor: u32) -> u32 {
    (u64::from(cwnd) * u64::from(factor) / u64::from(BETA_SCALE)) as u32
}

/// The integer part of the cube root, bit by bit.
fn cube_root(value: u64) -> u64 {
    // 2^21 cubed is 2^63: 22 bits are enough for any u64.
    (0..22).rev().fold(0u64, |root, bit| {
        let candidate = root | 1 << bit;
        if u128::from(candidate).pow(3) <= u128::from(value) { candidate } else { root }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The window over time after a reduction at `max` packets, every round trip of `rtt_ms`, one acknowledgement a
    /// packet.
    fn grow(max: u32, rtt_ms: u64, rounds: u64) -> Vec<u32> {
        let (mut cubic, mut window) =
            (Cubic::new(&Settings { timers: Timers::Exact, ..Settings::DEFAULT }), Window::new(max));
        cubic.curve.note_rtt(0, rtt_ms * MS);
        window.ssthresh = cubic.ssthresh(&mut window, &Context::EMPTY);
        window.cwnd = window.ssthresh;
        (0..rounds)
            .map(|round| {
                let cwnd = u64::from(window.cwnd);
                for packet in 0..cwnd {
                    let now_ns = (round * rtt_ms + packet * rtt_ms / cwnd) * MS;
                    cubic.on_ack(&mut window, &Context { now_ns, ..Context::EMPTY }, &Ack::of(1));
                }
                window.cwnd
            })
            .collect()
    }

    #[test]
    fn the_cube_root_is_exact() {
        for root in [0u64, 1, 2, 3, 10, 999, 1 << 20, 2_642_245] {
            assert_eq!(cube_root(root.pow(3)), root);
            assert_eq!(cube_root(root.pow(3) + 3 * root), root);
            assert!(root == 0 || cube_root(root.pow(3) - 1) == root - 1);
        }
    }

    #[test]
    fn the_plateau_is_reached_after_k_seconds() {
        // W_max = 1000, reduced to 1000 * 717 / 1024 = 700: K = cbrt(300 / 0.4004) = 9.08 s; with an RTT of 200 ms,
        // where Reno (0.53 packets a round) is slower: after 9 s at the plateau, within the packet that each side is
        // rounded by.
        let windows = grow(1000, 200, 91);
        assert!((998..=1000).contains(&windows[45]), "{}", windows[45]);
        // Half way, at 4.54 s: 1000 - 0.4004 * 4.54^3 = 962.5; the window runs up to one RTT ahead: W(4.74) = 967.
        assert!((961..=968).contains(&windows[22]), "{}", windows[22]);
        // Twice K, 18.2 s: the curve is back at + 300: 1300, W(18.4) = 1323.
        assert!((1295..=1324).contains(&windows[90]), "{}", windows[90]);
    }

    #[test]
    fn on_short_paths_it_is_reno() {
        // W_max = 40 -> 28; K = cbrt(12 / 0.4) = 3.1 s. RTT 10 ms: 0.533 packets a round (15/8 windows of
        // acknowledgements each): 20 rounds = 0.2 s are about 10 packets, while the curve alone would give 12 * (1 -
        // (2.9/3.1)^3) = 2.2.
        let windows = grow(40, 10, 20);
        assert!((36..=39).contains(&windows[19]), "{}", windows[19]);
    }

    #[test]
    fn congestion_multiplies_the_window_by_717_over_1024() {
        // 1000 * 717 / 1024 = 700.2; 10 * 717 / 1024 = 7.002.
        assert_eq!(Curve::default().reduce(1000), 700);
        assert_eq!(Curve::default().reduce(10), 7);
    }

    #[test]
    fn fast_convergence_gives_way_when_the_window_did_not_recover() {
        let mut curve = Curve::default();
        curve.reduce(1000);
        assert_eq!(curve.w_max, 1000);
        // Reduced again at 800 < 1000: 800 * (1024 + 717) / 2048 = 680.08.
        curve.reduce(800);
        assert_eq!(curve.w_max, 680);
        // Reduced at 900 > 680: remembered as it is.
        curve.reduce(900);
        assert_eq!(curve.w_max, 900);
    }

    #[test]
    fn idle_time_is_no_growth() {
        let mut curve = Curve { w_max: 1000, ..Curve::default() };
        curve.packets_per_increment(Timers::Exact, 0, 700, 1);
        curve.shift(100_000 * MS, 1_000 * MS);
        assert_eq!(curve.epoch.unwrap().epoch_start_ns, 99_000 * MS);
    }

    #[test]
    fn the_target_is_set_at_most_once_a_jiffy() {
        // `bictcp_update`. A jiffy lasts from 1000 ms to 1004 ms; at 300 packets below the plateau the curve, not Reno,
        // decides.
        let timers = Timers::Jiffies { age_ns: 0 };
        let mut curve = Curve { w_max: 1000, ..Curve::default() };
        curve.packets_per_increment(timers, 0, 700, 1);
        let mut pace = |now_ms: u64, cwnd| curve.packets_per_increment(timers, now_ms * MS, cwnd, 1);
        let first = pace(1000, 710);
        assert_eq!(pace(1003, 720), first);
        assert_ne!(pace(1004, 720), first);
    }

    #[test]
    fn a_very_long_epoch_does_not_overflow() {
        let mut curve = Curve { w_max: 1000, ..Curve::default() };
        curve.packets_per_increment(Timers::Exact, 0, 700, 1);
        assert_eq!(curve.packets_per_increment(Timers::Exact, 86_400 * NS_PER_S, 1000, 1), 2);
    }
}
