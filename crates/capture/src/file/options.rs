//! The options of pcapng's blocks: code, length, value, padded to four bytes.

use super::Order;

/// The options in the rest of a block. Malformed options are ignored, because none is needed to read packets.
pub(super) struct BlockOptions<'a> {
    order: Order,
    rest: &'a [u8],
}

impl<'a> BlockOptions<'a> {
    pub(super) fn new(order: Order, rest: &'a [u8]) -> Self {
        Self { order, rest }
    }
}

impl<'a> Iterator for BlockOptions<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.rest.split_at_checked(4)?;
        let code = self.order.u16(header, 0);
        let length = usize::from(self.order.u16(header, 2));
        if code == 0 {
            return None;
        }
        let value = rest.get(..length)?;
        self.rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    }
}

/// How an interface's time stamps become nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// `if_tsresol`: units per second are a power of ten, or with the upper bit set, of two.
    resolution: u8,
    /// `if_tsoffset`.
    offset_s: i64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { resolution: 6, offset_s: 0 }
    }
}

impl Clock {
    pub(super) fn new(resolution: u8, offset_s: i64) -> Self {
        Self { resolution, offset_s }
    }

    /// Times that are too large are clamped.
    #[inline]
    pub(super) fn t_ns(self, units: u64) -> i64 {
        let ns = match self.resolution {
            9 => i64::try_from(units).unwrap_or(i64::MAX),
            6 => i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(1000),
            other => Self::converted(other, units),
        };
        ns.saturating_add(self.offset_s.saturating_mul(1_000_000_000))
    }

    #[cold]
    fn converted(resolution: u8, units: u64) -> i64 {
        let exponent = u32::from(resolution & 0x7f);
        let ns = if resolution & 0x80 != 0 {
            (u128::from(units) * 1_000_000_000) >> exponent
        } else if exponent <= 9 {
            u128::from(units) * 10_u128.pow(9 - exponent)
        } else {
            10_u128.checked_pow(exponent - 9).map_or(0, |divisor| u128::from(units) / divisor)
        };
        i64::try_from(ns).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stamps_of_any_resolution_become_nanoseconds() {
        for (resolution, units, t_ns) in [
            (0, 3, 3_000_000_000),
            (3, 1500, 1_500_000_000),
            (6, 7, 7000),
            (9, 7, 7),
            (12, 7999, 7),
            (0x80 | 10, 512, 500_000_000),
            (0x80 | 127, u64::MAX, 0),
            (127, u64::MAX, 0),
            (0, u64::MAX, i64::MAX),
        ] {
            assert_eq!(Clock::new(resolution, 0).t_ns(units), t_ns, "{resolution}");
        }
        assert_eq!(Clock::new(9, -2).t_ns(5_000_000_000), 3_000_000_000);
        assert_eq!(Clock::new(9, i64::MIN).t_ns(0), i64::MIN);
    }

    #[test]
    fn options_end_where_their_lengths_stop_making_sense() {
        let bytes = [2, 0, 3, 0, b'e', b't', b'h', 0, 9, 0, 1, 0, 6, 0, 0, 0, 5, 0, 200, 0];
        let found: Vec<_> = BlockOptions::new(Order::Little, &bytes).collect();
        assert_eq!(found, [(2, &b"eth"[..]), (9, &[6][..])]);
    }
}
