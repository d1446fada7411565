//! What it all comes to, once nothing follows.

use crate::report::Pauses;
use crate::result::{Class, ServerVerification, TaskVerification, Verdict, Verification};
use crate::state::job::TaskState;
use crate::verifier::Verifier;
use crate::verifier::judged::Counts;
use crate::verifier::levels::Level;
use crate::verifier::servers::ServerState;
use horolog_time::Span;
use horolog_trace::file::Damage;

impl Verifier {
    /// Closes the verification: recording ended at `end`.
    #[must_use]
    pub fn finish(mut self, end: u64, damage: Option<Damage>, mut notes: Vec<String>) -> Verification {
        self.check_places(end);
        self.now = self.now.max(end);
        for cpu in 0..self.cpus.len() {
            self.advance(cpu, self.now);
            self.close_ongoing(cpu, self.now);
            self.judge_interference(cpu);
        }
        self.end_doubts();
        self.judge_ended_threads();
        self.judge_asleep();
        self.judge_latches(u64::MAX);
        self.judge_publications();
        self.finish_decisions(&mut notes);
        self.end_spinning();
        self.judge_handed(damage.is_none());
        self.judge_unfinished();
        if damage.is_none() {
            self.judge_last_misses();
        }
        if self.undecided.is_none() && damage.is_none() {
            self.judge_completeness(end);
        }
        self.judge_extent();
        self.settle(None);
        self.answer_again();
        self.notes(&mut notes, damage.as_ref());
        self.excuse_unseen_pauses(&mut notes);
        self.excuse_unseen_stretches(&mut notes);
        self.report.excuse_arrivals_of_stopped(self.model.foreign);
        let missed_jobs = self.missed_jobs_and_late_timers();
        // What a trace does not show may have been anything; so may be what is seen behind a hole.
        let has_hole = damage.as_ref().is_some_and(|damage| damage.is_hole);
        self.report.doubt_all_where(has_hole);
        let tasks = (0..self.tasks.len()).map(|task| self.task_result(task)).collect();
        let count = |class| self.report.count(class);
        let (model_violated, bound_violated, machine_disturbed) =
            (count(Class::ModelViolated), count(Class::BoundViolated), count(Class::MachineDisturbed));
        let (schedule_differs, cannot_tell) = (count(Class::ScheduleDiffers), count(Class::CannotTell));
        let verdict = match (bound_violated, model_violated, machine_disturbed) {
            _ if self.undecided.is_some() || has_hole => Verdict::Unknown,
            (1.., _, _) => Verdict::BoundViolated,
            (0, 1.., _) => Verdict::ModelViolated,
            _ if damage.is_some() || self.records == 0 => Verdict::Unknown,
            _ if !self.unknown.is_empty() || schedule_differs > 0 || cannot_tell > 0 => Verdict::Unknown,
            (0, 0, 1..) => Verdict::MachineDisturbed,
            (0, 0, 0) => Verdict::Holds,
        };
        let servers = self.server_results();
        let hidden = self.cpus.iter().map(|cpu| (cpu.hidden.count, cpu.hidden.total));
        let compared = self.compared.iter().zip(&self.model.cpus).zip(hidden);
        let processors = compared
            .zip(&self.cpus)
            .map(|(((compared, &number), hidden), cpu)| compared.result(number, hidden, &cpu.seen))
            .collect();
        let (groups, findings, checks) = self.report.finish();
        Verification {
            schema: Verification::SCHEMA,
            system: self.system,
            backend: self.backend,
            verdict,
            complete: self.losses.total() == 0 && damage.is_none(),
            losses: self.losses,
            damage,
            ended_by: self.completeness.ended_by,
            records: self.records,
            model_violated,
            bound_violated,
            machine_disturbed,
            schedule_differs,
            cannot_tell,
            tasks,
            missed_jobs,
            servers,
            processors,
            groups,
            findings,
            checks,
            counterexample: None,
            notes,
        }
    }

    /// On a virtual machine the host may stop a processor for a moment without leaving a trace: a thread's clock runs on,
    /// and only a pause that makes a tick late is seen. In at most one job of a hundred, an excess below a quarter of the tick is
    /// blamed on the machine, and of one that is no longer than the tick and that quarter (such a pause may still lie between two ticks) it cannot be told whose
    /// it is. Neither can it in up to one job of twenty, where all excesses on a processor together are no more than the trace has as stolen from
    /// it: the hypervisor's accounts do not say when. A wcet that is too small shows more often or by more.
    fn excuse_unseen_pauses(&mut self, notes: &mut Vec<String>) {
        let (Some(short), Some(tick)) = (self.model.unseen_pause, self.model.tick_period) else { return };
        let long = tick.saturating_add(short);
        let (mut excused, mut doubtful) = (Vec::new(), Vec::new());
        let one_in = |task: &TaskState, share: u64| (task.tally.completed / share).max(1);
        for (task, model) in self.tasks.iter().zip(&self.model.tasks) {
            let seldom = |worst| Pauses { worst, often: one_in(task, 100) };
            if self.report.excuse_execution(&model.name, seldom(short), Class::MachineDisturbed) {
                excused.push(model.name.clone());
            }
            if self.report.excuse_execution(&model.name, seldom(long), Class::CannotTell) {
                doubtful.push(model.name.clone());
            }
        }
        for cpu in 0..self.cpus.len() {
            let here = self.tasks.iter().zip(&self.model.tasks).filter(|(_, model)| model.cpu == cpu);
            let each = here.clone().map(|(_, model)| self.report.too_long_in_all(&model.name));
            if each.fold(0, u64::saturating_add) > self.cpus[cpu].taken {
                continue;
            }
            for (task, model) in here {
                let pauses = Pauses { worst: long, often: one_in(task, 20) };
                if self.report.excuse_execution(&model.name, pauses, Class::CannotTell) {
                    doubtful.push(model.name.clone());
                }
            }
        }
        if excused.is_empty() && doubtful.is_empty() {
            return;
        }
        let of_responses = if doubtful.is_empty() { Class::MachineDisturbed } else { Class::CannotTell };
        self.report.excuse_responses(of_responses);
        if !excused.is_empty() {
            notes.push(format!(
                "few jobs of {} executed a little longer than their wcet, and no record says why: on a virtual machine that \
                 is blamed on the host (at most one job in a hundred, by at most {}); on real hardware it would violate the model",
                excused.join(", "),
                Span::from_ns(short)
            ));
        }
        if !doubtful.is_empty() {
            notes.push(format!(
                "few jobs of {} executed longer than their wcet, and no record says why: on a virtual machine the host may have \
                 stopped the processor for up to {} without a trace (between two ticks), so whose doing it is cannot be told; on real hardware it \
                 would violate the model",
                doubtful.join(", "),
                Span::from_ns(long)
            ));
        }
    }

    fn notes(&self, notes: &mut Vec<String>, damage: Option<&Damage>) {
        // Why something is not decided comes first.
        notes.extend(self.unknown.iter().cloned());
        if self.lossy() {
            let lost = self.losses.total();
            notes.push(format!("{lost} records were lost: the verdict speaks only of what the trace shows"));
        }
        if self.has_too_many_jobs {
            notes.push(
                "so many jobs came one behind the other that not all were scheduled again: of the late ones among them the \
                 amounts of what went wrong in the window decide"
                    .to_owned(),
            );
        }
        if let Some(damage) = damage {
            notes.push(format!("the trace was read only up to its damage: {damage}"));
        }
        if !self.model.simulated && !self.cpus.iter().any(|cpu| cpu.kernel) {
            notes.push(
                "the trace holds no records of the kernel: foreign threads, idle time and preemptions by the kernel \
                 were not seen"
                    .to_owned(),
            );
        }
        if !self.model.simulated && !self.model.declares_latency {
            notes.push(
                "the file declares no release_latency, so the proof took none and every release later than the time \
                 stamps' tolerance counts as a disturbance: `horolog loop` measures it"
                    .to_owned(),
            );
        }
        if self.disordered_times > 0 && !self.model.simulated {
            notes.push(format!("{} records came after later ones", self.disordered_times));
        }
        if let Some(section) = &self.undecided {
            notes.push(format!(
                "{section}: verification does not follow it yet, so nothing of this trace was judged"
            ));
        }
        notes.extend(self.unjudged.iter().cloned());
        notes.extend(self.devices.unjudged());
        notes.extend(self.missed_in_trees());
        let promises_slack = self.servers.iter().any(ServerState::leaves_it_to_bounds);
        if promises_slack {
            notes.push(
                "servers without a window of their own (slack policies, priority exchange, constant bandwidth by deadline, background) are \
                 judged by the bounds of the hard tasks"
                    .to_owned(),
            );
        }
        let missing: u64 = self.tasks.iter().map(|task| task.tally.points_missing).sum();
        if missing > 0 {
            notes.push(format!(
                "{missing} jobs have preemption points that are not on record: their segments were not checked"
            ));
        }
    }

    fn server_results(&self) -> Vec<ServerVerification> {
        let result = |(index, server): (usize, &ServerState)| {
            let level = self.levels.iter().find(|level| level.is_of(index));
            level.map_or_else(|| server.result(), Level::result)
        };
        self.servers.iter().enumerate().map(result).collect()
    }

    /// Hard deadlines that were missed in a tree, where no test has a bound to hold them against.
    fn missed_in_trees(&self) -> Vec<String> {
        let hard = (0..self.tasks.len()).filter(|&task| {
            let model = &self.model.tasks[task];
            self.model.is_tree(model.cpu) && !self.is_soft(task) && model.bound.is_none()
        });
        let missed = |task: usize| {
            let (name, missed) = (&self.model.tasks[task].name, self.tasks[task].tally.missed);
            let missed = (missed > 0).then_some(missed)?;
            Some(format!("{name} missed {missed} deadlines, and no test of a tree bounds its response"))
        };
        hard.filter_map(missed).collect()
    }

    fn task_result(&self, task: usize) -> TaskVerification {
        let (model, tally) = (&self.model.tasks[task], &self.tasks[task].tally);
        let Counts { released, judged, unjudged } = self.judged(task);
        let bound = model.bound.as_ref().map(|(bound, _)| *bound);
        let margin = bound.zip(tally.response_max).and_then(|(bound, most)| bound.checked_sub(most));
        TaskVerification {
            name: model.name.clone(),
            jobs: tally.jobs,
            completed: tally.completed,
            missed: tally.missed,
            released,
            judged,
            unjudged,
            bound_ns: bound.map(Span::from_ns),
            test: model.bound.as_ref().map(|(_, test)| test.clone()),
            response_ns_max: tally.response_max.map(Span::from_ns),
            margin_ns: margin.filter(|_| tally.exceeded == 0).map(Span::from_ns),
            exceeded: tally.exceeded,
            exceeded_by_model: tally.exceeded_by_model,
            exceeded_by_disturbance: tally.exceeded_by_disturbance,
            executed_ns_max: tally.executed_max.map(Span::from_ns),
            unended_beyond_wcet: tally.unended,
            below_bcet: tally.below_bcet,
            blocking_ns_max: model.blocking.map(|_| Span::from_ns(tally.blocking_max)),
            blocking_allowed_ns: model.blocking.map(Span::from_ns),
            release_latency_ns_max: tally.lateness_max.map(Span::from_ns),
            releases_noticed: tally.releases_noticed,
            releases_late: tally.releases_late,
        }
    }
}
