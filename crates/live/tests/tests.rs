//! Whole tests, and what happens to them if an end or the path changes.

mod common;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bufferscope_live::client::control::{ConnectError, Control, secure};
use bufferscope_live::client::{Event, measure};
use bufferscope_live::wire::control::{Answer, LONGEST_ANSWER, PROTOCOL, PhaseKind, Request, receive, send};
use bufferscope_live::wire::token::Token;
use common::{PATIENCE, Program, Server, connect_from, program, short, until};

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
    // Requests that arrive while the server hands over its records are answered, but no longer recorded.
    let recorded_ns = found.phases.last().unwrap().end_ns - 500_000_000;
    let answered = found.probes.iter().filter(|probe| probe.reply.is_some() && probe.t_ns < recorded_ns).count();
    assert!(of_server.arrivals.len() >= answered, "{} of {answered}", of_server.arrivals.len());
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
    send(&mut stream, &Request::Hello { protocol, version: "9".to_owned(), secret }).await.unwrap();
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
async fn a_server_that_is_killed_leaves_a_partial_result_and_an_honest_reason() {
    let mut server = Program::start(&[]);
    let interrupted = AtomicBool::new(false);
    let mut settings = short(server.address, &server.token.clone(), &[PhaseKind::Idle, PhaseKind::Download]);
    settings.at_most = PATIENCE;
    let mut killed = None;
    let found = measure(&settings, &interrupted, |event| {
        // Once the download runs.
        if matches!(event, Event::Progress(progress) if progress.phase == PhaseKind::Download) && killed.is_none() {
            server.child.kill().unwrap();
            killed = Some(Instant::now());
        }
    })
    .await
    .unwrap();
    let waited = killed.expect("the download ran").elapsed();
    assert!(waited < Duration::from_secs(15), "{waited:?}");
    let reason = found.ended_early.unwrap();
    assert!(reason.contains("server"), "{reason}");
    assert!(found.server.is_none() && found.phases.len() == 2);
    assert!(found.probes.iter().any(|probe| probe.reply.is_some()));
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

/// A router between the ends that changes the port of the probes when it is asked.
async fn router(server: SocketAddr, rebind: Arc<AtomicBool>) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let inside = tokio::net::UdpSocket::bind(address).await.unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut onward = tokio::net::TcpStream::connect(server).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
            });
        }
    });
    tokio::spawn(async move {
        let mut outside = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut client = None;
        let (mut there, mut back) = ([0; 2048], [0; 2048]);
        loop {
            if rebind.swap(false, Ordering::Relaxed) {
                outside = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
            }
            tokio::select! {
                Ok((length, from)) = inside.recv_from(&mut there) => {
                    client = Some(from);
                    let _ = outside.send_to(&there[..length], server).await;
                }
                Ok((length, _)) = outside.recv_from(&mut back) => {
                    if let Some(client) = client {
                        let _ = inside.send_to(&back[..length], client).await;
                    }
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn a_test_goes_on_when_a_router_changes_the_port_of_the_probes() {
    let server = Server::start(|_| {});
    let rebind = Arc::new(AtomicBool::new(false));
    let address = router(server.address, Arc::clone(&rebind)).await;
    let interrupted = AtomicBool::new(false);
    let mut settings = short(address, &server.token, &[PhaseKind::Idle]);
    settings.idle = Duration::from_secs(3);
    let mut rebound_ns = None;
    let found = measure(&settings, &interrupted, |event| {
        if matches!(event, Event::Progress(progress) if progress.t_ns > 1_000_000_000) && rebound_ns.is_none() {
            rebind.store(true, Ordering::Relaxed);
            rebound_ns = Some(bufferscope_live::time::realtime_ns());
        }
    })
    .await
    .unwrap();
    assert_eq!(found.ended_early, None);
    let rebound_ns = rebound_ns.unwrap();
    let later = found.probes.iter().filter(|probe| probe.t_ns > rebound_ns + 500_000_000);
    assert!(later.clone().any(|probe| probe.reply.is_some()), "{} probes", later.count());
}
