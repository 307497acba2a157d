//! One Parquet file per table.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use parquet::errors::ParquetError;

use super::column::Column;
use super::table::TableWriter;
use crate::{Batch, RecordsError, RowCounts, Sink, Table};

/// Streams each table into `<directory>/<table>.parquet`; all files are written, empty tables too, except those of
/// [optional](Table::is_optional) tables.
pub struct ParquetSink {
    directory: PathBuf,
    schemas: [SchemaRef; Table::ALL.len()],
    writers: [Option<TableWriter>; Table::ALL.len()],
    rows: RowCounts,
}

impl ParquetSink {
    /// Creates the files in an existing directory; files of the same names are replaced.
    pub fn create(directory: &Path) -> Result<Self, RecordsError> {
        Self::with_schemas(directory, Table::ALL.map(crate::schema))
    }

    /// The same for tables with other columns, in the order of [`Table::ALL`].
    pub(super) fn with_schemas(directory: &Path, schemas: [SchemaRef; Table::ALL.len()]) -> Result<Self, RecordsError> {
        let mut writers = [const { None }; Table::ALL.len()];
        for table in Table::ALL.into_iter().filter(|table| !table.is_optional()) {
            writers[table as usize] = Some(writer(directory, table, &schemas[table as usize])?);
        }
        Ok(Self { directory: directory.to_owned(), schemas, writers, rows: RowCounts::default() })
    }

    /// Appends the rows of a batch, of which `append` passes at most a row group's at a time to the columns.
    pub(super) fn append(
        &mut self,
        table: Table,
        batch: &Batch<'_>,
        mut append: impl FnMut(&Batch<'_>, &mut [Column]),
    ) -> Result<(), RecordsError> {
        let place = &mut self.writers[table as usize];
        if place.is_none() {
            *place = Some(writer(&self.directory, table, &self.schemas[table as usize])?);
        }
        let writer = place.as_mut().expect("created above");
        batch.in_parts(|part| {
            append(part, writer.columns());
            writer.check().map_err(failed(table))
        })?;
        self.rows.add(table, batch.num_rows());
        Ok(())
    }
}

impl Sink for ParquetSink {
    type Output = RowCounts;

    fn write(&mut self, table: Table, batch: &Batch<'_>) -> Result<(), RecordsError> {
        self.append(table, batch, |part, columns| part.encode(columns))
    }

    fn finish(self) -> Result<RowCounts, RecordsError> {
        for (table, writer) in Table::ALL.into_iter().zip(self.writers) {
            if let Some(writer) = writer {
                writer.finish().map_err(failed(table))?;
            }
        }
        Ok(self.rows)
    }
}

fn writer(directory: &Path, table: Table, schema: &SchemaRef) -> Result<TableWriter, RecordsError> {
    let path = directory.join(format!("{table}.parquet"));
    let file = File::create(&path).map_err(|source| RecordsError::Create { path, source })?;
    TableWriter::new(file, schema).map_err(failed(table))
}

fn failed(table: Table) -> impl FnOnce(ParquetError) -> RecordsError {
    move |source| RecordsError::Write { table, source }
}
