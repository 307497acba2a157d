//! Feeds what other people's servers answer to a client: HTTP/1.1 and HTTP/2 with a configuration of responsiveness, the messages
//! of ndt7, and packets of multicast DNS, which a server that announces itself receives.
//!
//! The first byte says which. What is refused has a reason of one line that may go to a terminal.

#![no_main]

use std::net::{TcpListener, TcpStream};
use std::panic;
use std::sync::OnceLock;

use bufferscope_live::client::others::config;
use bufferscope_live::client::others::fuzzed::{configuration, ndt7};
use bufferscope_live::client::others::ndt7::{base, row};
use libfuzzer_sys::fuzz_target;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// A connection that can be asked for statistics.
fn socket() -> TcpStream {
    static SOCKET: OnceLock<(TcpListener, TcpStream)> = OnceLock::new();
    let make = || {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (listener, stream)
    };
    SOCKET.get_or_init(make).1.try_clone().unwrap()
}

fn check<T>(found: &Result<T, String>) {
    if let Err(why) = found {
        assert!(why.chars().count() < 700 && !why.contains(char::is_control), "{why:?}");
    }
}

async fn converse(how: u8, bytes: &[u8]) {
    let (near, mut far) = tokio::io::duplex(64 << 10);
    let server = async {
        let mut answer = bytes.to_vec();
        if how == b'n' {
            // The answer that only a server which has read the request can give.
            let mut head = vec![0; 2048];
            let length = far.read(&mut head).await.unwrap_or(0);
            let text = String::from_utf8_lossy(&head[..length]);
            let key = text.lines().find_map(|line| {
                line.to_ascii_lowercase().starts_with("sec-websocket-key:").then(|| line[18..].trim())
            });
            let accept = derive_accept_key(key.unwrap_or_default().as_bytes());
            let head = format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n\r\n"
            );
            answer.splice(..0, head.into_bytes());
        }
        let _ = far.write_all(&answer).await;
        let _ = tokio::io::copy(&mut far, &mut tokio::io::sink()).await;
    };
    let client = async {
        match how {
            b'n' | b'w' => match ndt7(near).await.map_err(|error| error.to_string()) {
                Ok(rows) => assert!(rows.len() <= 1000),
                failed => check(&failed),
            },
            _ => {
                let answer = configuration(near, socket().into(), how == b'2').await.map_err(|error| error.to_string());
                check(&answer);
                if let Ok(answer) = answer {
                    assert!(answer.len() <= config::LONGEST);
                    check(&config::parse(&answer));
                }
            }
        }
    };
    tokio::select! {
        () = client => {}
        ((), ()) = async { tokio::join!(server, std::future::pending()) } => {}
    }
}

/// The check of mdns-sd's own fuzz target, without one of its assertions: that as many questions are found as the packet's
/// head says. The library skips questions of unknown types, as it should.
fn parse_packet(bytes: &[u8]) {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let outcome = panic::catch_unwind(|| mdns_sd::fuzz_api::parse_packet(bytes));
    panic::set_hook(hook);
    if let Err(payload) = outcome {
        let reason = payload.downcast_ref::<String>().map_or("a panic without a text", String::as_str);
        assert!(reason.contains("parsed question count must match the header"), "{reason}");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((how, bytes)) = bytes.split_first() else { return };
    match how {
        b'd' => parse_packet(bytes),
        b'c' => match config::parse(bytes) {
            Ok(config) => {
                let endpoint = config.test_endpoint.unwrap_or_default();
                assert!(endpoint.len() < 256 && !endpoint.contains(char::is_control), "{endpoint:?}");
            }
            failed => check(&failed),
        },
        b'r' => {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            let _ = row(text, 1);
            if let Ok(url) = text.parse() {
                let _ = base(&url);
            }
        }
        _ => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.unwrap().block_on(converse(*how, bytes));
        }
    }
});
