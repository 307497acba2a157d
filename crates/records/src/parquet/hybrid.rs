//! Integers of a fixed number of bits, packed, and the hybrid of runs and packed integers
//! ("RLE/bit-packing hybrid" in Parquet's `Encodings.md`).

/// A run of at least so many equal values is stored as one value and its length.
const LONG_RUN: usize = 64;
/// Packed values come in groups of so many.
const GROUP: usize = 8;

/// Appends `values`, each of which has at most `width` bits.
pub(super) fn encode<T: Copy + PartialEq + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    let mut packed_from = 0;
    let mut at = 0;
    while at < values.len() {
        let length = values[at..].iter().take_while(|&&value| value == values[at]).count();
        if length >= LONG_RUN {
            packed(&values[packed_from..at], width, out);
            run(values[at].into(), length, width, out);
            at += length;
            packed_from = at;
        } else {
            at += GROUP;
        }
    }
    packed(&values[packed_from..], width, out);
}

/// Appends a run of equal values.
pub(super) fn run(value: u64, length: usize, width: u32, out: &mut Vec<u8>) {
    unsigned((length as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Appends a run of packed values. Only the last one may have a number of values that is not a multiple of a group's.
fn packed<T: Copy + Into<u64>>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if !values.is_empty() {
        let groups = values.len().div_ceil(GROUP);
        unsigned((groups as u64) << 1 | 1, out);
        pack(values, groups * GROUP, width, out);
    }
}

/// Appends `count` values of `width` bits each (at most 64), the least significant bits first: these ones, and then
/// zeros. There are zeros up to the next byte, too.
#[inline]
pub(super) fn pack<T: Copy + Into<u64>>(values: &[T], count: usize, width: u32, out: &mut Vec<u8>) {
    let end = out.len() + (count * width as usize).div_ceil(8);
    let (mut word, mut used) = (0, 0);
    for &value in values {
        let value = value.into();
        word |= value << used;
        used += width;
        if used >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            word = if used == 0 { 0 } else { value >> (width - used) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..used.div_ceil(8) as usize]);
    out.resize(end, 0);
}

/// The bits that a value takes.
pub(super) fn bits(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends an integer of variable length: seven bits a byte, the least significant first (ULEB128).
pub(super) fn unsigned(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The same for a signed integer, which alternates between positive and negative ones ("zigzag").
pub(super) fn signed(value: i64, out: &mut Vec<u8>) {
    unsigned(((value << 1) ^ (value >> 63)) as u64, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[u32], width: u32) -> Vec<u8> {
        let mut out = Vec::new();
        encode(values, width, &mut out);
        out
    }

    #[test]
    fn the_example_of_the_specification_is_packed_as_there() {
        assert_eq!(encoded(&[0, 1, 2, 3, 4, 5, 6, 7], 3), [0b11, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn a_long_run_is_its_length_and_value_and_a_short_one_is_packed() {
        assert_eq!(encoded(&[300; 100], 9), [200, 1, 44, 1]);
        assert_eq!(encoded(&[1; 9], 1), [0b101, 0xff, 0b1]);
        assert!(encoded(&[], 1).is_empty());
    }

    #[test]
    fn integers_of_variable_length_have_seven_bits_a_byte() {
        let written = |value| {
            let mut out = Vec::new();
            signed(value, &mut out);
            out
        };
        assert_eq!([0, -1, 1, -64, 64].map(written), [vec![0], vec![1], vec![2], vec![127], vec![128, 1]]);
        assert_eq!(written(i64::MIN).len(), 10);
    }
}
