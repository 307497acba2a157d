//! The part of a test that floods each direction, after the load.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bufferscope_verdict::input::Direction;

use super::flood::FloodSocket;
use super::test_run::{Early, TICK, TestRun};
use super::{Event, Progress};
use crate::flood::{IP_BYTES, LONGEST_NS, RAMP_NS, TIMES_GOODPUT};
use crate::records::FloodRow;
use crate::time::{MS, SECOND, monotonic_ns, realtime_ns};
use crate::wire::control::{PhaseKind, Request};

/// IP packets per goodput: 1500 / 1448.
const HEADER_FACTOR: f64 = 1500.0 / 1448.0;
/// A flood that is not this many times as fast as the load fills nothing in its time.
const LEAST_TIMES: f64 = 1.1;
/// The server notes a request within this time.
const NOTED: Duration = Duration::from_secs(5);
/// A buffer is full if the delay of this time is hardly longer than that of the same time before.
const LEVEL_NS: u64 = 600 * MS;
const LEVEL_GROWTH: f64 = 1.03;
const LEVEL_GROWTH_NS: u64 = MS;
/// After its end, a flood's last packets may be under way for so long.
const LAST_PACKETS: Duration = Duration::from_secs(6);

impl TestRun<'_> {
    /// Floods each direction that was loaded, if the server accepts it.
    pub(super) async fn floods(&mut self, report: &mut impl FnMut(Event<'_>)) -> Result<(), Early> {
        let Some(most_bps) = self.welcome.end.accepts_flood_bps else {
            self.warnings.push("no flood: the server does not accept it (serve --accept-flood)".to_owned());
            return Ok(());
        };
        if self.over_tcp {
            self.warnings.push("no flood: UDP does not come through".to_owned());
            return Ok(());
        }
        for (at, direction) in [Direction::Down, Direction::Up].into_iter().enumerate() {
            let way = if direction == Direction::Down { "download" } else { "upload" };
            let rate_bps = self.goodput_bps[at] * HEADER_FACTOR;
            if rate_bps <= 0.0 {
                self.warnings.push(format!("no flood of the {way}: its goodput was not measured"));
                continue;
            }
            let peak_bps = ((TIMES_GOODPUT * rate_bps) as u64).min(most_bps);
            if (peak_bps as f64) < LEAST_TIMES * rate_bps {
                let most = most_bps as f64 / 1e6;
                self.warnings.push(format!(
                    "no flood of the {way}: the server accepts at most {most} Mbit/s, too slow to fill a buffer"
                ));
                continue;
            }
            self.flood(direction, peak_bps, report).await?;
            self.drain().await?;
        }
        Ok(())
    }

    async fn flood(
        &mut self,
        direction: Direction,
        peak_bps: u64,
        report: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Early> {
        let (server, session) = (self.settings.server, self.welcome.session);
        let opened = tokio::task::spawn_blocking(move || FloodSocket::open(server, session)).await;
        let socket = match opened {
            Ok(Ok(socket)) => socket,
            Ok(Err(error)) => {
                self.warnings.push(format!("no flood: {error}"));
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        self.request(&Request::Flood { direction, bps: peak_bps }).await?;
        let until = tokio::time::Instant::now() + NOTED;
        while self.open_requests > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(TICK / 4).await;
            self.check().await?;
        }
        let uploaded = self.uploaded_by_replies();
        let (stop, row) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(FloodRow::default())));
        let thread = {
            let (stop, row) = (Arc::clone(&stop), Arc::clone(&row));
            std::thread::spawn(move || socket.run(direction, peak_bps, &stop, &row))
        };
        let (begun_ns, start_ns) = (monotonic_ns(), realtime_ns());
        let phase = if direction == Direction::Down { PhaseKind::Download } else { PhaseKind::Upload };
        let mut ended = Ok(());
        while !thread.is_finished() {
            tokio::time::sleep(TICK).await;
            ended = ended.and(self.check().await);
            let elapsed_ns = monotonic_ns() - begun_ns;
            let is_full = elapsed_ns > RAMP_NS + LEVEL_NS && is_level(&self.echoes_since(start_ns), elapsed_ns);
            if ended.is_err() || is_full {
                stop.store(true, Ordering::Relaxed);
            }
            report(Event::Progress(Progress {
                t_ns: monotonic_ns() - self.start_monotonic_ns,
                phase,
                rtt_ns: self.last_rtt_ns(),
                rates_bps: [None; 2],
                left_s: LONGEST_NS.saturating_sub(elapsed_ns) as f64 / SECOND as f64,
            }));
        }
        let mut row = std::mem::take(&mut *row.lock().unwrap_or_else(PoisonError::into_inner));
        if direction == Direction::Up && ended.is_ok() {
            ended = self.await_last_packets(row.end_ns).await;
            (row.received_packets, row.received) = self.flood_received(row.start_ns, uploaded);
        }
        self.client.floods.push(row);
        ended
    }

    /// Waits until an echo is answered that was sent after the flood's last packet: then all that are not lost have arrived.
    async fn await_last_packets(&mut self, end_ns: u64) -> Result<(), Early> {
        let until = tokio::time::Instant::now() + LAST_PACKETS;
        while self.echoes_since(end_ns).is_empty() && tokio::time::Instant::now() < until {
            tokio::time::sleep(TICK / 2).await;
            self.check().await?;
        }
        Ok(())
    }

    /// Bytes that the server had received by its last reply.
    fn uploaded_by_replies(&self) -> u64 {
        let log = self.log.lock();
        log.probes.iter().filter_map(|probe| probe.reply).map(|reply| reply.load_bytes).max().unwrap_or(0)
    }

    /// The packets of a flood that the server had received at the end, and its bytes by times of the server's clock; `before` are
    /// those that it had received before.
    fn flood_received(&self, start_ns: u64, before: u64) -> (u64, Vec<(u64, u64)>) {
        let log = self.log.lock();
        let since = log.probes.iter().filter(|probe| probe.t_ns >= start_ns).filter_map(|probe| probe.reply);
        let mut counts: Vec<(u64, u64)> =
            since.map(|reply| (reply.arrived_ns, reply.load_bytes.saturating_sub(before))).collect();
        counts.sort_unstable();
        (counts.last().map_or(0, |last| last.1 / IP_BYTES), counts)
    }
}

/// Whether the median round trip has stopped growing. `trips` are those since the beginning of the flood, as time and round trip.
fn is_level(trips: &[(u64, u64)], elapsed_ns: u64) -> bool {
    let median = |from_ns: u64, to_ns: u64| {
        let mut found: Vec<u64> =
            trips.iter().filter(|(t_ns, _)| (from_ns..to_ns).contains(t_ns)).map(|(_, rtt_ns)| *rtt_ns).collect();
        found.sort_unstable();
        found.get(found.len() / 2).copied()
    };
    // The last echoes to be answered were sent a round trip ago.
    let end_ns = trips.last().map_or(0, |last| last.0).min(elapsed_ns);
    let middle_ns = end_ns.saturating_sub(LEVEL_NS);
    let (before, last) = (median(middle_ns.saturating_sub(LEVEL_NS), middle_ns), median(middle_ns, end_ns));
    before.zip(last).is_some_and(|(before, last)| {
        middle_ns >= RAMP_NS && last as f64 <= before as f64 * LEVEL_GROWTH + LEVEL_GROWTH_NS as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Echoes each 20 ms, answered until now.
    fn trips(elapsed_ms: u64, rtt_ms: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
        let sent = (0..elapsed_ms).step_by(20).filter(|ms| ms + rtt_ms(*ms) <= elapsed_ms);
        sent.map(|ms| (ms * MS, rtt_ms(ms) * MS)).collect()
    }

    #[test]
    fn a_flood_ends_when_the_delay_has_stopped_growing() {
        let grows_until = |ms: u64| move |t: u64| 20 + t.min(ms) / 4;
        assert!(!is_level(&trips(4000, grows_until(5000)), 4000 * MS));
        assert!(is_level(&trips(4500, grows_until(1000)), 4500 * MS));
        assert!(!is_level(&trips(2500, grows_until(1000)), 2500 * MS), "the rate still grows");
        assert!(!is_level(&[], 4000 * MS));
    }
}
