use super::*;
use crate::input::{AnswerKind, EndName};

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const MS: i64 = 1_000_000;
/// The server's clock is far ahead and runs faster by 40 ppm.
const AHEAD_NS: i64 = 777 * SECOND;
const DRIFT: f64 = 40e-6;

/// A path of 12 ms with three hops, of which the queue is behind the second.
struct Path {
    monitor: Monitor,
    random: u64,
    episodes: Vec<Episode>,
    second_hop: &'static str,
}

impl Path {
    fn new() -> Self {
        Self { monitor: Monitor::default(), random: 1, episodes: Vec::new(), second_hop: "192.0.2.2" }
    }

    /// Up to a millisecond, as xorshift draws it.
    fn jitter_ns(&mut self) -> i64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % MS as u64) as i64
    }

    /// An echo each second, with delays in both directions; `None`: it is lost. A hop answers every ten seconds.
    fn run(&mut self, seconds: std::ops::Range<i64>, queued_ms: impl Fn(i64) -> [Option<i64>; 2]) {
        for second in seconds {
            let t_ns = second * SECOND;
            let [up, down] = queued_ms(second).map(|way| way.map(|ms| ms * MS + 5 * MS));
            let lost = match (up, down) {
                (None, _) => Some(Lost::Up),
                (_, None) => Some(Lost::Down),
                _ => None,
            };
            let (up, down) = (up.map(|ns| ns + self.jitter_ns()), down.map(|ns| ns + self.jitter_ns()));
            let ahead_ns = AHEAD_NS + (t_ns as f64 * DRIFT) as i64;
            let answered = up.zip(down);
            let echo = Echo {
                t_ns,
                rtt_ns: answered.map(|(up, down)| up + down),
                up_ns: answered.map(|(up, _)| up + ahead_ns),
                down_ns: answered.map(|(_, down)| down - ahead_ns),
                lost,
            };
            if second % 10 == 0 {
                let behind_ns = up.unwrap_or(0) + down.unwrap_or(0) - 10 * MS;
                self.hop(t_ns, 1, MS, "192.0.2.1");
                self.hop(t_ns, 2, 2 * MS + behind_ns, self.second_hop);
            }
            self.monitor.echo(&echo);
            self.episodes.extend(self.monitor.take());
        }
    }

    fn hop(&mut self, t_ns: i64, ttl: u8, rtt_ns: i64, address: &str) {
        self.monitor.hop(&LadderProbe {
            t_ns,
            end: EndName::Client,
            ttl,
            address: Some(address.to_owned()),
            rtt_ns: Some(rtt_ns),
            kind: AnswerKind::Exceeded,
            mpls: false,
        });
    }

    fn of_kind(&self, kind: EpisodeKind) -> Vec<&Episode> {
        self.episodes.iter().filter(|episode| episode.kind == kind).collect()
    }
}

const QUIET: fn(i64) -> [Option<i64>; 2] = |_| [Some(0); 2];

#[test]
fn a_quiet_day_has_no_episode_although_the_clocks_drift_by_seconds() {
    let mut path = Path::new();
    path.run(0..24 * 3600, QUIET);
    path.monitor.end();
    assert_eq!(path.episodes, []);
    let summary = path.monitor.summary();
    assert_eq!((summary.rtt.count, summary.late, summary.gaps), (24 * 3600, 0, 0));
    let median_ms = summary.rtt.p50_ns.unwrap() as f64 / 1e6;
    assert!((median_ms - 11.0).abs() < 0.1, "{median_ms}");
}

#[test]
fn an_evening_of_congestion_is_one_episode_with_its_direction_and_place() {
    let mut path = Path::new();
    // From 75 min on, for three hours: a queue of 180 ms downwards, empty for a second now and then.
    let (from, to) = (75 * 60, 255 * 60);
    path.run(0..5 * 3600, |second| match second {
        second if (from..to).contains(&second) && second % 300 != 0 => [Some(0), Some(180)],
        _ => [Some(0); 2],
    });
    path.monitor.end();
    let episodes = path.of_kind(EpisodeKind::Delay);
    let [episode] = episodes[..] else { panic!("{:?}", path.episodes) };
    assert!((episode.start_ns - from * SECOND).abs() < 5 * SECOND, "{episode:?}");
    assert!((episode.end_ns - to * SECOND).abs() < 5 * SECOND, "{episode:?}");
    assert_eq!(episode.direction, Some(Direction::Down));
    assert!((episode.added_p50_ns.unwrap() - 180 * MS).abs() < 2 * MS, "{episode:?}");
    assert!(episode.text.contains("on the way down"), "{}", episode.text);
    assert!(episode.text.contains("between hop 1 (192.0.2.1) and hop 2 (192.0.2.2)"), "{}", episode.text);
    let summary = path.monitor.summary();
    let sentences = summary.verdict(|t_ns| format!("minute {}", t_ns / MINUTE)).sentences;
    assert_eq!(sentences[2], "Packets were late once, by 181 ms on the way down for 3 h 0 min from minute 75 on.");
}

#[test]
fn the_other_direction_and_both_are_told_apart() {
    for (queue, direction) in [([60, 0], Some(Direction::Up)), ([0, 60], Some(Direction::Down)), ([40, 40], None)] {
        let mut path = Path::new();
        path.run(0..1200, |second| if (600..660).contains(&second) { queue.map(Some) } else { [Some(0); 2] });
        path.monitor.end();
        path.episodes.extend(path.monitor.take());
        assert_eq!(path.of_kind(EpisodeKind::Delay).len(), 1, "{queue:?}");
        let episode = path.of_kind(EpisodeKind::Delay)[0];
        assert_eq!(episode.direction, direction, "{}", episode.text);
        assert_eq!(episode.text.contains("in both directions"), direction.is_none(), "{}", episode.text);
    }
}

#[test]
fn without_comparable_clocks_no_direction_is_named() {
    let mut path = Path::new();
    path.run(0..300, QUIET);
    // The connection was interrupted, and a queue is there from the first echo on.
    path.monitor.begin();
    path.run(400..700, |_| [Some(0), Some(100)]);
    path.monitor.end();
    path.episodes.extend(path.monitor.take());
    let episode = path.of_kind(EpisodeKind::Delay)[0];
    assert_eq!(episode.direction, None);
    assert!(episode.text.contains("is not known"), "{}", episode.text);
}

#[test]
fn lost_packets_are_one_episode_with_their_direction() {
    let mut path = Path::new();
    path.run(0..1200, |second| match second {
        600..660 if second % 3 == 0 => [None, Some(0)],
        // A single loss is not worth an episode.
        900 => [Some(0), None],
        _ => [Some(0); 2],
    });
    path.monitor.end();
    let episodes = path.of_kind(EpisodeKind::Loss);
    let [episode] = episodes[..] else { panic!("{:?}", path.episodes) };
    assert_eq!((episode.direction, episode.lost), (Some(Direction::Up), Some(20)));
    assert_eq!((episode.start_ns, episode.end_ns), (600 * SECOND, 657 * SECOND));
    assert_eq!(episode.sent, Some(58));
    let summary = path.monitor.summary();
    assert_eq!((summary.lost_up, summary.lost_down), (20, 1));
}

#[test]
fn a_longer_path_is_a_change_and_not_a_queue_for_ever() {
    let mut path = Path::new();
    path.run(0..600, QUIET);
    path.second_hop = "198.51.100.9";
    path.run(600..3600, |_| [Some(10), Some(10)]);
    path.monitor.end();
    path.episodes.extend(path.monitor.take());
    let changes = path.of_kind(EpisodeKind::Path);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0].text, "the path changed: hop 2 is now 198.51.100.9, before 192.0.2.2");
    let episodes = path.of_kind(EpisodeKind::Delay);
    let [episode] = episodes[..] else { panic!("{:?}", path.episodes) };
    assert!(episode.end_ns <= 640 * SECOND && episode.text.contains("another path"), "{episode:?}");
}

#[test]
fn a_server_whose_clock_is_set_is_not_late() {
    let mut path = Path::new();
    path.run(0..600, QUIET);
    for t_ns in (600..1200).map(|second| second * SECOND) {
        let up_ns = Some(5 * MS + AHEAD_NS - 30 * SECOND);
        let down_ns = Some(5 * MS - AHEAD_NS + 30 * SECOND);
        let echo = Echo { t_ns, rtt_ns: Some(10 * MS), up_ns, down_ns, lost: None };
        let later = path.monitor.echo(&echo);
        if t_ns > 601 * SECOND {
            assert!(later.up_ns.unwrap().abs() < MS && later.down_ns.unwrap().abs() < MS, "{later:?}");
        }
    }
    path.monitor.end();
    assert_eq!(path.monitor.take(), []);
}

#[test]
fn the_memory_does_not_grow_with_an_episode() {
    let mut values = Thinned::default();
    (0..1_000_000).for_each(|value| values.take(f64::from(value)));
    assert!(values.values.len() <= KEPT);
    let middle = values.median().unwrap();
    assert!((middle - 5e5).abs() < 2e3, "{middle}");
}

#[test]
fn percentiles_of_any_number_are_exact_to_within_six_per_mille() {
    let mut quantiles = Quantiles::default();
    (1..=100_000).for_each(|value| quantiles.take(Some(value * 1000)));
    let spread = quantiles.spread();
    for (found, exact) in [(spread.p50_ns, 50e6), (spread.p95_ns, 95e6), (spread.p99_ns, 99e6)] {
        let found = found.unwrap() as f64;
        assert!((found / exact - 1.0).abs() < 0.006, "{found} for {exact}");
    }
    assert_eq!((spread.max_ns, spread.censored), (Some(100_000_000), false));
    (0..2000).for_each(|_| quantiles.take(None));
    assert!(quantiles.spread().p99_ns.is_none() && quantiles.spread().censored);
    assert_eq!(Quantiles::default().spread(), crate::verdict::Spread::default());
}
