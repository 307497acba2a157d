//! The data channel of a page: SCTP over DTLS (RFC 8831), as a state machine without sockets.
//!
//! The channel is stream 0, negotiated by the page (no DCEP), unordered and without retransmissions. `dimpl` is DTLS and
//! `sctp-proto` SCTP: the parts of `str0m` that a data channel needs, without its media, its SDP and its providers of
//! cryptography, of which none uses what TLS has here.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use dimpl::{Dtls, DtlsCertificate, Output};
use ring::digest::{SHA256, digest};
use sctp_proto::{
    Association, AssociationHandle, DatagramEvent, Endpoint, EndpointConfig, Event, Payload,
    PayloadProtocolIdentifier as Kind, ReliabilityType, ServerConfig, TransportConfig,
};

/// The stream of the channel.
pub(super) const STREAM: u16 = 0;
/// A page needs one.
const MOST_STREAMS: u16 = 16;
/// SCTP's packets go through DTLS, so their addresses mean nothing.
pub(super) const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5000);
/// Longer messages are not pings.
pub(super) const LONGEST_MESSAGE: u32 = 256;
/// Memory for what arrives.
const RECEIVE_BYTES: u32 = 64 * 1024;
const PACKET_BYTES: u32 = 1150;
/// Time until what the page has not acknowledged is given up. That makes the congestion window small, and answers that wait for it
/// are not used, so it is longer than most queues. It cannot be much longer: in fast recovery, nothing else gives up a loss that
/// the page has not reported three times, and lost answers fill the window.
const RETRANSMISSION_MS: u64 = 2000;
/// The longest datagram of DTLS that is sent.
pub(super) const DATAGRAM_BYTES: usize = 2048;
/// A handshake takes at most this long.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// There are at most so many outputs of one input, or the other end makes us work for nothing.
const MOST_OUTPUTS: usize = 64;

/// Why the channel is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed(pub(super) &'static str);

const DTLS: Closed = Closed("DTLS has failed");
const SCTP: Closed = Closed("SCTP has failed");
const STRANGER: Closed = Closed("another certificate than the page's");

/// The channel.
pub(super) struct Channel {
    dtls: Dtls,
    endpoint: Endpoint,
    association: Option<(AssociationHandle, Association)>,
    /// The SHA-256 of the page's certificate.
    fingerprint: [u8; 32],
    is_trusted: bool,
    began: Instant,
    due: Instant,
    buffer: Vec<u8>,
}

impl Channel {
    /// Waits for the handshake of the page with this certificate.
    pub(super) fn new(
        config: Arc<dimpl::Config>,
        own: DtlsCertificate,
        fingerprint: [u8; 32],
        now: Instant,
    ) -> Result<Self, Closed> {
        let mut dtls = Dtls::new_12(config, own, now);
        dtls.handle_timeout(now).map_err(|_| DTLS)?;
        let mut endpoint = EndpointConfig::default();
        endpoint.max_payload_size(PACKET_BYTES);
        let transport = TransportConfig::default()
            .with_max_receive_buffer_size(RECEIVE_BYTES)
            .with_max_receive_message_size(LONGEST_MESSAGE)
            .with_max_send_message_size(LONGEST_MESSAGE)
            .with_max_num_inbound_streams(MOST_STREAMS)
            .with_max_num_outbound_streams(MOST_STREAMS)
            .with_rto_initial_ms(RETRANSMISSION_MS)
            .with_rto_min_ms(RETRANSMISSION_MS)
            .with_rto_max_ms(RETRANSMISSION_MS);
        let mut server = ServerConfig::default();
        server.transport = Arc::new(transport);
        let endpoint = Endpoint::new(Arc::new(endpoint), Some(Arc::new(server)));
        Ok(Self {
            dtls,
            endpoint,
            association: None,
            fingerprint,
            is_trusted: false,
            began: now,
            due: now,
            buffer: vec![0; DATAGRAM_BYTES],
        })
    }

    /// Takes a datagram. `answer` gives the answer to a message; what is to be sent is put into `out`. Returns whether that
    /// includes all answers: others wait until the congestion window has room.
    pub(super) fn take(
        &mut self,
        datagram: &[u8],
        now: Instant,
        answer: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<bool, Closed> {
        self.dtls.handle_packet(datagram).map_err(|_| DTLS)?;
        let packets = self.flush(out)?;
        if packets.is_empty() {
            return Ok(true);
        }
        if !self.is_trusted {
            return Err(STRANGER);
        }
        for packet in packets {
            self.take_packet(packet, now);
        }
        let answered = self.answer(answer)?;
        Ok(self.send(now, out)? >= answered)
    }

    /// Does what is due by now.
    pub(super) fn look(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) -> Result<(), Closed> {
        if !self.is_trusted && now > self.began + HANDSHAKE {
            return Err(Closed("its handshake took too long"));
        }
        if now >= self.due {
            self.dtls.handle_timeout(now).map_err(|_| DTLS)?;
            self.flush(out)?;
        }
        if let Some((_, association)) = &mut self.association
            && association.poll_timeout().is_some_and(|due| now >= due)
        {
            association.handle_timeout(now);
            self.send(now, out)?;
        }
        Ok(())
    }

    /// Takes what DTLS has to send into `out`; returns what it has decrypted.
    fn flush(&mut self, out: &mut Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, Closed> {
        let mut packets = Vec::new();
        for _ in 0..MOST_OUTPUTS {
            match self.dtls.poll_output(&mut self.buffer) {
                Output::Packet(packet) => out.push(packet.to_vec()),
                Output::ApplicationData(packet) => packets.push(packet.to_vec()),
                Output::PeerCert(certificate) => {
                    self.is_trusted = digest(&SHA256, certificate).as_ref() == self.fingerprint;
                    if !self.is_trusted {
                        return Err(STRANGER);
                    }
                }
                Output::Timeout(due) => {
                    self.due = due;
                    return Ok(packets);
                }
                Output::CloseNotify => return Err(Closed("the page has closed it")),
                Output::BufferTooSmall { .. } => return Err(DTLS),
                _ => {}
            }
        }
        Err(DTLS)
    }

    fn take_packet(&mut self, packet: Vec<u8>, now: Instant) {
        match self.endpoint.handle(now, NOBODY, None, None, Bytes::from(packet)) {
            Some((handle, DatagramEvent::NewAssociation(association))) => {
                // A page has one, and each takes memory in the library until the channel is over.
                self.endpoint.reject_new_associations();
                self.association = Some((handle, association));
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut self.association {
                    association.handle_event(event);
                }
            }
            None => {}
        }
    }

    /// Returns the bytes of the answers.
    fn answer(&mut self, answer: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>) -> Result<usize, Closed> {
        let Some((handle, association)) = &mut self.association else { return Ok(0) };
        while let Some(event) = association.poll_endpoint_event() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                association.handle_event(event);
            }
        }
        while let Some(event) = association.poll() {
            if matches!(event, Event::AssociationLost { .. }) {
                return Err(Closed("the page does not answer"));
            }
        }
        let Ok(mut stream) = association.stream(STREAM) else { return Ok(0) };
        let mut answered = 0;
        stream.set_reliability_params(true, ReliabilityType::Rexmit, 0).map_err(|_| SCTP)?;
        while let Some(message) = stream.read().map_err(|_| SCTP)? {
            let mut bytes = vec![0; message.len()];
            let is_whole = message.read(&mut bytes).is_ok_and(|length| length == bytes.len());
            if !is_whole || message.ppi != Kind::Binary {
                continue;
            }
            if let Some(answer) = answer(&bytes) {
                answered += stream.write_with_ppi(&answer, Kind::Binary).map_err(|_| SCTP)?;
            }
        }
        Ok(answered)
    }

    /// Sends what SCTP has to send; returns how many bytes that are, headers included.
    fn send(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) -> Result<usize, Closed> {
        let Some((_, association)) = &mut self.association else { return Ok(0) };
        let mut packets = Vec::new();
        while let Some(transmit) = association.poll_transmit(now) {
            if let Payload::RawEncode(more) = transmit.payload {
                packets.extend(more);
            }
        }
        while let Some(transmit) = self.endpoint.poll_transmit() {
            if let Payload::RawEncode(more) = transmit.payload {
                packets.extend(more);
            }
        }
        let sent = packets.iter().map(Bytes::len).sum();
        for packet in packets {
            self.dtls.send_application_data(&packet).map_err(|_| DTLS)?;
            self.flush(out)?;
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sctp_proto::ClientConfig;

    use super::super::page::{Page, certificate, config};
    use super::*;

    fn fingerprint(certificate: &DtlsCertificate) -> [u8; 32] {
        digest(&SHA256, &certificate.certificate).as_ref().try_into().unwrap()
    }

    /// Both ends of a channel, until they have nothing to send.
    fn talk(page: &mut Page, channel: &mut Channel, now: Instant) -> Result<usize, Closed> {
        let (mut answers, mut rounds) = (0, 0);
        let mut from_page = page.step(None, now).unwrap();
        while !from_page.is_empty() && rounds < 50 {
            rounds += 1;
            let mut out = Vec::new();
            for datagram in from_page.drain(..) {
                let mut answer = |message: &[u8]| {
                    answers += 1;
                    Some(message.iter().rev().copied().collect())
                };
                channel.take(&datagram, now, &mut answer, &mut out)?;
            }
            from_page = out.iter().flat_map(|datagram| page.step(Some(datagram), now).unwrap()).collect();
        }
        Ok(answers)
    }

    #[test]
    fn a_message_is_answered_through_dtls_and_sctp_and_nothing_is_repeated() {
        let (now, own, server) = (Instant::now(), certificate(), certificate());
        let mut channel = Channel::new(config(), server, fingerprint(&own), now).unwrap();
        let mut page = Page::new(own, now);
        assert_eq!(talk(&mut page, &mut channel, now), Ok(0));
        for seq in 0..200_u8 {
            page.write(&[1, 2, seq]).unwrap();
            assert_eq!(talk(&mut page, &mut channel, now), Ok(1), "{seq}");
            let message = page.association.stream(STREAM).unwrap().read().unwrap().unwrap();
            let mut bytes = vec![0; message.len()];
            message.read(&mut bytes).unwrap();
            assert_eq!(bytes, [seq, 2, 1]);
        }
        // The page has gone: nothing is sent again for what it has not acknowledged.
        let mut stream = page.association.stream(STREAM).unwrap();
        stream.write_with_ppi(&[0; 40], Kind::Binary).unwrap();
        for datagram in page.step(None, now).unwrap() {
            channel.take(&datagram, now, &mut |message| Some(message.to_vec()), &mut Vec::new()).unwrap();
        }
        let mut later = Vec::new();
        for second in 1..30 {
            channel.look(now + Duration::from_secs(second), &mut later).unwrap();
        }
        // What skips it, and its repetitions.
        assert!(later.iter().all(|datagram| datagram.len() < 80), "{later:?}");
    }

    #[test]
    fn a_channel_goes_on_while_a_quarter_of_the_packets_is_lost() {
        let (start, own) = (Instant::now(), certificate());
        let mut channel = Channel::new(config(), certificate(), fingerprint(&own), start).unwrap();
        let mut page = Page::new(own, start);
        talk(&mut page, &mut channel, start).unwrap();
        let mut random = 1_u32;
        let mut is_lost = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            random >> 30 == 0
        };
        let mut answered = [0; 4];
        for tick in 0..1600_u32 {
            let now = start + tick * Duration::from_millis(25);
            if page.association.poll_timeout().is_some_and(|due| now >= due) {
                page.association.handle_timeout(now);
            }
            page.write(&[7; 40]).unwrap();
            let (mut to_server, mut to_page) = (page.step(None, now).unwrap(), Vec::new());
            channel.look(now, &mut to_page).unwrap();
            while !to_server.is_empty() || !to_page.is_empty() {
                for datagram in to_server.drain(..).filter(|_| !is_lost()) {
                    channel.take(&datagram, now, &mut |message| Some(message.to_vec()), &mut to_page).unwrap();
                }
                for datagram in to_page.drain(..).filter(|_| !is_lost()) {
                    to_server.extend(page.step(Some(&datagram), now).unwrap());
                }
            }
            while page.association.stream(STREAM).unwrap().read().unwrap().is_some() {
                answered[tick as usize / 400] += 1;
            }
        }
        // 400 pings each, of which 9 in 16 are neither lost on their way nor on that of their answers.
        assert!(answered.iter().all(|count| (190..260).contains(count)), "{answered:?}");
    }

    #[test]
    fn a_page_that_begins_again_and_again_has_one_association() {
        let (now, own) = (Instant::now(), certificate());
        let mut channel = Channel::new(config(), certificate(), fingerprint(&own), now).unwrap();
        let mut page = Page::new(own.clone(), now);
        talk(&mut page, &mut channel, now).unwrap();
        let (mut other, config) = (Endpoint::new(Arc::new(EndpointConfig::default()), None), ClientConfig::default());
        let (_, mut association) = other.connect(config, NOBODY).unwrap();
        let begin = association.poll_transmit(now).unwrap().payload;
        let Payload::RawEncode(packets) = begin else { panic!("no packets") };
        assert!(channel.endpoint.handle(now, NOBODY, None, None, packets[0].clone()).is_none());
        page.write(&[1]).unwrap();
        assert_eq!(talk(&mut page, &mut channel, now), Ok(1), "the first one goes on");
    }

    #[test]
    fn a_page_with_another_certificate_is_refused() {
        let now = Instant::now();
        let mut channel = Channel::new(config(), certificate(), fingerprint(&certificate()), now).unwrap();
        assert_eq!(talk(&mut Page::new(certificate(), now), &mut channel, now), Err(STRANGER));
    }

    #[test]
    fn a_handshake_that_does_not_end_is_given_up() {
        let now = Instant::now();
        let mut channel = Channel::new(config(), certificate(), [0; 32], now).unwrap();
        let mut out = Vec::new();
        assert_eq!(channel.look(now + HANDSHAKE, &mut out), Ok(()));
        assert_eq!(
            channel.look(now + HANDSHAKE + Duration::from_millis(1), &mut out),
            Err(Closed("its handshake took too long"))
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_datagram_is_taken_or_ends_the_channel(
            at in 0..100_usize,
            garbage in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let (now, own) = (Instant::now(), certificate());
            let mut channel = Channel::new(config(), certificate(), fingerprint(&own), now).unwrap();
            let mut out = Vec::new();
            let mut hello = Page::new(own, now).step(None, now).unwrap().remove(0);
            for (place, byte) in hello.iter_mut().skip(at).zip(&garbage) {
                *place ^= byte;
            }
            let _ = channel.take(&hello, now, &mut |_| None, &mut out);
            let _ = channel.take(&garbage, now, &mut |_| None, &mut out);
        }
    }
}
