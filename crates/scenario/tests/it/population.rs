//! `[population]`: members, their values, and what is refused.

use bufferscope_scenario::{Experiment, Qdisc, Scenario, TrafficKind};

const HOMES: &str = r#"
    title = "Homes"
    duration = "10s"

    [[link]]
    name = "access"
    ends = ["home", "server"]
    delay = "10ms"
    rate = "1mbit"
    queue = { qdisc = "bfifo", limit = "256kb" }

    [[traffic]]
    name = "bulk"
    kind = "tcp"
    from = "home"
    to = "server"

    [population]
    sessions = 30

    [population.draw]
    "link.access.delay" = { from = "uniform", min = "5ms", max = "30ms" }

    [population.group.cable]
    weight = 3

    [population.group.cable.draw]
    "link.access.queue.limit" = { from = "choice", values = ["128kb", "256kb"] }

    [population.group.dsl.draw]
    "link.access.delay" = "40ms"
    "traffic.bulk.flows" = { from = "uniform", min = 2, max = 4 }
"#;

fn load(text: &str, overrides: &[&str]) -> Result<Experiment, String> {
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Experiment::parse(text, "homes.toml", &overrides).map_err(|error| error.to_string())
}

/// The members with the numbers from 1 on: their groups and scenarios.
fn members(experiment: &Experiment, point: usize, count: u64) -> Vec<(String, Scenario)> {
    let member = |number| experiment.member(point, number).unwrap().unwrap();
    (1..=count).map(member).map(|member| (member.drawn.group, member.point.scenario)).collect()
}

fn limit(scenario: &Scenario) -> u64 {
    let Qdisc::Bfifo(bfifo) = &scenario.links[0].forward.queue else { panic!("{:?}", scenario.links[0].forward.queue) };
    bfifo.limit_bytes
}

#[test]
fn members_belong_to_groups_by_weight_and_have_the_values_of_their_group() {
    let experiment = load(HOMES, &[]).unwrap();
    let members = members(&experiment, 0, 2000);
    let (cable, dsl): (Vec<_>, Vec<_>) = members.iter().partition(|(group, _)| group == "cable");
    // Three quarters of 2000: 1500 with a standard deviation of 19.
    assert!((1420..=1580).contains(&cable.len()), "{}", cable.len());
    for (_, scenario) in &cable {
        assert!([128 << 10, 256 << 10].contains(&limit(scenario)));
        assert!((5_000_000..=30_000_000).contains(&scenario.links[0].forward.delay_ns));
    }
    for (_, scenario) in &dsl {
        assert_eq!((limit(scenario), scenario.links[0].forward.delay_ns), (256 << 10, 40_000_000));
        let TrafficKind::Tcp(bulk) = &scenario.traffic[0].kind else { panic!("tcp") };
        assert!((2..=4).contains(&bulk.flows));
    }
    let large = cable.iter().filter(|(_, scenario)| limit(scenario) == 256 << 10).count();
    assert!(large * 3 > cable.len() && large * 3 < cable.len() * 2, "{large} of {}", cable.len());
}

#[test]
fn a_member_depends_on_its_number_alone() {
    let few = load(HOMES, &[]).unwrap();
    let many = load(HOMES, &["population.sessions=130000"]).unwrap();
    assert_eq!([few.document().repeat, many.document().repeat], [30, 130_000]);
    assert_eq!(members(&few, 0, 30), members(&many, 0, 30));
    let other_key = HOMES.replace("[population.draw]", "[population.draw]\n\"tcp.rmem_max\" = \"1mb\"");
    let delays = |experiment: &Experiment| -> Vec<u64> {
        members(experiment, 0, 30).iter().map(|(_, scenario)| scenario.links[0].forward.delay_ns).collect()
    };
    assert_eq!(delays(&load(&other_key, &[]).unwrap()), delays(&few), "another key is drawn, too");
}

#[test]
fn the_same_members_are_at_every_point_and_a_point_may_leave_what_was_drawn() {
    let sweep = "[sweep]\n\"link.access.queue\" = { own = \"drawn\", codel = { qdisc = \"codel\" } }";
    let experiment = load(&format!("{HOMES}\n{sweep}"), &[]).unwrap();
    let (own, codel) = (members(&experiment, 0, 50), members(&experiment, 1, 50));
    assert_eq!(members(&load(HOMES, &[]).unwrap(), 0, 50), own);
    for ((group, scenario), (group_with_codel, with_codel)) in own.iter().zip(&codel) {
        assert_eq!(
            (group, scenario.links[0].forward.delay_ns),
            (group_with_codel, with_codel.links[0].forward.delay_ns)
        );
        assert!(matches!(with_codel.links[0].forward.queue, Qdisc::Codel(_)));
    }
}

#[test]
fn an_override_takes_precedence_over_what_is_drawn() {
    let experiment = load(HOMES, &["link.access.delay=1ms"]).unwrap();
    assert!(members(&experiment, 0, 30).iter().all(|(_, scenario)| scenario.links[0].forward.delay_ns == 1_000_000));
    let members = members(&load(HOMES, &["population.group.dsl.weight=0.001"]).unwrap(), 0, 100);
    assert!(members.iter().all(|(group, _)| group == "cable"));
}

#[test]
fn without_its_population_the_file_is_an_ordinary_experiment() {
    let experiment = load(HOMES.split("[population]").next().unwrap(), &[]).unwrap();
    assert_eq!(experiment.member(0, 1).unwrap(), None);
    assert_eq!(load(HOMES, &[]).unwrap().points(), experiment.points());
}

#[test]
fn the_population_may_be_changed_while_a_member_runs() {
    let experiment = load(HOMES, &[]).unwrap();
    let scenario = members(&experiment, 0, 1).remove(0).1;
    let changed = experiment.changed(0, Some(1), &mut vec!["link.access.rate=2mbit".to_owned()]).unwrap();
    assert_eq!(changed.links[0].forward.delay_ns, scenario.links[0].forward.delay_ns);
    assert_eq!(changed.links[0].forward.queue, scenario.links[0].forward.queue);
}

#[test]
fn what_no_member_could_be_is_refused_before_anything_runs() {
    let bad = |old: &str, new: &str| load(&HOMES.replace(old, new), &[]).unwrap_err();
    for (old, new, expected) in [
        (
            "\"5ms\"",
            "\"5mbit\"",
            "population.draw.\"link.access.delay\": found \"5mbit\" to \"30ms\"; allowed: two numbers",
        ),
        ("\"128kb\"", "\"128kx\"", "link.access.queue.limit: found \"128kx\""),
        ("max = 4", "max = 40000", "traffic.bulk.flows: found 40000"),
        ("link.access.delay\" = \"40ms\"", "link.wan.delay\" = \"40ms\"", "link.wan: found no link of this name"),
        ("weight = 3", "weight = 0", "population.group.cable.weight: found 0"),
        ("sessions = 30", "sessions = 0", "population.sessions: found 0"),
        ("\"traffic.bulk.flows\"", "\"duration\"", "allowed: a path that begins with link, host, traffic or tcp"),
        ("\"traffic.bulk.flows\"", "\"link.access\"", "an incomplete path"),
        ("group.dsl.draw", "group.\"d s l\".draw", "found \"d s l\""),
        ("title", "repeat = 3\n    title", "repeat: found another number of runs"),
        ("from = \"uniform\", min = 2", "from = \"normal\", min = 2", "found \"normal\"; allowed: choice, uniform"),
    ] {
        let error = bad(old, new);
        assert!(error.starts_with("homes.toml: ") && error.contains(expected), "{new}: {error}");
    }
    let message = bad("max = 4", "max = 40000");
    assert!(
        message.contains("at the point a member of population.group.dsl with traffic.bulk.flows = 40000"),
        "{message}"
    );
    let missing = load(HOMES.split("[population]").next().unwrap(), &["population.sessions=3"]).unwrap_err();
    assert!(missing.contains("no [population]"), "{missing}");
}

#[test]
fn an_expectation_may_be_about_a_group_and_about_a_share() {
    let expect = |keys: &str| {
        format!("{HOMES}\n[[expect]]\nmetric = \"rtt.p50_ms\"\nsays = \"often\"\nband = [0.25, 1]\n{keys}")
    };
    let experiment = load(&expect("group = \"dsl\"\nshare_in = [600, inf]"), &["population.sessions=5"]).unwrap();
    let [expectation] = experiment.expectations() else { panic!("one") };
    assert_eq!(expectation.group.as_deref(), Some("dsl"));
    assert!(expectation.share_in.is_some_and(|share| share.contains(601.0) && !share.contains(599.0)));
    assert_eq!(expectation.not_applicable, None, "the source's statement is about any number of members");
    let error = load(&expect("group = \"fibre\""), &[]).unwrap_err();
    assert!(
        error.contains("expect[1].group: found \"fibre\"; allowed: a group of the population: cable or dsl"),
        "{error}"
    );
    let error = load(&expect("share_in = [3, 2]"), &[]).unwrap_err();
    assert!(error.contains("expect[1].share_in"), "{error}");
}
