//! Guesses what a UDP datagram carries if it is not decoded: encrypted tunnels, and tunnels on other than their own
//! ports.

use super::quic::{self, Quic};

macro_rules! guesses {
    ($($(#[$doc:meta])* $name:ident = $word:literal,)*) => {
        /// What a datagram seems to carry.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Guess { $($(#[$doc])* $name,)* }

        impl Guess {
            /// Their names, in order.
            pub const WORDS: &[&str] = &[$($word),*];
        }
    };
}

guesses! {
    /// RFC 9000.
    Quic = "QUIC",
    /// A tunnel of WireGuard.
    WireGuard = "WireGuard (encrypted)",
    /// A tunnel of OpenVPN.
    OpenVpn = "OpenVPN (encrypted)",
    /// RFC 3948.
    Esp = "IPsec in UDP (encrypted)",
    /// RFC 9147.
    Dtls = "DTLS (encrypted)",
    /// VXLAN on another port than its own.
    Vxlan = "VXLAN on another port than 4789 and 8472",
    /// Geneve on another port than its own.
    Geneve = "Geneve on another port than 6081",
    /// GTP-U on another port than its own.
    GtpU = "GTP-U on another port than 2152",
    /// IP packets without a tunnel header (foo over UDP).
    Ip = "IP packets in UDP",
}

const OPENVPN_PORT: u16 = 1194;
const ESP_PORT: u16 = 4500;
const HTTPS_PORT: u16 = 443;

/// Guesses the contents of a datagram's payload.
#[inline]
pub(super) fn guess(ports: [u16; 2], payload: &[u8], payload_bytes: u32) -> Option<Guess> {
    match quic::header(payload) {
        Some(Quic::Long { .. }) => return Some(Guess::Quic),
        Some(Quic::Short { .. }) if ports.contains(&HTTPS_PORT) => return Some(Guess::Quic),
        _ => {}
    }
    match payload {
        _ if is_wireguard(payload, payload_bytes) => Some(Guess::WireGuard),
        _ if ports.contains(&OPENVPN_PORT) => Some(Guess::OpenVpn),
        [a, b, c, d, ..] if ports.contains(&ESP_PORT) && [*a, *b, *c, *d] != [0; 4] => Some(Guess::Esp),
        [20..=23, 0xfe, 0xfd | 0xff, ..] => Some(Guess::Dtls),
        _ if is_vxlan(payload) => Some(Guess::Vxlan),
        _ if is_geneve(payload) => Some(Guess::Geneve),
        [flags, 255, high, low, ..] if flags >> 4 == 3 && is_ip_behind(payload, flags & 7) => {
            (u32::from(u16::from_be_bytes([*high, *low])) + 8 == payload_bytes).then_some(Guess::GtpU)
        }
        [0x45, _, high, low, ..] => {
            (u32::from(u16::from_be_bytes([*high, *low])) == payload_bytes).then_some(Guess::Ip)
        }
        [version, _, _, _, high, low, ..] if version >> 4 == 6 => {
            (u32::from(u16::from_be_bytes([*high, *low])) + 40 == payload_bytes).then_some(Guess::Ip)
        }
        _ => None,
    }
}

/// The four messages, whose lengths are fixed or padded.
fn is_wireguard(payload: &[u8], payload_bytes: u32) -> bool {
    match payload {
        [1, 0, 0, 0, ..] => payload_bytes == 148,
        [2, 0, 0, 0, ..] => payload_bytes == 92,
        [3, 0, 0, 0, ..] => payload_bytes == 64,
        [4, 0, 0, 0, ..] => payload_bytes >= 32 && payload_bytes.is_multiple_of(16),
        _ => false,
    }
}

fn is_vxlan(payload: &[u8]) -> bool {
    matches!(payload, [0x08, 0, 0, 0, _, _, _, 0, ..]) && is_frame_of_ip(payload, 8)
}

fn is_geneve(payload: &[u8]) -> bool {
    matches!(payload, [0..=0x3f, 0 | 0x40, 0x65, 0x58, _, _, _, 0, ..])
        && is_frame_of_ip(payload, 8 + 4 * usize::from(payload[0]))
}

/// Whether there is an Ethernet frame at this offset that carries IP.
fn is_frame_of_ip(payload: &[u8], at: usize) -> bool {
    matches!(payload.get(at + 12..), Some([0x08, 0x00, 0x45..=0x4f, ..] | [0x86, 0xdd, 0x60..=0x6f, ..]))
}

fn is_ip_behind(payload: &[u8], optional: u8) -> bool {
    let at = if optional == 0 { 8 } else { 12 };
    payload.get(at).is_some_and(|first| matches!(first >> 4, 4 | 6))
}
