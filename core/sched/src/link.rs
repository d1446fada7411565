//! What links hand over (decision 0009): the one rule of which publication a latch gets, and links in virtual time.
//!
//! The driver's order of phases does the rest: on all processors what ends at an instant comes before what arrives at it, so that a
//! completion anywhere is told before a latch of the same instant.

use horolog_model::{System, Task};
use horolog_time::Span;

/// A value that a job has published; times are nanoseconds of the world's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Publication {
    /// The writer's job, counted from 0.
    pub job: u64,
    /// From when on readers get it: the job's arrival plus its relative deadline.
    pub nominal: u64,
    /// When the job completed: later than `nominal`, the publication is late.
    pub completed: u64,
}

/// What a latch at `at` gets: of the publications that are there and due by then the one with the latest nominal instant, of several
/// with the same one that of the latest job.
///
/// ```
/// use horolog_sched::{Publication, latched};
/// let early = Publication { job: 0, nominal: 4, completed: 1 };
/// let late = Publication { job: 1, nominal: 14, completed: 16 };
/// assert_eq!(latched([early, late], 3), None);
/// assert_eq!(latched([late, early], 4), Some(early));
/// assert_eq!(latched([early, late], 15), Some(early));
/// assert_eq!(latched([late, early], 16), Some(late));
/// ```
#[must_use]
pub fn latched(publications: impl IntoIterator<Item = Publication>, at: u64) -> Option<Publication> {
    let is_there = |it: &Publication| it.nominal <= at && it.completed <= at;
    publications.into_iter().filter(is_there).max_by_key(|it| (it.nominal, it.job))
}

/// The links of a system in virtual time.
#[derive(Clone, Debug, Default)]
pub struct Links {
    written_by: Vec<Vec<u32>>,
    read_by: Vec<Vec<u32>>,
    links: Vec<History>,
}

/// The publications of one link that a latch may still get.
#[derive(Clone, Debug, Default)]
struct History {
    publications: Vec<Publication>,
    /// How much later than a job's arrival its release may be told.
    reach: u64,
}

impl Links {
    /// The links of a system, with nothing published.
    #[must_use]
    pub fn new(system: &System) -> Links {
        let mut links = Links::default();
        if system.links().is_empty() {
            return links;
        }
        links.written_by.resize(system.tasks().len(), Vec::new());
        links.read_by.resize(system.tasks().len(), Vec::new());
        let platform = system.platform();
        let (tick, latency) =
            (platform.tick.map_or(0, Span::as_ns), platform.release_latency.map_or(0, Span::as_ns));
        for link in 0..system.links().len() {
            links.written_by[system.writer_of(link).index()].push(link as u32);
            let late = |task: &Task| task.jitter.as_ns().saturating_add(tick).saturating_add(latency);
            let reach = system.readers_of(link).map(|id| late(system.task(id))).max().unwrap_or(0);
            system.readers_of(link).for_each(|id| links.read_by[id.index()].push(link as u32));
            links.links.push(History { publications: Vec::new(), reach });
        }
        links
    }

    /// Whether there is a link.
    #[inline(always)]
    #[must_use]
    pub fn has_any(&self) -> bool {
        !self.links.is_empty()
    }

    /// The links that a task writes, by their place in the file.
    #[must_use]
    pub fn written_by(&self, task: u32) -> &[u32] {
        self.written_by.get(task as usize).map_or(&[], Vec::as_slice)
    }

    /// The links that a task reads, by their place in the file.
    #[must_use]
    pub fn read_by(&self, task: u32) -> &[u32] {
        self.read_by.get(task as usize).map_or(&[], Vec::as_slice)
    }

    /// The job of a publication has completed. What no latch can get any more is forgotten.
    pub fn publish(&mut self, link: u32, publication: Publication) {
        let history = &mut self.links[link as usize];
        let earliest = publication.completed.saturating_sub(history.reach);
        if let Some(oldest) = latched(history.publications.iter().copied(), earliest) {
            history.publications.retain(|it| (it.nominal, it.job) >= (oldest.nominal, oldest.job));
        }
        history.publications.push(publication);
    }

    /// What a job that arrived at `at` gets.
    #[must_use]
    pub fn latch(&self, link: u32, at: u64) -> Option<Publication> {
        latched(self.links[link as usize].publications.iter().copied(), at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> Links {
        let text = "[system]\nname = \"l\"\n[[task]]\nname = \"a\"\nperiod = \"10 ns\"\nwcet = \"1 ns\"\npriority = 1\n\
            [[task]]\nname = \"b\"\nperiod = \"10 ns\"\nwcet = \"1 ns\"\npriority = 2\njitter = \"7 ns\"\n\
            [[link]]\nname = \"x\"\nfrom = \"a\"\nto = [\"a\", \"b\"]\n";
        Links::new(&horolog_model::file::read(text, "l.toml", &[]).expect("valid").0)
    }

    #[test]
    fn a_link_knows_its_tasks() {
        let links = links();
        assert!(links.has_any());
        assert_eq!((links.written_by(0), links.written_by(1)), (&[0][..], &[][..]));
        assert_eq!((links.read_by(0), links.read_by(1), links.read_by(9)), (&[0][..], &[0][..], &[][..]));
        assert!(!Links::default().has_any());
    }

    #[test]
    fn a_latch_gets_what_is_due_and_there_at_its_very_instant() {
        let at = |nominal, completed, at| latched([Publication { job: 3, nominal, completed }], at).is_some();
        assert!(at(10, 10, 10));
        assert!(!at(11, 10, 10));
        assert!(!at(10, 11, 10));
        let both =
            [(3, 10), (4, 10), (2, 10)].map(|(job, nominal)| Publication { job, nominal, completed: 5 });
        assert_eq!(latched(both, 10).map(|it| it.job), Some(4));
        // After a mode change a later job may be due earlier.
        let turned = [(3, 10), (4, 9)].map(|(job, nominal)| Publication { job, nominal, completed: 5 });
        assert_eq!(latched(turned, 9).map(|it| it.job), Some(4));
        assert_eq!(latched(turned, 10).map(|it| it.job), Some(3));
    }

    #[test]
    fn what_is_forgotten_no_latch_can_get() {
        let mut links = links();
        let mut all = Vec::new();
        for job in 0..200_u64 {
            // Every seventh is late, and latches look back as far as the jitter goes.
            let completed = job * 10 + if job % 7 == 3 { 12 } else { 1 + job % 9 };
            let publication = Publication { job, nominal: job * 10 + 10, completed };
            for at in completed.saturating_sub(7)..=completed {
                let kept = links.latch(0, at);
                assert_eq!(kept, latched(all.iter().copied(), at), "job {job}, latch at {at}");
            }
            links.publish(0, publication);
            all.push(publication);
            assert!(links.links[0].publications.len() <= 4, "{:?}", links.links[0].publications);
        }
    }
}
