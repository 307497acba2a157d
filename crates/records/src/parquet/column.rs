//! The values of a column of a row group, encoded as they come.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use parquet::basic::Encoding;
use parquet::file::statistics::Statistics;

use super::delta::Deltas;
use super::dictionary::Dictionary;
use super::hybrid::{self, pack};

/// A column that is being written.
#[derive(Debug)]
pub(crate) struct Column {
    rows: Rows,
    values: Values,
    range: Option<Range>,
}

/// The rows, and in a nullable column which of them have a value.
#[derive(Debug)]
struct Rows {
    count: usize,
    levels: Option<Levels>,
}

/// Values without the nulls among them.
#[derive(Debug)]
enum Values {
    Integers(Box<Deltas>),
    Booleans(Vec<u8>),
    Texts { dictionary: Box<Dictionary>, indices: Vec<u32> },
}

/// Which rows of a nullable column have a value (Parquet's "definition levels").
#[derive(Debug, Default)]
struct Levels {
    /// So many rows at the beginning have one.
    full: usize,
    /// One byte for each later row: 1 if it has a value.
    then: Vec<u8>,
}

/// The smallest and the largest value.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: i64,
    largest: i64,
    is_narrow: bool,
}

/// What a file has of a column in a row group.
pub(super) struct Encoded {
    pub(super) rows: usize,
    /// How many texts the dictionary has, if there is one, which must be written before the values.
    pub(super) texts: Option<usize>,
    pub(super) encoding: Encoding,
    pub(super) statistics: Option<Statistics>,
}

impl Column {
    /// An empty column with the type of a field. The smallest and largest values are kept `with_range`, which only
    /// integers have.
    pub(super) fn new(field: &Field, with_range: bool) -> Self {
        let values = match field.data_type() {
            DataType::Int32 | DataType::Int64 => Values::Integers(Box::default()),
            DataType::Boolean => Values::Booleans(Vec::new()),
            DataType::Utf8 => Values::Texts { dictionary: Box::default(), indices: Vec::new() },
            other => unreachable!("no table has a column of {other}"),
        };
        let is_narrow = *field.data_type() == DataType::Int32;
        let range = Range { least: i64::MAX, largest: i64::MIN, is_narrow };
        let rows = Rows { count: 0, levels: field.is_nullable().then(Levels::default) };
        Self { rows, values, range: with_range.then_some(range) }
    }

    /// Appends integers, none of which is null.
    pub(crate) fn integers(&mut self, values: &[i64]) {
        let Values::Integers(deltas) = &mut self.values else { unreachable!("a column of integers") };
        self.rows.extend(true, values.len());
        deltas.extend(values);
        if let Some(range) = &mut self.range {
            range.extend(values);
        }
    }

    /// Appends integers; `null` is the one that means that there is no value.
    pub(crate) fn integers_or(&mut self, values: &[i64], null: i64) {
        let mut rest = values;
        while !rest.is_empty() {
            let known = rest.iter().position(|&value| value == null).unwrap_or(rest.len());
            self.integers(&rest[..known]);
            let unknown = rest[known..].iter().take_while(|&&value| value == null).count();
            self.rows.extend(false, unknown);
            rest = &rest[known + unknown..];
        }
    }

    /// Appends booleans.
    pub(crate) fn booleans(&mut self, values: impl Iterator<Item = Option<bool>>) {
        let Values::Booleans(all) = &mut self.values else { unreachable!("a column of booleans") };
        for value in values {
            self.rows.extend(value.is_some(), 1);
            all.extend(value.map(u8::from));
        }
    }

    /// Appends texts.
    pub(crate) fn texts<'a>(&mut self, values: impl Iterator<Item = Option<&'a str>>) {
        self.indices(values, |dictionary, text| dictionary.index(text));
    }

    /// Appends texts that have keys: within a source, equal keys mean equal texts. `write` gives the text of a value.
    pub(crate) fn keyed_texts<V: Copy>(
        &mut self,
        source: u64,
        values: impl Iterator<Item = Option<V>>,
        key: impl Fn(V) -> u64,
        write: impl Fn(V, &mut String),
    ) {
        if let Values::Texts { dictionary, .. } = &mut self.values {
            dictionary.of_source(source);
        }
        self.indices(values, |dictionary, value| dictionary.index_of_key(key(value), |text| write(value, text)));
    }

    /// Appends the values of an array with the column's type.
    pub(crate) fn array(&mut self, array: &ArrayRef) {
        match &self.values {
            Values::Integers(_) => {
                let array = array.as_primitive::<Int64Type>();
                if array.null_count() == 0 {
                    self.integers(array.values());
                } else {
                    for value in array {
                        match value {
                            None => self.rows.extend(false, 1),
                            Some(value) => self.integers(&[value]),
                        }
                    }
                }
            }
            Values::Booleans(_) => self.booleans(array.as_boolean().iter()),
            Values::Texts { .. } => self.texts(array.as_string::<i32>().iter()),
        }
    }

    /// The number of rows so far.
    pub(super) fn rows(&self) -> usize {
        self.rows.count
    }

    /// Writes the dictionary page, if there is one, and the data page; afterwards the column is empty again.
    pub(super) fn finish(&mut self, dictionary_page: &mut Vec<u8>, data_page: &mut Vec<u8>) -> Encoded {
        let nulls = self.rows.levels.as_mut().map_or(0, |levels| levels.finish(data_page));
        let (texts, encoding) = match &mut self.values {
            Values::Integers(deltas) => {
                deltas.finish(data_page);
                (None, Encoding::DELTA_BINARY_PACKED)
            }
            Values::Booleans(all) => {
                pack(all, all.len(), 1, data_page);
                all.clear();
                (None, Encoding::PLAIN)
            }
            Values::Texts { dictionary, indices } => {
                let texts = dictionary.len();
                dictionary_page.extend_from_slice(dictionary.plain());
                let width = hybrid::bits(texts.saturating_sub(1) as u64);
                data_page.push(width as u8);
                hybrid::encode(indices, width, data_page);
                dictionary.clear();
                indices.clear();
                (Some(texts), Encoding::RLE_DICTIONARY)
            }
        };
        let rows = std::mem::take(&mut self.rows.count);
        let statistics = self.range.as_mut().and_then(|range| range.finish(nulls as u64));
        Encoded { rows, texts, encoding, statistics }
    }

    #[inline]
    fn indices<V>(
        &mut self,
        values: impl Iterator<Item = Option<V>>,
        mut index: impl FnMut(&mut Dictionary, V) -> u32,
    ) {
        let Values::Texts { dictionary, indices } = &mut self.values else { unreachable!("a column of texts") };
        for value in values {
            self.rows.extend(value.is_some(), 1);
            if let Some(value) = value {
                indices.push(index(dictionary, value));
            }
        }
    }
}

impl Rows {
    #[inline]
    fn extend(&mut self, are_defined: bool, count: usize) {
        self.count += count;
        match &mut self.levels {
            Some(levels) => levels.extend(are_defined, count),
            None => assert!(are_defined, "only nullable columns have nulls"),
        }
    }
}

impl Levels {
    #[inline]
    fn extend(&mut self, is_defined: bool, rows: usize) {
        if is_defined && self.then.is_empty() {
            self.full += rows;
        } else {
            self.then.resize(self.then.len() + rows, is_defined.into());
        }
    }

    /// Appends the levels with their length before them, as a data page of the first version has them; the number of
    /// nulls.
    fn finish(&mut self, page: &mut Vec<u8>) -> usize {
        let begin = page.len();
        page.extend_from_slice(&[0; 4]);
        let full = std::mem::take(&mut self.full);
        if self.then.is_empty() {
            hybrid::run(1, full, 1, page);
        } else {
            self.then.splice(0..0, std::iter::repeat_n(1, full));
            hybrid::encode(&self.then, 1, page);
        }
        let length = (page.len() - begin - 4) as u32;
        page[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
        let nulls = self.then.iter().filter(|&&level| level == 0).count();
        self.then.clear();
        nulls
    }
}

impl Range {
    fn extend(&mut self, values: &[i64]) {
        for &value in values {
            self.least = self.least.min(value);
            self.largest = self.largest.max(value);
        }
    }

    /// Begins anew; `None` if there was no value.
    fn finish(&mut self, nulls: u64) -> Option<Statistics> {
        let Self { least, largest, is_narrow } = *self;
        (self.least, self.largest) = (i64::MAX, i64::MIN);
        if least > largest {
            return None;
        }
        let narrow = |value: i64| i32::try_from(value).ok();
        Some(if is_narrow {
            Statistics::int32(narrow(least), narrow(largest), None, Some(nulls), false)
        } else {
            Statistics::int64(Some(least), Some(largest), None, Some(nulls), false)
        })
    }
}
