//! The jobs of threads that did not end.

use crate::arrivals::{Arrivals, Job};
use crate::plan::Mode;
use crate::task_shared::TaskShared;
use crate::threads::{LeftBehind, Setup, Threads};
use horolog_model::TaskId;

impl Setup<'_> {
    /// Counts the jobs that the tasks' own threads have not counted (they were left behind, or their code panicked) as unfinished, and as
    /// missed where their deadlines have passed; says which threads were left behind. Jobs that an agent releases it counts itself.
    pub(crate) fn count_left_behind(&self, threads: &Threads, left_behind: &[LeftBehind]) -> Vec<String> {
        for cpu in self.plan.cpus.iter().filter(|cpu| cpu.mode == Mode::Shadow) {
            cpu.tasks.iter().for_each(|&id| self.count_jobs(&threads.tasks[id.index()], id));
        }
        let note = |left: &LeftBehind| format!("{}: its last job did not end and was left behind", left.name);
        left_behind.iter().map(note).collect()
    }

    /// From the job on that the thread was at; none where it has counted them itself.
    fn count_jobs(&self, task: &TaskShared, id: TaskId) {
        if !task.may_count_backlog() {
            return;
        }
        let (horizon, closed) = (self.run.horizon(), self.run.closed());
        let mut tally = task.tally();
        let done = tally.counts.jobs + tally.counts.skipped;
        for job in after(Arrivals::of(self.system, id, self.options), done, horizon) {
            // The thread has ended, is stopped, or finds the run over when it gets the processor: no other one writes into its ring.
            if !task.is_released(job.number) {
                task.record_release(&job);
            }
            tally.unfinished(&job, closed);
        }
    }
}

/// The jobs from number `done` on that arrive before `horizon`.
pub(crate) fn after(mut arrivals: Arrivals, done: u64, horizon: u64) -> impl Iterator<Item = Job> {
    let jobs = std::iter::from_fn(move || arrivals.next_job());
    jobs.take_while(move |job| job.arrival < horizon).skip_while(move |job| job.number < done)
}
