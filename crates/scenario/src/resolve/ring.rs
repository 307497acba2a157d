//! The transmit rings of ports.

use crate::error::{Problem, Problems};
use crate::file::{Bql, ByteLimits as LimitsTable, Completion as CompletionSetting, Ring as RingTable};
use crate::model::{Accounting, ByteLimits, Completion, Ring};
use crate::path::join;

pub(super) fn resolve(table: &RingTable, path: &str, problems: &mut Problems) -> Option<Ring> {
    let ring = Ring {
        size_packets: table.size.get_u32(),
        bql: match &table.bql {
            Bql::Switch(on) => on.then_some(ByteLimits::DEFAULT),
            Bql::Set(limits) => Some(byte_limits(limits, &join(path, "bql"), problems)?),
        },
        completion: match &table.completion {
            None => Completion::default(),
            Some(CompletionSetting::Packets(packets)) => Completion::Packets(packets.get_u32()),
            Some(CompletionSetting::After(time)) => Completion::AfterNs(time.get()),
        },
        accounting: table.accounting,
    };
    if ring.room_packets() == 0 {
        let allowed = format!("at least {}p with accounting = \"virtio\"", Accounting::VIRTIO_LEAST);
        let hint = "virtio_net stops its queue when fewer descriptors are free, and such a ring never has so many";
        problems.add(|| Problem::new(join(path, "size"), table.size.to_string(), allowed).hint(hint));
        return None;
    }
    Some(ring)
}

fn byte_limits(table: &LimitsTable, path: &str, problems: &mut Problems) -> Option<ByteLimits> {
    let max = table.max.map_or(ByteLimits::DEFAULT.max_bytes, |max| max.get());
    if table.min.get() > max {
        let found = table.min.to_string();
        let allowed = format!("at most max = {}", table.max.map(|max| max.to_string()).unwrap_or_default());
        problems.add(|| Problem::new(join(path, "min"), found, allowed));
        return None;
    }
    Some(ByteLimits { hold_ns: table.hold_time.get(), min_bytes: table.min.get(), max_bytes: max })
}
