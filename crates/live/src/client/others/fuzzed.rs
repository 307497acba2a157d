//! What other people's servers send, without a network: where the fuzz targets begin.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::DuplexStream;

use super::ndt7::Test;
use super::{Connection, HttpError, PATIENCE, Purpose, config, whole};
use crate::client::http::Tuning;
use crate::load::Shared;
use crate::records::FlowRow;

/// Asks for a configuration over a stream. `socket` is a connection that can be asked for statistics.
pub async fn configuration(stream: DuplexStream, socket: OwnedFd, speaks_http2: bool) -> Result<Vec<u8>, HttpError> {
    let url = "https://example.org/.well-known/nq".parse().expect("a URL");
    let asking = async {
        let tuning = Arc::new(Tuning::default());
        let mut connection = Connection::over(stream, speaks_http2, &Purpose::Probe, socket, tuning).await?;
        whole(connection.get(&url).await?, config::LONGEST).await
    };
    let silent = || HttpError::Silent(([192, 0, 2, 1], 443).into());
    tokio::time::timeout(PATIENCE * 2, asking).await.unwrap_or_else(|_| Err(silent()))
}

/// Runs a download of ndt7 over a stream. The rows of the server's messages are those of the result.
pub async fn ndt7(stream: DuplexStream) -> Result<Vec<FlowRow>, HttpError> {
    let (url, shared) = ("ws://example.org/ndt/v7/download".parse().expect("a URL"), Arc::new(Shared::default()));
    let mut rows = Vec::new();
    let silent = || HttpError::Silent(([192, 0, 2, 1], 80).into());
    let opening = tokio::time::timeout(PATIENCE, Test::over(Box::new(stream), &url, &shared)).await;
    opening.unwrap_or_else(|_| Err(silent()))?.download(|row| rows.push(row)).await?;
    Ok(rows)
}
