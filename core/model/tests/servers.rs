//! Every rule of servers, broken one at a time in a draft built in code; and what a checked system tells about them.

use horolog_model::{
    Arrival, Capacity, CpuId, Cpus, Draft, Enforcement, ExecutionTimes, Gain, Interference, Interrupt,
    LowPriority, OverrunPolicy, Policy, Preemption, Priority, PriorityAssignment, Server, ServerId,
    ServerKind, SporadicRules, System, Task, TaskId, Throttling, file,
};
use horolog_time::Span;

fn ms(ms: u64) -> Span {
    Span::from_ns(ms * 1_000_000)
}

fn task(name: &str, priority: Option<i64>) -> Task {
    Task {
        name: name.to_owned(),
        arrival: Arrival::Periodic { period: ms(10) },
        deadline: priority.map(|_| ms(10)),
        wcet: ms(2),
        bcet: ms(2),
        offset: None,
        jitter: Span::ZERO,
        priority: priority.map(Priority::new),
        cpu: CpuId(0),
        preemption: Preemption::Preemptive,
        overrun: OverrunPolicy::Count,
        execution: ExecutionTimes::Wcet,
        criticality: None,
        promotion: None,
        sections: Vec::new(),
        is_soft: false,
        body: None,
    }
}

fn capacity(budget: u64, period: u64) -> Capacity {
    Capacity { budget: ms(budget), period: ms(period) }
}

fn sporadic() -> ServerKind {
    ServerKind::Sporadic {
        capacity: capacity(2, 10),
        priority: Priority::new(9),
        low_priority: LowPriority::Background,
        max_replenishments: 4,
        rules: SporadicRules::Corrected,
    }
}

/// Two hard tasks and two soft ones below a sporadic server.
fn draft() -> Draft {
    let server = Server::new("s", vec!["x".to_owned(), "y".to_owned()], CpuId(0), sporadic());
    Draft {
        name: "system".to_owned(),
        tasks: vec![task("a", Some(2)), task("x", None), task("b", Some(1)), task("y", None)],
        servers: vec![server],
        ..Draft::default()
    }
}

/// Asserts that exactly these rules are broken, as `path: reason`.
#[track_caller]
fn breaks(expected: &[&str], change: impl FnOnce(&mut Draft)) {
    let mut draft = draft();
    change(&mut draft);
    match System::new(draft) {
        Ok(system) => panic!("no rule is broken in {system:?}"),
        Err(errors) => {
            assert!(errors.iter().all(|error| !error.remedy.is_empty()), "{errors:?}");
            let found: Vec<String> =
                errors.into_iter().map(|error| format!("{}: {}", error.at, error.reason)).collect();
            assert_eq!(found, expected);
        }
    }
}

fn kind(kind: ServerKind) -> impl FnOnce(&mut Draft) {
    move |d| d.servers[0].kind = kind
}

#[test]
fn a_checked_system_knows_who_serves_whom() {
    let system = System::new(draft()).expect("valid");
    let server = system.find_server("s").expect("there");
    assert_eq!(server, ServerId(0));
    assert_eq!(system.server_of(TaskId(0)), None);
    assert_eq!(system.server_of(TaskId(3)), Some(server));
    assert!(system.is_served(TaskId(1)) && !system.is_served(TaskId(2)));
    let served: Vec<TaskId> = system.served_tasks(server).map(|(id, _)| id).collect();
    assert_eq!(served, [TaskId(1), TaskId(3)]);
    assert_eq!(system.hard_tasks_on(CpuId(0)).count(), 2);
    assert_eq!(system.servers_on(CpuId(0)).count(), 1);
    assert_eq!(system.server(server).kind.word(), "sporadic");
    let resolved = system.with_explicit_priorities(&[Priority::new(5); 4]).expect("one a task");
    assert_eq!(resolved.tasks()[0].priority, Some(Priority::new(5)));
    assert_eq!(resolved.tasks()[1].priority, None, "a served task has none");
}

#[test]
fn who_is_served() {
    breaks(&["server.s.tasks: the server serves nobody"], |d| {
        d.servers[0].tasks.clear();
        d.tasks.truncate(1);
    });
    breaks(&["server.s.tasks.#3: there is no task `z` to serve"], |d| d.servers[0].tasks.push("z".into()));
    breaks(&["server.s.tasks.#3: the task `x` is served twice"], |d| d.servers[0].tasks.push("x".into()));
    breaks(&["server.t.tasks.#1: the task `y` is served twice"], |d| {
        let tasks = vec!["y".to_owned()];
        d.servers.push(Server { name: "t".into(), tasks, ..d.servers[0].clone() });
    });
    breaks(&["task.a.priority: the server `s` serves this task at its own priority"], |d| {
        d.servers[0].tasks.push("a".into())
    });
    breaks(
        &[
            "task.x.preemption: the server `s` serves this task, and takes the processor away when its budget ends",
        ],
        |d| d.tasks[1].preemption = Preemption::NonPreemptive,
    );
    breaks(&["server.s.tasks.#2: the server is on CPU 0 and its task `y` on CPU 1"], |d| {
        d.platform.cpus = Cpus::Count(2);
        d.tasks[3].cpu = CpuId(1);
    });
    breaks(&["task.x.priority: under fixed priorities a task needs a `priority`"], |d| {
        d.servers[0].tasks.remove(0);
        d.tasks[1].deadline = Some(ms(10));
    });
    breaks(&["task.x.deadline: a periodic or sporadic task has a deadline"], |d| {
        d.servers[0].tasks.remove(0);
        d.tasks[1].priority = Some(Priority::new(1));
    });
}

#[test]
fn names_and_processors() {
    breaks(&["server.#1.name: the name is empty"], |d| d.servers[0].name.clear());
    breaks(&["server.#2.name: two servers are called `s`"], |d| {
        let tasks = vec![d.servers[0].tasks.remove(0)];
        d.servers.push(Server { tasks, ..d.servers[0].clone() });
    });
    breaks(
        &[
            "server.s.cpu: CPU 3 is not among the platform's CPUs",
            "server.s.tasks.#1: the server is on CPU 3 and its task `x` on CPU 0",
            "server.s.tasks.#2: the server is on CPU 3 and its task `y` on CPU 0",
        ],
        |d| d.servers[0].cpu = CpuId(3),
    );
}

#[test]
fn budgets_and_places() {
    breaks(&["server.s.budget: the budget is zero"], kind(sporadic().with_capacity(capacity(0, 10))));
    breaks(
        &["server.s.budget: the budget 11 ms is above the period 10 ms"],
        kind(sporadic().with_capacity(capacity(11, 10))),
    );
    breaks(
        &["server.s.budget: the budget is zero", "server.s.period: the period is zero"],
        kind(sporadic().with_capacity(capacity(0, 0))),
    );
    let low = |number| ServerKind::Deferrable {
        capacity: capacity(2, 10),
        priority: Priority::new(9),
        low_priority: LowPriority::At(Priority::new(number)),
    };
    breaks(&["server.s.low_priority: the low priority 9 is not below the priority 9"], kind(low(9)));
    let mut draft = draft();
    draft.servers[0].kind = low(8);
    assert!(System::new(draft).is_ok());
    let replenishments = |max_replenishments| ServerKind::Sporadic {
        capacity: capacity(2, 10),
        priority: Priority::new(9),
        low_priority: LowPriority::None,
        max_replenishments,
        rules: SporadicRules::Posix,
    };
    breaks(
        &["server.s.max_replenishments: without a replenishment the budget never comes back"],
        kind(replenishments(0)),
    );
    breaks(
        &["server.s.max_replenishments: 1025 replenishments are more than a server can keep"],
        kind(replenishments(1025)),
    );
}

#[test]
fn kinds_and_policies() {
    breaks(
        &["server.s.kind: a constant-bandwidth server has a deadline, which fixed priorities do not look at"],
        kind(ServerKind::ConstantBandwidth { capacity: capacity(2, 10), enforcement: Enforcement::Own }),
    );
    breaks(
        &["server.s.kind: a total-bandwidth server has a deadline, which fixed priorities do not look at"],
        kind(ServerKind::TotalBandwidth { capacity: capacity(2, 10) }),
    );
    breaks(&["server.s.kind: a sporadic server needs fixed priorities"], |d| {
        d.policy = Policy::Edf;
        d.tasks.iter_mut().for_each(|task| task.priority = None);
    });
    breaks(&["server.s.priority: the assignment `deadline-monotonic` places no servers"], |d| {
        d.priorities = PriorityAssignment::DeadlineMonotonic;
        d.tasks.iter_mut().for_each(|task| task.priority = None);
    });
    breaks(
        &[
            "server.s.gain: slack stealing has no self gain: hard jobs have one place only while there is no slack",
        ],
        kind(ServerKind::SlackStealing { gain: Gain::Both }),
    );
    let mut edf = draft();
    edf.policy = Policy::Edf;
    edf.tasks.iter_mut().for_each(|task| task.priority = None);
    edf.servers[0].kind =
        ServerKind::ConstantBandwidth { capacity: capacity(2, 10), enforcement: Enforcement::Own };
    assert!(System::new(edf.clone()).is_ok());
    edf.servers[0].kind = ServerKind::TotalBandwidth { capacity: capacity(2, 10) };
    assert!(System::new(edf.clone()).is_ok());
    edf.servers[0].kind = ServerKind::Background;
    assert!(System::new(edf).is_ok());
}

#[test]
fn what_the_kernel_serves_is_the_topmost_and_one_thread() {
    fn kernels() -> ServerKind {
        let enforcement = Enforcement::Kernel { latency: ms(4) };
        ServerKind::ConstantBandwidth { capacity: capacity(2, 10), enforcement }
    }
    fn interrupt(cpu: CpuId) -> Interrupt {
        let name = "nic".to_owned();
        Interrupt { name, cpu, separation: ms(2), cost: ms(1), throttling: Throttling::None }
    }
    fn alone(draft: &mut Draft) {
        draft.servers[0].kind = kernels();
        draft.servers[0].tasks.truncate(1);
        draft.tasks.truncate(3);
    }
    for policy in [Policy::FixedPriority, Policy::Edf] {
        let mut draft = draft();
        alone(&mut draft);
        if policy == Policy::Edf {
            draft.policy = policy;
            draft.tasks.iter_mut().for_each(|task| task.priority = None);
        }
        let system = System::new(draft).expect("it needs no policy of its own");
        let kind = system.servers()[0].kind;
        assert!(kind.is_kernels() && kind.priority().is_none());
        assert_eq!(kind.with_capacity(capacity(1, 5)).enforcement(), kind.enforcement());
    }
    breaks(
        &["server.s.enforcement: interrupts and softirqs of CPU 0 come before what the kernel serves"],
        |d| {
            alone(d);
            d.interrupts.push(interrupt(CpuId(0)));
        },
    );
    let mut elsewhere = draft();
    alone(&mut elsewhere);
    elsewhere.platform.cpus = Cpus::Count(2);
    elsewhere.interrupts.push(interrupt(CpuId(1)));
    System::new(elsewhere).expect("interrupts of another CPU are not in its way");
    breaks(&["server.s.tasks: the kernel's reservation is for one thread, so for one task"], kind(kernels()));
    breaks(
        &[
            "server.t.enforcement: the kernel orders this server and `s` by their deadlines, so neither is the topmost",
        ],
        |d| {
            let tasks = vec![d.servers[0].tasks.remove(1)];
            d.servers[0].kind = kernels();
            d.servers.push(Server::new("t", tasks, CpuId(0), kernels()));
        },
    );
    breaks(
        &[
            "task.b.cpu: the kernel does not pin the thread of server `s`, so it may preempt this task on CPU 1 too",
        ],
        |d| {
            alone(d);
            d.platform.cpus = Cpus::Count(2);
            d.tasks[2].cpu = CpuId(1);
        },
    );
    breaks(&["task.a.preemption: the kernel preempts this task for server `s` wherever it is"], |d| {
        alone(d);
        d.tasks[0].preemption = Preemption::NonPreemptive;
    });
}

#[test]
fn who_keeps_the_budget_is_read_and_printed() {
    let kernels = |rest: &str| {
        let text = FILE.replace("priority = 9", rest).replace("\"sporadic\"", "\"constant-bandwidth\"");
        let text = text.replace("[\"request\", \"logger\"]", "[\"request\"]");
        let text = text.replace("arrivals = [\"3 ms\"]", "period = \"50 ms\"\npriority = 1");
        file::read(&text, "served.toml", &[]).map(|(system, _)| system).map_err(|errors| errors.to_string())
    };
    let system = kernels("enforcement = \"kernel\"\nenforcement_latency = \"4 ms\"").expect("valid");
    assert_eq!(system.servers()[0].kind.enforcement(), Some(Enforcement::Kernel { latency: ms(4) }));
    let (again, _) = file::read(&file::print(&system), "printed.toml", &[]).expect("printed right");
    assert_eq!(again, system);
    let says = |rest: &str, expected: &str| {
        let errors = kernels(rest).expect_err("invalid");
        assert!(errors.contains(expected), "{errors}");
    };
    says("enforcement = \"kernel\"", "needs an `enforcement_latency`");
    says("enforcement_latency = \"4 ms\"", "only the kernel has an enforcement latency here");
    says("enforcement = \"own\"\nenforcement_latency = \"4 ms\"", "only the kernel");
    says("enforcement = \"both\"", "not a word that is known here");
    says("enforcement = \"own\"", "fixed priorities do not look at");
}

#[test]
fn promotion_times_are_for_hard_tasks_beside_dual_priority() {
    let text = |of_hard: &str, of_soft: &str, kind: &str| {
        let head = "[system]\nname = \"promoted\"\n[[task]]\nname = \"hard\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n";
        let soft = "[[task]]\nname = \"soft\"\nseparation = \"9 ms\"\nwcet = \"1 ms\"\n";
        let server = format!("[[server]]\nname = \"s\"\nkind = \"{kind}\"\ntasks = [\"soft\"]\n");
        format!("{head}{of_hard}{soft}{of_soft}{server}")
    };
    let at = |span: &str| format!("promotion = \"{span}\"\n");
    let (system, _) = file::read(&text(&at("10 ms"), "", "dual-priority"), "p.toml", &[]).expect("valid");
    assert_eq!(system.tasks()[0].promotion, Some(ms(10)));
    assert_eq!(file::read(&file::print(&system), "printed.toml", &[]).expect("printed right").0, system);
    for (text, expected) in [
        (text(&at("10.000001 ms"), "", "dual-priority"), "the jobs would be promoted after their deadline"),
        (text(&at("1 ms"), "", "slack-stealing"), "only beside dual priority jobs are promoted"),
        (text("", &at("1 ms"), "dual-priority"), "a served task is never promoted"),
    ] {
        let errors = file::read(&text, "p.toml", &[]).map(|_| ()).expect_err("refused").to_string();
        assert!(errors.contains(expected), "{errors}");
    }
}

#[test]
fn a_slack_policy_stands_alone_beside_tasks_that_it_knows() {
    let dual = || ServerKind::DualPriority { gain: Gain::SelfGain };
    breaks(&["server.t.kind: dual-priority serves all soft tasks of its CPU, beside no other server"], |d| {
        let tasks = vec![d.servers[0].tasks.remove(0)];
        d.servers[0].kind = dual();
        d.servers.push(Server::new("t", tasks, CpuId(0), ServerKind::Background));
    });
    breaks(&["interference.card.cpu: dual-priority knows nothing of interferences"], |d| {
        d.servers[0].kind = dual();
        d.interferences =
            vec![Interference { name: "card".into(), cpu: CpuId(0), utilisation_ppb: 1, period: ms(1) }];
    });
    breaks(
        &["server.t.kind: priority-exchange serves all soft tasks of its CPU, beside no other server"],
        |d| {
            let tasks = vec![d.servers[0].tasks.remove(0)];
            d.servers[0].kind =
                ServerKind::PriorityExchange { capacity: capacity(2, 10), priority: Priority::new(9) };
            d.servers.push(Server::new("t", tasks, CpuId(0), ServerKind::Background));
        },
    );
    let propagated = |expected: &str, change: fn(&mut Task)| {
        breaks(&[expected], |d| {
            d.servers[0].kind = ServerKind::DualPriority { gain: Gain::Both };
            change(&mut d.tasks[2]);
        });
    };
    propagated("task.b: a gain is propagated among periodic hard tasks alone", |task| {
        task.arrival = Arrival::Sporadic { separation: ms(10) };
    });
    propagated("task.b.jitter: a gain is propagated among hard tasks without jitter alone", |task| {
        task.jitter = ms(1)
    });
    propagated(
        "task.b.priority: a gain is propagated among hard tasks of distinct priorities alone",
        |task| {
            task.priority = Some(Priority::new(2));
        },
    );
    let beside = |expected: &str, change: fn(&mut Task)| {
        breaks(&[expected], |d| {
            d.servers[0].kind = ServerKind::SlackStealing { gain: Gain::None };
            change(&mut d.tasks[0]);
        });
    };
    beside("task.a.arrivals: slack-stealing has to know when a hard task arrives next", |task| {
        task.arrival = Arrival::Aperiodic { arrivals: vec![ms(1)] };
    });
    beside(
        "task.a.jitter: slack-stealing cannot tell a sporadic job that is late from one that has not arrived",
        |task| {
            task.arrival = Arrival::Sporadic { separation: ms(10) };
            task.jitter = ms(1);
        },
    );
    beside("task.a.deadline: slack-stealing is known for deadlines up to the period alone", |task| {
        task.deadline = Some(ms(11));
    });
    beside("task.a.preemption: slack-stealing is known for preemptive tasks alone", |task| {
        task.preemption = Preemption::NonPreemptive;
    });
    let mut assigned = draft();
    assigned.priorities = PriorityAssignment::DeadlineMonotonic;
    assigned.tasks.iter_mut().for_each(|task| task.priority = None);
    assigned.servers[0].kind = dual();
    assert!(System::new(assigned).is_ok(), "a slack policy takes the priorities of an assignment");
}

const FILE: &str = r#"
[system]
name = "served"
[platform]
cpus = 1
[[task]]
name = "control"
period = "10 ms"
wcet = "2 ms"
priority = 5
[[task]]
name = "request"
period = "100 ms"
wcet = "3 ms"
[[task]]
name = "logger"
arrivals = ["3 ms"]
wcet = "1 ms"
[[server]]
name = "events"
kind = "sporadic"
tasks = ["request", "logger"]
budget = "4 ms"
period = "20 ms"
priority = 9
"#;

fn read(sets: &[&str]) -> Result<System, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    file::read(FILE, "served.toml", &sets).map(|(system, _)| system).map_err(|errors| errors.to_string())
}

#[test]
fn a_server_is_read_with_its_defaults() {
    let system = read(&[]).expect("valid");
    assert_eq!(
        system.servers()[0].kind,
        ServerKind::Sporadic {
            capacity: capacity(4, 20),
            priority: Priority::new(9),
            low_priority: LowPriority::Background,
            max_replenishments: 32,
            rules: SporadicRules::Corrected,
        }
    );
    assert_eq!(system.tasks()[1].deadline, None, "a served task's deadline is its own, or none");
    let system = read(&["task.request.deadline=50ms"]).expect("valid");
    assert_eq!(system.tasks()[1].deadline, Some(ms(50)));
}

#[test]
fn overrides_reach_servers() {
    let system = read(&["server.events.budget=3ms", "server.events.kind=deferrable"]).expect("valid");
    let kind = system.servers()[0].kind;
    assert_eq!((kind.word(), kind.capacity()), ("deferrable", Some(capacity(3, 20))));
    let low = read(&["server.events.low_priority=1"]).expect("valid").servers()[0].kind.low_priority();
    assert_eq!(low, Some(LowPriority::At(Priority::new(1))));
    let none = read(&["server.events.low_priority=none"]).expect("valid").servers()[0].kind.low_priority();
    assert_eq!(none, Some(LowPriority::None));
    let said = read(&["server.event.budget=3ms"]).expect_err("no such server");
    assert!(
        said.contains("no server is called `event`") && said.contains("did you mean `events`?"),
        "{said}"
    );
    let said = read(&["server.events=3ms"]).expect_err("a whole server");
    assert!(said.contains("the path names a whole server"), "{said}");
}

#[test]
fn a_total_bandwidth_server_serves_no_device() {
    let text = "[system]\nname = \"x\"\npolicy = \"edf\"\n[[task]]\nname = \"soft\"\nseparation = \"9 ms\"\nwcet = \"1 ms\"\n\
                [[server]]\nname = \"s\"\nkind = \"constant-bandwidth\"\nbudget = \"1 ms\"\nperiod = \"9 ms\"\ntasks = [\"soft\"]\n\
                [[device]]\nname = \"d\"\nservice = \"server\"\nserver = \"s\"\nseparation = \"9 ms\"\ncost = \"1 us\"\n";
    let read =
        |text: &str| horolog_model::file::read(text, "x.toml", &[]).map(|_| ()).map_err(|e| e.to_string());
    assert_eq!(read(text), Ok(()));
    let said = read(&text.replace("constant", "total")).unwrap_err();
    assert!(said.contains("a total bandwidth server has to know what each job executes at most"), "{said}");
}
