//! Old flows in bundles, against a plain list of them.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;

/// A plain list of flows: a flow that may not send yet gets a share and moves to the end.
#[derive(Default)]
struct Plain {
    /// In front, the flow that was taken. `None` is the mark between laps.
    list: VecDeque<Option<(u16, Hosts, i32)>>,
    is_taken: bool,
    dither: u32,
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

    fn turn(&mut self, shares: &Shares, random: &mut Numbers) -> Option<(u16, i32)> {
        self.list.iter().flatten().next()?;
        self.is_taken = true;
        loop {
            match self.list[0] {
                None => self.dither = random.next(),
                Some((flow, _, deficit)) if deficit > 0 => return Some((flow, deficit)),
                Some((_, hosts, _)) => self.list[0].as_mut().unwrap().2 += rounded(shares.of(hosts), self.dither),
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

/// Numbers of 16 bits that look random (Knuth, "The Art of Computer Programming", volume 2, section 3.3.4).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 48) as u32
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
    /// The same flows have the same turns with the same deficits, whatever happens between.
    #[test]
    fn bundles_do_what_visits_one_by_one_do(steps in steps()) {
        let (mut rotation, mut plain, mut shares) = (Rotation::new(), Plain::new(), Shares::default());
        let (mut numbers, mut same) = (Numbers(1), Numbers(1));
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
                        rotation.put_back(deficit, |hosts| shares.of(hosts));
                    }
                    if rotation.taken().is_none() {
                        let turn = rotation.turn(|hosts| shares.of(hosts), || numbers.next());
                        prop_assert_eq!(turn, plain.turn(&shares, &mut same));
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
        prop_assert_eq!(rotation.turn(|hosts| shares.of(hosts), || numbers.next()), None);
        prop_assert_eq!(numbers.0, same.0);
    }
}

/// No bundle is empty or has too many members, and the limits of the deficits hold.
fn check(rotation: &Rotation) {
    for bundle in &rotation.bundles {
        assert!((1..=MOST_MEMBERS).contains(&bundle.members.len()));
    }
    assert!(rotation.bundle <= rotation.bundles.len());
}

/// Of 1000 flows of a host, each has a turn before one has its second, and bundles do not become small.
#[test]
fn a_thousand_flows_take_turns_in_few_bundles() {
    let (mut rotation, mut numbers) = (Rotation::new(), Numbers(1));
    let hosts = [0, 1];
    (0..1000).for_each(|flow| rotation.append(flow, hosts, -i32::from(flow)));
    let mut turns = vec![0; 1000];
    for _ in 0..10 {
        for _ in 0..1000 {
            let (flow, deficit) = rotation.turn(|_| 1514 * 65, || numbers.next()).unwrap();
            turns[usize::from(flow)] += 1;
            rotation.put_back(deficit - 1514, |_| 1514 * 65);
        }
        let (least, most) = (turns.iter().min().unwrap(), turns.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most}");
    }
    assert!(rotation.bundles.len() <= 1000 / (MERGED_MEMBERS / 2), "{} bundles", rotation.bundles.len());
}

/// 65,535 bytes in each of 100,000 laps and more are more than a deficit can count.
#[test]
fn what_was_given_wraps() {
    let mut rotation = Rotation::new();
    (0..2).for_each(|flow| rotation.append(flow, [0, 1], 0));
    for turn in 0..200_000_u32 {
        let taken = rotation.turn(|_| u32::MAX - 65_535, || 0);
        assert_eq!(taken, Some(((turn % 2) as u16, 65_535)));
        rotation.put_back(-65_535, |_| u32::MAX - 65_535);
    }
}
