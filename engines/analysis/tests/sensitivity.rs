//! Scaling factor, slack and remedies: each is what the tests themselves say at the edge and one step beyond.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::sensitivity::Scaled;
use horolog_analysis::{Analysis, Options, Remedy, Schedulable, Verdict, analyze};
use horolog_model::{Arrival, Draft, Policy, Preemption, PriorityAssignment, SegmentGraph, System, Task};
use horolog_testkit::{DrawnTask, PreemptionRecipe, Random, TaskSetRecipe, system_of};
use horolog_time::Span;

fn ns(n: u64) -> Span {
    Span::from_ns(n)
}

fn explored(system: &System) -> Analysis {
    let mut options = Options::default();
    options.sensitivity = true;
    analyze(system, &options).unwrap()
}

fn verdict(draft: Draft) -> Schedulable {
    match System::new(draft) {
        Ok(system) => analyze(&system, &Options::default()).unwrap().schedulable,
        Err(_) => Schedulable::No,
    }
}

fn with_wcets(system: &System, wcet: impl Fn(usize, u64) -> u64) -> Draft {
    let mut draft = system.to_draft();
    for (index, task) in draft.tasks.iter_mut().enumerate() {
        task.wcet = ns(wcet(index, task.wcet.as_ns()));
        task.bcet = ns(1);
    }
    draft
}

fn systems() -> Vec<System> {
    let mut random = Random::new(21);
    let mut systems = Vec::new();
    for index in 0..12_u64 {
        let recipe = TaskSetRecipe { tasks: 4, ..TaskSetRecipe::bench(500_000_000 + index * 30_000_000) };
        let set: Vec<DrawnTask> = recipe.draw_item(5, index);
        let policy = if index % 2 == 0 { Policy::Edf } else { Policy::FixedPriority };
        systems.push(system_of(&set, policy, PreemptionRecipe::Preemptive, &mut random));
    }
    systems
}

#[test]
fn the_scaling_factor_is_the_edge() {
    for system in systems() {
        let factor = explored(&system).processors[0].sensitivity.clone().unwrap().scaling_ppb.unwrap();
        let scaled = |factor: u64| {
            let scale = |ns: u64| {
                u64::try_from((u128::from(ns) * u128::from(factor)).div_ceil(1_000_000_000)).unwrap()
            };
            verdict(with_wcets(&system, |_, wcet| scale(wcet)))
        };
        assert_eq!(scaled(factor), Schedulable::Yes, "{factor}");
        assert_ne!(scaled(factor + 1), Schedulable::Yes, "{factor}");
        let as_it_is = analyze(&system, &Options::default()).unwrap().schedulable;
        assert_eq!(as_it_is == Schedulable::Yes, factor >= 1_000_000_000);
    }
}

/// Each segment is rounded up by itself, as it is where the factor is applied to a file.
#[test]
fn the_scaling_factor_of_segments_is_the_edge() {
    let mut random = Random::new(22);
    let (mut checked, mut above) = (0, 0);
    for round in 0..200 {
        let mut below = |least: u64, most: u64| least + random.next_u64() % (most - least + 1);
        let mut text = "[system]\nname = \"segments\"\n".to_owned();
        if round % 2 == 1 {
            // What a switch costs is no part of the segments, and stays.
            text += "[platform]\ncontext_switch = \"1 ns\"\n";
        }
        let mut graphs = Vec::new();
        for index in 0..below(2, 3) {
            let segments: Vec<Span> = (0..below(1, 5)).map(|_| ns(below(1, 7))).collect();
            let graph = SegmentGraph::sequence(&segments);
            let wcet = graph.wcet().unwrap().as_ns();
            let (period, priority) = (wcet * below(2, 6), 90 - index);
            text += &format!(
                "[[task]]\nname = \"t{index}\"\nperiod = \"{period} ns\"\nwcet = \"{wcet} ns\"\npriority = {priority}\n"
            );
            graphs.push(graph);
        }
        let mut draft = horolog_model::file::read(&text, "segments", &[]).unwrap().0.to_draft();
        for (task, graph) in draft.tasks.iter_mut().zip(graphs) {
            task.bcet = graph.bcet().unwrap();
            task.preemption = Preemption::Deferred(graph);
        }
        let Ok(system) = System::new(draft) else { continue };
        let Some(factor) = explored(&system).processors[0].sensitivity.clone().unwrap().scaling_ppb else {
            continue;
        };
        let scaled = |factor: u64| {
            let mut draft = system.to_draft();
            for task in &mut draft.tasks {
                let Preemption::Deferred(graph) = &mut task.preemption else {
                    unreachable!("all have segments")
                };
                for segment in &mut graph.segments {
                    let wcet =
                        (u128::from(segment.wcet.as_ns()) * u128::from(factor)).div_ceil(1_000_000_000);
                    (segment.wcet, segment.bcet) = (ns(u64::try_from(wcet).unwrap()), ns(1));
                }
                (task.wcet, task.bcet) = (graph.wcet().unwrap(), graph.bcet().unwrap());
            }
            verdict(draft)
        };
        assert_eq!(scaled(factor), Schedulable::Yes, "{round}: {factor} {system:?}");
        assert_ne!(scaled(factor + 1), Schedulable::Yes, "{round}: {factor} {system:?}");
        checked += 1;
        above += u32::from(factor > 1_000_000_000);
    }
    assert!(checked > 100 && above > 30, "{checked} {above}");
}

#[test]
fn slack_is_the_edge_of_each_task() {
    let mut found = 0;
    for system in systems() {
        for (index, task) in explored(&system).tasks.iter().enumerate() {
            let Some(slack) = task.slack else { continue };
            let grown = |more: u64| {
                verdict(with_wcets(&system, |i, wcet| if i == index { wcet + more } else { wcet }))
            };
            assert_eq!(grown(slack.as_ns()), Schedulable::Yes);
            assert_ne!(grown(slack.as_ns() + 1), Schedulable::Yes);
            found += 1;
        }
    }
    assert!(found >= 16, "{found}");
}

#[test]
fn every_remedy_passes_and_one_step_less_does_not() {
    let mut found = 0;
    for system in systems() {
        for (index, task) in explored(&system).tasks.iter().enumerate() {
            assert_eq!(task.verdict == Verdict::Meets, task.remedies.is_empty() || task.slack.is_some());
            for remedy in &task.remedies {
                let changed = |step: u64| {
                    let mut draft = system.to_draft();
                    let task: &mut Task = &mut draft.tasks[index];
                    match remedy {
                        Remedy::Wcet { at_most_ns } => {
                            (task.wcet, task.bcet) = (ns(at_most_ns.as_ns() + step), ns(1));
                        }
                        Remedy::Deadline { at_least_ns } => {
                            task.deadline = Some(ns(at_least_ns.as_ns() - step))
                        }
                        Remedy::Period { at_least_ns } => {
                            task.arrival = Arrival::Periodic { period: ns(at_least_ns.as_ns() - step) };
                        }
                        other => panic!("no blocking here: {other}"),
                    }
                    analyze(&System::new(draft).unwrap(), &Options::default()).unwrap().tasks[index].verdict
                };
                assert_eq!(changed(0), Verdict::Meets, "{remedy}");
                assert_ne!(changed(1), Verdict::Meets, "{remedy}");
                found += 1;
            }
        }
    }
    assert!(found >= 5, "{found}");
}

#[test]
fn a_blocking_segment_to_split_is_named() {
    let set = [
        DrawnTask { period: 10_000, deadline: 5_000, wcet: 2_000 },
        DrawnTask { period: 100_000, deadline: 100_000, wcet: 9_000 },
    ];
    for policy in [Policy::FixedPriority, Policy::Edf] {
        let base = system_of(&set, policy, PreemptionRecipe::Preemptive, &mut Random::new(1));
        let mut draft = base.to_draft();
        draft.tasks[1].preemption = match policy {
            Policy::Edf => Preemption::NonPreemptive,
            _ => Preemption::Deferred(SegmentGraph::sequence(&[ns(4_000), ns(5_000)])),
        };
        let system = System::new(draft).unwrap();
        let analysis = explored(&system);
        let blocking = Remedy::Blocking { at_most_ns: ns(3_000), tasks: vec!["`t2`".to_owned()] };
        assert_eq!(analysis.tasks[0].verdict, Verdict::Misses);
        assert!(analysis.tasks[0].remedies.contains(&blocking), "{:?}", analysis.tasks[0].remedies);
    }
}

/// Beside a server of constant bandwidth all tasks are proven or none. What keeps `long` from being proven is that it blocks
/// `urgent`: no shorter segment of `other` helps, and its own is not among those of the others.
#[test]
fn a_task_that_blocks_another_is_not_helped_by_shorter_segments_of_a_third() {
    let mut text =
        "[system]\nname = \"x\"\npolicy = \"edf\"\n[[task]]\nname = \"urgent\"\nseparation = \"50 ms\"\n\
                    wcet = \"1 ms\"\ndeadline = \"5 ms\"\n"
            .to_owned();
    for (name, wcet, deadline) in [("long", 6, 50), ("other", 1, 60)] {
        text += &format!(
            "[[task]]\nname = \"{name}\"\nseparation = \"60 ms\"\nwcet = \"{wcet} ms\"\ndeadline = \"{deadline} ms\"\n\
             preemption = \"non-preemptive\"\n"
        );
    }
    text += "[[task]]\nname = \"soft\"\narrivals = [\"2 ms\"]\nwcet = \"1 ms\"\n\
             [[server]]\nname = \"s\"\nkind = \"constant-bandwidth\"\ntasks = [\"soft\"]\nbudget = \"1 ms\"\n\
             period = \"10 ms\"\n";
    let blocking = |text: &str| -> Vec<Option<Remedy>> {
        let (system, _) = horolog_model::file::read(text, "x.toml", &[]).unwrap();
        let tasks = explored(&system).tasks;
        let found = tasks.iter().map(|task| {
            assert_ne!(task.verdict, Verdict::Misses);
            task.remedies.iter().find(|remedy| matches!(remedy, Remedy::Blocking { .. })).cloned()
        });
        found.collect()
    };
    let found = blocking(&text);
    assert!(matches!(&found[0], Some(Remedy::Blocking { tasks, .. }) if *tasks == ["`long`"]), "{found:?}");
    assert_eq!(found[1], None, "{found:?}");
}

#[test]
fn hostile_systems_end() {
    // Forty tasks at a utilisation of exactly 1 with jitter and periods without a common measure.
    let mut random = Random::new(3);
    let set: Vec<DrawnTask> = (0..20)
        .map(|_| {
            let period = random.between(1 << 40, 1 << 41);
            DrawnTask { period, deadline: period, wcet: period / 20 }
        })
        .collect();
    for policy in [Policy::FixedPriority, Policy::Edf] {
        let base = system_of(&set, policy, PreemptionRecipe::Preemptive, &mut random);
        let mut draft = base.to_draft();
        draft.priorities = PriorityAssignment::Explicit;
        for task in &mut draft.tasks {
            task.jitter = ns(1 << 30);
        }
        let mut options = Options::default();
        (options.sensitivity, options.effort) = (true, 200_000);
        let analysis = analyze(&System::new(draft).unwrap(), &options).unwrap();
        assert!(analysis.processors[0].sensitivity.is_some());
    }
}

/// The urgent task of 2 ms bears 3 ms of others until its deadline, so that a job of 3 ms may stay as it is.
#[test]
fn only_jobs_longer_than_what_is_borne_are_to_be_shortened() {
    let mut text =
        "[system]\nname = \"x\"\n[[task]]\nname = \"urgent\"\nseparation = \"50 ms\"\nwcet = \"2 ms\"\n\
                    deadline = \"5 ms\"\npriority = 9\n"
            .to_owned();
    for (name, wcet, priority) in [("short", 3, 5), ("long", 4, 4)] {
        text += &format!(
            "[[task]]\nname = \"{name}\"\nseparation = \"50 ms\"\nwcet = \"{wcet} ms\"\npriority = {priority}\n\
             preemption = \"non-preemptive\"\n"
        );
    }
    let (system, _) = horolog_model::file::read(&text, "x.toml", &[]).unwrap();
    let urgent = explored(&system).tasks.remove(0);
    assert_eq!(urgent.verdict, Verdict::Misses);
    let blocking = urgent.remedies.iter().find_map(|remedy| match remedy {
        Remedy::Blocking { at_most_ns, tasks } => Some((*at_most_ns, tasks.clone())),
        _ => None,
    });
    assert_eq!(blocking, Some((ns(3_000_000), vec!["`long`".to_owned()])));
}

/// The urgent task of 2 ms bears sections of 3 ms until its deadline; `far` has a longer one on a resource that it does not use.
#[test]
fn sections_that_block_are_to_be_shortened() {
    let task = |name: &str, wcet: u32, deadline: u32, priority: u32, resource: &str, length: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\nseparation = \"50 ms\"\nwcet = \"{wcet} ms\"\ndeadline = \"{deadline} ms\"\npriority = {priority}\n\
             [[task.section]]\nresource = \"{resource}\"\nfrom = \"0 ms\"\nlength = \"{length} ms\"\n"
        )
    };
    let remedies = |protocol: &str, longer: u32| {
        let mut text = "[system]\nname = \"x\"\n".to_owned();
        text += &task("urgent", 2, 5, 9, "bus", 1);
        text += &task("short", 4, 50, 5, "bus", 3);
        text += &task("long", 5, 50, 4, "bus", longer);
        text += &task("far", 9, 50, 3, "disk", 8);
        for resource in ["bus", "disk"] {
            text += &format!("[[resource]]\nname = \"{resource}\"\nprotocol = \"{protocol}\"\n");
        }
        let (system, _) = horolog_model::file::read(&text, "x.toml", &[]).unwrap();
        let analysis = explored(&system);
        let sections = |remedies: &[Remedy]| {
            remedies
                .iter()
                .filter(|remedy| matches!(remedy, Remedy::Section { .. }))
                .cloned()
                .collect::<Vec<_>>()
        };
        let helps = analysis.processors[0].sensitivity.as_ref().unwrap().helps.clone();
        (sections(&analysis.tasks[0].remedies), helps.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let section = |ms: u64, tasks: &[&str]| Remedy::Section {
        at_most_ns: ns(ms * 1_000_000),
        tasks: tasks.iter().map(|name| format!("`{name}`")).collect(),
    };
    let (found, helps) = remedies("ceiling", 4);
    assert_eq!(found, [section(3, &["long"])]);
    assert_eq!(found[0].to_string(), "it passes with no section of `long` longer than 3 ms");
    assert!(helps.contains(&"no section of `long` longer than 3 ms".to_owned()), "{helps:?}");
    // A section that cannot be preempted blocks everybody.
    assert_eq!(remedies("non-preemptive", 4).0, [section(3, &["long", "far"])]);
    // One of each task under inheritance, and no more than one of each resource.
    assert_eq!(remedies("inheritance", 4).0, [section(3, &["long"])]);
    assert_eq!(remedies("ceiling", 3).0, []);
}

/// A job of 3 ms that cannot be preempted may grow by 1 ms: the urgent task of 1 ms bears 4 ms until its deadline.
#[test]
fn the_slack_of_a_job_that_blocks_is_what_others_bear() {
    let text = "[system]\nname = \"x\"\n[[task]]\nname = \"urgent\"\nseparation = \"50 ms\"\nwcet = \"1 ms\"\n\
                deadline = \"5 ms\"\npriority = 9\n[[task]]\nname = \"long\"\nseparation = \"50 ms\"\nwcet = \"3 ms\"\n\
                priority = 5\npreemption = \"non-preemptive\"\n";
    let (system, _) = horolog_model::file::read(text, "x.toml", &[]).unwrap();
    let slacks = explored(&system).tasks.iter().map(|task| task.slack).collect::<Vec<_>>();
    // The urgent task may take 5 - 3 ms.
    assert_eq!(slacks, [Some(ns(1_000_000)), Some(ns(1_000_000))]);
}

#[test]
fn what_too_little_work_leaves_open_is_said() {
    let systems = systems();
    let note = |policy: Policy, effort: u64| {
        let system = systems.iter().find(|system| system.policy() == policy).unwrap();
        let mut options = Options::default();
        (options.sensitivity, options.effort) = (true, effort);
        analyze(system, &options).unwrap().processors[0].sensitivity.clone().unwrap().note.unwrap_or_default()
    };
    for policy in [Policy::Edf, Policy::FixedPriority] {
        assert_eq!(note(policy, 5_000_000), "");
    }
    // With a single step nothing is left after the first test. Where each task's test is cheap, some alone take too much.
    assert!(note(Policy::Edf, 1).contains("do not pass, and no time was left to try others"));
    let some = note(Policy::FixedPriority, 100);
    assert!(some.contains("do not pass") && !some.contains("no time was left"), "{some}");
}

/// With costs, which the slack has no part in: at the edge the system passes, and a nanosecond beyond it does not.
#[test]
fn the_slack_of_a_job_that_blocks_is_the_edge_beside_costs() {
    let text = "[system]\nname = \"x\"\n[platform]\ncontext_switch = \"10 us\"\n\
                [[task]]\nname = \"urgent\"\nseparation = \"50 ms\"\nwcet = \"1 ms\"\ndeadline = \"5 ms\"\npriority = 9\n\
                [[task]]\nname = \"long\"\nseparation = \"50 ms\"\nwcet = \"3 ms\"\npriority = 5\npreemption = \"non-preemptive\"\n";
    let (system, _) = horolog_model::file::read(text, "x.toml", &[]).unwrap();
    let slack = explored(&system).tasks[1].slack.unwrap().as_ns();
    let grown =
        |more: u64| verdict(with_wcets(&system, |index, wcet| if index == 1 { wcet + more } else { wcet }));
    assert_eq!(grown(slack), Schedulable::Yes, "{slack}");
    assert_ne!(grown(slack + 1), Schedulable::Yes, "{slack}");
}

/// What has no deadline cannot be late, so that the others alone say how far the edge is: 2 of 10 ms may become 10, less what
/// a search that long may cost.
#[test]
fn a_task_without_a_deadline_does_not_bound_the_scaling_factor() {
    let text = "[system]\nname = \"x\"\n[[task]]\nname = \"once\"\narrivals = [\"1 ms\"]\nwcet = \"1 ms\"\npriority = 1\n\
                [[task]]\nname = \"t\"\nseparation = \"10 ms\"\nwcet = \"2 ms\"\npriority = 2\n";
    let (system, _) = horolog_model::file::read(text, "x.toml", &[]).unwrap();
    let found = explored(&system);
    assert_eq!(found.tasks[0].deadline, None);
    let factor = found.processors[0].sensitivity.as_ref().unwrap().scaling_ppb.unwrap();
    assert!((4_900_000_000..=5_000_000_000).contains(&factor), "{factor}");
}

/// Scaled jobs that cannot be preempted still cannot. `b` of 6 ms starts behind 2 ms of `a` and ends before the next of them holds it
/// up; both deadlines, `a`'s behind a whole job of `b`, bear 8f ms for f up to 1.8.
#[test]
fn jobs_that_cannot_be_preempted_are_scaled_as_such() {
    let text = "[system]\nname = \"x\"\n[[task]]\nname = \"a\"\nseparation = \"10 ms\"\nwcet = \"2 ms\"\ndeadline = \"15 ms\"\n\
                priority = 9\npreemption = \"non-preemptive\"\n[[task]]\nname = \"b\"\nseparation = \"100 ms\"\nwcet = \"6 ms\"\n\
                deadline = \"14400 us\"\npriority = 5\npreemption = \"non-preemptive\"\n";
    let (system, _) = horolog_model::file::read(text, "x.toml", &[]).unwrap();
    let found = explored(&system).processors[0].sensitivity.clone().unwrap();
    assert_eq!(found.scaling_ppb, Some(1_800_000_000));
}

/// `motor` meets and is the culprit: no smaller wcet of `imu` alone would let `log` meet, too.
#[test]
fn a_help_makes_every_hard_deadline_of_the_processor_hold() {
    let text = "[system]\nname = \"x\"\n\
        [[task]]\nname = \"motor\"\nperiod = \"1 ms\"\nwcet = \"900 us\"\npriority = 9\n\
        [[task]]\nname = \"imu\"\nperiod = \"2 ms\"\nwcet = \"500 us\"\npriority = 8\n\
        [[task]]\nname = \"log\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\npriority = 1\n";
    let of = |text: &str| {
        let (system, _) = horolog_model::file::read(text, "x", &[]).expect("a good file");
        let mut options = Options::default();
        options.sensitivity = true;
        let analysis = analyze(&system, &options).expect("an answer");
        let helps = analysis.processors[0].sensitivity.clone().expect("asked for").helps;
        (analysis.schedulable, helps.iter().map(ToString::to_string).collect::<Vec<String>>())
    };
    // imu alone passes with 200 us, and log then misses: 900 of 1000 and 100 of 1000 leave it nothing.
    let (schedulable, helps) = of(text);
    assert_eq!(schedulable, Schedulable::No);
    assert!(helps.iter().all(|help| !help.contains("wcet") || !help.contains("imu")), "{helps:?}");
    let motor = helps.iter().find(|help| help.ends_with("for motor")).expect("the culprit");
    let wcet = motor.trim_start_matches("a wcet of at most ").trim_end_matches(" for motor");
    assert_eq!(of(&text.replace("900 us", wcet)).0, Schedulable::Yes, "{motor}");
    // What is only a wish is no hard deadline.
    let soft = text.replace("\"10 ms\"\n", "\"10 ms\"\nconstraint = \"soft\"\n");
    assert!(of(&soft).1[0].ends_with("for imu"), "{:?}", of(&soft).1);
}

/// What is scaled and whose deadlines are kept, with each part there and not there.
#[test]
fn what_the_scaling_factor_is_about_is_said() {
    let of = |sections: bool, served: bool, soft: bool| {
        let mut text = "[system]\nname = \"s\"\n[platform]\ncpus = 1\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n".to_owned();
        if sections {
            text += "section = [{ resource = \"map\", from = \"0 ms\", length = \"1 ms\" }]\n[[resource]]\nname = \"map\"\n";
        }
        if served {
            text += "[[task]]\nname = \"served\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\ndeadline = \"10 ms\"\nconstraint = \"soft\"\n\
                [[server]]\nname = \"events\"\nkind = \"deferrable\"\ntasks = [\"served\"]\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 5\n";
        }
        if soft {
            text += "[[task]]\nname = \"soft\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\nconstraint = \"soft\"\n";
        }
        let (system, _) =
            horolog_model::file::read(&text, "s.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let found = Scaled::of(&system, horolog_model::CpuId(0));
        assert_eq!(found.but.is_empty(), !served);
        (found.what, found.whose, found.has_soft)
    };
    for soft in [false, true] {
        assert_eq!(of(false, false, soft), ("wcet", "deadline", soft));
        assert_eq!(of(true, false, soft), ("wcet and section", "deadline", soft));
        assert_eq!(of(false, true, soft), ("wcet", "hard deadline", soft));
        assert_eq!(of(true, true, soft), ("wcet and section", "hard deadline", soft));
    }
}
