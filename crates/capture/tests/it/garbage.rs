//! For any input, reading terminates and its results are consistent.

use std::ops::ControlFlow;

use crate::common::{
    block, echo, enhanced, ethernet, ethernet_pcap, interface, ipv4, ipv6, option, pcap, section, source, tcp,
};
use bufferscope_capture::decode::decode;
use bufferscope_capture::inspect;
use bufferscope_capture::session::Choice;
use bufferscope_records::{MemorySink, Recorder, Table};
use proptest::prelude::*;

/// Reads a file through to records.
fn check(file: Vec<u8>) {
    let wire_bytes = file.len() as u64;
    let recorder = Recorder::new(MemorySink::default());
    let outcome = inspect(vec![source("any", file)], &Choice::default(), recorder, &mut |_| ControlFlow::Continue(()));
    let Ok(inspected) = outcome else { return };
    let session = &inspected.session;
    let counts = &session.counts;
    let undecoded: u64 = counts.undecoded.iter().sum();
    let decoded = counts.tcp + counts.udp + counts.echoes + counts.others + counts.copies;
    assert_eq!(counts.packets + counts.more_in_frames, decoded + undecoded + counts.without_time);
    assert_eq!(counts.packets, session.files.iter().map(|file| file.packets).sum::<u64>());
    assert!(counts.captured_bytes <= wire_bytes.max(1 << 22));
    let requests: u64 = session.pings.iter().map(|ping| ping.requests - ping.unknown).sum();
    assert_eq!(inspected.output.rows(Table::Probes) as u64, requests);
}

/// Captures as a program would write them, with something of everything.
fn sound() -> Vec<Vec<u8>> {
    let options = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    let segment = |seq: u32| [tcp(1000, 80, seq, 0, 0x18, &options), vec![0; 50]].concat();
    let ip = ipv4(6, 1, 2, &segment(1));
    let tunnels = [
        ipv4(4, 3, 4, &ip),
        ipv4(47, 3, 4, &[&[0x20, 0, 8, 0, 0, 0, 0, 1][..], &ip].concat()),
        ipv4(1, 1, 2, &echo(false, 1, 1)),
        ipv4(1, 2, 1, &echo(true, 1, 1)),
        ipv4(17, 1, 2, &[&[0, 1, 8, 0x68, 0, 0, 0, 0, 0x30, 255, 0, 0, 0, 0, 0, 1][..], &ip].concat()),
        ipv6(60, &[&[6, 0, 0, 0, 0, 0, 0, 0][..], &segment(51)].concat()),
        ipv4(6, 2, 1, &tcp(80, 1000, 0, 51, 0x10, &sack)),
        ipv4(6, 1, 2, &segment(1)),
    ];
    let frames: Vec<_> =
        tunnels.iter().map(|packet| ethernet(0x0800 + u16::from(packet[0] == 0x60) * 0x7edd, packet)).collect();
    let mut blocks = section(false);
    blocks.extend(interface(false, 1, 0, &option(false, 9, &[9])));
    for (number, frame) in (0_u64..).zip(&frames) {
        blocks.extend(enhanced(false, 0, number * 1_000_000, frame, frame.len() as u32));
    }
    blocks.extend(block(false, 5, &[0; 12]));
    let vlan = ethernet(0x8100, &[&[0, 1, 8, 0][..], &ip].concat());
    let tagged = pcap(0xa1b2_3c4d, true, 1, &[(1, 2, vlan.clone(), vlan.len() as u32)]);
    vec![ethernet_pcap(&frames), blocks, tagged]
}

#[test]
fn the_sound_captures_are_sound() {
    for file in sound() {
        let recorder = Recorder::new(MemorySink::default());
        let inspected =
            inspect(vec![source("any", file)], &Choice::default(), recorder, &mut |_| ControlFlow::Continue(()))
                .unwrap();
        assert!(inspected.session.counts.tcp >= 1);
        assert_eq!(inspected.session.counts.undecoded.iter().sum::<u64>(), 0);
        assert_eq!(inspected.session.files[0].ended, None);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_after_a_files_first_bytes_are_read_or_refused(
        start in prop::sample::select(vec![
            pcap(0xa1b2_c3d4, false, 1, &[]),
            pcap(0xa1b2_3c4d, true, 101, &[]),
            section(false),
            [section(true), interface(true, 1, 0, &[])].concat(),
            vec![0x1f, 0x8b, 8, 0],
            vec![],
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        check([start, rest].concat());
    }

    #[test]
    fn sound_captures_with_changed_bytes_are_read_as_far_as_they_make_sense(
        which in 0_usize..3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut file = sound().swap_remove(which);
        for (offset, value) in changes {
            let offset = offset.index(file.len());
            file[offset] = value;
        }
        if is_cut {
            file.truncate(cut.index(file.len()));
        }
        check(file);
    }

    #[test]
    fn random_packets_of_every_link_type_are_decoded_or_have_a_reason(
        link_type in prop::sample::select((0_u16..300).collect::<Vec<_>>()),
        start in prop::sample::select(vec![vec![], vec![0x45], vec![0x60], vec![0x21, 0x45], vec![0; 12]]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
        wire_bytes in any::<u32>(),
    ) {
        let _ = decode(link_type, &[start, rest].concat(), wire_bytes);
    }
}
