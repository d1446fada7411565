//! All priority levels of one processor, built once: the tasks in one order, and what each level asks for in the long run.

use super::level::{Known, Row};
use super::priority_of;
use crate::arrival_curve::ArrivalCurve;
use crate::cpu_model::{CpuModel, CpuTask};
use crate::error::AnalysisError;
use crate::utilisation::RunningSum;
use std::cmp::Reverse;

/// The tasks of one processor as they interfere with others, none of which waits within its jobs.
pub(super) struct Levels<'a> {
    /// The most important first.
    rows: Vec<Row<'a>>,
    /// The place of each task.
    places: Vec<Place>,
}

/// Where a task stands.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Where its priority begins and ends among the rows.
    begin: usize,
    end: usize,
    /// Its own row.
    own: usize,
    known: Known,
}

impl<'a> Levels<'a> {
    /// `None` where a task may wait within its jobs, or makes others ask anew: then it is another one to each of the others.
    pub(super) fn new(cpu: &'a CpuModel) -> Result<Option<Levels<'a>>, AnalysisError> {
        if cpu.tasks.iter().any(CpuTask::may_wait) || cpu.asks_anew() {
            return Ok(None);
        }
        let mut order = Vec::with_capacity(cpu.tasks.len());
        for (index, task) in cpu.tasks.iter().enumerate() {
            order.push((Reverse(priority_of(task)?.number()), index));
        }
        order.sort_unstable();
        let (mut rows, mut places) = (Vec::with_capacity(order.len()), vec![Place::default(); order.len()]);
        let (mut sum, mut bare) = (RunningSum::default(), RunningSum::default());
        for equals in order.chunk_by(|a, b| a.0 == b.0) {
            let (begin, end) = (rows.len(), rows.len() + equals.len());
            for &(_, index) in equals {
                let task = &cpu.tasks[index];
                let (arrival, wcet) = task.seen();
                if let ArrivalCurve::Periodic { separation, .. } = *arrival {
                    sum.add(wcet, separation);
                    bare.add(task.bare_wcet, separation);
                }
                rows.push(Row { arrival, wcet });
            }
            let known = Known { rows: begin, sum, bare };
            for (own, &(_, index)) in (begin..).zip(equals) {
                places[index] = Place { begin, end, own, known };
            }
        }
        Ok(Some(Levels { rows, places }))
    }

    /// The more important tasks, those of the same priority, and what they and the task ask for.
    pub(super) fn around(&self, index: usize) -> (Vec<Row<'a>>, Vec<Row<'a>>, Known) {
        let Place { begin, end, own, known } = self.places[index];
        let mut equal = self.rows[begin..own].to_vec();
        equal.extend_from_slice(&self.rows[own + 1..end]);
        (self.rows[..begin].to_vec(), equal, known)
    }
}
