//! Events for the recorder from Python programs: the bridge to `horolog_probe`, as `horolog_tracing` is one for Rust's `tracing`.
//!
//! All events go through one trigger, `python`. While it is disabled a call looks at that and returns. No call here raises what an
//! unrecorded one would not: a value of another type is recorded as its text. What ends a program (`KeyboardInterrupt`, `SystemExit`) goes on,
//! also out of a value's own code.

#[cfg(feature = "run")]
mod bridge;

use crate::faults::Fault;
use bridge::{emit, is_wanted, start};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
#[cfg(feature = "run")]
use std::borrow::Cow;

/// Without run-time code nothing is ever recorded.
#[cfg(not(feature = "run"))]
mod bridge {
    use super::Argument;
    use pyo3::prelude::*;
    use pyo3::types::PyString;

    pub(super) fn is_wanted() -> bool {
        false
    }

    pub(super) fn start() {}

    pub(super) fn emit(_: &Bound<'_, PyString>, _: &str, _: &[Argument<'_>]) {}
}

/// The most arguments of an event.
const MOST_ARGUMENTS: usize = 10;

/// One argument as Python gave it.
#[cfg_attr(not(feature = "run"), expect(dead_code, reason = "nothing reads it"))]
struct Argument<'py> {
    name: Bound<'py, PyString>,
    unit: Option<Bound<'py, PyString>>,
    value: Given<'py>,
}

/// A value of an argument.
#[cfg_attr(not(feature = "run"), expect(dead_code, reason = "nothing reads it"))]
enum Given<'py> {
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Text(Bound<'py, PyString>),
    Shown(String),
}

impl<'py> Argument<'py> {
    fn of(name: Bound<'py, PyString>, given: Bound<'py, PyAny>) -> PyResult<Argument<'py>> {
        // A pair is a value and its unit.
        if let Ok(pair) = given.cast::<PyTuple>()
            && let Ok([value, unit]) = <[Bound<'py, PyAny>; 2]>::try_from(pair.iter().collect::<Vec<_>>())
            && let Ok(unit) = unit.cast_into::<PyString>()
        {
            return Ok(Argument { name, unit: Some(unit), value: Given::of(value)? });
        }
        Ok(Argument { name, unit: None, value: Given::of(given)? })
    }
}

impl<'py> Given<'py> {
    fn of(value: Bound<'py, PyAny>) -> PyResult<Given<'py>> {
        if let Ok(value) = value.cast::<PyBool>() {
            return Ok(Given::Bool(value.is_true()));
        }
        if let Ok(value) = value.cast::<PyFloat>() {
            return Ok(Given::Float(value.value()));
        }
        let value = match value.cast_into::<PyString>() {
            Ok(text) => return Ok(Given::Text(text)),
            Err(error) => error.into_inner(),
        };
        // NumPy's numbers are whole or floats by their own code.
        let py = value.py();
        if let Some(signed) = known(py, value.extract::<i64>())? {
            return Ok(Given::Signed(signed));
        }
        if let Some(unsigned) = known(py, value.extract::<u64>())? {
            return Ok(Given::Unsigned(unsigned));
        }
        if !value.is_instance_of::<PyInt>()
            && let Some(float) = known(py, value.extract::<f64>())?
        {
            return Ok(Given::Float(float));
        }
        let shown = known(py, value.repr())?.map(|text| text.to_string_lossy().into_owned());
        Ok(Given::Shown(shown.unwrap_or_else(|| "?".to_owned())))
    }
}

/// The UTF-8 of a text; what is not valid is replaced.
#[cfg(feature = "run")]
fn text<'a>(value: &'a Bound<'_, PyString>) -> Cow<'a, str> {
    value.to_str().map_or_else(|_| value.to_string_lossy(), Cow::Borrowed)
}

/// What a value's own code gave; `None` where it failed. What is no `Exception` ends more than a call, and is passed on.
fn known<T>(py: Python<'_>, found: PyResult<T>) -> PyResult<Option<T>> {
    match found {
        Err(error) if !error.is_instance_of::<PyException>(py) => Err(error),
        found => Ok(found.ok()),
    }
}

fn given<'py>(arguments: Option<&Bound<'py, PyDict>>) -> PyResult<Vec<Argument<'py>>> {
    let Some(arguments) = arguments else { return Ok(Vec::new()) };
    let named =
        arguments.iter().filter_map(|(name, value)| Some((name.cast_into::<PyString>().ok()?, value)));
    named.take(MOST_ARGUMENTS).map(|(name, value)| Argument::of(name, value)).collect()
}

/// The name of an event.
fn named<'a, 'py>(py: Python<'py>, name: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyString>> {
    name.cast::<PyString>().map_err(|_| Fault::words("name: an event is called by a text").raise(py))
}

/// Records an event, where the program is recorded; else nothing happens.
///
/// ``name`` is the event's, by custom ``subject/what``; ``arguments`` have the names that the trace shows. A value is a bool, a whole
/// number of at most 64 bits, a float or a text, of which 256 bytes are kept; ``length=(3, "items")`` gives its unit, too. What is none
/// of these is recorded as its ``repr``. Arguments behind the tenth are left out. Two events with the same number as ``flow`` are joined
/// by an arrow in Perfetto; ``flow_end`` is the last place of one.
#[pyfunction]
#[pyo3(signature = (name, /, **arguments))]
fn event<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyAny>,
    arguments: Option<&Bound<'py, PyDict>>,
) -> PyResult<()> {
    let name = named(py, name)?;
    if is_wanted() {
        emit(name, "", &given(arguments)?);
    }
    Ok(())
}

/// Records the new value of a counter, which Perfetto draws as a curve: the event ``NAME/counter``.
#[pyfunction]
#[pyo3(signature = (name, value, /, unit=None))]
fn counter<'py>(
    py: Python<'py>,
    name: &Bound<'py, PyAny>,
    value: Bound<'py, PyAny>,
    unit: Option<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let name = named(py, name)?;
    if is_wanted() {
        // What is no text is no unit.
        let unit = unit.and_then(|unit| unit.cast_into::<PyString>().ok());
        let unit = unit.filter(|unit| unit.len().is_ok_and(|length| length > 0));
        let label = pyo3::intern!(py, "value").clone();
        emit(name, "/counter", &[Argument { name: label, unit, value: Given::of(value)? }]);
    }
    Ok(())
}

/// Whether events are recorded now: worth asking where values are costly.
#[pyfunction]
fn is_recorded() -> bool {
    is_wanted()
}

/// A span of time: ``with span("plan", request=4): ...`` records ``plan/begin`` with the arguments, and ``plan/end``.
///
/// Spans of one thread nest; Perfetto shows them as slices, ``horolog trace stats`` as durations.
#[pyclass(frozen, name = "span", module = "horolog.trace")]
struct Span {
    name: Py<PyString>,
    arguments: Option<Py<PyDict>>,
}

#[pymethods]
impl Span {
    #[new]
    #[pyo3(signature = (name, /, **arguments))]
    fn new<'py>(
        py: Python<'py>,
        name: &Bound<'py, PyAny>,
        arguments: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Span> {
        let name = named(py, name)?.clone().unbind();
        Ok(Span { name, arguments: arguments.map(Bound::unbind) })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        if is_wanted() {
            let py = slf.py();
            let arguments = slf.arguments.as_ref().map(|arguments| arguments.bind(py));
            emit(slf.name.bind(py), "/begin", &given(arguments)?);
        }
        Ok(slf)
    }

    /// What was raised goes on.
    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _raised: &Bound<'_, PyAny>,
        _place: &Bound<'_, PyAny>,
    ) -> bool {
        if is_wanted() {
            emit(self.name.bind(py), "/end", &[]);
        }
        false
    }
}

/// Adds all of it to the module, and starts what the environment asks for.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    start();
    module.add_class::<Span>()?;
    module.add_function(wrap_pyfunction!(event, module)?)?;
    module.add_function(wrap_pyfunction!(counter, module)?)?;
    module.add_function(wrap_pyfunction!(is_recorded, module)?)
}
