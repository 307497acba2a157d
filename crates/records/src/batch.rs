//! The rows of a table that are passed on together.

use std::fmt;

use arrow_array::RecordBatch;

use crate::names::Names;
#[cfg(feature = "parquet")]
use crate::parquet::Column;
use crate::rows::ReadColumns;

/// Some rows of one table: as a recorder has them, or as an Arrow record batch of the table's [schema](crate::schema),
/// from another process or from memory.
///
/// A sink that stores rows reads a recorder's columns as they are. Only a sink that wants a record batch has one made.
pub struct Batch<'a>(Form<'a>);

enum Form<'a> {
    Recorded(&'a dyn ReadColumns, &'a Names),
    Arrow(&'a RecordBatch),
}

impl<'a> Batch<'a> {
    pub(crate) fn recorded(rows: &'a dyn ReadColumns, names: &'a Names) -> Self {
        Self(Form::Recorded(rows, names))
    }

    /// The number of rows.
    pub fn num_rows(&self) -> usize {
        match self.0 {
            Form::Recorded(rows, _) => rows.rows(),
            Form::Arrow(batch) => batch.num_rows(),
        }
    }

    /// The rows as a record batch. Its columns are copied from a recorder, and shared with another record batch.
    pub fn to_arrow(&self) -> RecordBatch {
        match self.0 {
            Form::Recorded(rows, names) => RecordBatch::try_new(crate::schema(rows.table()), rows.arrays(names))
                .expect("a row's fields and columns come from one declaration"),
            Form::Arrow(batch) => batch.clone(),
        }
    }

    /// Passes the rows on in parts of bounded size. (A recorder's batches are bounded anyway.)
    #[cfg(feature = "parquet")]
    pub(crate) fn in_parts<E>(&self, mut take: impl FnMut(&Batch<'_>) -> Result<(), E>) -> Result<(), E> {
        /// As many as a few of a recorder's batches have.
        const PART_ROWS: usize = 4096;
        let Form::Arrow(whole) = self.0 else { return take(self) };
        (0..whole.num_rows()).step_by(PART_ROWS).try_for_each(|from| {
            let part = whole.slice(from, PART_ROWS.min(whole.num_rows() - from));
            take(&Batch(Form::Arrow(&part)))
        })
    }

    /// Appends each column to one of a file, of which there are as many.
    #[cfg(feature = "parquet")]
    pub(crate) fn encode(&self, columns: &mut [Column]) {
        match self.0 {
            Form::Recorded(rows, names) => rows.encode(names, columns),
            Form::Arrow(batch) => columns.iter_mut().zip(batch.columns()).for_each(|(into, array)| into.array(array)),
        }
    }
}

impl<'a> From<&'a RecordBatch> for Batch<'a> {
    fn from(batch: &'a RecordBatch) -> Self {
        Self(Form::Arrow(batch))
    }
}

impl fmt::Debug for Batch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("rows", &self.num_rows()).finish_non_exhaustive()
    }
}
