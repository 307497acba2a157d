//! HTTP/2 that breaks its rules, or keeps to them with ill intent.

use std::time::{Duration, Instant};

use super::{CONFIGS, HERE, Tls, client, got, open, tls};
use crate::common::{PATIENCE, Program, Server};
use bufferscope_live::wire::token::Token;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The compressed head of a GET: methods and scheme from the table of the protocol, the rest as literals.
fn head(path: &str) -> Vec<u8> {
    let mut bytes = vec![0x82, 0x87, 0x04, path.len() as u8];
    bytes.extend(path.as_bytes());
    bytes.extend([0x01, 9]);
    bytes.extend(b"localhost");
    bytes
}

/// A connection over HTTP/2 that has only begun.
async fn raw(address: std::net::SocketAddr, token: &Token, settings: &[u8]) -> Tls {
    let mut stream = tls(HERE, address, token, &[b"h2"]).await;
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, settings)).await.unwrap();
    stream
}

/// Sends something again and again until the server ends the connection; returns how often.
async fn sent_until_the_end(stream: &mut Tls, most: usize, mut next: impl FnMut(usize) -> Vec<u8>) -> usize {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let reading = async {
        let mut bytes = [0; 65536];
        while let Ok(1..) = reader.read(&mut bytes).await {}
    };
    let mut sent = 0;
    let writing = async {
        while sent < most && writer.write_all(&next(sent)).await.is_ok() {
            sent += 1;
        }
        if sent == most {
            std::future::pending::<()>().await;
        }
    };
    let end = async {
        tokio::select! { () = reading => {}, () = writing => {} }
    };
    tokio::time::timeout(PATIENCE, end).await.expect("the server ends the connection");
    sent
}

#[tokio::test]
async fn streams_that_are_opened_and_reset_at_once_end_the_connection() {
    let server = Server::start(open);
    for path in ["/api/v1/small", "/api/v1/large", "/aaaaaaaaaaaaaaaa/config"] {
        let mut stream = raw(server.address, &server.token, &[]).await;
        let sent = sent_until_the_end(&mut stream, 100_000, |number| {
            let id = 2 * number as u32 + 1;
            let mut bytes = frame(HEADERS, END_STREAM | END_HEADERS, id, &head(path));
            bytes.extend(frame(RST_STREAM, 0, id, &8_u32.to_be_bytes()));
            bytes
        })
        .await;
        assert!(sent < 100_000, "{path}");
    }
    let mut client = client(&server).await;
    assert_eq!(got(&mut client, &server, "/nothing").await.status(), 404);
}

#[tokio::test]
async fn streams_beyond_the_limit_are_refused_and_a_flood_of_them_ends_the_connection() {
    let server = Server::start(open);
    let mut stream = raw(server.address, &server.token, &[0, 4, 0, 0, 0, 0]).await;
    let sent = sent_until_the_end(&mut stream, 100_000, |number| {
        frame(HEADERS, END_STREAM | END_HEADERS, 2 * number as u32 + 1, &head("/api/v1/small"))
    })
    .await;
    assert!(sent < 100_000, "{sent}");
}

#[tokio::test]
async fn heads_without_end_and_bombs_of_compression_end_the_stream_or_the_connection() {
    let server = Server::start(open);
    // A head of many frames that never ends.
    let mut stream = raw(server.address, &server.token, &[]).await;
    stream.write_all(&frame(HEADERS, END_STREAM, 1, &head("/config"))).await.unwrap();
    let piece: Vec<u8> = std::iter::repeat_n([0x00, 1, b'x', 1, b'y'], 3000).flatten().collect();
    let sent = sent_until_the_end(&mut stream, 10_000, |_| frame(CONTINUATION, 0, 1, &piece)).await;
    assert!(sent < 1000, "{sent} frames of {} bytes", piece.len());
    // A long field in the table, and a head that refers to it again and again: 4000 bytes each for one byte.
    let mut stream = raw(server.address, &server.token, &[]).await;
    let mut bomb = head("/config");
    bomb.extend([0x40, 1, b'x', 0x7f, 0xa1, 0x1e]);
    bomb.extend([b'y'; 4000]);
    bomb.extend([0xbe; 10_000]);
    stream.write_all(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &bomb)).await.unwrap();
    stream.write_all(&frame(PING, 0, 0, &[7; 8])).await.unwrap();
    let mut found = Vec::new();
    let read = async {
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes).await {
            found.extend_from_slice(&bytes[..count]);
            // 431, or the stream or the connection ends; but no configuration.
            if found.len() > 200 || found.windows(8).any(|window| window == [7; 8]) {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap();
    assert!(!String::from_utf8_lossy(&found).contains("large_download_url"));
    let mut client = client(&server).await;
    assert_eq!(got(&mut client, &server, CONFIGS[0]).await.status(), 200);
}

#[tokio::test]
async fn a_client_that_opens_no_window_is_cut_off() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.silence = Duration::from_millis(700);
    });
    // A window of nothing.
    let mut stream = raw(server.address, &server.token, &[0, 4, 0, 0, 0, 0]).await;
    stream.write_all(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &head("/api/v1/large"))).await.unwrap();
    let begun = Instant::now();
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server ends it");
    assert!(begun.elapsed() < Duration::from_secs(10) && bytes.len() < 2000, "{:?} {}", begun.elapsed(), bytes.len());
    assert!(server.enter().await.is_ok());
}

#[tokio::test]
async fn garbage_over_http_2_ends_the_connection() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.opening = Duration::from_millis(500);
    });
    let floods: [&dyn Fn(usize) -> Vec<u8>; 5] = [
        &|_| vec![0xff; 1000],
        &|number| frame(DATA, 0, 2 * number as u32 + 1, &[0; 1000]),
        &|_| frame(HEADERS, END_HEADERS, 0, &head("/config")),
        &|number| frame(HEADERS, END_HEADERS | END_STREAM, 2 * number as u32 + 1, &[0xff; 40]),
        &|_| frame(SETTINGS, 0, 0, &[0; 5]),
    ];
    for flood in floods {
        let mut stream = raw(server.address, &server.token, &[]).await;
        let sent = sent_until_the_end(&mut stream, 100_000, flood).await;
        assert!(sent < 100_000);
    }
    // Nothing at all.
    let mut stream = tls(HERE, server.address, &server.token, &[b"h2"]).await;
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server ends it");
}

#[tokio::test]
async fn slow_readers_and_unread_uploads_take_no_memory() {
    let program = Program::start(&["--compatible", "--allow", "127.0.0.0/8"]);
    let resident = || {
        let text = std::fs::read_to_string(format!("/proc/{}/statm", program.child.id())).unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    // The random bytes of the loads exist after the first one.
    let mut held = Vec::new();
    let load = |streams: u32| -> Vec<u8> {
        (0..streams).flat_map(|n| frame(HEADERS, END_STREAM | END_HEADERS, 2 * n + 1, &head("/api/v1/large"))).collect()
    };
    let mut stream = raw(program.address, &program.token, &[]).await;
    stream.write_all(&load(1)).await.unwrap();
    held.push(stream);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = resident();
    for _ in 0..15 {
        // The largest windows, and no reads.
        let mut stream = raw(program.address, &program.token, &[0, 4, 0x7f, 0xff, 0xff, 0xff]).await;
        stream.write_all(&frame(8, 0, 0, &0x7fff_0000_u32.to_be_bytes())).await.unwrap();
        stream.write_all(&load(100)).await.unwrap();
        held.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let grown = resident().saturating_sub(before);
    // 64 loads, each of 64 KiB at most in this program, and 15 connections.
    assert!(grown < 12 << 20, "{grown} bytes");
}
