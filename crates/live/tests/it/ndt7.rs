//! The client of ndt7, with a server that may misbehave.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bufferscope_live::client::Measurement;
use bufferscope_live::client::observe::observed;
use bufferscope_live::client::others::{Family, Settings, Target, measure, ndt7};
use bufferscope_live::client::secure::Trust;
use bufferscope_live::wire::control::PhaseKind;
use bufferscope_verdict::input::{Direction, Protocol};
use bufferscope_verdict::verdict::OutcomeKind;
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::accept_hdr_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};

const SUBPROTOCOL: &str = "net.measurementlab.ndt.v7";
/// A download of this server is shorter than the protocol says.
const DOWNLOAD: Duration = Duration::from_millis(1500);

/// How a server misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// It refuses tests without a token.
    NoToken,
    /// It speaks another subprotocol.
    AnotherProtocol,
    /// It closes the connection in the middle of a message.
    Cuts,
}

fn run(fault: Fault, phases: &[PhaseKind]) -> Measurement {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let begun = Instant::now();
    let found = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, fault));
            }
        });
        measure(&settings(address, phases), &AtomicBool::new(false), |_| {}).await.unwrap()
    });
    runtime.shutdown_background();
    assert!(begun.elapsed() < Duration::from_secs(60));
    found
}

fn settings(server: SocketAddr, phases: &[PhaseKind]) -> Settings {
    Settings {
        url: ndt7::base(&format!("ws://{server}").parse().unwrap()).unwrap(),
        target: Target::Ndt7,
        trust: Trust::System,
        family: Family::Any,
        phases: phases.to_vec(),
        flows: None,
        congestion: String::new(),
        interface: None,
        at_most: Duration::from_secs(4),
        idle: Duration::from_secs(1),
        cool_down: Duration::from_secs(1),
    }
}

async fn serve(stream: TcpStream, fault: Fault) {
    let mut is_download = false;
    #[allow(clippy::result_large_err, reason = "the type is that of tungstenite's callback")]
    let check = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
        is_download = request.uri().path() == "/ndt/v7/download";
        if fault == Fault::NoToken {
            let mut refused = ErrorResponse::new(None);
            *refused.status_mut() = StatusCode::UNAUTHORIZED;
            return Err(refused);
        }
        let name = if fault == Fault::AnotherProtocol { "other" } else { SUBPROTOCOL };
        response.headers_mut().insert("Sec-WebSocket-Protocol", HeaderValue::from_static(name));
        Ok(response)
    };
    let Ok(mut socket) = accept_hdr_async(stream, check).await else { return };
    if !is_download {
        while let Some(Ok(message)) = socket.next().await {
            if message.is_close() {
                return;
            }
        }
        return;
    }
    let until = Instant::now() + DOWNLOAD;
    let mut number = 0;
    while Instant::now() < until {
        let _ = socket.send(Message::binary(vec![0; 1 << 16])).await;
        number += 1;
        if number % 50 == 0 {
            let text = r#"{"TCPInfo": {"RTT": 12000, "MinRTT": 9000, "BytesAcked": 100, "BusyTime": 5}}"#;
            let _ = socket.send(Message::text(text)).await;
            let _ = socket.send(Message::text("no JSON")).await;
        }
        if fault == Fault::Cuts && number == 100 {
            return;
        }
    }
    let _ = socket.close(None).await;
    while let Some(Ok(_)) = socket.next().await {}
}

#[test]
fn a_test_has_the_goodput_of_both_directions_and_what_the_server_says() {
    let found = run(Fault::None, &[PhaseKind::Idle, PhaseKind::Download, PhaseKind::Upload]);
    assert_eq!((found.ended_early.as_deref(), found.phases[1].load_failure.as_deref()), (None, None));
    let observed = observed(&found);
    assert_eq!(observed.parameters.protocol, Some(Protocol::Ndt7));
    let flows = &observed.phases[1].flows;
    assert!(!flows.is_empty() && flows.iter().all(|flow| flow.direction == Direction::Down));
    assert!(flows.iter().all(|flow| (flow.srtt_ns, flow.min_rtt_ns) == (12_000_000, 9_000_000)));
    let verdict = bufferscope_verdict::judge(&observed);
    for phase in &verdict.phases {
        let rate = phase.numbers.directions.iter().find_map(|numbers| numbers.goodput).unwrap();
        assert!(rate.mean_bps > 1_000_000, "{rate:?}");
        assert_eq!(phase.rpm.rpm, None);
    }
    assert!(verdict.warnings[0].contains("BBR"), "{:?}", verdict.warnings);
}

#[test]
fn a_server_that_refuses_or_breaks_a_test_has_no_verdict() {
    for (fault, said) in [
        (Fault::NoToken, "the server answered 401 Unauthorized"),
        (Fault::AnotherProtocol, "does not speak ndt7"),
        (Fault::Cuts, "without closing handshake"),
    ] {
        let verdict = bufferscope_verdict::judge(&observed(&run(fault, &[PhaseKind::Idle, PhaseKind::Download])));
        let outcome = &verdict.phases[0].outcome;
        assert_eq!(outcome.kind, OutcomeKind::CannotTell, "{fault:?}");
        assert!(outcome.text.contains(said), "{fault:?}: {}", outcome.text);
    }
}

#[tokio::test]
async fn a_closed_port_is_reported_at_once() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let begun = Instant::now();
    let found = measure(&settings(closed, &[PhaseKind::Idle]), &AtomicBool::new(false), |_| {}).await;
    let Err(error) = found else { panic!("there is no server") };
    let error = error.to_string();
    assert!(error.contains("refused") && begun.elapsed() < Duration::from_secs(5), "{error}");
}
