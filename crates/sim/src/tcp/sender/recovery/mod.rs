//! The reaction to losses: the congestion states ([`fast_retransmit`], [`reduction`]), the reduction of the window
//! ([`prr`]), undoing a reduction that was unfounded ([`undo`]), and retransmissions ([`retransmit`]).

pub(super) mod fast_retransmit;
pub(super) mod prr;
mod reduction;
mod retransmit;
pub(super) mod undo;
