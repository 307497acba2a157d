//! Traces of delivery opportunities, in the format of mahimahi's `mm-link`.
//!
//! A file has one line for each opportunity to deliver 1500 bytes: its time in milliseconds since the start. Times do
//! not decrease; the same time may occur many times. After the last line, the trace repeats. The format and the checks
//! are those of mahimahi's `src/frontend/link_queue.cc`; the bounds are our own.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::RATE;

/// Bytes that an opportunity delivers.
pub const OPPORTUNITY_BYTES: u64 = 1500;
/// Most bytes of a file: a quarter of an hour at 30 Mbit/s has 16 MB.
pub const MOST_TRACE_BYTES: usize = 32 << 20;
/// Longest trace: a day.
const LONGEST_MS: u32 = 86_400_000;
/// Bounds of the mean rate: those of a link's rate.
const RATES_BPS: std::ops::RangeInclusive<u64> = 1_000..=400_000_000_000;
/// Symbols of the numbers below 62 in a trace's text.
const SYMBOLS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Opportunities to deliver packets, which repeat. Copies share them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct Trace(Arc<[Opportunities]>);

/// The opportunities of one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opportunities {
    /// Milliseconds since the start of the trace.
    pub at_ms: u32,
    /// How many there are; never 0.
    pub packets: u32,
}

/// Why a file is not a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoTrace {
    pub(crate) found: String,
    pub(crate) allowed: String,
}

impl Trace {
    /// Reads a file.
    pub(crate) fn read(content: &[u8]) -> Result<Self, NoTrace> {
        let refuse = |found: String, allowed: &str| NoTrace { found, allowed: allowed.to_owned() };
        if content.len() > MOST_TRACE_BYTES {
            let found = format!("a trace of {} bytes", content.len());
            return Err(refuse(found, &format!("at most {MOST_TRACE_BYTES} bytes")));
        }
        let mut all: Vec<Opportunities> = Vec::new();
        let lines = content.strip_suffix(b"\n").unwrap_or(content).split(|byte| *byte == b'\n');
        for (line, text) in (1..).zip(lines) {
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            let Some(at_ms) = milliseconds(text) else {
                let found = format!("{} in line {line} of the trace", shown(text));
                return Err(refuse(found, &format!("a whole number of milliseconds up to {LONGEST_MS} in each line")));
            };
            match all.last_mut() {
                Some(last) if last.at_ms == at_ms => last.packets += 1,
                Some(last) if last.at_ms > at_ms => {
                    let found = format!("{at_ms} after {} in line {line} of the trace", last.at_ms);
                    return Err(refuse(found, "times that do not decrease"));
                }
                _ => all.push(Opportunities { at_ms, packets: 1 }),
            }
        }
        Self::new(all).map_err(|found| {
            let [least, most] = [RATES_BPS.start(), RATES_BPS.end()].map(|rate| RATE.display(*rate));
            refuse(found, &format!("a trace whose last time is after 0 and whose mean rate is from {least} to {most}"))
        })
    }

    fn new(all: Vec<Opportunities>) -> Result<Self, String> {
        let trace = Self(all.into());
        if trace.0.last().is_none_or(|last| last.at_ms == 0) {
            return Err("a trace of zero length".to_owned());
        }
        let mean_bps = trace.mean_bps();
        if !RATES_BPS.contains(&mean_bps) {
            return Err(format!("a trace with a mean rate of {}", RATE.display(mean_bps)));
        }
        Ok(trace)
    }

    /// The opportunities of one repetition, in order of time.
    pub fn opportunities(&self) -> &[Opportunities] {
        &self.0
    }

    /// After this time it repeats.
    pub fn period_ms(&self) -> u32 {
        self.0.last().map_or(0, |last| last.at_ms)
    }

    /// The mean rate in bits per second.
    pub fn mean_bps(&self) -> u64 {
        let packets: u64 = self.0.iter().map(|group| u64::from(group.packets)).sum();
        packets * OPPORTUNITY_BYTES * 8 * 1000 / u64::from(self.period_ms().max(1))
    }

    /// The highest rate of any whole second, in bits per second.
    pub fn fastest_bps(&self) -> u64 {
        let mut seconds: Vec<u64> = vec![0; 1 + self.period_ms() as usize / 1000];
        self.0.iter().for_each(|group| seconds[group.at_ms as usize / 1000] += u64::from(group.packets));
        seconds.into_iter().max().unwrap_or(0).saturating_mul(OPPORTUNITY_BYTES * 8).max(self.mean_bps())
    }
}

fn milliseconds(text: &[u8]) -> Option<u32> {
    let is_plain = !text.is_empty() && text.len() <= 8 && text.iter().all(u8::is_ascii_digit);
    let value: u32 = std::str::from_utf8(text).ok().filter(|_| is_plain)?.parse().ok()?;
    (value <= LONGEST_MS).then_some(value)
}

/// The text of a line, shortened and escaped.
fn shown(text: &[u8]) -> String {
    if text.is_empty() {
        return "nothing".to_owned();
    }
    crate::error::quote(&String::from_utf8_lossy(text).chars().take(40).collect::<String>())
}

/// Each millisecond that has opportunities as the time since the one before and, after a dot, the number of opportunities if it is
/// not 1. A number below 62 is one symbol; others are decimal and in brackets.
impl From<Trace> for String {
    fn from(trace: Trace) -> Self {
        let mut text = Self::new();
        let number = |text: &mut Self, number: u32| match SYMBOLS.get(number as usize) {
            Some(symbol) => text.push(char::from(*symbol)),
            None => *text += &format!("({number})"),
        };
        let mut last_ms = 0;
        for Opportunities { at_ms, packets } in trace.0.iter().copied() {
            number(&mut text, at_ms - last_ms);
            last_ms = at_ms;
            if packets != 1 {
                text.push('.');
                number(&mut text, packets);
            }
        }
        text
    }
}

impl TryFrom<String> for Trace {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut rest = text.bytes();
        let mut all: Vec<Opportunities> = Vec::new();
        let mut is_count = false;
        while let Some(byte) = rest.next() {
            let number = match byte {
                b'.' if !is_count && !all.is_empty() => {
                    is_count = true;
                    continue;
                }
                b'(' => {
                    let digits: String = rest.by_ref().take_while(|byte| *byte != b')').map(char::from).collect();
                    digits.parse().ok()
                }
                byte => SYMBOLS.iter().position(|symbol| *symbol == byte).map(|position| position as u32),
            };
            let number: u32 = number.ok_or("a symbol that traces do not have")?;
            if std::mem::take(&mut is_count) {
                all.last_mut().ok_or("a count before the first time")?.packets = number;
            } else {
                let at_ms = all.last().map_or(0, |last| last.at_ms).checked_add(number);
                all.push(Opportunities { at_ms: at_ms.ok_or("a time that is too late")?, packets: 1 });
            }
        }
        let ordered = all.windows(2).all(|pair| pair[0].at_ms < pair[1].at_ms);
        let sound = all.iter().all(|group| group.packets > 0 && group.at_ms <= LONGEST_MS);
        if !ordered || !sound || is_count {
            return Err("not the opportunities of a trace".to_owned());
        }
        Self::new(all)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Trace, NoTrace> {
        Trace::read(text.as_bytes())
    }

    fn refusal(text: &str) -> String {
        let NoTrace { found, allowed } = read(text).unwrap_err();
        format!("{found}; {allowed}")
    }

    #[test]
    fn a_file_has_one_line_per_opportunity() {
        let trace = read("0\n5\n5\n5\r\n100\n").unwrap();
        let found: Vec<(u32, u32)> = trace.opportunities().iter().map(|group| (group.at_ms, group.packets)).collect();
        assert_eq!((found, trace.period_ms()), (vec![(0, 1), (5, 3), (100, 1)], 100));
        // 5 * 12,000 bits in 0.1 s.
        assert_eq!(trace.mean_bps(), 600_000);
        assert_eq!(String::from(trace), "05.3(95)");
    }

    #[test]
    fn the_shortest_trace_is_a_constant_rate() {
        // mahimahi's own example: "a file that contains just 1" passes one packet per millisecond, 12 Mbit/s.
        assert_eq!(read("1").unwrap().mean_bps(), 12_000_000);
    }

    #[test]
    fn a_refusal_names_the_line() {
        let cases = [
            ("1\n2\nfast\n", "\"fast\" in line 3 of the trace"),
            ("1\n\n3\n", "nothing in line 2 of the trace"),
            ("7\n5\n", "5 after 7 in line 2 of the trace; times that do not decrease"),
            ("1\n-2\n", "\"-2\" in line 2 of the trace"),
            ("86400001\n", "\"86400001\" in line 1 of the trace"),
            ("", "nothing in line 1 of the trace"),
            ("0\n0\n", "a trace of zero length"),
            ("86400000\n", "a trace with a mean rate of 0bit"),
        ];
        for (text, expected) in cases {
            assert!(refusal(text).starts_with(expected), "{text:?}: {}", refusal(text));
        }
        let long = NoTrace { found: String::new(), allowed: format!("at most {MOST_TRACE_BYTES} bytes") };
        assert_eq!(Trace::read(&vec![b'1'; MOST_TRACE_BYTES + 1]).unwrap_err().allowed, long.allowed);
    }

    #[test]
    fn text_that_is_no_trace_is_refused() {
        for text in ["", "0", ".3", "1.", "1.0", "1..2", "1(", "1(x)", "(86400001)", "10", "1é", "(99999999999)"] {
            assert!(Trace::try_from(text.to_owned()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_trace_is_read_back_as_it_was_written(mut times in prop::collection::vec(0..5000_u32, 1..200)) {
            times.sort_unstable();
            times.push(5001);
            let file: String = times.iter().map(|ms| format!("{ms}\n")).collect();
            let trace = read(&file).unwrap();
            prop_assert_eq!(trace.opportunities().iter().map(|group| group.packets as usize).sum::<usize>(), times.len());
            prop_assert_eq!(Trace::try_from(String::from(trace.clone())), Ok(trace));
        }

        #[test]
        fn any_bytes_are_a_trace_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = Trace::read(&bytes);
            let _ = Trace::try_from(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
}
