//! The state of a congestion control that its window does not show, for a log.

/// The state of a control.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Report {
    /// The phase, if the control has any besides slow start and congestion avoidance.
    pub(crate) phase: Option<&'static str>,
    /// The sign that has ended slow start, if the control looks for any.
    pub(crate) slow_start: Option<SlowStartSign>,
    /// CUBIC's growth since the last reduction.
    pub(crate) epoch: Option<Epoch>,
}

/// A sign of a full path that ends slow start (HyStart).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlowStartSign {
    /// The acknowledgements of one round have come in for as long as the path is.
    AckTrain,
    /// The round-trip time has risen.
    DelayIncrease,
}

/// A period of growth of CUBIC (RFC 9438, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// `W_max`: the window before the last reduction; 0 before the first.
    pub w_max_packets: u32,
    /// `K`: the time until the curve reaches its plateau.
    pub k_ns: u64,
    /// The window of that plateau.
    pub origin_point_packets: u32,
}

impl Report {
    /// The state of a control with phases.
    pub(crate) fn of_phase(phase: &'static str) -> Self {
        Self { phase: Some(phase), ..Self::default() }
    }
}
