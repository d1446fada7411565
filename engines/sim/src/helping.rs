//! Sections that execute on another processor than their job's: that of a job that waits (decision 0024), or that of the resource (decision 0026).
//!
//! Where a section executes is a function of what all processors have chosen: at home where its job is chosen there, and else in the place of the first job of
//! the queue that spins and is chosen on its own processor. So choices are only noted while a round makes them, and carried out together at its end.

use crate::engine::Core;
use crate::lane::{Lane, NEVER, NONE};
use crate::source::Source;
use horolog_model::{CpuId, System, TaskId};
use horolog_sched::{GlobalLocks, Tell};
use horolog_trace::{Kind, Sink};
use std::collections::VecDeque;

/// What is kept where sections may go on elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Helping {
    /// The resources whose holders are helped.
    resources: Vec<u32>,
    /// The places of the processors that execute sections alone, in the order of [`horolog_sched::GlobalLocks::remote`].
    remote: Vec<usize>,
    /// Since when each of these is idle; [`NEVER`]: it is not.
    idle: Vec<u64>,
    /// The place of each task's processor.
    home: Vec<usize>,
    /// The jobs whose sections have ended in this round on another processor.
    ends: VecDeque<TaskId>,
}

impl Helping {
    /// `None` where every job executes on its own processor.
    pub(crate) fn of(system: &System, globals: &GlobalLocks, lanes: &[Lane]) -> Option<Helping> {
        let all = (0..).zip(system.resources());
        let resources: Vec<u32> = all.filter(|(_, it)| it.protocol.helps()).map(|(place, _)| place).collect();
        let place = |cpu: CpuId| lanes.iter().position(|lane| u32::from(lane.cpu) == cpu.0);
        let remote: Vec<usize> = globals.remote().filter_map(|(cpu, _)| place(cpu)).collect();
        if resources.is_empty() && remote.is_empty() {
            return None;
        }
        let mut home = vec![0; system.tasks().len()];
        for lane in lanes {
            lane.tasks.iter().for_each(|&task| home[task as usize] = lane.place);
        }
        let idle = vec![NEVER; remote.len()];
        Some(Helping { resources, remote, idle, home, ends: VecDeque::with_capacity(lanes.len()) })
    }
}

impl<S: Source, K: Sink> Core<'_, S, K> {
    /// The end of a stretch of execution is that of a section of another processor's job: that processor is told of it.
    pub(crate) fn ends_away(&mut self, lane: &mut Lane, task: u32, now: u64) -> bool {
        let Some(helping) = &mut self.helping else { return false };
        if helping.home[task as usize] == lane.place {
            return false;
        }
        helping.ends.push_back(TaskId(task));
        let run = &mut self.tasks[task as usize];
        run.remaining = 0;
        let job = run.oldest;
        self.emit(lane, now, Kind::Preempt, task, job, 0, 0);
        (lane.running, lane.finish) = (NONE, NEVER);
        true
    }

    /// The next of the jobs whose section has ended on another processor in this round.
    pub(crate) fn take_end(&mut self) -> Option<TaskId> {
        self.helping.as_mut()?.ends.pop_front()
    }

    /// A section of a job of this processor has ended elsewhere: it unlocks, and goes on here once it is chosen.
    pub(crate) fn ended_elsewhere(&mut self, tell: &mut Tell<'_>, lane: &Lane, task: u32) {
        let now = tell.now();
        while let Some(resource) = self.sections[task as usize].pass_end() {
            self.unlock(tell, lane, task, resource, now);
        }
        if self.sections[task as usize].is_at_end() {
            self.close_sections(tell, lane, task, now);
        } else {
            self.tasks[task as usize].remaining = self.sections[task as usize].next_stretch();
        }
    }

    /// Gives every processor to whom it has chosen, or to the section that goes on in the place of that one.
    pub(crate) fn place_sections(&mut self, lanes: &mut [Lane], now: u64) {
        let Some(helping) = &mut self.helping else { return };
        lanes.iter_mut().for_each(|lane| lane.placed = lane.chosen);
        for &resource in &helping.resources {
            let mut line = self.globals.line(resource);
            let is_chosen = |task: TaskId| lanes[helping.home[task.index()]].chosen == task.0;
            let Some(holder) = line.next().filter(|&holder| !is_chosen(holder)) else { continue };
            if let Some(helper) = line.find(|&waiting| is_chosen(waiting)) {
                lanes[helping.home[helper.index()]].placed = holder.0;
            }
        }
        for ((&place, idle), (_, executes)) in
            helping.remote.iter().zip(&mut helping.idle).zip(self.globals.remote())
        {
            let lane = &mut lanes[place];
            lane.placed = executes.map_or(NONE, |task| task.0);
            // Who comes after idle time switches in, also where it was the last one.
            match lane.placed {
                NONE => *idle = now.min(*idle),
                _ if std::mem::replace(idle, NEVER) < now => lane.on_cpu = NONE,
                _ => {}
            }
        }
        // A job leaves one processor before it gets another one.
        for lane in lanes.iter_mut().filter(|lane| lane.lends) {
            let (previous, next) = (lane.running, lane.placed);
            let passes_point = lane.is_chosen_anew && lane.at_point.is_some();
            if previous != NONE && (next != previous || passes_point) {
                self.leave(lane, previous, next, now);
            }
        }
        for lane in lanes.iter_mut().filter(|lane| lane.lends) {
            let next = lane.placed;
            if next != lane.running {
                self.switch_to(lane, next, now);
            }
            // Where no choice could be made since a job has ended, the processor is still set to that one.
            if std::mem::take(&mut lane.is_chosen_anew) || next != NONE {
                lane.on_cpu = next;
            }
        }
    }
}
