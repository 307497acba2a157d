//! What the WebAssembly module exports.
//!
//! There is one session at a time. Its caller writes a request into the memory that [`bs_input`] gives, calls
//! [`bs_open`], and then [`bs_step`] until the run is over. Each of these leaves its answer as JSON, and columns of
//! numbers, until the next call: see [`bs_text`] and [`bs_columns`].
#![allow(unsafe_code, reason = "an exported symbol could clash with another one")]

use std::cell::RefCell;

use crate::{Columns, Session, Step};

/// The state between two calls.
#[derive(Default)]
struct State {
    input: Vec<u8>,
    session: Option<Session>,
    text: Vec<u8>,
    columns: Columns,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(act: impl FnOnce(&mut State) -> T) -> T {
    STATE.with_borrow_mut(act)
}

/// Makes room for an input of `length` bytes; returns where it is to be written.
#[unsafe(no_mangle)]
pub extern "C" fn bs_input(length: usize) -> *mut u8 {
    with(|state| {
        state.input = vec![0; length];
        state.input.as_mut_ptr()
    })
}

/// Opens the request that was written as input. The text is then its description, or the reason for which it is refused.
/// Returns 0 if a run can begin, 1 if the request was refused.
#[unsafe(no_mangle)]
pub extern "C" fn bs_open() -> u32 {
    with(|state| {
        let input = std::mem::take(&mut state.input);
        state.session = None;
        match Session::open(&input) {
            Ok((opened, session)) => {
                state.text = json(&opened);
                state.session = Some(session);
                0
            }
            Err(refusal) => {
                state.text = json(&refusal);
                1
            }
        }
    })
}

/// Advances the run to `until_ns`, or to its end if that is earlier. The columns are then what was recorded since the
/// last call, and the text their directory. Returns 0 if the run goes on, 1 if it has come to its end, 2 if a change was refused: then
/// the text is the reason.
#[unsafe(no_mangle)]
pub extern "C" fn bs_step(until_ns: f64) -> u32 {
    with(|state| {
        let Some(session) = &mut state.session else { return 2 };
        state.columns.clear();
        match session.step(until_ns as u64, &mut state.columns) {
            Ok(step) => {
                state.text = state.columns.directory();
                u32::from(step == Step::AtEnd)
            }
            Err(refusal) => {
                state.session = None;
                state.text = json(&refusal);
                2
            }
        }
    })
}

/// Ends a run that has come to its end. The columns are then what was still missing, and the text their directory. [`bs_summary`] follows.
#[unsafe(no_mangle)]
pub extern "C" fn bs_finish() -> u32 {
    with(|state| {
        let Some(session) = state.session.take() else { return 2 };
        state.columns.clear();
        let (code, text) = match session.finish(&mut state.columns) {
            Ok(summary) => (0, json(&summary)),
            Err(refusal) => (2, json(&refusal)),
        };
        state.text = if code == 0 { state.columns.directory() } else { text.clone() };
        state.input = text;
        code
    })
}

/// After [`bs_finish`]: the text becomes the summary of the run.
#[unsafe(no_mangle)]
pub extern "C" fn bs_summary() {
    with(|state| state.text = std::mem::take(&mut state.input));
}

/// The text becomes the JSON Schema of experiment files.
#[unsafe(no_mangle)]
pub extern "C" fn bs_schema() {
    with(|state| state.text = json(&bufferscope_scenario::schema()));
}

/// The current time of the run in nanoseconds; NaN without a run.
#[unsafe(no_mangle)]
pub extern "C" fn bs_now() -> f64 {
    with(|state| state.session.as_ref().map_or(f64::NAN, |session| session.now_ns() as f64))
}

/// Where the text of the last call is: UTF-8.
#[unsafe(no_mangle)]
pub extern "C" fn bs_text() -> *const u8 {
    with(|state| state.text.as_ptr())
}

/// The length of the text.
#[unsafe(no_mangle)]
pub extern "C" fn bs_text_length() -> usize {
    with(|state| state.text.len())
}

/// Where the columns of the last call are: 8-byte aligned.
#[unsafe(no_mangle)]
pub extern "C" fn bs_columns() -> *const u64 {
    with(|state| state.columns.words().as_ptr())
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data is written as JSON")
}
