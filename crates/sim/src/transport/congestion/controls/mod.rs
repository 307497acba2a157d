//! The congestion controls, one file each; each BBR is a directory with one file per phase.

pub(super) mod bbr;
pub(super) mod bbr3;
pub(super) mod cubic;
pub(super) mod dctcp;
pub(super) mod fixed_window;
pub(super) mod ledbat;
pub(super) mod ledbat_plus_plus;
pub(super) mod prague;
pub(super) mod reno;
pub(super) mod vegas;
pub(super) mod westwood;
