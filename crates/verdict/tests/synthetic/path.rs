//! A path: its links, queues, hops and clocks. Times and delays are in milliseconds.

use super::queue::Queue;
use super::random::Random;

pub(crate) const UP: usize = 0;
pub(crate) const DOWN: usize = 1;

/// What happens on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Queue,
    TwoQueues,
    Clean,
    FlowQueueing,
    Policer,
    ReceiveWindow,
    OtherTraffic,
    OtherDirection,
    PathChanged,
}

/// A hop that answers probes.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    /// The probability that it answers.
    pub(crate) answers: f64,
    /// Its own processor adds up to this under load.
    pub(crate) slow_ms: f64,
    /// It is in a tunnel: its answers go through the hop at the end.
    pub(crate) tunnel: Option<usize>,
    /// Its answers come back on a path of their own, without queues.
    pub(crate) detour: bool,
    /// The time that it takes to answer.
    pub(crate) processing_ms: f64,
}

/// The whole case.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) kind: Kind,
    /// The number of links up and down.
    pub(crate) links: [usize; 2],
    /// The delay of each link, up and down, from the client.
    pub(crate) delays: [Vec<f64>; 2],
    /// What the load of a direction fills.
    pub(crate) queues: [Vec<Queue>; 2],
    /// Hops from the client (up path) and from the server (down path); index 0 is the first hop.
    pub(crate) hops: [Vec<Hop>; 2],
    pub(crate) rate_bps: [f64; 2],
    /// The mean of the jitter of the first link, and whether it has a heavy tail.
    pub(crate) jitter_ms: f64,
    pub(crate) heavy: bool,
    /// The mean of the jitter of every link.
    pub(crate) forwarding_ms: f64,
    /// The error of the mapping of the server's clock to the client's.
    pub(crate) mapping_ms: f64,
    pub(crate) drift: f64,
    pub(crate) offset_ms: f64,
    pub(crate) stamps: [bool; 2],
    pub(crate) wifi: bool,
    pub(crate) one_way: bool,
    /// How long the phases are: idle, loaded, and cool-down.
    pub(crate) idle_ms: f64,
    pub(crate) loaded_ms: f64,
    pub(crate) cool_ms: f64,
    /// Another user's queue: direction, link, delay; on all the time in bursts, or only during the load in one direction.
    pub(crate) other: Option<(usize, usize, f64)>,
    /// A modem on the second link that answers at an address of its own: whether a queue there is in it, up and down.
    pub(crate) modem: Option<[bool; 2]>,
}

impl Path {
    pub(crate) fn random(random: &mut Random) -> Self {
        let kind = match random.below(100) {
            0..=49 => Kind::Queue,
            50..=57 => Kind::TwoQueues,
            58..=75 => Kind::Clean,
            76..=80 => Kind::FlowQueueing,
            81..=84 => Kind::Policer,
            85..=88 => Kind::ReceiveWindow,
            89..=92 => Kind::OtherTraffic,
            93..=96 => Kind::OtherDirection,
            _ => Kind::PathChanged,
        };
        let up = 2 + random.below(7);
        // Both directions may differ in the middle.
        let asymmetric = up >= 5 && random.chance(0.15);
        let down = if asymmetric { up + 1 } else { up };
        let rtt = random.magnitude(5.0, 120.0);
        let delays = [up, down].map(|links| {
            let weights: Vec<f64> =
                (0..links).map(|link| if link == 0 { 0.02 } else { random.within(0.05, 1.0) }).collect();
            let all: f64 = weights.iter().sum();
            weights.iter().map(|weight| weight / all * rtt / 2.0).collect()
        });
        let mut rate_bps = [0, 1].map(|_| random.magnitude(1e6, 100e6));
        if kind == Kind::OtherDirection {
            // If one direction were much slower, acknowledgements of the load could fill the queue.
            rate_bps[UP] = rate_bps[UP].clamp(rate_bps[DOWN] / 10.0, rate_bps[DOWN] * 10.0);
        }
        let wifi = random.chance(0.4);
        let mut path = Self {
            kind,
            links: [up, down],
            delays,
            queues: [Vec::new(), Vec::new()],
            hops: [up, down].map(|links| hops(random, links - 1)),
            rate_bps,
            jitter_ms: if wifi { random.magnitude(0.2, 2.0) } else { 0.05 },
            heavy: wifi,
            forwarding_ms: random.magnitude(0.01, 0.3),
            mapping_ms: random.within(-25.0, 25.0),
            drift: random.within(-100e-6, 100e-6),
            offset_ms: random.within(-1e6, 1e6),
            stamps: [random.chance(0.7), random.chance(0.9)],
            wifi,
            // Without comparable clocks, nothing shows in which direction another user's queue is.
            one_way: kind == Kind::OtherDirection || random.chance(0.95),
            idle_ms: random.within(5000.0, 8000.0),
            loaded_ms: random.within(10_000.0, 15_000.0),
            cool_ms: if random.chance(0.8) { random.within(3000.0, 6000.0) } else { 0.0 },
            other: None,
            modem: None,
        };
        path.plant(random);
        if up >= 3 && random.chance(0.5) {
            path.modem = Some([random.chance(0.5), random.chance(0.1)]);
        }
        path
    }

    fn plant(&mut self, random: &mut Random) {
        match self.kind {
            Kind::Queue | Kind::TwoQueues => {
                for direction in [UP, DOWN] {
                    // Some loads fill no queue.
                    if self.kind == Kind::Queue && random.chance(0.15) {
                        continue;
                    }
                    let most = random.magnitude(1.0, 1000.0);
                    let fill = random.within(200.0, 0.3 * self.loaded_ms).max(most);
                    // The sender's queueing discipline has link 0; it needs stamps to be seen.
                    let first = usize::from(!self.stamps[direction]);
                    let link = first + random.below(self.links[direction] + 1 - first);
                    self.queues[direction].push(Queue::random(random, link, most, fill));
                    if self.kind == Kind::TwoQueues {
                        let other = (link + 1 + random.below(self.links[direction] - 1)) % (self.links[direction] + 1);
                        let most = most * random.magnitude(0.3, 3.0);
                        if other >= first && other != link {
                            self.queues[direction].push(Queue::random(random, other, most, fill));
                        }
                    }
                }
            }
            Kind::OtherTraffic | Kind::OtherDirection => {
                let direction = random.below(2);
                let link = 1 + random.below(self.links[direction]);
                self.other = Some((direction, link, random.magnitude(40.0, 300.0)));
            }
            Kind::Clean | Kind::FlowQueueing | Kind::Policer | Kind::ReceiveWindow | Kind::PathChanged => {}
        }
    }

    /// When the loads run: download, upload, both.
    pub(crate) fn load(&self, number: usize) -> (f64, f64) {
        let start = self.idle_ms + number as f64 * (self.loaded_ms + 3000.0);
        (start, start + self.loaded_ms)
    }

    /// When the load of a direction runs.
    fn loads(&self, direction: usize) -> [(f64, f64); 2] {
        [self.load(if direction == DOWN { 0 } else { 1 }), self.load(2)]
    }

    /// When any load runs.
    fn loaded(&self, t: f64) -> bool {
        (0..3).any(|number| t >= self.load(number).0 && t <= self.load(number).1)
    }

    /// The delay of all queues at a link (0: the sender's queueing discipline) in a direction.
    pub(crate) fn queued(&self, direction: usize, link: usize, t: f64) -> f64 {
        let loads = self.loads(direction);
        let queues = self.queues[direction].iter().filter(|queue| queue.link == link);
        let own: f64 =
            queues.map(|queue| loads.iter().map(|&(start, end)| queue.delay(t, start, end)).fold(0.0, f64::max)).sum();
        own + self.others(direction, link, t) + self.packet(direction, link, t)
    }

    /// With flow queueing, a probe waits for the packet that is being sent, and sometimes for one more.
    fn packet(&self, direction: usize, link: usize, t: f64) -> f64 {
        let busy = self.loads(direction).iter().any(|&(start, end)| t >= start && t <= end);
        if self.kind != Kind::FlowQueueing || link != 2 || !busy {
            return 0.0;
        }
        1514.0 * 8.0 / self.rate_bps[direction] * 1e3 * Random::new((t * 1e3) as u64).within(0.0, 1.5)
    }

    fn others(&self, direction: usize, link: usize, t: f64) -> f64 {
        let Some((at, _, most)) = self.other.filter(|other| (other.0, other.1) == (direction, link)) else {
            return 0.0;
        };
        let on = match self.kind {
            // On and off, from the beginning: 2 of 3 seconds.
            Kind::OtherTraffic => (t / 3000.0).fract() < 0.67,
            // Only while our load goes in the other direction.
            _ => {
                let (start, end) = self.loads(1 - at)[0];
                (start..end).contains(&t)
            }
        };
        if on { most } else { 0.0 }
    }

    /// One crossing of links of a direction, in the order of the packet; returns when it arrives. `links` are counted from the
    /// client.
    pub(crate) fn cross(
        &self,
        random: &mut Random,
        direction: usize,
        links: std::ops::RangeInclusive<usize>,
        start: f64,
    ) -> f64 {
        let mut t = start;
        let (low, high) = (*links.start(), *links.end());
        let count = (high + 1).saturating_sub(low);
        for step in 0..count {
            let link = if direction == UP { low + step } else { high - step };
            t += self.queued(direction, link, t)
                + self.delays[direction][link - 1]
                + random.exponential(self.forwarding_ms);
            if link == 1 {
                // A busy radio channel makes access to it less regular.
                let busy = if self.wifi && self.loaded(t) { 1.5 } else { 1.0 };
                t += busy * self.jitter(random);
            }
        }
        t
    }

    /// The delay of links without queues.
    pub(crate) fn idle(&self, direction: usize, links: std::ops::RangeInclusive<usize>) -> f64 {
        self.delays[direction][links.start() - 1..*links.end()].iter().sum()
    }

    fn jitter(&self, random: &mut Random) -> f64 {
        let short = random.exponential(self.jitter_ms);
        if self.heavy && random.chance(0.03) { short + self.jitter_ms * 5.0 / random.unit().max(0.02) } else { short }
    }
}

fn hops(random: &mut Random, count: usize) -> Vec<Hop> {
    let mut hops: Vec<Hop> = (0..count)
        .map(|_| {
            let silent = random.chance(0.12);
            let limited = random.chance(0.08);
            Hop {
                answers: if silent {
                    0.0
                } else if limited {
                    0.6
                } else {
                    0.98
                },
                slow_ms: if random.chance(0.1) { random.magnitude(3.0, 100.0) } else { 0.0 },
                tunnel: None,
                detour: random.chance(0.02),
                processing_ms: random.magnitude(0.05, 0.5),
            }
        })
        .collect();
    if count >= 4 && random.chance(0.15) {
        let first = 1 + random.below(count - 3);
        let last = (first + 1 + random.below(2)).min(count - 1);
        for hop in &mut hops[first..last] {
            hop.tunnel = Some(last);
        }
    }
    hops
}
