//! Columns of numbers for JavaScript: one block of memory, and a directory that says where each column is.

use serde_json::{Map, Value, json};

/// Columns, each with its path, such as `ports`, `r1>h2`, `bytes`.
#[derive(Debug, Default)]
pub struct Columns {
    /// The numbers, in eight bytes each or packed, in the order in which the machine stores them.
    words: Vec<u64>,
    directory: Map<String, Value>,
}

impl Columns {
    /// Removes all columns.
    pub fn clear(&mut self) {
        self.words.clear();
        self.directory.clear();
    }

    /// All columns, as the directory refers to them.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Where the columns are, as JSON: for each path the type of the numbers, the byte at which the column begins, and how
    /// many numbers it has.
    pub fn directory(&self) -> Vec<u8> {
        serde_json::to_vec(&self.directory).expect("plain data is written as JSON")
    }

    /// Adds a column of doubles.
    pub(crate) fn f64(&mut self, path: [&str; 3], values: impl Iterator<Item = f64>) {
        self.add(path, "f64", values.map(f64::to_le_bytes));
    }

    /// Adds a column of numbers of 32 bits.
    pub(crate) fn u32(&mut self, path: [&str; 3], values: impl Iterator<Item = u32>) {
        self.add(path, "u32", values.map(u32::to_le_bytes));
    }

    /// Adds a column of numbers of 16 bits.
    pub(crate) fn u16(&mut self, path: [&str; 3], values: impl Iterator<Item = u16>) {
        self.add(path, "u16", values.map(u16::to_le_bytes));
    }

    /// Adds a column of numbers of 8 bits.
    pub(crate) fn u8(&mut self, path: [&str; 3], values: impl Iterator<Item = u8>) {
        self.add(path, "u8", values.map(u8::to_le_bytes));
    }

    /// Sets a single value next to columns.
    pub(crate) fn set(&mut self, [part, name, key]: [&str; 3], value: Value) {
        let names = self.directory.entry(part).or_insert_with(|| json!({}));
        let keys = names.as_object_mut().expect("a part has names").entry(name).or_insert_with(|| json!({}));
        keys.as_object_mut().expect("a name has keys").insert(key.to_owned(), value);
    }

    fn add<const N: usize>(&mut self, path: [&str; 3], kind: &str, values: impl Iterator<Item = [u8; N]>) {
        let begins = 8 * self.words.len();
        let (mut count, mut word, mut filled) = (0_u32, [0; 8], 0);
        for value in values {
            word[filled..filled + N].copy_from_slice(&value);
            filled += N;
            count += 1;
            if filled == 8 {
                self.words.push(u64::from_le_bytes(word));
                (word, filled) = ([0; 8], 0);
            }
        }
        if filled > 0 {
            self.words.push(u64::from_le_bytes(word));
        }
        self.set(path, json!([kind, begins, count]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_one_another_at_multiples_of_eight_bytes() {
        let mut columns = Columns::default();
        columns.u8(["packets", "r1>h2", "kind"], [1, 2, 3].into_iter());
        columns.f64(["packets", "r1>h2", "t_ns"], [0.5].into_iter());
        columns.u32(["packets", "h2>r1", "packet"], [7, 8, 9].into_iter());
        let directory: Value = serde_json::from_slice(&columns.directory()).unwrap();
        assert_eq!(
            directory,
            json!({ "packets": {
                "r1>h2": { "kind": ["u8", 0, 3], "t_ns": ["f64", 8, 1] },
                "h2>r1": { "packet": ["u32", 16, 3] },
            } })
        );
        assert_eq!(columns.words(), [0x0003_0201, 0.5_f64.to_bits(), 7 | 8 << 32, 9]);
    }
}
