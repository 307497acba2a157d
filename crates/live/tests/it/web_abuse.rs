//! Clients of HTTP and WebSockets that take more than they may. `docs/serve.md` lists the tests of this file.

use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Server, connect_from};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{Frame, FrameHeader};
use tokio_tungstenite::tungstenite::{Error, Message};

const HERE: [u8; 4] = [127, 0, 0, 1];
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

type Socket = WebSocketStream<TcpStream>;

/// What arrives until the connection ends.
async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes it");
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn sent(server: &Server, head: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let (first, more) = head.split_once('\n').unwrap_or((head, ""));
    let more: String = more.lines().map(|line| format!("{line}\r\n")).collect();
    let request = format!("{first} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{more}\r\n", server.address);
    stream.write_all(request.as_bytes()).await.unwrap();
    let _ = stream.write_all(body).await;
    rest(&mut stream).await
}

async fn open(server: &Server, path: &str, extensions: Option<&str>) -> Result<Socket, Error> {
    let mut request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
    request.headers_mut().insert("origin", format!("http://{}", server.address).parse().unwrap());
    if let Some(extensions) = extensions {
        request.headers_mut().insert("sec-websocket-extensions", extensions.parse().unwrap());
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (socket, answer) = tokio_tungstenite::client_async(request, stream).await?;
    assert!(!answer.headers().contains_key("sec-websocket-extensions"), "nothing is compressed");
    Ok(socket)
}

/// A page whose test has begun: its control connection, and the fields of its requests.
async fn begun(server: &Server) -> (Socket, String) {
    let mut control = open(server, "/test/control", None).await.unwrap();
    let hello = json!({"ask": "hello", "secret": server.token.secret()});
    control.send(Message::text(hello.to_string())).await.unwrap();
    let Some(Ok(Message::Text(text))) = control.next().await else { panic!("no welcome") };
    let welcome: Value = serde_json::from_str(&text).unwrap();
    let fields = format!("session={}&key={}", welcome["session"].as_str().unwrap(), welcome["key"].as_str().unwrap());
    (control, fields)
}

/// Waits until the server has closed a WebSocket.
async fn ended(mut socket: Socket) {
    let closed = async {
        while let Some(Ok(message)) = socket.next().await {
            if matches!(message, Message::Close(_)) {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("the server closes it");
}

#[tokio::test]
async fn a_head_that_comes_byte_by_byte_is_cut_off_in_time() {
    let server = Server::start(|settings| settings.limits.opening = Duration::from_millis(500));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let begun = Instant::now();
    for byte in format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(1000)).bytes() {
        if stream.write_all(&[byte]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        if stream.try_read(&mut [0; 256]).is_ok() {
            break;
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_client_that_requests_files_and_never_reads_them_is_cut_off_in_time() {
    let server = Server::start(|settings| settings.limits.opening = Duration::from_millis(500));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET /page.js HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let begun = Instant::now();
    // More answers than any buffer takes.
    let flood = async { while stream.write_all(request.repeat(50).as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, flood).await.expect("the server closes it");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert!(server.enter().await.is_ok());
}

#[tokio::test]
async fn idle_connections_of_browsers_do_not_keep_others_out() {
    let server = Server::start(|settings| settings.limits.opening = PATIENCE);
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = connect_from(ELSEWHERE.into(), server.address).await;
        let _ = stream.write_all(format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", server.address).as_bytes()).await;
        held.push(stream);
    }
    assert!(sent(&server, "GET /", b"").await.starts_with("HTTP/1.1 200"));
    let mut answered = 0;
    for stream in &mut held {
        let mut byte = [0];
        let read = tokio::time::timeout(Duration::from_millis(50), stream.read(&mut byte)).await;
        answered += usize::from(matches!(read, Ok(Ok(1))));
    }
    assert!((1..=16).contains(&answered), "{answered} of one address");
    let (_control, _) = begun(&server).await;
    assert_eq!(HERE, [127, 0, 0, 1]);
}

#[tokio::test]
async fn a_body_without_a_length_or_in_another_encoding_is_bounded_too() {
    let server = Server::start(|_| {});
    let (_control, fields) = begun(&server).await;
    let mut chunks = Vec::new();
    for _ in 0..48 {
        chunks.extend_from_slice(b"10000\r\n");
        chunks.extend_from_slice(&[b' '; 0x10000]);
        chunks.extend_from_slice(b"\r\n");
    }
    let post = format!("POST /test/samples?{fields}\n");
    let answer = sent(&server, &(post.clone() + "Transfer-Encoding: chunked"), &chunks).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer:.200}");
    // A gzip file of a megabyte of spaces begins so: it is not inflated, but refused.
    let bomb = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x01\x0d\x00\x00";
    let head = format!("{post}Content-Encoding: gzip\nContent-Length: {}", bomb.len());
    assert!(sent(&server, &head, bomb).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn messages_that_are_too_long_compressed_or_endless_end_their_websocket() {
    let server = Server::start(|_| {});
    let (_control, fields) = begun(&server).await;
    let deflate = Some("permessage-deflate; client_max_window_bits");
    for path in ["/test/control".to_owned(), format!("/test/pings?{fields}")] {
        let mut socket = open(&server, &path, deflate).await.unwrap();
        let _ = socket.send(Message::text("x".repeat(100_000))).await;
        ended(socket).await;
        // The bit that says that a message is compressed.
        let mut socket = open(&server, &path, deflate).await.unwrap();
        let header = FrameHeader { rsv1: true, opcode: OpCode::Data(Data::Binary), ..FrameHeader::default() };
        let _ = socket.send(Message::Frame(Frame::from_payload(header, vec![0x63, 0, 0, 0].into()))).await;
        ended(socket).await;
        // A message in pieces without end.
        let mut socket = open(&server, &path, None).await.unwrap();
        let mut kind = Data::Text;
        for _ in 0..1000 {
            let header = FrameHeader { is_final: false, opcode: OpCode::Data(kind), ..FrameHeader::default() };
            if socket.send(Message::Frame(Frame::from_payload(header, vec![b'x'; 100].into()))).await.is_err() {
                break;
            }
            kind = Data::Continue;
        }
        ended(socket).await;
    }
}

#[tokio::test]
async fn pings_of_the_websocket_protocol_count_as_messages() {
    let server = Server::start(|_| {});
    let (_control, fields) = begun(&server).await;
    for path in ["/test/control".to_owned(), format!("/test/pings?{fields}")] {
        let mut socket = open(&server, &path, None).await.unwrap();
        let mut count = 0;
        while count < 100_000 && socket.send(Message::Ping(vec![0; 100].into())).await.is_ok() {
            count += 1;
        }
        assert!(count < 100_000, "{path}");
    }
}

#[tokio::test]
async fn a_test_over_tls_does_not_use_up_the_connections_of_its_address() {
    let server = Server::start(|settings| settings.limits.connections_per_hour = 2);
    let (control, _) = server.enter().await.unwrap();
    for _ in 0..10 {
        let stream = TcpStream::connect(server.address).await.unwrap();
        bufferscope_live::client::control::secure(stream, server.address, &server.token).await.unwrap();
    }
    drop(control);
    let refused = async {
        loop {
            let stream = TcpStream::connect(server.address).await.unwrap();
            if bufferscope_live::client::control::secure(stream, server.address, &server.token).await.is_err() {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, refused).await.expect("without a test they are counted");
}
