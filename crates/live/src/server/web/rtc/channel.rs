//! The data channel of a page: SCTP over DTLS (RFC 8831), as a state machine without sockets.
//!
//! The channel is stream 0, negotiated by the page (no DCEP), unordered and without retransmissions. `dimpl` is DTLS and
//! `sctp-proto` SCTP: the parts of `str0m` that a data channel needs, without its media and its SDP, and without a provider of
//! cryptography that has to be compiled from C.

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
const STREAM: u16 = 0;
/// SCTP's packets go through DTLS, so their addresses mean nothing.
const NOBODY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 5000);
/// Longer messages are not pings.
pub(super) const LONGEST_MESSAGE: u32 = 256;
/// Memory for what arrives.
const RECEIVE_BYTES: u32 = 64 * 1024;
const PACKET_BYTES: u32 = 1150;
/// Answers are never repeated, so a timeout would only make the congestion window small, and answers wait for a window. The gaps that the page
/// acknowledges show earlier what is lost.
const RETRANSMISSION_MS: u64 = 30_000;
/// The longest datagram of DTLS that is sent.
const DATAGRAM_BYTES: usize = 2048;
/// A handshake takes at most this long.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// There are at most so many outputs of one input, or the other end makes us work for nothing.
const MOST_OUTPUTS: usize = 64;

/// The channel is over, or the other end is not the page that it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed;

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
        dtls.handle_timeout(now).map_err(|_| Closed)?;
        let mut endpoint = EndpointConfig::default();
        endpoint.max_payload_size(PACKET_BYTES);
        let transport = TransportConfig::default()
            .with_max_receive_buffer_size(RECEIVE_BYTES)
            .with_max_receive_message_size(LONGEST_MESSAGE)
            .with_max_send_message_size(LONGEST_MESSAGE)
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

    /// Takes a datagram. `answer` gives the answer to a message; what is to be sent is put into `out`.
    pub(super) fn take(
        &mut self,
        datagram: &[u8],
        now: Instant,
        answer: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>,
        out: &mut Vec<Vec<u8>>,
    ) -> Result<(), Closed> {
        self.dtls.handle_packet(datagram).map_err(|_| Closed)?;
        let packets = self.flush(out)?;
        if !packets.is_empty() {
            if !self.is_trusted {
                return Err(Closed);
            }
            for packet in packets {
                self.take_packet(packet, now);
            }
            self.answer(answer)?;
            self.send(now, out)?;
        }
        Ok(())
    }

    /// Does what is due by now.
    pub(super) fn look(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) -> Result<(), Closed> {
        if !self.is_trusted && now > self.began + HANDSHAKE {
            return Err(Closed);
        }
        if now >= self.due {
            self.dtls.handle_timeout(now).map_err(|_| Closed)?;
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
                        return Err(Closed);
                    }
                }
                Output::Timeout(due) => {
                    self.due = due;
                    return Ok(packets);
                }
                Output::CloseNotify | Output::BufferTooSmall { .. } => return Err(Closed),
                _ => {}
            }
        }
        Err(Closed)
    }

    fn take_packet(&mut self, packet: Vec<u8>, now: Instant) {
        match self.endpoint.handle(now, NOBODY, None, None, Bytes::from(packet)) {
            // A repeated beginning is not another channel.
            Some((handle, DatagramEvent::NewAssociation(association))) if self.association.is_none() => {
                self.association = Some((handle, association));
            }
            Some((_, DatagramEvent::AssociationEvent(event))) => {
                if let Some((_, association)) = &mut self.association {
                    association.handle_event(event);
                }
            }
            _ => {}
        }
    }

    fn answer(&mut self, answer: &mut dyn FnMut(&[u8]) -> Option<Vec<u8>>) -> Result<(), Closed> {
        let Some((handle, association)) = &mut self.association else { return Ok(()) };
        while let Some(event) = association.poll_endpoint_event() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                association.handle_event(event);
            }
        }
        while let Some(event) = association.poll() {
            if matches!(event, Event::AssociationLost { .. }) {
                return Err(Closed);
            }
        }
        let Ok(mut stream) = association.stream(STREAM) else { return Ok(()) };
        stream.set_reliability_params(true, ReliabilityType::Rexmit, 0).map_err(|_| Closed)?;
        while let Some(message) = stream.read().map_err(|_| Closed)? {
            let mut bytes = vec![0; message.len()];
            let is_whole = message.read(&mut bytes).is_ok_and(|length| length == bytes.len());
            if !is_whole || message.ppi != Kind::Binary {
                continue;
            }
            if let Some(answer) = answer(&bytes) {
                stream.write_with_ppi(&answer, Kind::Binary).map_err(|_| Closed)?;
            }
        }
        Ok(())
    }

    /// Sends what SCTP has to send.
    fn send(&mut self, now: Instant, out: &mut Vec<Vec<u8>>) -> Result<(), Closed> {
        let Some((_, association)) = &mut self.association else { return Ok(()) };
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
        for packet in packets {
            self.dtls.send_application_data(&packet).map_err(|_| Closed)?;
            self.flush(out)?;
        }
        Ok(())
    }
}
