//! How connections end.

use super::script::{DEFAULTS, Script};
use bufferscope_sim::Ecn;
use bufferscope_sim::tcp::Flags;

const FIN_ACK: fn() -> Flags = || Flags::FIN | Flags::ACK;

#[test]
fn the_local_end_closes_first() {
    // google: close/close-local-close-then-remote-fin
    let mut t = Script::accept(&DEFAULTS, 100);
    t.close().sends(1..2);
    t.after(100).ack(2).sends_nothing();
    t.after(100).inject(2, FIN_ACK(), Ecn::NotEct, |_| {});
    t.acks(2, &[]);
}

#[test]
fn the_peer_closes_first() {
    // google: close/close-remote-fin-then-close
    let mut t = Script::accept(&DEFAULTS, 100);
    t.inject(1, FIN_ACK(), Ecn::NotEct, |_| {}).acks(2, &[]);
    t.close().sends(1..2);
    t.after(100).inject(2, Flags::ACK, Ecn::NotEct, |ack| ack.seq = 2).sends_nothing();
}

#[test]
fn a_fin_overtaken_by_a_later_acknowledgement_is_acknowledged() {
    // kernel: tcp_disorder_fin_in_FIN_WAIT.pkt
    let mut t = Script::accept(&DEFAULTS, 0);
    t.close().sends(1..2);
    t.inject(2, Flags::ACK, Ecn::NotEct, |ack| ack.seq = 2).sends_nothing();
    t.inject(1, FIN_ACK(), Ecn::NotEct, |_| {}).acks(2, &[]);
}
