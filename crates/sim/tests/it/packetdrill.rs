//! The behaviour of Linux' TCP according to packetdrill's scripts, retold in our own words. The input is segments that
//! arrive at given times; the output is the segments sent, the window, the threshold and the state.
//!
//! Scripts named `google:` are those of github.com/google/packetdrill under `gtests/net/tcp`, most of which are in the
//! kernel's `tools/testing/selftests/net/packetdrill` too; `kernel:` are in the latter only; `ligurio:` are those of
//! github.com/ligurio/packetdrill-testcases under `testcases/tcp`. Where segmentation offload, which these tests leave
//! out, makes a script send in larger pieces, the bytes are the same.

// `&[1..1001]` is what packetdrill writes as `<sack 1:1001>`.
#![allow(clippy::single_range_in_vec_init)]

mod close;
mod cubic;
mod ecn;
mod fast_retransmit;
mod receiver;
mod recovery;
mod sack;
mod script;
mod slow_start;
mod timeouts;
