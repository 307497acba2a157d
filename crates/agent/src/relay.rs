//! Propagation delay where the kernel has no `sch_netem`: a thread carries every frame from one device of a delay
//! namespace to the other, the delay after the kernel saw it arrive.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{MsgFlags, send};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::ClockId as Clock;
use serde::Serialize;

use crate::kernel::clock::read;
use crate::kernel::receive::receive;
use crate::kernel::{priority, socket};
use crate::network::Network;
use crate::warnings::Warnings;

/// Larger than any frame while segmentation is off.
const FRAME_BYTES: usize = 2048;
/// Room for what arrives while the thread waits for a CPU.
const BUFFER_BYTES: u32 = 16 << 20;
/// Frames taken from a device at a time, so that no device waits for another.
const FRAMES_AT_ONCE: usize = 256;
/// Frames may be this late on average: it is what a timer's wake-up takes.
const LATE_NS: u64 = 300_000;
/// Token of the timer; devices have the others.
const TIMER: u64 = u64::MAX;

/// What the relay did so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelayReport {
    /// Frames carried.
    pub frames: u64,
    /// How much later than it should a frame left: on average ...
    pub mean_late_ns: u64,
    /// ... and at most.
    pub most_late_ns: u64,
    /// Frames lost because the relay did not keep up.
    pub lost: u64,
    /// Whether its thread runs before all ordinary ones.
    pub real_time: bool,
}

/// A relay at work.
#[derive(Debug)]
pub(crate) struct Relay {
    counters: Arc<Counters>,
    /// The sockets that receive, to ask for what they missed.
    sockets: Vec<OwnedFd>,
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
    /// Delays that are often wrong are worth a warning.
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
        for delay in &network.plan.delays {
            network.namespaces[delay.namespace].enter()?;
            let open = |device: &str| socket::packets(if_nametoindex(device)?, BUFFER_BYTES);
            let [a, b] = [open(&delay.devices[0])?, open(&delay.devices[1])?];
            sockets.extend([a.try_clone()?, b.try_clone()?]);
            directions.push(Direction::new(a.try_clone()?, b.try_clone()?, delay.delay_ns[1]));
            directions.push(Direction::new(b, a, delay.delay_ns[0]));
        }
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        let mut carrier = Carrier::new(directions)?;
        std::thread::Builder::new().name("relay".into()).spawn(move || {
            shared.real_time.store(priority::raise().into(), Relaxed);
            if let Err(error) = carrier.carry(&shared) {
                *shared.failure.lock().expect("nobody panics holding it") = Some(error.to_string());
            }
        })?;
        Ok(Self { counters, sockets })
    }

    /// What it did so far; an error if it broke down.
    pub(crate) fn report(&self) -> io::Result<RelayReport> {
        let counters = &self.counters;
        if let Some(failure) = counters.failure.lock().expect("nobody panics holding it").clone() {
            return Err(io::Error::other(format!("the delay relay broke down: {failure}")));
        }
        for socket in &self.sockets {
            counters.lost.fetch_add(socket::packets_missed(socket)?.into(), Relaxed);
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
    delay_ns: u64,
    /// Frames with the time at which they leave, in order of arrival and so of leaving.
    held: VecDeque<(u64, Vec<u8>)>,
}

impl Direction {
    fn new(from: OwnedFd, to: OwnedFd, delay_ns: u64) -> Self {
        Self { from, to, delay_ns, held: VecDeque::new() }
    }

    /// By how much the next frame is late; `None` if it is not due yet, or there is none.
    fn late(&self) -> Option<u64> {
        read(Clock::CLOCK_MONOTONIC).checked_sub(self.held.front()?.0)
    }
}

struct Carrier {
    directions: Vec<Direction>,
    epoll: Epoll,
    timer: TimerFd,
    /// Buffers to use again.
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

    /// Takes what arrived at a device.
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
            let leaves_ns = monotonic_ns.saturating_sub(ago_ns) + direction.delay_ns;
            // A clock that is set back must not make a frame overtake another.
            let leaves_ns = direction.held.back().map_or(leaves_ns, |(before_ns, _)| leaves_ns.max(*before_ns));
            direction.held.push_back((leaves_ns, frame));
        }
        Ok(())
    }

    /// Sends what is due.
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
