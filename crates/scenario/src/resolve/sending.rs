//! How data is sent: the congestion control, and the keys that only some controls have.

use crate::congestion::Congestion;
use crate::error::{Problem, Problems};
use crate::file::Sending as SendingKeys;
use crate::model::Sending;
use crate::path::join;

/// The keys of the traffic at `path`.
pub(super) fn resolve(congestion: Congestion, keys: &SendingKeys, path: &str, problems: &mut Problems) -> Sending {
    check_window(congestion, keys, path, problems);
    check_target(congestion, keys, path, problems);
    Sending {
        congestion,
        window_packets: keys.window.map(|window| window.get_u32()),
        target_ns: congestion
            .default_target_ns()
            .map(|default_ns| keys.target.map_or(default_ns, |target| target.get())),
        ecn: keys.ecn,
        pacing: keys.pacing,
    }
}

fn check_window(congestion: Congestion, keys: &SendingKeys, path: &str, problems: &mut Problems) {
    let is_fixed = congestion == Congestion::Window;
    match keys.window {
        Some(window) if !is_fixed => {
            let found = format!("{window} with congestion = \"{}\"", congestion.name());
            problems
                .add(|| Problem::new(join(path, "window"), found, "no such key (only congestion = \"window\" has it)"));
        }
        None if is_fixed => {
            let required = "the packets in flight, such as 40p, which congestion = \"window\" needs";
            problems.add(|| Problem::missing(join(path, "window"), required));
        }
        _ => {}
    }
}

fn check_target(congestion: Congestion, keys: &SendingKeys, path: &str, problems: &mut Problems) {
    if let (Some(target), None) = (keys.target, congestion.default_target_ns()) {
        let found = format!("{target} with congestion = \"{}\"", congestion.name());
        problems.add(|| {
            Problem::new(
                join(path, "target"),
                found,
                "no such key (only congestion = \"ledbat\" or \"ledbat++\" has it)",
            )
        });
    }
}
