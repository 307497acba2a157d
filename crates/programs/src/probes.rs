//! Probes: packets that are sent to measure when they arrive. These are the echo requests of a ping and the
//! packets of a call.
//!
//! Each probe has an outcome once it has reached the last stage of its path, was lost on the way, or has timed out.
//! Outcomes are in the order of sending. A probe that arrives after its timeout is lost.

use std::collections::VecDeque;

/// The point on its path where a probe was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// At the remote host.
    Far,
    /// Back at its sender, after it was answered.
    Back,
}

/// The outcome of a probe. Times are `None` for stages that it has not reached in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its number, counted from 0.
    pub number: u64,
    /// When it was sent.
    pub sent_ns: u64,
    /// Round-trip time.
    pub rtt_ns: Option<u64>,
    /// One-way delay to the remote host.
    pub owd_up_ns: Option<u64>,
    /// One-way delay of its answer.
    pub owd_down_ns: Option<u64>,
}

/// The probes of one flow.
#[derive(Debug)]
pub struct Probes {
    last_stage: Stage,
    timeout_ns: u64,
    /// Number of probes sent.
    sent: u64,
    /// The probes whose outcomes have not been taken yet.
    awaited: VecDeque<Probe>,
    /// Probes from this number on have no outcomes. They are sent only to detect which earlier ones were overtaken, and
    /// so are lost.
    recorded: u64,
    /// How long after a later one a probe may still arrive.
    spread_ns: u64,
    /// The latest probe that has reached the last stage so long ago that none before it is still on its way.
    latest: u64,
    /// A later probe that has reached the last stage, and when.
    next_latest: Option<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    sent_ns: u64,
    far_ns: Option<u64>,
    back_ns: Option<u64>,
    lost: bool,
}

impl Probes {
    /// No probe has been sent yet. A probe is lost unless it reaches the last stage within the timeout.
    pub fn new(last_stage: Stage, timeout_ns: u64) -> Self {
        Self {
            last_stage,
            timeout_ns,
            sent: 0,
            awaited: VecDeque::new(),
            recorded: u64::MAX,
            spread_ns: 0,
            latest: 0,
            next_latest: None,
        }
    }

    /// The same on a path on which packets overtake one another: one may arrive this much later than one sent after it.
    pub fn spread(self, spread_ns: u64) -> Self {
        Self { spread_ns, ..self }
    }

    /// Number of probes sent so far, which is also the number of the next one.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// The next probe is sent.
    pub fn push(&mut self, sent_ns: u64) {
        self.awaited.push_back(Probe { sent_ns, far_ns: None, back_ns: None, lost: false });
        self.sent += 1;
    }

    /// A probe was seen; only the first time counts. Numbers may come from a network, so there need not be such a
    /// probe.
    pub fn see(&mut self, number: u64, stage: Stage, at_ns: u64) {
        if number >= self.sent {
            return;
        }
        if stage == self.last_stage {
            self.settle_latest(at_ns);
            if number > self.latest && self.next_latest.is_none() {
                self.next_latest = Some((number, at_ns));
            }
        }
        if let Some(probe) = self.get_mut(number) {
            probe.seen(stage).get_or_insert(at_ns);
        }
    }

    /// A probe, or its answer, is known to be lost.
    pub fn lose(&mut self, number: u64) {
        if let Some(probe) = self.get_mut(number) {
            probe.lost = true;
        }
    }

    /// Takes the next outcome, if it is known by this time. Everything that was seen until then must have been reported
    /// before this call.
    pub fn settled(&mut self, now_ns: u64) -> Option<Outcome> {
        self.settle_latest(now_ns);
        let (number, last_stage, timeout_ns) = (self.first(), self.last_stage, self.timeout_ns);
        let is_overtaken = self.have_ended() && number < self.latest;
        let probe = self.awaited.front_mut()?;
        let is_known = probe.lost || is_overtaken || now_ns >= probe.sent_ns + timeout_ns;
        if is_known || probe.seen(last_stage).is_some() { self.give_up() } else { None }
    }

    /// Takes the next outcome, whether or not it is known. What has not been seen yet counts as lost.
    pub fn give_up(&mut self) -> Option<Outcome> {
        let number = self.first();
        if number >= self.recorded {
            return None;
        }
        let probe = self.awaited.pop_front()?;
        let took = |at_ns: Option<u64>| {
            let took_ns = at_ns?.saturating_sub(probe.sent_ns);
            (took_ns < self.timeout_ns).then_some(took_ns)
        };
        let [owd_up_ns, rtt_ns] = [probe.far_ns, probe.back_ns].map(took);
        let owd_down_ns = rtt_ns.zip(owd_up_ns).and_then(|(rtt_ns, up_ns)| rtt_ns.checked_sub(up_ns));
        Some(Outcome { number, sent_ns: probe.sent_ns, rtt_ns, owd_up_ns, owd_down_ns })
    }

    /// Whether an outcome is still to be taken.
    pub fn are_awaited(&self) -> bool {
        self.first() < self.recorded.min(self.sent)
    }

    /// The scenario is over. Probes that are sent from now on have no outcomes. A probe now counts as lost when a later one
    /// has overtaken it and the path's [spread](Self::spread) has passed since: queueing disciplines do not reorder packets
    /// within a flow.
    pub fn end(&mut self) {
        self.recorded = self.sent;
    }

    /// When the first awaited probe times out.
    pub fn first_timeout_ns(&self) -> Option<u64> {
        Some(self.awaited.front()?.sent_ns + self.timeout_ns)
    }

    /// When the last awaited probe times out.
    pub fn last_timeout_ns(&self) -> Option<u64> {
        Some(self.awaited.back()?.sent_ns + self.timeout_ns)
    }

    /// Nothing older than the probe that arrived a spread ago is still on its way.
    fn settle_latest(&mut self, now_ns: u64) {
        if let Some((number, _)) = self.next_latest.take_if(|(_, at_ns)| now_ns >= at_ns.saturating_add(self.spread_ns))
        {
            self.latest = number;
        }
    }

    fn have_ended(&self) -> bool {
        self.recorded < u64::MAX
    }

    /// Number of the first probe in `awaited`.
    fn first(&self) -> u64 {
        self.sent - self.awaited.len() as u64
    }

    fn get_mut(&mut self, number: u64) -> Option<&mut Probe> {
        let index = usize::try_from(number.checked_sub(self.first())?).ok()?;
        self.awaited.get_mut(index)
    }
}

impl Probe {
    fn seen(&mut self, stage: Stage) -> &mut Option<u64> {
        match stage {
            Stage::Far => &mut self.far_ns,
            Stage::Back => &mut self.back_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_NS: u64 = 1000;

    /// Probes that were sent at these times.
    fn probes<const N: usize>(last_stage: Stage, sent_ns: [u64; N]) -> Probes {
        let mut probes = Probes::new(last_stage, TIMEOUT_NS);
        sent_ns.into_iter().for_each(|sent_ns| probes.push(sent_ns));
        probes
    }

    /// The number of the next outcome with `rtt_ns`, `owd_up_ns` and `owd_down_ns`.
    fn settled(probes: &mut Probes, now_ns: u64) -> Option<(u64, [Option<u64>; 3])> {
        let outcome = probes.settled(now_ns)?;
        Some((outcome.number, [outcome.rtt_ns, outcome.owd_up_ns, outcome.owd_down_ns]))
    }

    #[test]
    fn a_request_that_reaches_its_target_but_is_not_answered_in_time_is_lost_on_the_way_back() {
        let mut probes = probes(Stage::Back, [0]);
        probes.see(0, Stage::Far, 400);
        assert_eq!(settled(&mut probes, TIMEOUT_NS - 1), None, "it may still come");
        probes.see(0, Stage::Back, TIMEOUT_NS);
        assert_eq!(settled(&mut probes, TIMEOUT_NS), Some((0, [None, Some(400), None])));
    }

    #[test]
    fn a_request_whose_answer_was_dropped_is_lost_at_once() {
        let mut probes = probes(Stage::Back, [0]);
        probes.see(0, Stage::Far, 400);
        probes.lose(0);
        assert_eq!(settled(&mut probes, 500), Some((0, [None, Some(400), None])));
        assert!(!probes.are_awaited());
    }

    #[test]
    fn outcomes_come_in_the_order_of_sending() {
        let mut probes = probes(Stage::Back, [0, 100, 200]);
        probes.see(1, Stage::Far, 130);
        probes.see(1, Stage::Back, 150);
        probes.see(1, Stage::Back, 170);
        assert_eq!(settled(&mut probes, 180), None, "that of the first is not known yet");
        probes.see(0, Stage::Back, 190);
        assert_eq!(settled(&mut probes, 190), Some((0, [Some(190), None, None])));
        assert_eq!(settled(&mut probes, 190), Some((1, [Some(50), Some(30), Some(20)])));
        assert_eq!(settled(&mut probes, 190), None);
        assert_eq!([probes.first_timeout_ns(), probes.last_timeout_ns()], [Some(1200); 2]);
    }

    #[test]
    fn what_was_overtaken_is_lost_once_the_scenario_is_over_and_what_is_sent_then_has_no_outcome() {
        let mut probes = probes(Stage::Far, [0, 100]);
        probes.end();
        probes.push(200);
        assert_eq!(settled(&mut probes, 250), None);
        assert!(probes.are_awaited());
        probes.see(2, Stage::Far, 260);
        assert_eq!(settled(&mut probes, 260), Some((0, [None; 3])));
        assert_eq!(settled(&mut probes, 260), Some((1, [None; 3])));
        assert_eq!(settled(&mut probes, u64::MAX), None);
        assert!(!probes.are_awaited());
    }

    #[test]
    fn what_may_have_been_overtaken_is_awaited_for_the_paths_spread() {
        let mut probes = probes(Stage::Far, [0, 10, 20]).spread(100);
        probes.see(1, Stage::Far, 50);
        probes.end();
        probes.push(30);
        probes.see(3, Stage::Far, 60);
        assert_eq!(settled(&mut probes, 149), None, "the first may still come");
        assert_eq!(settled(&mut probes, 150), Some((0, [None; 3])));
        assert_eq!(settled(&mut probes, 150), Some((1, [None, Some(40), None])));
        probes.see(2, Stage::Far, 155);
        assert_eq!(settled(&mut probes, 155), Some((2, [None, Some(135), None])));
        assert!(!probes.are_awaited());
    }

    #[test]
    fn numbers_that_were_never_sent_are_nothing() {
        let mut probes = probes(Stage::Far, [0]);
        probes.end();
        for number in [7, u64::MAX] {
            probes.see(number, Stage::Far, 10);
            probes.lose(number);
        }
        assert_eq!(settled(&mut probes, 20), None);
        assert!(probes.are_awaited());
        assert_eq!(probes.give_up().map(|outcome| outcome.number), Some(0));
        assert_eq!(probes.give_up(), None);
        assert!(!probes.are_awaited());
    }
}
