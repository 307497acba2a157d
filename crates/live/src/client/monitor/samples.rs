//! From what the two ends recorded to samples on the monitor's clock.

use bufferscope_verdict::input::{Echo, EndName, Lost, Phase, PhaseKind, StageDelay};
use bufferscope_verdict::monitor::{Episode, EpisodeKind};

use super::load::Loads;
use super::stretch::Stretch;
use super::{Happening, Watch};
use crate::client::observe::{hop, local_sample, own_hop, signed};
use crate::client::prober::Probe;
use crate::records::{ServerRecords, StageRow};

impl Stretch {
    /// Hands over what was sent before `until_ns`. An echo without an answer that was sent before `certain_ns` is lost; of a
    /// later one, nothing is known.
    pub(super) fn settle(
        &mut self,
        watch: &mut Watch<'_>,
        records: Option<&ServerRecords>,
        [until_ns, certain_ns]: [u64; 2],
        loads: &Loads,
        report: &mut impl FnMut(Happening<'_>),
    ) {
        let (first, probes, stages) = {
            let mut log = self.log.lock();
            let (first, probes) = log.take_before(until_ns);
            (first, probes, std::mem::take(&mut log.stages))
        };
        let end_ns = self.time(until_ns).max(self.told_ns);
        let mut phase = Phase { kind: PhaseKind::Idle, start_ns: self.told_ns, end_ns, ..Phase::default() };
        self.told_ns = end_ns;
        for row in &stages {
            let t_ns = self.time(row.t_ns);
            if !loads.cover(t_ns) {
                watch.monitor.qdisc(signed(row.delay_ns));
                phase.stages.push(stage(row, EndName::Client, t_ns));
            }
        }
        for (seq, probe) in (first..).zip(&probes) {
            let t_ns = self.time(probe.t_ns);
            let arrived = self.arrivals.remove(&seq).is_some();
            if loads.cover(t_ns) || (probe.ttl == 0 && probe.reply.is_none() && probe.t_ns >= certain_ns) {
                continue;
            }
            if probe.ttl > 0 {
                let answer = own_hop(probe, t_ns);
                watch.monitor.hop(&answer);
                phase.ladder.push(answer);
                continue;
            }
            // Without records, nothing is known of the requests since the last ones.
            let lost = probe.reply.is_none().then_some(match (arrived, records.is_some()) {
                (true, _) => Lost::Down,
                (false, true) => Lost::Up,
                (false, false) => Lost::Unknown,
            });
            let echo = echo(probe, t_ns, lost);
            let later = watch.monitor.echo(&echo);
            phase.echoes.push(Echo { up_ns: later.up_ns, down_ns: later.down_ns, ..echo });
        }
        let rows = std::mem::take(&mut self.samples);
        let own = rows.iter().map(|row| local_sample(row, self.time(row.t_ns), EndName::Client));
        phase.local.extend(own.filter(|sample| !loads.cover(sample.t_ns)));
        if let (Some(records), Some(server_ahead_ns)) = (records, ahead(&probes)) {
            let time = |server_ns: u64| self.time(server_ns).saturating_sub(server_ahead_ns);
            let is_ours = |t_ns: i64| !loads.cover(t_ns) && t_ns >= self.start_ns && t_ns <= watch.now_ns();
            let ladder = records.end.ladder.iter().map(|row| hop(row, EndName::Server, time(row.t_ns)));
            phase.ladder.extend(ladder.filter(|probe| is_ours(probe.t_ns)));
            let stages = records.end.stages.iter().map(|row| stage(row, EndName::Server, time(row.t_ns)));
            phase.stages.extend(stages.filter(|delay| is_ours(delay.t_ns)));
            let local = records.end.local.iter().map(|row| local_sample(row, time(row.t_ns), EndName::Server));
            phase.local.extend(local.filter(|sample| is_ours(sample.t_ns)));
            let tests = records.tests.iter().map(|test| test.map(time));
            let tests: Vec<_> = tests.filter(|times| times.iter().all(|t_ns| is_ours(*t_ns))).collect();
            for [from_ns, to_ns] in tests {
                watch.other_test(from_ns, to_ns);
            }
        }
        const OVER_NS: i64 = 30_000_000_000;
        if watch.other_test.is_some_and(|(_, to_ns)| end_ns - to_ns > OVER_NS) {
            watch.end_other_test();
        }
        watch.tell_episodes(report);
        report(Happening::Samples(phase));
    }
}

impl Watch<'_> {
    /// Another test ran on the server. Those that run over several reports are one.
    fn other_test(&mut self, from_ns: i64, to_ns: i64) {
        const ONE_TEST_NS: i64 = 3_000_000_000;
        match &mut self.other_test {
            Some(test) if from_ns - test.1 <= ONE_TEST_NS => test.1 = to_ns.max(test.1),
            _ => {
                self.end_other_test();
                self.other_test = Some((from_ns, to_ns));
            }
        }
    }

    /// What was known of the last test of others is an episode.
    pub(super) fn end_other_test(&mut self) {
        if let Some((from_ns, to_ns)) = self.other_test.take() {
            let text = "another client tested its connection to the server, whose link is the same";
            self.monitor.add(Episode::told(EpisodeKind::OtherTest, from_ns, to_ns, text));
        }
    }
}

fn echo(probe: &Probe, t_ns: i64, lost: Option<Lost>) -> Echo {
    Echo {
        t_ns,
        rtt_ns: probe.rtt_ns().map(signed),
        up_ns: probe.reply.map(|reply| reply.arrived_ns.wrapping_sub(probe.t_ns) as i64),
        down_ns: probe.reply.map(|reply| reply.back_ns.wrapping_sub(reply.answered_ns) as i64),
        lost,
    }
}

fn stage(row: &StageRow, end: EndName, t_ns: i64) -> StageDelay {
    StageDelay { t_ns, end, stage: row.stage, delay_ns: signed(row.delay_ns) }
}

/// The server's clock minus this machine's, to within half a round trip; `None`: nothing was answered.
fn ahead(probes: &[Probe]) -> Option<i64> {
    let best = probes.iter().filter_map(|probe| Some((probe.rtt_ns()?, probe))).min_by_key(|(rtt_ns, _)| *rtt_ns);
    let (rtt_ns, probe) = best?;
    Some(probe.reply?.arrived_ns.wrapping_sub(probe.t_ns.wrapping_add(rtt_ns / 2)) as i64)
}
