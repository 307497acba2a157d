//! Other people's clients: what they are answered over HTTP/1.1 and HTTP/2, and what they may not do. `docs/serve.md`
//! lists the tests of abuse.

mod broken_http2;
mod browsers;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Server, connect_from};
use bufferscope_live::server::Settings;
use bufferscope_live::wire::token::Token;
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Reason, RecvStream};
use hyper::{Request, Response};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];
const CONFIGS: [&str; 3] = ["/.well-known/nq", "/config", "/api/v1/config"];

type Tls = TlsStream<TcpStream>;
type Client = SendRequest<Bytes>;

/// A server for other people's clients of this machine.
fn open(settings: &mut Settings) {
    settings.compatible = true;
    settings.allow = vec!["127.0.0.0/8".parse().unwrap()];
    settings.limits.linger = Duration::from_millis(500);
}

async fn tls(source: [u8; 4], address: std::net::SocketAddr, token: &Token, protocols: &[&[u8]]) -> Tls {
    let stream = connect_from(IpAddr::from(source), address).await;
    let mut config = bufferscope_live::client::control::pinned(token);
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    let name = "bufferscope".try_into().unwrap();
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
}

/// A client of HTTP/2.
async fn client_from(source: [u8; 4], server: &Server) -> Client {
    let stream = tls(source, server.address, &server.token, &[b"h2", b"http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let built = h2::client::Builder::new()
        .initial_window_size(1 << 20)
        .initial_connection_window_size(1 << 20)
        .handshake(stream);
    let (client, connection) = built.await.unwrap();
    tokio::spawn(async move {
        let _ = connection.await;
    });
    client
}

async fn client(server: &Server) -> Client {
    client_from(HERE, server).await
}

fn request(server: &Server, method: &str, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("https://{}{path}", server.address)).body(()).unwrap()
}

/// The head of an answer over HTTP/2.
async fn asked(client: &mut Client, request: Request<()>) -> Result<Response<RecvStream>, h2::Error> {
    let mut ready = client.clone().ready().await?;
    let (answer, _) = ready.send_request(request, true)?;
    tokio::time::timeout(PATIENCE, answer).await.expect("an answer in time")
}

async fn got(client: &mut Client, server: &Server, path: &str) -> Response<RecvStream> {
    asked(client, request(server, "GET", path)).await.unwrap()
}

/// So many bytes of an answer, or all of it; and whether it ended as it should.
async fn body(answer: Response<RecvStream>, most: usize) -> (Vec<u8>, bool) {
    let (mut bytes, mut body) = (Vec::new(), answer.into_body());
    while bytes.len() < most {
        match tokio::time::timeout(PATIENCE, body.data()).await.expect("it goes on") {
            Some(Ok(piece)) => {
                let _ = body.flow_control().release_capacity(piece.len());
                bytes.extend_from_slice(&piece);
            }
            Some(Err(_)) => return (bytes, false),
            None => break,
        }
    }
    (bytes, true)
}

/// The paths of the six addresses of a configuration.
fn paths(server: &Server, text: &[u8]) -> [String; 3] {
    let config: Value = serde_json::from_slice(text).unwrap();
    assert_eq!(config["version"], 1);
    let urls = config["urls"].as_object().unwrap();
    assert_eq!(urls.len(), 6);
    for (old, new) in [
        ("large_https_download_url", "large_download_url"),
        ("small_https_download_url", "small_download_url"),
        ("https_upload_url", "upload_url"),
    ] {
        assert_eq!(urls[old], urls[new]);
    }
    ["large_download_url", "small_download_url", "upload_url"].map(|key| {
        let path = urls[key].as_str().unwrap().strip_prefix(&format!("https://{}", server.address));
        path.expect("the server's own address").to_owned()
    })
}

async fn config(client: &mut Client, server: &Server) -> [String; 3] {
    let answer = got(client, server, CONFIGS[0]).await;
    assert_eq!(answer.status(), 200);
    paths(server, &body(answer, usize::MAX).await.0)
}

/// The answer to one request over HTTP/1.1.
async fn answer(
    stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
    server: &Server,
    first: &str,
    more: &str,
    body: &str,
) -> String {
    let head = format!("{first} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{more}\r\n", server.address);
    stream.write_all((head + body).as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn answer_1(server: &Server, first: &str, more: &str) -> String {
    answer_to_body(server, first, more, "").await
}

async fn answer_to_body(server: &Server, first: &str, more: &str, body: &str) -> String {
    answer(&mut tls(HERE, server.address, &server.token, &[b"http/1.1"]).await, server, first, more, body).await
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:.200}"))
}

fn assert_later(answer: &Response<RecvStream>) {
    assert_eq!(answer.status(), 429);
    let after: u64 = answer.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((0..=300).contains(&after), "{after}");
}

#[tokio::test]
async fn responsiveness_is_answered_over_http_2() {
    let server = Server::start(open);
    let mut client = client(&server).await;
    for path in CONFIGS {
        let answer = got(&mut client, &server, path).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &"application/json".parse().unwrap())
        );
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
        paths(&server, &body(answer, usize::MAX).await.0);
    }
    let [large, small, upload] = config(&mut client, &server).await;
    let answer = got(&mut client, &server, &small).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(body(answer, usize::MAX).await, (b"x".to_vec(), true));
    let answer = got(&mut client, &server, &large).await;
    assert_eq!((answer.status().as_u16(), &answer.headers()["content-length"]), (200, &"8000000000".parse().unwrap()));
    assert!(!answer.headers().contains_key("content-encoding"));
    let (bytes, _) = body(answer, 3_000_000).await;
    let kinds: std::collections::HashSet<u8> = bytes.iter().copied().collect();
    assert_eq!((bytes.len() >= 3_000_000, kinds.len()), (true, 256), "random bytes");
    let (sent, mut stream) =
        client.clone().ready().await.unwrap().send_request(request(&server, "POST", &upload), false).unwrap();
    for piece in 0..50 {
        stream.reserve_capacity(20_000);
        stream.send_data(vec![piece; 20_000].into(), piece == 49).unwrap();
    }
    assert_eq!(tokio::time::timeout(PATIENCE, sent).await.unwrap().unwrap().status(), 200);
    for (method, path) in [("POST", &large), ("GET", &upload), ("PUT", &small)] {
        assert_eq!(asked(&mut client, request(&server, method, path)).await.unwrap().status(), 405, "{method} {path}");
    }
    assert_eq!(got(&mut client, &server, "/nothing").await.status(), 404);
}

#[tokio::test]
async fn responsiveness_is_answered_over_http_1_with_and_without_tls() {
    let server = Server::start(open);
    for path in CONFIGS {
        let found = answer_1(&server, &format!("GET {path}"), "").await;
        assert_eq!(status(&found), 200);
        let [large, small, upload] = paths(&server, found.split_once("\r\n\r\n").unwrap().1.as_bytes());
        let found = answer_1(&server, &format!("GET {small}"), "").await;
        assert!(found.contains("content-length: 1\r\n") && found.ends_with("\r\n\r\nx"), "{found}");
        let (chunked, chunks) = ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n");
        let found = answer_to_body(&server, &format!("POST {upload}"), chunked, chunks).await;
        assert_eq!(status(&found), 200);
        let mut stream = tls(HERE, server.address, &server.token, &[b"http/1.1"]).await;
        stream.write_all(format!("GET {large} HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).await.unwrap();
        let mut bytes = vec![0; 2_000_000];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut bytes)).await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&bytes[..1000]).contains("content-length: 8000000000\r\n"));
        drop(stream);
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    let mut stream = connect_from(HERE.into(), server.address).await;
    let found = answer(&mut stream, &server, "GET /config", "", "").await;
    assert!(found.contains(&format!("\"http://{}/api/v1/large?test=", server.address)), "{found}");
}

#[tokio::test]
async fn other_programs_need_a_switch_and_the_token_or_an_open_server() {
    // Without the switch there is neither HTTP/2 nor an answer.
    let server = Server::start(|settings| settings.allow = vec!["127.0.0.0/8".parse().unwrap()]);
    let stream = tls(HERE, server.address, &server.token, &[b"h2", b"http/1.1"]).await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(status(&answer_1(&server, "GET /config", "").await), 404);
    drop(server);
    let server = Server::start(|settings| settings.compatible = true);
    let secret = server.token.secret();
    assert_eq!(status(&answer_1(&server, "GET /config", "").await), 403);
    assert_eq!(status(&answer_1(&server, "GET /api/v1/large", "").await), 403);
    for path in [format!("/{secret}/config"), format!("/config?access_token={secret}")] {
        let found = answer_1(&server, &format!("GET {path}"), "").await;
        let urls = paths(&server, found.split_once("\r\n\r\n").unwrap().1.as_bytes());
        assert!(urls.iter().all(|url| url.starts_with(&format!("/{secret}/api/v1/"))), "{urls:?}");
        assert_eq!(status(&answer_1(&server, &format!("GET {}", urls[1]), "").await), 200);
    }
    let begun = Instant::now();
    for wrong in ["/aaaaaaaaaaaaaaaa/config", "/config?access_token=", "//config"] {
        assert_eq!(status(&answer_1(&server, &format!("GET {wrong}"), "").await), 403, "{wrong}");
    }
    assert!(begun.elapsed() >= Duration::from_millis(100 + 200 + 400));
    drop(server);
    let server = Server::start_with(|settings| settings.compatible = true, |token| token.public());
    assert_eq!(status(&answer_1(&server, "GET /config", "").await), 200);
    assert_eq!(status(&answer_1(&server, "GET /public/config", "").await), 200);
}

#[tokio::test]
async fn guesses_over_one_connection_are_answered_one_after_the_other_and_end_it() {
    let server = Server::start(|settings| settings.compatible = true);
    let mut client = client(&server).await;
    let guesses: Vec<_> = (0..40).map(|_| asked_later(&mut client, &server)).collect();
    let begun = Instant::now();
    let mut answered = 0;
    for guess in guesses {
        answered += usize::from(tokio::time::timeout(PATIENCE, guess).await.expect("an end").is_ok());
    }
    assert!(answered <= 5, "{answered}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

fn asked_later(client: &mut Client, server: &Server) -> h2::client::ResponseFuture {
    client.send_request(request(server, "GET", "/aaaaaaaaaaaaaaaa/config"), true).unwrap().0
}

#[tokio::test]
async fn a_page_of_another_site_starts_no_test_of_another_program_without_the_token() {
    let server = Server::start(open);
    for more in ["Origin: https://example.org\r\n", "Sec-Fetch-Site: cross-site\r\n", "Origin: null\r\n"] {
        for first in ["GET /api/v1/large", "GET /config", "POST /api/v1/upload"] {
            let found = answer_1(&server, first, more).await;
            assert_eq!(status(&found), 403, "{first} {more}");
            assert!(!found.contains("access-control-allow-origin"));
        }
    }
}

#[tokio::test]
async fn the_page_is_sent_back_to_http_1() {
    let server = Server::start(open);
    let mut client = client(&server).await;
    for path in ["/", "/page.js", "/test/control", "/test/download"] {
        let error = asked(&mut client, request(&server, "GET", path)).await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::HTTP_1_1_REQUIRED), "{path}");
    }
    assert_eq!(status(&answer_1(&server, "GET /", "").await), 200);
}

#[tokio::test]
async fn another_programs_test_has_one_turn_and_one_set_of_limits_with_all_others() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.tests_per_hour = 3;
    });
    let mut client = client(&server).await;
    let [large, small, upload] = config(&mut client, &server).await;
    let (control, _) = server.enter().await.unwrap();
    for path in [CONFIGS[0], &large, &small] {
        assert_later(&got(&mut client, &server, path).await);
    }
    assert_later(&asked(&mut client, request(&server, "POST", &upload)).await.unwrap());
    drop(control);
    let load = loop {
        let load = got(&mut client, &server, &large).await;
        if load.status() == 200 {
            break load;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    // It is a test of its own, which a second client of the same address and one of another do not share.
    for source in [HERE, ELSEWHERE] {
        let mut other = client_from(source, &server).await;
        for path in [CONFIGS[0], "/api/v1/large?test=1", "/api/v1/small?test=1", "/api/v1/small"] {
            assert_later(&got(&mut other, &server, path).await);
        }
    }
    let (address, token) = (server.address, server.token.clone());
    let waiting = tokio::spawn(async move { crate::common::enter_from(HERE.into(), address, &token, |_| {}).await });
    assert_eq!(got(&mut client, &server, &small).await.status(), 200);
    let mut second = client_from(HERE, &server).await;
    let more = got(&mut second, &server, &large).await;
    assert_eq!(more.status(), 200, "the same test has several connections");
    assert!(!waiting.is_finished());
    drop((load, more));
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!waiting.is_finished(), "clients pause between download and upload");
    let entered = tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
    drop(entered.unwrap());
    // They were three tests, which is all that the address has in an hour.
    let begun = Instant::now();
    let refused = loop {
        let refused = got(&mut client, &server, CONFIGS[0]).await;
        assert_later(&refused);
        if refused.headers()["retry-after"] == "300" {
            break refused;
        }
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let (reason, _) = body(refused, usize::MAX).await;
    assert!(String::from_utf8_lossy(&reason).contains("3 tests an hour for an address"));
}

#[tokio::test]
async fn a_load_of_another_program_breaks_off_at_its_limit_and_is_not_short_in_silence() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.linger = Duration::from_secs(2);
        (settings.limits.session.bytes, settings.limits.bytes_per_hour) = (5_000_000, 8_000_000);
    });
    let mut client = client(&server).await;
    let load = got(&mut client, &server, "/api/v1/large").await;
    let (bytes, is_whole) = body(load, usize::MAX).await;
    assert!((4_000_000..=5_000_000).contains(&bytes.len()) && !is_whole, "{} {is_whole}", bytes.len());
    let mut again = client_from(HERE, &server).await;
    let refused = got(&mut again, &server, "/api/v1/large").await;
    assert_later(&refused);
    let (reason, _) = body(refused, usize::MAX).await;
    assert!(
        String::from_utf8_lossy(&reason).contains("limit of 5000000 bytes"),
        "{}",
        String::from_utf8_lossy(&reason)
    );
    tokio::time::sleep(Duration::from_millis(2500)).await;
    // What is left of the hour, over HTTP/1.1: the connection ends before the promised length.
    let mut stream = tls(HERE, server.address, &server.token, &[b"http/1.1"]).await;
    let found = answer(&mut stream, &server, "GET /api/v1/large", "", "").await;
    assert!(found.len() > 1_000_000 && status(&found) == 200, "{}", found.len());
    tokio::time::sleep(Duration::from_millis(2500)).await;
    let found = answer_1(&server, "POST /api/v1/upload", "Content-Length: 3\r\n").await;
    assert_eq!(status(&found), 429);
    assert!(found.contains("8000000 bytes an hour"), "{found}");
}

#[tokio::test]
async fn another_programs_load_has_the_servers_rate_and_time() {
    let server = Server::start(|settings| {
        open(settings);
        (settings.limits.session.rate_bps, settings.limits.session.seconds) = (Some(40_000_000), 2);
    });
    let begun = Instant::now();
    let one = async {
        let mut client = client(&server).await;
        body(got(&mut client, &server, "/api/v1/large").await, usize::MAX).await
    };
    let other = async {
        let mut client = client(&server).await;
        body(got(&mut client, &server, "/api/v1/large").await, usize::MAX).await
    };
    let (one, other) = tokio::join!(one, other);
    let seconds = begun.elapsed().as_secs_f64();
    assert!((1.5..6.0).contains(&seconds), "{seconds}");
    let bytes = one.0.len() + other.0.len();
    assert!((6_000_000..=11_000_000).contains(&bytes), "{bytes}");
    assert!(!one.1 && !other.1, "the limit cuts");
}

#[tokio::test]
async fn an_upload_of_another_program_is_counted_and_ends_at_its_limit() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.session.bytes = 3_000_000;
    });
    let mut client = client(&server).await;
    let (answer, mut stream) = client.send_request(request(&server, "POST", "/api/v1/upload"), false).unwrap();
    let sending = async {
        for _ in 0..1000 {
            stream.reserve_capacity(20_000);
            let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
            if !matches!(room, Some(Ok(_))) || stream.send_data(vec![1; 20_000].into(), false).is_err() {
                return;
            }
        }
        panic!("20 MB were taken");
    };
    let answered = async {
        // Either the refusal arrives, or the end of the connection does.
        if let Ok(answer) = tokio::time::timeout(PATIENCE, answer).await.expect("an end") {
            assert_later(&answer);
        }
    };
    tokio::select! {
        () = answered => {}
        () = async { sending.await; std::future::pending().await } => {}
    }
}

#[tokio::test]
async fn short_requests_without_a_test_are_counted() {
    let server = Server::start(open);
    let mut client = client(&server).await;
    let mut answered = 0;
    for _ in 0..150 {
        let Ok(answer) = asked(&mut client, request(&server, "GET", "/api/v1/small")).await else { break };
        answered += usize::from(answer.status() == 200);
    }
    assert_eq!(answered, 100);
}

#[tokio::test]
async fn a_test_has_more_connections_than_other_clients_and_not_without_end() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.connections_per_hour = 4;
    });
    let mut client = client(&server).await;
    let load = got(&mut client, &server, "/api/v1/large").await;
    assert_eq!(load.status(), 200);
    for _ in 0..20 {
        // A probe of responsiveness: a connection of its own.
        let mut probe = client_from(HERE, &server).await;
        assert_eq!(got(&mut probe, &server, "/api/v1/small").await.status(), 200);
    }
    let stream = connect_from(ELSEWHERE.into(), server.address).await;
    drop(stream);
    drop(load);
    tokio::time::sleep(Duration::from_millis(900)).await;
    let begun = Instant::now();
    for _ in 0..4 {
        let stream = connect_from(HERE.into(), server.address).await;
        let config = bufferscope_live::client::control::pinned(&server.token);
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        if connector.connect("bufferscope".try_into().unwrap(), stream).await.is_err() {
            return;
        }
    }
    panic!("the hour's connections are not counted after {:?}", begun.elapsed());
}

/// How many connections the server has not closed.
async fn open_ones(connections: &mut [Tls]) -> usize {
    let mut open = 0;
    for stream in connections {
        let mut bytes = [0; 4096];
        let rest = async { while matches!(stream.read(&mut bytes).await, Ok(1..)) {} };
        open += usize::from(tokio::time::timeout(Duration::from_millis(10), rest).await.is_err());
    }
    open
}

#[tokio::test]
async fn the_idle_connections_of_a_program_make_room_for_its_next_ones() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.unknown_per_address = 4;
        settings.limits.session.flows = 1;
        settings.limits.opening = PATIENCE;
    });
    let asking = format!("GET /api/v1/small HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let probed = async || {
        let mut stream = tls(HERE, server.address, &server.token, &[b"http/1.1"]).await;
        stream.write_all(asking.as_bytes()).await.unwrap();
        let mut head = [0; 15];
        tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.expect("an answer in time").unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
        stream
    };
    let kept = async |count| {
        let mut kept = Vec::new();
        for _ in 0..count {
            kept.push(probed().await);
        }
        open_ones(&mut kept).await
    };
    // As cf-mach does before its test, and with each probe of its test. On a slow machine, some have been idle for too long.
    let before = kept(12).await;
    assert!((1..=4).contains(&before), "{before}");
    let mut client = client(&server).await;
    let load = got(&mut client, &server, "/api/v1/large").await;
    let during = kept(40).await;
    assert!((1..4 + 2 + 8).contains(&during), "{during}");
    // The load has gone on, and another address has its own room.
    assert!(body(load, 2_000_000).await.0.len() >= 2_000_000);
    tls(ELSEWHERE, server.address, &server.token, &[b"http/1.1"]).await;
}

#[tokio::test]
async fn a_probe_that_comes_while_its_test_begins_is_answered() {
    for _ in 0..5 {
        let server = Server::start(open);
        let (mut loading, mut probing) = (client(&server).await, client(&server).await);
        let probes = async {
            let mut found = Vec::new();
            for _ in 0..20 {
                found.push(got(&mut probing, &server, "/api/v1/small").await.status());
            }
            found
        };
        let (load, found) = tokio::join!(got(&mut loading, &server, "/api/v1/large"), probes);
        assert_eq!(load.status(), 200);
        assert!(found.iter().all(|status| *status == 200), "{found:?}");
    }
}
