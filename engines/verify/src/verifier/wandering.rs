//! A job's thread on another processor than its task's, by the kernel's switches: also where it is back at the job's end.

use crate::result::{Check, Class};
use crate::state::history::Occupant;
use crate::state::job::State;
use crate::verifier::Verifier;
use horolog_trace::Record;

impl Verifier {
    /// A record of a job is of its own processor.
    pub(crate) fn check_processor(&mut self, record: &Record, task: usize, cpu: usize) {
        self.report.apply(Check::Processor);
        let expected = self.model.cpus[cpu];
        if u32::from(record.cpu) != expected {
            let name = self.model.tasks[task].name.clone();
            let (does, number) = (record.kind.name(), record.cpu);
            let message = format!(
                "{name} job {}: its {does} is of CPU {number}, its processor is CPU {expected}",
                record.job
            );
            self.job_finding(Class::ModelViolated, Check::Processor, task, record.job, message, None);
        }
    }

    /// The kernel gives a processor of the system to a thread: one with a job under way may only get its task's. Threads that the kernel
    /// serves as reservations go where it likes, and of what it alone tells of the jobs are judged by their own records.
    pub(crate) fn check_wandering(&mut self, record: &Record, cpu: usize) {
        let task = record.task as usize;
        let next =
            if task < self.tasks.len() { Occupant::Task(task) } else { self.occupant_of(record.extra) };
        let Occupant::Task(task) = next else { return };
        let model = &self.model.tasks[task];
        if self.model.simulated || model.is_observed || model.floats {
            return;
        }
        self.report.apply(Check::Processor);
        let expected = model.cpu;
        let comes_home = self.executes_sections_on(task, self.model.cpus[cpu]);
        let Some(job) = self.tasks[task].pending.front_mut() else { return };
        let is_under_way = job.started.is_some() && job.state != State::Suspended;
        // Its section has ended there, and its thread is about to sleep until its own processor chooses it.
        let is_under_way = is_under_way && !(comes_home && job.state != State::Running);
        if cpu == expected || !is_under_way || std::mem::replace(&mut job.has_wandered, true) {
            return;
        }
        let number = job.number;
        let (name, is, own) = (&self.model.tasks[task].name, self.model.cpus[cpu], self.model.cpus[expected]);
        let message = format!("{name} job {number}: its thread got CPU {is}, its processor is CPU {own}");
        self.job_finding(Class::ModelViolated, Check::Processor, task, number, message, None);
    }
}
