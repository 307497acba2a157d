//! Upgrades without cutting a test, and ends that let tests end.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Prober, Program, program, short};
use bufferscope_live::client::control::{ConnectError, Control, pinned};
use bufferscope_live::client::measure;
use bufferscope_live::server::status::{Status, socket};
use bufferscope_live::wire::control::{Answer, PhaseKind};
use futures_util::{SinkExt, StreamExt};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// A server that was started by another one; it ends with this.
struct Upgraded(Pid);

impl Drop for Upgraded {
    fn drop(&mut self) {
        let _ = kill(self.0, Signal::SIGKILL);
    }
}

fn signal(server: &Program, signal: Signal) {
    kill(Pid::from_raw(server.child.id() as i32), signal).unwrap();
}

async fn status(server: SocketAddr) -> Option<Status> {
    tokio::task::spawn_blocking(move || socket::read(server.port()).ok()).await.unwrap()
}

/// Waits until the state is so.
async fn until(server: SocketAddr, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
    let begun = Instant::now();
    loop {
        let found = status(server).await;
        if let Some(found) = found.as_ref().filter(|found| is_so(found)) {
            return found.clone();
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {found:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Starts a new process in the place of a server, and waits for it.
async fn upgrade(server: &Program) -> Upgraded {
    let old = server.child.id();
    signal(server, Signal::SIGUSR2);
    let found = until(server.address, "a new process", |found| found.pid != old).await;
    Upgraded(Pid::from_raw(found.pid as i32))
}

/// Waits until the process ends, and returns its exit status.
async fn ended(server: &mut Program) -> std::process::ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            return status;
        }
        assert!(begun.elapsed() < PATIENCE, "the process goes on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_runs_during_an_upgrade_has_its_full_result_and_a_new_one_begins_at_once() {
    let mut server = Program::start(&["--tests", "2"]);
    let (address, token) = (server.address, server.token.clone());
    let phases = [PhaseKind::Download, PhaseKind::Upload];
    let running = {
        let settings = short(address, &token, &phases);
        tokio::spawn(async move { measure(&settings, &AtomicBool::new(false), |_| {}).await })
    };
    until(address, "the test runs", |found| found.tests.running == 1).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let new = upgrade(&server).await;
    // During the upgrade all was passed on: whatever still comes must also find its process.
    let begun = Instant::now();
    let (control, welcome) = Control::connect(address, &token, |_| panic!("it waits")).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    assert!(welcome.shares, "with the test of the old process");
    assert!(!running.is_finished());
    let mut prober = Prober::new([127, 0, 0, 1], address, welcome.session);
    let offer = prober.exchange([0; 16]);
    prober.exchange(offer.cookie);
    drop(control);

    let measured = running.await.unwrap().unwrap();
    assert_eq!(measured.ended_early, None);
    assert!(measured.client.failures.is_empty(), "{:?}", measured.client.failures);
    let records = measured.server.expect("the server's records");
    for (phase, bytes) in [(PhaseKind::Download, &measured.client.goodput), (PhaseKind::Upload, &records.end.goodput)] {
        assert!(measured.phases.iter().any(|found| found.kind == phase), "{phase:?}");
        assert!(bytes.last().unwrap().bytes > 1_000_000, "{phase:?}");
    }
    let lost = measured.probes.iter().filter(|probe| probe.reply.is_none()).count();
    assert!(lost * 50 < measured.probes.len(), "{lost} of {} probes were lost", measured.probes.len());
    assert!(ended(&mut server).await.success(), "the old process ends with its last test");
    let found = until(address, "it is forgotten", |found| found.tests.of_old_process == 0).await;
    assert_eq!(found.pid, new.0.as_raw() as u32);
    let after =
        measure(&short(address, &token, &[PhaseKind::Download]), &AtomicBool::new(false), |_| {}).await.unwrap();
    assert_eq!(after.ended_early, None);
}

#[tokio::test]
async fn those_who_wait_keep_their_order_and_accounts_are_handed_over() {
    let mut server = Program::start(&["--tests-per-hour", "3"]);
    let (address, token) = (server.address, server.token.clone());
    let (first, _) = Control::connect(address, &token, |_| {}).await.unwrap();
    let wait = |seen: &Arc<AtomicUsize>| {
        let (token, seen) = (token.clone(), Arc::clone(seen));
        tokio::spawn(async move { Control::connect(address, &token, |at| seen.store(at, Ordering::Relaxed)).await })
    };
    let [second_at, third_at] = [(); 2].map(|()| Arc::new(AtomicUsize::new(0)));
    let second = wait(&second_at);
    crate::common::until("the second one waits", || second_at.load(Ordering::Relaxed) == 1).await;
    let _new = upgrade(&server).await;
    let third = wait(&third_at);
    crate::common::until("the third one waits", || third_at.load(Ordering::Relaxed) == 2).await;
    drop(first);
    let second = second.await.unwrap().unwrap();
    crate::common::until("it is the next", || third_at.load(Ordering::Relaxed) == 1).await;
    drop(second);
    let third = third.await.unwrap();
    // The accounts are those of the moment of the upgrade: one test had begun.
    drop(third.unwrap());
    assert!(ended(&mut server).await.success());
    let (fourth, _) = Control::connect(address, &token, |_| {}).await.unwrap();
    drop(fourth);
    let refused = Control::connect(address, &token, |_| {}).await;
    assert!(matches!(&refused, Err(ConnectError::Declined(why)) if why.contains("3 tests an hour")), "{refused:?}");
}

async fn say<S: AsyncRead + AsyncWrite + Unpin>(socket: &mut WebSocketStream<S>, message: Value) -> Value {
    socket.send(Message::text(message.to_string())).await.unwrap();
    loop {
        match tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            other => assert!(other.is_ping() || other.is_pong(), "{other:?}"),
        }
    }
}

/// Begins a page's test over a connection; returns its control connection and the fields of its requests.
async fn begin<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    server: &Program,
    scheme: &str,
) -> (WebSocketStream<S>, String) {
    let mut request = format!("{scheme}://{}/test/control", server.address).into_client_request().unwrap();
    let origin = format!("{}://{}", scheme.replace("ws", "http"), server.address);
    request.headers_mut().insert("origin", origin.parse().unwrap());
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    let welcome = say(&mut socket, json!({"ask": "hello", "secret": server.token.secret()})).await;
    let fields = format!("session={}&key={}", welcome["session"].as_str().unwrap(), welcome["key"].as_str().unwrap());
    (socket, fields)
}

/// Downloads a megabyte of a session's load.
async fn download<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, server: &Program, fields: &str) {
    let request = format!("GET /test/download?{fields} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = vec![0; 1_000_000];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut bytes)).await.unwrap().unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&bytes[..200]));
}

async fn browser(server: &Program) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut config = pinned(&server.token);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = TcpStream::connect(server.address).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect("bufferscope".try_into().unwrap(), stream).await.unwrap()
}

#[tokio::test]
async fn the_load_of_a_page_finds_its_test_after_an_upgrade_in_clear_and_over_tls() {
    let mut server = Program::start(&["--tests", "2"]);
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut clear, of_clear) = begin(stream, &server, "ws").await;
    let (mut secure, of_secure) = begin(browser(&server).await, &server, "wss").await;
    let _new = upgrade(&server).await;
    let phase = json!({"ask": "phase", "phase": "download"});
    assert_eq!(say(&mut clear, phase.clone()).await["answer"], "noted");
    assert_eq!(say(&mut secure, phase).await["answer"], "noted");
    download(TcpStream::connect(server.address).await.unwrap(), &server, &of_clear).await;
    download(browser(&server).await, &server, &of_secure).await;
    // Requests that are not of the old process's sessions are the new one's.
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream
        .write_all(format!("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address).as_bytes())
        .await
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    assert!(page.starts_with("HTTP/1.1 200"));
    drop((clear, secure));
    assert!(ended(&mut server).await.success());
}

fn install(from: &Path, to: &Path) {
    let beside = to.with_extension("new");
    std::fs::copy(from, &beside).unwrap();
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&beside, to).unwrap();
}

#[tokio::test]
async fn a_new_program_that_does_not_start_changes_nothing_and_the_service_manager_knows_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let notes = UnixDatagram::bind(directory.path().join("notify")).unwrap();
    notes.set_read_timeout(Some(PATIENCE)).unwrap();
    let noted = || {
        let mut buffer = [0; 100];
        let length = notes.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let installed = directory.path().join("bufferscope-live");
    install(Path::new(env!("CARGO_BIN_EXE_bufferscope-live")), &installed);
    let mut command = Command::new(&installed);
    command.env("NOTIFY_SOCKET", directory.path().join("notify"));
    let mut server = Program::start_as(command, &[]);
    assert_eq!(noted(), "READY=1");
    let (running, welcome) = Control::connect(server.address, &server.token, |_| {}).await.unwrap();
    let wrong = directory.path().join("wrong");
    std::fs::write(&wrong, "#!/bin/sh\ntouch \"$0.ran\"\nexit 1\n").unwrap();
    install(&wrong, &installed);
    signal(&server, Signal::SIGUSR2);
    crate::common::until("the wrong program has run", || {
        installed.with_extension("ran").exists() || directory.path().join("bufferscope-live.ran").exists()
    })
    .await;
    let found = until(server.address, "it still serves", |found| found.tests.running == 1).await;
    assert_eq!(found.pid, server.child.id());
    let mut prober = Prober::new([127, 0, 0, 1], server.address, welcome.session);
    prober.exchange([0; 16]);
    install(Path::new(env!("CARGO_BIN_EXE_bufferscope-live")), &installed);
    let new = upgrade(&server).await;
    let mut said = [noted(), noted()];
    said.sort();
    assert_eq!(said, [format!("MAINPID={}", new.0), "READY=1".to_owned()]);
    drop(running);
    assert!(ended(&mut server).await.success());
    kill(new.0, Signal::SIGTERM).unwrap();
    assert_eq!(noted(), "STOPPING=1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_lets_a_running_test_end_and_sends_others_away() {
    let mut server = Program::start(&[]);
    let (address, token) = (server.address, server.token.clone());
    let settings = short(address, &token, &[PhaseKind::Download]);
    let running = tokio::spawn(async move { measure(&settings, &AtomicBool::new(false), |_| {}).await });
    until(address, "the test runs", |found| found.tests.running == 1).await;
    let waiting = {
        let token = token.clone();
        tokio::spawn(async move { Control::connect(address, &token, |_| {}).await })
    };
    until(address, "another waits", |found| found.tests.waiting == 1).await;
    signal(&server, Signal::SIGTERM);
    let is_sent_away = |found: &Result<_, ConnectError>| matches!(found, Err(ConnectError::Declined(why)) if why.contains("about to end"));
    assert!(is_sent_away(&waiting.await.unwrap()));
    assert!(is_sent_away(&Control::connect(address, &token, |_| {}).await));
    let found = until(address, "two were sent away", |found| found.refused["stopping"] == 2).await;
    assert_eq!(found.tests.running, 1);
    let measured = running.await.unwrap().unwrap();
    assert!(measured.ended_early.is_none() && measured.server.is_some(), "{:?}", measured.ended_early);
    assert!(ended(&mut server).await.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_time_of_grace_ends_a_test_and_a_second_signal_ends_it_at_once() {
    let mut server = Program::start(&["--grace", "1"]);
    let settings = short(server.address, &server.token, &[PhaseKind::Download, PhaseKind::Upload, PhaseKind::Both]);
    let running = tokio::spawn(async move { measure(&settings, &AtomicBool::new(false), |_| {}).await });
    until(server.address, "the test runs", |found| found.tests.running == 1).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    signal(&server, Signal::SIGTERM);
    let measured = running.await.unwrap().unwrap();
    assert_eq!(measured.ended_early.as_deref(), Some("the server is about to end"));
    assert!(measured.server.is_some(), "it has the records until then");
    assert!(ended(&mut server).await.success());

    let mut server = Program::start(&[]);
    let (mut control, _) = Control::connect(server.address, &server.token, |_| {}).await.unwrap();
    signal(&server, Signal::SIGINT);
    until(server.address, "it stops", |found| serde_json::to_value(found).unwrap()["state"] == "stopping").await;
    let begun = Instant::now();
    signal(&server, Signal::SIGINT);
    assert!(ended(&mut server).await.success());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(!matches!(control.answer().await, Ok(Answer::Records(_))));
}

#[test]
fn without_a_test_a_signal_ends_a_server_at_once() {
    for number in [Signal::SIGTERM, Signal::SIGINT] {
        let mut server = Program::start(&[]);
        let begun = Instant::now();
        signal(&server, number);
        assert!(server.child.wait().unwrap().success());
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
    assert!(!program().args(["serve", "--grace", "3601"]).output().unwrap().status.success());
}
