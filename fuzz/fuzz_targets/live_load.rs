//! Feeds arbitrary streams to the readers of a load connection: its opening, then its frames in pieces.

#![no_main]

use bufferscope_live::wire::load::{Expect, Frames, LONGEST_FRAME, OPENING_BYTES, Opening};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut rest = bytes;
    if let Some((opening, after)) = bytes.split_first_chunk::<OPENING_BYTES>() {
        if let Some(found) = Opening::parse(opening) {
            assert_eq!(Opening::parse(&found.bytes()), Some(found));
            rest = after;
        }
    }
    let (mut frames, mut most) = (Frames::default(), 1);
    while !rest.is_empty() {
        let (Expect::Header(wanted) | Expect::Data(wanted) | Expect::Mark(wanted)) = frames.expected();
        assert!((1..=LONGEST_FRAME).contains(&wanted));
        let (piece, after) = rest.split_at(wanted.min(most).min(rest.len()));
        (rest, most) = (after, most % 13 + 1);
        if let Expect::Data(_) = frames.expected() {
            frames.skipped(piece.len());
        } else if frames.take(piece).is_err() {
            return;
        }
    }
});
