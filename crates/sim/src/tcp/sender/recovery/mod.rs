//! The reaction to losses: the congestion states ([`alarm`], [`reduction`]), the reduction of the window ([`prr`]),
//! undoing a reduction that was unfounded ([`undo`]), and retransmissions ([`repair`]).

pub(super) mod alarm;
pub(super) mod prr;
mod reduction;
mod repair;
pub(super) mod undo;
