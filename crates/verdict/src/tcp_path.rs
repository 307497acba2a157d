//! Whether TCP takes the hops that UDP takes, from SYNs with a limited TTL on the idle path.

use std::collections::BTreeSet;

use crate::input::{AnswerKind, EndName, LadderProbe, Observations};

/// Fewer answers of a hop are not compared with those of UDP: a router that balances load may send any of them elsewhere.
const LEAST_ANSWERS: usize = 2;

/// What differs, in words; `None`: nothing, or too little is known.
pub(crate) fn difference(observations: &Observations) -> Option<String> {
    let udp: Vec<&LadderProbe> = observations.phases.iter().flat_map(|phase| &phase.ladder).collect();
    let tcp: Vec<&LadderProbe> = observations.phases.iter().flat_map(|phase| &phase.tcp_ladder).collect();
    let reached = tcp.iter().filter(|probe| probe.kind == AnswerKind::Destination && probe.rtt_ns.is_some());
    let tcp_links = reached.map(|probe| probe.ttl).min();
    let udp_links = observations.ends.client.hops_to_other;
    if let Some((tcp_links, udp_links)) = tcp_links.zip(udp_links).filter(|(tcp, udp)| tcp < udp) {
        return Some(format!(
            "TCP connections end after {tcp_links} of {udp_links} links: a proxy or a firewall answers in place of the server, so goodput \
             and handshakes are those of the way to it."
        ));
    }
    let most = tcp.iter().map(|probe| probe.ttl).max()?;
    let other: Vec<String> = (1..=most)
        .filter_map(|ttl| {
            let (by_tcp, by_udp) = (addresses(&tcp, ttl), addresses(&udp, ttl));
            let enough = by_tcp.len() >= LEAST_ANSWERS && by_udp.len() >= LEAST_ANSWERS;
            let unlike = by_tcp.iter().all(|address| !by_udp.contains(address));
            let named: BTreeSet<&str> = by_tcp.into_iter().collect();
            let usual: BTreeSet<&str> = by_udp.into_iter().collect();
            (enough && unlike).then(|| format!("hop {ttl} is {} and not {}", list(&named), list(&usual)))
        })
        .collect();
    (!other.is_empty()).then(|| {
        format!(
            "TCP takes other hops than UDP, whose hops the place of a queue rests on: {}. A device treats them unlike, or spreads \
             connections over several links.",
            other.join("; ")
        )
    })
}

/// The addresses that answered probes of the client with this TTL, one for each answer.
fn addresses<'a>(probes: &[&'a LadderProbe], ttl: u8) -> Vec<&'a str> {
    let of_hop = probes.iter().filter(|probe| {
        probe.end == EndName::Client && probe.ttl == ttl && probe.kind == AnswerKind::Exceeded && probe.rtt_ns.is_some()
    });
    of_hop.filter_map(|probe| probe.address.as_deref()).collect()
}

fn list(addresses: &BTreeSet<&str>) -> String {
    addresses.iter().copied().collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Phase;

    fn probe(ttl: u8, address: Option<&str>) -> LadderProbe {
        LadderProbe {
            t_ns: 0,
            end: EndName::Client,
            ttl,
            address: address.map(str::to_owned),
            rtt_ns: Some(1_000_000),
            kind: if address.is_some() { AnswerKind::Exceeded } else { AnswerKind::Destination },
            mpls: false,
        }
    }

    /// UDP has found hops 192.0.2.1 and 192.0.2.2, and the server behind three links.
    fn observed(tcp_ladder: Vec<LadderProbe>) -> Observations {
        let udp = |ttl: u8| probe(ttl, Some(&format!("192.0.2.{ttl}")));
        let phase = Phase { ladder: vec![udp(1), udp(2), udp(1), udp(2)], tcp_ladder, ..Phase::default() };
        let mut observations = Observations { phases: vec![phase], ..Observations::default() };
        observations.ends.client.hops_to_other = Some(3);
        observations
    }

    #[test]
    fn the_same_hops_are_no_difference_and_neither_is_a_single_answer() {
        let (first, second) = (probe(1, Some("192.0.2.1")), probe(2, Some("192.0.2.2")));
        let other = probe(2, Some("198.51.100.2"));
        for same in [
            vec![],
            vec![first.clone(), second.clone(), probe(3, None), first.clone(), second.clone()],
            // One of two equal links is that of UDP.
            vec![other.clone(), second, other.clone()],
            vec![first, other],
        ] {
            assert_eq!(difference(&observed(same)), None);
        }
    }

    #[test]
    fn other_hops_and_a_shorter_way_are_said() {
        let other = probe(2, Some("198.51.100.2"));
        let found = difference(&observed(vec![other.clone(), other, probe(3, None)])).unwrap();
        assert!(found.contains("hop 2 is 198.51.100.2 and not 192.0.2.2"), "{found}");
        let found = difference(&observed(vec![probe(2, None)])).unwrap();
        assert!(found.contains("end after 2 of 3 links"), "{found}");
    }
}
