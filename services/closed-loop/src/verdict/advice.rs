//! What to do about a wcet that is too small, and about resources that no test knows: all is tried by an analysis before it is named.

use super::Evidence;
use super::words::{beside, look};
use horolog_analysis::{Analysis, NO_TEST, Options, Schedulable, Verdict as TaskWord, analyze};
use horolog_model::{Arrival, Protocol, SegmentGraph, System, Task, TaskId};
use horolog_time::Span;

/// Beyond so many tasks no numbers are searched.
const MOST_TASKS: usize = 100;
/// How many analyses one advice may take: one of the wcet, ten of a shorter body, four and seven of a longer period.
const MOST_TRIALS: u32 = 22;

/// The advice for a task whose jobs executed for `worst`; `None` where no analysis confirms any.
pub(super) fn on_execution(evidence: &Evidence<'_>, task: usize, worst: Span) -> Option<String> {
    let trials = &mut Trials { system: evidence.system, task, left: MOST_TRIALS };
    let advice: Vec<String> = on_wcet(trials, worst).into_iter().chain(look(evidence)).collect();
    (!advice.is_empty()).then(|| advice.join(", or "))
}

fn on_wcet(trials: &mut Trials<'_>, worst: Span) -> Option<String> {
    let one = trials.system.tasks().get(trials.task)?;
    if let Some(graph) = one.segment_graph() {
        return on_segments(graph, worst);
    }
    let limits =
        [one.deadline.map(|limit| ("deadline", limit)), one.separation().map(|limit| (rhythm(one), limit))];
    let limit = limits.into_iter().flatten().min_by_key(|(_, limit)| *limit);
    if let Some((what, limit)) = limit.filter(|(_, limit)| worst > *limit) {
        let others = others(trials, worst, limit).unwrap_or_else(|| "make the body shorter".to_owned());
        return Some(format!("its jobs take longer than its {what}, {limit}: {others}"));
    }
    let wcet = worst.rounded_up();
    let with = trials.tried(|task| task.wcet = wcet);
    let misses = with.as_ref().map(|(system, analysis)| missing(system, analysis)).unwrap_or_default();
    match (misses.first(), with) {
        (Some((name, false)), _) => {
            let hard = misses.iter().filter(|(_, is_soft)| !is_soft).count();
            let more = if hard > 1 { format!(" and {} more", hard - 1) } else { String::new() };
            let others =
                others(trials, worst, worst).map_or_else(String::new, |others| format!("; {others}"));
            Some(format!("raise wcet to {wcet}, and {name}{more} misses in the proof{others}"))
        }
        (soft, Some((system, analysis))) if analysis.schedulable == Schedulable::Yes => {
            let then = match soft {
                Some((name, _)) => format!(" (the soft {name} misses in the proof then, no hard task does)"),
                None => tightest(&system, &analysis),
            };
            Some(format!("raise wcet to {wcet}{then}"))
        }
        // Nothing is known of some hard task with that wcet.
        _ => others(trials, worst, worst),
    }
}

/// Where no test knows the tasks beside the resources as they are: that the ceiling protocol proves them.
pub(super) fn on_resources(evidence: &Evidence<'_>) -> Option<String> {
    ceiling_proves(evidence.system, evidence.proof?)
}

fn ceiling_proves(system: &System, analysis: &Analysis) -> Option<String> {
    if analysis.tasks.iter().all(|task| task.test != NO_TEST) || system.tasks().len() > MOST_TASKS {
        return None;
    }
    let mut draft = system.to_draft();
    let others = draft.resources.iter_mut().filter(|resource| resource.protocol != Protocol::Ceiling);
    let changed: Vec<String> = others
        .map(|resource| {
            resource.protocol = Protocol::Ceiling;
            format!("`{}`", resource.name)
        })
        .collect();
    // Resources of several processors, and readers beside writers, are refused there.
    let analysis = analyze(&System::new(draft).ok()?, &Options::default()).ok()?;
    (!changed.is_empty() && analysis.schedulable == Schedulable::Yes).then(|| {
        format!("with `protocol = \"ceiling\"` for {} every hard deadline is proved", changed.join(" and "))
    })
}

/// The key that says how far apart the arrivals of a task are.
fn rhythm(task: &Task) -> &'static str {
    if matches!(task.arrival, Arrival::Sporadic { .. }) { "separation" } else { "period" }
}

/// A task with segments has no wcet of its own, and one number does not tell which segment grew.
fn on_segments(graph: &SegmentGraph, worst: Span) -> Option<String> {
    let sum = graph.wcet()?;
    Some(format!(
        "raise the wcet of each segment that grew: they add up to {sum}, and its longest job took {worst}"
    ))
}

/// The analyses of one system in which a task is changed.
struct Trials<'a> {
    system: &'a System,
    task: usize,
    /// How many more may be made.
    left: u32,
}

impl Trials<'_> {
    fn tried(&mut self, change: impl FnOnce(&mut Task)) -> Option<(System, Analysis)> {
        self.left = self.left.checked_sub(1)?;
        let mut draft = self.system.to_draft();
        change(draft.tasks.get_mut(self.task)?);
        let system = System::new(draft).ok()?;
        let analysis = analyze(&system, &Options::default()).ok()?;
        Some((system, analysis))
    }

    fn passes(&mut self, change: impl FnOnce(&mut Task)) -> bool {
        self.tried(change).is_some_and(|(_, analysis)| analysis.schedulable == Schedulable::Yes)
    }
}

/// A shorter body, and a longer period, with which every hard deadline is proved; `None` where none was found.
fn others(trials: &mut Trials<'_>, worst: Span, below: Span) -> Option<String> {
    if trials.system.tasks().len() > MOST_TASKS {
        return None;
    }
    let body =
        longest_body(trials, below).map(|body| format!("a body that keeps to a wcet of {body} passes"));
    let words: Vec<String> = body.into_iter().chain(least_period(trials, worst)).collect();
    (!words.is_empty()).then(|| words.join(", or "))
}

/// Of the bodies with three digits, at most `below`.
fn longest_body(trials: &mut Trials<'_>, below: Span) -> Option<Span> {
    let unit = 10_u64.pow(below.as_ns().max(1).ilog10().saturating_sub(2));
    let (mut good, mut bad) = (0, below.as_ns() / unit + 1);
    while bad - good > 1 {
        let middle = u64::midpoint(good, bad);
        let body = Span::from_ns(middle * unit);
        let passes = trials.passes(|task| (task.wcet, task.bcet) = (body, task.bcet.min(body)));
        *(if passes { &mut good } else { &mut bad }) = middle;
    }
    (good > 0).then(|| Span::from_ns(good * unit))
}

/// Of the periods with two digits, with a deadline that is the same share of it.
fn least_period(trials: &mut Trials<'_>, worst: Span) -> Option<String> {
    let one = &trials.system.tasks()[trials.task];
    let (period, deadline) = (one.separation()?, one.deadline?);
    let relative = |ns: u64| {
        let share = u128::from(ns) * u128::from(deadline.as_ns()) / u128::from(period.as_ns().max(1));
        Span::from_ns(u64::try_from(share).unwrap_or(u64::MAX)).rounded_up()
    };
    let mut passes = |ns: u64| {
        trials.passes(|one| {
            one.wcet = worst.rounded_up();
            one.deadline = Some(if deadline == period { Span::from_ns(ns) } else { relative(ns) });
            match &mut one.arrival {
                Arrival::Periodic { period } => *period = Span::from_ns(ns),
                Arrival::Sporadic { separation } => *separation = Span::from_ns(ns),
                _ => {}
            }
        })
    };
    let (mut bad, mut good) = (period, period);
    for doubling in 1..=4 {
        (bad, good) = (good, Span::from_ns(period.as_ns().checked_mul(1 << doubling)?).rounded_up());
        if passes(good.as_ns()) {
            break;
        }
        if doubling == 4 {
            return None;
        }
    }
    let unit = 10_u64.pow(good.as_ns().max(1).ilog10().saturating_sub(1));
    let (mut short, mut long) = (bad.as_ns() / unit, good.as_ns() / unit);
    while long - short > 1 {
        let middle = u64::midpoint(short, long);
        *(if passes(middle * unit) { &mut long } else { &mut short }) = middle;
    }
    let told = Span::from_ns(long * unit);
    let (key, wcet) = (rhythm(one), worst.rounded_up());
    Some(match deadline == period {
        true => format!("a {key} and deadline of {told} with a wcet of {wcet}"),
        false => {
            format!("a {key} of {told} with a deadline of {} and a wcet of {wcet}", relative(told.as_ns()))
        }
    })
}

/// The tasks that miss in the proof, hard ones first, and whether each is soft.
fn missing(system: &System, analysis: &Analysis) -> Vec<(String, bool)> {
    let verdicts = analysis.tasks.iter().enumerate();
    let late = |task: &horolog_analysis::TaskVerdict| {
        let is_beyond = task.response.zip(task.deadline).is_some_and(|(bound, deadline)| bound > deadline);
        task.verdict == TaskWord::Misses || task.verdict == TaskWord::Unknown && is_beyond
    };
    let missing = verdicts.filter(|(_, task)| late(task));
    let mut missing: Vec<(String, bool)> =
        missing.map(|(index, task)| (task.name.clone(), system.is_soft(TaskId(index as u32)))).collect();
    missing.sort_by_key(|(_, is_soft)| *is_soft);
    missing
}

/// What the proof says of the hard task that has least room.
fn tightest(system: &System, analysis: &Analysis) -> String {
    let bounds = analysis.tasks.iter().enumerate().filter_map(|(index, task)| {
        let (bound, deadline) = (task.response?, system.tasks().get(index)?.deadline?);
        let share = bound.as_ns() as u128 * 1000 / u128::from(deadline.as_ns().max(1));
        (!system.is_soft(TaskId(index as u32))).then_some((share, &task.name, bound, deadline))
    });
    let tightest = bounds.max_by_key(|(share, ..)| *share);
    tightest.map_or_else(String::new, |(_, name, bound, deadline)| {
        format!(" ({name}'s bound becomes {} of {deadline})", beside(bound, deadline))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(deadline: &str) -> System {
        let text = format!(
            "[system]\nname = \"two\"\n\
             [[task]]\nname = \"a\"\nperiod = \"12345678 ns\"\n{deadline}wcet = \"1 ms\"\npriority = 9\n\
             [[task]]\nname = \"b\"\nperiod = \"29 ms\"\nwcet = \"7 ms\"\npriority = 5\n"
        );
        horolog_model::file::read(&text, "two.toml", &[]).expect("valid").0
    }

    #[test]
    fn every_number_is_one_that_passes_and_the_next_one_does_not() {
        for deadline in ["", "deadline = \"11 ms\"\n"] {
            let (system, worst) = (system(deadline), Span::from_ns(10_987_654));
            let mut trials = Trials { system: &system, task: 0, left: u32::MAX };
            let trials = &mut trials;
            let body = longest_body(trials, worst).expect("a body");
            let with = |ns: u64| {
                move |task: &mut Task| (task.wcet, task.bcet) = (Span::from_ns(ns), Span::from_ns(1))
            };
            assert!(
                trials.passes(with(body.as_ns())) && !trials.passes(with(body.as_ns() + 100_000)),
                "{body}"
            );
            let told = least_period(trials, worst).expect("a period");
            let (rest, wcet) = told.rsplit_once(" a wcet of ").expect("for this wcet");
            assert_eq!(wcet, worst.rounded_up().to_string());
            let spans: Vec<Span> = rest
                .trim_end_matches(" with")
                .trim_end_matches(" and")
                .split(" with a deadline of ")
                .map(|part| part[part.find(" of ").map_or(0, |at| at + 4)..].parse().expect("a time"))
                .collect();
            let with = |period: u64| {
                let share = Span::from_ns(period * 11_000_000 / 12_345_678).rounded_up();
                let deadline = if deadline.is_empty() { Span::from_ns(period) } else { share };
                move |task: &mut Task| {
                    (task.wcet, task.deadline) = (worst.rounded_up(), Some(deadline));
                    task.arrival = Arrival::Periodic { period: Span::from_ns(period) };
                }
            };
            let period = spans[0].as_ns();
            assert!(trials.passes(with(period)) && !trials.passes(with(period - 1_000_000)), "{told}");
            assert!(u32::MAX - trials.left <= MOST_TRIALS + 4, "{}", u32::MAX - trials.left);
        }
    }

    #[test]
    fn the_ceiling_is_named_only_where_it_proves_every_hard_deadline() {
        let told = |protocol: &str, length: &str, more: &str| {
            let text = format!(
                "[system]\nname = \"two\"\n[[resource]]\nname = \"m\"\nprotocol = \"{protocol}\"\n\
                 [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 9\n\
                 [[task.section]]\nresource = \"m\"\nfrom = \"0 ms\"\nlength = \"1 ms\"\n\
                 [[task]]\nname = \"b\"\nperiod = \"40 ms\"\nwcet = \"12 ms\"\npriority = 5\n\
                 [[task.section]]\nresource = \"m\"\nfrom = \"0 ms\"\nlength = \"{length}\"\n{more}"
            );
            let text = match more.contains("cpus = 2") {
                true => text
                    .replace("priority = 9", "cpu = 0\npriority = 9")
                    .replace("priority = 5", "cpu = 0\npriority = 5"),
                false => text,
            };
            let system = horolog_model::file::read(&text, "two.toml", &[]).expect("valid").0;
            let analysis = analyze(&system, &Options::default()).expect("an answer");
            ceiling_proves(&system, &analysis)
        };
        let served = "[[server]]\nname = \"s\"\nkind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"20 ms\"\n\
                      priority = 12\ntasks = [\"c\"]\n[[task]]\nname = \"c\"\nseparation = \"40 ms\"\nwcet = \"500 us\"\n";
        let help = Some("with `protocol = \"ceiling\"` for `m` every hard deadline is proved".to_owned());
        assert_eq!(told("none", "8 ms", ""), help);
        assert_eq!(told("msrp", "6 ms", served), help);
        // One unit more, and `a` is late: 2 ms of its own, 8 ms of the section, and 1 ns; beside the server, which may take 2 ms, 6 ms.
        assert_eq!(told("none", "8000001 ns", ""), None);
        assert_eq!(told("msrp", "6000001 ns", served), None);
        // Also where another processor is known, and with more than a few tasks.
        let far = "[[task]]\nname = \"far\"\ncpu = 1\nperiod = \"9 ms\"\nwcet = \"1 ms\"\npriority = 1\n[platform]\ncpus = 2\n";
        assert_eq!(told("none", "8 ms", far), help);
        let small = |name: &str, priority: u32| {
            format!("[[task]]\nname = \"{name}\"\nperiod = \"1 s\"\nwcet = \"1 us\"\npriority = {priority}\n")
        };
        assert_eq!(told("none", "8 ms", &[small("d", 1), small("e", 2)].concat()), help);
        // Where a test knows the file as it is there is nothing to tell.
        assert_eq!(told("ceiling", "8 ms", ""), None);
        assert_eq!(told("non-preemptive", "8 ms", ""), None);
    }

    #[test]
    fn without_a_trial_left_nothing_is_told() {
        let system = system("");
        let mut trials = Trials { system: &system, task: 0, left: 0 };
        assert_eq!(others(&mut trials, Span::from_ns(9_000_000), Span::from_ns(9_000_000)), None);
        assert_eq!(on_wcet(&mut trials, Span::from_ns(1_100_000)), None);
    }
}
