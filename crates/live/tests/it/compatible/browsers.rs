//! ndt7, Cloudflare's engine and LibreSpeed.

use std::time::{Duration, Instant};

use super::{answer_1, answer_to_body, body, client, got, open, status};
use crate::common::{PATIENCE, Server};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};

type Socket = WebSocketStream<TcpStream>;

async fn ndt7(server: &Server, path: &str, protocol: Option<&str>, origin: Option<&str>) -> Result<Socket, Error> {
    let mut request = format!("ws://{}{path}", server.address).into_client_request().unwrap();
    for (name, value) in [("sec-websocket-protocol", protocol), ("origin", origin)] {
        if let Some(value) = value {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
    }
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (socket, answer) = tokio_tungstenite::client_async(request, stream).await?;
    assert_eq!(answer.headers()["sec-websocket-protocol"], NDT7);
    Ok(socket)
}

const NDT7: &str = "net.measurementlab.ndt.v7";

fn refused(found: Result<Socket, Error>) -> u16 {
    match found {
        Err(Error::Http(answer)) => answer.status().as_u16(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn ndt7_downloads_for_ten_seconds_and_measures() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.session.rate_bps = Some(50_000_000);
    });
    assert_eq!(refused(ndt7(&server, "/ndt/v7/download", None, None).await), 400);
    assert_eq!(refused(ndt7(&server, "/ndt/v7/download", Some("other"), None).await), 400);
    assert_eq!(refused(ndt7(&server, "/ndt/v7/download", Some(NDT7), Some("https://example.org")).await), 403);
    let mut socket = ndt7(&server, "/ndt/v7/download?client_name=x", Some(NDT7), None).await.unwrap();
    assert_eq!(refused(ndt7(&server, "/ndt/v7/download", Some(NDT7), None).await), 429, "one at a time");
    let begun = Instant::now();
    let (mut bytes, mut last, mut measurements) = (0, Value::Null, 0);
    let mut lengths = std::collections::BTreeSet::new();
    loop {
        match tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap() {
            Message::Binary(data) => {
                bytes += data.len() as u64;
                lengths.insert(data.len());
            }
            Message::Text(text) => {
                last = serde_json::from_str(&text).unwrap();
                measurements += 1;
            }
            Message::Close(_) => break,
            _ => {}
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    assert!((9.5..12.5).contains(&seconds), "{seconds}");
    assert!((20..=100).contains(&measurements), "{measurements}");
    assert!(
        lengths.first() == Some(&(1 << 13)) && lengths.iter().all(|length| length.is_power_of_two()),
        "{lengths:?}"
    );
    let rate = bytes as f64 * 8.0 / seconds;
    assert!((40e6..55e6).contains(&rate), "{rate}");
    let info = &last["AppInfo"];
    assert!(info["NumBytes"].as_u64().unwrap() <= bytes && info["ElapsedTime"].as_u64().unwrap() > 9_000_000, "{last}");
    assert_eq!((last["Origin"].as_str(), last["Test"].as_str()), (Some("server"), Some("download")));
    let tcp = &last["TCPInfo"];
    for key in ["BusyTime", "BytesAcked", "BytesSent", "ElapsedTime", "MinRTT", "RTT", "RTTVar"] {
        assert!(tcp[key].as_u64().is_some_and(|value| value > 0), "{key}: {tcp}");
    }
    for key in ["BytesReceived", "BytesRetrans", "RWndLimited", "SndBufLimited"] {
        assert!(tcp[key].is_u64(), "{key}: {tcp}");
    }
    assert!(last["ConnectionInfo"]["Client"].as_str().unwrap().starts_with("127.0.0.1:"));
}

#[tokio::test]
async fn ndt7_uploads_are_counted_as_they_arrive() {
    let server = Server::start(open);
    let mut socket = ndt7(&server, "/ndt/v7/upload", Some(NDT7), None).await.unwrap();
    let (mut sent, mut last) = (0, Value::Null);
    for _ in 0..40 {
        socket.send(Message::binary(vec![7; 100_000])).await.unwrap();
        sent += 100_000;
        tokio::time::sleep(Duration::from_millis(20)).await;
        while let Ok(Some(Ok(message))) = tokio::time::timeout(Duration::from_millis(1), socket.next()).await {
            if let Message::Text(text) = message {
                last = serde_json::from_str(&text).unwrap();
            }
        }
    }
    let counted = last["AppInfo"]["NumBytes"].as_u64().unwrap();
    assert!(counted > 1_000_000 && counted < sent + 10_000, "{last}");
    assert!(last["TCPInfo"]["BytesReceived"].as_u64() > Some(1_000_000));
    socket.close(None).await.unwrap();
    while let Some(Ok(_)) = socket.next().await {}
}

#[tokio::test]
async fn an_ndt7_client_that_never_reads_or_never_closes_is_cut_off() {
    let server = Server::start(open);
    let begun = Instant::now();
    let download = ndt7(&server, "/ndt/v7/download", Some(NDT7), None).await.unwrap();
    // The client reads nothing: the server ends the test, and the next one has its turn.
    let mut upload = loop {
        match ndt7(&server, "/ndt/v7/upload", Some(NDT7), None).await {
            Ok(upload) => break upload,
            Err(Error::Http(answer)) => assert_eq!(answer.status().as_u16(), 429),
            Err(other) => panic!("{other}"),
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(begun.elapsed() > Duration::from_secs(9));
    drop(download);
    // A message that is longer than allowed, of which only the head arrives.
    let head = [0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4];
    upload.get_mut().write_all(&head).await.unwrap();
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, upload.get_mut().read_to_end(&mut rest)).await.expect("the end");
}

#[tokio::test]
async fn cloudflares_engine_downloads_uploads_and_pings() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.linger = Duration::from_millis(200);
    });
    let secret = server.token.secret();
    for bytes in [0, 1, 1000, 100_000, 3_000_000] {
        let found = answer_1(&server, &format!("GET /{secret}/__down?bytes={bytes}&during=download"), "").await;
        assert_eq!(status(&found), 200, "{found:.300}");
        let (head, _) = found.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {bytes}\r\n")), "{head}");
        assert!(head.contains("server-timing: cfReqDur;dur=") && head.contains("timing-allow-origin: *"), "{head}");
    }
    let (mut client, mut size) = (client(&server).await, 0);
    let answer = got(&mut client, &server, &format!("/{secret}/__down?bytes=1234567")).await;
    size += body(answer, usize::MAX).await.0.len();
    assert_eq!(size, 1_234_567);
    let more = "Content-Type: text/plain\r\nOrigin: https://example.org\r\nContent-Length: 3\r\n";
    let found = answer_to_body(&server, &format!("POST /{secret}/__up?bytes=3"), more, "abc").await;
    assert!(status(&found) == 200 && found.contains("server-timing: cfReqDur;dur="), "{found}");
    assert_eq!(status(&answer_1(&server, "GET /__down?bytes=x", "").await), 400);
}

#[tokio::test]
async fn librespeeds_paths_are_answered() {
    let server = Server::start(|settings| {
        open(settings);
        settings.limits.linger = Duration::from_millis(200);
    });
    for prefix in ["", "/backend"] {
        let found = answer_1(&server, &format!("GET {prefix}/garbage.php?ckSize=2&r=0.5"), "").await;
        assert!(found.contains("content-length: 2097152\r\n"));
        let found = answer_1(&server, &format!("GET {prefix}/empty.php?r=0.5"), "").await;
        assert!(status(&found) == 200 && found.ends_with("\r\n\r\n"), "{found}");
        let found = answer_to_body(&server, &format!("POST {prefix}/empty.php"), "Content-Length: 3\r\n", "abc").await;
        assert_eq!(status(&found), 200);
        let found = answer_1(&server, &format!("GET {prefix}/getIP.php?isp=true"), "").await;
        let text: Value = serde_json::from_str(found.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(text["processedString"], "127.0.0.1");
    }
}

#[tokio::test]
async fn pages_of_other_sites_read_only_answers_for_them_and_only_with_the_secret() {
    let server = Server::start(open);
    let secret = server.token.secret();
    let origin = "Origin: https://example.org\r\n";
    let names = |found: &str| found.contains("access-control-allow-origin: *\r\n");
    for path in ["__down?bytes=0", "backend/empty.php", "getIP.php"] {
        let found = answer_1(&server, &format!("GET /{secret}/{path}"), origin).await;
        assert!(status(&found) == 200 && names(&found), "{found}");
        let found = answer_1(&server, &format!("GET /{path}"), origin).await;
        assert!(status(&found) == 403 && !names(&found), "{found}");
        let found = answer_1(&server, &format!("GET /{path}"), "").await;
        assert!(status(&found) == 200 && !names(&found), "{found}");
    }
    for path in [".well-known/nq", "api/v1/small"] {
        let found = answer_1(&server, &format!("GET /{secret}/{path}"), origin).await;
        assert!(status(&found) == 200 && !names(&found), "{found}");
    }
    let found = answer_1(&server, &format!("OPTIONS /{secret}/empty.php"), origin).await;
    assert!(
        status(&found) == 204 && names(&found) && found.contains("access-control-allow-headers: content-encoding"),
        "{found}"
    );
    assert_eq!(status(&answer_1(&server, "OPTIONS /empty.php", origin).await), 403);
    assert_eq!(status(&answer_1(&server, &format!("OPTIONS /{secret}/config"), origin).await), 405);
    let wrong = answer_1(&server, "GET /aaaaaaaaaaaaaaaa/__down?bytes=0", origin).await;
    assert!(status(&wrong) == 403 && !names(&wrong), "{wrong}");
}
