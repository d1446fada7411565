//! Errors as exceptions: `horolog.errors.from_told` makes one of the objects that the command's JSON has.

use horolog_closed_loop::{LoopError, Told, place_told, words_told};
use horolog_model::Diagnostics;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// What went wrong: the errors, and the exit status of the command.
#[derive(Debug)]
pub(crate) struct Fault {
    errors: Vec<Told>,
    status: u8,
    /// All of it for people, with carets.
    text: String,
}

impl Fault {
    /// What is wrong with a file.
    pub(crate) fn places(found: &Diagnostics) -> Fault {
        let errors = found.messages().map(|message| place_told(message, "bad-input")).collect();
        Fault { errors, status: 2, text: found.to_string() }
    }

    /// Bad input in words.
    pub(crate) fn words(text: impl ToString) -> Fault {
        Fault::of("bad-input", 2, &text.to_string())
    }

    /// What this build has not.
    #[cfg(not(feature = "run"))]
    pub(crate) fn not_allowed(text: &str) -> Fault {
        Fault::of("not-allowed", 3, text)
    }

    fn of(kind: &'static str, status: u8, text: &str) -> Fault {
        let text = text.trim_end();
        let text = text.strip_prefix("error: ").unwrap_or(text);
        Fault { errors: vec![words_told(text, kind)], status, text: text.to_owned() }
    }

    /// All of it for people.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The exception.
    pub(crate) fn raise(&self, py: Python<'_>) -> PyErr {
        let made = || -> PyResult<PyErr> {
            let errors = serde_json::to_string(&self.errors)
                .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            let maker = py.import("horolog.errors")?.getattr("from_told")?;
            Ok(PyErr::from_value(maker.call1((errors, self.status, self.text.trim_end()))?))
        };
        made().unwrap_or_else(|error| error)
    }
}

impl From<LoopError> for Fault {
    fn from(error: LoopError) -> Fault {
        let text = error.to_string();
        match () {
            () if error.is_stopped() => Fault::of("undecided", 4, &text),
            () if error.is_bad_input() => Fault::of("bad-input", 2, &text),
            () if error.is_not_permitted() => Fault::of("not-allowed", 3, &text),
            () => Fault::of("no", 1, &text),
        }
    }
}

/// A fault of horolog itself.
pub(crate) fn internal(py: Python<'_>, text: &str) -> PyErr {
    Fault::of("internal", 2, text).raise(py)
}
