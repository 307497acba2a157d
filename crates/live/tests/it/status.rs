//! The state of a server: who may see it, and what it counts.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use crate::common::{PATIENCE, Program, Server, connect_from, program};
use bufferscope_live::client::control::{ConnectError, Control};
use bufferscope_live::server::status::{Status, socket};
use bufferscope_live::wire::control::{PhaseKind, Request};
use bufferscope_live::wire::token::Token;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn status(server: &Server) -> Status {
    let port = server.address.port();
    tokio::task::spawn_blocking(move || socket::read(port).unwrap()).await.unwrap()
}

/// Waits until the state is so.
async fn until(server: &Server, what: &str, is_so: impl Fn(&Status) -> bool) -> Status {
    let begun = std::time::Instant::now();
    loop {
        let found = status(server).await;
        if is_so(&found) {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn tests_refusals_and_load_are_counted() {
    let server = Server::start(|settings| settings.limits.waiting = 1);
    let found = status(&server).await;
    assert_eq!((found.tests.running, found.tests.done, found.bytes.sent), (0, 0, 0));
    let measured = server.measure(&[PhaseKind::Download]).await.unwrap();
    assert_eq!(measured.ended_early, None);
    let wrong = Token::generate(b"another certificate");
    assert!(Control::connect(server.address, &wrong, |_| {}).await.is_err());
    let guess: Token =
        format!("{}-{}", wrong.secret(), server.token.to_string().split('-').nth(1).unwrap()).parse().unwrap();
    assert!(matches!(Control::connect(server.address, &guess, |_| {}).await, Err(ConnectError::Declined(_))));

    let (mut first, _welcome) = server.enter().await.unwrap();
    let (address, token) = (server.address, server.token.clone());
    let second = tokio::spawn(async move { Control::connect(address, &token, |_| {}).await.map(|_| ()) });
    until(&server, "one runs, one waits", |found| (found.tests.running, found.tests.waiting) == (1, 1)).await;
    assert!(matches!(server.enter().await, Err(ConnectError::Declined(_))), "the queue is full");
    first.send(&Request::Finish).await.unwrap();
    while !matches!(first.answer().await.unwrap(), bufferscope_live::wire::control::Answer::Records(_)) {}
    drop(first);
    second.await.unwrap().unwrap();
    let found = until(&server, "the second one left", |found| found.tests.failed == 1).await;
    assert_eq!((found.tests.running, found.tests.waiting, found.tests.done), (0, 0, 2));
    assert_eq!((found.refused["token"], found.refused["queue_full"], found.refused["hourly_limit"]), (1, 1, 0));
    assert!(found.bytes.sent > 1_000_000 && found.bytes.sent > 10 * found.bytes.received, "{:?}", found.bytes);
}

#[tokio::test]
async fn a_limit_is_counted_as_one() {
    let server = Server::start(|settings| settings.limits.session.bytes = 1_000_000);
    let measured = server.measure(&[PhaseKind::Download]).await.unwrap();
    assert!(measured.ended_early.is_some());
    let found = until(&server, "the test has ended", |found| found.tests.running == 0).await;
    assert_eq!((found.tests.done, found.tests.limited), (0, 1));
}

async fn get(from: [u8; 4], at: SocketAddr, path: &str, more: &str) -> String {
    let mut stream = connect_from(from.into(), at).await;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n{more}\r\n").as_bytes()).await.unwrap();
    let mut text = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await.unwrap().unwrap();
    String::from_utf8(text).unwrap()
}

/// A free port, as far as one can know.
fn free() -> SocketAddr {
    std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn metrics_have_no_addresses_and_other_machines_need_the_secret() {
    let at = free();
    let secret = Token::generate(b"x");
    let server = Server::start(|settings| settings.metrics = Some((at, secret.clone())));
    assert_eq!(server.measure(&[PhaseKind::Upload]).await.unwrap().ended_early, None);
    let here: SocketAddr = (Ipv4Addr::LOCALHOST, at.port()).into();
    let found = get([127, 0, 0, 1], here, "/metrics", "").await;
    assert!(found.starts_with("HTTP/1.1 200 OK\r\n") && found.contains("text/plain; version=0.0.4"), "{found}");
    assert!(found.contains("\nbufferscope_tests_total{outcome=\"done\"} 1\n"), "{found}");
    assert!(!found.contains("127.0.0."), "{found}");
    assert!(get([127, 0, 0, 1], here, "/", "").await.starts_with("HTTP/1.1 404 "));
    // The page's own port shows none.
    let on_page = get([127, 0, 0, 1], server.address, "/metrics", "Connection: close\r\n").await;
    assert!(on_page.starts_with("HTTP/1.1 404 "), "{on_page}");
    let Some(own) = other_address() else { return eprintln!("skipped: metrics from elsewhere: no other address") };
    let there = SocketAddr::from((own, at.port()));
    for (more, expected) in [
        (String::new(), 401),
        (format!("Authorization: Bearer {}\r\n", server.token.secret()), 401),
        (format!("Authorization: Bearer {}\r\n", secret.secret()), 200),
    ] {
        let found = get(own.octets(), there, "/metrics", &more).await;
        assert!(found.starts_with(&format!("HTTP/1.1 {expected} ")), "{found}");
    }
}

/// An address of this machine that is not a loopback address.
fn other_address() -> Option<Ipv4Addr> {
    let all = nix::ifaddrs::getifaddrs().ok()?;
    let mut v4 = all.filter_map(|interface| interface.address?.as_sockaddr_in().map(|address| address.ip()));
    v4.find(|address| !address.is_loopback() && !address.is_link_local())
}

#[test]
fn the_program_prints_the_state_of_a_server_and_says_if_there_is_none() {
    let server = Program::start(&["--monitors", "3"]);
    let ask = |port: u16, more: &[&str]| {
        program().args(["serve", "--status", &port.to_string()]).args(more).output().unwrap()
    };
    let text = String::from_utf8(ask(server.address.port(), &[]).stdout).unwrap();
    assert!(text.contains("0 running, 0 waiting; 0 done") && text.contains("3 monitors; a test: 180 s"), "{text}");
    let json: Status = serde_json::from_slice(&ask(server.address.port(), &["--json"]).stdout).unwrap();
    assert_eq!(json.pid, server.child.id());
    let absent = ask(free().port(), &[]);
    assert!(!absent.status.success());
    assert!(String::from_utf8(absent.stderr).unwrap().contains("no server on this machine"));
}

#[test]
fn other_users_do_not_see_the_state() {
    if !nix::unistd::geteuid().is_root() {
        return eprintln!("skipped: other users do not see the state: needs root");
    }
    let server = Program::start(&[]);
    // A copy that this user may read.
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let copy = directory.path().join("bufferscope-live");
    std::fs::copy(env!("CARGO_BIN_EXE_bufferscope-live"), &copy).unwrap();
    let mut other = std::process::Command::new(&copy);
    other.uid(65_534);
    let asked = other.args(["serve", "--status", &server.address.port().to_string()]).output();
    let said = String::from_utf8(asked.unwrap().stderr).unwrap();
    assert!(said.contains("belongs to another user"), "{said}");
}
