//! The wires for kernels without `sch_netem`. A thread carries every frame from one device of a wire's namespace to the
//! other. The delay counts from when the kernel saw the frame arrive. It is the time that the frame's bits take at the
//! wire's rate, plus the propagation delay.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bufferscope_endpoint::clock::read;
use bufferscope_endpoint::receive::receive;
use bufferscope_plan::Wire;
use bufferscope_scenario::Encapsulation;
use bufferscope_scenario::sizes::ETHERNET_HEADER_BYTES;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, send};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::ClockId as Clock;
use serde::Serialize;

use crate::kernel::{
    packet_socket,
    priority::{self, Precedence},
};
use crate::network::Network;
use crate::warnings::Warnings;

/// Larger than any frame while segmentation is off.
const FRAME_BYTES: usize = 2048;
/// Room for the frames that arrive while the thread waits for a CPU.
const BUFFER_BYTES: u32 = 16 << 20;
/// Number of frames taken from a device at a time, so that no device has to wait for another.
const FRAMES_AT_ONCE: usize = 256;
/// Frames may be this late on average, because a timer's wake-up takes that long.
const LATE_NS: u64 = 300_000;
/// Token of the timer; all other tokens are those of devices.
const TIMER: u64 = u64::MAX;

/// What the relay has done so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelayReport {
    /// Frames carried.
    pub frames: u64,
    /// How much later than due a frame left: on average ...
    pub mean_late_ns: u64,
    /// ... and at most.
    pub most_late_ns: u64,
    /// Frames lost because the relay could not keep up.
    pub lost: u64,
    /// Whether its thread has precedence over all ordinary threads.
    pub real_time: bool,
}

/// A relay at work.
#[derive(Debug)]
pub(crate) struct Relay {
    counters: Arc<Counters>,
    rates: WireRates,
    /// The receiving sockets, to query how many frames they missed.
    sockets: Vec<OwnedFd>,
}

/// The wires' rates in bits per second, as in the plan; 0 for a wire on which a frame takes no time.
#[derive(Clone, Debug)]
pub(crate) struct WireRates(Vec<[Arc<AtomicU64>; 2]>);

impl WireRates {
    /// Sets the rate of a wire from the next frame on.
    pub(crate) fn set(&self, (delay, side): (usize, usize), rate_bps: u64) {
        self.0[delay][side].store(rate_bps, Relaxed);
    }
}

#[derive(Debug, Default)]
struct Counters {
    frames: AtomicU64,
    late_ns: AtomicU64,
    most_late_ns: AtomicU64,
    lost: AtomicU64,
    real_time: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl RelayReport {
    /// Warns if the delays are often wrong.
    pub(crate) fn check(&self, warnings: &mut Warnings) {
        if self.mean_late_ns > LATE_NS {
            let late_ms = self.mean_late_ns as f64 / 1e6;
            warnings.add(format!("propagation delays were {late_ms:.3} ms too long on average: the machine was busy"));
        }
    }
}

impl Relay {
    /// Starts relaying in all delay namespaces of a network.
    pub(crate) fn start(network: &Network) -> io::Result<Self> {
        let mut directions = Vec::new();
        let mut sockets = Vec::new();
        let mut rates = Vec::new();
        for delay in &network.plan.delays {
            network.namespaces[delay.namespace].enter()?;
            let open = |device: &str| packet_socket::packets(if_nametoindex(device)?, BUFFER_BYTES);
            let [a, b] = [open(&delay.devices[0])?, open(&delay.devices[1])?];
            sockets.extend([a.try_clone()?, b.try_clone()?]);
            let [to_a, to_b] = delay.wires.map(Sending::new);
            rates.push([&to_a, &to_b].map(|wire| Arc::clone(&wire.rate_bps)));
            directions.push(Direction::new(a.try_clone()?, b.try_clone()?, to_b));
            directions.push(Direction::new(b, a, to_a));
        }
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        let mut carrier = Carrier::new(directions)?;
        std::thread::Builder::new().name("relay".into()).spawn(move || {
            shared.real_time.store(priority::set_realtime(0, Precedence::Others).is_ok().into(), Relaxed);
            if let Err(error) = carrier.carry(&shared) {
                *shared.failure.lock().expect("no panic while it is locked") = Some(error.to_string());
            }
        })?;
        Ok(Self { counters, rates: WireRates(rates), sockets })
    }

    /// The wires' rates, which may be changed while the relay is at work.
    pub(crate) fn rates(&self) -> WireRates {
        self.rates.clone()
    }

    /// What the relay has done so far; an error if it failed.
    pub(crate) fn report(&self) -> io::Result<RelayReport> {
        let counters = &self.counters;
        if let Some(failure) = counters.failure.lock().expect("no panic while it is locked").clone() {
            return Err(io::Error::other(format!("the delay relay failed: {failure}")));
        }
        for socket in &self.sockets {
            counters.lost.fetch_add(packet_socket::packets_missed(socket)?.into(), Relaxed);
        }
        let frames = counters.frames.load(Relaxed);
        Ok(RelayReport {
            frames,
            mean_late_ns: counters.late_ns.load(Relaxed).checked_div(frames).unwrap_or(0),
            most_late_ns: counters.most_late_ns.load(Relaxed),
            lost: counters.lost.load(Relaxed),
            real_time: counters.real_time.load(Relaxed) != 0,
        })
    }
}

/// One direction of a link.
struct Direction {
    from: OwnedFd,
    to: OwnedFd,
    sending: Sending,
    /// Frames with the time at which they leave. They leave in the order in which they arrived.
    held: VecDeque<(u64, Vec<u8>)>,
}

impl Direction {
    fn new(from: OwnedFd, to: OwnedFd, sending: Sending) -> Self {
        Self { from, to, sending, held: VecDeque::new() }
    }

    /// How late the next frame is; `None` if no frame is due yet.
    fn late(&self) -> Option<u64> {
        read(Clock::CLOCK_MONOTONIC).checked_sub(self.held.front()?.0)
    }
}

/// Computes when frames leave a wire. They are sent one after the other, and each then propagates.
struct Sending {
    rate_bps: Arc<AtomicU64>,
    encapsulation: Encapsulation,
    delay_ns: u64,
    free_at_ns: u64,
}

impl Sending {
    fn new(wire: Wire) -> Self {
        let Wire { rate_bps, encapsulation, delay_ns } = wire;
        Self { rate_bps: Arc::new(rate_bps.unwrap_or(0).into()), encapsulation, delay_ns, free_at_ns: 0 }
    }

    /// When a frame that arrives now will leave.
    fn send(&mut self, now_ns: u64, frame_bytes: usize) -> u64 {
        let ip_bytes = (frame_bytes as u32).saturating_sub(ETHERNET_HEADER_BYTES);
        let bits = u64::from(self.encapsulation.frame_bytes(ip_bytes)) * 8;
        let sent_ns = (bits * 1_000_000_000).checked_div(self.rate_bps.load(Relaxed)).unwrap_or(0);
        self.free_at_ns = self.free_at_ns.max(now_ns) + sent_ns;
        self.free_at_ns + self.delay_ns
    }
}

struct Carrier {
    directions: Vec<Direction>,
    epoll: Epoll,
    timer: TimerFd,
    /// Buffers for reuse.
    spare: Vec<Vec<u8>>,
}

impl Carrier {
    fn new(directions: Vec<Direction>) -> io::Result<Self> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        for (index, direction) in directions.iter().enumerate() {
            epoll.add(&direction.from, EpollEvent::new(EpollFlags::EPOLLIN, index as u64))?;
        }
        Ok(Self { directions, epoll, timer, spare: Vec::new() })
    }

    fn carry(&mut self, counters: &Counters) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        loop {
            let ready = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Err(Errno::EINTR) => 0,
                other => other?,
            };
            for event in events[..ready].iter().filter(|event| event.data() != TIMER) {
                self.take(event.data() as usize)?;
            }
            self.release(counters)?;
            self.arm()?;
        }
    }

    /// Takes the frames that have arrived at a device.
    fn take(&mut self, index: usize) -> io::Result<()> {
        let direction = &mut self.directions[index];
        let (monotonic_ns, realtime_ns) = (read(Clock::CLOCK_MONOTONIC), read(Clock::CLOCK_REALTIME));
        for _ in 0..FRAMES_AT_ONCE {
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.resize(FRAME_BYTES, 0);
            let Some(arrival) = receive(&direction.from, &mut frame)? else {
                self.spare.push(frame);
                break;
            };
            frame.truncate(arrival.bytes);
            let ago_ns = arrival.realtime_ns.map_or(0, |stamp| realtime_ns.saturating_sub(stamp));
            let leaves_ns = direction.sending.send(monotonic_ns.saturating_sub(ago_ns), arrival.bytes);
            // Setting the clock back must not make a frame overtake another.
            let leaves_ns = direction.held.back().map_or(leaves_ns, |(before_ns, _)| leaves_ns.max(*before_ns));
            direction.held.push_back((leaves_ns, frame));
        }
        Ok(())
    }

    /// Sends the frames that are due.
    fn release(&mut self, counters: &Counters) -> io::Result<()> {
        for direction in &mut self.directions {
            while let Some(late_ns) = direction.late() {
                let Some((_, frame)) = direction.held.pop_front() else { break };
                match send(direction.to.as_raw_fd(), &frame, MsgFlags::empty()) {
                    Ok(_) => {}
                    Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                        counters.lost.fetch_add(1, Relaxed);
                    }
                    Err(error) => return Err(error.into()),
                }
                counters.frames.fetch_add(1, Relaxed);
                counters.late_ns.fetch_add(late_ns, Relaxed);
                counters.most_late_ns.fetch_max(late_ns, Relaxed);
                self.spare.push(frame);
            }
        }
        Ok(())
    }

    fn arm(&self) -> io::Result<()> {
        match self.directions.iter().filter_map(|direction| direction.held.front()).map(|(at, _)| *at).min() {
            Some(next_ns) => {
                let at = TimeSpec::new((next_ns / 1_000_000_000) as _, (next_ns % 1_000_000_000) as _);
                self.timer.set(Expiration::OneShot(at), TimerSetTimeFlags::TFD_TIMER_ABSTIME)?;
            }
            None => self.timer.unset()?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(rate_bps: Option<u64>, overhead_bytes: u32) -> Sending {
        Sending::new(Wire { rate_bps, encapsulation: Encapsulation::adding(overhead_bytes), delay_ns: 5_000_000 })
    }

    #[test]
    fn frames_are_sent_one_after_the_other_and_then_propagate() {
        // 1514 bytes take 1,211,200 ns at 10 Mbit/s.
        let mut wire = wire(Some(10_000_000), 14);
        assert_eq!(wire.send(100, 1514), 100 + 1_211_200 + 5_000_000);
        assert_eq!(wire.send(200, 1514), 100 + 2 * 1_211_200 + 5_000_000, "it waits for the one before");
        assert_eq!(wire.send(9_000_000, 1514), 9_000_000 + 1_211_200 + 5_000_000, "the wire was idle");
    }

    #[test]
    fn overhead_counts_and_a_new_rate_holds_from_the_next_frame_on() {
        // 1500 bytes plus 38 of the link layer: 1538 bytes are 12,304 bits.
        let mut wire = wire(Some(1_000_000), 38);
        assert_eq!(wire.send(0, 1514), 12_304_000 + 5_000_000);
        wire.rate_bps.store(100_000_000, Relaxed);
        assert_eq!(wire.send(0, 1514), 12_304_000 + 123_040 + 5_000_000);
    }

    #[test]
    fn a_wire_without_a_rate_only_delays() {
        let mut wire = wire(None, 0);
        assert_eq!((wire.send(1, 1514), wire.send(2, 1514)), (5_000_001, 5_000_002));
        assert_eq!(wire.send(3, 4), 5_000_003, "no frame is shorter than nothing");
    }
}
