//! What a server does with clients that take more than they may. `docs/serve.md` lists the tests of this file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Prober, Program, Server, connect_from, enter_from, opening, program};
use bufferscope_live::client::control::{ConnectError, Control, secure};
use bufferscope_live::wire::control::{Answer, LONGEST_ANSWER, PROTOCOL, PhaseKind, Request, receive, send};
use bufferscope_live::wire::load::{ACCEPTED, Purpose, REFUSED};
use bufferscope_live::wire::probe::{Kind, PACKET_BYTES};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

/// What arrives until the connection ends, however it ends.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes it");
    bytes
}

#[tokio::test]
async fn garbage_silence_and_half_a_hello_are_dropped_in_time() {
    let server = Server::start(|settings| settings.limits.opening = Duration::from_millis(300));
    let half_a_hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let garbage = [0xff; 4096];
    for sent in [&[][..], &half_a_hello, &garbage, b"BSL1", &[0x16; 70_000]] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let _ = stream.write_all(sent).await;
        let answer = rest(&mut stream).await;
        assert!(answer.len() <= sent.len().max(7), "{} bytes for {}", answer.len(), sent.len());
    }
    assert!(server.enter().await.is_ok());
}

#[tokio::test]
async fn silent_connections_of_one_address_do_not_keep_others_out() {
    let server = Server::start(|settings| settings.limits.opening = PATIENCE);
    let mut held = Vec::new();
    for _ in 0..100 {
        held.push(connect_from(ELSEWHERE.into(), server.address).await);
    }
    // Those beyond the address's share are closed at once.
    let mut closed = 0;
    for stream in &mut held {
        let mut byte = [0];
        closed += usize::from(tokio::time::timeout(Duration::from_millis(20), stream.read(&mut byte)).await.is_ok());
    }
    assert!(closed >= 84, "{closed}");
    assert!(server.enter().await.is_ok());
}

#[tokio::test]
async fn a_client_of_no_allowed_network_gets_not_even_tls() {
    let server = Server::start(|settings| settings.allow = vec!["127.0.0.2/31".parse().unwrap()]);
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let _ = stream.write_all(&[0x16, 3, 1, 0, 1, 1]).await;
    assert_eq!(rest(&mut stream).await, [0_u8; 0]);
    assert!(matches!(server.enter().await, Err(ConnectError::NotOurs(..))));
    enter_from(ELSEWHERE.into(), server.address, &server.token, |_| {}).await.unwrap();
}

#[tokio::test]
async fn an_address_has_a_bounded_number_of_clients_and_of_tests() {
    let server = Server::start(|settings| {
        settings.limits.per_address = 2;
        settings.limits.tests_per_hour = 2;
    });
    let first = server.enter().await.unwrap();
    let (address, token) = (server.address, server.token.clone());
    let waits = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&waits);
    let queued = move |_| told.store(true, Ordering::Relaxed);
    let second = tokio::spawn(async move { enter_from(HERE.into(), address, &token, queued).await });
    crate::common::until("the second waits", || waits.load(Ordering::Relaxed)).await;
    let refused = server.enter().await.unwrap_err().to_string();
    assert!(refused.contains("too many clients"), "{refused}");
    drop(first);
    drop(tokio::time::timeout(PATIENCE, second).await.unwrap().unwrap().unwrap());
    let refused = server.enter().await.unwrap_err().to_string();
    assert!(refused.contains("2 tests an hour for an address"), "{refused}");
}

#[tokio::test]
async fn a_test_ends_at_its_limit_of_bytes_and_says_so() {
    const BYTES: u64 = 3_000_000;
    let server = Server::start(|settings| {
        settings.limits.session.bytes = BYTES;
        settings.limits.bytes_per_hour = BYTES + 1;
    });
    let found = server.measure(&[PhaseKind::Idle, PhaseKind::Download]).await.unwrap();
    let reason = found.ended_early.unwrap();
    assert!(reason.contains("3000000 bytes"), "{reason}");
    let received = found.client.goodput.last().unwrap().bytes;
    // Each of the two connections may finish the frame that it had begun.
    assert!(received <= BYTES + 4 * 65_536, "{received}");
    assert!(found.server.is_some(), "the records of what was measured");
    // One byte is left of the hour.
    let found = server.measure(&[PhaseKind::Idle, PhaseKind::Upload]).await.unwrap();
    assert!(found.ended_early.unwrap().contains("1 bytes"));
    let refused = server.measure(&[PhaseKind::Idle]).await.unwrap_err().to_string();
    assert!(refused.contains("3000001 bytes an hour"), "{refused}");
}

#[tokio::test]
async fn a_test_ends_at_its_limit_of_time_and_says_so() {
    let server = Server::start(|settings| settings.limits.session.seconds = 2);
    let found = server.measure(&[PhaseKind::Idle, PhaseKind::Download, PhaseKind::Upload]).await.unwrap();
    let reason = found.ended_early.unwrap();
    assert!(reason.contains("2 s"), "{reason}");
    assert!(found.server.is_some());
}

#[tokio::test]
async fn a_server_sends_no_faster_than_its_rate() {
    const BPS: u64 = 8_000_000;
    let server = Server::start(|settings| settings.limits.session.rate_bps = Some(BPS));
    let found = server.measure(&[PhaseKind::Download]).await.unwrap();
    let phase = &found.phases[0];
    let most = (phase.end_ns - phase.start_ns) as u128 * u128::from(BPS) / 8 / 1_000_000_000;
    let received = u128::from(found.client.goodput.last().unwrap().bytes);
    assert!(received <= most + 2 * 65_536 + 5_000, "{received} of {most}");
    assert!(found.warnings.iter().any(|warning| warning.contains("at most 8 Mbit/s")));
}

#[tokio::test]
async fn a_client_that_floods_messages_is_thrown_out() {
    let server = Server::start(|settings| settings.limits.silence = 2 * PATIENCE);
    let (mut control, _) = server.enter().await.unwrap();
    for _ in 0..200 {
        if control.send(&Request::Alive).await.is_err() {
            break;
        }
    }
    // The reason may be lost with what the server has not read.
    loop {
        match tokio::time::timeout(PATIENCE, control.answer()).await.expect("the server ends it") {
            Ok(Answer::Noted) => {}
            Ok(Answer::Refused { reason }) => {
                assert!(reason.contains("too many messages"), "{reason}");
                break;
            }
            Ok(other) => panic!("{other:?}"),
            Err(_) => break,
        }
    }
    assert!(server.enter().await.is_ok(), "the next");
}

#[tokio::test]
async fn a_client_that_is_silent_or_never_reads_makes_room_for_the_next() {
    let server = Server::start(|settings| settings.limits.silence = Duration::from_secs(1));
    let (mut silent, welcome) = server.enter().await.unwrap();
    silent.send(&Request::Phase { phase: PhaseKind::Download }).await.unwrap();
    let mut load = TcpStream::connect(server.address).await.unwrap();
    load.write_all(&opening(&welcome, Purpose::Download, 0).bytes()).await.unwrap();
    // Neither the load nor the control connection is read from here on.
    let next = tokio::time::timeout(PATIENCE, server.enter()).await.expect("room for the next");
    assert!(next.is_ok());
    drop((silent, load));
}

#[tokio::test]
async fn a_client_that_sends_but_never_reads_keeps_no_thread_and_no_turn() {
    let server = Program::start(&[]);
    let [_, threads] = server.uses();
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut control = secure(stream, server.address, &server.token).await.unwrap();
    let hello =
        Request::Hello { protocol: PROTOCOL, version: String::new(), secret: server.token.secret(), monitor: false };
    send(&mut control, &hello).await.unwrap();
    let welcome = loop {
        if let Answer::Welcome(welcome) = receive(&mut control, LONGEST_ANSWER).await.unwrap() {
            break welcome;
        }
    };
    // From here on, it reads nothing.
    send(&mut control, &Request::Phase { phase: PhaseKind::Download }).await.unwrap();
    // The load may arrive before the message.
    let load = loop {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(&opening(&welcome, Purpose::Download, 0).bytes()).await.unwrap();
        if stream.read_u8().await.unwrap() == ACCEPTED {
            break stream;
        }
    };
    assert!(server.uses()[1] > threads);
    send(&mut control, &Request::Phase { phase: PhaseKind::Idle }).await.unwrap();
    crate::common::until("the load's thread has ended", || server.uses()[1] == threads).await;
    send(&mut control, &Request::Finish).await.unwrap();
    let next = Control::connect(server.address, &server.token, |_| {});
    assert!(tokio::time::timeout(PATIENCE, next).await.expect("its turn").is_ok());
    drop((control, load));
}

#[tokio::test]
async fn load_connections_need_the_key_the_address_and_a_phase_and_are_counted() {
    let server = Server::start(|settings| settings.limits.session.flows = 2);
    let (mut control, welcome) = server.enter().await.unwrap();
    let ask = async |source: [u8; 4], opening: [u8; 64]| {
        let mut stream = connect_from(source.into(), server.address).await;
        stream.write_all(&opening).await.unwrap();
        let mut answer = [0];
        let read = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await.unwrap();
        (read.is_ok_and(|bytes| bytes == 1).then_some(answer[0]), stream)
    };
    let right = opening(&welcome, Purpose::Download, 0).bytes();
    assert_eq!(ask(HERE, right).await.0, Some(REFUSED), "no phase has a download yet");
    control.send(&Request::Phase { phase: PhaseKind::Download }).await.unwrap();
    assert!(matches!(control.answer().await, Ok(Answer::Noted)));
    let mut wrong = right;
    wrong[20] ^= 1;
    assert_eq!(ask(HERE, wrong).await.0, None, "another key");
    assert_eq!(ask(ELSEWHERE, right).await.0, None, "another address");
    let (first, _held) = ask(HERE, right).await;
    let (second, _held_too) = ask(HERE, right).await;
    assert_eq!([first, second], [Some(ACCEPTED); 2]);
    assert_eq!(ask(HERE, right).await.0, Some(REFUSED), "a third");
    let upload = opening(&welcome, Purpose::Upload, 0).bytes();
    assert_eq!(ask(HERE, upload).await.0, Some(REFUSED), "another direction than the phase's");
}

#[tokio::test]
async fn phases_without_end_do_not_make_threads_without_end() {
    const FLOWS: usize = 2;
    let server = Program::start(&["--flows", "2"]);
    let [_, threads] = server.uses();
    let (mut control, welcome) = Control::connect(server.address, &server.token, |_| {}).await.unwrap();
    let (mut held, mut most) = (Vec::new(), 0);
    for _ in 0..20 {
        control.send(&Request::Phase { phase: PhaseKind::Download }).await.unwrap();
        for _ in 0..2 * FLOWS {
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            let _ = stream.write_all(&opening(&welcome, Purpose::Download, 0).bytes()).await;
            let mut answer = [0];
            let _ = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await.expect("an answer");
            held.push(stream);
            // A thread that is no longer counted takes a moment to end.
            let within = || {
                let uses = server.uses()[1];
                most = most.max(uses);
                uses <= threads + 3 * FLOWS
            };
            crate::common::until("there are at most three threads for each flow", within).await;
        }
    }
    assert!(most > threads, "{most} threads, {threads} before");
    drop(control);
    crate::common::until("the threads have ended", || server.uses()[1] == threads).await;
}

#[tokio::test]
async fn a_cookie_is_good_for_one_address_and_one_port() {
    let server = Server::start(|_| {});
    let (_control, welcome) = server.enter().await.unwrap();
    let mut client = Prober::new(HERE, server.address, welcome.session);
    let offer = client.exchange([0; 16]);
    assert_eq!(offer.kind, Kind::Offer);
    assert_eq!(client.exchange(offer.cookie).kind, Kind::Reply);
    let mut rebound = Prober::new(HERE, server.address, welcome.session);
    let renewed = rebound.exchange(offer.cookie);
    assert_eq!(renewed.kind, Kind::Offer, "another port must prove itself");
    assert_eq!(rebound.exchange(renewed.cookie).kind, Kind::Reply);
    let mut spoofed = Prober::new(ELSEWHERE, server.address, welcome.session);
    for cookie in [offer.cookie, renewed.cookie, [0; 16]] {
        spoofed.ask(cookie);
        assert_eq!(spoofed.receive(), None, "another address than the control connection's");
    }
}

#[tokio::test]
async fn an_address_that_proved_nothing_never_gets_more_bytes_than_it_sent() {
    let server = Server::start(|_| {});
    let (_control, welcome) = server.enter().await.unwrap();
    let mut client = Prober::new(HERE, server.address, welcome.session);
    let (mut sent, mut received) = (0, 0);
    for number in 0..200_u16 {
        client.ask([number as u8; 16]);
        sent += PACKET_BYTES;
        // Shorter and longer ones are none of the protocol's.
        client.socket.send(&vec![0; usize::from(number)]).unwrap();
        sent += usize::from(number);
    }
    while let Some(packet) = client.receive() {
        assert_eq!(packet.kind, Kind::Offer);
        received += PACKET_BYTES;
    }
    assert!(received > 0 && received <= sent, "{received} for {sent}");
    let mut unknown = Prober::new(HERE, server.address, bufferscope_live::wire::SessionId(1));
    unknown.ask([0; 16]);
    assert_eq!(unknown.receive(), None, "no such session");
}

#[tokio::test]
async fn the_servers_own_probes_stop_with_the_clients_and_with_the_control_connection() {
    let server = Server::start(|_| {});
    let (control, welcome) = server.enter().await.unwrap();
    let mut client = Prober::new(HERE, server.address, welcome.session);
    client.socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let cookie = client.exchange([0; 16]).cookie;
    let begun = Instant::now();
    let (mut asked, mut ladder) = (0, 0);
    while begun.elapsed() < Duration::from_secs(1) {
        client.ask(cookie);
        asked += 1;
        ladder += std::iter::from_fn(|| client.receive()).filter(|packet| packet.kind == Kind::Ladder).count();
    }
    assert!(ladder > 0 && ladder <= asked, "{ladder} for {asked}");
    client.socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    // At most the one that the last request has paid for.
    assert!(std::iter::from_fn(|| client.receive()).count() <= 1);
    drop(control);
    crate::common::until("the session has ended", || {
        client.ask(cookie);
        client.receive().is_none()
    })
    .await;
}

#[tokio::test]
async fn what_a_public_server_needs_is_listed() {
    let failed = program().args(["serve", "--public", "--seconds", "60", "--tests", "1"]).output().unwrap();
    assert!(!failed.status.success());
    let text = String::from_utf8(failed.stderr).unwrap();
    assert!(text.contains("missing: --bytes, --bytes-per-hour, --tests-per-hour, --rate\n"), "{text}");
}

#[tokio::test]
async fn the_log_has_no_addresses_and_no_secrets() {
    let source = Ipv4Addr::new(127, 9, 8, 7);
    let mut server = LoggedServer::start();
    drop(enter_from(IpAddr::V4(source), server.address, &server.token, |_| {}).await.unwrap());
    let mut stream = connect_from(source.into(), server.address).await;
    let _ = stream.write_all(&[0x16; 4096]).await;
    rest(&mut stream).await;
    let log = server.log();
    assert!(log.contains("a test has ended"), "{log}");
    assert!(!log.contains("127.9") && !log.contains(&server.token.secret()), "{log}");
}

/// The program, with its log.
struct LoggedServer {
    child: std::process::Child,
    address: SocketAddr,
    token: bufferscope_live::wire::token::Token,
}

impl LoggedServer {
    fn start() -> Self {
        use std::io::{BufRead, BufReader};
        let mut child = program()
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.find(|line| line.as_ref().unwrap().contains("--token")).unwrap().unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        Self { address: words[2].parse().unwrap(), token: words[4].parse().unwrap(), child }
    }

    /// The log up to the end of a test and of another connection.
    fn log(&mut self) -> String {
        use std::io::{BufRead, BufReader};
        let mut text = String::new();
        for line in BufReader::new(self.child.stderr.take().unwrap()).lines() {
            text = text + &line.unwrap() + "\n";
            if text.contains("a test has ended") && text.contains("a control connection ended") {
                break;
            }
        }
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        text
    }
}

/// Every line of the table of abuses names tests that exist.
#[test]
fn every_abuse_of_the_documentation_has_its_test() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let page = std::fs::read_to_string(format!("{root}/docs/serve.md")).unwrap();
    let (_, table) = page.split_once("| Abuse |").expect("a table of abuses");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() >= 10);
    let sources = sources(std::path::Path::new(env!("CARGO_MANIFEST_DIR")));
    for row in rows {
        let tests = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap();
        let names: Vec<_> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test: {row}");
        for name in names {
            assert!(sources.contains(&format!("fn {name}(")), "{name}");
        }
    }
}

/// The text of every file of Rust in a directory and below.
fn sources(directory: &std::path::Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let texts = entries.map(|path| match path.extension() {
        _ if path.is_dir() => sources(&path),
        Some(extension) if extension == "rs" => std::fs::read_to_string(&path).unwrap(),
        _ => String::new(),
    });
    texts.collect()
}
