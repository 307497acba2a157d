//! Videos in the whole simulator: their bit rates, when their segments are requested, and their end.

use bufferscope_programs::Playback;
use bufferscope_records::{MemorySink, Table};

use crate::common::{MS, SECOND, dumbbell, numbers, numbers_where, optional, run};

const VIDEO: &str = r#"
    [[traffic]]
    name = "video"
    kind = "video"
    from = "h1"
    to = "h2"
"#;
/// The default playing time of a segment.
const SEGMENT: u64 = 4 * SECOND;

/// When segments were requested and when they arrived; only the last may be missing.
fn segments(sink: &MemorySink) -> (Vec<u64>, Vec<u64>) {
    let arrived = optional(sink, Table::Transfers, "finished_ns").into_iter().flatten().collect();
    (numbers(sink, Table::Transfers, "started_ns"), arrived)
}

#[test]
fn a_fast_idle_path_plays_the_highest_bit_rate_without_a_stall() {
    let sink = run(&dumbbell("60s", "rate = '20mbit'", VIDEO), 1).output;
    // 4 s of 730 kbit/s, the highest of up to a megabit, and from then on of 7.8 Mbit/s: 0.9 times the throughput is
    // more, even though the first segment comes in slow start.
    let bytes = numbers(&sink, Table::Transfers, "bytes");
    assert_eq!(bytes[0], 365_000);
    assert!(bytes[1..].iter().all(|&bytes| bytes == 3_900_000), "{bytes:?}");
    let (started, arrived) = segments(&sink);
    let played = Playback::new(SEGMENT, 2500 * MS, 5 * SECOND).times(arrived.iter().copied());
    assert_eq!(played[0], arrived[0]);
    assert!(played.windows(2).all(|pair| pair[1] - pair[0] == SEGMENT), "{played:?}");
    // A segment takes 1.6 s, so each of them adds 2.4 s to the buffer: after some twelve it is full.
    let full: Vec<u64> = started.into_iter().filter(|&at_ns| at_ns > 25 * SECOND).collect();
    assert_eq!(full.len(), 9, "one each 4 s of the last 35 s: {full:?}");
    assert!(full.windows(2).all(|pair| pair[1] - pair[0] == SEGMENT), "{full:?}");
    let sampled = numbers_where(&sink, Table::Flows, "t_ns", ("flow", "video/1"));
    assert_eq!(sampled.last(), Some(&(60 * SECOND)), "over one connection");
}

/// The records do not say what the buffer held, but when the segments arrived: the rest follows.
#[test]
fn the_player_requests_when_the_playback_that_follows_from_the_records_has_room() {
    let (segment, buffer) = (2 * SECOND, 12 * SECOND);
    let line =
        "rate = [['0s', '10mbit'], ['40s', '400kbit'], ['80s', '10mbit']]\nqueue = { qdisc = 'pfifo', limit = '50p' }";
    let keys = "segment = '2s'\nrates = ['300kbit', '1mbit', '3mbit']\nbuffer = '12s'\nstartup = '3s'\nresume = '5s'";
    let sink = run(&dumbbell("120s", line, &format!("{VIDEO}{keys}")), 1).output;
    let (started, arrived) = segments(&sink);
    let playback = || Playback::new(segment, 3 * SECOND, 5 * SECOND);
    let (mut player, mut full) = (playback(), 0);
    for (n, &now_ns) in arrived.iter().enumerate() {
        player.arrived(now_ns);
        let too_much_ns = player.buffered_ns(now_ns).saturating_sub(buffer);
        full += u64::from(too_much_ns > 0);
        if let Some(&next_ns) = started.get(n + 1) {
            assert_eq!(next_ns, now_ns + too_much_ns, "after segment {n}");
        }
    }
    assert!(full > 20, "the buffer was full {full} times");
    // A segment of 3 Mbit/s takes 15 s at 400 kbit/s, and the buffer holds at most 14 s. Later ones have at most 0.9
    // times 400 kbit/s, and from 80 s on 3 Mbit/s again.
    let played = playback().times(arrived.iter().copied());
    let stalls: Vec<u64> = played.windows(2).map(|pair| pair[1] - pair[0] - segment).filter(|ns| *ns > 0).collect();
    assert_eq!(stalls.len(), 1, "{stalls:?}");
    let bytes = numbers(&sink, Table::Transfers, "bytes");
    assert!(bytes.contains(&75_000) && bytes.last() == Some(&750_000), "{bytes:?}");
}

#[test]
fn nothing_is_requested_after_the_stop_and_the_connection_closes() {
    let sink = run(&dumbbell("20s", "rate = '20mbit'", &format!("{VIDEO}stop = '5s'")), 1).output;
    let (started, arrived) = segments(&sink);
    assert!(started.iter().all(|&at_ns| at_ns < 5 * SECOND), "{started:?}");
    assert_eq!(arrived.len(), started.len(), "the one under way arrives");
    let sampled = numbers_where(&sink, Table::Flows, "t_ns", ("flow", "video/1"));
    let (&last, &end) = (sampled.last().unwrap(), arrived.last().unwrap());
    assert!((end..end + SECOND).contains(&last), "sampled until {last}, the last segment came at {end}");
}
