//! The congestion controls that a scenario can name. Each has one line here. Everything else that needs their names is
//! generated from these lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Declares the enum, its names in experiment files and in Linux, and what is special about each.
macro_rules! congestion_controls {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal, in Linux: $linux:expr, paces: $paces:literal, target_ns: $target_ns:expr;)+) => {
        /// A congestion control.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[schemars(rename = "CongestionControl")]
        pub enum Congestion {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Congestion {
            /// All congestion controls.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name in experiment files.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// Its name in Linux (`net.ipv4.tcp_congestion_control`); `None` where no released kernel has it.
            pub fn linux_name(self) -> Option<&'static str> {
                match self {
                    $(Self::$variant => $linux,)+
                }
            }

            /// Whether it sets the pacing rate, so that the connection is paced even if it did not ask for it.
            pub fn paces(self) -> bool {
                match self {
                    $(Self::$variant => $paces,)+
                }
            }

            /// The queueing delay that it aims at if the experiment says nothing else, in nanoseconds; `None` if it aims
            /// at none.
            pub fn default_target_ns(self) -> Option<u64> {
                match self {
                    $(Self::$variant => $target_ns,)+
                }
            }
        }
    };
}

/// RFC 6817, section 2.5.
const LEDBAT_TARGET_NS: u64 = 100_000_000;
/// draft-irtf-iccrg-ledbat-plus-plus-06, section 4.5.
const LEDBAT_PLUS_PLUS_TARGET_NS: u64 = 60_000_000;

congestion_controls! {
    /// RFC 5681.
    Reno = "reno", in Linux: Some("reno"), paces: false, target_ns: None;
    /// RFC 9438, with the Linux kernel's constants.
    Cubic = "cubic", in Linux: Some("cubic"), paces: false, target_ns: None;
    /// Brakmo and Peterson 1995, with the Linux kernel's constants. Keeps two to four packets queued.
    Vegas = "vegas", in Linux: Some("vegas"), paces: false, target_ns: None;
    /// Westwood+ (Grieco and Mascolo 2004), as in Linux. After a loss, the window becomes the measured bandwidth times
    /// the smallest round-trip time.
    Westwood = "westwood", in Linux: Some("westwood"), paces: false, target_ns: None;
    /// A constant window, set by the key `window` in packets.
    Window = "window", in Linux: None, paces: false, target_ns: None;
    /// RFC 6817, for background transfers. Alone, it keeps the queueing delay at `target`; it yields to other traffic.
    Ledbat = "ledbat", in Linux: None, paces: false, target_ns: Some(LEDBAT_TARGET_NS);
    /// draft-irtf-iccrg-ledbat-plus-plus-06: LEDBAT with less delay, and fair to other flows of its kind.
    LedbatPlusPlus = "ledbat++", in Linux: None, paces: false, target_ns: Some(LEDBAT_PLUS_PLUS_TARGET_NS);
    /// BBR version 1, as in the Linux kernel. Paced.
    Bbr = "bbr", in Linux: Some("bbr"), paces: true, target_ns: None;
    /// BBR version 3, draft-ietf-ccwg-bbr-06. Paced.
    Bbr3 = "bbr3", in Linux: None, paces: true, target_ns: None;
    /// RFC 8257, as in the Linux kernel. Reduces the window in proportion to the share of marked packets. Negotiates ECN by itself.
    Dctcp = "dctcp", in Linux: Some("dctcp"), paces: false, target_ns: None;
    /// draft-briscoe-iccrg-prague-congestion-control-04, for L4S. Negotiates accurate ECN by itself. Paced.
    Prague = "prague", in Linux: None, paces: true, target_ns: None;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for &congestion in Congestion::ALL {
            let written = toml::Value::try_from(congestion).unwrap();
            assert_eq!(written.as_str(), Some(congestion.name()));
            assert_eq!(written.try_into::<Congestion>().unwrap(), congestion);
        }
    }
}
