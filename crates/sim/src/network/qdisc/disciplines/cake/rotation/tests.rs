//! Old flows in bundles, against a plain list of them.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::random::{Random, Stream};
use bufferscope_programs::Uniform;

/// A plain list of flows: a flow that may not send yet gets a share and moves to the end.
#[derive(Default)]
struct Plain {
    /// In front, the flow that was taken. `None` is the mark between laps.
    list: VecDeque<Option<(u16, Hosts, i32)>>,
    is_taken: bool,
}

impl Plain {
    fn new() -> Self {
        Self { list: VecDeque::from([None]), ..Self::default() }
    }

    fn append(&mut self, flow: u16, hosts: Hosts, deficit: i32) {
        self.list.push_back(Some((flow, hosts, deficit)));
    }

    fn send(&mut self, bytes: i32) {
        self.list[0].as_mut().unwrap().2 -= bytes;
    }

    fn remove_taken(&mut self) {
        self.list.pop_front();
        self.is_taken = false;
    }

    fn change_hosts(&mut self, flow: u16, hosts: Hosts) {
        let found = self.list.iter_mut().flatten().find(|member| member.0 == flow);
        if let Some(member) = found {
            member.1 = hosts;
        }
    }

    fn turn(&mut self, shares: &Shares, dither: i16) -> Option<(u16, i32)> {
        self.list.iter().flatten().next()?;
        self.is_taken = true;
        loop {
            match self.list[0] {
                None => {}
                Some((flow, _, deficit)) if deficit > 0 => return Some((flow, deficit)),
                Some((_, hosts, _)) => self.list[0].as_mut().unwrap().2 += rounded(shares.of(hosts), dither),
            }
            self.list.rotate_left(1);
        }
    }
}

/// The shares of quanta by pairs of hosts, in 65536ths of a byte.
#[derive(Default)]
struct Shares(BTreeMap<Hosts, u32>);

impl Shares {
    fn of(&self, hosts: Hosts) -> u32 {
        self.0.get(&hosts).copied().unwrap_or(1514 * 6553)
    }
}

/// What happens to the old flows of a tin.
#[derive(Clone, Debug)]
enum Step {
    /// A flow joins, between hosts and with a deficit.
    Append(Hosts, i32),
    /// The flow whose turn it is sends this many bytes.
    Send(i32),
    /// The flow whose turn it is leaves.
    Leave,
    /// The queue of a flow is used by another one.
    ChangeHosts(u16, Hosts),
    /// The flows of these hosts become more or fewer.
    Share(Hosts, u32),
}

/// Few pairs of hosts, or more than fit into a bundle.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    (1..=3_u16, 1..=3_u16).prop_flat_map(|(sources, destinations)| {
        let hosts = move || [0..sources, 0..destinations];
        let step = prop_oneof![
            3 => (hosts(), -1600..=20).prop_map(|(hosts, deficit)| Step::Append(hosts, deficit)),
            9 => (40..=1514).prop_map(Step::Send),
            2 => Just(Step::Leave),
            1 => (0..250_u16, hosts()).prop_map(|(flow, hosts)| Step::ChangeHosts(flow, hosts)),
            1 => (hosts(), 1..=1024_u32).prop_map(|(hosts, load)| Step::Share(hosts, 1514 * (65535 / load))),
        ];
        let joined = prop::collection::vec((hosts(), -1600..=20), 0..200);
        let joined = joined.prop_map(|all| all.into_iter().map(|(hosts, deficit)| Step::Append(hosts, deficit)));
        (joined, prop::collection::vec(step, 0..300)).prop_map(|(joined, steps)| joined.chain(steps).collect())
    })
}

proptest! {
    /// The same flows have the same turns with the same deficits, whatever happens between. All shares are rounded alike.
    #[test]
    fn bundles_do_what_visits_one_by_one_do(steps in steps(), rounds_up in any::<bool>()) {
        let (mut rotation, mut plain, mut shares) = (Rotation::new(), Plain::new(), Shares::default());
        let dithers = || if rounds_up { &[i16::MAX; MOST_MEMBERS] } else { &[i16::MIN; MOST_MEMBERS] };
        let dither = dithers()[0];
        let (mut flows, mut deficit) = (0, 0);
        let leaving = std::iter::repeat_n(Step::Leave, steps.len() + 1);
        for step in steps.iter().cloned().chain(leaving) {
            match step {
                Step::Append(hosts, deficit) => {
                    rotation.append(flows, hosts, deficit);
                    plain.append(flows, hosts, deficit);
                    flows += 1;
                }
                Step::ChangeHosts(flow, hosts) => {
                    rotation.change_hosts(flow, hosts);
                    plain.change_hosts(flow, hosts);
                }
                Step::Share(hosts, share) => {
                    shares.0.insert(hosts, share);
                }
                Step::Send(_) | Step::Leave => {
                    if rotation.taken().is_some() && deficit <= 0 {
                        rotation.put_back(deficit, |hosts| rounded(shares.of(hosts), dither));
                    }
                    if rotation.taken().is_none() {
                        let turn = rotation.turn(|hosts| shares.of(hosts), dithers);
                        prop_assert_eq!(turn, plain.turn(&shares, dither));
                        let Some((_, new)) = turn else { continue };
                        deficit = new;
                    }
                    if let Step::Send(bytes) = step {
                        deficit -= bytes;
                        plain.send(bytes);
                    } else {
                        rotation.remove_taken();
                        plain.remove_taken();
                    }
                }
            }
            check(&rotation);
        }
        prop_assert_eq!(rotation.turn(|hosts| shares.of(hosts), dithers), None);
    }
}

/// No bundle is empty or has too many members, and each knows whether its members have the same hosts.
fn check(rotation: &Rotation) {
    for bundle in &rotation.bundles {
        assert!((1..=MOST_MEMBERS).contains(&bundle.members.len()));
        assert_eq!(bundle.members.len(), bundle.deficits.len());
        let hosts = bundle.members[0].hosts;
        assert_eq!(bundle.same_hosts, bundle.members.iter().all(|member| member.hosts == hosts).then_some(hosts));
    }
    assert!(rotation.bundle <= rotation.bundles.len());
}

/// Of 1000 flows of a host, each has a turn before one has its second, and bundles do not become small.
#[test]
fn a_thousand_flows_take_turns_in_few_bundles() {
    let mut rotation = Rotation::new();
    let hosts = [0, 1];
    (0..1000).for_each(|flow| rotation.append(flow, hosts, -i32::from(flow)));
    let mut turns = vec![0; 1000];
    for _ in 0..10 {
        for _ in 0..1000 {
            let (flow, deficit) = rotation.turn(|_| 1514 * 65, || &[0; MOST_MEMBERS]).unwrap();
            turns[usize::from(flow)] += 1;
            rotation.put_back(deficit - 1514, |_| rounded(1514 * 65, 0));
        }
        let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most}");
    }
    assert!(rotation.bundles.len() <= 1000 / (MERGED_MEMBERS / 2), "{} bundles", rotation.bundles.len());
}

/// The kernel draws a number for each share. So what a flow gets in many laps is its share on average, and the
/// difference between two flows has the variance of independent numbers.
#[test]
fn shares_are_rounded_independently() {
    const LAPS: u16 = 20_000;
    for (scaled, hosts) in [1, 6_000, 32_768, 65_535, 3 * 65_536 + 20_000].into_iter().flat_map(|s| [(s, 1), (s, 2)]) {
        let mut bundle = Bundle::new();
        let member = |at: usize| Member { flow: at as u16, hosts: [0, at as u16 % hosts] };
        (0..MOST_MEMBERS).for_each(|at| bundle.insert(at, member(at), 0));
        let mut random = Random::new(1, Stream::Qdisc(0));
        for _ in 0..LAPS {
            bundle.give_all(window(random.bits() as i16), &mut |_| scaled);
        }
        bundle.settle();
        let (laps, share) = (f64::from(LAPS), f64::from(scaled) / 65_536.);
        let variance = laps * (share % 1.) * (1. - share % 1.);
        for deficit in &bundle.deficits {
            let error = f64::from(*deficit) - laps * share;
            assert!(error.abs() < 5. * variance.sqrt().max(1.), "{scaled}: {error} of {}", laps * share);
        }
        let squares: f64 = bundle.deficits.windows(2).map(|pair| f64::from(pair[0] - pair[1]).powi(2)).sum();
        let between = squares / (MOST_MEMBERS - 1) as f64;
        assert!(variance < 1. || (0.4..1.8).contains(&(between / (2. * variance))), "{scaled}: {between}, {variance}");
    }
}
