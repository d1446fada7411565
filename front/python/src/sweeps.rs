//! Sweeps: on the cores of this machine, or block by block for a cluster.

use crate::faults::Fault;
use crate::systems::NativeSystem;
use crate::{interruptible, stopped_in_order};
use horolog_model::System;
use horolog_sweep::systems::{Made, Set, system_of};
use horolog_sweep::{
    BlockId, Plan, Row, Store, SweepError, Test, block_file, estimate, file, finish, run, store,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// A checked sweep.
#[pyclass(frozen, module = "horolog._engine")]
pub(crate) struct NativeSweep {
    plan: Arc<Plan>,
    text: String,
}

/// Its folder, locked by this process.
#[pyclass(frozen, module = "horolog._engine")]
pub(crate) struct NativeFolder {
    open: Arc<Mutex<Open>>,
}

struct Open {
    plan: Arc<Plan>,
    /// None once it is closed.
    store: Option<Store>,
    rows: HashMap<BlockId, Vec<Row>>,
    missing: Vec<BlockId>,
    computed: usize,
    damaged: usize,
}

fn failed(error: SweepError) -> Fault {
    Fault::words(error)
}

fn closed() -> Fault {
    Fault::words("the folder of the sweep is closed")
}

#[pymethods]
impl NativeSweep {
    #[new]
    fn new(py: Python<'_>, text: String, name: &str) -> PyResult<NativeSweep> {
        let plan = py.detach(|| file::read(&text, name));
        let plan = plan.map_err(|found| Fault::places(&found).raise(py))?;
        Ok(NativeSweep { plan: Arc::new(plan), text })
    }

    /// The object that `horolog sweep --dry-run --format json` prints, but for its folder.
    fn estimate(&self, py: Python<'_>, folder: PathBuf, workers: usize) -> PyResult<String> {
        let plan = Arc::clone(&self.plan);
        let found = interruptible(py, move || {
            let found = store::look(&folder, &plan).map_err(failed)?;
            let estimate = estimate(&plan, &found.missing, workers).map_err(failed)?;
            serde_json::to_string(&estimate).map_err(Fault::words)
        })?;
        found.map_err(|fault| fault.raise(py))
    }

    /// The file of a block.
    fn compute<'py>(&self, py: Python<'py>, cell: usize, block: u64) -> PyResult<Bound<'py, PyBytes>> {
        let (plan, id) = (Arc::clone(&self.plan), BlockId { cell, block });
        if !plan.has(id) {
            return Err(Fault::words(format!("block: there is no block {block} of cell {cell}")).raise(py));
        }
        let file = interruptible(py, move || block_file(&plan, id))?;
        Ok(PyBytes::new(py, &file.map_err(|error| failed(error).raise(py))?))
    }

    /// What the only test makes of sets of the only cell: systems, from number `first` of a seed on.
    fn systems(&self, py: Python<'_>, seed: u64, first: u64, count: usize) -> PyResult<Vec<NativeSystem>> {
        let plan = Arc::clone(&self.plan);
        let made = interruptible(py, move || made(&plan, seed, first, count))?;
        let made = made.map_err(|fault| fault.raise(py))?;
        Ok(made.into_iter().map(|system| NativeSystem { system: Arc::new(system) }).collect())
    }

    /// Opens the folder.
    fn open(&self, py: Python<'_>, folder: PathBuf, drop_others: bool) -> PyResult<NativeFolder> {
        let (plan, text) = (Arc::clone(&self.plan), self.text.clone());
        let opened = interruptible(py, move || {
            let (store, found) = Store::open(&folder, &plan, &text, drop_others)?;
            Ok(Open {
                plan,
                store: Some(store),
                rows: found.rows,
                missing: found.missing,
                computed: 0,
                damaged: found.damaged.len(),
            })
        })?;
        let open = opened.map_err(|error| failed(error).raise(py))?;
        Ok(NativeFolder { open: Arc::new(Mutex::new(open)) })
    }
}

fn made(plan: &Plan, seed: u64, first: u64, count: usize) -> Result<Vec<System>, Fault> {
    let ([cell], [test]) = (&plan.cells[..], &plan.tests[..]) else {
        return Err(Fault::words("generator: give one value for each key: systems are those of one cell"));
    };
    let known = || {
        let all: Vec<&str> = Test::all().filter(|test| test.how().is_some()).map(Test::word).collect();
        Fault::words(format!("test: `{}` makes no systems; those do: {}", test.word(), all.join(", ")))
    };
    let how = test.how().ok_or_else(known)?;
    let mut batch = plan.batch(BlockId { cell: 0, block: 0 }).map_err(Fault::words)?;
    batch.seed = seed;
    let mut prepared = batch.prepare().map_err(Fault::words)?;
    let mut arrays = [const { Vec::new() }; 3];
    arrays.iter_mut().for_each(|array| array.resize(cell.recipe.tasks, 0_u64));
    let mut all = Vec::new();
    for place in 0..count as u64 {
        let number = first.wrapping_add(place);
        let [wcet, deadline, period] = &mut arrays;
        prepared.draw(number, [wcet, deadline, period]).map_err(Fault::words)?;
        let set = Set { wcet, deadline, period, seed, number };
        match system_of(how, &cell.more, set).map_err(Fault::words)? {
            Made::System(system) => all.push(*system),
            Made::TooLong(task) => {
                return Err(Fault::words(format!(
                    "generator: a job of task {} of set {number} is longer than its deadline, which no system is\n  = help: give a smaller utilisation or high_factor, or another method",
                    task + 1
                )));
            }
        }
    }
    Ok(all)
}

#[pymethods]
impl NativeFolder {
    /// Cells and numbers of the blocks that are missing.
    fn missing(&self, py: Python<'_>) -> Vec<(usize, u64)> {
        py.detach(|| {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let left = open.missing.iter().filter(|id| !open.rows.contains_key(id));
            left.map(|id| (id.cell, id.block)).collect()
        })
    }

    /// Keeps the file of a block.
    fn commit(&self, py: Python<'_>, cell: usize, block: u64, file: &[u8]) -> PyResult<()> {
        let id = BlockId { cell, block };
        let kept = py.detach(|| {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let Open { plan, store, rows, computed, .. } = &mut *open;
            let found = store.as_ref().ok_or_else(closed)?.commit(plan, id, file).map_err(failed)?;
            *computed += usize::from(rows.insert(id, found).is_none());
            Ok(())
        });
        kept.map_err(|fault: Fault| fault.raise(py))
    }

    /// Computes what is missing on this machine. Ctrl-C ends it after the blocks that are under way.
    fn run(&self, py: Python<'_>, workers: usize) -> PyResult<()> {
        let open = Arc::clone(&self.open);
        let ran = stopped_in_order(py, move |stop| {
            let mut open = open.lock().unwrap_or_else(PoisonError::into_inner);
            let left: Vec<BlockId> =
                open.missing.iter().copied().filter(|id| !open.rows.contains_key(id)).collect();
            let plan = Arc::clone(&open.plan);
            let ran = run(&plan, open.store.as_ref().ok_or_else(closed)?, &left, workers, stop, &|_| ());
            open.computed += ran.rows.len();
            open.rows.extend(ran.rows);
            let (done, all) = (open.rows.len(), open.rows.len() + open.missing.len() - open.computed);
            ran.error.map_or(Ok(()), |error| {
                Err(Fault::words(format!(
                    "{error}\n  = help: {done} of {all} blocks are kept; mend that (is the disk full?) and call it again"
                )))
            })
        })?;
        ran.map_err(|fault| fault.raise(py))
    }

    /// Writes the result and gives it as JSON; the folder is closed.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        let told = py.detach(|| {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let store = open.store.take().ok_or_else(closed)?;
            let result =
                finish(&open.plan, &store, &open.rows, open.computed, open.damaged).map_err(failed)?;
            serde_json::to_string(&result).map_err(Fault::words)
        });
        told.map_err(|fault: Fault| fault.raise(py))
    }

    /// Gives the folder back.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.open.lock().unwrap_or_else(PoisonError::into_inner).store.take()));
    }
}

/// Adds all of it to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<NativeSweep>()?;
    module.add_class::<NativeFolder>()
}
