//! Whether another operation may go first: the slack of just-in-time scheduling.
//!
//! An operation x of length c that begins at t goes first if `t + c + W(t, d) ≤ d` for each deadline d of the busy period, where W is
//! the longest time of all other operations with a deadline up to d: those that are released, and those that may be, each as soon as
//! its reserve allows.
//!
//! No further operation is in the way (a blocking B): one with a later deadline begins only at an instant at which none with a deadline
//! up to d is left. From there on the admission holds, which counts it; so it does behind the end of the busy period. In the other
//! direction, where the condition fails for a d, clients that ask as soon as they may miss d in any order. So the test is exact for
//! operations that take their longest.

use crate::admission::Reserve;
use crate::holder::Releases;

/// So many operations of the future are looked at; where more would be needed the answer is no.
const MOST: usize = 100_000;

/// A reserve and when its last operations were released.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream<'a> {
    pub(crate) reserve: &'a Reserve,
    pub(crate) releases: &'a Releases,
}

/// An operation that may begin now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    /// Its longest time, ns.
    pub(crate) longest_ns: u64,
    /// `None`: best effort.
    pub(crate) deadline_ns: Option<u64>,
}

/// Whether `first` may begin at `now` before `others`, the (deadline, longest time) of every other released operation.
pub(crate) fn goes_first(now: u64, first: First, others: Vec<(u64, u64)>, streams: &[Stream<'_>]) -> bool {
    let until = first.deadline_ns.unwrap_or(u64::MAX);
    if others.iter().all(|&(deadline, _)| deadline >= until) {
        return true;
    }
    let begun = now.saturating_add(first.longest_ns);
    let Some(work) = busy_period(now, begun, others, streams) else { return false };
    let mut done = begun;
    work.iter().all(|&(deadline, longest)| {
        done = done.saturating_add(longest);
        done <= deadline
    })
}

/// All operations of the busy period where every client asks as soon as it may, in the order of their deadlines.
fn busy_period(
    now: u64,
    begun: u64,
    mut work: Vec<(u64, u64)>,
    streams: &[Stream<'_>],
) -> Option<Vec<(u64, u64)>> {
    let mut end = work.iter().fold(begun, |end, &(_, longest)| end.saturating_add(longest));
    let mut futures: Vec<Releases> = streams.iter().map(|stream| stream.releases.clone()).collect();
    loop {
        let before = work.len();
        for (stream, releases) in streams.iter().zip(&mut futures) {
            loop {
                let release = releases.next(stream.reserve, now);
                if release >= end {
                    break;
                }
                releases.push(stream.reserve, release);
                work.push((release.saturating_add(stream.reserve.deadline_ns), stream.reserve.longest_ns));
                end = end.saturating_add(stream.reserve.longest_ns);
                if work.len() > MOST {
                    return None;
                }
            }
        }
        if work.len() == before {
            work.sort_unstable();
            return Some(work);
        }
    }
}
