//! The system file is read as the contract says.

use horolog_model::{
    Arrival, Body, CpuId, Cpus, ExecutionTimes, OverrunPolicy, Policy, Preemption, PriorityAssignment,
    SpinTarget, System, file,
};
use horolog_time::Span;

/// The system file of the contract, whole.
const CONTRACT: &str = r#"
[system]
name   = "two loops and a camera"
policy = "fixed-priority"

[platform]
cpus = [1]
tick = "2 ms"
context_switch  = "2 us"
timer_interrupt = "3 us"
release_latency = "60 us"

[[task]]
name     = "control"
period   = "10 ms"
deadline = "8 ms"
wcet     = "2 ms"
bcet     = "1.5 ms"
offset   = "0 ms"
jitter   = "100 us"
priority = 90
cpu      = 1
overrun  = "count"
body     = { spin = "1.8 ms" }

[[task]]
name       = "camera"
period     = "40 ms"
priority   = 50
preemption = "deferred"
segments   = ["3 ms", "4 ms", "2 ms"]

[[task]]
name       = "tracker"
period     = "100 ms"
priority   = 40
preemption = "deferred"
segments   = [
  { name = "scan", bcet = "2 ms", wcet = "3 ms", next = ["full", "crop"] },
  { name = "full", bcet = "4 ms", wcet = "6 ms", next = ["merge"] },
  { name = "crop", bcet = "1 ms", wcet = "2 ms", next = ["merge"] },
  { name = "merge", bcet = "3 ms", wcet = "4 ms" },
]

[[interference]]
name = "network card"
cpu  = 1
utilisation = 0.4
period = "583.3 us"
"#;

fn read(text: &str) -> System {
    match file::read(text, "test.toml", &[]) {
        Ok((system, _)) => system,
        Err(errors) => panic!("{errors}"),
    }
}

fn ms(ms: u64) -> Span {
    Span::from_ms(ms).expect("small")
}

/// One valid task with these lines added.
fn with_task(lines: &str) -> System {
    read(&format!("[system]\nname = \"s\"\n[[task]]\nname = \"t\"\npriority = 1\n{lines}\n"))
}

#[test]
fn the_contracts_file_reads() {
    let system = read(CONTRACT);
    assert_eq!(system.name(), "two loops and a camera");
    assert_eq!(system.policy(), Policy::FixedPriority);
    assert_eq!(system.priorities(), PriorityAssignment::Explicit);
    let platform = system.platform();
    assert_eq!(platform.cpus, Cpus::Listed(vec![CpuId(1)]));
    assert_eq!(platform.tick, Some(ms(2)));
    assert_eq!(platform.context_switch_cost(), Span::from_ns(2_000));
    assert_eq!(platform.timer_interrupt_cost(), Span::from_ns(3_000));
    assert_eq!(platform.release_latency_bound(), Span::from_ns(60_000));
    let [control, camera, tracker] = system.tasks() else { panic!("three tasks") };
    assert_eq!(control.arrival, Arrival::Periodic { period: ms(10) });
    assert_eq!(
        (control.deadline, control.wcet, control.bcet),
        (Some(ms(8)), ms(2), Span::from_ns(1_500_000))
    );
    assert_eq!((control.offset, control.jitter), (Some(Span::ZERO), Span::from_ns(100_000)));
    assert_eq!(control.priority.unwrap().number(), 90);
    assert_eq!(control.overrun, OverrunPolicy::Count);
    assert_eq!(control.body, Some(Body::Spin(SpinTarget::Total(Span::from_ns(1_800_000)))));
    assert_eq!((camera.deadline, camera.wcet, camera.bcet), (Some(ms(40)), ms(9), ms(9)));
    assert_eq!(camera.cpu, CpuId(1));
    let graph = tracker.segment_graph().unwrap();
    assert_eq!((tracker.wcet, tracker.bcet), (ms(13), ms(6)));
    assert_eq!(graph.segments[0].next, [1, 2]);
    let [card] = system.interferences() else { panic!("one interference") };
    assert_eq!((card.utilisation_ppb, card.period), (400_000_000, Span::from_ns(583_300)));
}

#[test]
fn the_contracts_file_reads_back_from_its_print() {
    let system = read(CONTRACT);
    assert_eq!(read(&file::print(&system)), system);
}

#[test]
fn defaults_are_those_of_the_contract() {
    let system = with_task("period = \"10 ms\"\nwcet = \"2 ms\"");
    let task = &system.tasks()[0];
    assert_eq!((task.deadline, task.bcet, task.offset, task.jitter), (Some(ms(10)), ms(2), None, Span::ZERO));
    assert_eq!((task.cpu, &task.preemption, &task.body), (CpuId(0), &Preemption::Preemptive, &None));
    assert_eq!(task.execution, ExecutionTimes::Wcet);
    assert_eq!(system.platform().cpus, Cpus::Count(1));
    assert_eq!(system.platform().context_switch, None);
}

#[test]
fn arrivals_come_in_three_kinds() {
    let sporadic = with_task("separation = \"5 ms\"\nwcet = \"2 ms\"");
    assert_eq!(sporadic.tasks()[0].arrival, Arrival::Sporadic { separation: ms(5) });
    assert_eq!(sporadic.tasks()[0].deadline, Some(ms(5)));
    let aperiodic = with_task("arrivals = [\"3 ms\", \"3 ms\", \"8 ms\"]\nwcet = \"2 ms\"");
    assert_eq!(aperiodic.tasks()[0].arrival, Arrival::Aperiodic { arrivals: vec![ms(3), ms(3), ms(8)] });
    assert_eq!(aperiodic.tasks()[0].deadline, None);
}

#[test]
fn samples_give_the_default_bcet() {
    let system =
        with_task("period = \"9 ms\"\nwcet = \"3 ms\"\nexecution = { samples = [\"2 ms\", \"1 ms\"] }");
    assert_eq!(system.tasks()[0].execution, ExecutionTimes::Samples(vec![ms(2), ms(1)]));
    assert_eq!(system.tasks()[0].bcet, ms(1));
    let uniform = with_task("period = \"9 ms\"\nwcet = \"3 ms\"\nbcet = \"1 ms\"\nexecution = \"uniform\"");
    assert_eq!(uniform.tasks()[0].execution, ExecutionTimes::Uniform);
}

#[test]
fn tables_without_next_follow_one_another() {
    let system = with_task(
        "period = \"20 ms\"\npreemption = \"deferred\"\nsegments = [\"1 ms\", { bcet = \"1 ms\", wcet = \"3 ms\" }, { name = \"end\", wcet = \"2 ms\" }]",
    );
    let graph = system.tasks()[0].segment_graph().unwrap().clone();
    assert!(graph.is_sequence());
    let names: Vec<&str> = graph.segments.iter().map(|segment| segment.name.as_str()).collect();
    assert_eq!(names, ["1", "2", "end"]);
    assert_eq!((graph.wcet(), graph.bcet()), (Some(ms(6)), Some(ms(4))));
    assert_eq!(read(&file::print(&system)), system);
}

#[test]
fn spin_lists_follow_their_segments_when_a_graph_is_sorted() {
    let system = with_task(
        "period = \"20 ms\"\npreemption = \"deferred\"\nsegments = [{ name = \"last\", wcet = \"1 ms\" }, { name = \"first\", wcet = \"2 ms\", next = [\"last\"] }]\nbody = { spin = [\"1 ms\", \"2 ms\"] }",
    );
    let task = &system.tasks()[0];
    assert_eq!(task.segment_graph().unwrap().segments[0].name, "first");
    assert_eq!(task.body, Some(Body::Spin(SpinTarget::PerSegment(vec![ms(2), ms(1)]))));
    assert_eq!(read(&file::print(&system)), system);
}

#[test]
fn bodies_of_every_kind() {
    let body = |text: &str| {
        with_task(&format!("period = \"9 ms\"\nwcet = \"3 ms\"\nbody = {text}")).tasks()[0].body.clone()
    };
    assert_eq!(body("{ spin = 0.9 }"), Some(Body::Spin(SpinTarget::Fraction(900_000))));
    assert_eq!(body("{ spin = 1 }"), Some(Body::Spin(SpinTarget::Fraction(1_000_000))));
    // Longer than the wcet: a wrong wcet must be expressible, so that `verify` can be seen to catch it.
    assert_eq!(body("{ spin = \"4 ms\" }"), Some(Body::Spin(SpinTarget::Total(ms(4)))));
    assert_eq!(
        body("{ command = [\"./player\", \"-q\"] }"),
        Some(Body::Command(vec!["./player".into(), "-q".into()]))
    );
    let library = Body::Library {
        library: "libapp.so".into(),
        symbol: "step".into(),
        init: Some("begin".into()),
        exit: None,
        arguments: vec!["a \"b\"".into()],
    };
    let text = "{ library = \"libapp.so\", symbol = \"step\", init = \"begin\", arguments = ['a \"b\"'] }";
    assert_eq!(body(text), Some(library));
}

#[test]
fn overrides_reach_every_value() {
    let sets: Vec<String> = [
        "task.control.wcet=3ms",
        "task.camera.segments=[\"1 ms\", \"2 ms\"]",
        "task.tracker.segments.full.wcet = \"7 ms\"",
        "task.control.body.spin=0.5",
        "interference.network card.utilisation=0.25",
        "interference.\"network card\".period='1 ms'",
        "system.name=other",
        "platform.tick=1ms",
        "task.control.overrun=skip",
        "task.#1.priority=91",
    ]
    .map(String::from)
    .to_vec();
    let (system, source) = file::read(CONTRACT, "test.toml", &sets).unwrap();
    let [control, camera, tracker] = system.tasks() else { panic!("three tasks") };
    assert_eq!((control.wcet, camera.wcet, tracker.wcet), (ms(3), ms(3), ms(14)));
    assert_eq!(control.body, Some(Body::Spin(SpinTarget::Fraction(500_000))));
    assert_eq!(control.overrun, OverrunPolicy::Skip);
    assert_eq!(control.priority.unwrap().number(), 91);
    assert_eq!(system.interferences()[0].utilisation_ppb, 250_000_000);
    assert_eq!(system.interferences()[0].period, ms(1));
    assert_eq!((system.name(), system.platform().tick), ("other", Some(ms(1))));
    assert_eq!(source.range("task.control.wcet"), None, "the file does not give it");
    assert_eq!(source.line_and_column("task.control.wcet"), Some((1, 19)));
}

#[test]
fn an_override_may_make_the_platform() {
    let text =
        "[system]\nname = \"s\"\n[[task]]\nname = \"t\"\npriority = 1\nperiod = \"9 ms\"\nwcet = \"3 ms\"\n";
    let (system, _) = file::read(text, "t", &["platform.cpus=[3]".into()]).unwrap();
    assert_eq!(system.tasks()[0].cpu, CpuId(3));
}
