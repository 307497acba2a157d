//! Checks that the connections have the properties that the scenario assumes, and that the network was their limit.

use bufferscope_endpoint::tcp_info::TcpInfo;
use bufferscope_scenario::sizes::MSS_BYTES;

use super::RunContext;
use crate::warnings::Warnings;

/// Options that every connection of a scenario should have. An administrator may have turned them off.
const ALWAYS: u8 = TcpInfo::TIMESTAMPS | TcpInfo::SACK | TcpInfo::WINDOW_SCALING;
/// If a sender was without data for more than this share of its time, the run measured this machine and not the
/// network.
const STARVED: f64 = 0.02;
/// A shorter time may be due to a single late wake-up.
const LEAST_STARVED_US: u64 = 50_000;

/// How long the senders of one entry of traffic had something to send, and how long they waited for this program to
/// supply data that the network would have accepted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Supply {
    busy_us: u64,
    starved_us: u64,
}

impl Supply {
    /// A connection is over.
    pub(super) fn add(&mut self, info: &TcpInfo) {
        self.busy_us += info.busy_us;
        self.starved_us += info.sndbuf_limited_us;
    }

    /// Warns if the network was not the senders' limit.
    pub(super) fn check(self, traffic: &str, warnings: &mut Warnings) {
        let share = self.starved_us as f64 / self.busy_us.max(1) as f64;
        if self.starved_us > LEAST_STARVED_US && share > STARVED {
            let percent = share * 100.0;
            warnings.add(format!(
                "`{traffic}` waited {percent:.1} % of its time for more data: its send buffer (`tcp.wmem_max`) or this machine limited it"
            ));
        }
    }
}

/// A handshake is done: checks what the two ends negotiated.
pub(super) fn check_handshake(info: &TcpInfo, asked_for_ecn: bool, traffic: usize, context: &mut RunContext<'_>) {
    let name = &context.scenario.traffic[traffic].name;
    let expected = if asked_for_ecn { ALWAYS | TcpInfo::ECN } else { ALWAYS };
    if info.options != expected {
        let (found, wanted) = (words(info.options), words(expected));
        context.warnings.add(format!("connections of `{name}` negotiated {found} instead of {wanted}"));
    }
    if info.snd_mss != MSS_BYTES {
        let found = info.snd_mss;
        context.warnings.add(format!("segments of `{name}` carry {found} bytes instead of {MSS_BYTES}"));
    }
}

fn words(options: u8) -> String {
    let known = [
        (TcpInfo::TIMESTAMPS, "timestamps"),
        (TcpInfo::SACK, "SACK"),
        (TcpInfo::WINDOW_SCALING, "window scaling"),
        (TcpInfo::ECN, "ECN"),
    ];
    let agreed: Vec<&str> = known.iter().filter(|(bit, _)| options & bit != 0).map(|(_, word)| *word).collect();
    if agreed.is_empty() { "nothing".to_owned() } else { agreed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(busy_us: u64, starved_us: u64) -> Vec<String> {
        let mut warnings = Warnings::default();
        Supply { busy_us, starved_us }.check("bulk", &mut warnings);
        warnings.into_texts()
    }

    #[test]
    fn a_sender_that_this_machine_left_without_data_causes_a_warning() {
        let warning = "`bulk` waited 5.0 % of its time for more data: its send buffer (`tcp.wmem_max`) or this machine limited it";
        assert_eq!(warned(2_000_000, 100_000), [warning]);
    }

    #[test]
    fn a_late_wake_up_is_not_worth_a_word() {
        assert!(warned(60_000_000, 1_000_000).is_empty(), "1.7 %");
        assert!(warned(100_000, 40_000).is_empty(), "40 ms");
        assert!(warned(0, 0).is_empty());
    }

    #[test]
    fn options_have_names() {
        assert_eq!(words(ALWAYS | TcpInfo::ECN), "timestamps, SACK, window scaling, ECN");
        assert_eq!(words(0), "nothing");
    }
}
