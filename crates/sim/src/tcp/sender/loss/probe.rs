//! Tail loss probe (RFC 8985, section 7; the kernel's `tcp_send_loss_probe`).
//!
//! When acknowledgements stop, the sender sends one more segment after two round trips. So RACK detects the loss of a
//! flight's last segments before a timeout occurs.

use crate::tcp::journal::Transition;
use crate::tcp::sender::Sender;
use crate::tcp::sender::sending::output::Output;
use crate::tcp::sender::sending::transmit::Limit;
use crate::transport::rtt::RTO_INITIAL_NS;

/// Allowance for a delayed acknowledgement of a lone segment (the kernel adds `TCP_RTO_MIN`).
const LONE_SEGMENT_NS: u64 = 200_000_000;
/// Slack in all other cases (`TCP_TIMEOUT_MIN_US`).
const SLACK_NS: u64 = 2_000_000;

/// The probe whose outcome is not known yet.
#[derive(Debug, Default)]
pub(crate) struct TailProbe {
    under_way: Option<UnderWay>,
}

#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// The outcome is known when this is acknowledged (TLP.end_seq).
    end: u64,
    /// The probe repeated the last segment (TLP.is_retrans).
    repeats: bool,
}

/// The parts of an acknowledgement that concern a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// The cumulative acknowledgement.
    pub(crate) ack: u64,
    /// The acknowledgement reports the probe itself as a duplicate.
    pub(crate) duplicate: bool,
    /// The acknowledgement repeats the previous one and reports nothing new.
    pub(crate) pure_repeat: bool,
}

impl TailProbe {
    /// Time after which a probe is due (the PTO of section 7.2).
    pub(crate) fn timeout_ns(srtt_ns: Option<u64>, packets_out: u32) -> u64 {
        let slack_ns = if packets_out == 1 { LONE_SEGMENT_NS } else { SLACK_NS };
        srtt_ns.map_or(RTO_INITIAL_NS, |srtt_ns| 2 * srtt_ns + slack_ns)
    }

    /// Whether the outcome of a probe is still open. There is never more than one.
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// End of the segment that the probe repeated.
    pub(crate) fn repeated_end(&self) -> Option<u64> {
        self.under_way.filter(|probe| probe.repeats).map(|probe| probe.end)
    }

    /// A probe was sent; `end` is the next sequence number to be sent.
    pub(crate) fn sent(&mut self, end: u64, repeats: bool) {
        self.under_way = Some(UnderWay { end, repeats });
    }

    /// Recovery has begun, so the probe's outcome no longer matters.
    pub(crate) fn cancel(&mut self) {
        self.under_way = None;
    }

    /// Evaluates an acknowledgement (section 7.4). Returns whether the probe repaired a loss, which is a congestion
    /// signal.
    pub(crate) fn on_ack(&mut self, answer: Answer) -> bool {
        let Some(probe) = self.under_way.filter(|probe| answer.ack >= probe.end) else { return false };
        let settled = !probe.repeats || answer.duplicate || answer.ack > probe.end || answer.pure_repeat;
        if settled {
            self.under_way = None;
        }
        probe.repeats && !answer.duplicate && answer.ack > probe.end
    }
}

impl Sender {
    /// Sends a tail loss probe: new data if there is any, otherwise the last segment again (RFC 8985, section 7.3;
    /// `tcp_send_loss_probe`).
    pub(in crate::tcp::sender) fn send_probe(&mut self, output: &mut Output) {
        if !self.probe.is_under_way() && self.send_probe_segment(output) {
            // The timeout counts from now, not from when the oldest segment was sent.
            self.timer.disarm();
        }
        self.rearm_retransmit(output.now_ns);
    }

    /// Sends the probe's segment. Returns whether one was sent.
    fn send_probe_segment(&mut self, output: &mut Output) -> bool {
        if self.next_new().is_some_and(|(len, fin)| self.fits_peer_window(len, fin)) {
            let sent = self.transmit_new(output, Limit::OneMore) > 0;
            if sent {
                self.probe.sent(self.nxt, false);
                self.note(|_| Transition::Probed { new_data: true });
            }
            return sent;
        }
        let Some(last) = self.board.ids().next_back() else { return false };
        if self.still_in_host_queue(last) {
            return false;
        }
        let sent = self.repeat_last(last, output);
        if sent {
            self.probe.sent(self.nxt, true);
            self.note(|_| Transition::Probed { new_data: false });
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING_NEW: Answer = Answer { ack: 1000, duplicate: false, pure_repeat: false };

    fn probe(repeats: bool) -> TailProbe {
        let mut probe = TailProbe::default();
        probe.sent(1000, repeats);
        probe
    }

    #[test]
    fn two_round_trips_and_room_for_a_delayed_acknowledgement() {
        assert_eq!(TailProbe::timeout_ns(Some(50_000_000), 10), 102_000_000);
        assert_eq!(TailProbe::timeout_ns(Some(50_000_000), 1), 300_000_000);
        assert_eq!(TailProbe::timeout_ns(None, 1), 1_000_000_000);
    }

    #[test]
    fn a_probe_with_new_data_means_nothing_by_itself() {
        let mut probe = probe(false);
        assert!(!probe.on_ack(NOTHING_NEW));
        assert!(!probe.is_under_way());
    }

    #[test]
    fn an_earlier_acknowledgement_leaves_it_open() {
        let mut probe = probe(true);
        assert!(!probe.on_ack(Answer { ack: 999, ..NOTHING_NEW }));
        assert!(probe.is_under_way());
    }

    #[test]
    fn a_repeated_segment_without_a_duplicate_has_repaired_a_loss() {
        // The first acknowledgement of everything may be for the original. A further one that reports no duplicate
        // shows that the original never arrived.
        let mut probe = probe(true);
        assert!(!probe.on_ack(NOTHING_NEW));
        assert!(probe.is_under_way());
        assert!(probe.on_ack(Answer { ack: 2000, ..NOTHING_NEW }));
    }

    #[test]
    fn a_reported_duplicate_was_no_loss() {
        // This holds whether or not the same acknowledgement also covers later data.
        for ack in [1000, 2000] {
            let mut probe = probe(true);
            assert!(!probe.on_ack(Answer { ack, duplicate: true, pure_repeat: false }));
            assert!(!probe.is_under_way());
        }
    }
}
