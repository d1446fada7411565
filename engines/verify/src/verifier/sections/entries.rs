//! How often jobs come to their resources: no more often than the file has sections on each.

/// How often the present job of a task has come to each of its resources.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    job: u64,
    /// The resource, how many sections the file has on it, and how often the job has come to one.
    of_each: Vec<(usize, u32, u32)>,
}

impl Entries {
    pub(super) fn of(sections: &[(usize, u64)]) -> Entries {
        let mut of_each: Vec<(usize, u32, u32)> = Vec::new();
        for &(place, _) in sections {
            match of_each.iter_mut().find(|(other, ..)| *other == place) {
                Some((_, allowed, _)) => *allowed += 1,
                None => of_each.push((place, 1, 0)),
            }
        }
        Entries { job: u64::MAX, of_each }
    }

    /// Records are lost: a job that waited may come to what it asked for once more.
    pub(super) fn lose(&mut self) {
        self.of_each.iter_mut().for_each(|(_, _, came)| *came = 0);
    }

    /// A job comes to a section; how many the file has, where this is the first one more than that.
    pub(crate) fn count(&mut self, job: u64, place: usize) -> Option<u32> {
        if std::mem::replace(&mut self.job, job) != job {
            self.of_each.iter_mut().for_each(|(_, _, came)| *came = 0);
        }
        let (_, allowed, came) = self.of_each.iter_mut().find(|(other, ..)| *other == place)?;
        *came = came.saturating_add(1);
        (*came == allowed.saturating_add(1)).then_some(*allowed)
    }
}
