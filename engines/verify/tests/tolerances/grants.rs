//! Below the release agent a thread is woken once it is its job's turn: the wake-up says nothing of when the release was noticed.

use crate::traces::*;
use horolog_model::{Draft, Preemption};
use horolog_trace::Kind;
use horolog_verify::Check;

#[test]
fn a_thread_that_waits_for_its_turn_is_released_in_time() {
    // "low" has the processor for 4 ms; the thread of "high", released after 1 ms, is woken then.
    let releases = |change: fn(&mut Draft)| {
        let records = [
            switch(0, 0, 2),
            at(0, Kind::Release, 1, 0, 0),
            at(0, Kind::Start, 1, 0, 0),
            at(MS, Kind::Release, 0, 0, MS),
            at(4 * MS, Kind::Completion, 1, 0, 4 * MS),
            wakeup(4 * MS, 1),
            switch(4 * MS, 2, 1),
            at(4 * MS + 5 * US, Kind::Start, 0, 0, 0),
            at(5 * MS, Kind::Completion, 0, 0, 990 * US),
            switch(5 * MS, 1, 0),
        ];
        let result = measured(&long(change), &[], &records);
        result.findings.iter().filter(|one| one.check == Check::Release).count()
    };
    assert_eq!(releases(|draft| draft.tasks[1].preemption = Preemption::NonPreemptive), 0);
    // Where the kernel schedules, the wake-up is the release.
    assert_eq!(releases(|_| {}), 1);
}
