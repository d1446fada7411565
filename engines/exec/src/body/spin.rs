//! Bodies that burn processor time on the thread's own CPU clock.

use super::TaskBody;
use crate::{ExecError, Job};
use horolog_model::{Body, SegmentGraph, SpinTarget, Task};
use horolog_sys::clock;
use std::hint::black_box;

/// Burns processor time in calibrated chunks between readings of the thread's CPU clock, which cost a system
/// call each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spinner {
    rounds_per_ms: u64,
}

/// The longest stretch without a look at the clock and at the end of the run.
const CHUNK_NS: u64 = 50_000;

impl Spinner {
    /// Measures how fast this machine burns: the best of several short tries, since only disturbed ones are slow.
    pub(crate) fn calibrate() -> Spinner {
        const ROUNDS: u64 = 20_000;
        let best = (0..15)
            .map(|_| {
                let before = clock::monotonic_ns();
                burn(ROUNDS);
                clock::monotonic_ns() - before
            })
            .min()
            .unwrap_or(1);
        Spinner { rounds_per_ms: (ROUNDS * 1_000_000 / best.max(1)).max(1) }
    }

    /// Burns until the calling thread's CPU clock shows `target` ns, or `ends_early` says so.
    pub(crate) fn burn_until(self, target: u64, mut ends_early: impl FnMut() -> bool) {
        loop {
            let now = clock::thread_cpu_ns();
            if now >= target || ends_early() {
                return;
            }
            // Seven eighths of what is left, so that the last chunk overshoots by little.
            let left = target - now;
            let chunk = (left - left / 8).min(CHUNK_NS);
            burn((chunk * self.rounds_per_ms / 1_000_000).max(1));
        }
    }
}

/// Arithmetic that the compiler cannot remove and that touches no memory.
#[inline(never)]
fn burn(rounds: u64) {
    let mut word = black_box(0x9e37_79b9_7f4a_7c15_u64);
    for _ in 0..rounds {
        word = black_box(word.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (word >> 29));
    }
    black_box(word);
}

/// A body that burns a fixed time a job, or a segment.
#[derive(Clone, Debug)]
pub(crate) struct Spin {
    spinner: Spinner,
    /// Time of each segment; one entry for a task without segments.
    targets: Vec<u64>,
    graph: Option<SegmentGraph>,
}

impl Spin {
    /// The spin body of `task`; a task without a body burns 90 percent of its wcet.
    pub(crate) fn of(task: &Task, spinner: Spinner) -> Result<Spin, ExecError> {
        let default = SpinTarget::Fraction(900_000);
        let target = match &task.body {
            Some(Body::Spin(target)) => target,
            _ => &default,
        };
        let graph = task.segment_graph().cloned();
        let wcets: Vec<u64> = match &graph {
            Some(graph) => graph.segments.iter().map(|segment| segment.wcet.as_ns()).collect(),
            None => vec![task.wcet.as_ns()],
        };
        let share =
            |whole: u64, part: u64, of: u64| (u128::from(whole) * u128::from(part) / u128::from(of)) as u64;
        let targets = match target {
            SpinTarget::Fraction(ppm) => {
                wcets.iter().map(|&w| share(w, u64::from(*ppm), 1_000_000)).collect()
            }
            SpinTarget::Total(total) => {
                wcets.iter().map(|&w| share(total.as_ns(), w, task.wcet.as_ns().max(1))).collect()
            }
            SpinTarget::PerSegment(spans) if spans.len() == wcets.len() => {
                spans.iter().map(|span| span.as_ns()).collect()
            }
            SpinTarget::PerSegment(spans) => {
                return Err(ExecError::at(
                    format!("task.{}.body.spin", task.name),
                    format!("{} spin times for {} segments", spans.len(), wcets.len()),
                    "give one for each",
                ));
            }
        };
        Ok(Spin { spinner, targets, graph })
    }
}

impl Spin {
    /// The job ends before its sections do, as it burns a part of its wcet: it lets go of what it holds.
    fn leave_sections(job: &Job<'_>, passed: usize) {
        for border in job.task.borders.iter().skip(passed).filter(|border| border.begun_at.is_some()) {
            if job.run.locks.is_held_by(border.resource, job.task) {
                job.runtime.unlock(job.task, job.number(), border.resource);
            }
        }
    }

    /// Burns towards `target` as far as sections of the task begin before it or end by it, which are locked and unlocked.
    /// What it spins for locks of other processors puts off both ends of the stretch.
    fn burn_through_sections(
        &self,
        job: &Job<'_>,
        (begun, target): (&mut u64, &mut u64),
        passed: &mut usize,
    ) {
        while let Some(border) = job.task.borders.get(*passed) {
            let at = begun.saturating_add(border.at);
            let is_end = border.begun_at.is_some();
            if at > *target || (at == *target && !is_end) {
                return;
            }
            self.spinner.burn_until(at, || job.is_run_over());
            if job.must_end() {
                return;
            }
            *passed += 1;
            if is_end {
                job.runtime.unlock(job.task, job.number(), border.resource);
            } else {
                let spun = job.runtime.lock(job.task, job.number(), border.resource);
                *begun = begun.saturating_add(spun);
                *target = target.saturating_add(spun);
            }
        }
    }
}

impl TaskBody for Spin {
    fn job(&mut self, job: &mut Job<'_>) -> i32 {
        let mut begun = clock::thread_cpu_ns();
        let mut target = begun;
        if self.graph.is_none() {
            for point in &job.task.requests {
                self.spinner.burn_until(begun + point.after.min(self.targets[0]), || job.is_run_over());
                if job.must_end() {
                    return 0;
                }
                job.runtime.ask(job.task, point.place);
            }
        }
        let (mut segment, mut passed) = (0, 0);
        loop {
            target += self.targets[segment];
            self.burn_through_sections(job, (&mut begun, &mut target), &mut passed);
            self.spinner.burn_until(target, || job.is_run_over());
            if job.must_end() {
                return 0;
            }
            let next = self.graph.as_ref().map_or(&[][..], |graph| &graph.segments[segment].next);
            if next.is_empty() {
                Spin::leave_sections(job, passed);
                return 0;
            }
            // Branches take turns by job number, so that every path is exercised.
            segment = next[(job.number() % next.len() as u64) as usize];
            job.next_segment(segment as u32);
            job.preemption_point(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burns_what_was_asked_and_little_more() {
        let spinner = Spinner::calibrate();
        let target = clock::thread_cpu_ns() + 3_000_000;
        spinner.burn_until(target, || false);
        let over = clock::thread_cpu_ns() - target;
        // On its own processor time the overshoot is a chunk at the very most, whatever else runs.
        assert!(over < 1_000_000, "{over} ns too long");
    }

    #[test]
    fn ends_early_when_told() {
        let spinner = Spinner::calibrate();
        let begun = clock::thread_cpu_ns();
        spinner.burn_until(begun + 3_600_000_000_000, || clock::thread_cpu_ns() > begun + 1_000_000);
        assert!(clock::thread_cpu_ns() >= begun + 1_000_000);
    }
}
