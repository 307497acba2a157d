//! `game`: an online game, with small packets both ways at the rate of its ticks.
//!
//! Departures: real packets vary in size, and ends that miss a tick because they compute too long skip it.

use bufferscope_scenario::{End, GameTraffic};

use crate::datagrams::{OverUdp, Plans};
use crate::isochronous::{Rhythm, Senders};
use crate::random::Uniform;

/// A player, whose commands are the first stream, and a server, whose updates are the second.
#[derive(Debug)]
pub(crate) struct Game;

impl OverUdp for Game {
    type Parameters = GameTraffic;
    type Programs = Senders;

    /// A tick that leaves late arrives late.
    const PUNCTUAL: bool = true;

    fn programs<U: Uniform>(parameters: &GameTraffic, spread_ns: u64, plans: &mut Plans<U>) -> Senders {
        let &GameTraffic { tick_ns, command_bytes, update_bytes, .. } = parameters;
        let ticks = |payload_bytes| Rhythm { interval_ns: tick_ns, payload_bytes, timeout_ns: GameTraffic::TIMEOUT_NS };
        Senders::one_way(&[(End::From, ticks(command_bytes)), (End::To, ticks(update_bytes))], spread_ns, plans)
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::{Experiment, Traffic};

    use crate::datagrams::{Arrival, Datagram, DatagramProgram, DatagramSockets, Punctual};
    use crate::netalyzr::NetalyzrEstimate;
    use crate::probes::Outcome;
    use crate::sockets::Transfer;

    use super::*;

    const MS: u64 = 1_000_000;

    /// Sockets that keep what is sent and recorded.
    #[derive(Debug, Default)]
    struct Kept {
        sent: Vec<(End, u32, Datagram)>,
        outcomes: Vec<(Option<u32>, Outcome)>,
    }

    impl DatagramSockets for Kept {
        type Error = std::convert::Infallible;

        fn send(&mut self, from: End, stream: u32, datagram: Datagram) -> Result<bool, Self::Error> {
            self.sent.push((from, stream, datagram));
            Ok(true)
        }

        fn record_probe(&mut self, flow: Option<u32>, outcome: Outcome) -> Result<(), Self::Error> {
            self.outcomes.push((flow, outcome));
            Ok(())
        }

        fn record_transfer(&mut self, _: Transfer) -> Result<(), Self::Error> {
            unreachable!("a game transfers nothing")
        }

        fn record_estimate(&mut self, _: NetalyzrEstimate) -> Result<(), Self::Error> {
            unreachable!("a game does not test buffers")
        }
    }

    fn game(keys: &str) -> Traffic {
        let text = format!(
            r#"
            title = "A game"
            duration = "1s"
            link = [{{ name = "l", ends = ["player", "server"] }}]
            traffic = [{{ name = "game", kind = "game", from = "player", to = "server", {keys} }}]
            "#
        );
        Experiment::parse(&text, "test.toml", &[]).unwrap().points()[0].scenario.traffic[0].clone()
    }

    /// Sends what is due up to a time.
    fn play(program: &mut DatagramProgram<Punctual>, until_ns: u64, sockets: &mut Kept) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(at_ns) = program.next_ns().filter(|at_ns| *at_ns < until_ns) {
            times.push(at_ns);
            let Ok(()) = program.on_time(at_ns, sockets);
        }
        times
    }

    #[test]
    fn each_end_sends_its_own_size_at_each_tick() {
        let traffic = game("tick = '20ms', command = '50b', update = '200b'");
        let (mut program, mut kept) = (DatagramProgram::new(&traffic, 0, 1, 0, Punctual).unwrap(), Kept::default());
        assert_eq!((program.flows(), program.streams(), program.clients()), (2, 2, 1));
        let times = play(&mut program, u64::MAX, &mut kept);
        for (stream, (from, bytes)) in (0..).zip([(End::From, 50), (End::To, 200)]) {
            let sent = times.iter().zip(&kept.sent).filter(|(_, (_, of, _))| *of == stream);
            let (times, sent): (Vec<u64>, Vec<_>) = sent.unzip();
            assert_eq!(times.len(), 50, "one each 20 ms of a second");
            assert!(times[0] < 20 * MS && times.windows(2).all(|pair| pair[1] - pair[0] == 20 * MS), "{times:?}");
            let expected = |number| (from, stream, Datagram { number, payload_bytes: bytes });
            assert!(sent.into_iter().copied().eq((0..50).map(expected)));
        }
    }

    #[test]
    fn a_tick_has_its_delay_to_the_other_end_and_no_answer() {
        let traffic = game("tick = '500ms'");
        let (mut program, mut kept) = (DatagramProgram::new(&traffic, 0, 1, 0, Punctual).unwrap(), Kept::default());
        let times = play(&mut program, u64::MAX, &mut kept);
        assert_eq!(kept.sent.len(), 4);
        let (first_ns, (from, stream, datagram)) = (times[0], kept.sent[0]);
        let at = if from == End::From { End::To } else { End::From };
        let arrival = Arrival { at, stream, number: datagram.number, at_ns: first_ns + 7 * MS };
        let Ok(()) = program.on_arrival(arrival, &mut kept);
        let Ok(()) = program.settle(first_ns + 7 * MS, &mut kept);
        let [(flow, outcome)] = kept.outcomes[..] else { panic!("{:?}", kept.outcomes) };
        assert_eq!((flow, outcome.number, outcome.sent_ns), (Some(stream), 0, first_ns));
        assert_eq!((outcome.owd_up_ns, outcome.rtt_ns), (Some(7 * MS), None));
        assert_eq!(kept.sent.len(), 4, "there is no answer");
    }

    /// A tick that takes 60 s counts as lost.
    #[test]
    fn ticks_that_never_come_are_lost_at_the_end() {
        let (mut program, mut kept) =
            (DatagramProgram::new(&game("tick = '500ms'"), 0, 1, 0, Punctual).unwrap(), Kept::default());
        play(&mut program, u64::MAX, &mut kept);
        assert!(program.is_waiting());
        let last_ns = program.last_timeout_ns().unwrap();
        assert!((60_500 * MS..61_000 * MS).contains(&last_ns), "{last_ns}");
        let Ok(()) = program.settle(last_ns, &mut kept);
        assert_eq!(kept.outcomes.len(), 4);
        assert!(kept.outcomes.iter().all(|(_, outcome)| outcome.owd_up_ns.is_none()));
        assert!(!program.is_waiting());
    }
}
