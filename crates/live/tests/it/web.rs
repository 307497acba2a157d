//! The page: a browser's requests, its whole test, and what browsers may not do. `docs/serve.md` lists the tests of abuse.

use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Server, connect_from};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

type Socket = WebSocketStream<TcpStream>;

fn request(server: &Server, first: &str, more: &str) -> String {
    format!("{first} HTTP/1.1\r\nHost: {}\r\n{more}\r\n", server.address)
}

/// What arrives within some time, or until the connection ends.
async fn received(stream: &mut (impl AsyncReadExt + Unpin), within: Duration) -> String {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(within, stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The answer to one request on a connection of its own.
async fn answer_from(source: [u8; 4], server: &Server, request: &str) -> String {
    let mut stream = connect_from(source.into(), server.address).await;
    let _ = stream.write_all(request.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes()).await;
    received(&mut stream, PATIENCE).await
}

async fn answer(server: &Server, request: &str) -> String {
    answer_from(HERE, server, request).await
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:.200}"))
}

async fn open(server: &Server, path: &str, origin: Option<&str>) -> Result<Socket, Error> {
    let mut request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
    if let Some(origin) = origin {
        request.headers_mut().insert("origin", origin.parse().unwrap());
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    tokio_tungstenite::client_async(request, stream).await.map(|(socket, _)| socket)
}

fn origin(server: &Server) -> String {
    format!("http://{}", server.address)
}

async fn say(socket: &mut Socket, message: &Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

/// The next message of a control connection; `None` at its end.
async fn heard(socket: &mut Socket) -> Option<Value> {
    loop {
        match tokio::time::timeout(PATIENCE, socket.next()).await.expect("an answer in time")?.ok()? {
            Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
            Message::Close(_) => return None,
            _ => {}
        }
    }
}

/// A page whose test has begun: its control connection, and the fields of its requests.
async fn begun(server: &Server) -> (Socket, String) {
    let mut control = open(server, "/test/control", Some(&origin(server))).await.unwrap();
    say(&mut control, &json!({"ask": "hello", "secret": server.token.secret()})).await;
    let welcome = heard(&mut control).await.unwrap();
    assert_eq!(welcome["answer"], "welcome", "{welcome}");
    let fields = format!("session={}&key={}", welcome["session"].as_str().unwrap(), welcome["key"].as_str().unwrap());
    (control, fields)
}

async fn enter_phase(control: &mut Socket, phase: &str) {
    say(control, &json!({"ask": "phase", "phase": phase})).await;
    assert_eq!(heard(control).await.unwrap()["answer"], "noted");
}

#[tokio::test]
async fn the_page_is_served_with_headers_that_let_no_other_site_in() {
    let server = Server::start(|_| {});
    let head = answer(&server, &request(&server, "GET /", "")).await;
    assert_eq!(status(&head), 200);
    let (head, body) = head.split_once("\r\n\r\n").unwrap();
    for needed in [
        "content-security-policy: default-src 'none'; script-src 'self'; ",
        "frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "x-frame-options: DENY",
        "referrer-policy: no-referrer",
        "cache-control: no-store",
        "cross-origin-resource-policy: same-origin",
        "content-type: text/html; charset=utf-8",
    ] {
        assert!(head.contains(needed), "{needed}: {head}");
    }
    assert!(!head.to_lowercase().contains("access-control-allow"), "{head}");
    assert!(body.starts_with("<!doctype html>"));
    for file in [
        "/page.css",
        "/page.js",
        "/channel.js",
        "/words.js",
        "/drawing.js",
        "/probe.js",
        "/load.js",
        "/icon.svg",
        "/texts/zh.json",
    ] {
        assert!(
            body.contains(file) || status(&answer(&server, &request(&server, &format!("GET {file}"), "")).await) == 200
        );
    }
    for (wrong, expected) in [
        ("GET /nothing", 404),
        ("GET /../token", 404),
        ("POST /", 405),
        ("GET /test/upload", 405),
        ("DELETE /test/download", 405),
    ] {
        assert_eq!(status(&answer(&server, &request(&server, wrong, "")).await), expected, "{wrong}");
    }
    assert_eq!(status(&answer(&server, "GET / HTTP/1.1\r\n\r\n").await), 400, "no Host");
}

#[tokio::test]
async fn the_page_is_served_over_tls_too_and_other_clients_stay() {
    let server = Server::start(|_| {});
    let stream = TcpStream::connect(server.address).await.unwrap();
    let mut browser = bufferscope_live::client::control::pinned(&server.token);
    browser.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = "bufferscope".try_into().unwrap();
    let mut stream =
        tokio_rustls::TlsConnector::from(std::sync::Arc::new(browser)).connect(name, stream).await.unwrap();
    stream.write_all(request(&server, "GET /page.js", "Connection: close\r\n").as_bytes()).await.unwrap();
    let found = received(&mut stream, PATIENCE).await;
    assert_eq!(status(&found), 200);
    assert!(found.contains("cross-origin-opener-policy: same-origin"));
    assert!(server.enter().await.is_ok());
}

#[tokio::test]
async fn requests_without_end_are_cut_off() {
    let server = Server::start(|settings| settings.limits.opening = Duration::from_millis(500));
    let long = request(&server, "GET /", &format!("X: {}\r\n", "x".repeat(20_000)));
    assert_eq!(status(&answer(&server, &long).await), 431);
    let many = request(&server, "GET /", &"X: x\r\n".repeat(200));
    assert_eq!(status(&answer(&server, &many).await), 431);
    let begun = Instant::now();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: ").await.unwrap();
    received(&mut stream, PATIENCE).await;
    let mut kept = TcpStream::connect(server.address).await.unwrap();
    kept.write_all(request(&server, "GET /", "").as_bytes()).await.unwrap();
    received(&mut kept, PATIENCE).await;
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let (_control, fields) = self::begun(&server).await;
    for (path, length) in [("upload", 1_u64 << 40), ("samples", 1 << 30)] {
        let sent = request(&server, &format!("POST /test/{path}?{fields}"), &format!("Content-Length: {length}\r\n"));
        assert_eq!(status(&answer(&server, &sent).await), 413, "{path}");
    }
}

#[tokio::test]
async fn a_page_of_another_site_opens_no_websocket_and_starts_no_load() {
    let server = Server::start(|_| {});
    let (_control, fields) = begun(&server).await;
    for origin in [None, Some("http://example.org"), Some("null"), Some("http://127.0.0.1:1")] {
        for path in ["/test/control".to_owned(), format!("/test/pings?{fields}")] {
            match open(&server, &path, origin).await {
                Err(Error::Http(answer)) => assert_eq!(answer.status(), 403, "{origin:?}"),
                other => panic!("{origin:?}: {other:?}"),
            }
        }
    }
    for more in ["Origin: http://example.org\r\n", "Sec-Fetch-Site: cross-site\r\n"] {
        let found = answer(&server, &request(&server, &format!("GET /test/download?{fields}"), more)).await;
        assert_eq!(status(&found), 403);
    }
}

#[tokio::test]
async fn a_page_needs_the_token_and_each_wrong_one_is_answered_later() {
    let server = Server::start(|_| {});
    let begun = Instant::now();
    for secret in ["", "aaaaaaaaaaaaaaaa", "public"] {
        let mut control = open(&server, "/test/control", Some(&origin(&server))).await.unwrap();
        say(&mut control, &json!({"ask": "hello", "secret": secret})).await;
        let refused = heard(&mut control).await.unwrap();
        assert_eq!(refused["answer"], "refused");
        assert!(heard(&mut control).await.is_none());
    }
    assert!(begun.elapsed() >= Duration::from_millis(100 + 200 + 400));
    for wrong in ["{}", "{\"ask\": \"hello\"}", "[", "{\"ask\": \"phase\"}"] {
        let mut control = open(&server, "/test/control", Some(&origin(&server))).await.unwrap();
        control.send(Message::text(wrong)).await.unwrap();
        assert!(heard(&mut control).await.is_none(), "{wrong}");
    }
}

#[tokio::test]
async fn a_page_waits_in_the_queue_of_all_clients() {
    let server = Server::start(|_| {});
    let first = server.enter().await.unwrap();
    let mut control = open(&server, "/test/control", Some(&origin(&server))).await.unwrap();
    say(&mut control, &json!({"ask": "hello", "secret": server.token.secret()})).await;
    assert_eq!(heard(&mut control).await.unwrap(), json!({"answer": "queued", "position": 1}));
    drop(first);
    while heard(&mut control).await.unwrap()["answer"] == "queued" {}
    drop(control);
    assert!(server.enter().await.is_ok(), "the page's test ended with its connection");
}

#[tokio::test]
async fn a_load_that_comes_before_its_phase_waits_for_it() {
    let server = Server::start(|_| {});
    let (mut control, fields) = begun(&server).await;
    let mut load = TcpStream::connect(server.address).await.unwrap();
    load.write_all(request(&server, &format!("GET /test/download?{fields}"), "").as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    enter_phase(&mut control, "download").await;
    let mut status = [0; 15];
    tokio::time::timeout(PATIENCE, load.read_exact(&mut status)).await.unwrap().unwrap();
    assert_eq!(&status, b"HTTP/1.1 200 OK");
}

#[tokio::test]
async fn a_pages_load_needs_the_key_the_address_and_a_phase_and_is_counted() {
    let server = Server::start(|settings| settings.limits.session.flows = 2);
    let (mut control, fields) = begun(&server).await;
    let get = |fields: &str| request(&server, &format!("GET /test/download?{fields}"), "");
    assert_eq!(status(&answer(&server, &get(&fields)).await), 409, "not in this phase");
    enter_phase(&mut control, "download").await;
    let wrong = fields.replace("key=", "key=0").split_at(fields.len()).0.to_owned();
    for wrong in [&wrong[..], "", "session=0&key=0", &fields.replace("session=", "session=+")] {
        assert_eq!(status(&answer(&server, &get(wrong)).await), 403, "{wrong}");
    }
    assert_eq!(status(&answer_from(ELSEWHERE, &server, &get(&fields)).await), 403, "another address");
    let mut loads = Vec::new();
    for _ in 0..2 {
        let mut load = TcpStream::connect(server.address).await.unwrap();
        load.write_all(get(&fields).as_bytes()).await.unwrap();
        let mut bytes = vec![0; 1_000_000];
        tokio::time::timeout(PATIENCE, load.read_exact(&mut bytes)).await.unwrap().unwrap();
        assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\n"));
        loads.push(load);
    }
    assert_eq!(status(&answer(&server, &get(&fields)).await), 409, "too many");
    enter_phase(&mut control, "idle").await;
    for mut load in loads {
        // Whatever is on its way, and then the end.
        let mut rest = Vec::new();
        let _ =
            tokio::time::timeout(PATIENCE, load.read_to_end(&mut rest)).await.expect("the load ends with its phase");
    }
    assert_eq!(
        status(
            &answer(&server, &request(&server, &format!("POST /test/upload?{fields}"), "Content-Length: 0\r\n")).await
        ),
        409
    );
}

#[tokio::test]
async fn a_page_that_never_reads_is_cut_off_when_its_phase_ends() {
    let server = Server::start(|settings| settings.limits.opening = Duration::from_millis(500));
    let (mut control, fields) = begun(&server).await;
    enter_phase(&mut control, "download").await;
    let mut held = Vec::new();
    for _ in 0..4 {
        let mut load = TcpStream::connect(server.address).await.unwrap();
        load.write_all(request(&server, &format!("GET /test/download?{fields}"), "").as_bytes()).await.unwrap();
        held.push(load);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    for load in &held {
        assert!(load.try_write(b"x").is_ok(), "the load runs");
    }
    enter_phase(&mut control, "idle").await;
    let is_cut =
        |load: &TcpStream| load.try_write(b"x").is_err_and(|error| error.kind() != std::io::ErrorKind::WouldBlock);
    crate::common::until("all of them are cut off", || held.iter().all(is_cut)).await;
}

#[tokio::test]
async fn pings_are_answered_at_once_and_not_without_end() {
    let server = Server::start(|_| {});
    let (_control, fields) = begun(&server).await;
    assert!(open(&server, &format!("/test/pings?{fields}"), None).await.is_err(), "no origin");
    let own = origin(&server);
    let mut socket = open(&server, &format!("/test/pings?{fields}"), Some(&own)).await.unwrap();
    for seq in 0..5_u32 {
        socket.send(Message::binary(seq.to_be_bytes().to_vec())).await.unwrap();
        let Some(Ok(Message::Binary(pong))) = socket.next().await else { panic!("no pong") };
        assert_eq!((pong.len(), &pong[..4]), (20, &seq.to_be_bytes()[..]));
        assert!(u64::from_be_bytes(pong[4..12].try_into().unwrap()) > 0);
    }
    let ended = |mut socket: Socket| async move {
        while let Some(Ok(message)) = tokio::time::timeout(PATIENCE, socket.next()).await.expect("the end") {
            if matches!(message, Message::Close(_)) {
                break;
            }
        }
    };
    for wrong in [vec![], vec![0; 5], vec![0; 10_000]] {
        let mut socket = open(&server, &format!("/test/pings?{fields}"), Some(&own)).await.unwrap();
        socket.send(Message::binary(wrong)).await.unwrap();
        ended(socket).await;
    }
    let mut sent = 0;
    while sent < 100_000 && socket.send(Message::binary(vec![0; 4])).await.is_ok() {
        sent += 1;
    }
    ended(socket).await;
}

#[tokio::test]
async fn a_whole_test_of_a_page_ends_with_a_verdict_that_guesses_no_place() {
    let server = Server::start(|_| {});
    let (mut control, fields) = begun(&server).await;
    let mut pings = open(&server, &format!("/test/pings?{fields}"), Some(&origin(&server))).await.unwrap();
    let start = Instant::now();
    let ms = || start.elapsed().as_secs_f64() * 1000.0;
    let (mut phases, mut sent, mut received) = (Vec::new(), Vec::new(), Vec::new());
    let mut uploaded = 0;
    for phase in ["idle", "upload", "cool_down"] {
        enter_phase(&mut control, phase).await;
        let begin = ms();
        let until = begin + 1000.0;
        let mut load = TcpStream::connect(server.address).await.unwrap();
        if phase == "upload" {
            let head = request(&server, &format!("POST /test/upload?{fields}"), "Content-Length: 1000000\r\n");
            load.write_all(head.as_bytes()).await.unwrap();
        }
        while ms() < until {
            if phase == "upload" && uploaded < 1_000_000 {
                load.write_all(&[1; 50_000]).await.unwrap();
                uploaded += 50_000;
            }
            let at = ms();
            pings.send(Message::binary((sent.len() as u32).to_be_bytes().to_vec())).await.unwrap();
            let Some(Ok(Message::Binary(pong))) = pings.next().await else { panic!("no pong") };
            sent.push(json!([at, ms(), 0]));
            received.push(json!([ms(), 0]));
            assert!(u64::from_be_bytes(pong[12..20].try_into().unwrap()) <= uploaded);
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
        phases.push(json!({"kind": phase, "start_ms": begin, "end_ms": ms(), "levelled": null}));
    }
    say(&mut control, &json!({"ask": "phase", "phase": "idle"})).await;
    let samples =
        json!({"interval_ms": 15, "phases": phases, "pings": sent, "received": received, "reason": null}).to_string();
    let post =
        request(&server, &format!("POST /test/samples?{fields}"), &format!("Content-Length: {}\r\n", samples.len()));
    assert_eq!(status(&answer(&server, &(post.clone() + &samples)).await), 200);
    let bad = request(&server, &format!("POST /test/samples?{fields}"), "Content-Length: 2\r\n") + "{}";
    assert_eq!(status(&answer(&server, &bad).await), 400);
    say(&mut control, &json!({"ask": "finish"})).await;
    let judged = loop {
        let found = heard(&mut control).await.unwrap();
        if found["answer"] != "noted" {
            break found;
        }
    };
    assert_eq!(judged["answer"], "judged", "{judged}");
    let (start, end) = (&judged["events"][0], &judged["events"][1]);
    assert_eq!((start["event"].as_str(), end["event"].as_str()), (Some("start"), Some("end")));
    assert_eq!(start["host"], server.address.to_string());
    assert_eq!(end["complete"], true);
    let phase = &end["verdict"]["phases"][0];
    assert_eq!(phase["kind"], "upload");
    for place in phase["where"].as_array().unwrap() {
        assert!(place["answer"]["text"].as_str().unwrap().starts_with("cannot tell"), "{place}");
    }
    let echoes = end["observations"]["phases"][1]["echoes"].as_array().unwrap();
    assert!(echoes.len() >= 5 && echoes.iter().all(|echo| echo["up_ns"].is_i64()), "{}", echoes.len());
    let goodput = end["observations"]["phases"][1]["goodput"].as_array().unwrap();
    assert!(
        goodput.iter().any(|row| row["direction"] == "up" && (1..=uploaded).contains(&row["bytes"].as_u64().unwrap())),
        "{goodput:?}"
    );
    assert!(heard(&mut control).await.is_none(), "the end");
    assert!(server.enter().await.is_ok(), "the next test");
}

#[tokio::test]
async fn a_page_is_refused_more_than_its_limits() {
    let server = Server::start(|settings| {
        settings.limits.tests_per_hour = 1;
        settings.limits.connections_per_hour = 3;
    });
    let (control, _) = begun(&server).await;
    drop(control);
    let mut control = open(&server, "/test/control", Some(&origin(&server))).await.unwrap();
    say(&mut control, &json!({"ask": "hello", "secret": server.token.secret()})).await;
    let refused = heard(&mut control).await.unwrap();
    assert!(refused["reason"].as_str().unwrap().contains("1 tests an hour for an address"), "{refused}");
    assert!(open(&server, "/test/control", Some(&origin(&server))).await.is_ok());
    match open(&server, "/test/control", Some(&origin(&server))).await {
        Err(Error::Http(answer)) => assert_eq!(answer.status(), 429),
        other => panic!("{other:?}"),
    }
}
