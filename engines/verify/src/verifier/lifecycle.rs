//! A job's own records, from release to completion.

use crate::result::{Check, Class};
use crate::state::candidate::{Candidate, Question};
use crate::state::history::Occupant;
use crate::state::job::{Busy, Job, OWN_PRIORITY, Part, Reason, State, ThreadClass};
use crate::state::marks::{NO_LIMIT, What};
use crate::state::model::Stretches;
use crate::state::processor::{Finished, KEPT_JOBS};
use crate::verifier::Verifier;
use crate::verifier::again::Again;
use crate::verifier::again::plan::Ran;
use crate::verifier::modes::ASKED;
use horolog_model::Arrival;
use horolog_sched::ANY_SEGMENT;
use horolog_time::Span;
use horolog_trace::{Kind, NO_JOB, Record};

impl Verifier {
    pub(crate) fn release(&mut self, record: &Record, task: usize, cpu: usize) {
        // A simulation's trace begins with the first job.
        let is_whole = self.model.simulated && !self.completeness.has_lost_jobs();
        if let Some(expected) = self.tasks[task].next_number.or(is_whole.then_some(0))
            && record.job != expected
        {
            self.order_finding(record, &format!("job {expected} comes next"));
        }
        self.tasks[task].next_number = record.job.checked_add(1);
        self.see_again(cpu, false);
        self.count_lost_numbers(task, record.job);
        if self.cpus[cpu].in_doubt {
            self.set_aside(task, record.job, Reason::Lost);
        }
        self.report.apply(Check::EventOrder);
        let arrival = record.value;
        let ready = self.ready_time(record, task);
        self.check_activity(task, record.job);
        let legal_arrival = self.check_arrival(task, record.job, arrival);
        let lateness = self.check_release(task, cpu, record.job, arrival, ready);
        let woken = self.tasks[task].woken.take().is_some_and(|woken| woken >= arrival);
        let tally = &mut self.tasks[task].tally;
        tally.jobs += 1;
        tally.lateness_max = tally.lateness_max.max(Some(lateness));
        let mut job = Job::released(record.job, arrival, ready);
        job.legal_arrival = legal_arrival;
        job.deadline = self.model.tasks[task].deadline.map(|deadline| arrival.saturating_add(deadline));
        job.noticed = self.model.simulated || !self.cpus[cpu].kernel || woken || ready > arrival;
        job.kept_before = self.kept_before(task, cpu, arrival);
        self.link_release(task, record.job, arrival);
        self.note_demand(task, ready);
        self.device_event(record, task);
        if job.noticed {
            self.tell_decisions(task, Kind::Release, arrival);
            self.count_release(task, arrival, lateness);
        }
        self.note_arrival(cpu, arrival);
        self.tasks[task].pending.push_back(job);
        self.cpus[cpu].set_pending(task, self.model.tasks[task].priority, true);
        self.cpus[cpu].releases.push_back(self.now);
        self.note_level_release(cpu, task, arrival);
        self.open_windows(task, cpu, arrival);
    }

    /// When the job was ready: when the kernel woke its thread, where that is on record (a thread notes its
    /// release only once it runs), else when the release was recorded.
    fn ready_time(&self, record: &Record, task: usize) -> u64 {
        let noted = record.time.as_ns();
        match self.tasks[task].woken {
            Some(woken) if woken >= record.value && woken < noted && self.tasks[task].pending.is_empty() => {
                woken
            }
            _ => noted,
        }
    }

    /// Begins the busy window of every level that this release makes busy.
    fn open_windows(&mut self, task: usize, cpu: usize, arrival: u64) {
        let begin = arrival.min(self.now);
        // Modes change who stands where.
        let opened = if self.modes.is_some() {
            0..self.cpus[cpu].levels.len()
        } else {
            let from = self.cpus[cpu].levels_from(self.model.rank(task));
            let until = self.cpus[cpu].first_busy;
            self.cpus[cpu].first_busy = until.min(from);
            from..until
        };
        for place in opened {
            let (_, level) = self.cpus[cpu].levels[place];
            if self.tasks[level].busy.is_some() || !self.model.in_level(task, level) {
                continue;
            }
            let mut since = begin;
            // The window before reaches into the time between a late job's arrival and its release.
            if let Some((before, end)) = self.tasks[level].last_busy
                && end > since
            {
                since = before;
            }
            let mut blocker = None;
            if let Occupant::Task(running) = self.cpus[cpu].occupant
                && !self.model.in_level(running, level)
                && let Some(from) = self.tasks[running].pending.front().and_then(|job| job.stretch_from)
            {
                blocker = Some((running, from));
                since = since.min(from);
            }
            self.tasks[level].busy = Some(Busy { since, blocker });
        }
    }

    /// A job of `task` is not pending any more.
    fn note_end_of_job(&mut self, task: usize, cpu: usize) {
        let has_job = !self.tasks[task].pending.is_empty();
        self.cpus[cpu].set_pending(task, self.model.tasks[task].priority, has_job);
    }

    /// Ends the busy windows of the levels that have nothing pending any more.
    fn close_windows(&mut self, cpu: usize) {
        self.note_level_end(cpu);
        if self.cpus[cpu].pending.is_empty() {
            self.note_idle(cpu);
        }
        // A level is busy as long as somebody at least as important is pending.
        let top = self.cpus[cpu].pending.first().map(|&(_, top)| top);
        let closed = if self.modes.is_some() {
            0..self.cpus[cpu].levels.len()
        } else {
            let levels = self.cpus[cpu].levels.len();
            let until = top.map_or(levels, |top| self.cpus[cpu].levels_from(self.model.rank(top)));
            let from = self.cpus[cpu].first_busy;
            self.cpus[cpu].first_busy = from.max(until);
            from..until
        };
        for place in closed {
            let (_, level) = self.cpus[cpu].levels[place];
            let Some(busy) = self.tasks[level].busy else { continue };
            if !top.is_some_and(|top| self.model.in_level(top, level)) {
                self.tasks[level].last_busy = Some((busy.since, self.now));
                self.tasks[level].busy = None;
            }
        }
        // Looking for what is needed yet takes longer than keeping a little more.
        self.cpus[cpu].ended += 1;
        if self.cpus[cpu].ended >= self.cpus[cpu].forget_after {
            self.forget(cpu);
        }
    }

    /// Drops the history that no open window and no open question needs.
    pub(crate) fn forget(&mut self, cpu: usize) {
        self.cpus[cpu].ended = 0;
        let evidence = self.now.saturating_sub(self.model.evidence_delay);
        let asked = self.candidates.iter().filter(|candidate| candidate.cpu == cpu);
        let oldest = asked.map(|candidate| candidate.from).min().unwrap_or(u64::MAX);
        let noticed = self.now.saturating_sub(self.model.latest_notice());
        self.answer_before(cpu, oldest.min(evidence).min(noticed));
        // What came before a window may have moved work into it.
        let idle =
            |from: u64| self.again[cpu].as_ref().map_or(from, |again| again.idle_before(from).min(from));
        let questions = self.candidates.iter().map(|candidate| candidate.from).min().map(idle);
        let tasks = self.cpus[cpu].tasks.iter();
        let windows = tasks.filter_map(|&task| self.tasks[task].busy.map(|busy| busy.since));
        let decisions = self.decisions.iter().filter(|decisions| decisions.place == cpu);
        let stretches = decisions.filter_map(|decisions| decisions.stretches.since());
        let needed =
            windows.map(idle).chain(questions).chain(stretches).min().unwrap_or(self.now).min(evidence);
        // A server's budget is judged in windows that reach back further.
        let served = self.servers.iter().filter_map(|server| server.oldest_window(cpu)).min();
        self.cpus[cpu].forget_before(needed, served.map_or(needed, |served| served.min(needed)));
        // Looking through what is left must not be more work than what there is new.
        let left = self.again[cpu].as_ref().map_or(0, Again::unanswered).max(self.candidates.len());
        self.cpus[cpu].forget_after = u32::try_from(left).unwrap_or(u32::MAX).max(KEPT_JOBS);
    }

    /// The pending job that the record speaks of; finds fault where it is not the task's oldest.
    pub(crate) fn head(&mut self, record: &Record, task: usize) -> Option<&mut Job> {
        self.report.apply(Check::EventOrder);
        let head = self.tasks[task].pending.front().map(|job| job.number);
        if head == Some(record.job) {
            return self.tasks[task].pending.front_mut();
        }
        // After a loss jobs are unknown whose releases were not seen.
        if !self.completeness.has_lost_jobs() {
            let reason = match head {
                Some(head) => format!("job {head} is the task's oldest pending one"),
                None => "the task has no pending job".to_owned(),
            };
            self.order_finding(record, &reason);
        }
        None
    }

    /// Says that a job's record does not fit its state.
    pub(crate) fn misfit(&mut self, record: &Record, state: State) {
        if !self.completeness.has_lost_jobs() {
            let state = match state {
                State::Ready => "ready and has not started",
                State::Running => "running",
                State::Preempted => "preempted",
                State::Yielded => "waiting at a preemption point",
                State::Suspended => "waiting for a device",
            };
            self.order_finding(record, &format!("the job is {state}"));
        }
    }

    /// A job's records give it the processor; in a trace with the kernel's switches these decide who has it.
    fn take_processor(&mut self, record: &Record, task: usize, cpu: usize) {
        if self.cpus[cpu].kernel {
            return;
        }
        if let Occupant::Task(other) = self.cpus[cpu].occupant
            && other != task
            && self.model.simulated
            && self.is_running(other)
        {
            let name = self.model.tasks[other].name.clone();
            self.order_finding(record, &format!("{name} still has the processor"));
        }
        self.occupy(cpu, Occupant::Task(task));
    }

    /// A job gives up the processor. Without the kernel's switches on record, the job that it had preempted
    /// takes over unseen.
    pub(crate) fn leave_processor(&mut self, task: usize, cpu: usize) {
        if self.cpus[cpu].kernel || self.cpus[cpu].occupant != Occupant::Task(task) {
            return;
        }
        let mut next = Occupant::Idle;
        if self.may_have_unknown_jobs(cpu) {
            next = Occupant::Unknown;
        } else if !self.model.simulated {
            let running =
                self.cpus[cpu].tasks.iter().copied().filter(|&other| other != task && self.is_running(other));
            // The most recently started one was the last to be preempted.
            let started = |&other: &usize| self.tasks[other].pending.front().and_then(|job| job.started);
            next = running.max_by_key(started).map_or(Occupant::Unknown, Occupant::Task);
        }
        self.occupy(cpu, next);
    }

    pub(crate) fn start(&mut self, record: &Record, task: usize, cpu: usize) {
        let now = self.now;
        let stretched = !self.model.tasks[task].is_preemptive();
        self.note_start(cpu, task);
        // One that its mode has put below every task may start there: it was chosen before.
        if self.tasks[task].pending.front().is_none_or(|job| !job.demoted) {
            self.check_suspension(record, task);
        }
        let Some(job) = self.head(record, task) else { return };
        let state = job.state;
        (job.state, job.runs_from) = (State::Running, now);
        job.switches += 1;
        let unnoticed = (!std::mem::replace(&mut job.noticed, true)).then_some(job.arrival);
        if job.started.is_none() {
            job.started = Some(now);
            // What the thread did before belongs to the machine, not to the job.
            (job.executed, job.interrupted) = (0, 0);
        }
        job.executed_from = job.executed.saturating_sub(job.interrupted);
        job.stretch_from = stretched.then_some(now);
        let ready = job.stands_since;
        (self.tasks[task].sleeps, self.tasks[task].has_unknown) = (false, false);
        if let Some(arrival) = unnoticed {
            self.tell_decisions(task, Kind::Release, arrival);
        }
        self.check_queue(task, record.job, ready);
        if state != State::Ready {
            self.misfit(record, state);
        }
        self.take_processor(record, task, cpu);
    }

    /// A job gets the processor: no mode may have suspended it.
    fn check_suspension(&mut self, record: &Record, task: usize) {
        if self.tasks[task].is_suspended {
            self.order_finding(record, "its mode has suspended it");
        }
    }

    pub(crate) fn preempt(&mut self, record: &Record, task: usize, cpu: usize) {
        self.check_request(record, task, cpu);
        let Some(job) = self.head(record, task) else { return };
        let state = job.state;
        // A job that its policy put below every task can be preempted anywhere.
        let stretch = job.stretch_from.is_some() && !job.demoted;
        job.state = State::Preempted;
        if state != State::Running {
            self.misfit(record, state);
        }
        self.report.apply(Check::NonPreemption);
        let is_by_mode = self.tasks[task].is_suspended || self.tasks[task].suspended_at == Some(self.now);
        if stretch && !is_by_mode {
            self.cpus[cpu].note_found(self.now, self.now.saturating_add(1));
            let name = &self.model.tasks[task].name;
            let message = format!("{name} job {} was preempted where it may not be", record.job);
            self.job_finding(Class::ModelViolated, Check::NonPreemption, task, record.job, message, None);
        }
        self.leave_processor(task, cpu);
        self.leave_queue(task);
    }

    pub(crate) fn resume(&mut self, record: &Record, task: usize, cpu: usize) {
        let now = self.now;
        let stretched = !self.model.tasks[task].is_preemptive();
        self.check_suspension(record, task);
        let is_lifted = self.holds_anything(task);
        let Some(job) = self.head(record, task) else { return };
        let state = job.state;
        (job.state, job.runs_from, job.was_lifted) = (State::Running, now, is_lifted);
        job.executed_from = job.executed.saturating_sub(job.interrupted);
        job.switches += 1;
        if stretched && job.stretch_from.is_none() {
            job.stretch_from = Some(now);
        }
        if !matches!(state, State::Preempted | State::Yielded) {
            self.misfit(record, state);
        }
        self.take_processor(record, task, cpu);
    }

    pub(crate) fn point(&mut self, record: &Record, task: usize, _cpu: usize) {
        let now = self.now;
        let Some(job) = self.head(record, task) else { return };
        let (state, segment, executed) = (job.state, job.segment, job.executed - job.executed_before);
        let interrupted = job.interrupted - job.interrupted_before;
        let model = &self.model.tasks[task];
        let wcet = model.wcet_of(segment);
        let next = usize::try_from(record.value).unwrap_or(usize::MAX);
        let legal = model.may_follow(segment, next);
        let reachable = legal || model.reaches(segment, next);
        let is_deferred = matches!(model.stretches, Stretches::Segments(_));
        let limit = self.limit_of(task, segment, !legal && reachable);
        if is_deferred {
            let is_budgeted = self.model.tasks[task].acts;
            let next = if is_budgeted { u32::try_from(next).unwrap_or(ANY_SEGMENT) } else { ANY_SEGMENT };
            self.mark(task, What::Point { limit, next });
        }
        let Some(job) = self.tasks[task].pending.front_mut() else { return };
        job.stretch_from = Some(now);
        job.executed_before = job.executed;
        job.interrupted_before = job.interrupted;
        let switches = job.switches_in_segment();
        job.switches_before = job.switches;
        if reachable {
            job.segment = next;
        }
        // Idle points are left out of some measured traces: then a segment further on is no fault.
        let skipped = !legal && reachable;
        job.points_missing |= skipped;
        let missing = job.points_missing;
        if state != State::Running {
            self.misfit(record, state);
        }
        self.report.apply(Check::Branch);
        if !legal && (self.model.simulated || !reachable) {
            let name = &self.model.tasks[task].name;
            let message = format!(
                "{name} job {} announced segment {next} after segment {segment}, which may not follow",
                record.job
            );
            self.job_finding(Class::ModelViolated, Check::Branch, task, record.job, message, None);
        }
        if !missing {
            let excess = self.check_part(
                task,
                Part::Segment(segment),
                (None, switches),
                (executed, interrupted),
                wcet,
            );
            if let Some(job) = self.tasks[task].pending.front_mut() {
                job.excesses.extend(excess);
            }
        }
    }

    pub(crate) fn give_way(&mut self, record: &Record, task: usize, cpu: usize) {
        let Some(job) = self.head(record, task) else { return };
        let state = job.state;
        job.state = State::Yielded;
        job.stretch_from = None;
        if state != State::Running {
            self.misfit(record, state);
        }
        self.leave_processor(task, cpu);
    }

    pub(crate) fn miss(&mut self, record: &Record, task: usize) {
        self.report.apply(Check::Deadline);
        let state = &mut self.tasks[task];
        let expected = if let Some((_, deadline)) = state.late_unnoted.filter(|(job, _)| *job == record.job) {
            state.late_unnoted = None;
            deadline
        } else if let Some(job) = state.pending_mut(record.job) {
            job.missed = true;
            job.deadline
        } else {
            if !self.may_be_unnoticed(task, record.job, record.value) && !self.completeness.has_lost_jobs() {
                self.order_finding(record, "no such job is pending or was late");
            }
            return;
        };
        if expected != Some(record.value) {
            self.order_finding(
                record,
                &format!("it names the deadline {}, which is another", Span::from_ns(record.value)),
            );
        }
    }

    /// Whether a job of this number and deadline has missed it, and may have arrived without being noticed yet: several may be on
    /// their way at once, where they may be noticed that late.
    fn may_be_unnoticed(&self, task: usize, number: u64, deadline: u64) -> bool {
        let (model, state) = (&self.model.tasks[task], &self.tasks[task]);
        let next = match state.next_number {
            None if self.completeness.has_lost_jobs() => return true,
            next => next.unwrap_or(0),
        };
        let arrival = model.deadline.and_then(|relative| deadline.checked_sub(relative));
        let (Some(arrival), Some(ahead)) = (arrival, number.checked_sub(next)) else { return false };
        if let Arrival::Periodic { period } = &model.arrival {
            let first = state.last_arrival.map(|last| last.saturating_add(period.as_ns()));
            let first = first.or(model.offset.map(|offset| self.model.start.saturating_add(offset)));
            let expected = first.map(|first| first.saturating_add(period.as_ns().saturating_mul(ahead)));
            if state.restarts_at.is_none() && expected.is_some_and(|expected| expected != arrival) {
                return false;
            }
        }
        let latest = arrival.saturating_add(self.model.allowed_lateness(task, arrival));
        (deadline..=latest).contains(&self.now)
    }

    pub(crate) fn skip(&mut self, record: &Record, task: usize) {
        // A dropped release still takes its place in the sequence of arrivals, and its number where it has one.
        if record.job != NO_JOB && self.tasks[task].next_number.is_none_or(|next| next == record.job) {
            self.tasks[task].next_number = record.job.checked_add(1);
        }
        let legal_arrival = self.check_arrival(task, record.job, record.value);
        let mut skipped = Job::released(record.job, record.value, self.now);
        skipped.legal_arrival = legal_arrival;
        let ran = Ran::of(task, &mut skipped, 0, self.now, NO_LIMIT);
        let ran = Ran { is_skipped: true, ..ran.goes_on(&self.model.tasks[task], (0, 0), false) };
        self.keep_ran(self.model.tasks[task].cpu, ran);
    }

    pub(crate) fn enforce(&mut self, record: &Record, task: usize, cpu: usize) {
        match record.extra {
            1 => {
                if let Some(job) = self.tasks[task].pending.front_mut() {
                    job.cut_short = true;
                }
            }
            2 => {
                if let Some(job) = self.tasks[task].pending.front_mut() {
                    job.demoted = true;
                    job.stretch_from = None;
                }
                self.tasks[task].note_put_below(record.job);
                if self.is_given_up(task, record.job) {
                    // What it still does is no answer any more, and below everything.
                    if let Some(job) = self.tasks[task].pending.front_mut() {
                        job.given_up = true;
                    }
                    return;
                }
                // It has executed its wcet and goes on, whether or not it is seen to end.
                let least = self.model.tasks[task].wcet.max(1);
                self.breach_of(task, (self.now, self.now), least, "execution beyond the wcet");
            }
            3 => {
                let least = self.model.tasks[task].wcet.max(1);
                self.breach_of(task, (self.now, self.now), least, "execution beyond the wcet");
                self.tasks[task].is_stopped = true;
                self.keep_ended(record, task, cpu);
                let ended: Vec<(u64, u64, Option<u64>)> = self.tasks[task]
                    .pending
                    .drain(..)
                    .map(|job| (job.number, job.arrival, job.deadline))
                    .collect();
                if !self.model.simulated {
                    let head = ended.first().copied();
                    self.tasks[task].stopped_job = head.filter(|(number, ..)| *number == record.job);
                }
                ended.into_iter().for_each(|job| self.link_completion(task, job, 0, false));
                self.note_end_of_job(task, cpu);
                self.leave_processor(task, cpu);
                self.close_windows(cpu);
            }
            4 => {
                self.check_request(record, task, cpu);
                self.check_limit(record, task, cpu);
                self.keep_ended(record, task, cpu);
                // The job is gone without completing.
                let pending = &mut self.tasks[task].pending;
                let place = pending.iter().position(|job| job.number == record.job);
                let dropped = place.and_then(|place| pending.remove(place));
                self.note_end_of_job(task, cpu);
                if let Some(job) = &dropped {
                    self.link_completion(task, (job.number, job.arrival, job.deadline), 0, false);
                }
                if dropped.is_some_and(|job| job.state == State::Running) {
                    self.leave_processor(task, cpu);
                }
                self.close_windows(cpu);
            }
            ASKED => self.ask_for_mode(record, task, cpu),
            _ => {}
        }
    }

    /// A policy ends a job: what it has executed kept others waiting.
    fn keep_ended(&mut self, record: &Record, task: usize, cpu: usize) {
        let mut pending = self.tasks[task].pending.iter();
        let job = pending.find(|job| job.number == record.job && job.started.is_some());
        let Some(mut job) = job.cloned() else { return };
        // A run says what its thread's clock says.
        let executed = if record.value == 0 { job.executed } else { record.value };
        if self.model.simulated || record.value > 0 {
            self.judge_segments(task, cpu, &job, executed);
        }
        let last = self.limit_of(task, job.segment, job.points_missing);
        self.keep_ran(cpu, Ran::of(task, &mut job, executed, self.now, last));
    }

    pub(crate) fn complete(&mut self, record: &Record, task: usize, cpu: usize) {
        if let Some(job) = self.tasks[task].stopped_job.take_if(|(number, ..)| *number == record.job) {
            // The body of a stopped job has ended: what it publishes and that it is late follow.
            self.report.apply(Check::EventOrder);
            self.link_completion(task, job, record.value, true);
            if job.2.is_some_and(|deadline| deadline < self.now) {
                self.tasks[task].late_unnoted = Some((job.0, job.2));
            }
            return self.leave_processor(task, cpu);
        }
        if self.head(record, task).is_none() {
            self.leave_processor(task, cpu);
            return;
        }
        self.check_request(record, task, cpu);
        self.check_within_limit(record, task, cpu);
        self.judge_switch(record, task, cpu);
        let Some(mut job) = self.tasks[task].pending.pop_front() else { return };
        self.note_end_of_job(task, cpu);
        // Below every task it goes on without a record.
        if job.state != State::Running && !job.demoted {
            self.misfit(record, job.state);
        }
        let segment = job.segment;
        let last = job.executed - job.executed_before;
        job.stretch_from = None;
        self.check_path_end(task, &mut job, segment, last);
        self.link_completion(task, (job.number, job.arrival, job.deadline), record.value, true);
        self.let_go(task, job.number);
        self.check_deadline(task, &job);
        self.check_class(task, &job);
        let window = self.tasks[task].busy;
        let response = self.now.saturating_sub(job.arrival);
        self.tasks[task].done_at = self.now;
        let tally = &mut self.tasks[task].tally;
        tally.completed += 1;
        tally.response_max = tally.response_max.max(Some(response));
        tally.executed_max = tally.executed_max.max(Some(record.value));
        tally.blocking_max = tally.blocking_max.max(job.blocked);
        tally.points_missing += u64::from(job.points_missing);
        if self.cpus[cpu].kernel {
            self.cpus[cpu].recent.push((task, job.number));
        }
        // What the kernel's records count for a job is not known where some of them are missing.
        if !(self.model.foreign && self.is_in_a_loss(task, job.number)) {
            self.check_execution(task, cpu, &job, record.value);
            self.check_sections(task, cpu, &job, record.value);
            self.judge_segments(task, cpu, &job, record.value);
        }
        self.check_blocking(task, cpu, &job, window);
        let since = window.map_or(job.arrival, |busy| busy.since.min(job.arrival));
        self.cpus[cpu].finished.push_back(Finished {
            task,
            number: job.number,
            arrival: job.arrival,
            since,
            ready: job.ready,
            completion: self.now,
            executed: record.value,
        });
        self.look_for_hidden(task, cpu, job.number, since);
        let last = self.limit_of(task, segment, job.points_missing);
        self.keep_ran(cpu, Ran::of(task, &mut job, record.value, self.now, last));
        if !job.given_up {
            self.check_response(task, cpu, &job, response, window);
        }
        self.link_late(task, (job.number, job.arrival, job.deadline), window);
        self.leave_processor(task, cpu);
        self.tasks[task].off_since = None;
        self.close_windows(cpu);
    }

    /// A job may end only in a segment without successors.
    fn check_path_end(&mut self, task: usize, job: &mut Job, segment: usize, executed: u64) {
        let Stretches::Segments(segments) = &self.model.tasks[task].stretches else { return };
        self.report.apply(Check::Branch);
        let (wcet, ends) =
            segments.get(segment).map_or((None, true), |(wcet, next)| (Some(*wcet), next.is_empty()));
        if !ends && !self.model.simulated {
            job.points_missing = true;
        }
        if !ends && self.model.simulated && !job.cut_short {
            let name = &self.model.tasks[task].name;
            let message =
                format!("{name} job {} ended in segment {segment}, which has successors", job.number);
            self.job_finding(Class::ModelViolated, Check::Branch, task, job.number, message, None);
        }
        if !job.points_missing {
            let interrupted = job.interrupted - job.interrupted_before;
            let excess = self.check_part(
                task,
                Part::Segment(segment),
                (None, job.switches_in_segment()),
                (executed, interrupted),
                wcet,
            );
            job.excesses.extend(excess);
        }
    }

    fn check_deadline(&mut self, task: usize, job: &Job) {
        let Some(deadline) = job.deadline else { return };
        let late = self.now > deadline;
        if late {
            self.note_missed(task, job.number, job.arrival);
        }
        self.report.apply(Check::Deadline);
        let unnoted = self.tasks[task].late_unnoted.take();
        if let Some((number, _)) = unnoted
            && !self.lossy()
        {
            self.unnoted_miss(task, number);
        } else if job.missed && !late {
            let name = &self.model.tasks[task].name;
            let message = format!("{name} job {} has a miss on record, but was in time", job.number);
            self.job_finding(Class::ModelViolated, Check::Deadline, task, job.number, message, None);
        }
        // A foreign application keeps no record of misses.
        if late && !job.missed && !self.model.foreign {
            self.tasks[task].late_unnoted = Some((job.number, job.deadline));
        }
    }

    fn is_given_a_class(&self, task: usize) -> bool {
        let model = &self.model.tasks[task];
        self.model.is_real_time && !model.is_observed && !model.thread.is_driver
    }

    /// Whether the thread of a task has another class than the run gave it, by its own code.
    pub(crate) fn has_its_own_class(&self, task: usize) -> bool {
        self.is_given_a_class(task) && self.tasks[task].class != ThreadClass::AsGiven
    }

    /// Horolog gives every thread of a run a real-time class and its priority until its last job has ended: only its own code takes it away.
    fn check_class(&mut self, task: usize, job: &Job) {
        if !self.is_given_a_class(task) || !self.cpus[self.model.tasks[task].cpu].kernel {
            return;
        }
        self.report.apply(Check::RealTime);
        let what = match self.tasks[task].class {
            ThreadClass::AsGiven => return,
            ThreadClass::Ordinary => "is not real-time any more",
            ThreadClass::Lowered => "has a lower priority than the run gave it",
        };
        let name = &self.model.tasks[task].name;
        let message = format!("{name} job {}: its thread {what}, by the kernel's record", job.number);
        self.job_finding(Class::ModelViolated, Check::RealTime, task, job.number, message, None);
        self.tasks[task].note_put_below(job.number);
        let since = job.arrival.min(self.now);
        self.breach_of(task, (since, self.now), self.now - since, OWN_PRIORITY);
    }

    fn unnoted_miss(&mut self, task: usize, job: u64) {
        let name = &self.model.tasks[task].name;
        let message = format!("{name} job {job} was late, but no miss is on record");
        self.job_finding(Class::ModelViolated, Check::Deadline, task, job, message, None);
    }

    /// The miss of a task's last late job may have come until the end of the trace. A run that ended before its time may have ended before that.
    pub(crate) fn judge_last_misses(&mut self) {
        if self.lossy() || self.now < self.model.over_at && !self.model.simulated {
            return;
        }
        for task in 0..self.tasks.len() {
            if let Some((job, _)) = self.tasks[task].late_unnoted.take() {
                self.unnoted_miss(task, job);
            }
        }
    }

    fn check_response(&mut self, task: usize, cpu: usize, job: &Job, response: u64, window: Option<Busy>) {
        let Some((bound, _)) = self.model.tasks[task].bound else { return };
        self.report.apply(Check::Response);
        if response <= bound {
            return;
        }
        self.ask(
            task,
            cpu,
            job.number,
            job.arrival,
            window,
            Question::Response { response, bound, finished: true },
        );
    }

    fn check_blocking(&mut self, task: usize, cpu: usize, job: &Job, window: Option<Busy>) {
        let Some(allowed) = self.model.tasks[task].blocking else { return };
        self.report.apply(Check::Blocking);
        let blocked = job.blocked.max(self.kept_waiting(task, cpu, job, allowed));
        if blocked <= allowed {
            return;
        }
        let slack = self.slack(cpu, job.ready, self.now).saturating_add(self.model.execution);
        if blocked <= allowed.saturating_add(slack) {
            return;
        }
        let question = Question::Blocking { blocked, allowed };
        self.ask(task, cpu, job.number, job.arrival, window, question);
    }

    /// In a measured trace, how long less important jobs that cannot be preempted anywhere had the processor since a job arrived, or its
    /// task's thread was done with the one before, by the kernel's record. Where horolog decides, the thread of the job wakes only once it
    /// may run, so that nothing else tells of it; 0 where it is at most `allowed`.
    fn kept_waiting(&self, task: usize, cpu: usize, job: &Job, allowed: u64) -> u64 {
        let processor = &self.cpus[cpu];
        let is_short = self.now.saturating_sub(job.arrival) <= allowed;
        if self.model.simulated || !processor.kernel || allowed == 0 || is_short {
            return 0;
        }
        self.less_important_had(task, cpu).saturating_sub(job.kept_before)
    }

    /// For how long so far less important jobs that cannot be preempted anywhere have had the processor.
    fn less_important_had(&self, task: usize, cpu: usize) -> u64 {
        let behind = self.model.rank(task).checked_sub(1);
        behind.map_or(0, |rank| self.cpus[cpu].kept_waiting.from(self.cpus[cpu].levels_from(rank)))
    }

    /// The same until a job of `task` came that has just been released, and whose thread was done with the one before.
    fn kept_before(&self, task: usize, cpu: usize, arrival: u64) -> u64 {
        if self.model.tasks[task].blocking.is_none_or(|allowed| allowed == 0) || self.model.simulated {
            return 0;
        }
        let since = arrival.max(self.tasks[task].done_at);
        let is_it = |who| matches!(who, Occupant::Task(other) if self.keeps_waiting(other, task));
        let meanwhile = self.cpus[cpu].occupied(since, self.now, is_it);
        self.less_important_had(task, cpu).saturating_sub(meanwhile)
    }

    /// Whether `other` is less important and cannot be preempted anywhere.
    fn keeps_waiting(&self, other: usize, task: usize) -> bool {
        !self.model.in_level(other, task) && !self.model.tasks[other].is_preemptive()
    }

    /// A task's thread had the processor in a measured trace.
    pub(crate) fn note_kept_waiting(&mut self, cpu: usize, task: usize, length: u64) {
        if !self.model.tasks[task].is_preemptive() {
            let place = self.cpus[cpu].levels_from(self.model.rank(task));
            self.cpus[cpu].kept_waiting.add(place, length);
        }
    }

    /// Notes a question that is answered once its evidence is there.
    pub(crate) fn ask(
        &mut self,
        task: usize,
        cpu: usize,
        job: u64,
        arrival: u64,
        window: Option<Busy>,
        question: Question,
    ) {
        let from = window.map_or(arrival, |busy| busy.since.min(arrival));
        let blocker = window.and_then(|busy| busy.blocker);
        self.candidates.push_back(Candidate {
            task,
            cpu,
            job,
            arrival,
            from,
            to: self.now,
            blocker,
            question,
        });
    }
}
