//! What strangers may send to the port of the probes as STUN and DTLS, and what they get: see `docs/serve.md`.

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::{PATIENCE, Server};
use crc::{CRC_32_ISO_HDLC, Crc};
use futures_util::{SinkExt, StreamExt};
use ring::hmac;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const UFRAG: &str = "page";
const PWD: &str = "the+password+of+the+page";
/// Nothing arrives for so long.
const QUIET: Duration = Duration::from_millis(150);
type Socket = WebSocketStream<TcpStream>;

async fn say(socket: &mut Socket, message: Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

async fn heard(socket: &mut Socket) -> Option<Value> {
    let message = tokio::time::timeout(PATIENCE, socket.next()).await.expect("an answer in time")?.ok()?;
    message.to_text().ok().and_then(|text| serde_json::from_str(text).ok())
}

/// A page whose test has begun.
async fn begun(server: &Server) -> Socket {
    let mut request = format!("ws://{}/test/control", server.address).into_client_request().unwrap();
    request.headers_mut().insert("origin", format!("http://{}", server.address).parse().unwrap());
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut control, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
    say(&mut control, json!({"ask": "hello", "secret": server.token.secret()})).await;
    assert_eq!(heard(&mut control).await.unwrap()["answer"], "welcome");
    control
}

fn offer() -> Value {
    let fingerprint = vec!["AB"; 32].join(":");
    json!({"ask": "webrtc", "offer": {"ufrag": UFRAG, "pwd": PWD, "fingerprint": fingerprint}})
}

/// A binding request, as a browser sends it.
fn binding(username: &str, pwd: &str) -> Vec<u8> {
    let mut message = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[7; 12]].concat();
    let append = |kind: u16, value: &[u8], message: &mut Vec<u8>| {
        message.extend(kind.to_be_bytes());
        message.extend((value.len() as u16).to_be_bytes());
        message.extend(value);
        message.resize(message.len().next_multiple_of(4), 0);
    };
    let set_length = |message: &mut Vec<u8>, more: usize| {
        let length = (message.len() - 20 + more) as u16;
        message[2..4].copy_from_slice(&length.to_be_bytes());
    };
    append(0x0006, username.as_bytes(), &mut message);
    append(0x802a, &[0; 8], &mut message);
    append(0x0025, &[], &mut message);
    append(0x0024, &[1, 2, 3, 4], &mut message);
    set_length(&mut message, 24);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, pwd.as_bytes());
    let tag = hmac::sign(&key, &message);
    append(0x0008, tag.as_ref(), &mut message);
    set_length(&mut message, 8);
    let checksum = Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(&message) ^ 0x5354_554e;
    append(0x8028, &checksum.to_be_bytes(), &mut message);
    message
}

/// The first flight of DTLS, or what looks like it.
fn hello() -> Vec<u8> {
    let mut hello = vec![22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 60];
    hello.extend([1, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 48]);
    hello.resize(73, 0);
    hello
}

/// The answer to a datagram, if there is one within some time.
fn answered(socket: &UdpSocket, server: &Server, datagram: &[u8], within: Duration) -> Option<Vec<u8>> {
    socket.set_read_timeout(Some(within)).unwrap();
    socket.send_to(datagram, server.address).unwrap();
    let mut bytes = vec![0; 2048];
    let (length, _) = socket.recv_from(&mut bytes).ok()?;
    bytes.truncate(length);
    Some(bytes)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_who_shows_a_sessions_password_from_its_address_is_answered_and_never_with_more() {
    let server = Server::start(|_| {});
    let mut control = begun(&server).await;
    say(&mut control, offer()).await;
    let end = heard(&mut control).await.unwrap()["end"].take();
    let (ufrag, pwd) = (end["ufrag"].as_str().unwrap(), end["pwd"].as_str().unwrap());
    assert_eq!(end["fingerprint"].as_str().unwrap().len(), 95);
    let socket = |address: &str| UdpSocket::bind((address, 0)).unwrap();
    let right = binding(&format!("{ufrag}:{UFRAG}"), pwd);
    let page = socket("127.0.0.1");
    let mut cut = right.clone();
    cut.truncate(60);
    let wrong = [
        hello(),
        binding(&format!("{ufrag}:{UFRAG}"), PWD),
        binding(&format!("{ufrag}:other"), pwd),
        binding(&format!("x{ufrag}:{UFRAG}"), pwd),
        binding(UFRAG, pwd),
        cut,
        vec![0; 20],
        vec![1],
        vec![],
    ];
    for datagram in wrong {
        assert_eq!(answered(&page, &server, &datagram, QUIET), None, "{datagram:?}");
    }
    assert_eq!(answered(&socket("127.0.0.2"), &server, &right, QUIET), None, "another address");
    let answer = answered(&page, &server, &right, PATIENCE).unwrap();
    assert_eq!(answer[..2], [1, 1]);
    assert!(answer.len() <= right.len(), "{} {}", answer.len(), right.len());
    assert_eq!(answered(&socket("127.0.0.1"), &server, &hello(), QUIET), None, "a port that has proved nothing");
    for _ in 0..2000 {
        page.send_to(&right, server.address).unwrap();
    }
    page.set_read_timeout(Some(QUIET)).unwrap();
    let floods = std::iter::from_fn(|| page.recv_from(&mut [0; 2048]).ok()).count();
    assert!((1..400).contains(&floods), "{floods}");

    drop(control);
    tokio::time::sleep(QUIET).await;
    let later = socket("127.0.0.1");
    assert_eq!(answered(&later, &server, &right, QUIET), None, "the control connection has ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_has_one_channel_and_a_wrong_offer_none() {
    let server = Server::start(|_| {});
    let mut control = begun(&server).await;
    say(&mut control, json!({"ask": "webrtc", "offer": {"ufrag": "a", "pwd": PWD, "fingerprint": ""}})).await;
    assert_eq!(heard(&mut control).await.unwrap(), json!({"answer": "webrtc", "end": null}));
    say(&mut control, offer()).await;
    assert!(heard(&mut control).await.unwrap()["end"].is_object());
    say(&mut control, offer()).await;
    assert_eq!(heard(&mut control).await, None, "a second channel ends the connection");
}
