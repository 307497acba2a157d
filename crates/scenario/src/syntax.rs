//! From bytes to TOML tables, or a clear error message.

use toml::Table;

use crate::error::{Problem, Problems, escape};

/// Largest file in bytes.
const LARGEST: usize = 1 << 20;

const HINT: &str = "`bufferscope list` names experiments to start from, `bufferscope show NAME` prints one";

/// The text of a file, if it can be text at all.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, Problems> {
    check_size(bytes.len())?;
    std::str::from_utf8(bytes).map_err(|error| {
        let found = format!("binary data (no UTF-8 at byte {})", error.valid_up_to());
        Problem::new("", found, "an experiment, a text file in TOML").hint(HINT).into()
    })
}

/// The tables of a document. The parser bounds the depth of nesting, so walking them can't overflow the stack.
pub(crate) fn tables(text: &str) -> Result<Table, Problems> {
    check_size(text.len())?;
    if let Some(position) = text.find('\0') {
        let found = format!("binary data (a NUL at byte {position})");
        return Err(Problem::new("", found, "an experiment, a text file in TOML").hint(HINT).into());
    }
    let table: Table = text.parse().map_err(|error| invalid(text, &error))?;
    if table.is_empty() {
        return Err(Problem::new("", "an empty file", "an experiment in TOML").hint(HINT).into());
    }
    Ok(table)
}

fn check_size(bytes: usize) -> Result<(), Problems> {
    if bytes <= LARGEST {
        return Ok(());
    }
    Err(Problem::new("", format!("{bytes} bytes"), format!("at most {LARGEST} bytes (1mb)")).into())
}

fn invalid(text: &str, error: &toml::de::Error) -> Problem {
    let position = error.span().map(|span| line_and_column(text, span.start)).unwrap_or_default();
    let message = escape(error.message().lines().collect::<Vec<_>>().join(", ").chars());
    Problem::new(position, format!("invalid TOML ({message})"), "TOML as https://toml.io describes it")
}

/// Line and column of a byte, counted from 1.
fn line_and_column(text: &str, byte: usize) -> String {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = 1 + before.matches('\n').count();
    let column = 1 + before[line_start..].chars().count();
    format!("line {line}, column {column}")
}
