//! Assigns packets to the classes or bands of a discipline.
//!
//! Source: Linux `net/sched/cls_u32.c` and `tcf_classify`: the first filter that fits decides.

use bufferscope_scenario::Match;

use crate::network::packet::Header;

#[derive(Debug)]
pub(crate) struct Classifier<T> {
    /// By code point: the class, and the number of the filter that selects it.
    by_dscp: Box<[(T, usize); 64]>,
    /// Ports, their classes, and the numbers of their filters, in order.
    by_port: Vec<(u16, T, usize)>,
}

impl<T: Copy> Classifier<T> {
    /// `filters` in order, each with its class. `other` returns the class of a code point that no filter matches.
    pub(crate) fn new<'a>(filters: impl Iterator<Item = (&'a Match, T)> + Clone, other: impl Fn(u8) -> T) -> Self {
        let by_dscp = |dscp: usize| {
            let fits = |chosen: &Match| *chosen == Match::Dscp(dscp as u8);
            let first = filters.clone().enumerate().find(|(_, (chosen, _))| fits(chosen));
            first.map_or_else(|| (other(dscp as u8), usize::MAX), |(number, (_, to))| (to, number))
        };
        let by_port = filters.clone().enumerate().flat_map(|(number, (chosen, to))| {
            let ports: &[u16] = if let Match::Ports(ports) = chosen { ports } else { &[] };
            ports.iter().map(move |port| (*port, to, number))
        });
        Self { by_dscp: Box::new(std::array::from_fn(by_dscp)), by_port: by_port.collect() }
    }

    /// The class of a packet.
    #[inline]
    pub(crate) fn of(&self, header: &Header) -> T {
        self.at(header.class.dscp(), header.port)
    }

    /// The class of packets with this code point, from or to a server at this port.
    #[inline]
    pub(crate) fn at(&self, dscp: u8, port: u16) -> T {
        let (to, number) = self.by_dscp[usize::from(dscp)];
        let by_port = self.by_port.iter().take_while(|filter| filter.2 < number).find(|filter| filter.0 == port);
        by_port.map_or(to, |filter| filter.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_filter_that_fits_decides_and_icmp_has_port_0() {
        let [echo, web] = [0, 443].map(|port| Match::Ports(vec![port]));
        let both = Match::Ports(vec![80, 443]);
        let (low, high) = (Match::Dscp(8), Match::Dscp(46));
        let filters = [(&low, 'a'), (&web, 'b'), (&high, 'c'), (&both, 'd'), (&echo, 'e')];
        let classifier = Classifier::new(filters.into_iter(), |dscp| if dscp == 10 { 'y' } else { 'z' });
        let at = [(8, 443), (46, 443), (46, 80), (0, 443), (10, 80)].map(|(dscp, port)| classifier.at(dscp, port));
        assert_eq!(at, ['a', 'b', 'c', 'b', 'd']);
        let at = [(0, 0), (46, 0), (10, 5001), (0, 5001)].map(|(dscp, port)| classifier.at(dscp, port));
        assert_eq!(at, ['e', 'c', 'y', 'z']);
    }
}
