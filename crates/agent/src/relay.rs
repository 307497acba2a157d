//! Replaces `sch_netem` on kernels that lack it. A thread carries every IPv4 frame between the two devices of a wire's
//! namespace. A frame leaves after its transmission time at the wire's rate plus the propagation delay, counted from the
//! kernel's receive timestamp.

mod sending;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use bufferscope_endpoint::clock::{at_once, read};
use bufferscope_endpoint::receive::receive;
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
use sending::Sending;

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
    /// Mean time by which frames left late.
    pub mean_late_ns: u64,
    /// Longest time by which a frame left late.
    pub most_late_ns: u64,
    /// Frames lost because the relay could not keep up, or because the device that they leave by had no room.
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
    real_time: AtomicBool,
    failure: OnceLock<String>,
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
            shared.real_time.store(priority::set_realtime(0, Precedence::Others).is_ok(), Relaxed);
            if let Err(error) = carrier.carry(&shared) {
                let _ = shared.failure.set(error.to_string());
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
        if let Some(failure) = counters.failure.get() {
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
            real_time: counters.real_time.load(Relaxed),
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
        let clocks_ns = at_once();
        for _ in 0..FRAMES_AT_ONCE {
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.resize(FRAME_BYTES, 0);
            let Some(arrival) = receive(&direction.from, &mut frame)? else {
                self.spare.push(frame);
                break;
            };
            frame.truncate(arrival.bytes);
            let now_ns = read(Clock::CLOCK_MONOTONIC);
            let arrived_ns = arrival.realtime_ns.map_or(now_ns, |stamp_ns| arrived_ns(stamp_ns, clocks_ns, now_ns));
            direction.held.push_back((direction.sending.send(arrived_ns, arrival.bytes), frame));
        }
        Ok(())
    }

    /// Sends the frames that are due.
    fn release(&mut self, counters: &Counters) -> io::Result<()> {
        for direction in &mut self.directions {
            while let Some(late_ns) = direction.late() {
                let Some((_, frame)) = direction.held.pop_front() else { break };
                match send(direction.to.as_raw_fd(), &frame, MsgFlags::empty()) {
                    Ok(_) => {
                        counters.frames.fetch_add(1, Relaxed);
                        counters.late_ns.fetch_add(late_ns, Relaxed);
                        counters.most_late_ns.fetch_max(late_ns, Relaxed);
                    }
                    Err(Errno::EAGAIN | Errno::ENOBUFS) => {
                        counters.lost.fetch_add(1, Relaxed);
                    }
                    Err(error) => return Err(error.into()),
                }
                self.spare.push(frame);
            }
        }
        Ok(())
    }

    /// Sets the timer to when the next frame leaves. Setting or disarming the timer also clears its expiration, so it
    /// need not be read.
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

/// When a frame with this stamp of the real-time clock arrived, on the monotonic clock. `clocks_ns` are the two clocks at
/// one time; the frame may have arrived after it. If the real-time clock was set back in between, the frame would appear
/// to arrive in the future, so it counts as arriving `now_ns`.
fn arrived_ns(stamp_ns: u64, (monotonic_ns, realtime_ns): (u64, u64), now_ns: u64) -> u64 {
    monotonic_ns.saturating_add_signed(stamp_ns.wrapping_sub(realtime_ns).cast_signed()).min(now_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_converted_to_the_monotonic_clock() {
        let clocks_ns = (5_000, 1_000_000);
        assert_eq!(arrived_ns(999_000, clocks_ns, 9_000), 4_000, "before the clocks were read");
        assert_eq!(arrived_ns(1_003_000, clocks_ns, 9_000), 8_000, "after the clocks were read");
    }

    #[test]
    fn no_frame_arrives_in_the_future_or_before_the_clock_began() {
        let clocks_ns = (5_000, 1_000_000);
        assert_eq!(arrived_ns(3_600_000_000_000, clocks_ns, 9_000), 9_000, "the clock was set back");
        assert_eq!(arrived_ns(0, clocks_ns, 9_000), 0, "the clock was set forward");
    }
}
