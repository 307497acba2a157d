//! What happens to a test if an end fails or the path changes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Program, Server, short};
use bufferscope_live::client::{Event, Measurement, Settings, measure};
use bufferscope_live::records::AnswerKind;
use bufferscope_live::time::realtime_ns;
use bufferscope_live::wire::control::PhaseKind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

/// A test that ends early ends within this time after the fault: 8 s of silence, and what a slow machine needs.
const NOTICED: Duration = Duration::from_secs(15);

/// What a router does to the packets that it forwards.
#[derive(Debug, Default)]
struct Faults {
    /// The probes get another port, once.
    rebind: AtomicBool,
    /// Nothing gets through.
    is_down: AtomicBool,
    /// Nothing of the load gets through to the server.
    holds_upload: AtomicBool,
}

/// A router between a client and a server.
struct Router {
    address: SocketAddr,
    faults: Arc<Faults>,
}

impl Router {
    async fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inside = UdpSocket::bind(address).await.unwrap();
        let faults = Arc::<Faults>::default();
        tokio::spawn(forward_connections(listener, server, Arc::clone(&faults)));
        tokio::spawn(forward_datagrams(inside, server, Arc::clone(&faults)));
        Self { address, faults }
    }
}

async fn forward_connections(listener: TcpListener, server: SocketAddr, faults: Arc<Faults>) {
    while let Ok((inside, _)) = listener.accept().await {
        let outside = TcpStream::connect(server).await.unwrap();
        let (from_client, to_client) = inside.into_split();
        let (from_server, to_server) = outside.into_split();
        let (there, back) = (Arc::clone(&faults), Arc::clone(&faults));
        tokio::spawn(forward(from_client, to_server, move |begins| {
            let is_load = begins.starts_with(b"BSL1");
            there.is_down.load(Ordering::Relaxed) || is_load && there.holds_upload.load(Ordering::Relaxed)
        }));
        tokio::spawn(forward(from_server, to_client, move |_| back.is_down.load(Ordering::Relaxed)));
    }
}

/// Copies while it is not held; `is_held` gets the first bytes of the connection.
async fn forward(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    is_held: impl Fn(&[u8]) -> bool,
) {
    let (mut begins, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        while is_held(&begins) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let Ok(bytes @ 1..) = from.read(&mut buffer).await else { return };
        if begins.is_empty() {
            begins.extend_from_slice(&buffer[..bytes.min(4)]);
        }
        if to.write_all(&buffer[..bytes]).await.is_err() {
            return;
        }
    }
}

async fn forward_datagrams(inside: UdpSocket, server: SocketAddr, faults: Arc<Faults>) {
    let mut outside = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut client = None;
    let (mut there, mut back) = ([0; 2048], [0; 2048]);
    loop {
        if faults.rebind.swap(false, Ordering::Relaxed) {
            outside = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        }
        let is_up = !faults.is_down.load(Ordering::Relaxed);
        tokio::select! {
            Ok((length, from)) = inside.recv_from(&mut there) => {
                client = Some(from);
                if is_up {
                    let _ = outside.send_to(&there[..length], server).await;
                }
            }
            Ok((length, _)) = outside.recv_from(&mut back) => {
                if let Some(client) = client.filter(|_| is_up) {
                    let _ = inside.send_to(&back[..length], client).await;
                }
            }
        }
    }
}

/// Runs a test, and does something once in it: `fault` is called with each report of progress until it returns true.
async fn measure_with(settings: &Settings, mut fault: impl FnMut(PhaseKind, u64) -> bool) -> (Measurement, Duration) {
    let (mut failed, interrupted) = (None, AtomicBool::new(false));
    let found = measure(settings, &interrupted, |event| {
        if let Event::Progress(progress) = event
            && failed.is_none()
            && fault(progress.phase, progress.t_ns)
        {
            failed = Some(Instant::now());
        }
    })
    .await
    .unwrap();
    (found, failed.expect("the phase ran").elapsed())
}

/// A download that is long enough to fail.
fn long_download(server: &Program) -> Settings {
    let phases = [PhaseKind::Idle, PhaseKind::Download];
    Settings { at_most: PATIENCE, ..short(server.address, &server.token, &phases) }
}

/// What the client itself has recorded of both phases is there.
fn assert_has_own_records(found: &Measurement) {
    assert!(found.server.is_none() && found.phases.len() == 2);
    assert!(found.probes.iter().any(|probe| probe.reply.is_some()));
}

#[tokio::test]
async fn a_server_that_is_killed_leaves_a_partial_result_and_an_honest_reason() {
    let mut server = Program::start(&[]);
    let settings = long_download(&server);
    let (found, waited) = measure_with(&settings, |phase, _| {
        phase == PhaseKind::Download && {
            server.child.kill().unwrap();
            true
        }
    })
    .await;
    assert!(waited < NOTICED, "{waited:?}");
    let reason = found.ended_early.as_ref().unwrap();
    assert!(reason.contains("server"), "{reason}");
    assert_has_own_records(&found);
}

#[tokio::test]
async fn a_server_that_is_frozen_leaves_a_partial_result_and_goes_on_with_the_next_client() {
    let server = Program::start(&[]);
    let signal = |signal| kill(Pid::from_raw(server.child.id() as i32), signal).unwrap();
    let (found, waited) = measure_with(&long_download(&server), |phase, _| {
        phase == PhaseKind::Download && {
            signal(Signal::SIGSTOP);
            true
        }
    })
    .await;
    assert!(waited < NOTICED, "{waited:?}");
    let reason = found.ended_early.as_ref().unwrap();
    assert!(reason.contains("nothing was heard of the server for 8 s"), "{reason}");
    assert_has_own_records(&found);
    signal(Signal::SIGCONT);
    let settings = short(server.address, &server.token, &[PhaseKind::Idle]);
    let next = tokio::time::timeout(PATIENCE, measure(&settings, &AtomicBool::new(false), |_| {})).await;
    let next = next.expect("room for the next").unwrap();
    assert_eq!(next.ended_early, None);
}

#[tokio::test]
async fn a_test_goes_on_after_its_link_was_down_for_two_seconds() {
    let server = Server::start(|_| {});
    let router = Router::before(server.address).await;
    let mut settings = short(router.address, &server.token, &[PhaseKind::Download]);
    settings.at_most = Duration::from_secs(5);
    let mut down_ns = None;
    let mut up_ns = None;
    let (found, _) = measure_with(&settings, |_, t_ns| {
        if down_ns.is_none() && t_ns > 1_000_000_000 {
            router.faults.is_down.store(true, Ordering::Relaxed);
            down_ns = Some(realtime_ns());
        }
        if down_ns.is_some_and(|down_ns| realtime_ns() > down_ns + 2_000_000_000) {
            up_ns = Some(realtime_ns());
            router.faults.is_down.store(false, Ordering::Relaxed);
        }
        up_ns.is_some()
    })
    .await;
    assert_eq!(found.ended_early, None);
    let (down_ns, up_ns) = (down_ns.unwrap(), up_ns.unwrap());
    let answers = |from_ns: u64, to_ns: u64| {
        let sent = found.probes.iter().filter(move |probe| (from_ns..to_ns).contains(&probe.t_ns));
        sent.map(|probe| probe.reply.is_some()).collect::<Vec<_>>()
    };
    let lost = answers(down_ns + 100_000_000, up_ns - 100_000_000);
    assert!(lost.len() > 20 && !lost.contains(&true), "{lost:?}");
    let later = answers(up_ns + 200_000_000, u64::MAX);
    assert!(later.iter().filter(|was_answered| **was_answered).count() > later.len() / 2, "{later:?}");
    let bytes_at = |t_ns: u64| found.client.goodput.iter().rfind(|row| row.t_ns <= t_ns).unwrap().bytes;
    assert!(bytes_at(u64::MAX) > bytes_at(up_ns), "the load goes on");
    assert!(found.server.is_some());
}

#[tokio::test]
async fn an_upload_that_the_server_stops_reading_ends_with_its_phase() {
    let server = Server::start(|_| {});
    let router = Router::before(server.address).await;
    let settings = short(router.address, &server.token, &[PhaseKind::Upload, PhaseKind::CoolDown]);
    let mut held_ns = 0;
    let (found, waited) = measure_with(&settings, |_, t_ns| {
        let is_time = t_ns > 1_000_000_000;
        router.faults.holds_upload.store(is_time, Ordering::Relaxed);
        held_ns = realtime_ns();
        is_time
    })
    .await;
    assert!(waited < NOTICED, "{waited:?}");
    assert_eq!(found.ended_early, None);
    let of_server = found.server.unwrap();
    let bytes_at = |t_ns: u64| of_server.end.goodput.iter().rfind(|row| row.t_ns <= t_ns).unwrap().bytes;
    // What the router had read before may still arrive.
    assert_eq!(bytes_at(held_ns + 500_000_000), bytes_at(u64::MAX));
    assert!(bytes_at(u64::MAX) > 0);
    assert!(server.enter().await.is_ok(), "the next");
}

#[tokio::test]
async fn a_test_goes_on_when_a_router_changes_the_port_of_the_probes() {
    let server = Server::start(|_| {});
    let router = Router::before(server.address).await;
    let mut settings = short(router.address, &server.token, &[PhaseKind::Idle]);
    settings.idle = Duration::from_secs(3);
    let mut rebound_ns = 0;
    let (found, _) = measure_with(&settings, |_, t_ns| {
        let is_time = t_ns > 1_000_000_000;
        router.faults.rebind.store(is_time, Ordering::Relaxed);
        rebound_ns = realtime_ns();
        is_time
    })
    .await;
    assert_eq!(found.ended_early, None);
    let later = found.probes.iter().filter(|probe| probe.t_ns > rebound_ns + 500_000_000);
    assert!(later.clone().any(|probe| probe.reply.is_some()), "{} probes", later.count());
}

#[tokio::test]
async fn without_udp_the_round_trips_of_tcp_are_measured_and_the_verdict_says_so() {
    let server = Server::start(|_| {});
    // Connections are passed on, and nothing answers UDP at this address.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, onward) = (listener.local_addr().unwrap(), server.address);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut onward = TcpStream::connect(onward).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut onward).await;
            });
        }
    });
    let mut settings = short(address, &server.token, &[PhaseKind::Idle, PhaseKind::Upload, PhaseKind::CoolDown]);
    (settings.idle, settings.at_most, settings.flows) = (Duration::from_secs(7), Duration::from_secs(7), None);
    let found = measure(&settings, &AtomicBool::new(false), |_| {}).await.unwrap();
    assert_eq!(found.ended_early, None);
    assert!(found.probes.iter().all(|probe| probe.reply.is_none()));
    assert!(found.warnings.iter().any(|warning| warning.contains("not over UDP")), "{:?}", found.warnings);
    let most = found.client.flows.iter().map(|row| row.flow).max();
    assert!(most.is_some_and(|most| most >= 4), "the load has got more connections than the first four: {most:?}");
    assert!(found.client.tcp_ladder.iter().any(|row| row.kind == AnswerKind::Destination && row.ttl == 1));
    let observed = bufferscope_live::client::observe::observations(&found, 10_000_000);
    let verdict = bufferscope_verdict::judge(&observed);
    assert!(verdict.warnings[0].contains("UDP does not come through"), "{:?}", verdict.warnings);
    assert!(verdict.idle.rtt.p50_ns.is_some_and(|rtt_ns| rtt_ns < 1_000_000_000), "{:?}", verdict.idle);
    assert!(verdict.phases[0].numbers.loaded.count >= 10 && verdict.phases[0].locations.is_empty());
    assert!(verdict.phases[0].numbers.directions.iter().any(|numbers| numbers.goodput.is_some()));
}
