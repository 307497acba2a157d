//! What an end notes of its changes, for a log.

use crate::net::*;
use bufferscope_scenario::Congestion;
use bufferscope_sim::tcp::{
    Config, ConnectionState, Expiry, Limit, Sign, SlowStartEnd, State, Transition, Trigger, WindowChange, Windows,
};

const RENO: Config = Config {
    congestion: Congestion::Reno,
    rmem_default_bytes: 64 << 20,
    rmem_max_bytes: 64 << 20,
    slow_start_after_idle: false,
    ..Config::DEFAULT
};

/// The changes of the congestion state, with their times.
fn congestion(net: &Net) -> Vec<(u64, State, State, Trigger, WindowChange)> {
    let states = net.transitions.iter().filter_map(|&(at_ns, transition)| match transition {
        Transition::Congestion { old, new, trigger, change } => Some((at_ns, old, new, trigger, change)),
        _ => None,
    });
    states.collect()
}

/// The first transition for which `of` gives something, with its time.
fn first<T>(net: &Net, of: impl Fn(&Transition) -> Option<T>) -> Option<(u64, T)> {
    net.transitions.iter().find_map(|(at_ns, transition)| Some((*at_ns, of(transition)?)))
}

fn packets(windows: Windows) -> (u64, Option<u64>) {
    (windows.cwnd_bytes / MSS, windows.ssthresh_bytes.map(|bytes| bytes / MSS))
}

#[test]
fn a_loss_leads_to_recovery_and_back() {
    // As in `recovery`: the fifth of ten segments is lost, and three after it are acknowledged at 200 ms. RFC 5681 sets the
    // threshold to half of the window, and the window has that value when recovery is over, a round trip later.
    let mut net = Net::new(&RENO, 50 * MS)
        .faults(|n, _| if n == 6 { Action::Drop } else { Action::Deliver })
        .journal()
        .upload(500_000);
    net.run_to_end(10 * SECOND);
    let seen = congestion(&net);
    let states: Vec<_> = seen.iter().map(|&(at_ns, old, new, trigger, _)| (at_ns / MS, old, new, trigger)).collect();
    let expected = [
        (200, State::Open, State::Disorder, Trigger::OutOfOrder),
        (200, State::Disorder, State::Recovery, Trigger::ReorderingThreshold),
        (300, State::Recovery, State::Open, Trigger::Acknowledged),
    ];
    assert_eq!(states, expected);
    let reduction = seen[1].4;
    let (cwnd, ssthresh) = packets(reduction.before);
    assert_eq!((packets(reduction.after), ssthresh), ((cwnd, Some(cwnd / 2)), None));
    let lost = first(&net, |transition| match transition {
        Transition::Lost { packets, trigger } => Some((*packets, *trigger)),
        _ => None,
    });
    assert_eq!(lost, Some((200 * MS, (1, Trigger::ReorderingThreshold))));
    let ends = |(_, transition): &&(u64, Transition)| {
        !matches!(transition, Transition::Congestion { old: State::Recovery, .. })
    };
    let after = net.transitions.iter().skip_while(ends).find_map(|(_, transition)| match transition {
        Transition::Metrics(metrics) => Some(packets(metrics.windows)),
        _ => None,
    });
    assert_eq!(after, Some((cwnd / 2, Some(cwnd / 2))));
}

#[test]
fn each_timeout_is_noted_with_its_backoff() {
    // Nothing arrives between 350 ms and 4 s.
    let dead = 350 * MS..4 * SECOND;
    let mut net = Net::new(&RENO, 50 * MS)
        .faults(move |_, p| if dead.contains(&p.sent_ns) { Action::Drop } else { Action::Deliver })
        .journal()
        .stream();
    net.run_until(3 * SECOND);
    let timeouts: Vec<_> = net
        .transitions
        .iter()
        .filter_map(|(_, transition)| match transition {
            Transition::Expired { timer: Expiry::Retransmission, backoff, timeout_ns } => {
                Some((*backoff, timeout_ns.unwrap()))
            }
            _ => None,
        })
        .collect();
    assert!(timeouts.len() >= 3, "{timeouts:?}");
    for (index, (backoff, timeout_ns)) in timeouts.iter().enumerate() {
        // RFC 6298, rule 5.5: each timeout doubles the next.
        assert_eq!((*backoff as usize, *timeout_ns), (index, timeouts[0].1 << index));
    }
    let seen = congestion(&net);
    let (_, old, new, trigger, change) = seen[0];
    assert_eq!((old, new, trigger), (State::Open, State::Loss, Trigger::Timeout));
    // RFC 5681, section 3.1: half of the window, and a window of one segment (besides those that may still arrive).
    assert_eq!(packets(change.after), (1, Some(packets(change.before).0 / 2)));
    assert_eq!(seen.len(), 1, "the state is entered once: {seen:?}");
    let probed = first(&net, |transition| matches!(transition, Transition::Probed { .. }).then_some(()));
    let expired = first(&net, |transition| matches!(transition, Transition::Expired { .. }).then_some(()));
    assert!(probed.unwrap().0 < expired.unwrap().0, "the probe comes first");
}

#[test]
fn a_reduction_that_was_unfounded_is_noted_with_its_sign() {
    // As in `undo`: packet 50 arrives 60 ms late, and its acknowledgement echoes the time of the original.
    let mut net = Net::new(&RENO, 50 * MS)
        .faults(|n, _| if n == 50 { Action::Late(60 * MS) } else { Action::Deliver })
        .journal()
        .stream();
    net.run_until(SECOND);
    let (undone_ns, (sign, change)) = first(&net, |transition| match transition {
        Transition::Undone { sign, change } => Some((*sign, *change)),
        _ => None,
    })
    .expect("it is undone");
    assert_eq!((sign, change.after.ssthresh_bytes), (Sign::Timestamps, None));
    let seen = congestion(&net);
    let (_, _, _, _, reduction) = seen.iter().find(|(_, _, new, ..)| *new == State::Recovery).unwrap();
    assert_eq!(change.after.cwnd_bytes, reduction.before.cwnd_bytes, "the window before the reduction");
    let (at_ns, old, new, trigger, _) = *seen.iter().find(|(_, old, ..)| *old == State::Recovery).unwrap();
    assert_eq!((at_ns, old, trigger), (undone_ns, State::Recovery, Trigger::Undone));
    assert!(new <= State::Disorder);
}

#[test]
fn hystart_is_noted_when_it_ends_slow_start() {
    // A queue of 1000 packets at 10 Mbit/s delays acknowledgements long before it drops anything.
    let config = Config { congestion: Congestion::Cubic, ..RENO };
    let mut net = Net::new(&config, 20 * MS).bottleneck(10_000_000, 1000).journal().stream();
    net.run_until(2 * SECOND);
    let (_, (reason, windows)) = first(&net, |transition| match transition {
        Transition::SlowStartEnded { reason, windows } => Some((*reason, *windows)),
        _ => None,
    })
    .expect("slow start ends");
    assert!(matches!(reason, SlowStartEnd::DelayIncrease | SlowStartEnd::AckTrain), "{reason:?}");
    // `bictcp_acked`: the threshold becomes the window. The same acknowledgement then lets the window grow a little.
    let (cwnd, ssthresh) = packets(windows);
    assert!(ssthresh.is_some_and(|ssthresh| (ssthresh..ssthresh + 3).contains(&cwnd)), "{windows:?}");
    assert!(congestion(&net).iter().all(|(_, _, new, ..)| *new != State::Recovery), "no loss yet");
    let epoch = first(&net, |transition| match transition {
        Transition::Epoch(epoch) => Some(*epoch),
        _ => None,
    });
    // RFC 9438, section 4.8: without a reduction before, K is 0 and the curve begins at the window.
    let (_, epoch) = epoch.expect("congestion avoidance begins an epoch");
    assert_eq!((epoch.w_max_packets, epoch.k_ns), (0, 0));
}

#[test]
fn a_congestion_control_with_phases_reports_them() {
    let config = Config { congestion: Congestion::Bbr, pacing: true, ..RENO };
    let mut net = Net::new(&config, 20 * MS).bottleneck(10_000_000, 200).journal().stream();
    net.run_until(12 * SECOND);
    let mut phases = net.transitions.iter().filter_map(|(_, transition)| match transition {
        Transition::Phase { old, new } => Some((*old, *new)),
        _ => None,
    });
    assert_eq!(phases.next(), Some((None, "startup")));
    assert_eq!(phases.next(), Some((Some("startup"), "drain")));
    let (old, next) = phases.next().unwrap();
    assert!(old == Some("drain") && next.starts_with("probe_bw_"), "{old:?} {next}");
    let rest: Vec<_> = phases.map(|(_, new)| new).collect();
    assert!(
        rest.contains(&"probe_bw_up") && rest.contains(&"probe_bw_down") && rest.contains(&"probe_rtt"),
        "{rest:?}"
    );
    let slow_start = first(&net, |transition| matches!(transition, Transition::SlowStartEnded { .. }).then_some(()));
    assert_eq!(slow_start, None, "a control that governs its window has no slow start");
}

#[test]
fn the_window_restarts_after_an_idle_time() {
    let config = Config { slow_start_after_idle: true, ..RENO };
    let mut net = Net::new(&config, 50 * MS).journal();
    net.act(CLIENT, |end, now_ns, out| {
        end.connect(now_ns, out);
        end.offer(now_ns, 40 * MSS, out);
    });
    net.run_until(5 * SECOND);
    let before = net.cwnd_packets();
    net.act(CLIENT, |end, now_ns, out| end.offer(now_ns, MSS, out));
    let (at_ns, (idle_ns, change)) = first(&net, |transition| match transition {
        Transition::IdleRestart { idle_ns, change } => Some((*idle_ns, *change)),
        _ => None,
    })
    .expect("it restarts");
    // RFC 5681, section 4.1: no more than the initial window.
    assert_eq!((at_ns, packets(change.before).0, packets(change.after).0), (5 * SECOND, before, 10));
    assert!((4 * SECOND..5 * SECOND).contains(&idle_ns), "{idle_ns}");
}

#[test]
fn a_small_receive_window_is_noted_as_the_limit() {
    // It is smaller than the initial window of ten segments, so it is the limit from the first flight on.
    let config = Config { rmem_default_bytes: 20_000, rmem_max_bytes: 20_000, ..RENO };
    let mut net = Net::new(&config, 50 * MS).journal().stream();
    net.run_until(SECOND);
    let limit = first(&net, |transition| match transition {
        Transition::Limit { old, new } => Some((*old, *new)),
        _ => None,
    });
    assert_eq!(limit, Some((100 * MS, (Limit::Idle, Limit::ReceiveWindow))));
}

#[test]
fn the_states_of_a_connection_are_those_of_rfc_9293() {
    let mut net = Net::new(&RENO, 50 * MS).journal().upload(5 * MSS);
    net.run_to_end(SECOND);
    let states: Vec<_> = net
        .transitions
        .iter()
        .filter_map(|&(at_ns, transition)| match transition {
            Transition::Connection { old, new } => Some((at_ns / MS, old, new)),
            _ => None,
        })
        .collect();
    use ConnectionState::{Closed, Established, FinWait1, FinWait2, SynSent, TimeWait};
    // The FINs follow the data, one round trip after the handshake. The server's comes with its acknowledgement.
    let expected = [
        (0, Closed, SynSent),
        (100, SynSent, Established),
        (100, Established, FinWait1),
        (200, FinWait1, FinWait2),
        (200, FinWait2, TimeWait),
    ];
    assert_eq!(states, expected);
}

#[test]
fn the_timeouts_of_a_syn_are_noted() {
    // The first two are lost (RFC 6298, rule 5.5).
    let mut net = Net::new(&RENO, 50 * MS)
        .faults(|n, _| if n < 2 { Action::Drop } else { Action::Deliver })
        .journal()
        .upload(MSS);
    net.run_to_end(10 * SECOND);
    let timeouts: Vec<_> = net
        .transitions
        .iter()
        .filter_map(|(at_ns, transition)| match transition {
            Transition::Expired { timer: Expiry::Handshake, backoff, .. } => Some((at_ns / SECOND, *backoff)),
            _ => None,
        })
        .collect();
    assert_eq!(timeouts, [(1, 0), (3, 1)]);
}

#[test]
fn measurements_come_once_per_round_trip() {
    // Slow start: 10 segments in the first round, 20 in the second, 40 in the third.
    let mut net = Net::new(&RENO, 50 * MS).journal().stream();
    net.run_until(450 * MS);
    let windows: Vec<_> = net
        .transitions
        .iter()
        .filter_map(|(at_ns, transition)| match transition {
            Transition::Metrics(metrics) if *at_ns >= 200 * MS => Some(at_ns / MS),
            _ => None,
        })
        .collect();
    assert_eq!(windows, [200, 300, 400]);
}

#[test]
fn a_journal_changes_nothing() {
    let run = |journal: bool| {
        let net = Net::new(&RENO, 20 * MS)
            .bottleneck(10_000_000, 30)
            .faults(|n, _| if n % 97 == 40 { Action::Drop } else { Action::Deliver });
        let mut net = if journal { net.journal() } else { net }.stream();
        net.run_until(5 * SECOND);
        (format!("{:?}", net.pipes[CLIENT].sent), net.transitions.len())
    };
    let (logged, transitions) = run(true);
    let (silent, none) = run(false);
    assert!(transitions > 100 && none == 0, "{transitions} {none}");
    assert_eq!(logged, silent);
}
