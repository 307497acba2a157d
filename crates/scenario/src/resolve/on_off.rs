//! Sending and pausing in turn: keys that require each other.

use crate::error::{Problem, Problems};
use crate::file::{Interval, OnOffKeys};
use crate::model::OnOff;
use crate::path::join;

/// Requires both lengths or none: if there is only one, the other was probably forgotten.
pub(super) fn resolve(keys: &OnOffKeys, path: &str, problems: &mut Problems) -> Option<OnOff> {
    let &OnOffKeys { on, off, periods } = keys;
    match (on, off) {
        (Some(on), Some(off)) => {
            return Some(OnOff { on_ns: on.get(), off_ns: off.get(), periods: periods.unwrap_or_default() });
        }
        (Some(on), None) => missing("off", "how long it pauses", "on", on, path, problems),
        (None, Some(off)) => missing("on", "how long it sends before it pauses", "off", off, path, problems),
        (None, None) if periods.is_some() => {
            let allowed = "no such key (only traffic with on and off has periods)";
            problems.add(|| Problem::new(join(path, "periods"), "periods of traffic that never pauses", allowed));
        }
        (None, None) => {}
    }
    None
}

fn missing(key: &str, meaning: &str, given: &str, value: Interval, path: &str, problems: &mut Problems) {
    let required = format!("{meaning}, such as 1s, which {given} = {value} needs");
    problems.add(|| Problem::missing(join(path, key), required));
}
