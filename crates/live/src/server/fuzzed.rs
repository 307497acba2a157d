//! What strangers send to a server, without a network: where the fuzz targets begin, and the tests that repeat their seeds.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, split};

use super::certificate::Identity;
use super::ledger::Accounts;
use super::limits::Limits;
use super::session::Session;
use super::{Server, Settings, web};
use crate::wire::SessionId;
use crate::wire::control::{PhaseKind, SessionLimits};
use crate::wire::token::Token;

/// Bytes on the way between the two ends of a connection.
const PIPE_BYTES: usize = 64 * 1024;
/// The test ends then, as its control connection would end it.
const TEST_SECONDS: u64 = 5;
/// Bytes of load that a test may use.
const LOAD_BYTES: u64 = 256 * 1024;
/// Every connection has ended by then, whatever was sent on it.
const PATIENCE: Duration = Duration::from_secs(120);
/// More than every connection sends.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// The client waits here for what the server says, as a page does.
const PAUSE: &[u8] = b"<pause>";
/// Longer than the server takes for an answer without a timeout.
const PAUSE_TIME: Duration = Duration::from_millis(300);

/// The way in which a client speaks HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http {
    /// HTTP/1.1 in clear.
    Clear,
    /// HTTP/1.1 within TLS.
    Secure,
    /// HTTP/2 within TLS.
    Two,
}

/// A connection that exists once and can be asked for statistics: what is fuzzed goes through memory.
fn socket() -> io::Result<OwnedFd> {
    static ENDS: OnceLock<[std::net::TcpStream; 2]> = OnceLock::new();
    if ENDS.get().is_none() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let near = std::net::TcpStream::connect(listener.local_addr()?)?;
        let _ = ENDS.set([near, listener.accept()?.0]);
    }
    ENDS.get().expect("set above")[0].as_fd().try_clone_to_owned()
}

/// A server for everybody that answers other people's programs too, and has one session: that of the client, with the number 1 and
/// a key of zeros, whose phase has load in both directions.
fn server(from: SocketAddr) -> io::Result<(Arc<Server>, Arc<Session>)> {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    let identity = match IDENTITY.get() {
        Some(identity) => identity,
        None => {
            let generated = Identity::generate()?;
            IDENTITY.get_or_init(|| generated)
        }
    };
    let session = SessionLimits { seconds: TEST_SECONDS, flows: 4, bytes: LOAD_BYTES, rate_bps: None };
    let settings = Settings {
        compatible: true,
        limits: Limits { session, silence: Duration::from_secs(1), ..Limits::default() },
        ..Settings::default()
    };
    let acceptor = identity.acceptor(web::protocols(&settings), None)?;
    let token = Token::generate(identity.certificate()).public();
    let server = Arc::new(Server::new(settings, token, acceptor, Accounts::default(), None)?);
    let own = Arc::new(Session::new(SessionId(1), [0; 16], from.ip(), session, None));
    own.state().begin(PhaseKind::Both);
    server.sessions.lock().insert(own.id, Arc::clone(&own));
    Ok((server, own))
}

/// Sends these bytes on one connection, with a pause for each `<pause>` in them, and leaves it open; returns what the server
/// sends until it ends it. The time of the runtime should be a paused one.
pub async fn http(bytes: &[u8], how: Http) -> io::Result<Vec<u8>> {
    let from = SocketAddr::from(([192, 0, 2, 1], 40_000));
    let (server, session) = server(from)?;
    let pass = server.gate.enter(from.ip(), None).expect("it is the first connection");
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    let socket = socket()?;
    let serving = async {
        match how {
            Http::Two => Arc::clone(&server).call_over(|_| far, socket, from, pass).await,
            _ => Arc::clone(&server).visit(far, socket, from, how == Http::Secure, pass).await,
        }
    };
    let (mut reader, mut writer) = split(near);
    let mut found = Vec::new();
    let asking = async {
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = rest.windows(PAUSE.len()).position(|part| part == PAUSE);
            // The server may end the connection before it has read everything.
            if writer.write_all(&rest[..at.unwrap_or(rest.len())]).await.is_err() {
                break;
            }
            rest = at.map_or(&[], |at| &rest[at + PAUSE.len()..]);
            tokio::time::sleep(PAUSE_TIME).await;
        }
    };
    let reading = async {
        let mut reader = (&mut reader).take(MOST_BYTES);
        let _ = reader.read_to_end(&mut found).await;
    };
    let testing = async {
        tokio::time::sleep(Duration::from_secs(TEST_SECONDS)).await;
        session.end();
    };
    let ended = tokio::time::timeout(PATIENCE, async { tokio::join!(serving, asking, reading, testing) }).await;
    assert!(ended.is_ok(), "a connection is still open after {PATIENCE:?}");
    assert_eq!(server.gate.count(), 0, "connections that have ended are counted");
    Ok(found)
}

/// Checks what a server has sent over HTTP/1.1: whole heads with a status that it knows. Returns the statuses.
pub fn statuses(answers: &[u8]) -> Vec<u16> {
    const KNOWN: [u16; 16] = [100, 101, 200, 204, 400, 403, 404, 405, 409, 413, 414, 429, 431, 500, 501, 503];
    let mut found = Vec::new();
    let mut rest = answers;
    while let Some(head) = rest.strip_prefix(b"HTTP/1.") {
        let status = head.get(2..5).and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status: {:?}", head.escape_ascii().to_string()));
        assert!(KNOWN.contains(&status) && status != 500, "status {status}");
        found.push(status);
        let end = head.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
        let lines = head[..end].split(|byte| *byte == b'\n');
        let value = |line: &[u8], name: &str| {
            let text = std::str::from_utf8(line).ok()?;
            text.strip_prefix(name).map(|text| text.trim().to_owned())
        };
        let length: Option<usize> = match status {
            100 | 204 => Some(0),
            101 => None,
            _ => lines.clone().find_map(|line| value(line, "content-length:")?.parse().ok()),
        };
        let is_ours = lines.clone().any(|line| value(line, "content-security-policy:").is_some());
        // The library itself answers what it cannot read, and then ends the connection.
        assert!(is_ours || matches!(status, 100 | 101 | 400 | 414 | 431), "status {status} without the page's policy");
        // What follows is a WebSocket, a load or what the library has cut off.
        let Some(length) = length else { break };
        rest = head.get(end + 4 + length..).unwrap_or_default();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(bytes: &[u8], how: Http) -> Vec<u8> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(http(bytes, how)).unwrap()
    }

    #[test]
    fn requests_one_after_the_other_are_answered_and_the_connection_ends() {
        let page = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let wrong = "GET /test/download?session=0000000000000001&key=0 HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(statuses(&answers(format!("{page}{page}{wrong}{page}").as_bytes(), Http::Clear)), [200, 200, 403]);
    }

    /// The fuzzer begins with these, so each must reach what it is named after.
    #[test]
    fn the_seeds_of_the_fuzzer_reach_what_they_are_for() {
        let of = |name: &str| {
            let path = format!("{}/../../fuzz/corpus/live_http/seed-{name}", env!("CARGO_MANIFEST_DIR"));
            let bytes = std::fs::read(path).unwrap();
            let how = if bytes[0] == b'2' { Http::Two } else { Http::Clear };
            answers(&bytes[1..], how)
        };
        let first = |name: &str| statuses(&of(name));
        for name in ["control", "pings", "ndt7", "ndt7-download"] {
            assert_eq!(first(name), [101], "{name}");
        }
        assert_eq!([first("page"), first("samples"), first("upload")], [vec![200, 200], vec![200], vec![200, 200]]);
        // An upload that never ends is cut off some time after its test.
        assert_eq!(first("upload-unfinished"), [200]);
        assert_eq!(first("responsiveness"), [200; 4]);
        assert_eq!(first("cloudflare"), [204, 200, 200, 200]);
        assert_eq!(first("librespeed"), [200; 4]);
        let has = |answers: &[u8], text: &str| answers.windows(text.len()).any(|part| part == text.as_bytes());
        let control = of("control");
        for answer in ["welcome", "webrtc", "noted", "the page sent no samples"] {
            assert!(has(&control, answer), "{answer}");
        }
        assert!(has(&of("two"), "large_download_url") && of("two-load").len() > 60_000);
    }
}
