//! Sections that hold resources: where a job's execution stops since one begins or ends (decision 0009).

use horolog_model::{Border, System};

/// How far the oldest job of a task has come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sections {
    /// In the order in which they are passed: at one place ends before beginnings, inner ends and outer beginnings first.
    borders: Box<[Border]>,
    next: usize,
    /// What the job has executed at the end of the present stretch.
    until: u64,
    /// What it has executed at the end of the present segment.
    segment_end: u64,
    /// When a beginning was put off for the choice last.
    held_at: Option<u64>,
}

/// Whether a section begins now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beginning {
    None,
    /// One does once the choice of this instant is made, if the job has the processor then.
    AfterTheChoice,
    /// One of this resource does.
    Of(u32),
}

impl Sections {
    /// Those of every task; empty where no task has any.
    pub(crate) fn of(system: &System) -> Vec<Sections> {
        if system.tasks().iter().all(|task| task.sections.is_empty()) {
            return Vec::new();
        }
        let sections = |task| Sections { borders: system.borders(task).into(), ..Sections::default() };
        system.task_ids().map(sections).collect()
    }

    pub(crate) fn has_any(&self) -> bool {
        !self.borders.is_empty()
    }

    /// A job begins with a segment of this length; how long it executes until it stops.
    pub(crate) fn begin(&mut self, length: u64) -> u64 {
        (self.next, self.until, self.segment_end) = (0, 0, 0);
        self.next_segment(length)
    }

    /// The next segment, of this length; how long the job executes until it stops.
    pub(crate) fn next_segment(&mut self, length: u64) -> u64 {
        self.segment_end = self.segment_end.saturating_add(length);
        self.next_stretch()
    }

    /// How long the job executes until it stops again.
    pub(crate) fn next_stretch(&mut self) -> u64 {
        let from = self.until;
        let border = self.borders.get(self.next).map_or(u64::MAX, |border| border.at);
        self.until = border.min(self.segment_end);
        self.until - from
    }

    /// Whether the present stretch ends with the segment. What begins there begins after it, if ever.
    pub(crate) fn is_at_end(&self) -> bool {
        self.until == self.segment_end
    }

    /// The next section that ends with the present stretch.
    pub(crate) fn pass_end(&mut self) -> Option<u32> {
        self.pass(|border| border.begun_at.is_some())
    }

    /// The next section that begins where the job is, within its segment. The choice of an instant comes first: the first time
    /// that this is asked at an instant nothing begins, and the job is held there for another round.
    pub(crate) fn pass_beginning(&mut self, now: u64) -> Beginning {
        let is_here = |border: &Border| border.at == self.until && border.begun_at.is_none();
        if self.is_at_end() || !self.borders.get(self.next).is_some_and(is_here) {
            return Beginning::None;
        }
        if self.held_at.replace(now) != Some(now) {
            return Beginning::AfterTheChoice;
        }
        self.pass(|_| true).map_or(Beginning::None, Beginning::Of)
    }

    /// The beginning that was passed last is still to come.
    pub(crate) fn put_back(&mut self) {
        self.next -= 1;
    }

    /// The resource of the beginning that was passed last.
    pub(crate) fn passed_last(&self) -> Option<u32> {
        self.next.checked_sub(1).map(|last| self.borders[last].resource as u32)
    }

    /// As [`Sections::put_back`], of a job that waits there and knows how far it goes then ([`Sections::next_stretch`]).
    pub(crate) fn go_back(&mut self) {
        self.put_back();
        self.until = self.borders[self.next].at;
    }

    fn pass(&mut self, is_meant: impl FnOnce(&Border) -> bool) -> Option<u32> {
        let border =
            self.borders.get(self.next).filter(|border| border.at == self.until && is_meant(border))?;
        self.next += 1;
        Some(border.resource as u32)
    }

    /// How many borders were passed.
    pub(crate) fn passed(&self) -> usize {
        self.next
    }

    /// The job ends after this many borders: the next section that is open, the innermost first. Those that it has not come to
    /// are left out.
    pub(crate) fn close(&mut self, passed: usize) -> Option<u32> {
        loop {
            let border = self.borders.get(self.next)?;
            self.next += 1;
            if border.begun_at.is_some_and(|begun| begun < passed) {
                return Some(border.resource as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(text: &[(&str, u64, u64)]) -> Sections {
        let mut file = "[system]\nname = \"s\"\n[[resource]]\nname = \"a\"\n[[resource]]\nname = \"b\"\n[[task]]\nname = \"t\"\nperiod = \"1 ms\"\nwcet = \"100 ns\"\npriority = 1\n".to_owned();
        for (resource, from, length) in text {
            file += &format!(
                "[[task.section]]\nresource = \"{resource}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
            );
        }
        let (system, _) = horolog_model::file::read(&file, "s.toml", &[]).expect("a valid file");
        Sections::of(&system).remove(0)
    }

    /// What a job with these segments passes: after how much, what begins (`true`) or ends; then what is open at its end.
    fn walk(sections: &mut Sections, segments: &[u64]) -> (Vec<(u64, u32, bool)>, Vec<u32>) {
        let (mut seen, mut executed) = (Vec::new(), 0);
        for (place, &length) in segments.iter().enumerate() {
            let mut stretch = if place == 0 { sections.begin(length) } else { sections.next_segment(length) };
            loop {
                executed += stretch;
                while let Some(resource) = sections.pass_end() {
                    seen.push((executed, resource, false));
                }
                if sections.is_at_end() {
                    break;
                }
                let mut put_off = 0;
                loop {
                    match sections.pass_beginning(executed) {
                        Beginning::None => break,
                        Beginning::AfterTheChoice => put_off += 1,
                        Beginning::Of(resource) => seen.push((executed, resource, true)),
                    }
                }
                assert!(put_off <= 1, "put off once an instant");
                stretch = sections.next_stretch();
            }
        }
        let passed = sections.passed();
        (seen, std::iter::from_fn(|| sections.close(passed)).collect())
    }

    #[test]
    fn ends_come_before_beginnings_and_inner_ends_first() {
        let mut nested = sections(&[("b", 10, 5), ("a", 0, 20), ("b", 15, 5), ("b", 20, 1)]);
        let all = [
            (0, 0, true),
            (10, 1, true),
            (15, 1, false),
            (15, 1, true),
            (20, 1, false),
            (20, 0, false),
            (20, 1, true),
            (21, 1, false),
        ];
        assert_eq!(walk(&mut nested, &[30]), (all.to_vec(), vec![]));
        // Once more, as the next job.
        assert_eq!(walk(&mut nested, &[21]), (all.to_vec(), vec![]));
        // A shorter job leaves out what begins at its end, and lets go of what is open.
        assert_eq!(walk(&mut nested, &[20]), (all[..6].to_vec(), vec![]));
        assert_eq!(walk(&mut nested, &[19]), (all[..4].to_vec(), vec![1, 0]));
        assert_eq!(walk(&mut nested, &[10]), (all[..1].to_vec(), vec![0]));
        assert_eq!(walk(&mut nested, &[0]), (vec![], vec![]));
    }

    #[test]
    fn a_section_at_a_preemption_point_begins_after_it() {
        let mut one = sections(&[("a", 10, 5)]);
        assert_eq!(one.begin(10), 10);
        assert_eq!((one.pass_end(), one.is_at_end()), (None, true));
        assert_eq!((one.pass_beginning(7), one.next_segment(10)), (Beginning::None, 0));
        assert_eq!(
            (one.pass_beginning(7), one.pass_beginning(8)),
            (Beginning::AfterTheChoice, Beginning::AfterTheChoice)
        );
        assert_eq!((one.pass_beginning(8), one.pass_beginning(8)), (Beginning::Of(0), Beginning::None));
        assert_eq!((one.next_stretch(), one.pass_end(), one.is_at_end()), (5, Some(0), false));
        assert_eq!((one.next_stretch(), one.is_at_end()), (5, true));
    }
}
