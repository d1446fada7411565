//! What an analysis may be asked for.

use horolog_time::Span;

/// What an analysis may be asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Evaluations of a demand function that one task may cost before its answer is `unknown`. Every test is
    /// bounded by it, so that no input hangs. The tasks of a processor with more than a hundred share that of a hundred.
    pub effort: u64,
    /// The resolution of the integer-time test: every time of the model must be a multiple of it.
    pub resolution: Span,
    /// Whether to search the scaling factor, slack and remedies too ([`crate::sensitivity`]): some hundred times the
    /// work of the verdicts alone.
    pub sensitivity: bool,
    /// Steps of the search over every run of a cluster's tasks; `None`: a few hundred thousand, and only where no other test decides.
    pub search_steps: Option<u64>,
}

/// Up to so many tasks of a processor each may cost the whole effort; more share that of so many.
const FULL_EFFORT_TASKS: u64 = 100;

impl Options {
    /// The effort for all of `tasks` tasks together: that of a hundred at the most.
    pub(crate) fn effort_of_all(&self, tasks: usize) -> u64 {
        self.effort.saturating_mul((tasks as u64).clamp(1, FULL_EFFORT_TASKS))
    }

    /// The effort for each of `tasks` tasks: all of them together stay within that of a hundred, so that a processor with
    /// thousands of tasks has its answers, some of them `unknown`, within seconds.
    pub(crate) fn effort_of_each(&self, tasks: usize) -> u64 {
        let shared = self.effort.saturating_mul(FULL_EFFORT_TASKS) / (tasks as u64).max(1);
        shared.min(self.effort)
    }

    /// These options with [`Options::effort_of_each`].
    pub(crate) fn for_each_of(&self, tasks: usize) -> Options {
        Options { effort: self.effort_of_each(tasks), ..self.clone() }
    }

    /// These options for each of `servers` servers: a step of their tests costs several times as much as one of the others.
    pub(crate) fn for_each_server_of(&self, servers: usize) -> Options {
        self.for_each_of(servers.saturating_mul(4))
    }
}

impl Default for Options {
    fn default() -> Options {
        Options { effort: 5_000_000, resolution: Span::from_ns(1), sensitivity: false, search_steps: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task alone has all the effort that there is, of a thousand each a tenth.
    #[test]
    fn tasks_share_the_effort_of_a_hundred() {
        for effort in [0, 1, 5_000_000, u64::MAX] {
            let options = Options { effort, ..Options::default() };
            assert_eq!(options.effort_of_each(0), effort);
            assert_eq!(options.effort_of_each(1), effort);
        }
        let each = |tasks| Options { effort: 5_000, ..Options::default() }.effort_of_each(tasks);
        assert_eq!([2, 100, 101, 1_000].map(each), [5_000, 5_000, 4_950, 500]);
    }
}
