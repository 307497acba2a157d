//! Floods of UDP packets: only with the server's consent, only to an address that has proved itself, and only for a while.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Prober, Server, short};
use bufferscope_live::client::control::Control;
use bufferscope_live::client::measure;
use bufferscope_live::wire::control::{Answer, PhaseKind, Request, Welcome};
use bufferscope_live::wire::probe::{Cookie, FLOOD_BYTES, Kind, Packet};
use bufferscope_verdict::input::Direction;

const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];
/// What the server accepts: 714 packets a second.
const MOST_BPS: u64 = 8_000_000;
const NONE: Cookie = [0; 16];

fn accepting() -> Server {
    Server::start(|settings| settings.limits.flood_bps = Some(MOST_BPS))
}

/// Asks for a flood; returns the reason of a refusal.
async fn ask(control: &mut Control, direction: Direction, bps: u64) -> Option<String> {
    control.send(&Request::Flood { direction, bps }).await.unwrap();
    match tokio::time::timeout(PATIENCE, control.answer()).await.unwrap().unwrap() {
        Answer::Noted => None,
        Answer::Refused { reason } => Some(reason),
        other => panic!("{other:?}"),
    }
}

/// A prober with its cookie.
fn proved(source: [u8; 4], server: &Server, welcome: &Welcome) -> (Prober, Cookie) {
    let mut prober = Prober::new(source, server.address, welcome.session);
    let cookie = prober.exchange(NONE).cookie;
    (prober, cookie)
}

fn want(socket: &UdpSocket, welcome: &Welcome, cookie: Cookie) {
    socket.send(&Packet::flood(welcome.session, 0, cookie).bytes()).unwrap();
}

/// The packets of a flood that arrive until none has come for a while, which is asked for as long as `wants`; and the time from the
/// first to the last.
fn flooded(socket: &UdpSocket, mut wants: impl FnMut(Duration)) -> (u64, Duration) {
    let begun = Instant::now();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (mut count, mut first, mut last) = (0, None, begun);
    while last.elapsed() < Duration::from_millis(700) {
        wants(begun.elapsed());
        let until = Instant::now() + Duration::from_millis(50);
        while Instant::now() < until {
            let mut bytes = [0; 2 * FLOOD_BYTES];
            let Ok(length) = socket.recv(&mut bytes) else { continue };
            if length == FLOOD_BYTES && Packet::parse(&bytes[..length]).is_some_and(|packet| packet.kind == Kind::Flood)
            {
                count += 1;
                last = Instant::now();
                first.get_or_insert(last);
            }
        }
    }
    (count, first.map_or(Duration::ZERO, |first| last - first))
}

#[tokio::test]
async fn a_flood_needs_the_servers_consent_and_its_ceiling_and_comes_once() {
    let silent = Server::start(|_| {});
    let (mut control, welcome) = silent.enter().await.unwrap();
    assert_eq!(welcome.end.accepts_flood_bps, None);
    let (prober, cookie) = proved(HERE, &silent, &welcome);
    want(&prober.socket, &welcome, cookie);
    assert_eq!(flooded(&prober.socket, |_| {}).0, 0);
    assert!(ask(&mut control, Direction::Down, 1_000_000).await.unwrap().contains("--accept-flood"));
    let server = accepting();
    for (second, reason) in [(Direction::Up, "at most 8 Mbit/s"), (Direction::Down, "has had its flood")] {
        let (mut control, welcome) = server.enter().await.unwrap();
        assert_eq!(welcome.end.accepts_flood_bps, Some(MOST_BPS));
        assert_eq!(ask(&mut control, Direction::Down, MOST_BPS).await, None);
        let bps = if second == Direction::Up { MOST_BPS + 1 } else { MOST_BPS };
        assert!(ask(&mut control, second, bps).await.unwrap().contains(reason));
    }
}

#[tokio::test]
async fn the_servers_flood_goes_to_an_address_with_a_fresh_cookie_at_its_rate_and_for_five_seconds() {
    let server = accepting();
    let (mut control, welcome) = server.enter().await.unwrap();
    let (prober, cookie) = proved(HERE, &server, &welcome);
    let other = Prober::new(ELSEWHERE, server.address, welcome.session);
    assert_eq!(ask(&mut control, Direction::Down, MOST_BPS).await, None);
    // Neither without a cookie nor from another address, nor with a cookie of another port.
    want(&prober.socket, &welcome, NONE);
    want(&other.socket, &welcome, cookie);
    let same = Prober::new(HERE, server.address, welcome.session);
    want(&same.socket, &welcome, cookie);
    for socket in [&prober.socket, &other.socket, &same.socket] {
        assert_eq!(flooded(socket, |_| {}).0, 0);
    }
    let (count, time) = flooded(&prober.socket, |_| want(&prober.socket, &welcome, cookie));
    // 8 Mbit/s for five seconds, of which the first two have 70 % of it.
    let most = 8e6 / 8.0 / 1400.0 * 4.4;
    assert!(time < Duration::from_millis(5300) && (count as f64) <= most + 1.0, "{count} packets in {time:?}");
    assert!(count as f64 > most / 2.0, "{count} packets in {time:?}");
    control.send(&Request::Alive).await.unwrap();
}

#[tokio::test]
async fn the_servers_flood_ends_with_the_clients_wish_and_with_the_control_connection() {
    let server = accepting();
    for closes in [false, true] {
        let (mut control, welcome) = server.enter().await.unwrap();
        let (prober, cookie) = proved(HERE, &server, &welcome);
        assert_eq!(ask(&mut control, Direction::Down, MOST_BPS).await, None);
        let flood = tokio::task::spawn_blocking(move || {
            flooded(&prober.socket, |since| {
                if since < Duration::from_millis(300) || closes {
                    want(&prober.socket, &welcome, cookie);
                }
            })
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        // The other one lasts as long as the flood.
        let control = (!closes).then_some(control);
        let (count, time) = flood.await.unwrap();
        drop(control);
        assert!(count > 50 && time < Duration::from_millis(2500), "{count} packets in {time:?}, closes: {closes}");
    }
}

#[tokio::test]
async fn a_clients_flood_counts_towards_its_bytes_and_only_if_it_is_accepted() {
    let server = accepting();
    let (mut control, welcome) = server.enter().await.unwrap();
    let (mut prober, cookie) = proved(HERE, &server, &welcome);
    let long = |seq| {
        let mut bytes = Packet::flood(welcome.session, seq, cookie).bytes().to_vec();
        bytes.resize(FLOOD_BYTES, 0);
        bytes
    };
    let counted = |prober: &mut Prober| prober.exchange(cookie).load_bytes;
    prober.socket.send(&long(0)).unwrap();
    assert_eq!(counted(&mut prober), 0, "not accepted");
    assert_eq!(ask(&mut control, Direction::Up, MOST_BPS).await, None);
    for seq in 0..10 {
        prober.socket.send(&long(seq)).unwrap();
    }
    assert_eq!(counted(&mut prober), 10 * 1400);
}

#[tokio::test]
async fn a_ceiling_below_the_goodput_is_a_warning_and_no_flood() {
    let server = accepting();
    let mut settings =
        short(server.address, &server.token, &[PhaseKind::Idle, PhaseKind::Download, PhaseKind::CoolDown]);
    (settings.flood, settings.at_most) = (true, Duration::from_secs(3));
    let found = measure(&settings, &std::sync::atomic::AtomicBool::new(false), |_| {}).await.unwrap();
    assert_eq!(found.ended_early, None);
    assert!(found.client.floods.is_empty());
    for text in ["at most 8 Mbit/s, too slow", "no flood of the upload: its goodput was not measured"] {
        assert!(found.warnings.iter().any(|warning| warning.contains(text)), "{:?}", found.warnings);
    }
}
