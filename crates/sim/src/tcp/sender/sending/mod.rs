//! Sending: what is sent and when ([`transmit`]), passing packets to the host ([`output`]), how many segments leave
//! together ([`offload`]), how much data may be in the host's own queue ([`small_queue`]),
//! whether the window is used ([`cwnd_validation`]), how much the application may write ([`buffer`]), what it is joined
//! into ([`pieces`]), and which segments carry the push flag ([`push`]).

pub(super) mod buffer;
pub(super) mod cwnd_validation;
pub(super) mod offload;
pub(super) mod output;
pub(super) mod pieces;
pub(super) mod push;
pub(super) mod small_queue;
pub(super) mod transmit;
