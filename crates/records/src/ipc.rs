//! Record batches as bytes: for an engine that runs in a different process from the one that keeps its records, and for
//! readers in another language.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Schema};

use crate::{RecordsError, Table};

/// One batch as a complete Arrow IPC stream, schema included.
pub fn encode(table: Table, batch: &RecordBatch) -> Result<Vec<u8>, RecordsError> {
    encode_all(table, std::slice::from_ref(batch))
}

/// The batches of a table, any number, as a complete Arrow IPC stream, schema included.
pub fn encode_all(table: Table, batches: &[RecordBatch]) -> Result<Vec<u8>, RecordsError> {
    let write = || {
        let mut writer = StreamWriter::try_new(Vec::new(), &crate::schema(table))?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.into_inner()
    };
    write().map_err(|source| RecordsError::Transfer { table, source })
}

/// Reads a batch that [`encode`] wrote. A batch with a schema other than the table's is a separate error.
pub fn decode(table: Table, bytes: &[u8]) -> Result<RecordBatch, RecordsError> {
    let failed = |source| RecordsError::Transfer { table, source };
    let mut batches = StreamReader::try_new(bytes, None).map_err(failed)?;
    if batches.schema() != crate::schema(table) {
        return Err(RecordsError::OtherColumns {
            table,
            differing: differing(&batches.schema(), &crate::schema(table)),
        });
    }
    batches.next().unwrap_or_else(|| Err(ArrowError::IpcError("a stream without a batch".into()))).map_err(failed)
}

/// The names of the first few columns that two schemas do not share.
fn differing(found: &Schema, expected: &Schema) -> String {
    const SHOWN: usize = 5;
    let alone = |these: &Schema, those: &Schema| {
        let fields = these.fields().iter().filter(|field| !those.fields().iter().any(|other| other == *field));
        fields.map(|field| field.name().chars().take(40).collect::<String>()).take(SHOWN).collect::<Vec<_>>()
    };
    let mut names = alone(found, expected);
    names.extend(alone(expected, found));
    names.dedup();
    if names.is_empty() { "their order".into() } else { names.join(", ") }
}
