//! The link layer of a port.

use std::slice;

use crate::error::{Problem, Problems};
use crate::file::{Overhead, OverheadKeys};
use crate::model::Encapsulation;
use crate::path::join;
use crate::qdisc::{Cells, Framing};
use crate::sizes::ETHERNET_HEADER_BYTES;

pub(super) fn resolve(overhead: &Overhead, path: &str, problems: &mut Problems) -> Option<Encapsulation> {
    match overhead {
        Overhead::Bytes(bytes) => Some(Encapsulation::adding(bytes.get_u32())),
        Overhead::Word(word) => of_words(slice::from_ref(word), path, problems),
        Overhead::Words(words) => of_words(words, path, problems),
        Overhead::Link(keys) => {
            let OverheadKeys { framing, bytes, mpu, atm } = keys;
            let link = match framing.as_slice() {
                [] => Encapsulation::adding(ETHERNET_HEADER_BYTES),
                words => of_words(words, &join(path, "framing"), problems)?,
            };
            Some(Encapsulation {
                overhead_bytes: bytes.map_or(link.overhead_bytes, |bytes| bytes.get_u32()),
                mpu_bytes: mpu.map_or(link.mpu_bytes, |mpu| mpu.get_u32()),
                cells: atm.unwrap_or(link.cells),
            })
        }
    }
}

/// Refuses words that only add to others, if they are given alone: nobody means a link with an overhead of 4 bytes by
/// `ether-vlan`.
fn of_words(words: &[Framing], path: &str, problems: &mut Problems) -> Option<Encapsulation> {
    if words.iter().all(|word| word.only_adds()) {
        let names = words.iter().map(|word| format!("\"{}\"", word.word())).collect::<Vec<_>>().join(", ");
        let hint = "framing = [\"pppoe-ptm\", \"ether-vlan\"] is PPPoE in a VLAN";
        let found = format!("{names}, which only adds to another framing");
        problems.add(|| Problem::new(path, found, "the framing of a link, such as \"docsis\"").hint(hint));
        return None;
    }
    let Some(framed) = Framing::read(words) else {
        problems.add(|| {
            Problem::new(path, "an overhead of more than 256 bytes", "keywords that add up to at most 256 bytes")
        });
        return None;
    };
    let header_bytes = if framed.raw { ETHERNET_HEADER_BYTES } else { 0 };
    Some(Encapsulation {
        overhead_bytes: header_bytes + u32::from(framed.overhead_bytes.unwrap_or(0).unsigned_abs()),
        mpu_bytes: framed.mpu_bytes.unwrap_or(0).into(),
        cells: framed.cells.unwrap_or(Cells::None),
    })
}
