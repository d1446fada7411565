//! Tests of whole systems: what a set is made into, and that the answers are those of sets that are made by other means.

use crate::plan_of;
use horolog_analysis::Verdict;
use horolog_analysis::batch::{BatchTest, Sets, decide};
use horolog_draw::parts;
use horolog_model::{Criticality, Policy, Preemption, Priority, Protocol, System};
use horolog_sweep::systems::{self, Made, Set};
use horolog_sweep::{BlockId, How, Plan, SYSTEM_TESTS, Test};

/// A sweep of one cell with these tests and keys.
fn plan(tests: &[&str], keys: &str) -> Plan {
    plan_of(&format!(
        "schema = \"horolog.sweep/1\"\n[sweep]\nname = \"systems\"\nsets = 120\ntests = {tests:?}\n[generator]\n{keys}\n"
    ))
}

/// Wcets, deadlines, periods of every set of a plan of one block.
struct Drawn {
    plan: Plan,
    seed: u64,
    tasks: usize,
    arrays: [Vec<u64>; 3],
}

impl Drawn {
    fn of(plan: Plan) -> Drawn {
        let id = BlockId { cell: 0, block: 0 };
        let batch = plan.batch(id).expect("a batch");
        let (tasks, seed) = (batch.tasks, batch.seed);
        let mut arrays = [const { Vec::new() }; 3];
        arrays.iter_mut().for_each(|array| array.resize(plan.sets as usize * tasks, 0_u64));
        let [wcet, deadline, period] = &mut arrays;
        batch.draw(0, [wcet, deadline, period], 1).expect("sets");
        Drawn { plan, seed, tasks, arrays }
    }

    /// The same sets in a cell of other keys, which would have sets of its own.
    fn beside(&self, plan: Plan) -> Drawn {
        Drawn { plan, seed: self.seed, tasks: self.tasks, arrays: self.arrays.clone() }
    }

    fn set(&self, number: usize) -> Set<'_> {
        let part = |array: usize| &self.arrays[array][number * self.tasks..(number + 1) * self.tasks];
        Set { wcet: part(0), deadline: part(1), period: part(2), seed: self.seed, number: number as u64 }
    }

    fn sets(&self) -> impl Iterator<Item = Set<'_>> {
        (0..self.plan.sets as usize).map(|number| self.set(number))
    }

    /// What each set of a test says.
    fn verdicts(&self, word: &str) -> Vec<Verdict> {
        let how = how(word);
        self.sets().map(|set| systems::decide(how, &self.plan.cells[0].more, set).expect("known")).collect()
    }

    fn systems(&self, word: &str) -> Vec<System> {
        let how = how(word);
        let system = |set| match systems::system_of(how, &self.plan.cells[0].more, set) {
            Ok(Made::System(system)) => *system,
            other => panic!("{other:?}"),
        };
        self.sets().map(system).collect()
    }

    /// The same by a test of plain sets, each with `more` tasks of (wcet, deadline, period) in front.
    fn plain(&self, test: BatchTest, more: &[[u64; 3]]) -> Vec<Verdict> {
        let each = self.sets().map(|set| {
            let with = |own: &[u64], at: usize| -> Vec<u64> {
                more.iter().map(|task| task[at]).chain(own.iter().copied()).collect()
            };
            let (wcet, deadline, period) = (with(set.wcet, 0), with(set.deadline, 1), with(set.period, 2));
            let sets = Sets::new(wcet.len(), &wcet, &deadline, &period).expect("sets");
            let mut verdict = [Verdict::Unknown];
            decide(sets, &[test], &mut verdict, 1);
            verdict[0]
        });
        each.collect()
    }
}

fn how(word: &str) -> How {
    Test::of_word(word).and_then(Test::how).expect("a test of systems")
}

fn count(verdicts: &[Verdict], of: Verdict) -> usize {
    verdicts.iter().filter(|one| **one == of).count()
}

/// That both answers occur: a comparison of one alone says nothing.
fn has_both(verdicts: &[Verdict]) {
    let (meets, all) = (count(verdicts, Verdict::Meets), verdicts.len());
    assert!(meets > all / 20 && meets < all - all / 20, "{meets} of {all} meet");
}

const LOCKS: &str = "resources = 2\nrequests = 1\nshortest_section = \"5 us\"\nlongest_section = \"5 us\"\n";

#[test]
fn with_nothing_to_share_every_lock_and_level_is_the_plain_test() {
    let constrained = "tasks = 6\nutilisation = 0.85\ndeadlines = \"constrained\"\n";
    let words = ["fp-ceiling", "fp-original-ceiling", "fp-inheritance", "edf-ceiling", "fp-amc", "edf-vd"];
    let keys = format!("{constrained}{LOCKS}access = 0\nhigh = 0\nhigh_factor = 2");
    let drawn = Drawn::of(plan(&words, &keys));
    let (fixed, edf) = (drawn.plain(BatchTest::FpPreemptive, &[]), drawn.plain(BatchTest::EdfQpa, &[]));
    has_both(&fixed);
    for word in words {
        let expected = if word.starts_with("fp") { &fixed } else { &edf };
        assert_eq!(&drawn.verdicts(word), expected, "{word}");
    }
    // On one processor partitioning is the test of that processor; what fits nowhere is unknown.
    let words =
        ["partitioned-fp", "partitioned-edf", "fp-msrp", "fp-fslm", "fp-mpcp", "fp-fmlp-plus", "edf-msrp"];
    let drawn = Drawn::of(plan(&words, &format!("{constrained}{LOCKS}access = 0\nprocessors = 1")));
    let (fixed, edf) = (drawn.plain(BatchTest::FpPreemptive, &[]), drawn.plain(BatchTest::EdfQpa, &[]));
    has_both(&fixed);
    for word in words {
        let expected = if word.contains("edf") { &edf } else { &fixed };
        let found = drawn.verdicts(word);
        for (found, expected) in found.iter().zip(expected) {
            let is_heuristic = word.starts_with("partitioned") && *found == Verdict::Unknown;
            assert!(found == expected || (is_heuristic && *expected == Verdict::Misses), "{word}");
        }
    }
}

#[test]
fn the_flexible_spin_lock_model_is_not_msrp_under_another_name() {
    let keys = "tasks = 8\nutilisation = 1.2\nresources = 2\nrequests = 1\nshortest_section = \"1 ms\"\n\
                longest_section = \"20 ms\"\naccess = 0.25\nprocessors = 2";
    let drawn = Drawn::of(plan(&["fp-msrp", "fp-fslm"], keys));
    let (msrp, fslm) = (drawn.verdicts("fp-msrp"), drawn.verdicts("fp-fslm"));
    has_both(&fslm);
    assert_ne!(msrp, fslm);
}

#[test]
fn a_server_counts_as_one_task_more() {
    let budget = [2_000_000, 20_000_000, 20_000_000];
    let words = ["fp-polling", "fp-sporadic", "edf-constant-bandwidth", "edf-total-bandwidth"];
    let keys = "tasks = 6\nutilisation = 0.75\ndeadlines = \"constrained\"\nserver_budget = \"2 ms\"\nserver_period = \"20 ms\"";
    let drawn = Drawn::of(plan(&[&words[..], &["fp-deferrable"]].concat(), keys));
    let (fixed, edf) =
        (drawn.plain(BatchTest::FpPreemptive, &[budget]), drawn.plain(BatchTest::EdfQpa, &[budget]));
    has_both(&fixed);
    for word in words {
        let (found, expected) = (drawn.verdicts(word), if word.starts_with("fp") { &fixed } else { &edf });
        // The same sets are proved; what is not may be proved to miss, or not. Servers under EDF ask for their share in a window of any
        // length, and not for a whole budget at the end of each period: fewer are proved then.
        let pairs = found.iter().zip(expected);
        let is_same = |one: Verdict, other: Verdict| (one == Verdict::Meets) == (other == Verdict::Meets);
        let is_fluid = word.starts_with("edf");
        assert!(
            pairs.clone().all(|(&one, &other)| is_same(one, other) || (is_fluid && other == Verdict::Meets)),
            "{word}"
        );
        has_both(&found);
        assert!(
            pairs.clone().all(|(one, other)| *one != Verdict::Misses || *other == Verdict::Misses),
            "{word}"
        );
    }
    // A deferrable server may use two budgets one after the other: fewer sets hold, and some do.
    let deferrable = drawn.verdicts("fp-deferrable");
    let pairs = deferrable.iter().zip(&fixed);
    assert!(pairs.clone().all(|(one, other)| *one != Verdict::Meets || *other == Verdict::Meets));
    assert!(
        count(&deferrable, Verdict::Meets) > 5
            && count(&deferrable, Verdict::Meets) < count(&fixed, Verdict::Meets)
    );
    // Its place is by its period: above tasks with that deadline or a longer one.
    for system in drawn.systems("fp-polling") {
        let place = system.servers()[0].kind.priority().expect("a priority");
        for task in system.tasks().iter().filter(|task| task.name != "served") {
            let is_above = place.is_more_important_than(task.priority.expect("a priority"));
            assert_eq!(is_above, task.deadline.expect("one").as_ns() >= 20_000_000, "{}", task.name);
        }
    }
}

#[test]
fn one_segment_is_no_preemption_and_more_segments_are_the_drawn_ones() {
    let keys = "tasks = 4\nutilisation = 0.72\nlongest_period = \"40 ms\"\nsegments = 1";
    let words = ["fp-non-preemptive", "fp-deferred", "edf-non-preemptive"];
    let drawn = Drawn::of(plan(&words, keys));
    let fixed = drawn.verdicts("fp-non-preemptive");
    has_both(&fixed);
    assert_eq!(drawn.verdicts("fp-deferred"), fixed);
    // Nothing but a wait is added.
    let edf = drawn.plain(BatchTest::EdfQpa, &[]);
    let rigid = drawn.verdicts("edf-non-preemptive");
    has_both(&rigid);
    assert!(rigid.iter().zip(&edf).all(|(one, other)| *one != Verdict::Meets || *other == Verdict::Meets));
    let drawn = Drawn::of(plan(&["fp-deferred"], &keys.replace("segments = 1", "segments = 4")));
    for (set, system) in drawn.sets().zip(drawn.systems("fp-deferred")) {
        let lengths = parts::segments(drawn.seed, set.number, set.wcet, 4);
        for (task, lengths) in system.tasks().iter().zip(lengths) {
            let graph = task.segment_graph().expect("segments");
            let found: Vec<u64> = graph.segments.iter().map(|one| one.wcet.as_ns()).collect();
            assert!(found == lengths && graph.is_sequence());
        }
    }
}

#[test]
fn priorities_are_by_deadline_and_among_equals_by_place() {
    let drawn =
        Drawn::of(plan(&["fp-non-preemptive"], "tasks = 8\nutilisation = 0.5\nperiods = \"automotive\""));
    for (set, system) in drawn.sets().zip(drawn.systems("fp-non-preemptive")) {
        let tasks = system.tasks();
        for one in 0..8 {
            let of = |task: usize| tasks[task].priority.map(Priority::number).expect("a priority");
            let below =
                (0..8).filter(|&other| (set.deadline[other], other) > (set.deadline[one], one)).count();
            assert_eq!((0..8).filter(|&other| of(other) < of(one)).count(), below);
            assert_eq!(tasks[one].preemption, Preemption::NonPreemptive);
            assert_eq!(
                (tasks[one].wcet.as_ns(), tasks[one].deadline.map(|it| it.as_ns())),
                (set.wcet[one], Some(set.deadline[one]))
            );
        }
    }
}

#[test]
fn tasks_with_locks_are_spread_by_worst_fit_and_hold_the_drawn_sections() {
    let keys = format!(
        "tasks = 9\nutilisation = 1.5\nprocessors = 3\naccess = 0.5\nreads = 0.5\n{}",
        LOCKS.replace("requests = 1", "requests = 3")
    );
    let words: Vec<&str> = SYSTEM_TESTS
        .iter()
        .filter(|(_, how)| matches!(how, How::Locks(_, protocol) if protocol.is_global()))
        .map(|(word, _)| *word)
        .collect();
    assert_eq!(words.len(), 13);
    let drawn = Drawn::of(plan(&words, &keys));
    let sharing = parts::Sharing {
        resources: 2,
        access_ppb: 500_000_000,
        requests: 3,
        shortest_ns: 5_000,
        longest_ns: 5_000,
    };
    let mut sections = 0;
    for (set, system) in drawn.sets().zip(drawn.systems("fp-dpcp")) {
        // By hand: the heaviest task left to the processor with the least load.
        let share = |task: usize| set.wcet[task] as f64 / set.period[task] as f64;
        let mut order: Vec<usize> = (0..9).collect();
        order.sort_by(|&one, &other| share(other).total_cmp(&share(one)));
        let mut loads = [0.0_f64; 3];
        for task in order {
            let cpu = (0..3).fold(0, |best, cpu| if loads[cpu] < loads[best] { cpu } else { best });
            loads[cpu] += share(task);
            assert_eq!(system.tasks()[task].cpu.0 as usize, cpu);
        }
        let drawn = parts::sections(drawn.seed, set.number, set.wcet, sharing);
        for (task, drawn) in system.tasks().iter().zip(drawn) {
            let found =
                task.sections.iter().map(|one| (one.resource.as_str(), one.from.as_ns(), one.length.as_ns()));
            let wanted = drawn.iter().map(|one| (["r1", "r2"][one.resource as usize], one.from, one.length));
            assert!(found.eq(wanted));
            sections += drawn.len();
        }
        let cpus: Vec<_> = system.resources().iter().map(|one| one.cpu.map(|cpu| cpu.0)).collect();
        assert_eq!(
            (cpus, system.platform().cpus.len()),
            (vec![Some(3); 2], 4),
            "sections have a processor of their own"
        );
    }
    assert!(sections > 500, "{sections}");
    for word in words {
        let found = drawn.verdicts(word);
        assert!(count(&found, Verdict::Meets) > 60, "{word}: {}", count(&found, Verdict::Meets));
    }
    assert_eq!(drawn.systems("fp-mpcp")[0].resources()[0].protocol, Protocol::Mpcp);
    assert_eq!(drawn.systems("edf-msrp")[0].policy(), Policy::Edf);
}

#[test]
fn levels_of_criticality_are_the_drawn_ones() {
    let keys = "tasks = 6\nutilisation = 0.62\nhigh = 0.5\nhigh_factor = 1.5";
    let drawn = Drawn::of(plan(&["fp-amc", "edf-vd"], keys));
    let levels = parts::Levels { high_ppb: 500_000_000, factor_ppb: 1_500_000_000 };
    for (set, system) in drawn.sets().zip(drawn.systems("edf-vd")) {
        let high = parts::high_wcets(drawn.seed, set.number, set.wcet, levels);
        for (task, high) in system.tasks().iter().zip(&high) {
            let found = match task.criticality {
                Some(Criticality::High { wcet, .. }) => Some(wcet.as_ns()),
                _ => None,
            };
            assert_eq!(found, *high);
        }
        assert_eq!(system.modes().len(), if high.iter().any(Option::is_some) { 2 } else { 0 });
    }
    // Where every task is of high criticality, each has its longer time in every mode: no set that misses with those is proved.
    let all = Drawn::of(plan(&["fp-amc", "edf-vd"], &keys.replace("high = 0.5", "high = 1")));
    let longer: Vec<u64> = all.arrays[0].iter().map(|wcet| wcet * 3 / 2).collect();
    let longer = Drawn {
        arrays: [longer, all.arrays[1].clone(), all.arrays[2].clone()],
        plan: all.plan.clone(),
        ..all
    };
    for (word, test) in [("fp-amc", BatchTest::FpPreemptive), ("edf-vd", BatchTest::EdfQpa)] {
        let all = Drawn::of(plan(&["fp-amc", "edf-vd"], &keys.replace("high = 0.5", "high = 1")));
        let (found, bound) = (all.verdicts(word), longer.plain(test, &[]));
        assert!(
            found.iter().zip(&bound).all(|(one, other)| *one != Verdict::Meets || *other == Verdict::Meets)
        );
        let (some, all) = (count(&drawn.verdicts(word), Verdict::Meets), count(&found, Verdict::Meets));
        assert!(some >= all && (some > all || word == "edf-vd") && all > 5, "{word}: {some} {all}");
    }
}

#[test]
fn more_than_all_processors_misses_and_a_job_longer_than_its_deadline_does() {
    let words = ["global-edf", "global-fp", "partitioned-edf", "partitioned-fp"];
    let of = |utilisation: &str| {
        Drawn::of(plan(
            &words,
            &format!("tasks = 8\nutilisation = {utilisation}\nprocessors = 2\nmethod = \"randfixedsum\""),
        ))
    };
    let (light, over) = (of("0.9"), of("2.01"));
    for word in words {
        assert!(count(&light.verdicts(word), Verdict::Meets) > 60, "{word}");
        assert_eq!(count(&over.verdicts(word), Verdict::Misses), 120, "{word}");
    }
    // A share above 1.
    let long = Drawn::of(plan(
        &["global-edf"],
        "tasks = 2\nutilisation = 1.9\nprocessors = 4\nmethod = \"uunifast\"",
    ));
    for (set, verdict) in long.sets().zip(long.verdicts("global-edf")) {
        let is_long = (0..2).any(|task| set.wcet[task] > set.deadline[task]);
        assert!(!is_long || verdict == Verdict::Misses);
        assert!(is_long || verdict == Verdict::Meets, "two tasks on four processors");
        let made = systems::system_of(how("global-edf"), &long.plan.cells[0].more, set).expect("made");
        assert_eq!(matches!(made, Made::TooLong(_)), is_long);
    }
}

/// What is placed is in the system that the test makes, and proves it.
#[test]
fn a_partitioned_system_has_the_placement_that_its_test_found() {
    let keys = "processors = 3\ntasks = 8\nutilisation = 2.8\nmethod = \"uunifast-discard\"";
    let (mut placed, mut unplaced) = (0, 0);
    for word in ["partitioned-fp", "partitioned-edf"] {
        let drawn = Drawn::of(plan(&[word], keys));
        for (system, verdict) in drawn.systems(word).iter().zip(drawn.verdicts(word)) {
            let found =
                horolog_analysis::analyze(system, &horolog_analysis::Options::default()).expect("known");
            if verdict == Verdict::Meets {
                placed += 1;
                assert_eq!(found.schedulable, horolog_analysis::Schedulable::Yes, "{word}");
                assert!(system.tasks().iter().any(|task| task.cpu.0 > 0));
            } else {
                unplaced += 1;
                assert_ne!(found.schedulable, horolog_analysis::Schedulable::Yes, "{word}");
            }
        }
    }
    assert!(placed > 10 && unplaced > 0, "{placed} {unplaced}");
}

#[test]
fn clusters_of_all_processors_are_global_and_those_of_one_are_processors() {
    let keys = |cluster: u32, utilisation: &str| {
        format!(
            "tasks = 7\nutilisation = {utilisation}\nprocessors = 3\ncluster = {cluster}\nmethod = \"randfixedsum\""
        )
    };
    for (clustered, global, plain, utilisation) in [
        ("clustered-edf", "global-edf", BatchTest::EdfQpa, "2.9"),
        ("clustered-fp", "global-fp", BatchTest::FpPreemptive, "2.6"),
    ] {
        let words = [clustered, global];
        let whole = Drawn::of(plan(&words, &keys(3, "2.2")));
        has_both(&whole.verdicts(global));
        assert_eq!(whole.verdicts(clustered), whole.verdicts(global));
        // Clusters of one: each processor is judged by the exact test of the tasks that are there.
        let single = Drawn::of(plan(&words, &keys(1, utilisation)));
        let mut met = 0;
        for ((set, system), found) in
            single.sets().zip(single.systems(clustered)).zip(single.verdicts(clustered))
        {
            assert!(system.clusters().is_empty());
            let meets = |cpu: u32| {
                let own = (0..7).filter(|&task| system.tasks()[task].cpu.0 == cpu);
                let own: Vec<usize> = own.collect();
                let of = |values: &[u64]| own.iter().map(|&task| values[task]).collect::<Vec<u64>>();
                let (wcet, deadline, period) = (of(set.wcet), of(set.deadline), of(set.period));
                let mut verdict = [Verdict::Meets];
                if !own.is_empty() {
                    let sets = Sets::new(own.len(), &wcet, &deadline, &period).expect("sets");
                    decide(sets, &[plain], &mut verdict, 1);
                }
                verdict[0] == Verdict::Meets
            };
            assert_eq!(found == Verdict::Meets, (0..3).all(meets));
            met += usize::from(found == Verdict::Meets);
        }
        assert!((5..116).contains(&met), "{met}");
        // Two and one: the heaviest tasks go where the load by processors is least.
        let uneven = Drawn::of(plan(&words, &keys(2, "2.2")));
        for (set, system) in uneven.sets().zip(uneven.systems(clustered)) {
            let share = |task: usize| set.wcet[task] as f64 / set.period[task] as f64;
            let mut order: Vec<usize> = (0..7).collect();
            order.sort_by(|&one, &other| share(other).total_cmp(&share(one)));
            let mut loads = [0.0_f64; 2];
            let mut first = Vec::new();
            for task in order {
                let place = usize::from(loads[1] < loads[0] / 2.0);
                loads[place] += share(task);
                if place == 0 {
                    first.push(format!("t{}", task + 1));
                }
            }
            let [cluster] = system.clusters() else { panic!("one cluster of two processors") };
            let mut found = cluster.tasks.clone();
            found.sort();
            first.sort();
            assert_eq!((found, cluster.cpus.len()), (first, 2));
        }
    }
}

#[test]
fn readers_wait_less_than_writers_and_without_readers_both_protocols_are_queues() {
    let keys = |reads: &str| {
        format!(
            "tasks = 8\nutilisation = 1.5\nprocessors = 2\naccess = 0.6\nreads = {reads}\n{}",
            LOCKS.replace("\"5 us\"", "\"3 ms\"")
        )
    };
    let words = ["fp-task-fair", "fp-phase-fair", "fp-msrp", "edf-task-fair", "edf-phase-fair", "edf-msrp"];
    let writers = Drawn::of(plan(&words, &keys("0")));
    has_both(&writers.verdicts("fp-msrp"));
    for word in ["fp-task-fair", "fp-phase-fair"] {
        assert_eq!(writers.verdicts(word), writers.verdicts("fp-msrp"), "{word}");
    }
    assert_eq!(writers.verdicts("edf-task-fair"), writers.verdicts("edf-msrp"));
    let readers = writers.beside(plan(&words, &keys("0.9")));
    let met = |drawn: &Drawn, word: &str| count(&drawn.verdicts(word), Verdict::Meets);
    for word in ["fp-task-fair", "fp-phase-fair", "edf-task-fair", "edf-phase-fair"] {
        assert!(met(&readers, word) >= met(&writers, word), "{word}");
    }
    assert!(met(&readers, "fp-phase-fair") > met(&writers, "fp-phase-fair"));
    let sharing = parts::Sharing {
        resources: 2,
        access_ppb: 600_000_000,
        requests: 1,
        shortest_ns: 3_000_000,
        longest_ns: 3_000_000,
    };
    for (set, system) in readers.sets().zip(readers.systems("fp-phase-fair")) {
        let sections = parts::sections(readers.seed, set.number, set.wcet, sharing);
        let reads = parts::reads(readers.seed, set.number, (8, 2), 900_000_000);
        let of_task = |(sections, reads): (&Vec<parts::DrawnSection>, &Vec<bool>)| -> Vec<bool> {
            sections.iter().map(|one| reads[one.resource as usize]).collect()
        };
        let drawn = sections.iter().zip(&reads).map(of_task);
        let found = system
            .tasks()
            .iter()
            .map(|task| task.sections.iter().map(|one| one.access.is_read()).collect::<Vec<bool>>());
        assert!(found.eq(drawn), "{}", set.number);
    }
}

#[test]
fn sections_nest_where_the_protocol_takes_it() {
    let keys = format!(
        "tasks = 6\nutilisation = 0.8\naccess = 0.5\nnesting = 0.5\n{}",
        LOCKS.replace("\"5 us\"", "\"500 us\"")
    );
    let words = ["fp-ceiling", "fp-original-ceiling", "edf-ceiling"];
    let nested = Drawn::of(plan(&words, &keys));
    let flat = nested.beside(plan(&words, &keys.replace("nesting = 0.5\n", "")));
    let mut more = 0;
    for word in words {
        for (one, other) in nested.systems(word).iter().zip(flat.systems(word)) {
            for (one, other) in one.tasks().iter().zip(other.tasks()) {
                more += one.sections.len() - other.sections.len();
                let outer = one.sections.iter().filter(|section| {
                    !one.sections.iter().any(|around| {
                        around.resource != section.resource
                            && around.from <= section.from
                            && section.end() <= around.end()
                    })
                });
                let outer: Vec<_> = outer.cloned().collect();
                assert_eq!(outer, other.sections, "what is around is what is drawn without nesting");
            }
        }
        // More users of a resource never help.
        for (one, other) in nested.verdicts(word).into_iter().zip(flat.verdicts(word)) {
            assert!(one != Verdict::Meets || other == Verdict::Meets, "{word}");
        }
    }
    assert!(more > 300, "{more}");
}

#[test]
fn low_tasks_that_go_on_with_less_are_between_those_that_stop_and_those_that_stay() {
    let keys = |factor: &str| {
        format!("tasks = 6\nutilisation = 0.72\nhigh = 0.5\nhigh_factor = 1.6\nlow_factor = {factor}")
    };
    let words = ["fp-amc", "fp-amc-degraded"];
    let nothing = Drawn::of(plan(&words, &keys("0")));
    has_both(&nothing.verdicts("fp-amc"));
    assert_eq!(nothing.verdicts("fp-amc-degraded"), nothing.verdicts("fp-amc"));
    let mut before = nothing.verdicts("fp-amc-degraded");
    for factor in ["0.000001", "0.3", "0.999"] {
        let drawn = nothing.beside(plan(&words, &keys(factor)));
        let found = drawn.verdicts("fp-amc-degraded");
        let is_less = |(one, other): (&Verdict, &Verdict)| *one != Verdict::Meets || *other == Verdict::Meets;
        assert!(found.iter().zip(&before).all(is_less), "{factor}: who has more gives no room");
        before = found;
        let levels = parts::Levels { high_ppb: 500_000_000, factor_ppb: 1_600_000_000 };
        let ppb = (factor.parse::<f64>().expect("a number") * 1e9).round() as u128;
        for (set, system) in drawn.sets().zip(drawn.systems("fp-amc-degraded")) {
            let high = parts::high_wcets(drawn.seed, set.number, set.wcet, levels);
            if high.iter().all(Option::is_none) {
                continue;
            }
            let less = |task: usize| (u128::from(set.wcet[task]) * ppb / 1_000_000_000) as u64;
            let wanted: Vec<(String, u64)> = (0..6)
                .filter(|&task| high[task].is_none() && less(task) > 0)
                .map(|task| (format!("t{}", task + 1), less(task)))
                .collect();
            let mode = &system.modes()[0];
            let found = mode.tasks.iter().map(|one| (one.task.clone(), one.wcet.expect("less").as_ns()));
            assert!(found.eq(wanted.iter().cloned()), "{factor}");
            let active = mode.active.as_ref().map_or(0, Vec::len);
            assert_eq!(active, wanted.len() + high.iter().flatten().count());
        }
    }
    assert!(count(&before, Verdict::Meets) < count(&nothing.verdicts("fp-amc"), Verdict::Meets));
}

const EVERY_KEY: &str = "cluster = 1\nreads = 0.5\nlow_factor = 0.4\nprocessors = 2\nsegments = 3\naccess = 0.4\nhigh = 0.4\nhigh_factor = 2\nserver_budget = \"1 ms\"\nserver_period = \"20 ms\"\nresources = 2\nrequests = 2\nshortest_section = \"1 us\"\nlongest_section = \"2 ms\"\n";

#[test]
fn whatever_is_drawn_has_an_answer_and_a_file_that_reads_back() {
    let words: Vec<&str> = SYSTEM_TESTS.iter().map(|(word, _)| *word).collect();
    let (mut made, mut too_long) = (0, 0);
    for deadlines in ["implicit", "constrained", "arbitrary"] {
        for (utilisation, periods) in [(0.4, "log-uniform"), (1.0, "automotive"), (1.3, "harmonic")] {
            let keys = format!(
                "{EVERY_KEY}tasks = 5\nutilisation = {utilisation}\nmethod = \"uunifast\"\nperiods = \"{periods}\"\ndeadlines = \"{deadlines}\""
            );
            let drawn = Drawn::of(plan(&words, &keys));
            for word in &words {
                for set in drawn.sets().take(4) {
                    let more = &drawn.plan.cells[0].more;
                    let verdict = systems::decide(how(word), more, set);
                    assert!(verdict.is_ok(), "{word}, {deadlines}, {periods}: {verdict:?}");
                    match systems::system_of(how(word), more, set).expect("made") {
                        Made::TooLong(_) => {
                            too_long += 1;
                            assert_eq!(verdict, Ok(Verdict::Misses));
                        }
                        Made::System(system) => {
                            made += 1;
                            let text = horolog_model::file::print(&system);
                            let (again, _) = horolog_model::file::read(&text, word, &[]).expect("its file");
                            assert_eq!(again.digest(), system.digest(), "{word}");
                        }
                    }
                }
            }
        }
    }
    assert!(made > 500 && too_long > 10, "{made} {too_long}");
}
