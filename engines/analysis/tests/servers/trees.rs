//! Trees of schedulers by hand: published facts, one unit inside and outside of bounds, and a scheduler that looks at every unit of time.

use horolog_analysis::{Analysis, Options, Schedulable, Verdict, analyze, least_upper_bound};
use horolog_model::file;
use horolog_testkit::Random;
use toml::{Table, Value};

fn analysed(text: &str) -> Analysis {
    let text = format!("[system]\nname = \"tree\"\n{text}");
    let (system, _) = file::read(&text, "tree.toml", &[]).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    analyze(&system, &Options::default()).unwrap()
}

fn bound(analysis: &Analysis, task: &str) -> Option<u64> {
    let task = analysis.tasks.iter().find(|it| it.name == task).unwrap();
    task.response.map(|response| response.as_ns() / 1_000_000)
}

fn completion(analysis: &Analysis, node: &str) -> Option<u64> {
    let node = analysis.servers.iter().find(|it| it.name == node).unwrap();
    node.completion.map(|time| time.as_ns() / 1_000_000)
}

fn task(name: &str, (wcet, period): (u64, u64), more: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\nperiod = \"{period} ms\"\nwcet = \"{wcet} ms\"\n{more}\n")
}

fn node(name: &str, kind: &str, (budget, period): (u64, u64), more: &str) -> String {
    format!(
        "[[scheduler]]\nname = \"{name}\"\nkind = \"{kind}\"\nbudget = \"{budget} ms\"\nperiod = \"{period} ms\"\nlow_priority = \"none\"\n{more}\n"
    )
}

fn pair(value: &Value) -> (u64, u64) {
    let number = |at: usize| value[at].as_integer().unwrap() as u64;
    (number(0), number(1))
}

fn pairs(value: &Value) -> Vec<(u64, u64)> {
    value.as_array().unwrap().iter().map(pair).collect()
}

fn golden() -> Table {
    let path = format!("{}/../../golden/hierarchical-reserves.toml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

/// Fact 5, of tasks and of reserves.
#[test]
fn completion_times_are_the_published_ones() {
    for case in golden()["completion"].as_array().unwrap() {
        let (parent, children) = (pair(&case["parent"]), pairs(&case["children"]));
        let wanted: Vec<u64> =
            case["completion"].as_array().unwrap().iter().map(|it| it.as_integer().unwrap() as u64).collect();
        let mut above = String::new();
        for (place, &load) in pairs(&case["above"]).iter().enumerate() {
            above += &task(&format!("above-{place}"), load, "priority = 9");
        }
        let outer = |tasks: &str| {
            node(
                "parent",
                "deferrable",
                parent,
                &format!("order = \"fixed-priority\"\npriority = 5\n{tasks}"),
            )
        };
        let mut tasks = above.clone();
        let mut reserves = above.clone();
        for (place, &child) in children.iter().enumerate() {
            let priority = format!("priority = {}", 4 - place);
            tasks += &task(&format!("child-{place}"), child, &priority);
            reserves += &task(&format!("of-{place}"), (1, 1_000), "");
            let below = format!("parent = \"parent\"\n{priority}\ntasks = [\"of-{place}\"]");
            reserves += &node(&format!("child-{place}"), "polling", child, &below);
        }
        let tasks = analysed(&(tasks + &outer("tasks = [\"child-0\", \"child-1\"]")));
        let reserves = analysed(&(reserves + &outer("")));
        assert_eq!(completion(&tasks, "parent"), case["parent-completion"].as_integer().map(|it| it as u64));
        for (place, &wanted) in wanted.iter().enumerate() {
            let name = format!("child-{place}");
            assert_eq!(bound(&tasks, &name), Some(wanted), "{name}");
            assert_eq!(completion(&reserves, &name), Some(wanted), "{name}");
        }
    }
}

/// Fact 6.
#[test]
fn the_least_upper_bound_is_the_published_one() {
    for case in golden()["least-upper-bound"].as_array().unwrap() {
        let children = case["children"].as_integer().unwrap() as u32;
        let found = least_upper_bound(case["utilisation"].as_float().unwrap(), children);
        assert!((found - case["bound"].as_float().unwrap()).abs() < 5e-5, "{found} {case}");
    }
}

/// Fact 7: a child that is too large is refused, and nothing changes below the other parent.
#[test]
fn a_child_is_judged_by_its_parent_alone() {
    let facts = &golden()["refusal"];
    let (parents, largest) = (pairs(&facts["parents"]), pair(&facts["largest-child"]));
    let file = |child: (u64, u64)| {
        let mut text = String::new();
        for (place, &parent) in parents.iter().enumerate() {
            let more = format!("order = \"fixed-priority\"\npriority = {}", 9 - place);
            text += &node(&format!("parent-{place}"), "deferrable", parent, &more);
        }
        let children = [
            ("sibling", pair(&facts["sibling"]), 0),
            ("child", child, 0),
            ("other", pair(&facts["other-child"]), 1),
        ];
        for (place, (name, amount, parent)) in children.into_iter().enumerate() {
            text += &task(&format!("{name}-task"), (1, 1_000), "");
            let more =
                format!("parent = \"parent-{parent}\"\npriority = {}\ntasks = [\"{name}-task\"]", 9 - place);
            text += &node(name, "deferrable", amount, &more);
        }
        analysed(&text)
    };
    let (inside, outside) = (file(largest), file((largest.0 + 1, largest.1)));
    let of = |analysis: &Analysis, name: &str| completion(analysis, name);
    assert!(of(&inside, "child").is_some_and(|done| done <= largest.1), "{:?}", inside.servers);
    assert_eq!(of(&outside, "child"), None, "{:?}", outside.servers);
    for name in ["parent-0", "parent-1", "sibling", "other"] {
        assert!(of(&inside, name).is_some());
        assert_eq!(of(&inside, name), of(&outside, name), "{name}");
    }
    assert_eq!(bound(&inside, "other-task"), bound(&outside, "other-task"));
    assert_eq!(bound(&outside, "child-task"), None);
}

/// Two tasks below EDF below a budget of 2 in 5, on top: 3 of work are served within 3 + 5 + 1 = 9.
#[test]
fn deadlines_below_a_budget_are_met_to_the_unit() {
    let verdict = |deadline: u64| {
        let text = task("first", (1, 20), &format!("deadline = \"{deadline} ms\""))
            + &task("second", (2, 20), &format!("deadline = \"{deadline} ms\""))
            + &node(
                "parent",
                "deferrable",
                (2, 5),
                "order = \"edf\"\npriority = 5\ntasks = [\"first\", \"second\"]",
            );
        let analysis = analysed(&text);
        let edf = |task: &horolog_analysis::TaskVerdict| {
            task.tests.iter().find(|test| test.test == "tree-edf").map(|test| test.verdict)
        };
        analysis.tasks.iter().map(edf).collect::<Vec<_>>()
    };
    assert_eq!(verdict(9), [Some(Verdict::Meets); 2]);
    assert_eq!(verdict(8), [Some(Verdict::Unknown); 2]);
}

/// A job of 1 that becomes ready by 3 after its arrival is done by 4, and one that becomes ready at its deadline is late.
#[test]
fn jitter_up_to_the_deadline_is_not_met() {
    let verdict = |deadline: u64| {
        let text = task("late", (1, 20), &format!("jitter = \"3 ms\"\ndeadline = \"{deadline} ms\""))
            + "[[scheduler]]\nname = \"part\"\norder = \"edf\"\npriority = 5\ntasks = [\"late\"]\n";
        let analysis = analysed(&text);
        analysis.tasks[0].tests.iter().find(|test| test.test == "tree-edf").unwrap().verdict
    };
    assert_eq!([2, 3, 4].map(verdict), [Verdict::Unknown, Verdict::Unknown, Verdict::Meets]);
}

/// A budget of 4 below a task of 1 is served within 5: by a deadline of 5, and not of 4.
#[test]
fn a_budget_has_a_deadline() {
    let of = |deadline: u64| {
        analysed(
            &(task("above", (1, 10), "priority = 9")
                + &task("inside", (1, 100), "")
                + &format!(
                    "[[reserve]]\nname = \"reserve\"\nbudget = \"4 ms\"\nperiod = \"10 ms\"\ndeadline = \"{deadline} ms\"\n\
                     priority = 5\ntasks = [\"inside\"]\n"
                )),
        )
    };
    let (inside, outside) = (of(5), of(4));
    assert_eq!((inside.schedulable, inside.servers[0].guaranteed), (Schedulable::Yes, Some(true)));
    assert_eq!((outside.schedulable, outside.servers[0].guaranteed), (Schedulable::Unknown, Some(false)));
    assert!(
        outside.reasons[0].contains("within 5 ms for certain, and its deadline is 4 ms"),
        "{:?}",
        outside.reasons
    );
    assert_eq!(inside.utilisation, Some(0.11));
    assert_eq!(inside.processors[0].utilisation_exact.exact.as_deref(), Some("11/100"));
}

/// Windows of 4 and 2 in a cycle of 10: 3 of work come at the end of the second at the latest.
#[test]
fn windows_serve_to_the_unit() {
    let text = task("first", (2, 40), "priority = 2")
        + &task("second", (3, 40), "priority = 1")
        + &task("other", (1, 40), "")
        + &task("above", (1, 20), "priority = 9")
        + "[[scheduler]]\nname = \"frame\"\norder = \"table\"\npriority = 5\ncycle = \"10 ms\"\ntasks = [\"other\"]\n\
           windows = [{ child = \"part\", from = \"0 ms\", length = \"4 ms\" }, { child = \"other\", from = \"5 ms\", length = \"1 ms\" },\
           { child = \"part\", from = \"8 ms\", length = \"1 ms\" }]\n\
           [[scheduler]]\nname = \"part\"\nparent = \"frame\"\norder = \"fixed-priority\"\ntasks = [\"first\", \"second\"]\n";
    let analysis = analysed(&text);
    // From the end of the first window: 4 until the next, 1 of it, 1 between, 2 of the one after. Of 6 the last comes a cycle later, at its 15.
    assert_eq!(bound(&analysis, "first"), Some(8));
    assert_eq!(bound(&analysis, "second"), Some(15));
    assert_eq!(bound(&analysis, "above"), Some(1));
    // 9 between its windows, and one above in each of two cycles.
    assert_eq!(bound(&analysis, "other"), Some(20));
}

/// What no test knows is said of the rows that it concerns.
#[test]
fn what_is_not_known_is_named() {
    let parent = |more: &str| {
        node("parent", "deferrable", (2, 5), &format!("order = \"fixed-priority\"\npriority = 5\n{more}"))
    };
    let base = task("inside", (1, 20), "priority = 1") + &task("beside", (1, 20), "priority = 5");
    let analysis = analysed(&(base.clone() + &parent("tasks = [\"inside\"]")));
    assert_eq!(bound(&analysis, "inside"), None);
    assert!(analysis.tasks[0].tests[0].note.as_ref().is_some_and(|note| note.contains("the same priority")));
    assert_eq!(bound(&analysis, "beside"), Some(1 + 4));
    let rigid = base.clone() + "preemption = \"non-preemptive\"\n" + &parent("tasks = [\"inside\"]");
    let analysis = analysed(&rigid);
    assert_eq!(analysis.tasks.iter().filter(|task| task.verdict == Verdict::Unknown).count(), 2);
    assert!(analysis.notes[0].contains("`beside` cannot be preempted"), "{:?}", analysis.notes);
}

/// Costs are added: two switches a job and one under way, and what of switching a budget brings each period.
#[test]
fn costs_are_in_the_bounds() {
    let text = |costs: &str| {
        format!("[platform]\ncpus = 1\n{costs}\n")
            + &task("inside", (1, 40), "priority = 1")
            + &node(
                "parent",
                "deferrable",
                (2, 10),
                "order = \"fixed-priority\"\npriority = 5\ntasks = [\"inside\"]",
            )
    };
    assert_eq!(bound(&analysed(&text("")), "inside"), Some(8 + 1));
    // The budget holds two jobs; two stretches more are cut off, and one may be begun and not ended: 5 stretches, 10 switches. Two of
    // the job itself, and one under way at each of the two levels.
    let analysis = analysed(&text("context_switch = \"10 us\""));
    assert_eq!(analysis.tasks[0].response.map(|bound| bound.as_ns()), Some(9_000_000 + 14 * 10_000));
    let late = analysed(&text("release_latency = \"1 ms\""));
    // Both the job and the budget are noticed late.
    assert_eq!(bound(&late, "inside"), Some(8 + 1 + 2));
}

/// One task of the scheduler by units: below which budget, more important first.
#[derive(Clone, Copy, Debug)]
struct Unit {
    period: u64,
    wcet: u64,
    phase: u64,
}

/// A budget on top, in it a smaller one above a task, by units of time; the longest response of each task.
struct TwoLevels {
    outer: (u64, u64),
    inner: (u64, u64),
    polls: (bool, bool),
    above: Option<Unit>,
    first: Unit,
    second: Unit,
}

impl TwoLevels {
    fn run(&self, end: u64) -> [u64; 2] {
        let (mut outer, mut inner, mut worst) = (0, 0, [0; 2]);
        let mut left: [Vec<(u64, u64)>; 3] = Default::default(); // (arrival, rest): above, first (below inner), second
        for now in 0..end {
            let units = [self.above, Some(self.first), Some(self.second)];
            for (jobs, unit) in left.iter_mut().zip(units) {
                if let Some(unit) =
                    unit.filter(|unit| now >= unit.phase && (now - unit.phase) % unit.period == 0)
                {
                    jobs.push((now, unit.wcet));
                }
            }
            // Budgets come back; a poll finds work or loses it, the inner one first.
            if now % self.inner.1 == 0 {
                inner = if self.polls.1 && left[1].is_empty() { 0 } else { self.inner.0 };
            }
            let has_work = |inner: u64, left: &[Vec<(u64, u64)>; 3]| {
                (inner > 0 && !left[1].is_empty()) || !left[2].is_empty()
            };
            if now % self.outer.1 == 0 {
                outer = if self.polls.0 && !has_work(inner, &left) { 0 } else { self.outer.0 };
            }
            let chosen = if !left[0].is_empty() {
                0
            } else if outer > 0 && inner > 0 && !left[1].is_empty() {
                1
            } else if outer > 0 && !left[2].is_empty() {
                2
            } else {
                continue;
            };
            left[chosen][0].1 -= 1;
            outer -= u64::from(chosen > 0);
            inner -= u64::from(chosen == 1);
            if left[chosen][0].1 == 0 {
                let (arrival, _) = left[chosen].remove(0);
                if chosen > 0 {
                    worst[chosen - 1] = worst[chosen - 1].max(now + 1 - arrival);
                }
            }
            if self.polls.1 && left[1].is_empty() {
                inner = 0;
            }
            if self.polls.0 && !has_work(inner, &left) {
                outer = 0;
            }
        }
        worst
    }

    fn file(&self) -> String {
        let word = |polls: bool| if polls { "polling" } else { "deferrable" };
        let of = |unit: Unit| (unit.wcet, unit.period);
        let above = self.above.map_or_else(String::new, |unit| task("above", of(unit), "priority = 9"));
        above
            + &task("first", of(self.first), "priority = 1\ndeadline = \"500 ms\"")
            + &task("second", of(self.second), "priority = 1\ndeadline = \"500 ms\"")
            + &node(
                "outer",
                word(self.polls.0),
                self.outer,
                "order = \"fixed-priority\"\npriority = 5\ntasks = [\"second\"]",
            )
            + &node(
                "inner",
                word(self.polls.1),
                self.inner,
                "parent = \"outer\"\norder = \"fixed-priority\"\npriority = 7\ntasks = [\"first\"]",
            )
    }
}

/// Every phase of every task of small systems: no response is above a bound, and many are equal.
#[test]
fn no_phase_exceeds_a_bound() {
    let (mut compared, mut reached) = ([0; 2], [0; 2]);
    for index in 0..200 {
        let mut random = Random::of_item(77, index);
        let unit = |random: &mut Random, least: u64| {
            let period = random.between(least, least + 6);
            Unit { period, wcet: random.between(1, 2), phase: 0 }
        };
        let outer = random.between(3, 5);
        let inner = random.between(outer, 2 * outer);
        let mut system = TwoLevels {
            outer: (random.between(1, outer - 1), outer),
            inner: (random.between(1, 2), inner),
            polls: (random.below(2) == 0, random.below(2) == 0),
            above: (random.below(2) == 0).then(|| unit(&mut random, 5)),
            // Where the first always has something left it uses up all that it may.
            first: if index % 2 == 0 { unit(&mut random, 8) } else { unit(&mut random, 2) },
            second: unit(&mut random, if index % 4 == 0 { 2 } else { 8 }),
        };
        let analysis = analysed(&system.file());
        let bounds = [bound(&analysis, "first"), bound(&analysis, "second")];
        if bounds == [None, None] {
            continue;
        }
        let mut worst = [0; 2];
        let shifts = system.above.map_or(1, |unit| unit.period);
        for above in 0..shifts {
            for first in 0..system.first.period {
                for second in 0..system.second.period {
                    system.above = system.above.map(|unit| Unit { phase: above, ..unit });
                    system.first.phase = first;
                    system.second.phase = second;
                    let found = system.run(150);
                    worst = [worst[0].max(found[0]), worst[1].max(found[1])];
                }
            }
        }
        for place in 0..2 {
            let Some(bound) = bounds[place] else { continue };
            assert!(worst[place] <= bound, "{place}: {} above {bound}\n{}", worst[place], system.file());
            compared[place] += 1;
            reached[place] += u32::from(worst[place] == bound);
        }
    }
    assert!(compared[0] > 15 && compared[1] > 15, "{compared:?}");
    assert!(reached[1] > 0, "{reached:?} of {compared:?}");
}

/// A chain of so many schedulers, one below the other, and a task below the last.
fn chain(depth: usize) -> Analysis {
    let mut text = task("t", (1, 100), "priority = 1");
    for place in 0..depth {
        let above = if place == 0 { String::new() } else { format!("parent = \"s{}\"\n", place - 1) };
        let tasks = if place + 1 == depth { "tasks = [\"t\"]\n" } else { "" };
        text += &format!(
            "[[scheduler]]\nname = \"s{place}\"\norder = \"fixed-priority\"\npriority = 1\n{above}{tasks}"
        );
    }
    analysed(&text)
}

#[test]
fn what_is_deeper_than_the_limit_is_not_known() {
    assert_eq!(bound(&chain(64), "t"), Some(1));
    let deeper = chain(65);
    assert_eq!((bound(&deeper, "t"), deeper.schedulable), (None, Schedulable::Unknown));
}
