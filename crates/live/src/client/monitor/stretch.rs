//! A stretch of time in which the connection is measured without a break: one session with the server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::load::{LoadTest, Loads};
use super::{ERRORS_KEPT, Happening, STATE, State, Watch};
use crate::client::control::Control;
use crate::client::observe::end;
use crate::client::prober::{self, Probe, SharedLog};
use crate::ladder::SPARSE_ROUND_NS;
use crate::local::{EndFacts, Local};
use crate::records::{LocalRow, ServerRecords};
use crate::time::{ClockWatch, Readings, SECOND, monotonic_ns, realtime_ns};
use crate::wire::control::{Answer, Request, Welcome};

const TICK: Duration = Duration::from_millis(250);
/// This end reports that it is there ...
const ALIVE_NS: u64 = 5 * SECOND;
/// ... and asks the server for its records this often.
const REPORT_NS: u64 = 10 * SECOND;
/// Time between two samples of this machine's queues.
const SAMPLE_NS: u64 = 5 * SECOND;
/// If nothing is heard for this long, the server or the path to it is gone.
const SILENCE_NS: u64 = 8 * SECOND;
/// If nothing is heard over TCP for this long, the session is given up although probes are answered.
const TCP_SILENCE_NS: u64 = 30 * SECOND;
/// If no probe was sent for this long beside the usual time between two, this program did not run.
const STOPPED_NS: u64 = 3 * SECOND;
/// An echo without an answer after this time is lost.
const SETTLED_NS: u64 = 15 * SECOND;
/// At the end, the last report comes within this time.
const FAREWELL: Duration = Duration::from_secs(3);
/// At the end, a test with load that runs ends within this time.
const LAST_TEST: Duration = Duration::from_secs(12);

/// How a stretch ends.
#[derive(Debug)]
pub(super) enum Ended {
    /// The monitor is over.
    Wanted,
    /// The connection is gone; why.
    Lost(String),
}

/// A session of a monitor.
pub(super) struct Stretch {
    server: SocketAddr,
    control: Control,
    welcome: Welcome,
    local: Local,
    pub(super) log: SharedLog,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// The real-time clock minus the monitor's time.
    ahead_ns: i64,
    pub(super) start_ns: i64,
    /// Samples were handed over up to this time.
    pub(super) told_ns: i64,
    clock: ClockWatch,
    interval_ns: u64,
    /// If this program did not run for a while: the last probe before that, on the real-time clock.
    stopped_ns: Option<u64>,
    /// When the server said something over TCP.
    heard_ns: u64,
    alive_ns: u64,
    /// When the last report was asked for, on the monotonic and on the real-time clock, and whether it has come.
    asked_ns: (u64, u64),
    has_report: bool,
    sampled_ns: u64,
    stated_ns: u64,
    pub(super) samples: Vec<LocalRow>,
    /// The requests that reached the server, as long as their answers may still come.
    pub(super) arrivals: HashMap<u64, u64>,
    /// The facts of the server's end, as it said at last.
    server_facts: EndFacts,
}

impl Stretch {
    pub(super) fn begin(
        watch: &Watch<'_>,
        server: SocketAddr,
        control: Control,
        welcome: Welcome,
    ) -> std::io::Result<Self> {
        let local = Local::towards(server.ip(), watch.settings.interface.as_deref())?;
        let (log, stop) = (SharedLog::default(), Arc::new(AtomicBool::new(false)));
        let now_ns = monotonic_ns();
        log.lock().heard_ns = now_ns;
        let probing = prober::Settings {
            server,
            session: welcome.session,
            interval_ns: watch.settings.interval.as_nanos() as u64,
            round_ns: SPARSE_ROUND_NS,
            silent_at: None,
        };
        let thread = {
            let (log, stop) = (log.clone(), Arc::clone(&stop));
            std::thread::spawn(move || prober::run(&probing, &stop, &log))
        };
        let start_ns = watch.now_ns();
        Ok(Self {
            server,
            control,
            local,
            log,
            stop,
            thread: Some(thread),
            ahead_ns: realtime_ns() as i64 - start_ns,
            start_ns,
            told_ns: start_ns,
            clock: ClockWatch::start(),
            interval_ns: watch.settings.interval.as_nanos() as u64,
            stopped_ns: None,
            heard_ns: now_ns,
            alive_ns: now_ns,
            asked_ns: (now_ns, realtime_ns()),
            has_report: true,
            sampled_ns: 0,
            stated_ns: 0,
            samples: Vec::new(),
            arrivals: HashMap::new(),
            server_facts: welcome.end.clone(),
            welcome,
        })
    }

    pub(super) fn server(&self) -> SocketAddr {
        self.server
    }

    pub(super) fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    pub(super) fn facts(&self) -> &EndFacts {
        self.local.facts()
    }

    /// Runs until the monitor is to end or the connection is gone.
    pub(super) async fn run(&mut self, watch: &mut Watch<'_>, report: &mut impl FnMut(Happening<'_>)) -> Ended {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (settings, interrupted) = (watch.settings, watch.interrupted);
        let mut loads = Loads::default();
        let mut test: Option<LoadTest<'_>> = None;
        let ended = loop {
            tokio::select! {
                found = LoadTest::ends(&mut test) => {
                    if let Some(test) = test.take() {
                        loads.take(self.time(realtime_ns()), &test, report);
                    }
                    loads.end(watch, self.time(realtime_ns()), found, report);
                }
                _ = ticks.tick() => {}
            }
            if let Some(test) = &test {
                loads.take(self.time(realtime_ns()), test, report);
            }
            if watch.is_over() {
                break Ended::Wanted;
            }
            if let Err(reason) = self.check().await {
                break Ended::Lost(reason);
            }
            if let Err(reason) = self.exchange(watch, &loads, report).await {
                break Ended::Lost(reason);
            }
            if test.is_none()
                && watch.now_ns() >= watch.next_load_ns
                && let Some((every, load)) = &settings.loads
            {
                watch.next_load_ns = watch.now_ns().saturating_add(every.as_nanos() as i64);
                test = Some(LoadTest::begin(load, self.server, interrupted));
            }
            self.state(watch, report);
        };
        if let Some(test) = test.take() {
            loads.take(self.time(realtime_ns()), &test, report);
            let found = tokio::time::timeout(LAST_TEST, test.result()).await;
            loads.end(watch, self.time(realtime_ns()), found.ok(), report);
        }
        self.settle_last(watch, &loads, &ended, report).await;
        ended
    }

    /// What shows that the stretch is over.
    async fn check(&mut self) -> Result<(), String> {
        let readings = Readings::now();
        if let Some(found) = self.clock.since(readings) {
            return Err(found.to_string());
        }
        // What a clock may be off by without having been set grows with the time since it was watched.
        self.clock = ClockWatch::at(readings);
        let now_ns = monotonic_ns();
        let heard_ns = {
            let log = self.log.lock();
            if let Some(failure) = &log.failure {
                return Err(format!("the probes' socket failed: {failure}"));
            }
            if let Some((before_ns, stopped_ns)) = stopped(&log.probes, readings.realtime_ns, self.interval_ns) {
                self.stopped_ns = Some(before_ns);
                return Err(format!("this program did not run for {} s", stopped_ns / SECOND));
            }
            log.heard_ns
        };
        if now_ns.saturating_sub(heard_ns.max(self.heard_ns)) > SILENCE_NS {
            return Err(format!("nothing was heard of the server for {} s", SILENCE_NS / SECOND));
        }
        if now_ns.saturating_sub(self.heard_ns) > TCP_SILENCE_NS {
            return Err("the server answers over UDP but not over TCP".to_owned());
        }
        if now_ns.saturating_sub(self.alive_ns) > ALIVE_NS {
            self.alive_ns = now_ns;
            self.request(&Request::Alive).await?;
        }
        if now_ns.saturating_sub(self.sampled_ns) > SAMPLE_NS {
            self.sampled_ns = now_ns;
            self.samples.push(LocalRow { t_ns: realtime_ns(), sample: self.local.sample() });
        }
        Ok(())
    }

    async fn request(&mut self, request: &Request) -> Result<(), String> {
        self.control.ask(request, Duration::from_nanos(SILENCE_NS)).await
    }

    /// Asks for reports, and takes the server's answers.
    async fn exchange(
        &mut self,
        watch: &mut Watch<'_>,
        loads: &Loads,
        report: &mut impl FnMut(Happening<'_>),
    ) -> Result<(), String> {
        if self.has_report && monotonic_ns().saturating_sub(self.asked_ns.0) > REPORT_NS {
            (self.asked_ns, self.has_report) = ((monotonic_ns(), realtime_ns()), false);
            self.request(&Request::Report).await?;
        }
        while let Some(answer) = self.control.poll() {
            match answer {
                Ok(Answer::Records(records)) => {
                    self.has_report = true;
                    // What was sent shortly before the report was asked for may still be on its way.
                    let until_ns = self.asked_ns.1.saturating_sub(SETTLED_NS);
                    self.learn(&records);
                    self.settle(watch, Some(&records), [until_ns; 2], loads, report);
                }
                Ok(Answer::Refused { reason }) => return Err(reason),
                Ok(_) => {}
                Err(_) => return Err("the server closed the connection".to_owned()),
            }
            self.heard_ns = monotonic_ns();
        }
        Ok(())
    }

    fn learn(&mut self, records: &ServerRecords) {
        self.server_facts.clone_from(&records.facts);
        let first = self.log.lock().first;
        self.arrivals.retain(|seq, _| *seq >= first);
        self.arrivals.extend(records.arrivals.iter().map(|row| (row.seq, row.arrived_ns)));
    }

    /// Hands over what is left at the end.
    async fn settle_last(
        &mut self,
        watch: &mut Watch<'_>,
        loads: &Loads,
        ended: &Ended,
        report: &mut impl FnMut(Happening<'_>),
    ) {
        if let Ended::Lost(_) = ended {
            let heard_ns = self.stopped_ns.unwrap_or_else(|| self.last_heard_ns());
            return self.settle(watch, None, [heard_ns; 2], loads, report);
        }
        let now_ns = realtime_ns();
        let certain_ns = now_ns.saturating_sub(FAREWELL.as_nanos() as u64);
        let records = tokio::time::timeout(FAREWELL, self.farewell()).await.unwrap_or_default();
        records.iter().for_each(|records| self.learn(records));
        match records.split_last() {
            None => self.settle(watch, None, [now_ns, certain_ns], loads, report),
            Some((last, before)) => {
                for records in before {
                    let until_ns = self.asked_ns.1.saturating_sub(SETTLED_NS);
                    self.settle(watch, Some(records), [until_ns; 2], loads, report);
                }
                self.settle(watch, Some(last), [now_ns, certain_ns], loads, report);
            }
        }
    }

    /// The last records; before them those of a report that was still on its way.
    async fn farewell(&mut self) -> Vec<ServerRecords> {
        let mut found = Vec::new();
        let wanted = if self.has_report { 1 } else { 2 };
        if self.control.send(&Request::Finish).await.is_err() {
            return found;
        }
        while found.len() < wanted {
            match self.control.answer().await {
                Ok(Answer::Records(records)) => found.push(*records),
                Ok(Answer::Noted) => {}
                _ => break,
            }
        }
        found
    }

    /// When anything arrived last, on the real-time clock.
    fn last_heard_ns(&self) -> u64 {
        let heard_ns = self.log.lock().heard_ns;
        realtime_ns().saturating_sub(monotonic_ns().saturating_sub(heard_ns))
    }

    /// The monitor's time at a reading of this machine's real-time clock.
    pub(super) fn time(&self, realtime_ns: u64) -> i64 {
        (realtime_ns as i64).saturating_sub(self.ahead_ns)
    }

    fn state(&mut self, watch: &Watch<'_>, report: &mut impl FnMut(Happening<'_>)) {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.stated_ns) < STATE.as_nanos() as u64 {
            return;
        }
        self.stated_ns = now_ns;
        let rtt_ns = {
            let log = self.log.lock();
            let recent_ns = realtime_ns().saturating_sub(3 * SECOND);
            let recent = log.probes.iter().rev().take_while(|probe| probe.t_ns >= recent_ns);
            recent.filter(|probe| probe.ttl == 0).find_map(Probe::rtt_ns)
        };
        let now = watch.monitor.now();
        report(Happening::State(State { t_ns: watch.now_ns(), rtt_ns, now, gap: None, left: watch.left() }));
    }

    /// Ends the stretch; returns when it ended.
    pub(super) fn finish(
        mut self,
        watch: &mut Watch<'_>,
        ended: &Ended,
        report: &mut impl FnMut(Happening<'_>),
    ) -> i64 {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let to_ns = match ended {
            Ended::Wanted => watch.now_ns(),
            // Samples were handed over up to when something was heard last.
            Ended::Lost(_) => self.told_ns.clamp(self.start_ns, watch.now_ns().max(self.start_ns)),
        };
        watch.monitor.end();
        watch.tell_episodes(report);
        watch.end_stretch(self.start_ns, to_ns);
        let mut log = self.log.lock();
        watch.stamped_by_kernel &= log.stamped_by_kernel.unwrap_or(true);
        let room = ERRORS_KEPT.saturating_sub(watch.send_errors_ns.len());
        watch.send_errors_ns.extend(log.send_errors_ns.drain(..).take(room));
        watch.ends = [end(self.local.facts(), log.distance), end(&self.server_facts, None)];
        drop(log);
        to_ns
    }
}

/// When the last probe was sent before this program did not run for a while, and for how long none was sent; `None`: it has run.
fn stopped(probes: &[Probe], now_ns: u64, interval_ns: u64) -> Option<(u64, u64)> {
    let sent = probes.iter().rev().take(2).map(|probe| probe.t_ns);
    let times: Vec<u64> = std::iter::once(now_ns).chain(sent).collect();
    let gaps = times.windows(2).map(|pair| (pair[1], pair[0].saturating_sub(pair[1])));
    gaps.max_by_key(|gap| gap.1).filter(|gap| gap.1 > STOPPED_NS + interval_ns)
}

impl Drop for Stretch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_did_not_run_sent_no_probes() {
        let at = |seconds: &[u64]| -> Vec<Probe> {
            seconds.iter().map(|s| Probe { t_ns: s * SECOND, ttl: 0, reply: None, error: None }).collect()
        };
        assert_eq!(stopped(&[], 100 * SECOND, SECOND), None);
        assert_eq!(stopped(&at(&[7, 8, 9]), 10 * SECOND, SECOND), None);
        // Before and after the first probe that follows.
        assert_eq!(stopped(&at(&[7, 8, 9]), 21 * SECOND, SECOND), Some((9 * SECOND, 12 * SECOND)));
        assert_eq!(stopped(&at(&[8, 9, 21]), 21 * SECOND, SECOND), Some((9 * SECOND, 12 * SECOND)));
        assert_eq!(stopped(&at(&[9, 21, 22]), 22 * SECOND, SECOND), None);
        assert_eq!(stopped(&at(&[0, 30]), 31 * SECOND, 30 * SECOND), None);
    }
}
