//! Connections that are watched for a long time.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Prober, Program, Server, enter_from, until};
use bufferscope_live::client::control::{ConnectError, Control};
use bufferscope_live::client::monitor::{Happening, Settings, Watched, monitor};
use bufferscope_live::wire::control::{Answer, PhaseKind, Request};
use bufferscope_live::wire::token::Token;
use bufferscope_verdict::input::Phase;
use bufferscope_verdict::monitor::{Episode, EpisodeKind};

/// What a monitor has handed over.
#[derive(Default)]
struct Seen {
    samples: Vec<Phase>,
    episodes: Vec<Episode>,
    gaps: Vec<String>,
    loaded: usize,
    starts: usize,
}

impl Seen {
    fn take(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Start(..) => self.starts += 1,
            Happening::Samples(phase) => self.samples.push(phase.clone()),
            Happening::Episode(episode) => self.episodes.push((*episode).clone()),
            Happening::State(state) => self.gaps.extend(state.gap.map(|(_, reason)| reason.to_owned())),
            Happening::Loaded(_) => self.loaded += 1,
            Happening::Warning(_) | Happening::Loading(_) => {}
        }
    }

    fn echoes(&self) -> usize {
        self.samples.iter().map(|phase| phase.echoes.len()).sum()
    }
}

/// Watches a server with an echo every 50 ms until `stop`.
async fn watch(
    server: &Arc<std::sync::Mutex<std::net::SocketAddr>>,
    token: &Token,
    stop: &AtomicBool,
    change: impl FnOnce(&mut Settings<'_>),
    mut each: impl FnMut(&Seen),
) -> (Result<Watched, ConnectError>, Seen) {
    let address = Arc::clone(server);
    let resolve = move || Ok(*address.lock().unwrap());
    let mut settings = Settings {
        resolve: &resolve,
        token: token.clone(),
        interface: None,
        interval: Duration::from_millis(50),
        lasts: Some(2 * PATIENCE),
        loads: None,
    };
    change(&mut settings);
    let mut seen = Seen::default();
    let watched = monitor(&settings, stop, |happening| {
        seen.take(&happening);
        each(&seen);
    })
    .await;
    (watched, seen)
}

#[tokio::test]
async fn a_monitor_does_not_keep_a_test_waiting_and_says_that_it_ran() {
    let server = Server::start(|_| {});
    let stop = Arc::new(AtomicBool::new(false));
    let (address, token) = (Arc::new(std::sync::Mutex::new(server.address)), server.token.clone());
    let ends = Arc::clone(&stop);
    let test = async {
        // The monitor is there first.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let begun = Instant::now();
        let measured = server.measure(&[PhaseKind::Idle, PhaseKind::Upload]).await.unwrap();
        assert_eq!(measured.ended_early, None);
        assert!(begun.elapsed() < PATIENCE, "it waited");
        assert!(!measured.server.unwrap().shared, "a monitor is no other test");
        tokio::time::sleep(Duration::from_secs(2)).await;
        ends.store(true, Ordering::Relaxed);
    };
    let (_, (watched, seen)) = tokio::join!(test, watch(&address, &token, &stop, |_| {}, |_| {}));
    let watched = watched.unwrap();
    assert_eq!((seen.starts, watched.stretches.len()), (1, 1));
    assert!(seen.episodes.iter().any(|episode| episode.kind == EpisodeKind::OtherTest), "{:?}", seen.episodes);
    assert!(seen.echoes() > 20, "{}", seen.echoes());
    assert_eq!(watched.summary.rtt.count as usize, seen.echoes());
    let lasted_ns = watched.stretches[0].1 - watched.stretches[0].0;
    assert!(seen.samples.iter().all(|phase| (0..=lasted_ns + 1_000_000_000).contains(&phase.end_ns)));
}

#[tokio::test]
async fn a_server_that_restarts_is_a_gap_and_not_a_loss() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    let options = ["--token-file", file.to_str().unwrap()];
    let first = Program::start(&options);
    let (address, token) = (Arc::new(std::sync::Mutex::new(first.address)), first.token.clone());
    let (stop, mut first, mut second, mut begun) = (AtomicBool::new(false), Some(first), None, Instant::now());
    let shared = Arc::clone(&address);
    let each = |seen: &Seen| {
        if first.is_some() && begun.elapsed() > Duration::from_secs(3) {
            drop(first.take());
            begun = Instant::now();
        } else if first.is_none() && second.is_none() && begun.elapsed() > Duration::from_secs(3) {
            // At another port: the address is looked up again.
            let again = Program::start(&options);
            *shared.lock().unwrap() = again.address;
            second = Some(again);
        } else if seen.episodes.iter().any(|episode| episode.kind == EpisodeKind::Gap) {
            stop.store(begun.elapsed() > Duration::from_secs(10), Ordering::Relaxed);
        }
    };
    let (watched, seen) = watch(&address, &token, &stop, |_| {}, each).await;
    let watched = watched.unwrap();
    assert_eq!((seen.starts, watched.stretches.len(), watched.summary.gaps), (1, 2, 1));
    let gap = seen.episodes.iter().find(|episode| episode.kind == EpisodeKind::Gap).unwrap();
    assert!(gap.end_ns - gap.start_ns > 2_000_000_000, "{gap:?}");
    assert!(gap.text.contains("the server closed the connection"), "{}", gap.text);
    assert!(seen.gaps.iter().any(|reason| reason.contains("refused")), "{:?}", seen.gaps);
    let in_gap = seen.samples.iter().flat_map(|phase| &phase.echoes);
    assert_eq!(in_gap.filter(|echo| echo.t_ns > gap.start_ns && echo.t_ns < gap.end_ns).count(), 0);
    assert!(watched.summary.rtt.lost * 20 < watched.summary.rtt.count, "{:?}", watched.summary);
}

#[tokio::test]
async fn a_server_bounds_monitors_in_all_and_for_an_address_and_tests_are_not_among_them() {
    let server = Server::start(|settings| {
        (settings.limits.monitors, settings.limits.monitors_per_address) = (3, 2);
    });
    let mut kept = Vec::new();
    for _ in 0..2 {
        kept.push(Control::watch(server.address, &server.token).await.unwrap());
    }
    let refused = Control::watch(server.address, &server.token).await.unwrap_err();
    assert!(matches!(&refused, ConnectError::Declined(reason) if reason.contains("monitors")), "{refused}");
    assert!(kept.iter().all(|(_, welcome)| welcome.monitor && welcome.limits.bytes == 0 && welcome.key.is_empty()));
    let other: IpAddr = Ipv4Addr::new(127, 0, 1, 9).into();
    drop(enter_from(other, server.address, &server.token, |_| panic!("a test waits for monitors")).await.unwrap());
    // Whoever leaves makes room.
    kept.pop();
    let begun = Instant::now();
    while Control::watch(server.address, &server.token).await.is_err() {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_monitor_has_no_load_and_its_session_ends() {
    let server = Server::start(|settings| settings.limits.monitor_session = Duration::from_secs(2));
    let (mut control, _) = Control::watch(server.address, &server.token).await.unwrap();
    control.send(&Request::Phase { phase: PhaseKind::Download }).await.unwrap();
    assert!(matches!(control.answer().await.unwrap(), Answer::Refused { reason } if reason.contains("no load")));
    let (mut control, _) = Control::watch(server.address, &server.token).await.unwrap();
    control.send(&Request::Report).await.unwrap();
    assert!(matches!(control.answer().await.unwrap(), Answer::Records(_)));
    let last = tokio::time::timeout(PATIENCE, control.answer()).await.unwrap().unwrap();
    assert!(matches!(last, Answer::Refused { reason } if reason.contains("2 s")));
}

#[tokio::test]
async fn a_monitor_that_floods_gets_few_answers_and_its_rows_are_bounded() {
    let server = Server::start(|_| {});
    let (mut control, welcome) = Control::watch(server.address, &server.token).await.unwrap();
    let mut prober = Prober::new([127, 0, 0, 1], server.address, welcome.session);
    let cookie = prober.exchange([0; 16]).cookie;
    (0..5000).for_each(|_| prober.ask(cookie));
    prober.socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let answered = std::iter::from_fn(|| prober.receive()).count();
    // 20 a second, and a burst of four seconds.
    assert!((50..300).contains(&answered), "{answered}");
    control.send(&Request::Report).await.unwrap();
    let Answer::Records(records) = control.answer().await.unwrap() else { panic!("no records") };
    assert!(records.arrivals.len() < 300 && records.end.goodput.is_empty());
    control.send(&Request::Report).await.unwrap();
    let Answer::Records(records) = control.answer().await.unwrap() else { panic!("no records") };
    assert!(records.arrivals.len() < 100, "they were handed over");
}

#[tokio::test]
async fn a_test_with_load_is_made_when_it_is_due() {
    let server = Server::start(|_| {});
    let (stop, address) = (AtomicBool::new(false), Arc::new(std::sync::Mutex::new(server.address)));
    let load = crate::common::short(server.address, &server.token, &[PhaseKind::Idle, PhaseKind::Download]);
    let each = |seen: &Seen| stop.store(seen.loaded > 0 && seen.episodes.len() > 1, Ordering::Relaxed);
    let every = Duration::from_secs(3);
    let (watched, seen) =
        watch(&address, &server.token, &stop, |settings| settings.loads = Some((every, load.clone())), each).await;
    let load = seen.episodes.iter().find(|episode| episode.kind == EpisodeKind::Load).unwrap();
    let others = seen.samples.iter().flat_map(|phase| &phase.echoes);
    assert_eq!(others.filter(|echo| echo.t_ns > load.start_ns && echo.t_ns < load.end_ns).count(), 0);
    assert!(watched.unwrap().summary.loads > 0);
    until("the monitor has left", || true).await;
}
