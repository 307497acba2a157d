//! The file of one table.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow_schema::Schema;
use bytes::Bytes;
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use parquet::arrow::{ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata};
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::column::{Column, Encoded};

/// Number of rows that are encoded before they are compressed and written. This bounds memory, and readers can skip
/// rows that they do not need. A row group has one page for each column.
const ROW_GROUP_ROWS: usize = 16 * 1024;

/// The columns by which rows are ordered. A reader that needs only some seconds, or some runs of a
/// [`Partition`](crate::Partition), can skip the row groups of the others, because their smallest and largest values are
/// stored. Other columns have no statistics: comparing all their values slows down a run that has many flows.
const ORDERED_BY: [&str; 4] = ["t_ns", "sent_ns", "started_ns", super::partition::RUN];

/// Writes the file of a table, row group by row group.
///
/// Integers are mostly times and counters, which differ little from row to row, so they are stored as differences,
/// which take only a few bits. Texts are few and repetitive, so they are stored in a dictionary. All pages are
/// compressed: flows are sampled in turn, and their rows repeat what the rows of the same flows had before.
pub(super) struct TableWriter {
    file: SerializedFileWriter<File>,
    columns: Vec<Column>,
    pages: Pages,
}

/// Buffers for the pages of a column, and what compresses them.
#[derive(Default)]
struct Pages {
    dictionary: Vec<u8>,
    data: Vec<u8>,
    compressor: Compressor,
}

#[derive(Default)]
struct Compressor {
    buffer: Vec<u8>,
    table: CompressTable,
}

impl TableWriter {
    pub(super) fn new(file: File, schema: &Schema) -> Result<Self> {
        let created_by = concat!("bufferscope ", env!("CARGO_PKG_VERSION")).to_owned();
        let mut properties = WriterProperties::builder().set_created_by(created_by).build();
        add_encoded_arrow_schema_to_metadata(schema, &mut properties);
        let root = ArrowSchemaConverter::new().convert(schema)?.root_schema_ptr();
        let fields = schema.fields().iter();
        Ok(Self {
            file: SerializedFileWriter::new(file, root, Arc::new(properties))?,
            columns: fields.map(|field| Column::new(field, ORDERED_BY.contains(&field.name().as_str()))).collect(),
            pages: Pages::default(),
        })
    }

    /// The columns, to each of which the same number of rows must be appended before the next [`TableWriter::check`].
    pub(super) fn columns(&mut self) -> &mut [Column] {
        &mut self.columns
    }

    /// Writes a row group if enough rows have come.
    pub(super) fn check(&mut self) -> Result<()> {
        if self.rows() >= ROW_GROUP_ROWS { self.write_row_group() } else { Ok(()) }
    }

    /// Writes what is left, and completes the file.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.rows() > 0 {
            self.write_row_group()?;
        }
        self.file.close().map(|_| ())
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, Column::rows)
    }

    fn write_row_group(&mut self) -> Result<()> {
        let descriptions = self.file.schema_descr().columns().to_vec();
        let mut group = self.file.next_row_group()?;
        for (column, description) in self.columns.iter_mut().zip(descriptions) {
            let (chunk, metadata) = self.pages.chunk(column, description)?;
            group.append_column(&chunk, metadata)?;
        }
        group.close().map(|_| ())
    }
}

impl Pages {
    /// The pages of a column, with what the file says of them; the column is empty afterwards.
    fn chunk(&mut self, column: &mut Column, description: ColumnDescPtr) -> Result<(Bytes, ColumnCloseResult)> {
        self.dictionary.clear();
        self.data.clear();
        let Encoded { rows, texts, encoding, statistics } = column.finish(&mut self.dictionary, &mut self.data);
        let mut chunk = Chunk { out: TrackedWrite::new(Vec::new()), uncompressed: 0 };
        if let Some(texts) = texts {
            let page = Page::DictionaryPage {
                buf: self.compressor.compress(&self.dictionary)?,
                num_values: count(texts)?,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            chunk.write(page, self.dictionary.len())?;
        }
        let data_page_offset = chunk.out.bytes_written();
        let page = Page::DataPage {
            buf: self.compressor.compress(&self.data)?,
            num_values: count(rows)?,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        chunk.write(page, self.data.len())?;
        chunk.out.flush()?;
        let bytes_written = chunk.out.bytes_written();
        let mut encodings = vec![Encoding::RLE, encoding];
        encodings.extend(texts.map(|_| Encoding::PLAIN));
        let mut metadata = ColumnChunkMetaData::builder(description)
            .set_encodings(encodings)
            .set_compression(Compression::LZ4_RAW)
            .set_total_compressed_size(bytes_written as i64)
            .set_total_uncompressed_size(chunk.uncompressed as i64)
            .set_num_values(rows as i64)
            .set_data_page_offset(data_page_offset as i64)
            .set_dictionary_page_offset(texts.map(|_| 0));
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let result = ColumnCloseResult {
            bytes_written: bytes_written as u64,
            rows_written: rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok((Bytes::from(chunk.out.into_inner()?), result))
    }
}

/// The pages of a column so far, with their headers.
struct Chunk {
    out: TrackedWrite<Vec<u8>>,
    /// Their size before compression.
    uncompressed: usize,
}

impl Chunk {
    fn write(&mut self, page: Page, uncompressed: usize) -> Result<()> {
        let page = CompressedPage::new(page, uncompressed);
        self.uncompressed += SerializedPageWriter::new(&mut self.out).write_page(page)?.uncompressed_size;
        Ok(())
    }
}

impl Compressor {
    fn compress(&mut self, page: &[u8]) -> Result<Bytes> {
        self.buffer.resize(get_maximum_output_size(page.len()), 0);
        let length = compress_into_with_table(page, &mut self.buffer, &mut self.table)
            .map_err(|error| ParquetError::External(error.into()))?;
        Ok(Bytes::copy_from_slice(&self.buffer[..length]))
    }
}

fn count(values: usize) -> Result<u32> {
    u32::try_from(values).map_err(|_| ParquetError::General(format!("a row group of {values} rows")))
}
