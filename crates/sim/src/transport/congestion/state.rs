//! The states of congestion.
//!
//! They are the kernel's (`enum tcp_ca_state`), because the controls are counterparts of the kernel's and distinguish what
//! these states distinguish: a reduction after a mark, a reduction after a loss, and a timeout. None of them is specific to
//! TCP. A sender of QUIC would enter [`State::Cwr`] and [`State::Recovery`] with a recovery period (RFC 9002, section
//! 7.3.2), which begins with an ECN mark or a loss, and [`State::Loss`] with persistent congestion (section 7.6).

/// The state of congestion of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// The normal state: no sign of loss or congestion.
    Open,
    /// Something arrived out of order; nothing is believed lost yet. A sender need not enter this state: it changes
    /// nothing about the window, but some controls do not trust their measurements then.
    Disorder,
    /// The window is being reduced after an ECN mark or a tail loss that was retransmitted.
    Cwr,
    /// The window is being reduced after a loss: fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}
