//! In which queue the delay is, from the ladders.

use bufferscope_verdict::input::{Direction, EndName, LinkKind, PhaseKind, Stage};
use bufferscope_verdict::verdict::{OutcomeKind, Place};

use crate::build::{MS, SECOND, Test, places};

fn upload(rises: [Option<f64>; 3]) -> Test {
    Test::new(PhaseKind::Upload, 50.0, 0.0).ladder(EndName::Client, rises)
}

fn download(rises: [Option<f64>; 3]) -> Test {
    Test::new(PhaseKind::Download, 0.0, 50.0).ladder(EndName::Client, rises)
}

#[test]
fn the_first_hop_that_rises_names_the_link_before_it() {
    let uplink = upload([Some(0.0), Some(50.0), Some(50.0)]).place();
    assert_eq!(places(&uplink), [Place::RouterUplink]);
    assert_eq!(uplink.answer.locations[0].address.as_deref(), Some("192.0.2.1"));
    let hop = upload([Some(0.0), Some(0.0), Some(50.0)]).place();
    assert_eq!((places(&hop), hop.answer.locations[0].link), (vec![Place::Hop], 3));
    assert_eq!(places(&upload([Some(0.0); 3]).place()), [Place::LastHop]);
}

#[test]
fn downwards_the_queue_is_in_the_hop_itself() {
    assert_eq!(places(&download([Some(50.0); 3]).place()), [Place::RouterDownlink]);
    assert_eq!(places(&download([Some(0.0), Some(50.0), Some(50.0)]).place()), [Place::AccessDownlink]);
    let hop = download([Some(0.0), Some(0.0), Some(50.0)]).place();
    assert_eq!(hop.answer.locations[0].address.as_deref(), Some("192.0.2.3"));
}

#[test]
fn the_ladder_of_the_server_is_the_mirror_image() {
    // Links from the client: 1, 2, 3, 4; hop 1 of the server sees link 4, hop 3 sees links 4, 3 and 2.
    let mirrored = |rises| Test::new(PhaseKind::Upload, 50.0, 0.0).ladder(EndName::Server, rises).place();
    assert_eq!(places(&mirrored([Some(0.0), Some(0.0), Some(50.0)])), [Place::RouterUplink]);
    assert_eq!(places(&mirrored([Some(50.0); 3])), [Place::LastHop]);
}

#[test]
fn silent_hops_widen_the_answer() {
    let found = upload([Some(0.0), None, Some(50.0)]).place();
    assert_eq!(places(&found), [Place::RouterUplink, Place::Hop]);
    assert!(found.answer.text.contains("cannot tell which"), "{}", found.answer.text);
    let nothing = Test::new(PhaseKind::Upload, 50.0, 0.0).place();
    assert_eq!(nothing.answer.text, "cannot tell where between this machine and the server");
}

#[test]
fn hops_with_fewer_than_three_answers_are_silent() {
    let mut test = upload([Some(0.0), Some(50.0), Some(50.0)]);
    // One answer a second, from 10.2 s on.
    test.loaded().ladder.retain(|probe| probe.ttl != 2 || probe.t_ns < 12 * SECOND);
    assert_eq!(places(&test.place()), [Place::RouterUplink, Place::Hop]);
    assert_eq!(test.phase().hops[1].note.as_deref(), Some("too few answers"));
}

#[test]
fn a_hop_that_rises_alone_has_a_slow_processor() {
    let test = upload([Some(0.0), Some(80.0), Some(0.0)]);
    assert_eq!(places(&test.place()), [Place::LastHop]);
    let hop = &test.phase().hops[1];
    assert!(!hop.used && hop.note.as_ref().unwrap().contains("processor"), "{hop:?}");
}

#[test]
fn hops_inside_a_tunnel_are_one_link() {
    let mut test = upload([Some(0.0), Some(50.0), Some(50.0)]);
    for probe in test.loaded().ladder.iter_mut().filter(|probe| probe.ttl == 2) {
        probe.mpls = true;
    }
    assert_eq!(places(&test.place()), [Place::RouterUplink, Place::Hop]);
}

#[test]
fn ladders_that_contradict_each_other_widen_the_answer() {
    // The client's ladder says link 2, the server's link 4.
    let test = upload([Some(0.0), Some(50.0), Some(50.0)]).ladder(EndName::Server, [Some(50.0); 3]);
    let found = test.place();
    assert_eq!(places(&found), [Place::RouterUplink, Place::Hop, Place::LastHop]);
    assert!(found.posterior[2].probability > found.posterior[4].probability, "the forward ladder counts more");
    assert!(test.judge().warnings.iter().any(|warning| warning.contains("contradict")));
}

#[test]
fn two_queues_share_the_delay() {
    // 30 of 50 ms at link 2, and 20 ms at link 4.
    let found = upload([Some(0.0), Some(30.0), Some(30.0)]).place();
    assert_eq!(places(&found), [Place::RouterUplink]);
    let second = found.second.unwrap();
    assert_eq!((second.locations[0].place, second.share), (Place::LastHop, 0.4));
    assert!((found.answer.share - 0.6).abs() < 1e-9);
}

#[test]
fn each_direction_has_its_queue_under_both_loads() {
    // 50 ms at link 2 up, and 30 ms at link 1 down.
    let test = Test::new(PhaseKind::Both, 50.0, 30.0).ladder(EndName::Client, [Some(30.0), Some(80.0), Some(80.0)]);
    let phase = test.phase();
    let found = |direction| phase.locations.iter().find(|found| found.direction == direction).unwrap();
    assert_eq!(places(found(Direction::Up)), [Place::RouterUplink]);
    assert_eq!(places(found(Direction::Down)), [Place::RouterDownlink]);
}

#[test]
fn without_one_way_delays_both_loads_are_not_split() {
    let mut test = Test::new(PhaseKind::Both, 50.0, 30.0);
    for phase in &mut test.observations.phases {
        for echo in &mut phase.echoes {
            (echo.up_ns, echo.down_ns) = (None, None);
        }
    }
    let phase = test.phase();
    assert_eq!((phase.outcome.kind, phase.locations.len()), (OutcomeKind::Queue, 0));
    // A single load has one direction.
    let mut single = upload([Some(0.0), Some(50.0), Some(50.0)]);
    for phase in &mut single.observations.phases {
        for echo in &mut phase.echoes {
            (echo.up_ns, echo.down_ns) = (None, None);
        }
    }
    assert_eq!(places(&single.place()), [Place::RouterUplink]);
}

#[test]
fn a_queue_that_varies_does_not_blur_the_step() {
    // The delay alternates between 10 and 90 ms every 1.25 s; each hop sees what the path has at that time.
    let varying = |t_ns: i64| if t_ns / (1250 * MS) % 2 == 0 { 10 * MS } else { 90 * MS };
    let mut test = Test::new(PhaseKind::Upload, 0.0, 0.0).ladder(EndName::Client, [Some(0.0); 3]);
    for echo in &mut test.loaded().echoes {
        let queue = varying(echo.t_ns);
        echo.rtt_ns = echo.rtt_ns.map(|rtt| rtt + queue);
        echo.up_ns = echo.up_ns.map(|up| up + queue);
    }
    for probe in test.loaded().ladder.iter_mut().filter(|probe| probe.ttl >= 2) {
        let queue = varying(probe.t_ns);
        probe.rtt_ns = probe.rtt_ns.map(|rtt| rtt + queue);
    }
    assert_eq!(places(&test.place()), [Place::RouterUplink]);
}

#[test]
fn a_fast_cable_is_hardly_the_bottleneck() {
    // Hop 1 is silent, so the first two links are alike, except that the first one could carry 100 times as much.
    let mut test = upload([None, Some(50.0), Some(50.0)]).stage(EndName::Client, Stage::Qdisc, 0.0);
    let before = test.place().posterior[2].probability;
    test.observations.ends.client.link = LinkKind::Ethernet;
    test.observations.ends.client.link_bps = Some(1_000_000_000);
    let after = test.place().posterior[2].probability;
    // The odds change from 1 : 1 to 5 : 1.
    assert!((before - 0.5).abs() < 0.01 && (after - 5.0 / 6.0).abs() < 0.01, "{before} {after}");
}

#[test]
fn queues_planted_on_a_linux_path_are_named() {
    // Medians of a path h1-r1-r2-h2 of network namespaces with TBF at 10 Mbit/s (Linux 6.18), in milliseconds: the load, the
    // rise of the path, both ladders, and the port with the queue.
    let rows = [
        (PhaseKind::Upload, 83.0, [0.05, 83.0], [0.0, 80.0], Place::RouterUplink),
        (PhaseKind::Download, 90.0, [0.04, 70.0], [0.0, 90.0], Place::AccessDownlink),
        (PhaseKind::Download, 76.0, [73.0, 73.0], [0.0, 0.0], Place::RouterDownlink),
        (PhaseKind::Download, 50.0, [0.0, 0.0], [49.0, 49.0], Place::ServerDriver),
        (PhaseKind::Upload, 29.0, [29.0, 29.0], [0.0, 0.0], Place::ClientDriver),
    ];
    for (kind, rise, client, server, place) in rows {
        let (up, down) = if kind == PhaseKind::Upload { (rise, 0.0) } else { (0.0, rise) };
        let hops = |rises: [f64; 2]| [Some(rises[0]), Some(rises[1]), None];
        let mut test = Test::new(kind, up, down)
            .ladder(EndName::Client, hops(client))
            .ladder(EndName::Server, hops(server))
            .stage(EndName::Client, Stage::Qdisc, 0.0)
            .stage(EndName::Server, Stage::Qdisc, 0.0);
        test.observations.ends.client.hops_to_other = Some(3);
        test.observations.ends.server.hops_to_other = Some(3);
        assert_eq!(places(&test.place()), [place], "{kind:?} {rise}");
    }
}
