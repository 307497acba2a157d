//! One Parquet file per table.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use crate::{RecordsError, RowCounts, Sink, Table};

/// Number of rows that are collected, encoded and compressed before they are written to disk. This bounds memory, and
/// readers can skip rows that they do not need.
const ROW_GROUP_ROWS: usize = 64 * 1024;

/// Streams each table into `<directory>/<table>.parquet`; all files are written, empty tables too, except those of
/// [optional](Table::is_optional) tables.
pub struct ParquetSink {
    directory: PathBuf,
    schemas: [SchemaRef; Table::ALL.len()],
    writers: [Option<ArrowWriter<File>>; Table::ALL.len()],
    rows: RowCounts,
}

impl ParquetSink {
    /// Creates the files in an existing directory; files of the same names are replaced.
    pub fn create(directory: &Path) -> Result<Self, RecordsError> {
        Self::with_schemas(directory, &Table::ALL.map(crate::schema))
    }

    /// The same for tables with other columns, in the order of [`Table::ALL`].
    pub(crate) fn with_schemas(
        directory: &Path,
        schemas: &[SchemaRef; Table::ALL.len()],
    ) -> Result<Self, RecordsError> {
        let mut writers = [const { None }; Table::ALL.len()];
        for table in Table::ALL.into_iter().filter(|table| !table.is_optional()) {
            writers[table as usize] = Some(writer(directory, table, &schemas[table as usize])?);
        }
        Ok(Self { directory: directory.to_owned(), schemas: schemas.clone(), writers, rows: RowCounts::default() })
    }
}

impl Sink for ParquetSink {
    type Output = RowCounts;

    fn write(&mut self, table: Table, batch: &RecordBatch) -> Result<(), RecordsError> {
        let place = &mut self.writers[table as usize];
        if place.is_none() {
            *place = Some(writer(&self.directory, table, &self.schemas[table as usize])?);
        }
        place.as_mut().expect("created above").write(batch).map_err(failed(table))?;
        self.rows.add(table, batch.num_rows());
        Ok(())
    }

    fn finish(self) -> Result<RowCounts, RecordsError> {
        for (table, writer) in Table::ALL.into_iter().zip(self.writers) {
            if let Some(writer) = writer {
                writer.close().map_err(failed(table))?;
            }
        }
        Ok(self.rows)
    }
}

fn writer(directory: &Path, table: Table, schema: &SchemaRef) -> Result<ArrowWriter<File>, RecordsError> {
    let path = directory.join(format!("{table}.parquet"));
    let file = File::create(&path).map_err(|source| RecordsError::Create { path, source })?;
    ArrowWriter::try_new(file, Arc::clone(schema), Some(properties(schema))).map_err(failed(table))
}

fn failed(table: Table) -> impl FnOnce(ParquetError) -> RecordsError {
    move |source| RecordsError::Write { table, source }
}

/// The columns by which rows are ordered. A reader that needs only some seconds, or some runs of a
/// [`Partition`](crate::Partition), can skip the row groups of the others, because their smallest and largest values are
/// stored.
const ORDERED_BY: [&str; 4] = ["t_ns", "sent_ns", "started_ns", crate::partition::RUN];

/// Integers are mostly times and counters, which differ little from row to row. They are stored as differences, which
/// take only a few bits. Texts are few and repetitive, so they are stored in a dictionary (the default). Other
/// columns have no statistics: comparing all their values slows down a run that has many flows.
fn properties(schema: &SchemaRef) -> WriterProperties {
    let builder = WriterProperties::builder()
        .set_created_by(concat!("bufferscope ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::LZ4_RAW)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    let integers = schema.fields().iter().filter(|field| *field.data_type() == DataType::Int64);
    let builder = integers.fold(builder, |builder, field| {
        let column = ColumnPath::from(field.name().as_str());
        builder
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED)
    });
    ORDERED_BY
        .into_iter()
        .fold(builder, |builder, column| {
            builder.set_column_statistics_enabled(ColumnPath::from(column), EnabledStatistics::Chunk)
        })
        .build()
}
