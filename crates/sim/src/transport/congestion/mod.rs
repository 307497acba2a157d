//! Congestion control: decides how much may be in flight, and how fast packets leave.
//!
//! Each control is a file of [`controls`] that implements [`Control`], the counterpart of the kernel's `struct
//! tcp_congestion_ops`, plus one line at the end of this file. Code that several of them share is in [`helpers`].
//! Dispatch is by enum: it happens for every acknowledgement, and a closed set can be inlined where a box cannot.
//!
//! The transport's sender decides what is lost, how the window shrinks during recovery and when a reduction is undone. A control that
//! *governs* ([`Control::GOVERNS`]) is the sole authority over its window, in recovery too.

mod context;
#[macro_use]
mod controller;
mod controls;
mod ecn_use;
mod helpers;
mod report;
mod settings;
mod state;
#[cfg(test)]
mod testing;
mod window;

pub(crate) use context::{Ack, Acked, Context, Event, LostPacket, RateSample};
pub(crate) use ecn_use::EcnUse;
pub(crate) use helpers::window_rate::rate_of_window;
pub use report::Epoch;
pub(crate) use report::{Report, SlowStartSign};
pub(crate) use settings::Settings;
pub use state::State;
pub(crate) use window::{MIN_SSTHRESH_PACKETS, UNPACED, Window};

/// A congestion control. Every hook gets the window, which it may change, and the state of the connection.
///
/// The hooks are called in the kernel's order. For one acknowledgement: [`on_acked`](Self::on_acked); then, as losses
/// are found, [`on_lost`](Self::on_lost), [`ssthresh`](Self::ssthresh), [`undo`](Self::undo) and
/// [`on_state`](Self::on_state); then [`on_ack`](Self::on_ack); and [`on_event`](Self::on_event) when data is sent.
pub(crate) trait Control: Sized {
    /// The control decides about the window in every state (the kernel's `cong_control`): proportional rate reduction
    /// does not touch the window, [`on_ack`](Self::on_ack) is called for every acknowledgement, and the control sets
    /// the pacing rate.
    const GOVERNS: bool = false;
    /// The kind of explicit congestion notification that it needs. Both ends of the connection then provide it.
    const ECN: EcnUse = EcnUse::AsConfigured;
    /// The send buffer grows to this many windows (`sndbuf_expand`).
    const BUFFERED_WINDOWS: u64 = 2;
    /// It wants to be notified of every lost packet ([`on_lost`](Self::on_lost)).
    const WATCHES_LOSSES: bool = false;

    /// For a connection with these settings.
    fn new(settings: &Settings) -> Self;

    /// The minimum number of segments of a packet at a pacing rate, where the control chooses it and not the host
    /// (`min_tso_segs`).
    fn min_tso_segs(_pacing_bytes_per_s: u64) -> Option<u32> {
        None
    }

    /// The handshake is complete (`init`). The window has its initial value.
    fn init(&mut self, _window: &mut Window, _context: &Context) {}

    /// An acknowledgement has arrived for outstanding data, and what it newly acknowledges has been counted
    /// (`pkts_acked`, `in_ack_event`). Called in every state, before looking for losses.
    fn on_acked(&mut self, _window: &mut Window, _context: &Context, _acked: &Acked) {}

    /// Time to grow (`cong_avoid`): packets were delivered and the window is not being reduced. Check
    /// [`Context::cwnd_limited`] before growing. For a control that governs (`cong_control`), this is called for every
    /// acknowledgement.
    fn on_ack(&mut self, window: &mut Window, context: &Context, ack: &Ack);

    /// The threshold after congestion: losses, an ECN echo, or a timeout (`ssthresh`). The sender sets the window.
    fn ssthresh(&mut self, window: &mut Window, context: &Context) -> u32;

    /// The window after an unfounded reduction is undone (`undo_cwnd`).
    fn undo(&mut self, window: &mut Window, _context: &Context) -> u32 {
        window.undone()
    }

    /// The congestion machinery enters `state` (`set_state`).
    fn on_state(&mut self, _window: &mut Window, _context: &Context, _state: State) {}

    /// See [`Event`] (`cwnd_event`).
    fn on_event(&mut self, _window: &mut Window, _context: &Context, _event: Event) {}

    /// A packet was marked lost; only with [`WATCHES_LOSSES`](Self::WATCHES_LOSSES).
    fn on_lost(&mut self, _window: &mut Window, _context: &Context, _lost: &LostPacket) {}

    /// The state of its own that a log shows.
    fn report(&self) -> Report {
        Report::default()
    }
}

controls! {
    Reno(controls::reno::Reno),
    Cubic(controls::cubic::Cubic),
    Vegas(controls::vegas::Vegas),
    Westwood(controls::westwood::Westwood),
    Window(controls::fixed_window::FixedWindow),
    Ledbat(controls::ledbat::Ledbat),
    LedbatPlusPlus(controls::ledbat_plus_plus::LedbatPlusPlus),
    Bbr(controls::bbr::Bbr),
    Bbr3(controls::bbr3::Bbr3),
    Dctcp(controls::dctcp::Dctcp),
    Prague(controls::prague::Prague),
}
