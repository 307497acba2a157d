//! Packets that the devices themselves dropped (`/proc/net/dev`). No queueing discipline counts them.

use std::io;

/// The drops of all devices of the calling thread's namespace so far, in either direction.
pub(crate) fn read() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    parse(&text).ok_or_else(|| io::Error::other("/proc/net/dev is not as proc(5) describes it"))
}

/// Two heading lines, then `name: ` and eight numbers for each direction; the fourth of these is the drops.
fn parse(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    lines.nth(1).filter(|heading| heading.contains("drop"))?;
    lines.try_fold(0_u64, |sum, line| {
        let (_, numbers) = line.rsplit_once(':')?;
        let numbers: Vec<u64> = numbers.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        sum.checked_add(*numbers.get(3)?)?.checked_add(*numbers.get(11)?)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADINGS: &str =
        "Inter-|   Receive                |  Transmit\n face |bytes    packets errs drop|bytes ...\n";

    #[test]
    fn drops_of_both_directions_of_all_devices_are_added() {
        let text = format!(
            "{HEADINGS}    lo:     0    0 0 0 0 0 0 0     0    0 0 0 0 0 0 0\n\
             to-h2:12345   12 0 3 0 0 0 0 54321   45 0 4 0 0 0 0\n"
        );
        assert_eq!(parse(&text), Some(7));
        assert_eq!(parse(HEADINGS), Some(0));
    }

    #[test]
    fn a_line_that_is_cut_off_is_refused() {
        assert_eq!(parse(&format!("{HEADINGS}lo: 0 0 0 0 0 0 0 0 0 0 0")), None);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "(\n|[a-z0-9]{0,4}:?[ 0-9]{0,60}){0,6}") {
            let _ = parse(&text);
        }
    }
}
