//! Certificates of the demand criterion under EDF, held against the criterion itself, window by window.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

mod common;

use common::draw::{Kind, drawn};
use common::{Cpu, due, edf, judge, late, lcm, listed, ns, rational, task, whole};
use horolog_certificate::{EdfHorizonRule, EdfWindow, EdfWindowsProof, Proof, Proven};
use horolog_model::{CpuId, Interference, Policy, Preemption, System, Task};
use horolog_testkit::exhaustive_edf::{TinyEdfTask, worst_edf_responses};
use num_rational::BigRational;
use std::collections::BTreeMap;

/// Windows beyond this are not looked at: the systems are small enough.
const WINDOWS: u64 = 160;

const RULES: [EdfHorizonRule; 3] =
    [EdfHorizonRule::LinearBound, EdfHorizonRule::BusyPeriod, EdfHorizonRule::Hyperperiod];

/// The demand criterion of CPU 0 as it is written.
struct Criterion<'a> {
    cpu: Cpu<'a>,
    /// What is above all tasks, by length of window.
    outside: Vec<u64>,
    due: Vec<u64>,
    blocking: Vec<u64>,
    shortest: Option<i64>,
}

/// How long a job holds the processor once it has it.
fn hold(task: &Task) -> u64 {
    if matches!(task.preemption, Preemption::Preemptive) { 0 } else { task.wcet.as_ns() }
}

impl<'a> Criterion<'a> {
    fn new(system: &'a System) -> Criterion<'a> {
        let cpu = Cpu::new(system, CpuId(0));
        let outside = (0..WINDOWS).map(|x| cpu.outside(x, false)).collect();
        let due = (0..WINDOWS).map(|t| cpu.tasks.iter().map(|task| task.due(t) * task.wcet).sum()).collect();
        let behind = |t: u64| {
            let tasks = cpu.tasks.iter().filter(|task| task.deadlines.first().is_none_or(|&d| d > t as i64));
            tasks.map(|task| hold(task.task)).max().unwrap_or(0) + cpu.switch
        };
        let blocking = (0..WINDOWS).map(behind).collect();
        let shortest = cpu.tasks.iter().filter_map(|task| task.deadlines.first().copied()).min();
        Criterion { cpu, outside, due, blocking, shortest }
    }

    /// A time that holds the work of a window and is as long as that work; the least.
    fn needed(&self, window: u64) -> Option<u64> {
        let work = self.due[window as usize] + self.blocking[window as usize];
        (0..=window).find(|&x| work + self.outside[x as usize] == x)
    }

    /// The shortest window that asks for too much, where one is found.
    fn fails(&self) -> Option<u64> {
        match self.shortest {
            None => None,
            Some(shortest) if shortest < 0 => Some(0),
            Some(shortest) => (shortest as u64..WINDOWS).find(|&t| self.needed(t).is_none()),
        }
    }

    /// From here on no job with a deadline blocks: their D − J lie below.
    fn unblocked_from(&self) -> u64 {
        let last = *self.blocking.last().unwrap();
        self.blocking.iter().rposition(|&b| b > last).map_or(0, |at| at as u64 + 1)
    }

    fn endless(&self) -> u64 {
        let endless = self.cpu.tasks.iter().filter(|task| task.task.deadline.is_none());
        endless.map(|task| hold(task.task)).max().unwrap_or(0) + self.cpu.switch
    }

    /// The straight line above the demand, at `h`, and from where on it is above.
    fn line(&self, h: u64) -> (BigRational, u64) {
        let mut sum = rational(self.endless(), 1);
        let mut from = 0;
        for task in self.cpu.tasks.iter().filter(|task| task.task.deadline.is_some()) {
            let first = task.deadlines[0];
            let Some(separation) = task.separation() else {
                sum += rational(task.wcet * task.deadlines.len() as u64, 1);
                continue;
            };
            let span = (h + separation) as i64 - first;
            sum += BigRational::new((task.wcet as i64 * span).into(), separation.into());
            from = from.max(u64::try_from(first - separation as i64).unwrap_or(0));
        }
        let cost = self.cpu.interrupt();
        match self.cpu.tick() {
            Some(tick) => sum += rational(cost * (h + tick - 1), tick),
            None => {
                for task in &self.cpu.tasks {
                    sum += match task.separation() {
                        Some(separation) => rational(cost * (h + task.jitter + separation - 1), separation),
                        None => rational(cost * task.steady.len() as u64, 1),
                    };
                }
            }
        }
        let measured = self.cpu.interferences();
        for (u, p) in &measured {
            sum += u * (rational(h + p, 1) - u * rational(*p, 1));
        }
        // Their sum is rounded up.
        (sum + rational(u64::from(!measured.is_empty()), 1), from)
    }

    /// Whether no window beyond `h` needs a look, by this rule.
    fn is_far_enough(&self, rule: EdfHorizonRule, h: u64) -> bool {
        let (line, from) = self.line(h);
        let one = rational(1, 1);
        match rule {
            EdfHorizonRule::LinearBound => {
                self.cpu.utilisation() < one && h >= from && line <= rational(h, 1)
            }
            EdfHorizonRule::BusyPeriod => {
                let tasks = self.cpu.tasks.iter().filter(|task| task.task.deadline.is_some());
                let work: u64 = tasks.map(|task| task.ready(h, false) * task.wcet).sum();
                h > 0 && work + self.endless() + self.cpu.outside(h, false) <= h
            }
            EdfHorizonRule::Hyperperiod => {
                let Some(cycle) = self.cycle() else { return false };
                let straight = self.cpu.interferences().iter().map(|(_, p)| *p).max().unwrap_or(0);
                self.cpu.utilisation() == one && h >= cycle + from.max(straight)
            }
        }
    }

    /// After how long the demand repeats.
    fn cycle(&self) -> Option<u64> {
        let cost = self.cpu.interrupt() > 0;
        let mut cycle = self.cpu.tick().filter(|_| cost).unwrap_or(1);
        let counts = |deadline: bool| deadline || cost && self.cpu.tick().is_none();
        for task in self.cpu.tasks.iter().filter(|task| counts(task.task.deadline.is_some())) {
            cycle = lcm(cycle, task.separation()?);
        }
        Some(cycle)
    }

    /// The least horizon by a rule.
    fn horizon(&self, rule: EdfHorizonRule) -> Option<u64> {
        (0..WINDOWS).find(|&h| self.is_far_enough(rule, h))
    }

    /// Windows from `h` down to the shortest, all or only those that each need a look; none that asks for too much.
    fn windows(&self, h: u64, all: bool) -> Vec<EdfWindow> {
        let (shortest, mut windows) = (u64::try_from(self.shortest.unwrap_or(0)).unwrap_or(0), Vec::new());
        let mut at = h.max(self.unblocked_from().saturating_sub(1));
        loop {
            let t = at as usize;
            let Some(needed) = self.needed(at).filter(|_| at >= shortest) else { return windows };
            // The shortest window with the same work due, which need not have the same blocking.
            let first = (0..=at).find(|&w| self.due[w as usize] == self.due[t]).unwrap();
            let tighter = (first.max(needed)..=at).find(|&w| self.needed(w).is_some());
            let window_ns = if all { at } else { tighter.unwrap() };
            let needed_ns = self.needed(window_ns).unwrap();
            windows.push(EdfWindow { window_ns, needed_ns });
            let blocking = self.blocking[window_ns as usize];
            let same = (0..=window_ns).find(|&w| self.blocking[w as usize] == blocking).unwrap();
            let proved = if all { at } else { needed_ns.max(same) };
            match proved.checked_sub(1) {
                Some(next) => at = next,
                None => return windows,
            }
        }
    }

    /// Whether these entries are right and prove every window up to `h`, in whatever order.
    fn is_proved(&self, h: u64, windows: &[EdfWindow]) -> bool {
        let last = h.max(self.unblocked_from().saturating_sub(1));
        let right = |entry: &EdfWindow| {
            let (w, n) = (entry.window_ns as usize, entry.needed_ns);
            n <= entry.window_ns && self.due[w] + self.blocking[w] + self.outside[n as usize] == n
        };
        let proves = |entry: &EdfWindow, t: u64| {
            let (w, t) = (entry.window_ns as usize, t as usize);
            let shorter = t <= w && self.blocking[t] == self.blocking[w];
            entry.needed_ns <= t as u64 && (shorter || t > w && self.due[t] == self.due[w])
        };
        let shortest = self.shortest.unwrap_or(i64::MAX);
        shortest >= 0
            && windows.iter().all(right)
            && (shortest as u64..=last).all(|t| windows.iter().any(|entry| proves(entry, t)))
    }
}

fn series(seed: u64, count: u64) -> impl Iterator<Item = System> {
    (0..count).map(move |index| {
        let kind = Kind { policy: Policy::Edf, costs: index % 2 == 1, harmonic: index % 4 > 1 };
        drawn(seed, index, kind)
    })
}

fn says(system: &System, rule: EdfHorizonRule, horizon_ns: u64, windows: Vec<EdfWindow>) -> bool {
    let proof = Proof::EdfWindows(EdfWindowsProof { horizon_ns, rule, windows });
    let name = &system.tasks().iter().find(|task| task.cpu == CpuId(0)).unwrap().name;
    judge(system, name, Proven::Meets, proof).is_ok()
}

#[test]
fn a_complete_proof_is_accepted_exactly_from_the_least_horizon_on() {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for system in series(1, 300) {
        let criterion = Criterion::new(&system);
        if criterion.fails().is_some() || criterion.shortest.is_none() {
            continue;
        }
        for rule in RULES {
            let least = criterion.horizon(rule);
            for h in (0..WINDOWS / 2).step_by(if least.is_some() { 1 } else { 7 }) {
                if least.is_some_and(|least| h + 4 < least || h > least + 20) {
                    continue;
                }
                let far = criterion.is_far_enough(rule, h);
                for all in [true, false] {
                    let said = says(&system, rule, h, criterion.windows(h, all));
                    assert_eq!(said, far, "{rule:?} {h} {:?} {system:#?}", criterion.windows(h, all));
                }
                *counts.entry(format!("{rule:?} {far}")).or_default() += 1;
            }
        }
    }
    assert!(counts.len() == 6 && counts.values().all(|&count| count > 80), "{counts:?}");
}

#[test]
fn a_window_beyond_the_horizon_is_never_one_that_fails() {
    let (mut systems, mut tried) = (0, 0);
    for system in series(2, 400) {
        let criterion = Criterion::new(&system);
        let Some(failing) = criterion.fails() else { continue };
        systems += 1;
        for rule in RULES {
            for h in 0..failing.max(1) {
                assert!(!says(&system, rule, h, criterion.windows(h, true)), "{rule:?} {h} {system:#?}");
                tried += 1;
            }
            // The window that fails shown as if it held, or left out.
            for h in [failing, failing + 1, WINDOWS / 2].into_iter().filter(|&h| h < WINDOWS) {
                let mut windows = criterion.windows(failing.saturating_sub(1), true);
                assert!(!says(&system, rule, h, windows.clone()), "{rule:?} {h} {system:#?}");
                windows.insert(0, EdfWindow { window_ns: failing, needed_ns: failing });
                assert!(!says(&system, rule, h, windows), "{rule:?} {h} {system:#?}");
            }
        }
    }
    assert!(systems > 90 && tried > 900, "{systems} systems, {tried} horizons");
}

/// Lists of windows that differ in one place.
fn forgeries(windows: &[EdfWindow]) -> Vec<Vec<EdfWindow>> {
    let mut forged = Vec::new();
    for at in 0..windows.len() {
        let mut put = |change: &dyn Fn(&mut Vec<EdfWindow>)| {
            let mut list = windows.to_vec();
            change(&mut list);
            forged.push(list);
        };
        put(&|list| list[at].window_ns += 1);
        put(&|list| list[at].window_ns = list[at].window_ns.saturating_sub(1));
        put(&|list| list[at].needed_ns += 1);
        put(&|list| list[at].needed_ns = list[at].needed_ns.saturating_sub(1));
        put(&|list| _ = list.remove(at));
        put(&|list| list.truncate(at));
        put(&|list| list.insert(at, list[at]));
    }
    forged
}

#[test]
fn a_changed_list_is_accepted_exactly_where_it_still_proves_every_window() {
    let mut counts = [0; 2];
    for system in series(3, 200) {
        let criterion = Criterion::new(&system);
        if criterion.fails().is_some() || criterion.shortest.is_none() {
            continue;
        }
        for rule in RULES {
            let Some(h) = criterion.horizon(rule).filter(|&h| h < WINDOWS / 2) else { continue };
            for all in [true, false] {
                for windows in forgeries(&criterion.windows(h, all)) {
                    let right = criterion.is_proved(h, &windows);
                    let said = says(&system, rule, h, windows.clone());
                    assert_eq!(said, right, "{rule:?} {h} {windows:?} {system:#?}");
                    counts[usize::from(right)] += 1;
                }
            }
        }
    }
    assert!(counts.iter().all(|&count| count > 500), "{counts:?}");
}

#[test]
fn windows_in_another_order_prove_nothing_false() {
    for system in series(4, 80) {
        let criterion = Criterion::new(&system);
        let Some(h) = criterion.horizon(EdfHorizonRule::LinearBound) else { continue };
        if criterion.fails().is_some() {
            continue;
        }
        let windows = criterion.windows(h, false);
        for at in 1..windows.len() {
            let mut swapped = windows.clone();
            swapped.swap(at - 1, at);
            if says(&system, EdfHorizonRule::LinearBound, h, swapped.clone()) {
                assert!(criterion.is_proved(h, &swapped), "{swapped:?} {system:#?}");
            }
        }
    }
}

#[test]
fn what_is_proved_holds_in_every_run() {
    let mut compared = 0;
    for system in series(5, 200).filter(|system| system.tasks().len() < 4) {
        let criterion = Criterion::new(&system);
        let rule = RULES.into_iter().find(|&rule| criterion.horizon(rule).is_some());
        if !criterion.cpu.worst_case_happens() || criterion.shortest.is_none_or(|shortest| shortest < 0) {
            continue;
        }
        let here = || system.tasks().iter().filter(|task| task.cpu == CpuId(0));
        let tiny = here().map(|task| TinyEdfTask {
            wcet: task.wcet.as_ns() as u32,
            separation: task.separation().unwrap().as_ns() as u32,
            deadline: task.deadline.unwrap().as_ns() as u32,
            jitter: task.jitter.as_ns() as u32,
            preemptive: matches!(task.preemption, Preemption::Preemptive),
        });
        let Some(worst) = worst_edf_responses(&tiny.collect::<Vec<_>>(), 1_500) else { continue };
        let misses =
            here().zip(&worst).any(|(task, &worst)| u64::from(worst) > task.deadline.unwrap().as_ns());
        let proved = rule.is_some_and(|rule| {
            let h = criterion.horizon(rule).unwrap();
            says(&system, rule, h, criterion.windows(h, true))
        });
        assert!(!(proved && misses), "{system:#?}");
        // Without blocking the criterion is exact in whole units too.
        let blocks = here().any(|task| hold(task) > 0);
        assert!(blocks || rule.is_none() || proved != misses, "{system:#?}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn windows_prove_that_all_meet_and_nothing_else() {
    let meets = edf(vec![task("t", 4, 2)]);
    let windows = vec![EdfWindow { window_ns: 4, needed_ns: 2 }];
    let rule = EdfHorizonRule::BusyPeriod;
    let proof = |windows: &[EdfWindow]| {
        Proof::EdfWindows(EdfWindowsProof { horizon_ns: 4, rule, windows: windows.to_vec() })
    };
    judge(&meets, "t", Proven::Meets, proof(&windows)).unwrap();
    assert!(judge(&meets, "t", Proven::Misses, proof(&windows)).is_err());
    assert!(judge(&meets, "t", Proven::Meets, proof(&[])).is_err());
    let fixed = common::fixed(vec![common::prio(task("t", 4, 2), 1)]);
    let flaw = judge(&fixed, "t", Proven::Meets, proof(&windows)).unwrap_err();
    assert_eq!((flaw.task(), flaw.reason()), ("t", "the system's policy is not EDF"));
    assert_eq!(flaw.to_string(), "certificate refused at task `t`: the system's policy is not EDF");
}

#[test]
fn without_deadlines_nothing_can_be_missed() {
    let system = edf(vec![listed(whole(task("t", 1, 5)), &[0, 3])]);
    assert!(says(&system, EdfHorizonRule::LinearBound, 0, Vec::new()));
}

#[test]
fn a_job_that_may_be_released_after_its_deadline_is_never_proved() {
    let system = edf(vec![late(due(task("t", 9, 1), 3), 4)]);
    for h in 0..30 {
        let windows = (0..=h).rev().map(|window_ns| EdfWindow { window_ns, needed_ns: window_ns / 9 + 1 });
        for rule in RULES {
            assert!(!says(&system, rule, h, windows.clone().collect()));
        }
    }
}

#[test]
fn the_horizon_beyond_64_bits_is_refused_without_a_panic() {
    let most = u64::MAX;
    for window_ns in [0, 1, most - 1, most] {
        for rule in RULES {
            for needed_ns in [0, window_ns / 2, window_ns] {
                let heavy =
                    edf((0..5).map(|k| late(due(task(&k.to_string(), 1, most / 2), most / 2), k)).collect());
                assert!(!says(&heavy, rule, most, vec![EdfWindow { window_ns, needed_ns }]));
                let light = edf((0..5).map(|k| task(&k.to_string(), most - k, 1)).collect());
                // It holds; whether this list proves it does not matter here.
                says(&light, rule, window_ns, vec![EdfWindow { window_ns, needed_ns }]);
            }
        }
    }
}

/// The least horizon by a rule is `least`: accepted there, refused one earlier.
fn least_horizon(system: &System, rule: EdfHorizonRule, least: u64) {
    let criterion = Criterion::new(system);
    assert_eq!(criterion.fails(), None);
    assert_eq!(criterion.horizon(rule), Some(least), "{system:#?}");
    assert!(says(system, rule, least, criterion.windows(least, true)));
    assert!(!says(system, rule, least - 1, criterion.windows(least - 1, true)));
}

#[test]
fn a_hyperperiod_counts_from_where_interference_is_a_straight_line() {
    let mut draft = edf(vec![due(task("t", 4, 3), 10)]).to_draft();
    draft.interferences.push(Interference {
        name: "i".into(),
        cpu: CpuId(0),
        utilisation_ppb: 250_000_000,
        period: ns(12),
    });
    least_horizon(&common::system(draft), EdfHorizonRule::Hyperperiod, 4 + 12);
}

#[test]
fn ticks_are_part_of_the_hyperperiod() {
    let mut draft = edf(vec![due(task("t", 4, 2), 20)]).to_draft();
    draft.platform.tick = Some(ns(6));
    draft.platform.timer_interrupt = Some(ns(3));
    least_horizon(&common::system(draft), EdfHorizonRule::Hyperperiod, 12 + 20 - 6 - 4);
}

#[test]
fn the_line_counts_a_tick_at_its_start_but_none_before() {
    let mut draft = edf(vec![due(task("t", 10, 2), 20)]).to_draft();
    draft.platform.tick = Some(ns(4));
    draft.platform.timer_interrupt = Some(ns(2));
    // 2/10 (h + 10 - 16) + 2/4 (h + 3) = h at h = 1; the line is above only from 16 - 10 on.
    least_horizon(&common::system(draft), EdfHorizonRule::LinearBound, 6);
    let mut draft = edf(vec![due(task("t", 10, 2), 10)]).to_draft();
    draft.platform.tick = Some(ns(4));
    draft.platform.timer_interrupt = Some(ns(2));
    // 2/10 (h + 10 - 6) + 2/4 (h + 3) = h at h = 23/3.
    least_horizon(&common::system(draft), EdfHorizonRule::LinearBound, 8);
    let mut draft = edf(vec![due(task("t", 10, 3), 10)]).to_draft();
    draft.platform.tick = Some(ns(3));
    draft.platform.timer_interrupt = Some(ns(1));
    // 3/10 (h + 10 - 7) + 1/3 (h + 2) = h at h = 47/11.
    least_horizon(&common::system(draft), EdfHorizonRule::LinearBound, 5);
}

#[test]
fn with_interrupts_of_a_list_no_hyperperiod_is_known() {
    let mut draft = edf(vec![due(task("t", 4, 3), 8), listed(task("l", 1, 1), &[0])]).to_draft();
    draft.platform.timer_interrupt = Some(ns(1));
    let system = common::system(draft);
    let criterion = Criterion::new(&system);
    assert_eq!(criterion.fails(), None);
    for h in 0..40 {
        assert!(!says(&system, EdfHorizonRule::Hyperperiod, h, criterion.windows(h, true)));
    }
}

#[test]
fn a_wrong_entry_is_refused_even_where_nothing_needs_it() {
    let system = edf(vec![due(whole(task("t", 9, 1)), 1)]);
    let entry = |window_ns, needed_ns| EdfWindow { window_ns, needed_ns };
    assert!(says(&system, EdfHorizonRule::BusyPeriod, 1, vec![entry(1, 1)]));
    // A window of 0 may still be blocked.
    assert!(!says(&system, EdfHorizonRule::BusyPeriod, 1, vec![entry(1, 1), entry(0, 0)]));
}

#[test]
fn a_need_proves_no_window_that_is_blocked_for_longer() {
    let mut draft = edf(vec![due(task("a", 100, 1), 10), due(whole(task("b", 100, 2)), 20)]).to_draft();
    draft.platform.context_switch = Some(ns(1));
    let system = common::system(draft);
    let entry = |window_ns, needed_ns| EdfWindow { window_ns, needed_ns };
    assert!(says(&system, EdfHorizonRule::BusyPeriod, 20, vec![entry(20, 8), entry(10, 6)]));
    assert!(!says(&system, EdfHorizonRule::BusyPeriod, 20, vec![entry(20, 8)]));
}

#[test]
fn a_full_processor_needs_one_hyperperiod() {
    least_horizon(&edf(vec![task("t", 4, 4)]), EdfHorizonRule::Hyperperiod, 4);
}
