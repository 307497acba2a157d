//! The station at the other end of an 802.11 interface (generic netlink, `include/uapi/linux/nl80211.h`).
//!
//! For a client, that station is its access point. An access point has many stations, and nl80211 does not know which
//! of them leads to an address: nothing is reported unless there is only one.
//!
//! The backlog is that of the station's queues in mac80211, one for each TID (identifier of traffic). The statistics of
//! the interface itself (`NL80211_ATTR_TXQ_STATS`) are not read: they only count its queue for multicast.

use std::io;

use bufferscope_endpoint::bytes::{read_u16, read_u32};
use bufferscope_endpoint::netlink::{Malformed, Netlink, attributes, push_attribute};

/// Length of `struct genlmsghdr`: u8 command, u8 version, u16 reserved.
const GENL_HEADER_BYTES: usize = 4;
const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

const CMD_GET_INTERFACE: u8 = 5;
const CMD_NEW_INTERFACE: u8 = 7;
const CMD_GET_STATION: u8 = 17;
const CMD_NEW_STATION: u8 = 19;
const ATTR_IFINDEX: u16 = 3;
const ATTR_IFTYPE: u16 = 5;
const ATTR_MAC: u16 = 6;
const ATTR_STA_INFO: u16 = 21;
const IFTYPE_STATION: u32 = 2;
const IFTYPE_P2P_CLIENT: u32 = 8;

const STA_INFO_SIGNAL: u16 = 7;
const STA_INFO_TX_BITRATE: u16 = 8;
const STA_INFO_TX_RETRIES: u16 = 11;
const STA_INFO_TX_FAILED: u16 = 12;
const STA_INFO_STA_FLAGS: u16 = 17;
const STA_INFO_EXPECTED_THROUGHPUT: u16 = 27;
const STA_INFO_TID_STATS: u16 = 31;
const STA_FLAG_TDLS_PEER: u32 = 6;
const RATE_INFO_BITRATE: u16 = 1;
const RATE_INFO_BITRATE32: u16 = 5;
const TID_STATS_TXQ_STATS: u16 = 6;
const TXQ_STATS_BACKLOG_BYTES: u16 = 1;

type Mac = [u8; 6];

/// An 802.11 interface.
#[derive(Debug)]
pub(super) struct Wifi {
    netlink: Netlink,
    family: u16,
    interface: u32,
    /// Whether it is a client of an access point.
    is_client: bool,
    /// The station at the other end.
    peer: Option<Mac>,
}

/// What is known of a station. Counters count from the association.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Station {
    mac: Option<Mac>,
    /// Whether it is another client to which this one sends directly.
    is_direct: bool,
    pub(super) signal_dbm: Option<i32>,
    pub(super) tx_bps: Option<u64>,
    pub(super) retries: Option<u64>,
    pub(super) failed: Option<u64>,
    pub(super) expected_bps: Option<u64>,
    pub(super) backlog_bytes: Option<u64>,
}

impl Wifi {
    /// `None` if nl80211 does not know an interface with that index.
    pub(super) fn of(interface: u32) -> Option<Self> {
        let mut netlink = Netlink::open_generic().ok()?;
        let family = family(&mut netlink).ok()??;
        let mut kind = None;
        let question = about(CMD_GET_INTERFACE, interface, None);
        let asked = netlink.get_if_any(family, &question, |_, payload| {
            kind = interface_type(payload, interface)?;
            Ok(())
        });
        asked.ok()?;
        let is_client = matches!(kind?, IFTYPE_STATION | IFTYPE_P2P_CLIENT);
        Some(Self { netlink, family, interface, is_client, peer: None })
    }

    /// What is known of the station at the other end now.
    pub(super) fn station(&mut self) -> Option<Station> {
        // The station changes when a client moves to another access point.
        let station = self.peer.and_then(|peer| self.read(peer).ok()).or_else(|| self.find().ok().flatten());
        self.peer = station.and_then(|station| station.mac);
        station
    }

    fn read(&mut self, peer: Mac) -> io::Result<Station> {
        let mut found = None;
        let question = about(CMD_GET_STATION, self.interface, Some(peer));
        self.netlink.get_if_any(self.family, &question, |_, payload| {
            found = Station::of(payload, self.interface)?;
            Ok(())
        })?;
        let asked_for = |station: &Station| station.mac == Some(peer);
        found.filter(asked_for).ok_or_else(|| Malformed("an answer is not about the station asked for").into())
    }

    fn find(&mut self) -> io::Result<Option<Station>> {
        let mut choice = Choice { is_client: self.is_client, ..Choice::default() };
        let question = about(CMD_GET_STATION, self.interface, None);
        self.netlink.dump(self.family, &question, |_, payload| {
            if let Some(station) = Station::of(payload, self.interface)? {
                choice.see(station);
            }
            Ok(())
        })?;
        Ok(choice.made())
    }
}

/// Chooses among the stations of an interface.
#[derive(Debug, Default)]
struct Choice {
    is_client: bool,
    number: usize,
    first: Option<Station>,
}

impl Choice {
    fn see(&mut self, station: Station) {
        if !(self.is_client && station.is_direct) {
            self.number += 1;
            self.first = self.first.or(Some(station));
        }
    }

    fn made(self) -> Option<Station> {
        self.first.filter(|_| self.number == 1 || self.is_client)
    }
}

impl Station {
    /// `None` if the message is not about a station of that interface.
    fn of(payload: &[u8], interface: u32) -> Result<Option<Self>, Malformed> {
        let Some(parts) = parts(payload, CMD_NEW_STATION)? else { return Ok(None) };
        let (mut station, mut its_interface) = (Self::default(), None);
        for attribute in attributes(parts) {
            match attribute? {
                (ATTR_IFINDEX, value) => its_interface = read_u32(value, 0),
                (ATTR_MAC, value) => station.mac = value.try_into().ok(),
                (ATTR_STA_INFO, value) => station.read_info(value)?,
                _ => {}
            }
        }
        Ok((its_interface == Some(interface)).then_some(station))
    }

    /// Reads the nested `NL80211_ATTR_STA_INFO`.
    fn read_info(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let word = |value: &[u8]| read_u32(value, 0).map(u64::from);
        for attribute in attributes(bytes) {
            match attribute? {
                (STA_INFO_SIGNAL, value) => self.signal_dbm = value.first().map(|&dbm| i32::from(dbm as i8)),
                (STA_INFO_TX_BITRATE, value) => self.tx_bps = rate_bps(value)?,
                (STA_INFO_TX_RETRIES, value) => self.retries = word(value),
                (STA_INFO_TX_FAILED, value) => self.failed = word(value),
                // struct nl80211_sta_flag_update: u32 mask, u32 set.
                (STA_INFO_STA_FLAGS, value) => {
                    self.is_direct = read_u32(value, 4).is_some_and(|flags| flags & (1 << STA_FLAG_TDLS_PEER) != 0);
                }
                // In kbit/s.
                (STA_INFO_EXPECTED_THROUGHPUT, value) => self.expected_bps = word(value).map(|kbps| kbps * 1000),
                (STA_INFO_TID_STATS, value) => self.backlog_bytes = backlog(value)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A bit rate, which is in units of 100 kbit/s. The older of its two attributes has only 16 bits.
fn rate_bps(bytes: &[u8]) -> Result<Option<u64>, Malformed> {
    let (mut long, mut short) = (None, None);
    for attribute in attributes(bytes) {
        match attribute? {
            (RATE_INFO_BITRATE32, value) => long = read_u32(value, 0).map(u64::from),
            (RATE_INFO_BITRATE, value) => short = read_u16(value, 0).map(u64::from),
            _ => {}
        }
    }
    Ok(long.or(short).filter(|&rate| rate > 0).map(|rate| rate * 100_000))
}

/// The bytes in the queues of all TIDs: one attribute for each TID, and in it the statistics of
/// its queue. `None` if the driver uses no queues of mac80211.
fn backlog(bytes: &[u8]) -> Result<Option<u64>, Malformed> {
    let mut sum = None;
    for tid in attributes(bytes) {
        for statistics in attributes(tid?.1) {
            let (TID_STATS_TXQ_STATS, queue) = statistics? else { continue };
            for attribute in attributes(queue) {
                if let (TXQ_STATS_BACKLOG_BYTES, value) = attribute? {
                    let bytes = read_u32(value, 0).ok_or(Malformed("a backlog is cut off"))?;
                    sum = Some(sum.unwrap_or(0_u64).saturating_add(bytes.into()));
                }
            }
        }
    }
    Ok(sum)
}

/// The attributes of a message with that command.
fn parts(payload: &[u8], command: u8) -> Result<Option<&[u8]>, Malformed> {
    let parts = payload.get(GENL_HEADER_BYTES..).ok_or(Malformed("a generic netlink message is cut off"))?;
    Ok((payload.first() == Some(&command)).then_some(parts))
}

fn header(command: u8) -> Vec<u8> {
    vec![command, 1, 0, 0]
}

/// A question about an interface, or about one of its stations.
fn about(command: u8, interface: u32, station: Option<Mac>) -> Vec<u8> {
    let mut question = header(command);
    push_attribute(&mut question, ATTR_IFINDEX, &interface.to_ne_bytes());
    if let Some(mac) = station {
        push_attribute(&mut question, ATTR_MAC, &mac);
    }
    question
}

/// The number of the family nl80211, if the kernel has 802.11. All families are listed, because asking for this one
/// would make the kernel load the module.
fn family(netlink: &mut Netlink) -> io::Result<Option<u16>> {
    let mut found = None;
    netlink.dump(GENL_ID_CTRL, &header(CTRL_CMD_GETFAMILY), |_, payload| {
        found = found.or(family_number(payload)?);
        Ok(())
    })?;
    Ok(found)
}

/// The family's number, if it is nl80211.
fn family_number(payload: &[u8]) -> Result<Option<u16>, Malformed> {
    let parts = payload.get(GENL_HEADER_BYTES..).ok_or(Malformed("a generic netlink message is cut off"))?;
    let (mut number, mut is_it) = (None, false);
    for attribute in attributes(parts) {
        match attribute? {
            (CTRL_ATTR_FAMILY_ID, value) => number = read_u16(value, 0),
            (CTRL_ATTR_FAMILY_NAME, value) => is_it = value == b"nl80211\0",
            _ => {}
        }
    }
    Ok(number.filter(|_| is_it))
}

/// The type of the interface, if the message is about this one.
fn interface_type(payload: &[u8], interface: u32) -> Result<Option<u32>, Malformed> {
    let Some(parts) = parts(payload, CMD_NEW_INTERFACE)? else { return Ok(None) };
    let (mut kind, mut its_index) = (None, None);
    for attribute in attributes(parts) {
        match attribute? {
            (ATTR_IFINDEX, value) => its_index = read_u32(value, 0),
            (ATTR_IFTYPE, value) => kind = read_u32(value, 0),
            _ => {}
        }
    }
    Ok(kind.filter(|_| its_index == Some(interface)))
}

#[cfg(test)]
mod tests;
