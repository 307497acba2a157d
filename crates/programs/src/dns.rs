//! `dns`: look-ups as the resolver of the C library makes them (resolv.conf(5)): one question and one answer. If no answer
//! arrives within the timeout, the resolver repeats the question until the attempts are used up.
//!
//! What counts is when the answer arrived and when the questions were due, not when the program reads the answer or
//! repeats a question. An answer after the last timeout is too late even if the program was later still.

use std::collections::BTreeMap;

use bufferscope_scenario::{Departures, DnsTraffic, End};

use crate::datagrams::{Arrival, Datagram, DatagramSockets, Datagrams, OverUdp, Plans};
use crate::random::Uniform;
use crate::sockets::Transfer;
use crate::starts::{START_JITTER_NS, late_ns};

/// The task to begin the next look-up. One more than its number is the task to check whether a look-up has its answer.
const BEGIN: u64 = 0;

/// A resolver and its server.
#[derive(Debug)]
pub(crate) struct Dns {
    resolver: Resolver,
    server: NameServer,
}

impl Dns {
    fn plan<U: Uniform>(&mut self, now_ns: u64, plans: &mut Plans<U>) {
        if let Some(at_ns) = self.resolver.plan(&mut plans.random) {
            plans.plan(at_ns.max(now_ns), BEGIN);
        }
    }

    /// Asks the question (again), or gives up if no attempts are left. Does nothing if the look-up is over.
    fn attempt<U: Uniform, S: DatagramSockets>(
        &mut self,
        number: u64,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        match self.resolver.attempt(number) {
            Attempt::Ask { question, until_ns } => {
                // A question that the host does not accept is lost, like one that a queue does not accept.
                sockets.send(End::To, 0, question)?;
                plans.plan(until_ns, number + 1);
                Ok(())
            }
            Attempt::Fail(look_up) => self.record(look_up, None, sockets),
            Attempt::Nothing => Ok(()),
        }
    }

    /// Each look-up has a row, which lasts from its first question to its first answer. The row has no end if the look-up
    /// failed or the run ended first.
    fn record<S: DatagramSockets>(
        &self,
        look_up: LookUp,
        finished_ns: Option<u64>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        let (started_ns, bytes) = (look_up.started_ns, self.server.response_bytes.into());
        sockets.record_transfer(Transfer { connection: 1, started_ns, finished_ns, bytes })
    }
}

impl OverUdp for Dns {
    type Parameters = DnsTraffic;
    type Programs = Self;

    fn programs<U: Uniform>(parameters: &DnsTraffic, _spread_ns: u64, plans: &mut Plans<U>) -> Self {
        let resolver = Resolver::new(parameters, plans.start_ns, plans.stop_ns);
        let mut dns = Self { resolver, server: NameServer::new(parameters) };
        dns.plan(0, plans);
        dns
    }
}

impl Datagrams for Dns {
    const AWAITS: bool = true;

    fn flows(&self) -> u32 {
        1
    }

    fn on_task<U: Uniform, S: DatagramSockets>(
        &mut self,
        task: u64,
        now_ns: u64,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        match task.checked_sub(1) {
            None => {
                let number = self.resolver.begin(now_ns);
                self.attempt(number, plans, sockets)?;
                self.plan(now_ns, plans);
                Ok(())
            }
            Some(number) => self.attempt(number, plans, sockets),
        }
    }

    fn on_arrival<U: Uniform, S: DatagramSockets>(
        &mut self,
        arrival: Arrival,
        _: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        match arrival.at {
            End::From => sockets.send(End::From, arrival.stream, self.server.answer(arrival.number)).map(|_| ()),
            End::To => match self.resolver.answered(arrival.number, arrival.at_ns) {
                Some(look_up) => self.record(look_up, Some(arrival.at_ns), sockets),
                None => Ok(()),
            },
        }
    }

    /// Look-ups under way are continued.
    fn bring_stop_forward<U: Uniform>(&mut self, stop_ns: u64, plans: &mut Plans<U>) {
        self.resolver.bring_stop_forward(stop_ns);
        plans.forget(|at_ns, task| task == BEGIN && at_ns >= stop_ns);
    }

    /// Records the look-ups that have no answer, without an end.
    fn finish<U: Uniform, S: DatagramSockets>(
        &mut self,
        plans: &mut Plans<U>,
        sockets: &mut S,
    ) -> Result<(), S::Error> {
        plans.forget(|_, _| true);
        while let Some(look_up) = self.resolver.give_up() {
            self.record(look_up, None, sockets)?;
        }
        Ok(())
    }
}

/// A host that looks up names.
#[derive(Debug)]
struct Resolver {
    request_bytes: u32,
    timeout_ns: u64,
    attempts: u32,
    departures: Departures,
    /// The longest delay between a look-up's planned time and its start.
    jitter_ns: u64,
    stop_ns: u64,
    /// The look-ups that have no answer yet, by number.
    open: BTreeMap<u64, LookUp>,
    begun: u64,
}

/// A look-up that has no answer yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LookUp {
    /// When it began.
    started_ns: u64,
    /// Questions asked so far.
    asked: u32,
}

/// What to do about a look-up whose timer has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// Ask, and try again at this time.
    Ask {
        /// What to send.
        question: Datagram,
        /// When the question times out.
        until_ns: u64,
    },
    /// The look-up has failed.
    Fail(LookUp),
    /// The look-up is already over.
    Nothing,
}

/// The server, which answers at once.
#[derive(Clone, Copy, Debug)]
struct NameServer {
    response_bytes: u32,
}

impl Resolver {
    /// A resolver that begins look-ups from `start_ns` on, and none at or after `stop_ns`.
    fn new(parameters: &DnsTraffic, start_ns: u64, stop_ns: u64) -> Self {
        Self {
            request_bytes: parameters.request_bytes,
            timeout_ns: parameters.timeout_ns,
            attempts: parameters.attempts,
            departures: parameters.departures(start_ns, stop_ns),
            jitter_ns: START_JITTER_NS.min(parameters.phase_ns()),
            stop_ns,
            open: BTreeMap::new(),
            begun: 0,
        }
    }

    /// Begins no look-up at `stop_ns` or later, which is earlier than planned.
    fn bring_stop_forward(&mut self, stop_ns: u64) {
        self.stop_ns = stop_ns;
        self.departures.bring_stop_forward(stop_ns);
    }

    /// Chooses when the next look-up begins; `None`: there are no more look-ups.
    fn plan(&mut self, random: &mut impl Uniform) -> Option<u64> {
        let nominal_ns = self.departures.next(&mut || random.bits())?;
        Some(late_ns(nominal_ns, self.jitter_ns, self.stop_ns, random))
    }

    /// Begins a look-up; returns its number.
    fn begin(&mut self, now_ns: u64) -> u64 {
        let number = self.begun;
        self.begun += 1;
        self.open.insert(number, LookUp { started_ns: now_ns, asked: 0 });
        number
    }

    /// It is time to ask, for the first time or again. Everything that has arrived so far must have been reported
    /// before this call.
    fn attempt(&mut self, number: u64) -> Attempt {
        let Some(look_up) = self.open.get_mut(&number) else { return Attempt::Nothing };
        if look_up.asked == self.attempts {
            return self.open.remove(&number).map_or(Attempt::Nothing, Attempt::Fail);
        }
        look_up.asked += 1;
        let waits_ns = self.timeout_ns.saturating_mul(look_up.asked.into());
        let question = Datagram { number, payload_bytes: self.request_bytes };
        Attempt::Ask { question, until_ns: look_up.started_ns.saturating_add(waits_ns) }
    }

    /// An answer arrived at that time. Returns the look-up that this answer ends; `None` if the look-up is already
    /// over, or if the answer came too late.
    fn answered(&mut self, number: u64, at_ns: u64) -> Option<LookUp> {
        let look_up = self.open.get(&number)?;
        let patience_ns = self.timeout_ns.saturating_mul(self.attempts.into());
        if at_ns.saturating_sub(look_up.started_ns) > patience_ns { None } else { self.open.remove(&number) }
    }

    /// Gives up a look-up that is still open.
    fn give_up(&mut self) -> Option<LookUp> {
        self.open.pop_first().map(|(_, look_up)| look_up)
    }
}

impl NameServer {
    /// The server of an entry of traffic.
    fn new(parameters: &DnsTraffic) -> Self {
        Self { response_bytes: parameters.response_bytes }
    }

    /// The answer to the question with this number.
    fn answer(self, number: u64) -> Datagram {
        Datagram { number, payload_bytes: self.response_bytes }
    }
}

#[cfg(test)]
mod tests {
    use bufferscope_scenario::Pattern;

    use super::*;
    use crate::random::Random;

    fn parameters() -> DnsTraffic {
        DnsTraffic {
            interval_ns: 1000,
            pattern: Pattern::Constant,
            request_bytes: 40,
            response_bytes: 120,
            timeout_ns: 5,
            attempts: 2,
        }
    }

    fn asks(number: u64, until_ns: u64) -> Attempt {
        Attempt::Ask { question: Datagram { number, payload_bytes: 40 }, until_ns }
    }

    /// One look-up, begun and asked at 100.
    fn asked_once() -> Resolver {
        let mut resolver = Resolver::new(&parameters(), 0, 10_000);
        assert_eq!(resolver.begin(100), 0);
        assert_eq!(resolver.attempt(0), asks(0, 105));
        resolver
    }

    /// An interval of 1000 ns is shorter than the jitter of programs that start: it is the longest delay.
    #[test]
    fn a_look_up_begins_within_the_interval_after_its_planned_time_and_before_the_stop() {
        let (mut resolver, mut random) = (Resolver::new(&parameters(), 500, 3501), Random::new(1, 0));
        let times: Vec<u64> = std::iter::from_fn(|| resolver.plan(&mut random)).collect();
        assert_eq!(times.len(), 4);
        for (n, at_ns) in (0..3).zip(&times) {
            assert!((500 + n * 1000..1500 + n * 1000).contains(at_ns), "{times:?}");
        }
        assert_eq!(times[3], 3500, "any delay would put it behind the stop");
    }

    #[test]
    fn the_server_answers_with_the_number_of_the_question() {
        assert_eq!(NameServer::new(&parameters()).answer(7), Datagram { number: 7, payload_bytes: 120 });
    }

    #[test]
    fn an_answer_ends_it_and_a_second_one_is_nothing() {
        let mut resolver = asked_once();
        assert_eq!(resolver.answered(0, 103).unwrap().started_ns, 100);
        assert_eq!((resolver.answered(0, 104), resolver.attempt(0)), (None, Attempt::Nothing));
    }

    #[test]
    fn an_answer_to_an_earlier_question_counts_while_the_last_one_may_be_answered() {
        let mut resolver = asked_once();
        assert_eq!(resolver.attempt(0), asks(0, 110));
        assert!(resolver.answered(0, 110).is_some());
    }

    /// The program was late to repeat the question, or to read the answer. In neither case may a look-up wait for
    /// longer than twice 5.
    #[test]
    fn an_answer_after_the_last_timeout_does_not_count_however_late_the_program_is() {
        let mut resolver = asked_once();
        assert_eq!(resolver.answered(0, 142), None, "it should have asked again at 105");
        resolver.attempt(0);
        assert_eq!(resolver.answered(0, 111), None);
        assert!(matches!(resolver.attempt(0), Attempt::Fail(LookUp { started_ns: 100, .. })));
        assert_eq!(resolver.attempt(0), Attempt::Nothing);
    }

    #[test]
    fn numbers_that_were_never_asked_for_are_nothing() {
        let mut resolver = asked_once();
        assert_eq!((resolver.answered(7, 101), resolver.answered(u64::MAX, 101)), (None, None));
        assert!(resolver.give_up().is_some());
        assert_eq!(resolver.give_up(), None);
    }
}
