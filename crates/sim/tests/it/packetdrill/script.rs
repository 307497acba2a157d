//! One endpoint, and a peer that the test controls.

use bufferscope_sim::Ecn;
use bufferscope_sim::tcp::{
    Config, Egress, Endpoint, Flags, Outgoing, Role, SackBlock, SackBlocks, Sample, Segment, State,
};
use std::collections::VecDeque;
use std::ops::Range;

const NS_PER_MS: u64 = 1_000_000;
/// The window in most scripts: 257 units of 128 bytes.
const WINDOW: u32 = 257 * 128;

/// packetdrill's settings (`gtests/net/common/defaults.sh`), with segments of 1000 bytes.
pub(crate) const DEFAULTS: Config =
    Config { mss_bytes: 1000, slow_start_after_idle: false, rmem_default_bytes: 540_000, ..Config::DEFAULT };

/// A script being played.
pub(crate) struct Script {
    end: Endpoint,
    now_ns: u64,
    mss_bytes: u64,
    /// Window that the peer's segments offer.
    pub(crate) window: u32,
    /// Next sequence number of the peer.
    peer_nxt: u64,
    /// Segments that were sent and not yet checked, with the time in milliseconds.
    sent: VecDeque<(u64, Outgoing)>,
    /// Discards the segments that are sent.
    pub(crate) ignores_sent: bool,
}

impl Script {
    /// A server that a peer has connected to; `rtt_ms` pass between SYN-ACK and the handshake's last acknowledgement.
    pub(crate) fn accept(config: &Config, rtt_ms: u64) -> Self {
        let mut script = Self::new(config, Role::Server);
        script.inject(0, Flags::SYN, Ecn::NotEct, |syn| syn.seq = 0);
        script.expect_flags(Flags::SYN | Flags::ACK);
        script.after(rtt_ms).ack(1);
        script
    }

    /// An endpoint before its handshake.
    pub(crate) fn new(config: &Config, role: Role) -> Self {
        Self {
            end: Endpoint::new(config, role),
            now_ns: 0,
            mss_bytes: config.mss_bytes.into(),
            window: WINDOW,
            peer_nxt: 1,
            sent: VecDeque::new(),
            ignores_sent: false,
        }
    }

    /// Time passes.
    pub(crate) fn after(&mut self, ms: u64) -> &mut Self {
        self.after_us(1000 * ms)
    }

    /// The same in microseconds.
    pub(crate) fn after_us(&mut self, us: u64) -> &mut Self {
        let until_ns = self.now_ns + 1000 * us;
        while let Some(deadline_ns) = self.end.deadline().filter(|&ns| ns <= until_ns) {
            self.now_ns = self.now_ns.max(deadline_ns);
            self.act(|end, now_ns, out| end.on_timer(now_ns, out));
        }
        self.now_ns = until_ns;
        self
    }

    /// Now, in milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ns / NS_PER_MS
    }

    /// The application writes.
    pub(crate) fn write(&mut self, bytes: u64) -> &mut Self {
        self.act(|end, now_ns, out| end.offer(now_ns, bytes, out));
        self
    }

    /// The application closes.
    pub(crate) fn close(&mut self) -> &mut Self {
        self.act(Endpoint::finish_sending);
        self
    }

    /// The application connects.
    pub(crate) fn connect(&mut self) -> &mut Self {
        self.act(Endpoint::connect);
        self
    }

    /// The peer acknowledges everything before `ack`.
    pub(crate) fn ack(&mut self, ack: u64) -> &mut Self {
        self.inject(ack, Flags::ACK, Ecn::NotEct, |_| {})
    }

    /// The same with selective acknowledgements.
    pub(crate) fn sack(&mut self, ack: u64, blocks: &[Range<u64>]) -> &mut Self {
        self.inject(ack, Flags::ACK, Ecn::NotEct, |segment| segment.sack = sack_blocks(ack, blocks))
    }

    /// The peer sends the payload `range`.
    pub(crate) fn data(&mut self, range: Range<u64>) -> &mut Self {
        self.inject(1, Flags::ACK, Ecn::NotEct, |segment| {
            (segment.seq, segment.len) = (range.start, (range.end - range.start) as u32);
        })
    }

    /// The peer sends any segment: `change` starts from one without payload.
    pub(crate) fn inject(&mut self, ack: u64, flags: Flags, ecn: Ecn, change: impl FnOnce(&mut Segment)) -> &mut Self {
        if let Some((ms, unexpected)) = self.sent.front().filter(|_| !self.ignores_sent) {
            panic!("at {} ms: sent at {ms} ms, and not expected: {unexpected:?}", self.now_ms());
        }
        self.sent.clear();
        let mut segment = Segment {
            seq: self.peer_nxt,
            ack,
            len: 0,
            window_bytes: self.window,
            ts_val: (self.now_ns / NS_PER_MS) as u32 + 1,
            ts_ecr: 0,
            sack: SackBlocks::NONE,
            flags,
        };
        change(&mut segment);
        self.act(|end, now_ns, out| end.on_segment(now_ns, &segment, ecn, out));
        self
    }

    fn act(&mut self, action: impl FnOnce(&mut Endpoint, u64, &mut dyn Egress)) {
        let mut out = vec![];
        action(&mut self.end, self.now_ns, &mut out);
        self.sent.extend(out.into_iter().map(|outgoing| (self.now_ns / NS_PER_MS, outgoing)));
    }

    /// Checks that exactly this payload was sent next, in consecutive segments. Returns the time in milliseconds.
    pub(crate) fn sends(&mut self, range: Range<u64>) -> u64 {
        let (ms, first) = self.next_sent();
        let mut end = first.segment.end();
        assert_eq!(first.segment.seq, range.start, "at {} ms: {first:?}", self.now_ms());
        while end < range.end {
            let (_, next) = self.next_sent();
            assert_eq!(next.segment.seq, end, "at {} ms", self.now_ms());
            end = next.segment.end();
        }
        assert_eq!(end, range.end, "at {} ms", self.now_ms());
        ms
    }

    /// A segment with exactly these flags was sent next.
    pub(crate) fn expect_flags(&mut self, flags: Flags) -> Outgoing {
        let (_, sent) = self.next_sent();
        assert_eq!(sent.segment.flags, flags, "at {} ms: {sent:?}", self.now_ms());
        sent
    }

    /// The next segment sent.
    pub(crate) fn next_sent(&mut self) -> (u64, Outgoing) {
        self.sent
            .pop_front()
            .unwrap_or_else(|| panic!("nothing was sent until {} ms: {:?}", self.now_ms(), self.info()))
    }

    /// An acknowledgement was sent next, up to `ack` and with these blocks.
    pub(crate) fn acks(&mut self, ack: u64, blocks: &[Range<u64>]) {
        let (_, Outgoing { segment, .. }) = self.next_sent();
        let blocks_seen: Vec<_> = segment.sack.iter(segment.ack).map(|block| block.start..block.end).collect();
        assert_eq!((segment.ack, segment.len, blocks_seen.as_slice()), (ack, 0, blocks), "at {} ms", self.now_ms());
    }

    /// Checks that nothing more was sent.
    pub(crate) fn sends_nothing(&self) -> &Self {
        assert!(self.sent.is_empty(), "at {} ms: {:?}", self.now_ms(), self.sent);
        self
    }

    /// The connection's state.
    pub(crate) fn info(&self) -> Sample {
        self.end.sample(self.now_ns)
    }

    /// Congestion window in packets.
    pub(crate) fn cwnd(&self) -> u64 {
        self.info().cwnd_bytes / self.mss_bytes
    }

    /// Threshold in packets.
    pub(crate) fn ssthresh(&self) -> Option<u64> {
        self.info().ssthresh_bytes.map(|bytes| bytes / self.mss_bytes)
    }

    /// Congestion state.
    pub(crate) fn state(&self) -> State {
        self.info().state
    }
}

fn sack_blocks(ack: u64, blocks: &[Range<u64>]) -> SackBlocks {
    let mut sack = SackBlocks::NONE;
    blocks.iter().for_each(|block| sack.push(ack, SackBlock { start: block.start, end: block.end }));
    sack
}
