//! Where sections begin and end in the execution of a job: the file says after how much (decision 0009).
//!
//! In a simulated trace a job locks once it has executed `from`, unlocks `length` later or where it ends, and leaves no section out that
//! it has come to; costs of the platform are allowed. In a run that holds for bodies that spin: they lock no earlier, as far as the
//! kernel's record tells, and lock at all. A body of its own locks where it wants, and no more often than the file says.

use crate::result::{Check, Class};
use crate::state::job::Job;
use crate::verifier::Verifier;
use horolog_model::{Body, Border, System};
use horolog_time::Span;

/// Where the sections of one task begin and end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Borders {
    all: Vec<Border>,
    /// Whether a body in a run keeps to them.
    spins: bool,
}

impl Borders {
    /// Of every task.
    pub(crate) fn all(system: &System) -> Vec<Borders> {
        let of = |(id, task): (_, &horolog_model::Task)| Borders {
            all: system.borders(id),
            spins: matches!(task.body, Some(Body::Spin(_))),
        };
        system.task_ids().zip(system.tasks()).map(of).collect()
    }
}

impl Verifier {
    /// The oldest job of a task, which runs, comes to a section of a resource: it locks, or has to wait.
    pub(crate) fn enter_section(&mut self, task: usize, place: usize) {
        let known = self.has_executed(task);
        let Some(number) = self.tasks[task].pending.front().map(|job| job.number) else { return };
        if let Some(allowed) = self.resources.entries[task].count(number, place).filter(|_| known.is_none()) {
            let what = format!("locks it more often than it has sections there in the file ({allowed})");
            self.border_finding(task, number, place, &what);
        }
        let Some(job) = self.tasks[task].pending.front_mut() else { return };
        let borders = &self.resources.borders[task].all;
        let begins = |border: &Border| border.begun_at.is_none() && border.resource == place;
        let found = borders.iter().enumerate().skip(job.border).find(|(_, border)| begins(border));
        let Some((index, border)) = found else {
            if known.is_none() {
                return;
            }
            let what = "as often as the file says already";
            return self.border_finding(task, number, place, &format!("has locked it {what}"));
        };
        let (at, is_next) = (border.at, index == job.border);
        job.border = index + 1;
        // That it has locked is known, where it has is not.
        let Some((executed, slack)) = known else { return };
        let is_late = self.model.simulated && executed > at.saturating_add(slack);
        if executed.saturating_add(slack) < at || is_late {
            let numbers = (Span::from_ns(executed), Span::from_ns(at));
            let what = format!(
                "locks it after it has executed {}, by the file that is after {}",
                numbers.0, numbers.1
            );
            self.border_finding(task, number, place, &what);
        } else if self.model.simulated && !is_next {
            self.border_finding(task, number, place, "locks it before what comes first by the file");
        }
    }

    /// The oldest job of a task leaves a section of a resource.
    pub(crate) fn leave_section(&mut self, task: usize, place: usize) {
        if !self.model.simulated {
            return;
        }
        let Some((executed, slack)) = self.has_executed(task) else { return };
        let now = self.now;
        let Some(job) = self.tasks[task].pending.front_mut() else { return };
        let ends = |border: &&Border| border.begun_at.is_some() && border.resource == place;
        let next = self.resources.borders[task].all.get(job.border).filter(ends);
        // That it takes too long is found by its length.
        if next.is_some_and(|border| executed.saturating_add(slack) >= border.at) {
            job.border += 1;
        } else {
            // Only because it ends now.
            let _ = job.closes_at.get_or_insert((now, place, executed));
        }
    }

    /// A job of a task has ended, which says that it has executed so much.
    pub(crate) fn check_sections(&mut self, task: usize, cpu: usize, job: &Job, told: u64) {
        if self.resources.borders[task].all.is_empty() || self.drivers.has_any() {
            return;
        }
        // Where it ended on another processor, the job is done once its own one has chosen it.
        let has_gone_on = |&(at, place, executed): &(u64, usize, u64)| match self.may_end_elsewhere(place) {
            true => {
                let now = job.executed.saturating_sub(job.interrupted);
                now > executed.saturating_add(self.slack_of(task, cpu, job))
            }
            false => at != self.now,
        };
        if let Some((_, place, _)) = job.closes_at.filter(has_gone_on) {
            self.border_finding(
                task,
                job.number,
                place,
                "unlocks it before the end of its section by the file",
            );
        }
        let (executed, slack) = if self.model.simulated {
            (job.executed.saturating_sub(job.interrupted), self.slack_of(task, cpu, job))
        } else if self.resources.borders[task].spins {
            (told, self.model.execution.saturating_add(self.model.dispatch))
        } else {
            return;
        };
        if self.resources.lost_at.is_some_and(|at| at >= job.arrival) {
            return;
        }
        self.report.apply(Check::Resource);
        let left = self.resources.borders[task].all.iter().skip(job.border);
        let passed =
            |border: &&Border| border.begun_at.is_none() && border.at.saturating_add(slack) < executed;
        let passed = left.filter(passed).map(|border| (border.resource, border.at)).next();
        if let Some((place, at)) = passed {
            let what = format!(
                "executed {} and did not lock it, which it does after {} by the file",
                Span::from_ns(executed),
                Span::from_ns(at)
            );
            self.border_finding(task, job.number, place, &what);
        }
    }

    /// What the oldest job of a task has executed, and what costs leave open of that; `None` where its body locks when it wants, or
    /// that is not known.
    fn has_executed(&self, task: usize) -> Option<(u64, u64)> {
        let borders = self.resources.borders.get(task).filter(|borders| !borders.all.is_empty())?;
        let cpu = self.model.tasks[task].cpu;
        let is_known = self.model.simulated || borders.spins && self.cpus[cpu].kernel;
        if !is_known || self.lossy() || self.drivers.has_any() {
            return None;
        }
        let job = self.tasks[task].pending.front()?;
        if self.model.simulated {
            return Some((job.executed.saturating_sub(job.interrupted), self.slack_of(task, cpu, job)));
        }
        Some((job.executed, self.model.stamping.saturating_add(self.model.execution)))
    }

    /// What the time for which a simulated job had the processor may hold beside its execution.
    pub(crate) fn slack_of(&self, task: usize, cpu: usize, job: &Job) -> u64 {
        let begin = job.started.unwrap_or(job.arrival);
        let own = match self.model.is_free_of_costs(cpu) {
            true => 0,
            false => self.part_slack(cpu, (begin, self.now), job.switches),
        };
        own.saturating_add(self.loads_elsewhere(task, self.now.saturating_sub(begin)))
    }

    fn border_finding(&mut self, task: usize, job: u64, place: usize, what: &str) {
        if self.model.foreign {
            return;
        }
        let name = self.resources.name(place);
        let message = format!("resource {name}: {} job {job} {what}", self.model.tasks[task].name);
        self.job_finding(Class::ModelViolated, Check::Resource, task, job, message, None);
    }
}
