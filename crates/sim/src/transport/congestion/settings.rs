//! The settings of a connection that its congestion control depends on.

use bufferscope_scenario::Congestion;

use crate::timers::Timers;

/// Settings of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Which control.
    pub(crate) congestion: Congestion,
    /// Initial window.
    pub(crate) initial_window_packets: u32,
    /// Slow-start threshold that the connection starts with, `u32::MAX` for none. It has no effect if the control
    /// governs its window.
    pub(crate) ssthresh_packets: u32,
    /// The window of [`Congestion::Window`].
    pub(crate) window_packets: u32,
    /// The queueing delay that a control with a target aims at.
    pub(crate) target_ns: u64,
    /// Seed of the control's random numbers.
    pub(crate) seed: u64,
    /// How precise the host's timers are.
    pub(crate) timers: Timers,
}

#[cfg(test)]
impl Settings {
    /// Linux' defaults, with CUBIC.
    pub(crate) const DEFAULT: Self = Self {
        congestion: Congestion::Cubic,
        initial_window_packets: 10,
        ssthresh_packets: u32::MAX,
        window_packets: 10,
        target_ns: 100_000_000,
        seed: 0,
        timers: Timers::Exact,
    };
}
