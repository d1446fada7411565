//! Trees of schedulers and clusters: what a file says of them, how it is printed, and what is refused of drafts.

use horolog_model::{
    Capacity, CpuId, Enforcement, LowPriority, Order, Parent, Policy, Priority, Server, ServerId, ServerKind,
    System, TaskId, file,
};
use horolog_time::Span;

const FILE: &str = r#"
[system]
name = "a tree and a cluster"
[platform]
cpus = 4
[[task]]
name = "control"
cpu = 0
period = "10 ms"
wcet = "1 ms"
priority = 90
[[task]]
name = "detect"
cpu = 0
period = "20 ms"
wcet = "1 ms"
priority = 4
preemption = "non-preemptive"
[[task]]
name = "filter"
cpu = 0
period = "20 ms"
wcet = "1 ms"
[[task]]
name = "logger"
cpu = 0
period = "20 ms"
wcet = "1 ms"
[[task]]
name = "request"
cpu = 0
period = "20 ms"
wcet = "1 ms"
[[task]]
name = "x"
period = "20 ms"
wcet = "1 ms"
[[task]]
name = "y"
period = "20 ms"
wcet = "1 ms"
preemption = "non-preemptive"
[[scheduler]]
name = "logs"
parent = "filters"
tasks = ["logger"]
[[server]]
name = "events"
kind = "background"
cpu = 0
tasks = ["request"]
[[scheduler]]
name = "filters"
parent = "vision"
order = "edf"
priority = 3
tasks = ["filter"]
[[scheduler]]
name = "vision"
cpu = 0
order = "fixed-priority"
kind = "deferrable"
budget = "4 ms"
period = "10 ms"
priority = 50
low_priority = "none"
tasks = ["detect"]
[[scheduler]]
name = "pair"
cpus = [2, 3]
order = "edf"
tasks = ["x", "y"]
"#;

fn read(sets: &[&str]) -> Result<System, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    file::read(FILE, "tree.toml", &sets).map(|(system, _)| system).map_err(|errors| errors.to_string())
}

fn ms(ms: u64) -> Span {
    Span::from_ns(ms * 1_000_000)
}

#[test]
fn a_checked_system_knows_its_trees() {
    let system = read(&[]).expect("valid");
    let names: Vec<&str> = system.servers().iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["logs", "events", "filters", "vision"], "the order of the file");
    let id = |name: &str| system.find_server(name).expect("there");
    let parent = |name: &str| system.parent_of(id(name));
    assert_eq!(parent("logs"), Parent::Scheduler(id("filters")));
    assert_eq!(parent("filters"), Parent::Scheduler(id("vision")));
    assert_eq!((parent("vision"), parent("events")), (Parent::Root, Parent::Root));
    assert!(system.servers().iter().all(|server| server.cpu == CpuId(0)), "inherited through two levels");
    let vision = system.server(id("vision"));
    assert_eq!(vision.kind.low_priority(), Some(LowPriority::None));
    assert_eq!(vision.kind.capacity(), Some(Capacity { budget: ms(4), period: ms(10) }));
    assert_eq!(system.server(id("logs")).kind, ServerKind::Plain { priority: None });

    let task = |name: &str| system.find_task(name).expect("there");
    assert_eq!(system.scheduler_of(task("control")), None);
    assert_eq!(system.scheduler_of(task("detect")), Some(id("vision")));
    assert_eq!(system.server_of(task("detect")), None, "it is not served first in, first out");
    assert_eq!(system.server_of(task("logger")), Some(id("logs")));
    let orders = ["control", "detect", "filter", "logger", "x"].map(|name| system.order_above(task(name)));
    assert_eq!(orders, [Order::FixedPriority, Order::FixedPriority, Order::Edf, Order::Fifo, Order::Edf]);
    let below: Vec<TaskId> = system.tasks_below(id("vision")).map(|(id, _)| id).collect();
    assert_eq!(below, [task("detect")]);

    assert_eq!(system.cluster_of(task("y")), Some(0));
    assert_eq!(system.cluster_of(task("filter")), None);
    assert_eq!(system.task(task("y")).cpu, CpuId(2), "the first of its cluster");
    assert_eq!(system.clusters()[0].cpus, [CpuId(2), CpuId(3)]);
    assert_eq!(system.first_beyond_servers().as_deref(), Some("scheduler.logs"));
}

#[test]
fn deadlines_are_soft_below_first_in_first_out_alone() {
    let system = read(&[]).expect("valid");
    let deadline = |name: &str| system.task(system.find_task(name).expect("there")).deadline;
    assert_eq!((deadline("logger"), deadline("request")), (None, None));
    let hard = ["detect", "filter", "x"].map(deadline);
    assert_eq!(hard, [Some(ms(20)); 3], "the period, as of every other task");
}

#[test]
fn a_tree_prints_as_it_reads() {
    let system = read(&[]).expect("valid");
    let printed = file::print(&system);
    assert_eq!(printed.matches("[[scheduler]]").count(), 4);
    assert_eq!(printed.matches("[[server]]").count(), 1);
    assert!(printed.contains("cpus = [2, 3]"), "{printed}");
    let x = printed.split("[[task]]").find(|text| text.contains("name = \"x\"")).expect("printed");
    assert!(!x.contains("cpu"), "a task of a cluster gives none: {x}");
    assert_eq!(file::read(&printed, "printed", &[]).expect("reads back").0, system);
}

#[test]
fn a_server_is_the_short_form_of_a_scheduler() {
    let text = FILE.replace(
        "kind = \"background\"",
        "kind = \"sporadic\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 2",
    );
    let (system, _) = file::read(&text, "tree.toml", &[]).expect("valid");
    let long = file::print_expanded(&system);
    assert!(!long.contains("[[server]]") && long.contains("order = \"fifo\"\nkind = \"sporadic\""), "{long}");
    assert_eq!(file::read(&long, "long", &[]).expect("reads back").0, system);
    // A background server has no long form.
    let system = read(&[]).expect("valid");
    assert!(file::print_expanded(&system).contains("[[server]]\nname = \"events\""));
}

#[test]
fn priorities_go_by_the_order_above_and_not_by_the_policy() {
    let edf = ["system.policy=edf", "scheduler.vision.kind=constant-bandwidth"];
    let text = FILE
        .replace("[system]", "[system]\npolicy = \"edf\"")
        .replace("wcet = \"1 ms\"\npriority = 90", "wcet = \"1 ms\"")
        .replace("kind = \"deferrable\"", "kind = \"constant-bandwidth\"")
        .replace("priority = 50\nlow_priority = \"none\"\n", "");
    let (system, _) = file::read(&text, "edf.toml", &[]).expect("valid");
    assert_eq!(system.policy(), Policy::Edf);
    assert_eq!(system.tasks()[1].priority, Some(Priority::new(4)), "below fixed priorities");
    let said = read(&edf).expect_err("the root orders by deadline");
    assert!(said.contains("under EDF a task has no priority"), "{said}");
    assert!(said.contains("a constant-bandwidth scheduler has no `low_priority`"), "{said}");
    let said = read(&["task.filter.priority=3"]).expect_err("below EDF");
    assert!(said.contains("or use `order = \"fixed-priority\"` for `filters`"), "{said}");
    let said = read(&["scheduler.vision.order=edf"]).expect_err("its child has a priority");
    assert!(said.contains("under EDF a scheduler has no priority"), "{said}");
}

#[test]
fn overrides_reach_schedulers() {
    let system = read(&[
        "scheduler.vision.budget=3ms",
        "scheduler.pair.order=fixed-priority",
        "task.x.priority=1",
        "task.y.priority=2",
    ])
    .expect("valid");
    let vision = system.find_server("vision").expect("there");
    assert_eq!(system.server(vision).kind.capacity().map(|it| it.budget), Some(ms(3)));
    assert_eq!(system.clusters()[0].order, Order::FixedPriority);
    let said = read(&["scheduler.visio.budget=3ms"]).expect_err("no such scheduler");
    assert!(said.contains("no scheduler is called `visio`"), "{said}");
    let said = read(&["scheduler.vision=3ms"]).expect_err("a whole scheduler");
    assert!(said.contains("the path names a whole scheduler"), "{said}");
}

/// The errors of the file's draft after one change, as `path: reason`.
fn errors(change: impl FnOnce(&mut horolog_model::Draft)) -> Vec<String> {
    let mut draft = read(&[]).expect("valid").to_draft();
    change(&mut draft);
    match System::new(draft) {
        Ok(system) => panic!("no rule is broken in {system:?}"),
        Err(errors) => errors.into_iter().map(|error| format!("{}: {}", error.at, error.reason)).collect(),
    }
}

#[test]
fn drafts_that_no_file_can_say_are_refused() {
    let events = ServerId(1).index();
    assert_eq!(
        errors(|draft| {
            draft.servers[events].order = Order::Edf;
            draft.tasks[4].deadline = Some(ms(20));
        }),
        [
            "scheduler.events.kind: a background server stands below the root of its CPU, and serves first in, first out"
        ]
    );
    let capacity = Capacity { budget: ms(1), period: ms(10) };
    let enforcement = Enforcement::Kernel { latency: Span::ZERO };
    let found = errors(|draft| {
        draft.servers[0].kind = ServerKind::ConstantBandwidth { capacity, enforcement };
    });
    assert!(
        found[0].starts_with("scheduler.logs.kind: a constant-bandwidth server stands below the root"),
        "{found:?}"
    );
    assert_eq!(
        errors(|draft| draft.tasks[5].cpu = CpuId(3)),
        ["task.x.cpu: a task of the cluster `pair` is on CPU 3 in the model"]
    );
    assert_eq!(
        errors(|draft| draft.servers[2].cpu = CpuId(1)),
        [
            "scheduler.logs.cpu: the scheduler is on CPU 0 and its parent on CPU 1",
            "scheduler.filters.cpu: the scheduler is on CPU 1 and its parent on CPU 0",
            "scheduler.filters.tasks.#1: the scheduler is on CPU 1 and its task `filter` on CPU 0",
        ]
    );
}

#[test]
fn names_are_one_space() {
    assert_eq!(
        errors(|draft| draft.clusters[0].name = "events".to_owned()),
        ["scheduler.events.name: two schedulers are called `events`"]
    );
    assert_eq!(
        errors(|draft| {
            let twin = Server { parent: None, ..draft.servers[3].clone() };
            draft.servers.push(Server { tasks: Vec::new(), order: Order::Fifo, ..twin });
        }),
        [
            "server.vision.name: two schedulers are called `vision`",
            "server.vision.tasks: the server serves nobody"
        ]
    );
}

#[test]
fn circles_are_told_once_each() {
    let found = errors(|draft| {
        draft.servers[3].parent = Some("filters".to_owned());
        draft.servers[3].kind = ServerKind::Plain { priority: None };
    });
    assert_eq!(
        found,
        ["scheduler.filters.parent: `filters` stands below itself: `filters`, `vision`, `filters`"]
    );
    let found = errors(|draft| draft.servers[2].parent = Some("filters".to_owned()));
    assert!(
        found.contains(
            &"scheduler.filters.parent: `filters` stands below itself: `filters`, `filters`".to_owned()
        ),
        "{found:?}"
    );
}

/// A chain of thousands of schedulers is read, and a circle of as many refused, without trouble.
#[test]
fn deep_trees_end() {
    let count = 5_000;
    let head = "[system]\nname = \"deep\"\npolicy = \"edf\"\n[platform]\ncpus = 2\n[[task]]\nname = \"t\"\ncpu = 0\nperiod = \"1 s\"\nwcet = \"1 ms\"\n";
    let chain: String = (1..count)
        .map(|i| format!("[[scheduler]]\nname = \"s{i}\"\nparent = \"s{}\"\norder = \"edf\"\n", i - 1))
        .collect();
    let top = "[[scheduler]]\nname = \"s0\"\ncpu = 0\norder = \"edf\"\n";
    let last = format!("[[scheduler]]\nname = \"end\"\nparent = \"s{}\"\ntasks = [\"t\"]\n", count - 1);
    let (system, _) = file::read(&format!("{head}{chain}{last}{top}"), "deep.toml", &[]).expect("valid");
    assert_eq!(system.servers().len(), count + 1);
    let round = "[[scheduler]]\nname = \"s0\"\nparent = \"end\"\ncpu = 0\norder = \"edf\"\n";
    let errors = file::read(&format!("{head}{chain}{last}{round}"), "deep.toml", &[]).expect_err("a circle");
    assert!(errors.to_string().contains("stands below itself"), "{errors}");
}

const CLUSTER: &str = "[system]\nname = \"x\"\npolicy = \"edf\"\n[platform]\ncpus = 3\n\
    [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n\
    [[task]]\nname = \"b\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n\
    [[task]]\nname = \"alone\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"2 ms\"\n";

/// `[[cluster]]` is the short form of a `[[scheduler]]` with `cpus`.
#[test]
fn a_cluster_is_the_short_form_of_a_root_over_several_processors() {
    let root = "name = \"pair\"\ncpus = [1, 2]\norder = \"edf\"\ntasks = [\"a\", \"b\"]\n";
    let of = |header: &str| file::read(&format!("{CLUSTER}{header}\n{root}"), "x.toml", &[]);
    let (short, _) = of("[[cluster]]").expect("a good file");
    let (long, _) = of("[[scheduler]]").expect("a good file");
    assert_eq!(short, long);
    assert_eq!(short.first_beyond_servers().as_deref(), Some("scheduler.pair"));
    assert_eq!(short.first_beyond_clusters(), None);
    let printed = file::print(&short);
    assert!(printed.contains("[[scheduler]]") && !printed.contains("[[cluster]]"), "{printed}");
}

#[test]
fn a_cluster_that_is_wrong_has_its_place_and_the_remedy() {
    let said = |lines: &str| {
        let text = format!("{CLUSTER}[[cluster]]\n{lines}");
        file::read(&text, "x.toml", &[]).expect_err("a bad file").to_string()
    };
    let cases = [
        ("name = \"p\"\norder = \"edf\"\ntasks = [\"a\", \"b\"]\n", "cpus"),
        ("name = \"p\"\ncpus = [1, 2]\ntasks = [\"a\", \"b\"]\n", "order"),
        ("name = \"p\"\ncpus = [1, 2]\norder = \"fifo\"\ntasks = [\"a\", \"b\"]\n", "fixed-priority"),
        ("name = \"p\"\ncpus = [1]\norder = \"edf\"\ntasks = [\"a\", \"b\"]\n", "at least two processors"),
        ("name = \"p\"\ncpus = [0, 1]\norder = \"edf\"\ntasks = [\"a\", \"b\"]\n", "belongs to `p`"),
        (
            "name = \"p\"\ncpus = [1, 2]\norder = \"edf\"\ntasks = [\"a\", \"b\", \"c\"]\n",
            "there is no task `c`",
        ),
        (
            "name = \"p\"\ncpus = [1, 2]\norder = \"edf\"\ntasks = [\"a\", \"b\"]\nbudget = \"1 ms\"\n",
            "budget",
        ),
    ];
    for (lines, part) in cases {
        let text = said(lines);
        assert!(text.contains(part) && text.contains("x.toml:"), "{lines}: {text}");
    }
}

const RESERVES: &str = "[system]\nname = \"x\"\n[platform]\ncpus = 1\n\
    [[task]]\nname = \"beside\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 7\n\
    [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 2\n\
    [[task]]\nname = \"b\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n\
    [[task]]\nname = \"c\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n";

/// `[[reserve]]` is the short form of a `[[scheduler]]` with a budget. Without priorities the shorter deadline is the more important, above
/// all that gives one.
#[test]
fn a_reserve_is_the_short_form_of_a_scheduler_with_a_budget() {
    let short = "[[reserve]]\nname = \"outer\"\nbudget = \"4 ms\"\nperiod = \"10 ms\"\ndeadline = \"8 ms\"\norder = \"fixed-priority\"\ntasks = [\"a\"]\n\
        [[reserve]]\nname = \"inner\"\nparent = \"outer\"\nbudget = \"1 ms\"\nperiod = \"20 ms\"\ntype = \"firm\"\nreplenishment = \"sporadic\"\ntasks = [\"b\"]\n\
        [[reserve]]\nname = \"urgent\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\ndeadline = \"2 ms\"\ntype = \"soft\"\nband = 7\nreplenishment = \"fixed-period\"\n\
        tasks = [\"c\"]\n";
    let long = "[[scheduler]]\nname = \"outer\"\nkind = \"deferrable\"\nbudget = \"4 ms\"\nperiod = \"10 ms\"\ndeadline = \"8 ms\"\norder = \"fixed-priority\"\n\
        priority = 8\nlow_priority = \"none\"\ntasks = [\"a\"]\n\
        [[scheduler]]\nname = \"inner\"\nparent = \"outer\"\nkind = \"sporadic\"\nbudget = \"1 ms\"\nperiod = \"20 ms\"\ndeadline = \"20 ms\"\npriority = 3\n\
        low_priority = \"background\"\ntasks = [\"b\"]\n\
        [[scheduler]]\nname = \"urgent\"\nkind = \"polling\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\ndeadline = \"2 ms\"\npriority = 9\nlow_priority = 7\n\
        tasks = [\"c\"]\n";
    let of = |text: &str| file::read(&format!("{RESERVES}{text}"), "x.toml", &[]).expect("a good file").0;
    let (short, long) = (of(short), of(long));
    assert_eq!(short, long);
    let printed = file::print(&short);
    assert!(
        !printed.contains("[[reserve]]") && printed.matches("deadline = \"20 ms\"").count() == 1,
        "{printed}"
    );
    assert_eq!(file::read(&printed, "printed.toml", &[]).expect("a good file").0, short);
}

#[test]
fn a_reserve_that_is_wrong_has_its_place_and_the_remedy() {
    let said = |more: &str| {
        let text = format!(
            "{RESERVES}[[reserve]]\nname = \"r\"\nbudget = \"2 ms\"\nperiod = \"10 ms\"\ntasks = [\"b\", \"c\"]\n{more}\n\
            [[scheduler]]\nname = \"o\"\norder = \"fixed-priority\"\npriority = 3\ntasks = [\"a\"]\n"
        );
        file::read(&text, "x.toml", &[]).expect_err("a bad file").to_string()
    };
    let cases = [
        ("type = \"soft\"", "needs a `band`"),
        ("type = \"firm\"\nband = 3", "only a soft reserve"),
        ("deadline = \"11 ms\"", "above the period 10 ms"),
        ("deadline = \"1 ms\"", "below the budget 2 ms"),
        ("replenishment = \"lazy\"", "fixed-period"),
        ("kind = \"polling\"", "`kind`"),
        ("parent = \"nobody\"", "there is no scheduler `nobody`"),
        ("priority = 2\ntype = \"soft\"\nband = 2", "not below the priority"),
    ];
    for (more, reason) in cases {
        let found = said(more);
        assert!(found.contains(reason), "{more}: {found}");
    }
}
