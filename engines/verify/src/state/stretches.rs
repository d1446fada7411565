//! Who should have a processor and who has it, as time passes.

use crate::state::history::Occupant;
use horolog_model::TaskId;
use horolog_sched::Withdrawn;

/// A stretch that goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stretch {
    pub(crate) since: u64,
    /// Who should have had the processor first.
    pub(crate) wanted: Option<TaskId>,
    pub(crate) job: Option<u64>,
    /// Who had it then.
    pub(crate) actual: Occupant,
    pub(crate) actual_job: Option<u64>,
    /// Whether the release agent had to notice the wanted job as the stretch began.
    pub(crate) at_release: bool,
    /// For how long something outside the order had had the processor before.
    pub(crate) withdrawn: Withdrawn,
    /// The first interrupt of the processor's own timer within it.
    pub(crate) timer_at: Option<u64>,
}

/// A stretch that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Closed {
    pub(crate) stretch: Stretch,
    pub(crate) end: u64,
}

/// Who should have a processor and who has it, as time passes.
#[derive(Clone, Debug)]
pub(crate) struct Stretches {
    pub(crate) wanted: Option<TaskId>,
    pub(crate) actual: Occupant,
    pub(crate) open: Option<Stretch>,
    /// Whose jobs were wanted since the stretch began.
    pub(crate) wanted_since: Vec<TaskId>,
    /// Since when it is not known who has the processor although somebody should.
    pub(crate) unknown_since: Option<u64>,
    pub(crate) not_judged: u64,
}

impl Stretches {
    pub(crate) fn new() -> Stretches {
        Stretches {
            wanted: None,
            actual: Occupant::Unknown,
            open: None,
            wanted_since: Vec::new(),
            unknown_since: None,
            not_judged: 0,
        }
    }

    /// Since when the two differ.
    pub(crate) fn since(&self) -> Option<u64> {
        self.open.map(|open| open.since)
    }

    /// From `now` on `actual` has the processor and `wanted` should. `describe` is asked where a stretch begins. Returns the
    /// stretch that ends.
    pub(crate) fn update(
        &mut self,
        now: u64,
        wanted: Option<TaskId>,
        actual: Occupant,
        describe: impl FnOnce() -> Stretch,
    ) -> Option<Closed> {
        (self.wanted, self.actual) = (wanted, actual);
        if actual == Occupant::Unknown {
            let closed = self.open.take().map(|stretch| Closed { stretch, end: now });
            self.lose(now);
            return closed.filter(|closed| closed.end > closed.stretch.since);
        }
        self.known(now);
        let has_it = match (wanted, actual) {
            (Some(wanted), Occupant::Task(task)) => task == wanted.index(),
            (None, Occupant::Task(_)) => false,
            (wanted, _) => wanted.is_none(),
        };
        // Somebody who was wanted a moment ago was served late, and is no wrong choice.
        let was_wanted = matches!(actual, Occupant::Task(task)
            if self.wanted_since.iter().any(|wanted| wanted.index() == task));
        let closed = match self.open {
            Some(stretch) if has_it || was_wanted => {
                self.open = None;
                Some(Closed { stretch, end: now })
            }
            _ => None,
        };
        if !has_it && self.open.is_none() {
            self.wanted_since.clear();
            self.open = Some(describe());
        }
        if let Some(wanted) = wanted
            && !has_it
            && self.wanted_since.last() != Some(&wanted)
        {
            self.wanted_since.push(wanted);
        }
        closed.filter(|closed| closed.end > closed.stretch.since)
    }

    /// Ends what goes on at `now`.
    pub(crate) fn close(&mut self, now: u64) -> Option<Closed> {
        self.known(now);
        let stretch = self.open.take()?;
        (now > stretch.since).then_some(Closed { stretch, end: now })
    }

    /// From `now` on it is not known who has the processor; nobody is blamed for the stretch that was under way.
    pub(crate) fn lose(&mut self, now: u64) {
        let since = self.open.take().map_or(now, |open| open.since);
        self.actual = Occupant::Unknown;
        if self.wanted.is_some() {
            self.unknown_since = Some(self.unknown_since.map_or(since, |before| before.min(since)));
        } else {
            self.known(now);
        }
    }

    /// Nothing is known from `now` on, not even who should have the processor.
    pub(crate) fn forget(&mut self, now: u64) {
        self.known(now);
        (self.wanted, self.actual, self.open) = (None, Occupant::Unknown, None);
    }

    fn known(&mut self, now: u64) {
        if let Some(since) = self.unknown_since.take() {
            self.not_judged = self.not_judged.saturating_add(now.saturating_sub(since));
        }
    }

    /// The processor's own timer has interrupted it.
    #[inline]
    pub(crate) fn note_timer(&mut self, now: u64) {
        if let Some(open) = &mut self.open
            && open.timer_at.is_none()
        {
            open.timer_at = Some(now);
        }
    }
}
