//! Batches: drawing task sets and testing them, on arrays of 64-bit integers in nanoseconds.

use crate::faults::Fault;
use crate::interruptible;
use horolog_analysis::Verdict;
use horolog_analysis::batch::{BatchTest, Sets, decide};
use horolog_draw::recipe::method_of;
use horolog_draw::{Batch, BatchRecipe, Bounds, Method, Random, Vectors};
use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Sets that are tested before Ctrl-C is looked for.
const CHUNK_VALUES: usize = 1 << 20;
/// The most values of one array: 8 GiB.
const MOST_VALUES: usize = 1 << 30;

/// What sets to draw, as Python has checked its types.
#[derive(FromPyObject)]
struct Recipe {
    count: usize,
    first: u64,
    tasks: usize,
    utilisation: f64,
    method: String,
    periods: String,
    shortest_period_ns: u64,
    longest_period_ns: u64,
    granularity_ns: u64,
    deadlines: String,
    least: f64,
    factor: f64,
    seed: u64,
    threads: usize,
    bounds: Option<(Vec<f64>, Vec<f64>)>,
}

impl Recipe {
    fn batch(&self) -> Result<Batch, Fault> {
        let words = BatchRecipe {
            tasks: self.tasks,
            utilisation: self.utilisation,
            method: self.method.clone(),
            periods: self.periods.clone(),
            shortest_period_ns: self.shortest_period_ns,
            longest_period_ns: self.longest_period_ns,
            granularity_ns: self.granularity_ns,
            deadlines: self.deadlines.clone(),
            least: self.least,
            factor: self.factor,
        };
        let bounds = self.bounds.clone().map(|(lower, upper)| Bounds { lower, upper });
        words.within(self.seed, bounds).map_err(|flaw| Fault::words(named_here(&flaw)))
    }
}

fn values(count: usize, tasks: usize) -> Result<usize, Fault> {
    count.checked_mul(tasks).filter(|&values| values <= MOST_VALUES).ok_or_else(|| {
        Fault::words(format!(
            "count: {count} sets of {tasks} tasks are more than {MOST_VALUES} values: draw them in parts, with `first`"
        ))
    })
}

fn bytes_of(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// A flaw, which begins with its argument, by the argument's name in Python.
fn named_here(flaw: &str) -> String {
    match flaw.split_once(':') {
        Some((name @ ("shortest_period" | "longest_period" | "granularity"), rest)) => {
            format!("{name}_ns:{rest}")
        }
        _ => flaw.to_owned(),
    }
}

/// Three arrays of 64-bit integers as bytes: C, D, T.
#[pyfunction]
fn generate<'py>(py: Python<'py>, recipe: Recipe) -> PyResult<[Bound<'py, PyBytes>; 3]> {
    let checked =
        || -> Result<(Batch, usize), Fault> { Ok((recipe.batch()?, values(recipe.count, recipe.tasks)?)) };
    let (batch, length) = checked().map_err(|fault| fault.raise(py))?;
    let drawn = interruptible(py, move || {
        let mut arrays = [const { Vec::new() }; 3];
        arrays.iter_mut().for_each(|array| array.resize(length, 0_u64));
        let [wcet, deadline, period] = &mut arrays;
        batch.draw(recipe.first, [wcet, deadline, period], recipe.threads)?;
        Ok(arrays.map(|array| bytes_of(&array)))
    })?;
    let arrays = drawn.map_err(|flaw: String| Fault::words(flaw).raise(py))?;
    Ok(arrays.map(|array| PyBytes::new(py, &array)))
}

/// Vectors of utilisations as bytes of 64-bit floating-point numbers.
#[pyfunction]
fn utilisations<'py>(
    py: Python<'py>,
    count: usize,
    tasks: usize,
    utilisation: f64,
    word: &str,
    seed: u64,
    bounds: Option<(Vec<f64>, Vec<f64>)>,
) -> PyResult<Bound<'py, PyBytes>> {
    let checked = || -> Result<(Method, usize), Fault> {
        Ok((method_of(word).map_err(Fault::words)?, values(count, tasks)?))
    };
    let (method, length) = checked().map_err(|fault| fault.raise(py))?;
    let drawn = interruptible(py, move || {
        let mut random = Random::new(seed);
        let mut shares = vec![0.0; length];
        let rows = shares.chunks_mut(tasks);
        match &bounds {
            Some((lower, upper)) if lower.len() != tasks => {
                for ((row, shares), (lower, upper)) in
                    rows.enumerate().zip(lower.chunks(tasks).zip(upper.chunks(tasks)))
                {
                    let vectors = Vectors::bounded(method, utilisation, lower, upper);
                    vectors.map_err(|flaw| format!("{flaw} (vector {row})"))?.draw(&mut random, shares);
                }
            }
            bounds => {
                let mut vectors = match bounds {
                    Some((lower, upper)) => Vectors::bounded(method, utilisation, lower, upper),
                    None => Vectors::new(method, tasks, utilisation),
                }?;
                rows.for_each(|shares| vectors.draw(&mut random, shares));
            }
        }
        Ok(shares.iter().flat_map(|share| share.to_ne_bytes()).collect::<Vec<u8>>())
    })?;
    let drawn = drawn.map_err(|flaw: String| Fault::words(flaw).raise(py))?;
    Ok(PyBytes::new(py, &drawn))
}

/// An array of whole numbers in nanoseconds.
enum Array {
    Unsigned(PyBuffer<u64>),
    Signed(PyBuffer<i64>),
}

impl Array {
    fn of(argument: &str, object: &Bound<'_, PyAny>) -> Result<Array, Fault> {
        let refuse = |what: &str| {
            Fault::words(format!(
                "{argument}: {what}\n  = help: give a contiguous array of 64-bit integers in nanoseconds, one row a set"
            ))
        };
        let found = match PyBuffer::<u64>::get(object) {
            Ok(buffer) => Array::Unsigned(buffer),
            Err(_) => match PyBuffer::<i64>::get(object) {
                Ok(buffer) => Array::Signed(buffer),
                Err(error) => return Err(refuse(&error.to_string())),
            },
        };
        let is_whole = match &found {
            Array::Unsigned(buffer) => buffer.is_c_contiguous(),
            Array::Signed(buffer) => buffer.is_c_contiguous(),
        };
        if is_whole { Ok(found) } else { Err(refuse("the array is not contiguous")) }
    }

    fn shape(&self) -> &[usize] {
        match self {
            Array::Unsigned(buffer) => buffer.shape(),
            Array::Signed(buffer) => buffer.shape(),
        }
    }

    /// A copy of a part: other threads may write to the array while the engine reads.
    fn part(&self, py: Python<'_>, argument: &str, from: usize, until: usize) -> Result<Vec<u64>, Fault> {
        let gone = || Fault::words(format!("{argument}: the array has changed its size"));
        match self {
            Array::Unsigned(buffer) => {
                let cells = buffer.as_slice(py).and_then(|cells| cells.get(from..until)).ok_or_else(gone)?;
                Ok(cells.iter().map(pyo3::buffer::ReadOnlyCell::get).collect())
            }
            Array::Signed(buffer) => {
                let cells = buffer.as_slice(py).and_then(|cells| cells.get(from..until)).ok_or_else(gone)?;
                cells
                    .iter()
                    .map(|cell| {
                        let value = cell.get();
                        u64::try_from(value)
                            .map_err(|_| Fault::words(format!("{argument}: {value} ns is below zero")))
                    })
                    .collect()
            }
        }
    }
}

/// The arrays of a batch by their names, and its tests.
type Checked = ([(&'static str, Array); 3], Vec<BatchTest>);

/// One byte a set and test: 1 meets, 0 misses, 255 (as a signed byte -1) unknown.
#[pyfunction]
fn batch<'py>(
    py: Python<'py>,
    wcet: &Bound<'py, PyAny>,
    deadline: &Bound<'py, PyAny>,
    period: &Bound<'py, PyAny>,
    tests: Vec<String>,
    threads: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let checked = || -> Result<Checked, Fault> {
        let arrays = [
            ("wcet", Array::of("wcet", wcet)?),
            ("deadline", Array::of("deadline", deadline)?),
            ("period", Array::of("period", period)?),
        ];
        let known = || BatchTest::ALL.map(BatchTest::word).join(", ");
        let tests = tests.iter().map(|word| {
            let of_systems = || {
                let is_one = horolog_sweep::Test::of_word(word).is_some();
                if is_one { " (it is a test of whole systems: `horolog.sweep` has it)" } else { "" }
            };
            BatchTest::of_word(word).ok_or_else(|| {
                Fault::words(format!("tests: `{word}` is not one of {}{}", known(), of_systems()))
            })
        });
        Ok((arrays, tests.collect::<Result<Vec<BatchTest>, Fault>>()?))
    };
    let (arrays, tests) = checked().map_err(|fault| fault.raise(py))?;
    let shape = arrays[0].1.shape().to_vec();
    for (argument, array) in &arrays {
        if array.shape() != shape || shape.len() != 2 {
            let text = format!(
                "{argument}: the array has the shape {:?}, and wcet {shape:?}: all three are two-dimensional and alike",
                array.shape()
            );
            return Err(Fault::words(text).raise(py));
        }
    }
    let (count, tasks) = (shape[0], shape[1]);
    if count == 0 {
        return Err(Fault::words("wcet: there is no set in the array").raise(py));
    }
    if tests.is_empty() {
        return Err(Fault::words("tests: name one test at least").raise(py));
    }
    let mut found: Vec<u8> = Vec::with_capacity(count.saturating_mul(tests.len()));
    let chunk = (CHUNK_VALUES / tasks.max(1)).max(1);
    // A shape without tasks is refused even where there is no set.
    Sets::new(tasks, &[], &[], &[]).map_err(|bad| Fault::words(bad).raise(py))?;
    for from in (0..count).step_by(chunk) {
        let until = (from + chunk).min(count);
        let part = |place: usize| {
            let (argument, array) = &arrays[place];
            array.part(py, argument, from * tasks, until * tasks).map_err(|fault| fault.raise(py))
        };
        let (wcet, deadline, period) = (part(0)?, part(1)?, part(2)?);
        let tests = tests.clone();
        let verdicts = interruptible(py, move || {
            let sets = Sets::new(tasks, &wcet, &deadline, &period).map_err(|bad| bad.in_whole(from))?;
            let mut verdicts = vec![Verdict::Unknown; sets.count() * tests.len()];
            decide(sets, &tests, &mut verdicts, threads);
            Ok(verdicts)
        })?;
        let verdicts =
            verdicts.map_err(|bad: horolog_analysis::batch::BadSets| Fault::words(bad).raise(py))?;
        found.extend(verdicts.into_iter().map(|verdict| match verdict {
            Verdict::Meets => 1,
            Verdict::Misses => 0,
            Verdict::Unknown => u8::MAX,
        }));
    }
    Ok(PyBytes::new(py, &found))
}

/// Adds all of it to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("TESTS", BatchTest::ALL.map(BatchTest::word).to_vec())?;
    module.add("METHODS", Method::ALL.map(Method::word).to_vec())?;
    module.add_function(wrap_pyfunction!(generate, module)?)?;
    module.add_function(wrap_pyfunction!(utilisations, module)?)?;
    module.add_function(wrap_pyfunction!(batch, module)?)
}
