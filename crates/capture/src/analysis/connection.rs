//! A connection, as seen from each vantage point.

use bufferscope_records::{
    FlowDirection, Half, Method, OneWayRow, Recorder, RetransmissionKind, RetransmissionRow, RoundTripRow, Sink,
};

use super::capture_points::CapturePoints;
use super::flow::{Flow, FlowSummary};
use super::one_way::Pairs;
use super::skew;
use super::stamps::Stamped;
use super::stream::{Acknowledgement, Sent, Stream};
use crate::{Endpoint, Flags, Segment};

/// Maximum number of vantage points that are followed for one connection.
const MOST_VIEWS: usize = 4;
/// Round trips before the first data: those of the handshake, at each vantage point.
const MOST_EARLY: usize = 2 * MOST_VIEWS;

/// A connection as seen from one vantage point, or from two that see one direction each.
#[derive(Debug)]
struct View {
    from: CapturePoints,
    /// By direction: 0 is from the first end.
    streams: [Stream; 2],
    /// The window scale that the sender of each direction announced. Inner `None`: it announced none.
    scales: [Option<Option<u8>>; 2],
    /// The time to live of the first segment of each direction.
    ttls: [Option<u8>; 2],
    /// Whether segments of each direction were seen.
    seen: [bool; 2],
}

/// A round-trip time from the view with this index: that of the half path to the receiver of `direction`.
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    view: usize,
    direction: usize,
    t_ns: i64,
    method: Method,
    rtt_ns: u64,
}

/// A connection between two ends.
#[derive(Debug)]
pub(super) struct Connection {
    ends: [Endpoint; 2],
    views: Vec<View>,
    /// The view from which the rows of each direction come.
    nearest: [usize; 2],
    flows: [Option<Flow>; 2],
    /// Round trips that were seen before a direction became a flow with its first data.
    early: Vec<RoundTrip>,
    last_ns: i64,
    was_reset: bool,
    /// The initial sequence numbers of the first SYN of each direction.
    opened_with: [Option<u32>; 2],
    /// The packets of each direction at the first two vantage points, once there are two.
    pairs: Option<Box<[Pairs; 2]>>,
    /// The skew of the second vantage point's clock relative to the first's. It is determined at the end, if at all.
    skew: Option<f64>,
}

/// The parts of the analysis that a connection needs to record its rows.
pub(super) struct Context<'a, S: Sink> {
    pub(super) recorder: &'a mut Recorder<S>,
    pub(super) interval_ns: i64,
    /// The number of the next flow.
    pub(super) next_flow: &'a mut u32,
    pub(super) sampled: &'a mut u64,
}

impl Connection {
    pub(super) fn new(ends: [Endpoint; 2]) -> Self {
        Self {
            ends,
            views: Vec::with_capacity(1),
            nearest: [0; 2],
            flows: [None, None],
            early: Vec::new(),
            last_ns: 0,
            was_reset: false,
            opened_with: [None; 2],
            pairs: None,
            skew: None,
        }
    }

    /// Whether a SYN begins another connection between the same ends.
    pub(super) fn is_reopened_by(&self, segment: &Segment, direction: usize) -> bool {
        segment.flags.has(Flags::SYN)
            && match self.opened_with[direction] {
                Some(sequence) => sequence != segment.seq && (self.is_over() || !segment.flags.has(Flags::ACK)),
                None => self.is_over(),
            }
    }

    /// Whether it has ended, as seen from its nearest vantage points.
    pub(super) fn is_over(&self) -> bool {
        self.was_reset || self.views.iter().any(|view| view.streams.iter().all(Stream::is_over))
    }

    pub(super) fn ends(&self) -> [Endpoint; 2] {
        self.ends
    }

    pub(super) fn last_ns(&self) -> i64 {
        self.last_ns
    }

    /// Number of ranges in memory.
    pub(super) fn held(&self) -> usize {
        let pairs: usize = self.pairs.iter().flat_map(|pairs| pairs.iter()).map(Pairs::held).sum();
        pairs + self.views.iter().flat_map(|view| &view.streams).map(Stream::held).sum::<usize>()
    }

    /// Processes a segment sent by the end `direction`.
    pub(super) fn segment<S: Sink>(&mut self, segment: &Segment, direction: usize, context: &mut Context<'_, S>) {
        let Some(index) = self.view(segment, direction) else { return };
        self.last_ns = self.last_ns.max(segment.t_ns);
        self.was_reset |= segment.flags.has(Flags::RST);
        if segment.flags.has(Flags::SYN) && self.opened_with[direction].is_none() {
            self.opened_with[direction] = Some(segment.seq);
        }
        if self.views.len() > 1 && index < 2 {
            self.pairs.get_or_insert_default()[direction].seen(segment, index);
        }
        self.choose_nearest(index, direction, segment.ttl);
        self.name_flow(segment, direction, context);
        self.sample(segment.t_ns, context);
        let back = 1 - direction;
        let view = &mut self.views[index];
        view.seen[direction] = true;
        if segment.flags.has(Flags::SYN) {
            view.scales[direction] = Some(segment.options.window_scale);
        }
        let new = view.stamped(segment, direction);
        let echoed = view.echoed(segment, direction, new);
        let acknowledged = view.acknowledged(segment, direction);
        let samples = [(Method::Acknowledgement, acknowledged), (Method::Timestamp, echoed)];
        for (method, rtt_ns) in samples {
            if let Some(rtt_ns) = rtt_ns {
                self.round_trip(
                    RoundTrip { view: index, direction: back, t_ns: segment.t_ns, method, rtt_ns },
                    context,
                );
            }
        }
        for direction in [0, 1] {
            self.settle(index, direction, false, context);
        }
    }

    /// The view of a segment's vantage point, or `None` if there are too many.
    fn view(&mut self, segment: &Segment, direction: usize) -> Option<usize> {
        let known = CapturePoints::find(self.views.iter_mut().map(|view| &mut view.from), segment, direction);
        if known.is_some() {
            return known;
        }
        if self.views.len() == MOST_VIEWS {
            return None;
        }
        self.views.push(View {
            from: CapturePoints::new(segment, direction),
            streams: Default::default(),
            scales: [None; 2],
            ttls: [None; 2],
            seen: [false; 2],
        });
        Some(self.views.len() - 1)
    }

    /// Updates the vantage point nearest to a sender: the one that sees its packets with the highest time to live.
    fn choose_nearest(&mut self, index: usize, direction: usize, ttl: u8) {
        if self.views[index].ttls[direction].is_some() {
            return;
        }
        self.views[index].ttls[direction] = Some(ttl);
        let best = self.views[self.nearest[direction]].ttls[direction];
        if best.is_none_or(|best| ttl > best) {
            self.nearest[direction] = index;
        }
    }

    /// Makes a direction a flow at its first payload.
    fn name_flow<S: Sink>(&mut self, segment: &Segment, direction: usize, context: &mut Context<'_, S>) {
        if segment.payload_bytes == 0 || self.flows[direction].is_some() {
            return;
        }
        let name = context.recorder.intern(super::TRAFFIC).numbered(*context.next_flow);
        let ends = [self.ends[direction], self.ends[1 - direction]];
        self.flows[direction] = Some(Flow::new(*context.next_flow, name, ends, segment.t_ns, context.interval_ns));
        *context.next_flow = context.next_flow.saturating_add(1);
        for seen in std::mem::take(&mut self.early) {
            self.record_round_trip(direction, seen, context);
            if self.flows[1 - direction].is_none() {
                self.early.push(seen);
            }
        }
    }

    /// Records the samples that were due before this time. Without acknowledgements there is nothing to sample.
    fn sample<S: Sink>(&mut self, t_ns: i64, context: &mut Context<'_, S>) {
        for direction in [0, 1] {
            let Some(flow) = &mut self.flows[direction] else { continue };
            let stream = &self.views[self.nearest[direction]].streams[direction];
            for due in flow.due(t_ns, context.interval_ns).into_iter().flatten() {
                if stream.una.is_some() {
                    context.recorder.flow(flow.row(due, stream, false));
                    *context.sampled += 1;
                }
            }
        }
    }

    /// Records a round-trip time for both directions: the half path to the receiver of one is that to the sender of the
    /// other.
    fn round_trip<S: Sink>(&mut self, seen: RoundTrip, context: &mut Context<'_, S>) {
        if self.flows.iter().any(Option::is_none) && self.early.len() < MOST_EARLY {
            self.early.push(seen);
        }
        for direction in [0, 1] {
            self.record_round_trip(direction, seen, context);
        }
    }

    /// Records a round trip for the flow of a direction, if there is one yet.
    fn record_round_trip<S: Sink>(&mut self, direction: usize, seen: RoundTrip, context: &mut Context<'_, S>) {
        let Some(flow) = &mut self.flows[direction] else { return };
        if self.nearest[direction] != seen.view {
            return;
        }
        let half = if seen.direction == direction { Half::Receiver } else { Half::Sender };
        flow.halves.add(half, seen.method, seen.rtt_ns);
        let t_ns = u64::try_from(seen.t_ns).unwrap_or(0);
        let row = RoundTripRow { t_ns, flow: flow.name, half, method: seen.method, rtt_ns: seen.rtt_ns };
        context.recorder.round_trip(row);
    }

    /// Records the retransmissions whose classification is final.
    fn settle<S: Sink>(&mut self, index: usize, direction: usize, at_end: bool, context: &mut Context<'_, S>) {
        while let Some(again) = self.views[index].streams[direction].settled(at_end) {
            let is_nearest = self.nearest[direction] == index;
            let Some(flow) = self.flows[direction].as_mut().filter(|_| is_nearest) else { continue };
            let kinds = &mut flow.kinds;
            *match again.kind {
                RetransmissionKind::Syn => &mut kinds.syn,
                RetransmissionKind::Fast => &mut kinds.fast,
                RetransmissionKind::Timeout => &mut kinds.timeout,
                RetransmissionKind::TailLossProbe => &mut kinds.tail_loss_probe,
                RetransmissionKind::Late => &mut kinds.late,
            } += 1;
            kinds.spurious += u64::from(again.spurious);
            context.recorder.retransmission(RetransmissionRow {
                t_ns: u64::try_from(again.t_ns).unwrap_or(0),
                flow: flow.name,
                bytes: u64::from(again.bytes),
                kind: again.kind,
                spurious: again.spurious.then_some(true),
            });
        }
    }

    /// Ends the connection: records the last samples, and returns the summaries of its flows.
    pub(super) fn finish<S: Sink>(mut self, context: &mut Context<'_, S>) -> impl Iterator<Item = FlowSummary> {
        for index in 0..self.views.len() {
            for direction in [0, 1] {
                self.settle(index, direction, true, context);
            }
        }
        self.skew = self.find_skew();
        self.record_one_way(context);
        let last_ns = self.last_ns;
        for direction in [0, 1] {
            let Some(flow) = &self.flows[direction] else { continue };
            let stream = &self.views[self.nearest[direction]].streams[direction];
            if stream.una.is_some() {
                context.recorder.flow(flow.row(last_ns, stream, true));
            }
        }
        [0, 1].into_iter().filter_map(move |direction| self.summary(direction))
    }

    /// The skew of the second vantage point's clock relative to the first's; `None`: not known.
    fn find_skew(&self) -> Option<f64> {
        let pairs = self.pairs.as_ref()?;
        if self.views[0].from.has_the_clock_of(&self.views[1].from) {
            return None;
        }
        let mut ways = [Vec::new(), Vec::new()];
        for direction in [0, 1] {
            // Packets that pass the first vantage point first travel towards the second.
            let first = self.nearest[direction].min(1);
            ways[first].extend(pairs[direction].delays(first));
        }
        let [towards, back] = ways;
        skew::skew(towards, back)
    }

    /// Records the changes of the one-way delays of each flow's data and acknowledgements.
    fn record_one_way<S: Sink>(&self, context: &mut Context<'_, S>) {
        let Some(pairs) = &self.pairs else { return };
        for direction in [0, 1] {
            let first = self.nearest[direction].min(1);
            let skew = self.skew.unwrap_or(0.0) * if first == 0 { 1.0 } else { -1.0 };
            for (t_ns, has_data, change_ns) in pairs[direction].changes(first, skew) {
                let (flow, way) = if has_data {
                    (&self.flows[direction], FlowDirection::Data)
                } else {
                    (&self.flows[1 - direction], FlowDirection::Acknowledgements)
                };
                if let Some(flow) = flow {
                    let t_ns = u64::try_from(t_ns).unwrap_or(0);
                    context.recorder.one_way(OneWayRow { t_ns, flow: flow.name, way, change_ns });
                }
            }
        }
    }

    /// The vantage points that saw a direction, except that of its flow.
    fn others(&self, direction: usize) -> impl Iterator<Item = u16> {
        let others = self.views.iter().enumerate().filter(move |(index, _)| *index != self.nearest[direction]);
        others.map(move |(_, view)| view.from.vantage_point_of(direction))
    }

    fn summary(&self, direction: usize) -> Option<FlowSummary> {
        let flow = self.flows[direction].as_ref()?;
        let nearest = &self.views[self.nearest[direction]];
        let stream = &nearest.streams[direction];
        let counts = &stream.counts;
        let is_acknowledged = stream.una.is_some();
        Some(FlowSummary {
            name: format!("{}/{}", super::TRAFFIC, flow.number),
            from: flow.from.into(),
            to: flow.to.into(),
            vantage_point: nearest.from.vantage_point_of(direction),
            other_vantage_points: self.others(direction).collect(),
            first_ns: u64::try_from(flow.first_ns).unwrap_or(0),
            last_ns: u64::try_from(self.last_ns).unwrap_or(0),
            segments: counts.segments,
            delivered_bytes: is_acknowledged.then(|| stream.delivered_bytes()),
            largest_flight_bytes: is_acknowledged.then_some(counts.largest_flight_bytes),
            mss_bytes: stream.mss_bytes,
            retransmissions: flow.kinds.clone(),
            reordered: counts.reordered,
            duplicates: counts.duplicates,
            keep_alives: counts.keep_alives,
            window_probes: counts.window_probes,
            unseen_bytes: counts.unseen_bytes,
            jumbos: counts.jumbos,
            zero_windows: counts.zero_windows,
            jumps: counts.jumps,
            ce_marks: counts.ce,
            ece: nearest.streams[1 - direction].counts.ece,
            cwr: counts.cwr,
            window_scale_known: nearest.scales.iter().all(Option::is_some),
            both_directions: nearest.seen == [true; 2],
            clock_skew: self.skew,
        })
    }
}

impl View {
    /// Processes a segment in its own direction. Returns whether it has new bytes.
    fn stamped(&mut self, segment: &Segment, direction: usize) -> bool {
        let stream = &mut self.streams[direction];
        let syn = segment.flags.has(Flags::SYN);
        let sent = stream.sent(segment);
        if let Some((value, _)) = segment.options.timestamps {
            let stamped = Stamped {
                answered: segment.payload_bytes > 0 || syn,
                after_gap: stream.after_gap && !syn,
                again: matches!(sent, Some(Sent::Again(_) | Sent::WindowProbe)),
            };
            stream.stamps.sent(value, segment.t_ns, stamped);
        }
        sent == Some(Sent::New)
    }

    /// Processes its echo of a timestamp of the other direction.
    fn echoed(&mut self, segment: &Segment, direction: usize, new: bool) -> Option<u64> {
        let (_, echo) = segment.options.timestamps?;
        let stamps = &mut self.streams[1 - direction].stamps;
        if segment.flags.has(Flags::ACK) { stamps.echoed(echo, segment.t_ns, new) } else { None }
    }

    /// Processes its acknowledgement of the other direction.
    fn acknowledged(&mut self, segment: &Segment, direction: usize) -> Option<u64> {
        if !segment.flags.has(Flags::ACK) {
            return None;
        }
        let window_bytes = self.window_bytes(segment, direction);
        self.streams[1 - direction].acknowledged(&Acknowledgement { segment, window_bytes })
    }

    /// The advertised window (RFC 7323, section 2): scaled if both ends announced a scale, never on a SYN.
    fn window_bytes(&self, segment: &Segment, direction: usize) -> Option<u64> {
        let window = u64::from(segment.window);
        if segment.flags.has(Flags::SYN) {
            return Some(window);
        }
        match (self.scales[direction], self.scales[1 - direction]) {
            (Some(Some(scale)), Some(Some(_))) => Some(window << scale.min(14)),
            (Some(None), _) | (_, Some(None)) => Some(window),
            _ if window == 0 => Some(0),
            _ => None,
        }
    }
}
