//! Sizes of packets and of their headers: Ethernet and IPv4 without options.

/// The largest IP packet on Ethernet.
pub const MTU_BYTES: u32 = 1500;
/// The Ethernet header, which the kernel counts on top of an IP packet.
pub const ETHERNET_HEADER_BYTES: u32 = 14;
/// A full Ethernet frame as the kernel counts it.
pub const FRAME_BYTES: u32 = MTU_BYTES + ETHERNET_HEADER_BYTES;
/// The IP header (RFC 791).
pub const IP_HEADER_BYTES: u32 = 20;
/// The TCP header without options (RFC 9293, section 3.1).
pub const TCP_HEADER_BYTES: u32 = 20;
/// TCP's timestamps with their padding (RFC 7323, appendix A).
pub const TIMESTAMPS_BYTES: u32 = 12;
/// TCP payload of a full packet. Connections have timestamps.
pub const MSS_BYTES: u32 = MTU_BYTES - IP_HEADER_BYTES - TCP_HEADER_BYTES - TIMESTAMPS_BYTES;
/// The IP header and the UDP header (RFC 768), or that of an ICMP echo message (RFC 792): both have 8 bytes.
pub const DATAGRAM_HEADER_BYTES: u32 = IP_HEADER_BYTES + 8;
