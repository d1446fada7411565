//! Named tests of many plain task sets at once, on every core.
//!
//! A *plain* task is sporadic (or periodic, released together with the others), preemptive, independent, alone with its set on
//! one processor, and without jitter, costs or offsets: C, D and T in nanoseconds say all of it.
//!
//! | test | assumes | answers | source |
//! |---|---|---|---|
//! | `fp-preemptive` | deadline-monotonic priorities, among equals the task that stands first | exact | `joseph86`, `lehoczky90` |
//! | `edf-qpa` | earliest deadline first | exact | `baruah90`, `zhang09` |
//! | `rm-liu-layland` | rate-monotonic priorities, no D below T | sufficient: yes or unknown | `liulayland73` |
//! | `rm-hyperbolic` | rate-monotonic priorities, no D below T | sufficient: yes or unknown | `bini03` |
//!
//! The engines are those of [`crate::analyze`]: [`Solver`], [`EdfSolver`], [`quick_facts`]. The two bounds are decided in floating
//! point where a set lies further from the bound than 10^-9, ten thousand times the largest error of rounding, and in exact
//! integers nearer to it.

use crate::edf::{EdfSet, EdfSolver, EdfTask, EdfVerdict};
use crate::fixed_priority::{PlainTask, Solver};
use crate::{Verdict, quick_facts, utilisation};
use std::cmp::Ordering;
use std::sync::{Mutex, PoisonError};

/// No time may reach this (36 years).
const LIMIT: u64 = 1 << 60;
/// The most tasks of a set.
pub const MOST_TASKS: usize = 1_000;
/// Sets that a core takes at a time.
const BLOCK: usize = 256;
/// A bound is decided in exact integers within this distance.
const NEAR: f64 = 1e-9;

/// A test that can be asked for by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchTest {
    /// Response times under deadline-monotonic priorities.
    FpPreemptive,
    /// The demand criterion of EDF.
    EdfQpa,
    /// Liu and Layland's bound.
    RmLiuLayland,
    /// The hyperbolic bound.
    RmHyperbolic,
}

impl BatchTest {
    /// Every test.
    pub const ALL: [BatchTest; 4] =
        [BatchTest::FpPreemptive, BatchTest::EdfQpa, BatchTest::RmLiuLayland, BatchTest::RmHyperbolic];

    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            BatchTest::FpPreemptive => "fp-preemptive",
            BatchTest::EdfQpa => "edf-qpa",
            BatchTest::RmLiuLayland => "rm-liu-layland",
            BatchTest::RmHyperbolic => "rm-hyperbolic",
        }
    }

    /// The test of this name.
    #[must_use]
    pub fn of_word(word: &str) -> Option<BatchTest> {
        BatchTest::ALL.into_iter().find(|test| test.word() == word)
    }
}

/// Sets of equally many tasks, one after the other, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Sets<'a> {
    /// Tasks of each set.
    tasks: usize,
    /// Worst-case execution times C.
    wcet: &'a [u64],
    /// Relative deadlines D.
    deadline: &'a [u64],
    /// Periods or least separations T.
    period: &'a [u64],
}

/// Why sets are none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSets {
    /// A number of tasks that no set has.
    #[error("a set has from 1 to {MOST_TASKS} tasks, not {0}")]
    Tasks(usize),
    /// The three differ in length, or the last set is not whole.
    #[error(
        "wcet, deadline and period hold {0}, {1} and {2} values: one each for every task of whole sets of {3} tasks"
    )]
    Lengths(usize, usize, usize, usize),
    /// A time out of range.
    #[error("{argument} of task {task} of set {set} is {value} ns: it lies from 1 to 2^60 - 1 ns")]
    Time {
        /// `wcet`, `deadline` or `period`.
        argument: &'static str,
        /// Which set, from 0.
        set: usize,
        /// Which task of it, from 0.
        task: usize,
        /// The value.
        value: u64,
    },
}

impl BadSets {
    /// The same, said of sets that begin at set `first` of a whole.
    #[must_use]
    pub fn in_whole(self, first: usize) -> BadSets {
        match self {
            BadSets::Time { argument, set, task, value } => {
                BadSets::Time { argument, set: set + first, task, value }
            }
            other => other,
        }
    }
}

impl<'a> Sets<'a> {
    /// Checks every value.
    ///
    /// # Errors
    /// See [`BadSets`].
    pub fn new(
        tasks: usize,
        wcet: &'a [u64],
        deadline: &'a [u64],
        period: &'a [u64],
    ) -> Result<Sets<'a>, BadSets> {
        if tasks == 0 || tasks > MOST_TASKS {
            return Err(BadSets::Tasks(tasks));
        }
        let lengths = (wcet.len(), deadline.len(), period.len());
        if lengths.0 != lengths.1 || lengths.1 != lengths.2 || !lengths.0.is_multiple_of(tasks) {
            return Err(BadSets::Lengths(lengths.0, lengths.1, lengths.2, tasks));
        }
        for (argument, values) in [("wcet", wcet), ("deadline", deadline), ("period", period)] {
            let is_bad = |&value: &u64| value == 0 || value >= LIMIT;
            if let Some(at) = values.iter().position(is_bad) {
                return Err(BadSets::Time { argument, set: at / tasks, task: at % tasks, value: values[at] });
            }
        }
        Ok(Sets { tasks, wcet, deadline, period })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.wcet.len() / self.tasks
    }

    fn part(&self, from: usize, until: usize) -> Sets<'a> {
        let range = from * self.tasks..until * self.tasks;
        Sets {
            tasks: self.tasks,
            wcet: &self.wcet[range.clone()],
            deadline: &self.deadline[range.clone()],
            period: &self.period[range],
        }
    }

    fn each(&self) -> impl Iterator<Item = Sets<'a>> {
        let whole = *self;
        (0..self.count()).map(move |set| whole.part(set, set + 1))
    }

    fn shares(&self) -> impl Iterator<Item = (u64, u64)> + Clone + 'a {
        self.wcet.iter().copied().zip(self.period.iter().copied())
    }
}

/// Tests every set: `verdicts` has one row a set, with one verdict a test of `tests`, on so many threads (0: one a core).
///
/// # Panics
/// Where `verdicts` has another length than sets times tests.
///
/// ```
/// use horolog_analysis::Verdict::{Meets, Misses, Unknown};
/// use horolog_analysis::batch::{BatchTest, Sets, decide};
/// // Liu and Layland's example: response times 2 and 5; the bound of two tasks is 0.828, the utilisation 0.83.
/// let sets = Sets::new(2, &[2, 3], &[4, 9], &[4, 9])?;
/// let mut verdicts = [Unknown; 3];
/// decide(sets, &[BatchTest::FpPreemptive, BatchTest::RmLiuLayland, BatchTest::EdfQpa], &mut verdicts, 1);
/// assert_eq!(verdicts, [Meets, Unknown, Meets]);
/// # assert_ne!(verdicts[0], Misses);
/// # Ok::<(), horolog_analysis::batch::BadSets>(())
/// ```
pub fn decide(sets: Sets<'_>, tests: &[BatchTest], verdicts: &mut [Verdict], threads: usize) {
    assert_eq!(verdicts.len(), sets.count() * tests.len(), "one verdict a set and test");
    if tests.is_empty() || verdicts.is_empty() {
        return;
    }
    let blocks = sets.count().div_ceil(BLOCK);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if threads == 0 { cores } else { threads }.min(blocks);
    let rows = Mutex::new(verdicts.chunks_mut(BLOCK * tests.len()).enumerate());
    let work = || {
        let mut judge = Judge::default();
        loop {
            // The lock is held for the next block alone.
            let next = rows.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((block, rows)) = next else { return };
            let from = block * BLOCK;
            let part = sets.part(from, from + rows.len() / tests.len());
            for (column, &test) in tests.iter().enumerate() {
                let column = rows.iter_mut().skip(column).step_by(tests.len());
                judge.column(test, &part, column);
            }
        }
    };
    if threads <= 1 {
        return work();
    }
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

/// The engines with their scratch memory.
#[derive(Default)]
struct Judge {
    fixed: Solver,
    edf: EdfSolver,
    plain: Vec<PlainTask>,
    order: Vec<usize>,
    deadlines: Vec<u64>,
    responses: Vec<Option<u64>>,
}

impl Judge {
    fn column<'v>(
        &mut self,
        test: BatchTest,
        sets: &Sets<'_>,
        verdicts: impl Iterator<Item = &'v mut Verdict>,
    ) {
        if test == BatchTest::FpPreemptive {
            return self.fixed_priority(sets, verdicts);
        }
        for (set, verdict) in sets.each().zip(verdicts) {
            *verdict = match test {
                BatchTest::EdfQpa => self.edf(&set),
                BatchTest::RmLiuLayland => {
                    rate_monotonic(&set, nearly_liu_layland, quick_facts::liu_layland_holds)
                }
                BatchTest::RmHyperbolic | BatchTest::FpPreemptive => {
                    rate_monotonic(&set, nearly_hyperbolic, quick_facts::hyperbolic_holds)
                }
            };
        }
    }

    /// Four sets side by side: the solver takes all of a block.
    fn fixed_priority<'v>(&mut self, sets: &Sets<'_>, verdicts: impl Iterator<Item = &'v mut Verdict>) {
        self.plain.clear();
        self.deadlines.clear();
        for set in sets.each() {
            self.order.clear();
            self.order.extend(0..set.tasks);
            self.order.sort_unstable_by_key(|&task| (set.deadline[task], task));
            for &task in &self.order {
                self.plain.push(PlainTask::preemptive(set.period[task], 0, set.wcet[task]));
                self.deadlines.push(set.deadline[task]);
            }
        }
        self.responses.clear();
        self.responses.resize(self.plain.len(), None);
        self.fixed.solve(&self.plain, sets.tasks, &mut self.responses);
        let rows = self.responses.chunks(sets.tasks).zip(self.deadlines.chunks(sets.tasks));
        for (((responses, deadlines), set), verdict) in rows.zip(sets.each()).zip(verdicts) {
            let is_late =
                |(response, &deadline): (&Option<u64>, &u64)| response.is_some_and(|r| r > deadline);
            *verdict = if responses.iter().zip(deadlines).any(is_late) {
                Verdict::Misses
            } else if responses.iter().all(Option::is_some) {
                Verdict::Meets
            } else {
                overload(&set)
            };
        }
    }

    fn edf(&mut self, set: &Sets<'_>) -> Verdict {
        let tasks = set.shares().zip(set.deadline);
        let tasks = tasks.map(|((wcet, period), &deadline)| EdfTask::new(wcet, period, deadline)).collect();
        match EdfSet::new(tasks, Vec::new()).map(|set| self.edf.check(&set)) {
            Ok(EdfVerdict::Schedulable) => Verdict::Meets,
            Ok(EdfVerdict::Fails(_) | EdfVerdict::Overload) => Verdict::Misses,
            Ok(EdfVerdict::Unknown(_)) | Err(_) => Verdict::Unknown,
        }
    }
}

/// A set without a bound: it misses where more than the processor is asked for, or the search was too long.
fn overload(set: &Sets<'_>) -> Verdict {
    match utilisation::compare_with_one(set.shares()) {
        Ordering::Greater => Verdict::Misses,
        Ordering::Less | Ordering::Equal => Verdict::Unknown,
    }
}

/// `nearly` is how far below the bound the set lies.
fn rate_monotonic(
    set: &Sets<'_>,
    nearly: fn(&Sets<'_>) -> f64,
    exactly: fn(&[(u64, u64)]) -> bool,
) -> Verdict {
    if set.deadline.iter().zip(set.period).any(|(deadline, period)| deadline < period) {
        return Verdict::Unknown;
    }
    let distance = nearly(set);
    let holds =
        if distance.abs() > NEAR { distance > 0.0 } else { exactly(&set.shares().collect::<Vec<_>>()) };
    if holds { Verdict::Meets } else { Verdict::Unknown }
}

/// n(2^(1/n) − 1) − Σ C/T.
fn nearly_liu_layland(set: &Sets<'_>) -> f64 {
    let count = set.tasks as f64;
    let bound = count * (std::f64::consts::LN_2 / count).exp_m1();
    bound - set.shares().map(|(wcet, period)| wcet as f64 / period as f64).sum::<f64>()
}

/// 2 − Π (C/T + 1).
fn nearly_hyperbolic(set: &Sets<'_>) -> f64 {
    2.0 - set.shares().map(|(wcet, period)| 1.0 + wcet as f64 / period as f64).product::<f64>()
}

#[cfg(test)]
#[path = "batch/tests.rs"]
mod tests;
