//! The actions of a player, at explicit times.

use std::convert::Infallible;

use bufferscope_scenario::{Experiment, Traffic};

use crate::datagrams::Punctual;
use crate::streams::{ConnectionEvents, StreamProgram};

use super::*;

const MS: u64 = 1_000_000;

/// What the player does with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Open,
    /// With the size of the answer.
    Ask(u64),
    Close,
}

/// Sockets that keep what is done and recorded.
#[derive(Debug, Default)]
struct Kept {
    actions: Vec<Action>,
    transfers: Vec<Transfer>,
}

impl Sockets for Kept {
    type Error = Infallible;

    fn open(&mut self, opening: &Opening) -> Result<(), Infallible> {
        assert_eq!(*opening, Opening { number: 1, data_from: Role::Server, expects: None });
        self.actions.push(Action::Open);
        Ok(())
    }

    fn write(&mut self, _: u32, _: u64) -> Result<(), Infallible> {
        unreachable!("a player only requests")
    }

    fn hold(&mut self, _: u32) -> Result<(), Infallible> {
        unreachable!("a player only requests")
    }

    fn close(&mut self, connection: u32) -> Result<(), Infallible> {
        assert_eq!(connection, 1);
        self.actions.push(Action::Close);
        Ok(())
    }

    fn ask(&mut self, connection: u32, ask: Ask) -> Result<(), Infallible> {
        assert_eq!((connection, ask.request_bytes, ask.last), (1, 300, false));
        self.actions.push(Action::Ask(ask.response_bytes));
        Ok(())
    }

    fn delivered(&mut self, _: u32) -> Result<u64, Infallible> {
        unreachable!("a player does not look at what is acknowledged")
    }

    fn record(&mut self, transfer: Transfer) -> Result<(), Infallible> {
        self.transfers.push(transfer);
        Ok(())
    }
}

/// A player, its sockets, and what it has done since it was last asked.
struct Player {
    program: StreamProgram<Punctual>,
    kept: Kept,
}

impl Player {
    /// Segments of 2 s in 0.4, 0.8 and 1.6 Mbit/s: 100, 200 and 400 kB. Playback starts and continues with 2 s.
    fn new(keys: &str) -> Self {
        let text = format!(
            r#"
            title = "A video"
            duration = "60s"
            link = [{{ name = "l", ends = ["server", "player"] }}]

            [[traffic]]
            name = "video"
            kind = "video"
            from = "server"
            to = "player"
            segment = "2s"
            rates = ["400kbit", "800kbit", "1600kbit"]
            request = "300b"
            startup = "2s"
            resume = "2s"
            {keys}
            "#
        );
        let traffic: Traffic =
            Experiment::parse(&text, "test.toml", &[]).unwrap().points()[0].scenario.traffic[0].clone();
        Self { program: StreamProgram::new(&traffic, 0, 1, Punctual).unwrap(), kept: Kept::default() }
    }

    /// Carries out what it has planned for exactly this time.
    fn on_time(&mut self, now_ms: u64) -> Vec<Action> {
        assert_eq!(self.program.next_ns(), Some(now_ms * MS));
        let Ok(()) = self.program.on_time(now_ms * MS, &mut self.kept);
        std::mem::take(&mut self.kept.actions)
    }

    fn on_event(&mut self, now_ms: u64, established: bool, arrived: bool) -> Vec<Action> {
        let events = ConnectionEvents { established, arrived, closed: false };
        let Ok(()) = self.program.on_events(now_ms * MS, 1, events, &mut self.kept);
        std::mem::take(&mut self.kept.actions)
    }

    fn established(&mut self, now_ms: u64) -> Vec<Action> {
        self.on_event(now_ms, true, false)
    }

    fn arrived(&mut self, now_ms: u64) -> Vec<Action> {
        self.on_event(now_ms, false, true)
    }

    fn stop(&mut self) -> Vec<Action> {
        let Ok(()) = self.program.on_stop(&mut self.kept);
        std::mem::take(&mut self.kept.actions)
    }

    /// The transfers recorded so far: from and to when, and how much.
    fn transfers(&self) -> Vec<(u64, u64, u64)> {
        let ms = |transfer: &Transfer| (transfer.started_ns / MS, transfer.finished_ns.unwrap() / MS, transfer.bytes);
        self.kept.transfers.iter().map(ms).collect()
    }
}

#[test]
fn it_fetches_until_the_buffer_is_full_and_then_a_segment_for_each_that_was_played() {
    let mut player = Player::new("buffer = '5s'\nstart = '1s'");
    assert_eq!(player.on_time(1000), [Action::Open]);
    // Nothing is known of the path: 0.8 Mbit/s is the most of up to 1.
    assert_eq!(player.established(1040), [Action::Ask(200_000)]);
    // 200 kB in 0.8 s: 2 Mbit/s, of which 1.8 may be used. The handshake does not count.
    assert_eq!(player.arrived(1840), [Action::Ask(400_000)]);
    // 600 kB in 2.4 s, again 2 Mbit/s. It plays from 1.84 s to 5.84 s, so the buffer holds 2.4 s.
    assert_eq!(player.arrived(3440), [Action::Ask(400_000)]);
    // It plays to 7.84 s: the buffer holds 3.84 s, then (to 9.84 s) 5.64 s, 0.64 s too much.
    assert_eq!(player.arrived(4000), [Action::Ask(400_000)]);
    assert_eq!(player.arrived(4200), []);
    assert_eq!(player.on_time(4840), [Action::Ask(400_000)]);
    assert_eq!(player.arrived(5840), []);
    assert_eq!(player.program.next_ns(), Some(6840 * MS), "a segment's time after the last request");
    assert_eq!(
        player.transfers(),
        [
            (1000, 1840, 200_000),
            (1840, 3440, 400_000),
            (3440, 4000, 400_000),
            (4000, 4200, 400_000),
            (4840, 5840, 400_000)
        ]
    );
}

#[test]
fn a_slower_path_lowers_the_bit_rate() {
    let mut player = Player::new("");
    player.on_time(0);
    player.established(0);
    assert_eq!(player.arrived(500), [Action::Ask(400_000)], "3.2 Mbit/s");
    // 600 kB in 4.5 s: 1.067 Mbit/s, of which 0.96 may be used.
    assert_eq!(player.arrived(4500), [Action::Ask(200_000)]);
    // 800 kB in 8.5 s: 0.753 Mbit/s, 0.678.
    assert_eq!(player.arrived(8500), [Action::Ask(100_000)]);
}

#[test]
fn when_it_stops_the_segment_under_way_still_arrives() {
    let mut player = Player::new("stop = '1s'");
    player.on_time(0);
    player.established(10);
    player.arrived(800);
    assert_eq!(player.stop(), [], "a segment is under way");
    assert_eq!(player.arrived(1400), [Action::Close]);
    assert_eq!((player.program.next_ns(), player.program.unfinished()), (None, vec![]));
}

#[test]
fn when_it_stops_while_the_buffer_is_full_the_connection_closes() {
    let mut player = Player::new("buffer = '2s'");
    player.on_time(0);
    player.established(10);
    player.arrived(100);
    // It plays from 0.1 s to 4.1 s, and the buffer holds no more than 2 s after 2.1 s.
    assert_eq!(player.arrived(200), []);
    assert_eq!(player.program.next_ns(), Some(2100 * MS));
    assert_eq!(player.stop(), [Action::Close]);
    assert_eq!(player.program.next_ns(), None);
}

#[test]
fn nothing_is_requested_at_the_stop_or_before_the_handshake() {
    let mut player = Player::new("stop = '1s'");
    player.on_time(0);
    assert_eq!(player.stop(), []);
    assert_eq!(player.established(1010), [Action::Close]);
    let unfinished = Transfer { connection: 1, started_ns: 0, finished_ns: None, bytes: 200_000 };
    assert_eq!(player.program.unfinished(), [unfinished]);

    let mut other = Player::new("stop = '1s'");
    assert_eq!(other.stop(), [], "there is no connection to close");
    let mut late = Player::new("stop = '1s'");
    late.on_time(0);
    late.established(10);
    assert_eq!(late.arrived(1000), [], "the entry ends now");
}
