//! `bufferscope-live serve --status`: the state of a server that runs on this machine.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use crate::server::status::socket;

/// Rates are those of this time.
const SPAN: Duration = Duration::from_secs(1);

/// Prints the state of the server that listens on a port.
pub(super) async fn print_status(port: u16, as_json: bool) -> Result<ExitCode, String> {
    let first = socket::read(port)?;
    let text = if as_json {
        serde_json::to_string(&first).map_err(|error| error.to_string())? + "\n"
    } else {
        tokio::time::sleep(SPAN).await;
        socket::read(port)?.text(&first)
    };
    io::stdout().lock().write_all(text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(ExitCode::SUCCESS)
}
