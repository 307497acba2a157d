//! The different texts of a column.

use std::collections::HashMap;

use rustc_hash::FxHashMap;

/// The texts of a row group, numbered in the order in which they first appear.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    indices: HashMap<Box<str>, u32>,
    /// The texts in Parquet's `PLAIN` encoding: each with its length before it.
    plain: Vec<u8>,
    /// The numbers of texts by a key of the source that gave them, which is quicker to look up.
    keyed: FxHashMap<u64, u32>,
    source: u64,
    text: String,
}

impl Dictionary {
    /// The number of a string.
    pub(super) fn index(&mut self, text: &str) -> u32 {
        if let Some(&index) = self.indices.get(text) {
            return index;
        }
        let index = self.len() as u32;
        self.plain.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.plain.extend_from_slice(text.as_bytes());
        self.indices.insert(text.into(), index);
        index
    }

    /// From now on, keys are those of this source.
    pub(super) fn of_source(&mut self, source: u64) {
        if self.source != source {
            self.source = source;
            self.keyed.clear();
        }
    }

    /// The number of the text of a key, which is written only if the key is new.
    #[inline]
    pub(super) fn index_of_key(&mut self, key: u64, write: impl FnOnce(&mut String)) -> u32 {
        if let Some(&index) = self.keyed.get(&key) {
            return index;
        }
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        write(&mut text);
        let index = self.index(&text);
        self.text = text;
        self.keyed.insert(key, index);
        index
    }

    /// How many different texts there are.
    pub(super) fn len(&self) -> usize {
        self.indices.len()
    }

    /// The texts as a dictionary page has them.
    pub(super) fn plain(&self) -> &[u8] {
        &self.plain
    }

    pub(super) fn clear(&mut self) {
        self.indices.clear();
        self.plain.clear();
        self.keyed.clear();
    }
}
