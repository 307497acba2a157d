//! Record batches as bytes, for an engine that runs in another process than whoever keeps its records.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;

use crate::{RecordsError, Table};

/// One batch as a complete Arrow IPC stream, schema included.
pub fn encode(table: Table, batch: &RecordBatch) -> Result<Vec<u8>, RecordsError> {
    let write = || {
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
        writer.write(batch)?;
        writer.into_inner()
    };
    write().map_err(|source| RecordsError::Transfer { table, source })
}

/// Reads what [`encode`] wrote; a batch that does not have the table's schema is an error.
pub fn decode(table: Table, bytes: &[u8]) -> Result<RecordBatch, RecordsError> {
    let read = || {
        let mut batches = StreamReader::try_new(bytes, None)?;
        if batches.schema() != table.schema() {
            return Err(ArrowError::SchemaError(format!("found {}", batches.schema())));
        }
        batches.next().unwrap_or_else(|| Err(ArrowError::IpcError("a stream without a batch".into())))
    };
    read().map_err(|source| RecordsError::Transfer { table, source })
}
