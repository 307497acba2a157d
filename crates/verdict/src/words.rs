//! Numbers as people read them.

/// A delay: `3.2 ms`, `47 ms`, `1.2 s`.
pub(crate) fn delay(ns: f64) -> String {
    let ms = (ns / 1e6).max(0.0);
    if ms < 0.05 {
        "0 ms".to_owned()
    } else if ms < 9.95 {
        format!("{} ms", trimmed(ms))
    } else if ms < 999.5 {
        format!("{ms:.0} ms")
    } else if ms < 99_950.0 {
        format!("{} s", trimmed(ms / 1e3))
    } else {
        format!("{:.0} s", ms / 1e3)
    }
}

/// A rate: `870 kbit/s`, `9.4 Mbit/s`, `93 Mbit/s`, `1.2 Gbit/s`.
pub(crate) fn rate(bps: f64) -> String {
    let kbps = bps.max(0.0) / 1e3;
    if kbps < 999.5 {
        format!("{kbps:.0} kbit/s")
    } else if kbps < 9950.0 {
        format!("{} Mbit/s", trimmed(kbps / 1e3))
    } else if kbps < 999_500.0 {
        format!("{:.0} Mbit/s", kbps / 1e3)
    } else {
        format!("{} Gbit/s", trimmed(kbps / 1e6))
    }
}

/// A size: `870 kB`, `1.2 MB`.
pub(crate) fn size(bytes: f64) -> String {
    let kilobytes = bytes.max(0.0) / 1e3;
    if kilobytes < 999.5 { format!("{kilobytes:.0} kB") } else { format!("{} MB", trimmed(kilobytes / 1e3)) }
}

/// A part as a percentage: `96 %`.
pub(crate) fn percent(part: f64) -> String {
    let percent = part * 100.0;
    if percent > 0.0 && percent < 0.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// A number of things: `1 hop`, `2 hops`.
pub(crate) fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

/// With one decimal unless it is a zero.
fn trimmed(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_to_what_matters() {
        let delays = [0.0, 3.24e6, 3.04e6, 9.97e6, 46.6e6, 999.6e6, 1.234e9, 250e9].map(delay);
        assert_eq!(delays, ["0 ms", "3.2 ms", "3 ms", "10 ms", "47 ms", "1 s", "1.2 s", "250 s"]);
        let rates = [870_400.0, 999_900.0, 9.44e6, 93.2e6, 1.23e9].map(rate);
        assert_eq!(rates, ["870 kbit/s", "1 Mbit/s", "9.4 Mbit/s", "93 Mbit/s", "1.2 Gbit/s"]);
        assert_eq!([870_400.0, 999_900.0, 1.23e6].map(size), ["870 kB", "1 MB", "1.2 MB"]);
        assert_eq!([0.0, 0.004, 0.963].map(percent), ["0 %", "0.4 %", "96 %"]);
        assert_eq!([count(1, "hop"), count(2, "hop")], ["1 hop", "2 hops"]);
    }
}
