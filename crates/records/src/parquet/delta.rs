//! Integers as differences (`DELTA_BINARY_PACKED` in Parquet's `Encodings.md`).

use super::hybrid::{bits, pack, signed, unsigned};

/// Differences that share their smallest.
const BLOCK: usize = 128;
/// Differences of a block that have the same number of bits.
const MINIBLOCK: usize = 32;

/// The integers of a page.
#[derive(Debug)]
pub(super) struct Deltas {
    count: usize,
    first: i64,
    last: i64,
    /// The differences that are not encoded yet; the first `waiting` ones count.
    block: [i64; BLOCK],
    waiting: usize,
    /// Whether these are all zero, as they are in many columns.
    is_constant: bool,
    encoded: Vec<u8>,
}

impl Default for Deltas {
    fn default() -> Self {
        Self { count: 0, first: 0, last: 0, block: [0; BLOCK], waiting: 0, is_constant: true, encoded: Vec::new() }
    }
}

impl Deltas {
    pub(super) fn extend(&mut self, values: &[i64]) {
        let mut rest = values;
        if let (0, Some((&first, others))) = (self.count, values.split_first()) {
            (self.first, self.last, rest) = (first, first, others);
        }
        self.count += values.len();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BLOCK - self.waiting));
            let free = &mut self.block[self.waiting..];
            for (place, &value) in free.iter_mut().zip(now) {
                *place = value.wrapping_sub(self.last);
                self.is_constant &= value == self.last;
                self.last = value;
            }
            self.waiting += now.len();
            if self.waiting == BLOCK {
                self.encode_block();
            }
            rest = later;
        }
    }

    fn encode_block(&mut self) {
        if self.is_constant {
            self.encoded.extend([0; 1 + BLOCK / MINIBLOCK]);
        } else {
            self.encode_differences();
        }
        (self.waiting, self.is_constant) = (0, true);
    }

    fn encode_differences(&mut self) {
        let waiting = &self.block[..self.waiting];
        let least = waiting.iter().copied().min().unwrap_or(0);
        signed(least, &mut self.encoded);
        let mut above = [0; BLOCK];
        for (above, &difference) in above.iter_mut().zip(waiting) {
            *above = difference.wrapping_sub(least) as u64;
        }
        // A block that is not full has zeros at its end, which take no bits if a whole miniblock has only these.
        let miniblocks = above.chunks_exact(MINIBLOCK);
        let widths = miniblocks.clone().map(|values| bits(values.iter().fold(0, |all, &value| all | value)));
        self.encoded.extend(widths.clone().map(|width| width as u8));
        for (values, width) in miniblocks.zip(widths).filter(|(_, width)| *width > 0) {
            pack(values, MINIBLOCK, width, &mut self.encoded);
        }
    }

    /// Appends the page's values, and is empty again.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) {
        if self.waiting > 0 {
            self.encode_block();
        }
        unsigned(BLOCK as u64, out);
        unsigned((BLOCK / MINIBLOCK) as u64, out);
        unsigned(self.count as u64, out);
        signed(self.first, out);
        out.extend_from_slice(&self.encoded);
        self.encoded.clear();
        (self.count, self.first) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values: &[i64]) -> Vec<u8> {
        let (mut deltas, mut out) = (Deltas::default(), Vec::new());
        deltas.extend(values);
        deltas.finish(&mut out);
        out
    }

    /// The examples of the specification, whose blocks have eight values there.
    #[test]
    fn the_examples_of_the_specification_have_its_smallest_differences_and_widths() {
        assert_eq!(encoded(&[1, 2, 3, 4, 5]), [128, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        let header = [128, 1, 4, 8, 14, 3, 2, 0, 0, 0];
        assert_eq!(encoded(&[7, 5, 3, 1, 2, 3, 4, 5]), [&header[..], &[0b1100_0000, 0b11_1111], &[0; 6]].concat());
    }

    #[test]
    fn nothing_and_one_value_have_no_block() {
        assert_eq!(encoded(&[]), [128, 1, 4, 0, 0]);
        assert_eq!(encoded(&[-3]), [128, 1, 4, 1, 5]);
    }

    #[test]
    fn it_does_not_matter_in_which_parts_the_values_come() {
        let values: Vec<i64> = (0..1000).map(|n| n * n % 777 - 300).collect();
        for part in [1, 7, 127, 128, 129, 1000] {
            let (mut deltas, mut out) = (Deltas::default(), Vec::new());
            values.chunks(part).for_each(|part| deltas.extend(part));
            deltas.finish(&mut out);
            assert_eq!(out, encoded(&values), "{part}");
        }
    }
}
