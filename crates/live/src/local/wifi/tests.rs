//! Messages of nl80211, made by hand after its header file. (The machines that run the tests have no Wi-Fi.)

use proptest::prelude::*;

use super::*;

const AP: Mac = [2, 0, 0, 0, 0, 1];

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push_attribute(&mut bytes, kind, value);
    bytes
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_ne_bytes())
}

/// `NLA_F_NESTED`, which some nested attributes have.
const NESTED: u16 = 0x8000;

/// A TID with so many bytes in its queue.
fn tid(kind: u16, backlog_bytes: u32) -> Vec<u8> {
    let queue = [number(TXQ_STATS_BACKLOG_BYTES, backlog_bytes), number(2, 3)].concat();
    attribute(kind, &[attribute(2, &7_u64.to_ne_bytes()), attribute(TID_STATS_TXQ_STATS, &queue)].concat())
}

/// The access point of interface 3: -61 dBm, 866.7 Mbit/s, 12 retries, 1 failure, 400 Mbit/s expected, and 4542 bytes in
/// the queues of two TIDs.
fn message() -> Vec<u8> {
    let rate = [attribute(RATE_INFO_BITRATE, &8667_u16.to_ne_bytes()), number(RATE_INFO_BITRATE32, 8667)].concat();
    let info = [
        attribute(STA_INFO_SIGNAL, &[-61_i8 as u8]),
        attribute(STA_INFO_TX_BITRATE | NESTED, &rate),
        number(STA_INFO_TX_RETRIES, 12),
        number(STA_INFO_TX_FAILED, 1),
        attribute(STA_INFO_STA_FLAGS, &[0xff, 0, 0, 0, 0x2a, 0, 0, 0]),
        number(STA_INFO_EXPECTED_THROUGHPUT, 400_000),
        attribute(STA_INFO_TID_STATS, &[tid(1, 3028), tid(7, 1514)].concat()),
    ]
    .concat();
    let parts = [number(ATTR_IFINDEX, 3), attribute(ATTR_MAC, &AP), attribute(ATTR_STA_INFO, &info)].concat();
    [header(CMD_NEW_STATION), parts].concat()
}

#[test]
fn a_station_is_read() {
    let expected = Station {
        mac: Some(AP),
        is_direct: false,
        signal_dbm: Some(-61),
        tx_bps: Some(866_700_000),
        retries: Some(12),
        failed: Some(1),
        expected_bps: Some(400_000_000),
        backlog_bytes: Some(4542),
    };
    assert_eq!(Station::of(&message(), 3), Ok(Some(expected)));
    assert_eq!(Station::of(&message(), 4), Ok(None), "another interface");
}

#[test]
fn what_a_driver_leaves_out_is_unknown() {
    let parts = [number(ATTR_IFINDEX, 3), attribute(ATTR_MAC, &AP), attribute(ATTR_STA_INFO, &[])].concat();
    let station = Station::of(&[header(CMD_NEW_STATION), parts].concat(), 3).unwrap().unwrap();
    assert_eq!(station, Station { mac: Some(AP), ..Station::default() });
}

#[test]
fn an_old_kernel_has_rates_of_16_bits() {
    assert_eq!(rate_bps(&attribute(RATE_INFO_BITRATE, &540_u16.to_ne_bytes())), Ok(Some(54_000_000)));
    assert_eq!(rate_bps(&[]), Ok(None));
    assert_eq!(rate_bps(&number(RATE_INFO_BITRATE32, u32::MAX)), Ok(Some(429_496_729_500_000)));
}

#[test]
fn a_client_s_station_is_its_access_point() {
    let station = |last: u8, is_direct| Station { mac: Some([2, 0, 0, 0, 0, last]), is_direct, ..Station::default() };
    let chosen = |is_client, stations: &[Station]| {
        let mut choice = Choice { is_client, ..Choice::default() };
        stations.iter().for_each(|station| choice.see(*station));
        choice.made()
    };
    assert_eq!(chosen(true, &[station(5, true), station(1, false)]), Some(station(1, false)));
    assert_eq!(chosen(true, &[]), None);
    assert_eq!(chosen(false, &[station(1, false)]), Some(station(1, false)));
    assert_eq!(chosen(false, &[station(1, false), station(2, false)]), None, "an access point with two stations");
}

#[test]
fn the_family_and_the_interface_are_read() {
    let family = |name: &[u8]| {
        let number = attribute(CTRL_ATTR_FAMILY_ID, &0x1c_u16.to_ne_bytes());
        family_number(&[vec![1, 2, 0, 0], attribute(CTRL_ATTR_FAMILY_NAME, name), number].concat())
    };
    assert_eq!(family(b"nl80211\0"), Ok(Some(0x1c)));
    assert_eq!(family(b"ethtool\0"), Ok(None));
    let answer = [header(CMD_NEW_INTERFACE), number(ATTR_IFINDEX, 3), number(ATTR_IFTYPE, IFTYPE_STATION)].concat();
    assert_eq!(interface_type(&answer, 3), Ok(Some(IFTYPE_STATION)));
    assert_eq!(interface_type(&answer, 4), Ok(None));
}

#[test]
fn questions_are_as_the_header_file_has_them() {
    let question = about(CMD_GET_STATION, 3, Some(AP));
    let expected = [vec![17, 1, 0, 0], number(3, 3), attribute(6, &AP)].concat();
    assert_eq!((question.len(), question), (24, expected));
}

#[test]
fn nl80211_does_not_know_the_loopback_device() {
    assert!(Wifi::of(1).is_none());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = (Station::of(&bytes, 3), family_number(&bytes), interface_type(&bytes, 3));
        let _ = Station::default().read_info(&bytes);
    }

    #[test]
    fn a_message_that_is_cut_or_changed_never_panics(at in 0_usize..400, value: u8) {
        let mut bytes = message();
        let at = at % bytes.len();
        let _ = Station::of(&bytes[..at], 3);
        bytes[at] = value;
        let _ = Station::of(&bytes, 3);
    }
}
