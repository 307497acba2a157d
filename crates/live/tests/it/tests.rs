//! Whole tests, and who may begin one.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Program, Server, connect_from, program, until};
use bufferscope_live::client::control::{ConnectError, Control, secure};
use bufferscope_live::wire::control::{Answer, LONGEST_ANSWER, PROTOCOL, PhaseKind, Request, receive, send};
use bufferscope_live::wire::token::Token;

#[tokio::test]
async fn a_whole_test_has_the_records_of_both_ends() {
    let server = Server::start(|_| {});
    let phases = [PhaseKind::Idle, PhaseKind::Download, PhaseKind::Upload, PhaseKind::CoolDown];
    let found = server.measure(&phases).await.unwrap();
    assert_eq!(found.ended_early, None);
    assert_eq!(found.phases.iter().map(|phase| phase.kind).collect::<Vec<_>>(), phases);
    let answered = found.probes.iter().filter(|probe| probe.reply.is_some()).count();
    assert!(answered > found.probes.len() / 2, "{answered} of {}", found.probes.len());
    assert!(found.exchanges.iter().any(|exchange| exchange.exchange_ns.is_some()));
    assert!(found.client.goodput.last().unwrap().bytes > 1_000_000, "the download");
    let of_server = found.server.unwrap();
    assert!(of_server.end.goodput.last().unwrap().bytes > 1_000_000, "the upload");
    let end_ns = found.phases.last().unwrap().end_ns;
    let arrived: HashSet<u64> = of_server.arrivals.iter().map(|row| row.seq).collect();
    let missing = found
        .probes
        .iter()
        .zip(0..)
        .filter(|(probe, seq)| probe.reply.is_some() && probe.t_ns <= end_ns && !arrived.contains(seq));
    assert_eq!(missing.count(), 0, "answered, but not recorded");
    assert!(!of_server.end.flows.is_empty() && !found.client.flows.is_empty());
}

#[tokio::test]
async fn a_wrong_token_is_refused_and_each_further_one_is_answered_later() {
    let server = Server::start(|_| {});
    let other = Token::generate(b"another").to_string();
    let fingerprint = server.token.to_string();
    let wrong: Token = format!("{}{}", &other[..16], &fingerprint[16..]).parse().unwrap();
    let begun = Instant::now();
    for _ in 0..4 {
        let refused = Control::connect(server.address, &wrong, |_| {}).await.unwrap_err();
        assert!(matches!(&refused, ConnectError::Declined(reason) if reason.contains("token")), "{refused}");
    }
    assert!(begun.elapsed() >= Duration::from_millis(100 + 200 + 400 + 800));
    assert!(server.enter().await.is_ok(), "the right one");
}

#[tokio::test]
async fn another_certificate_than_the_tokens_is_refused_by_the_client() {
    let (server, other) = (Server::start(|_| {}), Server::start(|_| {}));
    let refused = Control::connect(server.address, &other.token, |_| {}).await.unwrap_err();
    assert!(matches!(refused, ConnectError::AnotherServer(_)), "{refused}");
}

#[tokio::test]
async fn another_version_of_the_protocol_is_refused_with_both_versions() {
    let server = Server::start(|_| {});
    let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let mut stream = secure(stream, server.address, &server.token).await.unwrap();
    let (protocol, secret) = (PROTOCOL + 7, server.token.secret());
    send(&mut stream, &Request::Hello { protocol, version: "9".to_owned(), secret, monitor: false }).await.unwrap();
    let answer: Answer = receive(&mut stream, LONGEST_ANSWER).await.unwrap();
    let Answer::Refused { reason } = answer else { panic!("{answer:?}") };
    assert!(reason.contains(&format!("version {PROTOCOL} of")) && reason.contains(&format!("version {protocol}:")));
}

#[tokio::test]
async fn a_public_server_asks_for_no_secret() {
    let server = Server::start_with(|_| {}, |token| token.public());
    assert!(server.token.secret().is_empty());
    assert_eq!(server.measure(&[PhaseKind::Idle]).await.unwrap().ended_early, None);
}

#[tokio::test]
async fn a_client_that_is_killed_makes_room_for_the_next() {
    let server = Server::start(|_| {});
    let mut first = program()
        .args(["measure", &server.address.to_string(), "--events", "--token", &server.token.to_string()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("\"phase\"")));
    let (waiting, positions) = tokio::sync::oneshot::channel();
    let mut waiting = Some(waiting);
    let (address, token) = (server.address, server.token.clone());
    let second = tokio::spawn(async move {
        let queued = |position| {
            if let Some(waiting) = waiting.take() {
                waiting.send(position).unwrap();
            }
        };
        Control::connect(address, &token, queued).await.map(|_| ())
    });
    assert_eq!(tokio::time::timeout(PATIENCE, positions).await.unwrap().unwrap(), 1);
    first.kill().unwrap();
    first.wait().unwrap();
    tokio::time::timeout(PATIENCE, second).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn two_hundred_clients_wait_for_their_turn_and_leave_nothing_behind() {
    const CLIENTS: usize = 200;
    const OF_ADDRESS: usize = 8;
    let server = Arc::new(Program::start(&[]));
    let at_first = server.uses();
    let (running, told) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        let (server, running, told) = (Arc::clone(&server), Arc::clone(&running), Arc::clone(&told));
        let source = Ipv4Addr::new(127, 0, 1, (number / OF_ADDRESS + 1) as u8).into();
        // One after the other, so that a slow machine completes each in time.
        let stream = secure(connect_from(source, server.address).await, server.address, &server.token).await.unwrap();
        clients.push(tokio::spawn(async move {
            let mut waited = false;
            let queued = |position: usize| {
                assert!((1..CLIENTS).contains(&position), "{position}");
                told.fetch_add(usize::from(!waited), Ordering::SeqCst);
                waited = true;
            };
            let entered = Control::begin(stream, server.address, &server.token, queued).await.unwrap();
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "two tests at once");
            // The first test runs until all the others wait.
            until("all others wait", || told.load(Ordering::SeqCst) == CLIENTS - 1).await;
            running.fetch_sub(1, Ordering::SeqCst);
            drop(entered);
        }));
    }
    for client in clients {
        client.await.unwrap();
    }
    assert_eq!(told.load(Ordering::SeqCst), CLIENTS - 1);
    until("the server's descriptors and threads are as at the beginning", || server.uses() == at_first).await;
}
