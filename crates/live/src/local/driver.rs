//! What a driver reports (`SIOCETHTOOL`, `include/uapi/linux/ethtool.h`).

use std::io;

use bufferscope_endpoint::ethtool::{Ethtool, MOST_WORDS};
use bufferscope_endpoint::ring;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
const SOF_TIMESTAMPING_TX_SOFTWARE: u32 = 1 << 1;
/// Words of `struct ethtool_drvinfo`. The name's 32 bytes follow the command, and end with a zero byte.
const DRVINFO_WORDS: usize = 49;
const NAME_WORDS: std::ops::Range<usize> = 1..9;
/// Words of `struct ethtool_ts_info`.
const TS_INFO_WORDS: usize = 11;

/// One interface's driver.
#[derive(Debug)]
pub(super) struct Driver<'a> {
    ethtool: Ethtool,
    device: &'a str,
}

impl<'a> Driver<'a> {
    pub(super) fn of(device: &'a str) -> io::Result<Self> {
        Ok(Self { ethtool: Ethtool::open()?, device })
    }

    /// The driver's name, as in `ethtool -i`.
    pub(super) fn name(&self) -> Option<String> {
        let mut words = [0; DRVINFO_WORDS];
        words[0] = ETHTOOL_GDRVINFO;
        Some(name(&self.ethtool.call(self.device, words).ok()?))
    }

    /// The link's rate in bit/s.
    pub(super) fn link_bps(&self) -> Option<u64> {
        let mut words = [0; MOST_WORDS];
        words[0] = ETHTOOL_GLINKSETTINGS;
        // The kernel answers the first call with the negative length of the masks that follow the structure, and the
        // second only if this length is right.
        let masks = mask_words(&self.ethtool.call(self.device, words).ok()?)?;
        set_mask_words(&mut words, masks);
        rate_bps(self.ethtool.call(self.device, words).ok()?[1])
    }

    /// The size of the transmit ring in packets.
    pub(super) fn ring_packets(&self) -> Option<u32> {
        ring::packets(&self.ethtool, self.device).ok().filter(|&packets| packets > 0)
    }

    /// Whether the driver takes software timestamps of the packets that it sends.
    pub(super) fn has_software_stamps(&self) -> Option<bool> {
        let mut words = [0; TS_INFO_WORDS];
        words[0] = ETHTOOL_GET_TS_INFO;
        let flags = self.ethtool.call(self.device, words).ok()?[1];
        Some(flags & SOF_TIMESTAMPING_TX_SOFTWARE != 0)
    }
}

fn name(words: &[u32; DRVINFO_WORDS]) -> String {
    let bytes = words[NAME_WORDS].iter().flat_map(|word| word.to_ne_bytes()).take_while(|&byte| byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

/// Where `struct ethtool_link_settings` has the length of a mask (`link_mode_masks_nwords`): word and byte.
const MASK_WORDS: (usize, usize) = (3, 3);

/// How long a mask is, from the answer to the first call.
fn mask_words(words: &[u32; MOST_WORDS]) -> Option<i8> {
    let length = words[MASK_WORDS.0].to_ne_bytes()[MASK_WORDS.1] as i8;
    length.checked_neg().filter(|&length| length > 0)
}

fn set_mask_words(words: &mut [u32; MOST_WORDS], length: i8) {
    let mut bytes = [0; 4];
    bytes[MASK_WORDS.1] = length as u8;
    words[MASK_WORDS.0] = u32::from_ne_bytes(bytes);
}

/// From Mbit/s; 0 and `SPEED_UNKNOWN` mean that the driver does not know.
fn rate_bps(speed: u32) -> Option<u64> {
    (speed != 0 && speed != u32::MAX).then(|| u64::from(speed) * 1_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_speed_is_no_rate() {
        assert_eq!([0, u32::MAX, 2500].map(rate_bps), [None, None, Some(2_500_000_000)]);
    }

    #[test]
    fn the_masks_are_as_long_as_the_kernel_says() {
        let mut words = [0; MOST_WORDS];
        assert_eq!(mask_words(&words), None);
        for (answer, expected) in [(-4, Some(4)), (-127, Some(127)), (-128, None), (4, None)] {
            set_mask_words(&mut words, answer);
            assert_eq!(mask_words(&words), expected, "{answer}");
        }
    }

    #[test]
    fn a_name_ends_at_its_zero_byte_or_with_its_field() {
        let mut words = [0; DRVINFO_WORDS];
        words[1] = u32::from_ne_bytes(*b"veth");
        assert_eq!(name(&words), "veth");
        words.fill(u32::from_ne_bytes(*b"veth"));
        assert_eq!(name(&words), "veth".repeat(8));
    }
}
