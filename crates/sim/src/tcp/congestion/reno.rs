//! Reno: one packet a round trip more, half the window less (RFC 5681, section 3.1; the kernel's `tcp_cong.c`).

use super::{Avoidance, RttSample};

/// Reno keeps no state.
#[derive(Debug)]
pub(crate) struct Reno;

impl Avoidance for Reno {
    fn packets_per_increment(&mut self, _now_ns: u64, cwnd: u32, _acked: u32) -> u32 {
        cwnd
    }

    fn reduce(&mut self, cwnd: u32) -> u32 {
        cwnd / 2
    }

    fn on_rtt(&mut self, sample: &RttSample) -> Option<u64> {
        Some(sample.rtt_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Controller;
    use bufferscope_scenario::Congestion;

    #[test]
    fn a_window_of_acknowledgements_adds_one_packet() {
        let mut reno = Controller::new(Congestion::Reno, 20);
        reno.on_congestion(); // ssthresh = 20 / 2 = 10
        reno.set_cwnd(10);
        // 10 packets at a window of 10, 11 at 11, 12 at 12; in ones and twos, as delayed acknowledgements come.
        for (acks, cwnd) in [(vec![2; 5], 11), (vec![1; 11], 12), (vec![2; 6], 13)] {
            acks.iter().for_each(|&acked| reno.on_ack(0, acked));
            assert_eq!(reno.window().cwnd, cwnd);
        }
    }

    #[test]
    fn congestion_halves_the_threshold_but_not_below_two() {
        for (cwnd, ssthresh) in [(100, 50), (11, 5), (3, 2), (1, 2)] {
            let mut reno = Controller::new(Congestion::Reno, cwnd);
            reno.on_congestion();
            assert_eq!(reno.window().ssthresh, ssthresh);
        }
    }

    #[test]
    fn slow_start_stops_at_the_threshold_and_hands_on_the_rest() {
        let mut reno = Controller::new(Congestion::Reno, 20);
        reno.on_congestion();
        reno.set_cwnd(8);
        // 12 acknowledged: 2 bring 8 to the threshold 10, the other 10 are a full window: 11.
        reno.on_ack(0, 12);
        assert_eq!(reno.window().cwnd, 11);
    }
}
