//! The quick way for a tree of one dispatcher over tasks and servers gives the records of the general one, to the last.
//! A supply at the root that never refuses makes the same system take the general way.

use horolog_model::{Policy, ServerKind, System};
use horolog_sched::{Machine, MachineBuilder, NodePolicy, NodeSpec, Place, ProcessorIndex, Supply};
use horolog_sim::{ExecutionChoice, Horizon, SimOptions, simulate, simulate_machine};
use horolog_testkit::{Ingredients, Serving, served_system};
use horolog_time::{Instant, Span};
use horolog_trace::Record;

/// Everything, always.
#[derive(Clone, Debug)]
struct Always;

impl Supply for Always {
    fn place(&self) -> Place {
        Place::High
    }

    fn budget(&self) -> Option<Span> {
        None
    }

    fn timer(&self) -> Option<Instant> {
        None
    }

    fn executed(&mut self, _: Instant, _: Span) -> bool {
        false
    }

    fn timer_fired(&mut self, _: Instant) {}

    fn boxed_clone(&self) -> Box<dyn Supply> {
        Box::new(self.clone())
    }
}

fn general(system: &System) -> Option<Machine> {
    let policy = match system.policy() {
        Policy::Edf => NodePolicy::Edf,
        _ => NodePolicy::FixedPriority,
    };
    let spec = NodeSpec { policy, supply: Some(Box::new(Always)), ..NodeSpec::default() };
    MachineBuilder::new(system).root(ProcessorIndex(0), spec).build().ok()
}

#[test]
fn a_shallow_tree_behaves_as_the_general_one() {
    let mut compared = 0;
    for serving in [Serving::Placed, Serving::SlackPolicy, Serving::Edf, Serving::TotalBandwidth] {
        for index in 0..240 {
            let ingredients = if index % 3 == 0 { Ingredients::NONE } else { Ingredients::ALL };
            let system = horolog_testkit::resolved(&served_system(17, index, serving, ingredients));
            // Whether the kernel's own time comes before or after what is executed beside it is open there: it counts as idle.
            let exchange =
                system.servers().iter().any(|s| matches!(s.kind, ServerKind::PriorityExchange { .. }));
            if exchange && index % 3 != 0 {
                continue;
            }
            // Dual priority is built for hard tasks that meet their deadlines only.
            let Some(machine) = general(&system) else { continue };
            let execution = if index % 2 == 0 { ExecutionChoice::Uniform } else { ExecutionChoice::Wcet };
            let options = SimOptions {
                horizon: Horizon::Time(Span::from_ns(300_000)),
                seed: index,
                execution,
                ..SimOptions::default()
            };
            let (mut quick, mut slow): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
            let ours = simulate(&system, &options, &mut quick).expect("it simulates");
            let theirs = simulate_machine(&system, machine, &options, &mut slow).expect("it simulates");
            let differs = quick.iter().zip(&slow).position(|(quick, slow)| quick != slow);
            if let Some(place) = differs {
                let show = |records: &[Record]| {
                    format!("{:?}", &records[place.saturating_sub(9)..records.len().min(place + 2)])
                };
                panic!(
                    "{serving:?} {index}, record {place}: {}\n{}\n{:?}",
                    show(&quick),
                    show(&slow),
                    system.servers()
                );
            }
            assert_eq!(quick.len(), slow.len(), "{serving:?} {index}");
            assert_eq!(ours, theirs, "{serving:?} {index}");
            compared += 1;
        }
    }
    assert!(compared > 450, "{compared}");
}
