//! A page's end of a channel, for tests and for the fuzz targets.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use dimpl::{Dtls, DtlsCertificate, Output};
use sctp_proto::{
    Association, AssociationHandle, ClientConfig, DatagramEvent, Endpoint, EndpointConfig, Payload,
    PayloadProtocolIdentifier as Kind, ReliabilityType,
};

use super::channel::{DATAGRAM_BYTES, NOBODY, STREAM};
use super::crypto;
use crate::server::certificate::Identity;

pub(super) fn certificate() -> DtlsCertificate {
    let identity = Identity::generate().expect("a certificate");
    DtlsCertificate { certificate: identity.certificate().to_vec(), private_key: identity.key().to_vec() }
}

pub(super) fn config() -> Arc<dimpl::Config> {
    let config = dimpl::Config::builder().with_crypto_provider(crypto::provider()).use_server_cookie(false).build();
    Arc::new(config.expect("a configuration"))
}

/// A page's end of a channel.
pub(super) struct Page {
    pub(super) dtls: Dtls,
    endpoint: Endpoint,
    pub(super) association: Association,
    handle: AssociationHandle,
    pub(super) is_connected: bool,
    /// The beginning of its last packet of SCTP: ports and verification tag.
    pub(super) head: [u8; 8],
}

impl Page {
    pub(super) fn new(own: DtlsCertificate, now: Instant) -> Self {
        let mut dtls = Dtls::new_12(config(), own, now);
        dtls.set_active(true);
        dtls.handle_timeout(now).expect("it begins");
        let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None);
        let (handle, association) = endpoint.connect(ClientConfig::default(), NOBODY).expect("it begins");
        Self { dtls, endpoint, association, handle, is_connected: false, head: [0; 8] }
    }

    /// What it sends, after it has taken a datagram.
    pub(super) fn step(&mut self, datagram: Option<&[u8]>, now: Instant) -> Result<Vec<Vec<u8>>, dimpl::Error> {
        if let Some(datagram) = datagram {
            self.dtls.handle_packet(datagram)?;
        }
        let mut out = Vec::new();
        for _ in 0..2 {
            let mut buffer = vec![0; DATAGRAM_BYTES];
            loop {
                match self.dtls.poll_output(&mut buffer) {
                    Output::Packet(packet) => out.push(packet.to_vec()),
                    Output::ApplicationData(packet) => {
                        let packet = Bytes::from(packet.to_vec());
                        if let Some((_, DatagramEvent::AssociationEvent(event))) =
                            self.endpoint.handle(now, NOBODY, None, None, packet)
                        {
                            self.association.handle_event(event);
                        }
                    }
                    Output::Connected => self.is_connected = true,
                    Output::Timeout(_) => break,
                    _ => {}
                }
            }
            while let Some(event) = self.association.poll_endpoint_event() {
                if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                    self.association.handle_event(event);
                }
            }
            while self.is_connected
                && let Some(transmit) = self.association.poll_transmit(now)
            {
                if let Payload::RawEncode(packets) = transmit.payload {
                    for packet in packets {
                        self.head = packet.first_chunk().copied().unwrap_or(self.head);
                        self.dtls.send_application_data(&packet)?;
                    }
                }
            }
        }
        Ok(out)
    }

    /// Sends a message, unordered and without repetitions.
    pub(super) fn write(&mut self, message: &[u8]) -> Result<(), sctp_proto::Error> {
        // It exists from the first message on.
        let _ = self.association.open_stream(STREAM, Kind::Binary);
        let mut stream = self.association.stream(STREAM)?;
        stream.set_reliability_params(true, ReliabilityType::Rexmit, 0)?;
        stream.write_with_ppi(message, Kind::Binary).map(drop)
    }
}
