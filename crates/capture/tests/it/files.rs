//! Capture files in all their variants.

use std::io::{Cursor, Write};

use crate::common::{block, enhanced, interface, option, order, pcap, section};
use bufferscope_capture::file::{FileError, Format, Reader};
use flate2::Compression;
use flate2::write::GzEncoder;

type Packets = Vec<(Option<i64>, usize, u32, Vec<u8>)>;

/// All packets, and the error that ended them.
fn packets(file: &[u8]) -> (Packets, Option<String>) {
    let mut reader = Reader::open(Cursor::new(file.to_vec())).unwrap();
    let mut packets = Vec::new();
    loop {
        match reader.advance() {
            Ok(true) => {
                let packet = reader.packet();
                packets.push((packet.t_ns, packet.interface, packet.wire_bytes, packet.data.to_vec()));
            }
            Ok(false) => return (packets, None),
            Err(error) => return (packets, Some(error.to_string())),
        }
    }
}

fn refusal(file: &[u8]) -> String {
    Reader::open(Cursor::new(file.to_vec())).unwrap_err().to_string()
}

#[test]
fn a_pcap_file_says_its_byte_order_and_its_unit_of_time_by_its_first_bytes() {
    for (magic, t_ns) in [(0xa1b2_c3d4, 5_000_007_000), (0xa1b2_3c4d, 5_000_000_007), (0xa1b2_cd34, 5_000_007_000)] {
        for big in [false, true] {
            let file = pcap(magic, big, 101, &[(5, 7, vec![1, 2, 3], 60), (6, 0, vec![], 0)]);
            let (found, error) = packets(&file);
            assert_eq!(error, None);
            assert_eq!(found[0], (Some(t_ns), 0, 60, vec![1, 2, 3]), "{magic:x} {big}");
            assert_eq!(found.len(), 2);
            let reader = Reader::open(Cursor::new(file)).unwrap();
            assert_eq!((reader.format(), reader.interfaces()[0].link_type), (Format::Pcap, 101));
        }
    }
}

#[test]
fn the_packets_before_the_cut_of_a_file_are_read() {
    let whole = pcap(0xa1b2_c3d4, false, 1, &[(1, 0, vec![1; 40], 40), (2, 0, vec![2; 40], 40)]);
    for cut in 1..56 {
        let (found, error) = packets(&whole[..whole.len() - cut]);
        assert_eq!(found.len(), 1, "{cut}");
        let within = if cut <= 40 { "a packet" } else { "a packet's header" };
        assert_eq!(error, Some(format!("ends at byte {}, within {within}", whole.len() - cut)));
    }
}

#[test]
fn sections_of_a_pcapng_file_have_their_own_byte_order_and_their_own_interfaces() {
    let mut file = section(false);
    file.extend(interface(false, 1, 96, &option(false, 2, b"eth0")));
    file.extend(enhanced(false, 0, 1_500_000, &[1, 2, 3, 4, 5], 1514));
    file.extend(section(true));
    let mut options = option(true, 2, b"wlan0");
    options.extend(option(true, 9, &[9]));
    options.extend(option(true, 14, &order(true, &10_i64.to_le_bytes())));
    file.extend(interface(true, 101, 0, &options));
    file.extend(interface(true, 276, 0, &[]));
    file.extend(enhanced(true, 0, 7, &[9], 1));
    file.extend(enhanced(true, 1, 7, &[8], 1));
    let (found, error) = packets(&file);
    assert_eq!(error, None);
    assert_eq!(found[0], (Some(1_500_000_000), 0, 1514, vec![1, 2, 3, 4, 5]));
    assert_eq!(found[1], (Some(10_000_000_007), 1, 1, vec![9]));
    assert_eq!(found[2], (Some(7000), 2, 1, vec![8]));
    let mut reader = Reader::open(Cursor::new(file)).unwrap();
    while reader.advance().unwrap() {}
    let known: Vec<_> = reader.interfaces().iter().map(|each| (each.name.as_deref(), each.link_type)).collect();
    assert_eq!(known, [(Some("eth0"), 1), (Some("wlan0"), 101), (None, 276)]);
    assert_eq!(reader.interfaces()[0].snap_bytes, 96);
}

#[test]
fn blocks_that_are_not_packets_are_skipped_and_those_of_statistics_say_what_was_lost() {
    let mut file = section(false);
    file.extend(interface(false, 1, 4, &[]));
    file.extend(block(false, 4, &[0; 20]));
    file.extend(block(false, 0x8000_0bad, &vec![7; 3_000_000]));
    let mut simple = 60_u32.to_le_bytes().to_vec();
    simple.extend([1, 2, 3, 4]);
    file.extend(block(false, 3, &simple));
    // The obsolete packet block: interface and drops in two bytes each.
    let mut obsolete = vec![0, 0, 5, 0];
    for value in [0_u32, 3, 2, 2] {
        obsolete.extend(value.to_le_bytes());
    }
    obsolete.extend([6, 7]);
    file.extend(block(false, 2, &obsolete));
    let mut statistics = vec![0; 12];
    statistics.extend(option(false, 4, &100_u64.to_le_bytes()));
    statistics.extend(option(false, 5, &17_u64.to_le_bytes()));
    statistics.extend(option(false, 7, &3_u64.to_le_bytes()));
    file.extend(block(false, 5, &statistics));
    let (found, error) = packets(&file);
    assert_eq!(error, None);
    assert_eq!(found, [(None, 0, 60, vec![1, 2, 3, 4]), (Some(3000), 0, 2, vec![6, 7])]);
    let mut reader = Reader::open(Cursor::new(file)).unwrap();
    while reader.advance().unwrap() {}
    assert_eq!(reader.interfaces()[0].lost, Some(20));
}

#[test]
fn lengths_that_nothing_can_have_are_refused_before_memory_is_taken() {
    let mut file = pcap(0xa1b2_c3d4, false, 1, &[]);
    file.extend([0; 8]);
    file.extend(u32::MAX.to_le_bytes());
    file.extend([0; 4]);
    let (_, error) = packets(&file);
    assert_eq!(error.unwrap(), "byte 32: found a packet of 4294967295 captured bytes; allowed: at most 1048576");
    let begin = [section(false), interface(false, 1, 0, &[])].concat();
    for (block, message) in [
        ([6_u32.to_le_bytes(), 0xffff_fff0_u32.to_le_bytes()].concat(), "allowed: at most 1310720"),
        ([6_u32.to_le_bytes(), 8_u32.to_le_bytes()].concat(), "allowed: at least 12"),
        ([99_u32.to_le_bytes(), 0xffff_ffff_u32.to_le_bytes()].concat(), "allowed: at least 12"),
        (enhanced(false, 5, 0, &[], 0), "found a packet of interface 5; allowed: one of the 1 of its section"),
        (block(false, 6, &[0; 8]), "too short for a packet"),
    ] {
        let (_, error) = packets(&[begin.clone(), block].concat());
        assert!(error.as_ref().is_some_and(|text| text.contains(message)), "{error:?} {message}");
    }
}

#[test]
fn a_file_that_is_no_capture_is_named_by_what_it_is() {
    assert_eq!(refusal(b""), "found an empty file; allowed: pcap and pcapng, also compressed with gzip");
    assert!(refusal(b"\x28\xb5\x2f\xfd....").contains("compressed with zstd"));
    assert!(refusal(b"hello").contains("begins with the bytes 68 65 6c 6c"));
    assert!(refusal(b"x").contains("begins with the bytes 78;"));
    assert!(refusal(&0xa1b2_c3d4_u32.to_le_bytes()).contains("ends at byte 4, within the file's header"));
    let mut other = pcap(0xa1b2_c3d4, false, 1, &[]);
    other[4] = 9;
    assert!(refusal(&other).contains("found version 9.4 of pcap; allowed: 2.x"));
}

#[test]
fn gzip_is_read_and_a_broken_one_ends_with_what_came_before() {
    let packets_of = |number: u32| (number, 0, (0..200).map(|byte| (byte * number) as u8).collect(), 200);
    let file = pcap(0xa1b2_c3d4, false, 1, &(0..5000).map(packets_of).collect::<Vec<_>>());
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&file).unwrap();
    let compressed = encoder.finish().unwrap();
    assert_eq!(packets(&compressed), packets(&file));
    let (found, error) = packets(&compressed[..compressed.len() / 2]);
    assert!(!found.is_empty() && found.len() < 5000);
    assert!(error.unwrap().starts_with("cannot be read at byte "));
    assert!(matches!(Reader::open(Cursor::new(vec![0x1f, 0x8b])), Err(FileError::Read { .. })));
}
