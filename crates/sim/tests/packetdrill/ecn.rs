//! Explicit congestion notification.

use crate::script::{DEFAULTS, Script};
use bufferscope_sim::packet::Ecn;
use bufferscope_sim::tcp::{Config, Flags, Role, State};

const ECN: Config = Config { ecn: true, ..DEFAULTS };

#[test]
fn data_is_sent_with_ect_0() {
    // google: ecn/ecn-uses-ect0
    let mut t = Script::new(&ECN, Role::Client);
    t.connect().expect_flags(Flags::SYN | Flags::ECE | Flags::CWR);
    t.after(2).inject(1, Flags::SYN | Flags::ACK | Flags::ECE, Ecn::NotEct, |syn_ack| syn_ack.seq = 0);
    t.expect_flags(Flags::ACK);
    t.after(2).write(1000);
    assert_eq!(t.next_sent().1.ecn, Ecn::Ect0);
}

#[test]
fn an_echo_reduces_the_window_in_proportion() {
    // google: cwnd_moderation/cwnd-moderation-ecn-enter-cwr-no-moderation-700
    let mut t = Script::new(&ECN, Role::Server);
    t.inject(0, Flags::SYN | Flags::ECE | Flags::CWR, Ecn::NotEct, |syn| syn.seq = 0);
    t.expect_flags(Flags::SYN | Flags::ACK | Flags::ECE);
    t.after(100).ack(1).write(4000).sends(1..4001);
    assert_eq!(t.cwnd(), 10);
    t.after(100).inject(1001, Flags::ACK | Flags::ECE, Ecn::NotEct, |_| {});
    // Three in flight, threshold 7, one delivered: 3 + 1, and one more as SND.UNA advanced and nothing was lost (RFC 9937; the
    // script is older and has 4).
    assert_eq!((t.state(), t.cwnd(), t.ssthresh()), (State::Cwr, 5, Some(7)));
}
