//! Both ends of a page's channel without a network and with a clock that the caller sets: where the fuzz targets begin.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crc::{CRC_32_ISCSI, Crc};
use dimpl::DtlsCertificate;
use ring::digest::{SHA256, digest};

use super::channel::{Channel, DATAGRAM_BYTES};
use super::page::{Page, certificate, config};

/// The checksum of SCTP (RFC 9260, appendix A).
const CHECKSUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
/// Ends that talk to each other are silent after so many rounds.
const MOST_ROUNDS: usize = 20;
/// What a single datagram may make the server send.
const MOST_BYTES: usize = 64 * 1024;

/// The server's end, a page's end, and the present time.
pub struct Ends {
    server: Option<Channel>,
    page: Page,
    now: Instant,
}

impl Ends {
    /// Two ends that have not sent anything.
    pub fn new() -> Self {
        static CERTIFICATES: OnceLock<[DtlsCertificate; 2]> = OnceLock::new();
        let [server, page] = CERTIFICATES.get_or_init(|| [certificate(), certificate()]).clone();
        let now = Instant::now();
        let hash = digest(&SHA256, &page.certificate).as_ref().try_into().expect("32 bytes");
        let server = Channel::new(config(), server, hash, now).ok();
        Self { server, page: Page::new(page, now), now }
    }

    /// Whether the server's end still takes something.
    pub fn is_open(&self) -> bool {
        self.server.is_some()
    }

    /// A datagram reaches the server, which answers every message with as many bytes.
    pub fn take(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let Some(server) = &mut self.server else { return Vec::new() };
        let mut out = Vec::new();
        if server.take(datagram, self.now, &mut |message| Some(message.to_vec()), &mut out).is_err() {
            self.server = None;
        }
        self.check(out)
    }

    /// The two ends talk until they are silent. The first datagram of the page is altered by these bytes, from this one on.
    pub fn talk(&mut self, at: usize, alter: &[u8]) {
        let mut from_page = self.page.step(None, self.now).unwrap_or_default();
        for (byte, other) in from_page.iter_mut().flatten().skip(at).zip(alter) {
            *byte ^= other;
        }
        for _ in 0..MOST_ROUNDS {
            let to_page: Vec<_> = from_page.iter().flat_map(|datagram| self.take(datagram)).collect();
            let answers = to_page.iter().map(|datagram| self.page.step(Some(datagram), self.now).unwrap_or_default());
            from_page = answers.flatten().collect();
            if from_page.is_empty() {
                return;
            }
        }
    }

    /// The page sends a message.
    pub fn write(&mut self, message: &[u8]) {
        if self.page.write(message).is_ok() {
            self.talk(0, &[]);
        }
    }

    /// The page sends a packet of SCTP with these chunks, with the right checksum; as an association's or as a new one's.
    pub fn send(&mut self, chunks: &[u8], is_first: bool) {
        let mut packet = self.page.head.to_vec();
        if is_first {
            packet[4..].fill(0);
        }
        packet.extend([0; 4]);
        packet.extend(chunks);
        let sum = CHECKSUM.checksum(&packet);
        packet[8..12].copy_from_slice(&sum.to_le_bytes());
        if self.page.dtls.send_application_data(&packet).is_ok() {
            self.talk(0, &[]);
        }
    }

    /// Time passes.
    pub fn wait(&mut self, time: Duration) {
        self.now += time;
        let mut out = Vec::new();
        if self.server.as_mut().is_some_and(|server| server.look(self.now, &mut out).is_err()) {
            self.server = None;
        }
        for datagram in self.check(out) {
            let _ = self.page.step(Some(&datagram), self.now);
        }
    }

    fn check(&self, out: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        assert!(out.iter().all(|datagram| datagram.len() <= DATAGRAM_BYTES));
        let bytes: usize = out.iter().map(Vec::len).sum();
        assert!(bytes <= MOST_BYTES, "{bytes} bytes are sent for one datagram");
        out
    }
}

impl Default for Ends {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_sends_reaches_its_association() {
        let mut ends = Ends::new();
        ends.talk(0, &[]);
        ends.write(b"a message");
        // An unknown chunk, and one that ends the association (RFC 9260, sections 3.2 and 3.3.7).
        ends.send(&[0xbf, 0, 0, 4], false);
        ends.wait(Duration::from_secs(1));
        assert!(ends.is_open());
        ends.send(&[6, 0, 0, 4], false);
        assert!(!ends.is_open());
    }
}
