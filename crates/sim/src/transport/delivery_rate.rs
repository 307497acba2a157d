//! Measures how fast packets are delivered (draft-ietf-ccwg-bbr, section 4.1; the kernel's `tcp_rate.c`).
//!
//! Every packet carries a note of how much had been delivered when it was sent. When the packet itself is delivered,
//! the difference and the elapsed time give a sample of the delivery rate. The elapsed time is either that of sending
//! or that of acknowledging, whichever is longer, so that bunched acknowledgements do not make the path look faster
//! than it is.

use crate::transport::congestion::RateSample;

/// What is noted on a packet when it is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Note {
    /// When the last delivery before it was reported.
    pub(crate) delivered_ns: u64,
    /// When the first packet of the sending interval was sent.
    pub(crate) first_sent_ns: u64,
    /// Packets delivered before, modulo 2^32. The next two counts are also modulo 2^32.
    pub(crate) delivered: u32,
    /// Those delivered packets that were marked with congestion.
    pub(crate) delivered_ce: u32,
    /// Packets marked lost before.
    pub(crate) lost: u32,
    /// Packets in flight, this one included.
    pub(crate) in_flight: u32,
}

/// A packet that is delivered, as it was when it was last sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) sent_ns: u64,
    /// Its number among all transmissions. It shows which of two was later, even if both have the same time.
    pub(crate) order: u64,
    pub(crate) note: Note,
    /// The application was the limit.
    pub(crate) app_limited: bool,
    /// It was not the first transmission of its data.
    pub(crate) is_retransmission: bool,
}

/// Counts deliveries.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    delivered: u64,
    delivered_ce: u64,
    delivered_ns: u64,
    /// When the newest delivered packet was sent.
    first_sent_ns: u64,
    /// Packets count as limited by the application until this many packets have been delivered.
    app_limited_until: Option<u64>,
    /// The newest packet delivered by the current acknowledgement, and the length of its sending interval.
    newest: Option<(Transmission, u64)>,
    measured: Measured,
}

/// The delivery rate to report: the last one that the application did not limit, or a later, greater one that it
/// limited.
#[derive(Debug, Default)]
struct Measured {
    packets: u32,
    /// 0 if nothing was measured yet.
    interval_ns: u64,
    app_limited: bool,
}

impl Delivery {
    /// Packets delivered.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// How many of them were marked with congestion.
    pub(crate) fn delivered_ce(&self) -> u64 {
        self.delivered_ce
    }

    /// When the last delivery was reported.
    pub(crate) fn delivered_ns(&self) -> u64 {
        self.delivered_ns
    }

    /// Whether the application is the limit.
    #[inline]
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Last measured rate, in bits of payload per second (`tcp_compute_delivery_rate`).
    pub(crate) fn rate_bps(&self, mss_bytes: u32) -> Option<u64> {
        let Measured { packets, interval_ns, .. } = self.measured;
        let bits = u64::from(packets) * u64::from(8 * mss_bytes);
        // Saturates at 2 GB in one interval.
        bits.saturating_mul(1_000_000_000).checked_div(interval_ns)
    }

    /// Whether the application was the limit while that rate was measured.
    pub(crate) fn rate_is_app_limited(&self) -> bool {
        self.measured.app_limited
    }

    /// The application is the limit. The packets in flight, and all packets sent until these are delivered, do not show
    /// how fast the path could be.
    pub(crate) fn mark_app_limited(&mut self, in_flight: u32) {
        self.app_limited_until = Some(self.delivered + u64::from(in_flight));
    }

    /// The note for a packet that is sent now. It is `first` if nothing else is outstanding; `in_flight` includes it.
    #[inline]
    pub(crate) fn note(&mut self, now_ns: u64, first: bool, lost: u64, in_flight: u32) -> Note {
        if first {
            self.first_sent_ns = now_ns;
            self.delivered_ns = now_ns;
        }
        Note {
            delivered_ns: self.delivered_ns,
            first_sent_ns: self.first_sent_ns,
            delivered: self.delivered as u32,
            delivered_ce: self.delivered_ce as u32,
            lost: lost as u32,
            in_flight,
        }
    }

    /// An acknowledgement has arrived.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.newest = None;
    }

    /// The acknowledgement delivers a packet.
    #[inline]
    pub(crate) fn on_delivered(&mut self, sent: &Transmission) {
        if self.newest.is_none_or(|(newest, _)| sent.order > newest.order) {
            self.newest = Some((*sent, sent.sent_ns - sent.note.first_sent_ns));
            self.first_sent_ns = sent.sent_ns;
        }
    }

    /// The number of packets that had been delivered when the newest packet of this acknowledgement was sent.
    #[inline]
    pub(crate) fn prior_delivered(&self) -> Option<u64> {
        let (newest, _) = self.newest?;
        Some(self.delivered - u64::from((self.delivered as u32).wrapping_sub(newest.note.delivered)))
    }

    /// Counts everything that the acknowledgement delivers: `packets` packets, of which `ce_packets` were marked.
    #[inline]
    pub(crate) fn count(&mut self, packets: u32, ce_packets: u32) {
        self.delivered += u64::from(packets);
        self.delivered_ce += u64::from(ce_packets);
    }

    /// Ends the acknowledgement; `lost` packets have been marked lost so far.
    #[inline]
    pub(crate) fn sample(&mut self, now_ns: u64, packets: u32, lost: u64, min_rtt_ns: u64) -> Option<RateSample> {
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        if packets > 0 {
            self.delivered_ns = now_ns;
        }
        let (sent, send_ns) = self.newest?;
        let note = &sent.note;
        let since = |total: u64, before: u32| (total as u32).wrapping_sub(before);
        let interval_ns = send_ns.max(now_ns - note.delivered_ns);
        let delivered = since(self.delivered, note.delivered);
        if interval_ns >= min_rtt_ns {
            self.measured.update(delivered, interval_ns, sent.app_limited);
        }
        Some(RateSample {
            delivered,
            delivered_ce: since(self.delivered_ce, note.delivered_ce),
            lost: since(lost, note.lost),
            interval_ns: (interval_ns >= min_rtt_ns).then_some(interval_ns),
            prior_delivered: self.delivered - u64::from(delivered),
            tx_in_flight: note.in_flight,
            is_app_limited: sent.app_limited,
            is_retransmission: sent.is_retransmission,
        })
    }
}

impl Measured {
    #[inline]
    fn update(&mut self, packets: u32, interval_ns: u64, app_limited: bool) {
        // Products are compared to avoid a division.
        let is_greater =
            || u128::from(packets) * u128::from(self.interval_ns) >= u128::from(self.packets) * u128::from(interval_ns);
        if !app_limited || is_greater() {
            *self = Self { packets, interval_ns, app_limited };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Sends packet `n` of a connection.
    fn send(delivery: &mut Delivery, n: u64, now_ns: u64) -> Transmission {
        let note = delivery.note(now_ns, n == 0, 0, n as u32 + 1);
        let app_limited = delivery.is_app_limited();
        Transmission { sent_ns: now_ns, order: n + 1, note, app_limited, is_retransmission: false }
    }

    fn acknowledge(delivery: &mut Delivery, sent: &[Transmission], now_ns: u64) -> RateSample {
        delivery.begin();
        sent.iter().for_each(|sent| delivery.on_delivered(sent));
        delivery.count(sent.len() as u32, 0);
        delivery.sample(now_ns, sent.len() as u32, 0, 10 * MS).unwrap()
    }

    #[test]
    fn a_round_trip_of_packets_shows_the_rate_at_which_they_arrived() {
        let mut delivery = Delivery::default();
        // Ten packets are sent at once and acknowledged 1 ms apart from 20 ms on. The last sample is 10 packets in the
        // 29 ms since the first was sent.
        let sent: Vec<_> = (0..10).map(|n| send(&mut delivery, n, 0)).collect();
        let samples: Vec<_> = (0..10).map(|n| acknowledge(&mut delivery, &sent[n..=n], (20 + n as u64) * MS)).collect();
        assert_eq!((samples[9].delivered, samples[9].interval_ns), (10, Some(29 * MS)));
        // A packet is sent when the first is acknowledged, at 20 ms, and acknowledged at 40 ms. One packet had been
        // delivered by 20 ms, and now it is 11.
        let mut delivery = Delivery::default();
        let sent: Vec<_> = (0..10).map(|n| send(&mut delivery, n, 0)).collect();
        acknowledge(&mut delivery, &sent[..1], 20 * MS);
        let next = send(&mut delivery, 10, 20 * MS);
        acknowledge(&mut delivery, &sent[1..], 29 * MS);
        let sample = acknowledge(&mut delivery, &[next], 40 * MS);
        assert_eq!((sample.delivered, sample.interval_ns, sample.prior_delivered), (10, Some(20 * MS), 1));
        // 10 packets in 20 ms: 500 a second.
        assert_eq!(sample.packets_per_s(1), Some(500));
    }

    #[test]
    fn acknowledgements_that_come_bunched_do_not_make_the_path_faster() {
        let mut delivery = Delivery::default();
        // Packets are sent 10 ms apart, and all ten are acknowledged at 100 ms. Sending took 90 ms, which limits the
        // rate.
        let sent: Vec<_> = (0..10).map(|n| send(&mut delivery, n, 10 * n * MS)).collect();
        let sample = acknowledge(&mut delivery, &sent, 100 * MS);
        assert_eq!((sample.delivered, sample.interval_ns), (10, Some(100 * MS)));
    }

    #[test]
    fn an_interval_shorter_than_the_round_trip_says_nothing() {
        let mut delivery = Delivery::default();
        let sent = send(&mut delivery, 0, 0);
        assert_eq!(acknowledge(&mut delivery, &[sent], 9 * MS).interval_ns, None);
    }

    #[test]
    fn what_the_application_limited_is_marked_until_it_is_delivered() {
        let mut delivery = Delivery::default();
        let first = send(&mut delivery, 0, 0);
        delivery.mark_app_limited(1);
        let second = send(&mut delivery, 1, 5 * MS);
        assert!(!acknowledge(&mut delivery, &[first], 20 * MS).is_app_limited);
        // One packet was in flight when the application ran out of data. The mark ends with the second packet
        // delivered.
        assert!(delivery.is_app_limited());
        assert!(acknowledge(&mut delivery, &[second], 25 * MS).is_app_limited);
        assert!(!delivery.is_app_limited());
    }
}
