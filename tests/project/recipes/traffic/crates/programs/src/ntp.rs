//! `ntp`: requests of a client of the Network Time Protocol, and the server's answers (RFC 5905).
//!
//! Departures: the client polls at a constant interval, and no clock is set.

use bufferscope_scenario::NtpTraffic;

use crate::datagrams::{OverUdp, Plans};
use crate::isochronous::{Rhythm, Senders};
use crate::random::Uniform;

/// A client, whose requests are answered at once.
#[derive(Debug)]
pub(crate) struct Ntp;

impl OverUdp for Ntp {
    type Parameters = NtpTraffic;
    type Programs = Senders;

    fn programs<U: Uniform>(parameters: &NtpTraffic, spread_ns: u64, plans: &mut Plans<U>) -> Senders {
        let &NtpTraffic { poll_ns } = parameters;
        let requests = Rhythm { interval_ns: poll_ns, payload_bytes: NtpTraffic::PAYLOAD_BYTES, timeout_ns: poll_ns };
        Senders::round_trips(requests, spread_ns, plans)
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::{End, Experiment};

    use crate::datagrams::{Arrival, Datagram, DatagramProgram, DatagramSockets, Punctual};
    use crate::netalyzr::NetalyzrEstimate;
    use crate::probes::Outcome;
    use crate::sockets::Transfer;

    const MS: u64 = 1_000_000;

    /// Sockets that keep what is sent and recorded.
    #[derive(Debug, Default)]
    struct Kept {
        sent: Vec<(End, Datagram)>,
        outcomes: Vec<Outcome>,
    }

    impl DatagramSockets for Kept {
        type Error = std::convert::Infallible;

        fn send(&mut self, from: End, _: u32, datagram: Datagram) -> Result<bool, Self::Error> {
            self.sent.push((from, datagram));
            Ok(true)
        }

        fn record_probe(&mut self, _: Option<u32>, outcome: Outcome) -> Result<(), Self::Error> {
            self.outcomes.push(outcome);
            Ok(())
        }

        fn record_transfer(&mut self, _: Transfer) -> Result<(), Self::Error> {
            unreachable!("a client of NTP transfers nothing")
        }

        fn record_estimate(&mut self, _: NetalyzrEstimate) -> Result<(), Self::Error> {
            unreachable!("a client of NTP does not test buffers")
        }
    }

    /// With a poll of 500 ms, the entry of a second sends two requests. The first is answered after 20 ms, the second never.
    #[test]
    fn a_request_is_answered_or_lost_with_the_next_poll() {
        let text = r#"
            title = "Time"
            duration = "1s"
            link = [{ name = "l", ends = ["client", "server"] }]
            traffic = [{ name = "time", kind = "ntp", from = "client", to = "server", poll = "500ms" }]
        "#;
        let traffic = Experiment::parse(text, "test.toml", &[]).unwrap().points()[0].scenario.traffic[0].clone();
        let (mut program, mut kept) = (DatagramProgram::new(&traffic, 0, 1, 0, Punctual).unwrap(), Kept::default());
        let mut times = Vec::new();
        while let Some(at_ns) = program.next_ns() {
            let Ok(()) = program.on_time(at_ns, &mut kept);
            times.push(at_ns);
            if times.len() == 1 {
                for (at, after_ms) in [(End::To, 10), (End::From, 20)] {
                    let arrival = Arrival { at, stream: 0, number: 0, at_ns: at_ns + after_ms * MS };
                    let Ok(()) = program.on_arrival(arrival, &mut kept);
                }
            }
        }
        let datagram = |number| Datagram { number, payload_bytes: 48 };
        let expected = [(End::From, datagram(0)), (End::To, datagram(0)), (End::From, datagram(1))];
        assert_eq!((times.len(), times[1] - times[0], &kept.sent[..]), (2, 500 * MS, &expected[..]));
        let Ok(()) = program.settle(times[1] + 500 * MS, &mut kept);
        assert_eq!(kept.outcomes.iter().map(|each| each.rtt_ns).collect::<Vec<_>>(), [Some(20 * MS), None]);
    }
}
