//! Probes: packets that are sent in order to measure when they arrive. These are the echo requests of a ping and the
//! packets of a call.
//!
//! Each probe gets a row once its outcome is known: it has reached the last stage of its path, or it has timed out.
//! Rows are in the order of sending. A probe that arrives after its timeout is lost.

use std::collections::VecDeque;

use bufferscope_records::{Name, ProbeRow, Recorder, Sink};

/// The place on its path where a probe was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// At the far host.
    Far,
    /// Back at its sender, after it was answered.
    Back,
}

/// The probes of one flow.
#[derive(Debug)]
pub(super) struct Probes {
    name: Name,
    last_stage: Stage,
    timeout_ns: u64,
    /// Number of probes sent.
    sent: u64,
    /// The probes that have no row yet.
    awaited: VecDeque<Probe>,
    /// Probes from this number on have no rows. They are sent only to detect which earlier ones were overtaken, and so
    /// are lost.
    recorded: u64,
    /// The latest probe that has reached the last stage.
    latest: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Probe {
    sent_ns: u64,
    far_ns: Option<u64>,
    back_ns: Option<u64>,
}

impl Probes {
    /// The probes of that name; none has been sent yet. A probe is lost unless it reaches the last stage within the
    /// timeout.
    pub(super) fn new(name: Name, last_stage: Stage, timeout_ns: u64) -> Self {
        Self { name, last_stage, timeout_ns, sent: 0, awaited: VecDeque::new(), recorded: u64::MAX, latest: None }
    }

    /// Number of probes sent so far, which is also the number of the next one.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// The next probe is sent.
    pub(super) fn push(&mut self, sent_ns: u64) {
        self.awaited.push_back(Probe { sent_ns, far_ns: None, back_ns: None });
        self.sent += 1;
    }

    /// A probe was seen; only the first time counts. Numbers come from the network, so there need not be such a probe.
    pub(super) fn see(&mut self, number: u64, stage: Stage, at_ns: u64) {
        if number >= self.sent {
            return;
        }
        if stage == self.last_stage {
            self.latest = self.latest.max(Some(number));
        }
        let place = number.checked_sub(self.first()).and_then(|place| usize::try_from(place).ok());
        if let Some(probe) = place.and_then(|place| self.awaited.get_mut(place)) {
            probe.seen(stage).get_or_insert(at_ns);
        }
    }

    /// Writes the rows of the oldest probes as far as their outcomes are known.
    pub(super) fn settle<S: Sink>(&mut self, now_ns: u64, recorder: &mut Recorder<S>) {
        while let Some(probe) = self.awaited.front_mut() {
            if probe.seen(self.last_stage).is_none() && now_ns < probe.sent_ns + self.timeout_ns {
                break;
            }
            self.conclude(recorder);
        }
    }

    /// Whether all probes that were sent have their rows.
    pub(super) fn are_settled(&self) -> bool {
        self.awaited.is_empty()
    }

    /// The scenario is over. Probes that are sent from now on have no rows.
    pub(super) fn end(&mut self) {
        self.recorded = self.sent;
    }

    /// Whether the scenario is over.
    pub(super) fn have_ended(&self) -> bool {
        self.recorded < u64::MAX
    }

    /// Whether a probe that will have a row is still awaited, once the scenario is over. A probe that a later one has
    /// overtaken then counts as lost, because none of the queueing disciplines reorders packets within a flow.
    pub(super) fn are_awaited<S: Sink>(&mut self, now_ns: u64, recorder: &mut Recorder<S>) -> bool {
        self.conclude_before(self.latest.unwrap_or(0), recorder);
        self.settle(now_ns, recorder);
        self.first() < self.recorded
    }

    /// When the last probe times out.
    pub(super) fn times_out_ns(&self) -> Option<u64> {
        Some(self.awaited.back()?.sent_ns + self.timeout_ns)
    }

    /// Gives up the probes that are still awaited.
    pub(super) fn give_up<S: Sink>(&mut self, recorder: &mut Recorder<S>) {
        self.conclude_before(self.sent, recorder);
    }

    /// Number of the first probe in `awaited`.
    fn first(&self) -> u64 {
        self.sent - self.awaited.len() as u64
    }

    /// Writes the rows of all probes before that number.
    fn conclude_before<S: Sink>(&mut self, number: u64, recorder: &mut Recorder<S>) {
        while self.first() < number.min(self.recorded) {
            self.conclude(recorder);
        }
    }

    fn conclude<S: Sink>(&mut self, recorder: &mut Recorder<S>) {
        let seq = self.first();
        let Some(probe) = self.awaited.pop_front().filter(|_| seq < self.recorded) else { return };
        let took = |at_ns: Option<u64>| {
            let took_ns = at_ns?.saturating_sub(probe.sent_ns);
            (took_ns < self.timeout_ns).then_some(took_ns)
        };
        let [owd_up_ns, rtt_ns] = [probe.far_ns, probe.back_ns].map(took);
        let owd_down_ns = rtt_ns.zip(owd_up_ns).and_then(|(rtt_ns, up_ns)| rtt_ns.checked_sub(up_ns));
        recorder.probe(ProbeRow { probe: self.name, seq, sent_ns: probe.sent_ns, rtt_ns, owd_up_ns, owd_down_ns });
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
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use bufferscope_records::{MemorySink, Table};

    use super::*;

    const TIMEOUT_NS: u64 = 1000;

    fn probes(last_stage: Stage) -> (Probes, Recorder<MemorySink>) {
        let mut recorder = Recorder::new(MemorySink::default());
        let name = recorder.intern("probe");
        (Probes::new(name, last_stage, TIMEOUT_NS), recorder)
    }

    /// `seq`, `rtt_ns`, `owd_up_ns` and `owd_down_ns` of each row.
    fn rows(recorder: Recorder<MemorySink>) -> Vec<[Option<i64>; 4]> {
        let sink = recorder.finish().unwrap();
        let columns = ["seq", "rtt_ns", "owd_up_ns", "owd_down_ns"];
        let mut rows = Vec::new();
        for batch in sink.batches(Table::Probes) {
            let columns = columns.map(|name| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>());
            rows.extend((0..batch.num_rows()).map(|row| columns.map(|column| column.iter().nth(row).unwrap())));
        }
        rows
    }

    #[test]
    fn a_request_that_reaches_its_target_but_is_not_answered_in_time_is_lost_on_the_way_back() {
        let (mut probes, mut recorder) = probes(Stage::Back);
        probes.push(0);
        probes.see(0, Stage::Far, 400);
        probes.settle(TIMEOUT_NS - 1, &mut recorder);
        assert_eq!(probes.first(), 0, "it may still come");
        probes.see(0, Stage::Back, TIMEOUT_NS);
        probes.settle(TIMEOUT_NS, &mut recorder);
        assert_eq!(rows(recorder), [[Some(0), None, Some(400), None]]);
    }

    #[test]
    fn rows_come_in_the_order_of_sending() {
        let (mut probes, mut recorder) = probes(Stage::Back);
        for sent_ns in [0, 100, 200] {
            probes.push(sent_ns);
        }
        probes.see(1, Stage::Far, 130);
        probes.see(1, Stage::Back, 150);
        probes.see(1, Stage::Back, 170);
        probes.settle(180, &mut recorder);
        assert_eq!(probes.first(), 0, "the first has no row yet");
        probes.see(0, Stage::Back, 190);
        probes.settle(190, &mut recorder);
        assert_eq!(rows(recorder), [[Some(0), Some(190), None, None], [Some(1), Some(50), Some(30), Some(20)]]);
    }

    #[test]
    fn what_was_overtaken_is_lost_once_the_scenario_is_over_and_what_is_sent_then_has_no_row() {
        let (mut probes, mut recorder) = probes(Stage::Far);
        probes.push(0);
        probes.push(100);
        probes.end();
        probes.push(200);
        assert!(probes.are_awaited(250, &mut recorder));
        probes.see(2, Stage::Far, 260);
        assert!(!probes.are_awaited(260, &mut recorder));
        assert_eq!(rows(recorder), [[Some(0), None, None, None], [Some(1), None, None, None]]);
    }

    #[test]
    fn numbers_that_were_never_sent_are_nothing() {
        let (mut probes, mut recorder) = probes(Stage::Far);
        probes.push(0);
        probes.end();
        probes.see(7, Stage::Far, 10);
        probes.see(u64::MAX, Stage::Far, 10);
        assert!(probes.are_awaited(20, &mut recorder));
        probes.give_up(&mut recorder);
        assert!(!probes.are_awaited(20, &mut recorder));
    }
}
