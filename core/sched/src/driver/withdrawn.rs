//! Who has a processor that is withdrawn, and for how long.

/// Who has a processor that is withdrawn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// An interrupt or a softirq.
    Interrupt,
    /// A thread outside the model.
    Foreign,
    /// The platform's own work: a switch, the release agent.
    Cost,
}

impl Cause {
    const COUNT: usize = 3;
}

/// For how long a processor was withdrawn so far, by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Withdrawn([u64; Cause::COUNT]);

impl Withdrawn {
    /// In nanoseconds.
    #[must_use]
    pub fn by(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// What came on top since `before`.
    #[must_use]
    pub fn since(&self, before: Withdrawn) -> Withdrawn {
        let mut more = *self;
        for (now, then) in more.0.iter_mut().zip(before.0) {
            *now = now.saturating_sub(then);
        }
        more
    }
}

/// What is kept of it between two events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Withdrawal {
    /// Why, and since when.
    pub(crate) now: Option<(Cause, u64)>,
    pub(crate) total: Withdrawn,
}

impl Withdrawal {
    pub(crate) fn total(&self, now: u64) -> Withdrawn {
        let mut total = self.total;
        if let Some((cause, since)) = self.now {
            let so_far = &mut total.0[cause as usize];
            *so_far = so_far.saturating_add(now.saturating_sub(since));
        }
        total
    }
}
