//! Congestion control: how large the window is.
//!
//! One classic controller is generic over *slow start* (plain or HyStart) and over *congestion avoidance* (Reno or CUBIC).
//! Dispatch is by enum: it happens for every acknowledgement, and a closed set inlines where a box would not. When losses
//! are noticed and how the window shrinks during recovery is not decided here but in `sender`.
//!
//! Windows are counted in packets, as in the kernel.

mod cubic;
mod hystart;
mod reno;
mod slow_start;

use bufferscope_scenario::Congestion;
use cubic::Cubic;
use hystart::HyStart;
use reno::Reno;
use slow_start::{SlowStart, Standard};

/// Fewest packets a window shrinks to on congestion (RFC 5681, section 3.1, equation 4).
const MIN_SSTHRESH_PACKETS: u32 = 2;

/// The congestion control of one connection.
#[derive(Debug)]
pub(crate) enum Controller {
    /// RFC 5681.
    Reno(Classic<Standard, Reno>),
    /// RFC 9438 with HyStart, Linux' default.
    Cubic(Classic<HyStart, Cubic>),
}

/// A loss-based controller: slow start up to a threshold, then congestion avoidance.
#[derive(Debug)]
pub(crate) struct Classic<S, A> {
    window: Window,
    slow_start: S,
    avoidance: A,
}

/// The congestion window and its threshold, in packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// Packets that may be in flight.
    pub(crate) cwnd: u32,
    /// Below this the window grows by slow start; `u32::MAX` until the first congestion.
    pub(crate) ssthresh: u32,
    /// Packets acknowledged towards the next increment in congestion avoidance.
    credit: u32,
}

/// One round-trip measurement, as the controllers use it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RttSample {
    /// Time of the acknowledgement.
    pub(crate) now_ns: u64,
    /// Round-trip time of the newest packet acknowledged.
    pub(crate) rtt_ns: u64,
    /// First sequence number not yet acknowledged.
    pub(crate) una: u64,
    /// Next sequence number to be sent.
    pub(crate) nxt: u64,
}

/// How a window grows above the threshold, and how far it falls on congestion.
pub(crate) trait Avoidance {
    /// Packets that have to be acknowledged for the window to grow by one; `acked` more just were.
    fn packets_per_increment(&mut self, now_ns: u64, cwnd: u32, acked: u32) -> u32;

    /// The threshold after congestion at `cwnd`.
    fn reduce(&mut self, cwnd: u32) -> u32;

    /// Takes note of a round-trip time; the smallest so far, or `None` if this sample says nothing about the path.
    fn on_rtt(&mut self, sample: &RttSample) -> Option<u64>;

    /// A retransmission timeout: what was learnt no longer holds.
    fn on_timeout(&mut self) {}

    /// Data is sent again after nothing was in flight since `idle_since_ns`.
    fn on_restart(&mut self, _now_ns: u64, _idle_since_ns: u64) {}
}

macro_rules! dispatch {
    ($self:expr, $controller:ident => $body:expr) => {
        match $self {
            Controller::Reno($controller) => $body,
            Controller::Cubic($controller) => $body,
        }
    };
}

impl Controller {
    /// A controller that starts with `initial_window` packets.
    pub(crate) fn new(congestion: Congestion, initial_window: u32) -> Self {
        match congestion {
            Congestion::Reno => Self::Reno(Classic::new(initial_window, Standard, Reno)),
            Congestion::Cubic => Self::Cubic(Classic::new(initial_window, HyStart::default(), Cubic::default())),
        }
    }

    /// The window.
    #[inline]
    pub(crate) fn window(&self) -> &Window {
        dispatch!(self, c => &c.window)
    }

    /// Sets the window directly: recovery does, while it is in charge.
    #[inline]
    pub(crate) fn set_cwnd(&mut self, packets: u32) {
        dispatch!(self, c => c.window.cwnd = packets.max(1));
    }

    /// `acked` packets were delivered while the window was in full use.
    #[inline]
    pub(crate) fn on_ack(&mut self, now_ns: u64, acked: u32) {
        dispatch!(self, c => c.on_ack(now_ns, acked));
    }

    /// A round-trip time was measured.
    #[inline]
    pub(crate) fn on_rtt(&mut self, sample: &RttSample) {
        dispatch!(self, c => c.on_rtt(sample));
    }

    /// Congestion: sets the threshold and leaves the window to recovery.
    pub(crate) fn on_congestion(&mut self) {
        dispatch!(self, c => c.on_congestion());
    }

    /// A retransmission timeout. The first one for a flight of data also counts as congestion: call
    /// [`on_congestion`](Self::on_congestion) before.
    pub(crate) fn on_timeout(&mut self, sample: &RttSample) {
        dispatch!(self, c => c.on_timeout(sample));
    }

    /// Data is sent again after nothing was in flight since `idle_since_ns`.
    pub(crate) fn on_restart(&mut self, now_ns: u64, idle_since_ns: u64) {
        dispatch!(self, c => c.avoidance.on_restart(now_ns, idle_since_ns));
    }
}

impl<S: SlowStart, A: Avoidance> Classic<S, A> {
    fn new(initial_window: u32, slow_start: S, avoidance: A) -> Self {
        let window = Window { cwnd: initial_window, ssthresh: u32::MAX, credit: 0 };
        Self { window, slow_start, avoidance }
    }

    fn on_ack(&mut self, now_ns: u64, acked: u32) {
        let left = if self.window.in_slow_start() { self.window.grow_by_slow_start(acked) } else { acked };
        if left > 0 {
            let per_increment = self.avoidance.packets_per_increment(now_ns, self.window.cwnd, left);
            self.window.grow_by_credit(per_increment, left);
        }
    }

    fn on_rtt(&mut self, sample: &RttSample) {
        let Some(min_rtt_ns) = self.avoidance.on_rtt(sample) else { return };
        if self.window.in_slow_start() && self.slow_start.is_over(sample, min_rtt_ns, self.window.cwnd) {
            self.window.ssthresh = self.window.cwnd;
        }
    }

    fn on_congestion(&mut self) {
        self.window.ssthresh = self.avoidance.reduce(self.window.cwnd).max(MIN_SSTHRESH_PACKETS);
        self.window.credit = 0;
    }

    fn on_timeout(&mut self, sample: &RttSample) {
        self.window.credit = 0;
        self.avoidance.on_timeout();
        self.slow_start.on_timeout(sample);
    }
}

impl Window {
    /// Is the window below the threshold?
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows by one packet for each packet acknowledged, up to the threshold (RFC 5681, section 3.1, with the appropriate
    /// byte counting of RFC 3465 and no limit, as the kernel). Returns the packets left over for congestion avoidance.
    fn grow_by_slow_start(&mut self, acked: u32) -> u32 {
        let grown = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (grown - self.cwnd);
        self.cwnd = grown;
        left
    }

    /// Grows by one packet for every `per_increment` acknowledged, counting across acknowledgements.
    fn grow_by_credit(&mut self, per_increment: u32, acked: u32) {
        if self.credit >= per_increment {
            self.credit = 0;
            self.cwnd += 1;
        }
        self.credit += acked;
        let increments = self.credit / per_increment;
        self.credit -= increments * per_increment;
        self.cwnd += increments;
    }
}
