//! The states of congestion.

/// The kernel's congestion states (`enum tcp_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The normal state: no sign of loss or congestion.
    Open,
    /// Something arrived out of order; nothing is believed lost yet.
    Disorder,
    /// The window is being reduced after an ECN mark or a repaired tail loss.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}
