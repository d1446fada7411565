//! Facts 7 and 8 on real threads: a low section without end under SCHED_FIFO, and a more important thread of the same processor that needs
//! what it holds.
//!
//! The source rolls a transaction back; here the low section's copy is abandoned ([`horolog_exec::rollback`]). That the system then goes to the
//! high mode and drops low tasks is `[criticality]` of the system file, and not part of this.

use crate::fact::Series;
use crate::{Agreement, ExperimentError, ExperimentReport, Fact};
use horolog_exec::rollback::{Ended, Resource, User};
use horolog_sys::affinity::{CpuSet, allowed_cpus, set_affinity};
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_sys::fixed_priority::{Class, may_use_fifo, set_class};
use horolog_time::Span;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const RESTORED: &str = "An overrun restores the resource byte for byte and frees the lock";
const BOUNDED: &str = "For how long a high task waits for a low section without end";

/// The priorities of the two threads.
const LOW: u8 = 10;
const HIGH: u8 = 20;

/// The words of the resource.
const WORDS: usize = 512;

/// The budgets of a low section, us.
const BUDGETS: [u64; 3] = [100, 500, 2_000];

const US: u64 = 1_000;

/// What the rounds with one budget came to.
#[derive(Debug, Default)]
struct Rounds {
    rounds: u64,
    /// Rounds after which a byte was not what the last high section had left, or the lock was not free.
    wrong: u64,
    /// How much longer than the budget the high section waited, ns, in rising order.
    beyond: Vec<u64>,
}

impl Rounds {
    fn quantile(&self, share: f64) -> f64 {
        let place = (share * (self.beyond.len().saturating_sub(1)) as f64).round() as usize;
        self.beyond.get(place).map_or(f64::NAN, |&ns| ns as f64 / US as f64)
    }
}

/// Adds both facts, or says why there are none.
pub(super) fn measure(report: &mut ExperimentReport, is_full: bool) -> Result<(), ExperimentError> {
    if let Err(error) = may_use_fifo(HIGH) {
        let reason = ExperimentError::from(error).to_string();
        let none = |(number, what, published): (u32, &str, &str)| {
            Fact::new(number, what, published, "-".to_owned(), Agreement::NotPermitted(reason.clone()))
        };
        report.facts.extend(
            [(7, RESTORED, "0"), (8, BOUNDED, "at most the budget and the cost of an abort")].map(none),
        );
        return Ok(());
    }
    let cpu = allowed_cpus()?.as_slice().last().copied().unwrap_or(0);
    let rounds = if is_full { 1_000 } else { 200 };
    let mut all = Vec::new();
    for budget in BUDGETS {
        all.push((budget, with_budget(cpu, budget * US, rounds)?));
    }
    if all.iter().any(|(_, of)| of.rounds < rounds) {
        let reason = format!("not all of {rounds} rounds a budget came to an end within a minute");
        report.facts.push(Fact::not_measurable(7, RESTORED, "0", reason.clone()));
        report.facts.push(Fact::not_measurable(
            8,
            BOUNDED,
            "at most the budget and the cost of an abort",
            reason,
        ));
        return Ok(());
    }
    let wrong = all.iter().map(|(_, of)| of.wrong).sum();
    let count: u64 = all.iter().map(|(_, of)| of.rounds).sum();
    report.facts.push(Fact {
        note: format!(
            "rounds out of {count} with another byte than before, or a lock that was not free; {WORDS} words"
        ),
        ..Fact::exact(7, RESTORED, 0, wrong)
    });
    report.facts.push(bounded(&all));
    report.series.push(Series {
        name: "a high section behind a low one without end".to_owned(),
        columns: [
            "budget, us",
            "rounds",
            "beyond it, median, us",
            "beyond it, 90 %, us",
            "beyond it, longest, us",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows: all
            .iter()
            .map(|(budget, of)| {
                vec![*budget as f64, of.rounds as f64, of.quantile(0.5), of.quantile(0.9), of.quantile(1.0)]
            })
            .collect(),
    });
    Ok(())
}

/// What a high section waits beyond the budget is the cost of an abort: it does not grow with the budget.
fn bounded(all: &[(u64, Rounds)]) -> Fact {
    let medians: Vec<f64> = all.iter().map(|(_, of)| of.quantile(0.5)).collect();
    let (least, most) =
        medians.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &us| (least.min(us), most.max(us)));
    let budgets = BUDGETS[BUDGETS.len() - 1] - BUDGETS[0];
    let is_flat = most - least < budgets as f64 / 10.0;
    Fact::trend(
        8,
        BOUNDED,
        "at most the budget and the cost of an abort",
        format!("the budget and {least:.1} to {most:.1} us in the median"),
        is_flat,
        "the medians beyond budgets of 100, 500 and 2,000 us differ by less than a tenth of what the budgets do",
    )
}

/// What the two threads of a round tell each other.
#[derive(Default)]
struct Between {
    /// The round that has begun, the one whose low section has, and the last one that is over.
    begun: AtomicU64,
    inside: AtomicU64,
    over: AtomicU64,
    ends: AtomicBool,
}

impl Between {
    /// No round follows, and the low section returns.
    fn end(&self) {
        self.ends.store(true, Ordering::SeqCst);
        self.over.store(u64::MAX, Ordering::SeqCst);
    }
}

fn with_budget(cpu: u32, budget: u64, rounds: u64) -> Result<Rounds, ExperimentError> {
    let words: Vec<u64> = (0..WORDS as u64).map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let failed = |error: horolog_exec::rollback::RollbackError| ExperimentError::failed(error.to_string());
    let resource = Resource::new(&words, 2, Span::from_ns(budget)).map_err(failed)?;
    let (mut low, mut high) = (resource.user().map_err(failed)?, resource.user().map_err(failed)?);
    let between = Between::default();
    std::thread::scope(|scope| {
        let lower = scope.spawn(|| real_time(cpu, LOW, &between, || without_end(&mut low, &between)));
        let higher = scope
            .spawn(|| real_time(cpu, HIGH, &between, || behind(&mut high, &between, &words, rounds, budget)));
        let died = |_| ExperimentError::failed("a thread of the rounds panicked");
        let found = higher.join().map_err(died)?;
        between.end();
        lower.join().map_err(died)??;
        found
    })
}

/// Runs `body` on one CPU at a FIFO priority. The thread ends afterwards, and its class with it.
fn real_time<T>(
    cpu: u32,
    priority: u8,
    between: &Between,
    body: impl FnOnce() -> T,
) -> Result<T, ExperimentError> {
    let ready = set_affinity(0, &CpuSet::new([cpu])).and_then(|()| set_class(0, Class::Fifo(priority)));
    if let Err(error) = ready {
        between.end();
        return Err(error.into());
    }
    Ok(body())
}

/// One section a round, which writes over everything until the round is over.
fn without_end(user: &mut User, between: &Between) {
    let mut last = 0;
    while !between.ends.load(Ordering::SeqCst) {
        let round = between.begun.load(Ordering::SeqCst);
        if round == last {
            let _ = sleep_until(monotonic_ns() + 50 * US);
            continue;
        }
        last = round;
        let ended = user.low(|words| {
            between.inside.store(round, Ordering::SeqCst);
            while between.over.load(Ordering::SeqCst) < round {
                words.iter_mut().for_each(|word| *word = word.wrapping_add(1));
            }
        });
        debug_assert!(matches!(ended, Ended::Abandoned | Ended::Published));
    }
}

/// The rounds: it lets the low section begin, and needs the resource a little later.
fn behind(user: &mut User, between: &Between, words: &[u64], rounds: u64, budget: u64) -> Rounds {
    let mut found = Rounds::default();
    let mut expected = words.to_vec();
    // A machine on which the low thread never comes in gives up: what was not seen is not counted.
    let give_up = monotonic_ns().saturating_add(60_000_000_000);
    for round in 1..=rounds {
        between.begun.store(round, Ordering::SeqCst);
        while between.inside.load(Ordering::SeqCst) < round && !between.ends.load(Ordering::SeqCst) {
            if monotonic_ns() > give_up {
                return found;
            }
            let _ = sleep_until(monotonic_ns() + 50 * US);
        }
        if between.ends.load(Ordering::SeqCst) {
            return found;
        }
        let first = user.high(|words| {
            let is_whole = words == expected;
            words[(round as usize) % WORDS] = round;
            is_whole
        });
        expected[(round as usize) % WORDS] = round;
        let second = user.high(|words| words == expected);
        between.over.store(round, Ordering::SeqCst);
        found.rounds += 1;
        let is_right = first.value && first.abandoned == 1 && second.value && second.abandoned == 0;
        found.wrong += u64::from(!is_right);
        found.beyond.push(first.waited.as_ns().saturating_sub(budget));
        // The low section returns, and finds that nothing of it is left.
        let _ = sleep_until(monotonic_ns() + 200 * US);
    }
    found.beyond.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long the waits are is no test: the machine may be busy.
    #[test]
    fn an_overrun_leaves_nothing_behind() {
        let mut report = ExperimentReport::new("htm-budget");
        measure(&mut report, false).expect("it runs, or says why not");
        let restored = report.facts.iter().find(|fact| fact.number == Some(7)).expect("fact 7");
        match &restored.agreement {
            Agreement::NotPermitted(reason) => eprintln!("SKIPPED: {reason}"),
            Agreement::NotMeasurable(reason) => eprintln!("SKIPPED: {reason}"),
            agreement => assert_eq!(*agreement, Agreement::Agrees, "{restored:?} {:?}", report.series),
        }
        println!("{:?}", report.series);
        println!("{:?}", report.facts.last());
    }
}
