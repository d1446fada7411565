//! The published and recomputed facts of fixed-priority scheduling with deferred preemption.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Analysis, Options, analyze};
use horolog_model::{
    Arrival, CpuId, Draft, ExecutionTimes, OverrunPolicy, Preemption, Priority, Segment, SegmentGraph,
    System, Task,
};
use horolog_time::Span;
use toml::{Table, Value};

fn golden(name: &str) -> Table {
    let path = format!("{}/../../golden/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn span(value: &Value) -> Span {
    value.as_str().unwrap().parse().unwrap()
}

fn spans(value: &Value) -> Vec<Span> {
    value.as_array().unwrap().iter().map(span).collect()
}

/// Paths without a common start as one graph: an entry of 1 ns, which is taken from the first segment of each path.
fn branches(paths: &[Vec<Span>]) -> SegmentGraph {
    let mut segments = vec![segment("entry", Span::from_ns(1))];
    for (path_index, path) in paths.iter().enumerate() {
        for (index, &wcet) in path.iter().enumerate() {
            let at = segments.len();
            let wcet = if index == 0 { wcet.checked_sub(Span::from_ns(1)).unwrap() } else { wcet };
            segments.push(segment(&format!("{path_index}.{index}"), wcet));
            let before = if index == 0 { 0 } else { at - 1 };
            segments[before].next.push(at);
        }
    }
    SegmentGraph { segments }
}

fn segment(name: &str, wcet: Span) -> Segment {
    Segment { name: name.to_owned(), bcet: wcet, wcet, next: Vec::new() }
}

fn graph_of(task: &Value) -> SegmentGraph {
    match task.get("segments") {
        Some(segments) => SegmentGraph::sequence(&spans(segments)),
        None => branches(&task["branches"].as_array().unwrap().iter().map(spans).collect::<Vec<_>>()),
    }
}

fn system(case: &Value, mode: &str) -> System {
    let tasks = case["tasks"].as_array().unwrap();
    let count = tasks.len() as i64;
    let tasks = tasks.iter().enumerate().map(|(index, task)| {
        let graph = graph_of(task);
        let (wcet, bcet) = (graph.wcet().unwrap(), graph.bcet().unwrap());
        let period = span(&task["period"]);
        Task {
            name: format!("t{index}"),
            arrival: Arrival::Periodic { period },
            deadline: Some(period),
            wcet,
            bcet,
            offset: None,
            jitter: Span::ZERO,
            priority: Some(Priority::new(count - index as i64)),
            cpu: CpuId(0),
            preemption: match mode {
                "preemptive" => Preemption::Preemptive,
                "non-preemptive" => Preemption::NonPreemptive,
                _ => Preemption::Deferred(graph),
            },
            overrun: OverrunPolicy::default(),
            execution: ExecutionTimes::default(),
            promotion: None,
            sections: Vec::new(),
            criticality: None,
            is_soft: false,
            body: None,
        }
    });
    System::new(Draft { name: "golden".into(), tasks: tasks.collect(), ..Draft::default() }).unwrap()
}

fn responses(analysis: &Analysis, test: &str) -> Vec<Span> {
    let of = |t: &horolog_analysis::TaskVerdict| {
        t.tests.iter().find(|r| r.test == test).and_then(|r| r.response).unwrap_or(Span::MAX)
    };
    analysis.tasks.iter().map(of).collect()
}

#[test]
fn response_times_are_the_published_ones() {
    let golden = golden("fpds-wcrt.toml");
    let mut checked = 0;
    for case in golden["case"].as_array().unwrap() {
        let resolution = case.get("resolution").map_or(Span::from_ns(1), span);
        let mut options = Options::default();
        options.resolution = resolution;
        for mode in ["preemptive", "deferred", "non-preemptive"] {
            let analysis = analyze(&system(case, mode), &options).unwrap();
            let best: Vec<Span> = analysis.tasks.iter().map(|t| t.response.unwrap()).collect();
            if let Some(expected) = case.get(mode) {
                assert_eq!(best, spans(expected), "{mode}: {}", case["name"]);
                assert!(analysis.tasks.iter().all(|t| t.exact));
                checked += 1;
            }
            for (suffix, test) in [("integer", "fp-deferred-integer"), ("uniform", "fp-deferred-uniform")] {
                if let Some(expected) = case.get(format!("{mode}-{suffix}")) {
                    assert_eq!(
                        responses(&analysis, test),
                        spans(expected),
                        "{test} {mode}: {}",
                        case["name"]
                    );
                    checked += 1;
                }
            }
            if let (Some(expected), "deferred") = (case.get("blocking"), mode) {
                let blocking: Vec<Span> = analysis.tasks.iter().filter_map(|t| t.blocking).collect();
                assert_eq!(blocking, spans(expected));
                let allowed: Vec<Option<Span>> = analysis.tasks.iter().map(|t| t.allowed_segment).collect();
                let expected = case["allowed-segment"].as_array().unwrap().iter();
                assert_eq!(allowed, expected.map(|v| v.as_str().unwrap().parse().ok()).collect::<Vec<_>>());
                checked += 2;
            }
        }
    }
    assert_eq!(checked, 13);
}

#[test]
fn remainders_of_a_branching_graph_are_the_published_ones() {
    let golden = golden("fpds-graph.toml");
    let segments = golden["segments"].as_array().unwrap().iter().enumerate().map(|(index, s)| Segment {
        name: format!("s{index}"),
        bcet: span(&s["bcet"]),
        wcet: span(&s["wcet"]),
        next: s["next"].as_array().unwrap().iter().map(|n| n.as_integer().unwrap() as usize).collect(),
    });
    let graph = SegmentGraph { segments: segments.collect() };
    assert_eq!(graph.wcet(), Some(span(&golden["wcet"])));
    assert_eq!(graph.bcet(), Some(span(&golden["bcet"])));
    assert_eq!(graph.best_remainders(), Some(spans(&golden["best-remainders"])));
    assert_eq!(graph.worst_remainders(), Some(spans(&golden["worst-remainders"])));
    let threshold = graph.wcet().unwrap().checked_sub(graph.best_remainders().unwrap()[0]);
    assert_eq!(threshold, Some(span(&golden["certain-overrun-above"])));
}
