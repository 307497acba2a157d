//! Any observations give a verdict, in bounded time, that is read back from JSON unchanged.

use std::time::{Duration, Instant};

use bufferscope_verdict::input::{
    AnswerKind, Direction, Echo, End, EndName, Ends, Flood, FlowSample, GoodputSample, LadderProbe, LinkKind,
    LocalSample, Lost, Observations, Parameters, Phase, PhaseKind, Stage, StageDelay, TcpProbe, TcpProbeKind,
};
use bufferscope_verdict::{Verdict, judge, judge_json};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// Ordinary times, and the most extreme ones.
fn time() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..20_000_000_000_i64, 1 => any::<i64>(), 1 => select(vec![i64::MIN, -1, 0, i64::MAX])]
}

fn delay() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 1_000_000..300_000_000_i64, 1 => any::<i64>(), 1 => select(vec![i64::MIN, -1, 0, i64::MAX])]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..100_000_000_u64, 1 => any::<u64>(), 1 => select(vec![0, u64::MAX])]
}

fn direction() -> impl Strategy<Value = Direction> {
    select(vec![Direction::Up, Direction::Down])
}

fn end_name() -> impl Strategy<Value = EndName> {
    select(vec![EndName::Client, EndName::Server])
}

fn echo() -> impl Strategy<Value = Echo> {
    let lost = of(select(vec![Lost::Up, Lost::Down, Lost::Unknown]));
    (time(), of(delay()), of(delay()), of(delay()), lost).prop_map(|(t_ns, rtt_ns, up_ns, down_ns, lost)| Echo {
        t_ns,
        rtt_ns,
        up_ns,
        down_ns,
        lost,
    })
}

fn tcp_probe() -> impl Strategy<Value = TcpProbe> {
    let kind = select(vec![TcpProbeKind::Connect, TcpProbeKind::Exchange, TcpProbeKind::OnLoad]);
    (time(), kind, of(direction()), of(delay())).prop_map(|(t_ns, kind, direction, rtt_ns)| TcpProbe {
        t_ns,
        kind,
        direction,
        rtt_ns,
    })
}

fn ladder() -> impl Strategy<Value = LadderProbe> {
    let kind = select(vec![
        AnswerKind::Exceeded,
        AnswerKind::Echo,
        AnswerKind::Unreachable,
        AnswerKind::Destination,
        AnswerKind::Modem,
    ]);
    (
        time(),
        end_name(),
        prop_oneof![4 => 0..6_u8, 1 => any::<u8>()],
        of("[ab]"),
        of(delay()),
        kind,
        prop::bool::weighted(0.1),
    )
        .prop_map(|(t_ns, end, ttl, address, rtt_ns, kind, mpls)| LadderProbe {
            t_ns,
            end,
            ttl,
            address,
            rtt_ns,
            kind,
            mpls,
        })
}

fn stage() -> impl Strategy<Value = StageDelay> {
    (time(), end_name(), select(vec![Stage::SendBuffer, Stage::Qdisc]), delay())
        .prop_map(|(t_ns, end, stage, delay_ns)| StageDelay { t_ns, end, stage, delay_ns })
}

fn flow() -> impl Strategy<Value = FlowSample> {
    (time(), direction(), 0..3_u32, delay(), delay(), vec(count(), 8)).prop_map(
        |(t_ns, direction, flow, srtt_ns, min_rtt_ns, counts)| FlowSample {
            t_ns,
            direction,
            flow,
            srtt_ns,
            min_rtt_ns,
            cwnd_bytes: counts[0],
            notsent_bytes: counts[1],
            retransmits: counts[2],
            delivered_bytes: counts[3],
            busy_us: counts[4],
            rwnd_limited_us: counts[5],
            sndbuf_limited_us: counts[6],
            delivered_ce: counts[7],
        },
    )
}

fn goodput() -> impl Strategy<Value = GoodputSample> {
    (time(), direction(), count()).prop_map(|(t_ns, direction, bytes)| GoodputSample { t_ns, direction, bytes })
}

fn local() -> impl Strategy<Value = LocalSample> {
    (time(), end_name(), of(count()), of(count()), of(any::<f64>()), of(any::<f64>())).prop_map(
        |(t_ns, end, qdisc_bytes, ring_bytes, cpu_busy, softirq)| LocalSample {
            t_ns,
            end,
            qdisc_bytes,
            qdisc_drops: None,
            ring_bytes,
            cpu_busy,
            softirq,
        },
    )
}

fn phase() -> impl Strategy<Value = Phase> {
    let kinds = vec![PhaseKind::Idle, PhaseKind::Download, PhaseKind::Upload, PhaseKind::Both, PhaseKind::CoolDown];
    let probes =
        (vec(echo(), 0..60), vec(tcp_probe(), 0..30), vec(ladder(), 0..60), vec(stage(), 0..30), vec(ladder(), 0..30));
    let load = (vec(flow(), 0..20), vec(goodput(), 0..20), vec(local(), 0..20));
    (select(kinds), time(), time(), of(any::<bool>()), probes, load).prop_map(
        |(
            kind,
            start_ns,
            end_ns,
            levelled,
            (echoes, tcp_probes, ladder, stages, tcp_ladder),
            (flows, goodput, local),
        )| Phase {
            load_failure: None,
            kind,
            start_ns,
            end_ns,
            levelled,
            echoes,
            tcp_probes,
            ladder,
            tcp_ladder,
            stages,
            flows,
            goodput,
            local,
        },
    )
}

fn end() -> impl Strategy<Value = End> {
    let links = vec![LinkKind::Ethernet, LinkKind::Wifi, LinkKind::Loopback, LinkKind::Tunnel, LinkKind::Unknown];
    (select(links), of(count()), of(count()), of(any::<bool>()), any::<bool>(), of(any::<u8>())).prop_map(
        |(link, link_bps, expected_wifi_bps, bql, software_stamps, hops_to_other)| End {
            link,
            link_bps,
            expected_wifi_bps,
            bql,
            software_stamps,
            hops_to_other,
            ..End::default()
        },
    )
}

fn flood() -> impl Strategy<Value = Flood> {
    let series = (vec((time(), of(delay())), 0..60), vec((time(), count()), 0..20));
    (direction(), time(), time(), vec(count(), 3), series).prop_map(
        |(direction, start_ns, end_ns, counts, (rtts, received))| Flood {
            direction,
            peak_bps: counts[0],
            start_ns,
            end_ns,
            sent_packets: counts[1],
            received_packets: counts[2],
            rtts,
            received,
        },
    )
}

fn observations() -> impl Strategy<Value = Observations> {
    let all = (vec(phase(), 0..6), vec(flood(), 0..3), end(), end(), of("bbr|cubic|x"));
    all.prop_map(|(phases, floods, client, server, congestion)| Observations {
        phases,
        floods,
        ends: Ends { client, server },
        parameters: Parameters { congestion, ..Parameters::default() },
    })
}

/// What holds for every verdict.
fn sound(verdict: &Verdict) {
    for sentence in &verdict.sentences {
        assert!(sentence.ends_with('.') && sentence.len() > 10, "{sentence:?}");
        assert!(!sentence.contains("NaN") && !sentence.contains("inf"), "{sentence:?}");
    }
    for found in verdict.phases.iter().flat_map(|phase| &phase.locations) {
        let all: f64 = found.posterior.iter().map(|candidate| candidate.probability).sum();
        assert!((all - 1.0).abs() < 1e-3, "{found:?}");
        assert!((0.0..=0.99).contains(&found.answer.probability), "{found:?}");
        assert!(!found.answer.locations.is_empty());
    }
}

/// `make test-properties` sets the number.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(192)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_observations_give_a_sound_verdict_quickly(observations in observations()) {
        let start = Instant::now();
        let verdict = judge(&observations);
        prop_assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        sound(&verdict);
        let text = serde_json::to_string(&verdict).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Verdict>(&text).unwrap(), &verdict);
        prop_assert_eq!(judge(&observations), verdict);
    }

    #[test]
    fn the_order_of_samples_does_not_matter(mut observations in observations()) {
        let verdict = judge(&observations);
        for phase in &mut observations.phases {
            phase.echoes.reverse();
            phase.ladder.reverse();
            phase.stages.reverse();
            phase.tcp_probes.reverse();
        }
        let other = judge(&observations);
        let outcomes = |verdict: &Verdict| verdict.phases.iter().map(|phase| phase.outcome.kind).collect::<Vec<_>>();
        prop_assert_eq!(outcomes(&other), outcomes(&verdict));
        prop_assert_eq!(other.grade, verdict.grade);
    }
}

#[test]
fn nothing_gives_a_verdict() {
    let verdict = judge(&Observations::default());
    assert!(verdict.phases.is_empty() && verdict.grade.is_none());
    sound(&verdict);
}

#[test]
fn json_of_a_future_version_is_read_and_mistakes_are_located() {
    let text = r#"{"phases": [{"kind": "idle", "echoes": [{"t_ns": 0, "rtt_ns": 20000000, "colour": 1}], "new": 1}],
        "ends": {"client": {"link": "laser"}}}"#;
    let verdict: Verdict = serde_json::from_str(&judge_json(text).unwrap()).unwrap();
    assert_eq!(verdict.idle.rtt.p50_ns, Some(20_000_000));
    assert!(judge_json(r#"{"phases": [{"kind": "lunch"}]}"#).unwrap_err().contains("lunch"));
    assert!(judge_json("").is_err());
}

#[test]
fn a_long_test_of_a_long_path_is_judged_in_bounded_time() {
    let echo = |index: i64| Echo {
        t_ns: index * 1_000_000,
        rtt_ns: Some(20_000_000 + index % 200_000 * 1000),
        up_ns: Some(10_000_000),
        down_ns: Some(10_000_000 + index % 200_000 * 1000),
        lost: None,
    };
    let probe = |index: i64| LadderProbe {
        t_ns: index * 5_000_000,
        end: if index % 2 == 0 { EndName::Client } else { EndName::Server },
        ttl: (index / 2 % 250) as u8 + 1,
        address: None,
        rtt_ns: Some(20_000_000),
        kind: AnswerKind::Exceeded,
        mpls: false,
    };
    let phase = |kind, start: i64| Phase {
        kind,
        start_ns: start * 1_000_000,
        end_ns: (start + 60_000) * 1_000_000,
        echoes: (start..start + 60_000).map(echo).collect(),
        ladder: (start / 5..(start + 60_000) / 5).map(probe).collect(),
        ..Phase::default()
    };
    let observations = Observations {
        phases: vec![phase(PhaseKind::Idle, 0), phase(PhaseKind::Both, 60_000), phase(PhaseKind::Download, 140_000)],
        ..Observations::default()
    };
    let start = Instant::now();
    sound(&judge(&observations));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}
