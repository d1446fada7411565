//! Whatever the simulator decides, with costs and without: every choice, every record of a budget and every overrun is one that
//! verification's own machine makes at the same instant with the same amount.

use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::reference::draw::{Kind as Drawn, short_system};
use horolog_time::Span;
use horolog_trace::file::Header;
use horolog_trace::{Kind, Record};
use horolog_verify::{Check, Options, Verifier};

const END: u64 = 400;

#[test]
fn what_the_simulator_notes_is_what_verification_notes() {
    for kind in Drawn::ALL {
        let (mut count, mut notes, mut overruns, mut with_costs) = (0, 0, 0, 0);
        for index in 0..250 {
            let system = horolog_testkit::resolved(&short_system(83, index, kind, END));
            let options = SimOptions {
                horizon: Horizon::Time(Span::from_ns(END)),
                seed: index,
                ..SimOptions::default()
            };
            let mut records: Vec<Record> = Vec::new();
            if simulate(&system, &options, &mut records).is_err() || !system.clusters().is_empty() {
                continue;
            }
            let companion = horolog_sim::traced(&system).expect("it can be simulated");
            let header = Header::simulated(String::new(), Vec::new(), 0, Span::from_ns(END));
            let header = header.of_companion(&system, &companion);
            let mut verifier =
                Verifier::new(&system, &[], &header, &Options::default()).expect("it can be verified");
            records.iter().for_each(|record| verifier.take(record));
            let result = verifier.finish(END, None, Vec::new());
            // A job that its policy lets go on executes beyond its wcet or a segment's: others wait longer, a budget is overdrawn by
            // more than is owed, and an overloaded writer publishes late.
            let follows =
                [Check::Execution, Check::SegmentExecution, Check::Blocking, Check::Budget, Check::Link];
            let is_right = |check| follows.contains(&check);
            let wrong = result.findings.iter().find(|one| !is_right(one.check));
            let text = || horolog_model::file::print(&system);
            assert_eq!(wrong, None, "{kind:?} {index}: {:?}\n{}", result.notes, text());
            assert!(
                !result.notes.iter().any(|note| note.contains("up to where")),
                "{kind:?} {index}: {:?}",
                result.notes
            );
            count += 1;
            let of = |kind: Kind| records.iter().filter(|record| record.kind == kind).count();
            notes += of(Kind::BudgetExhausted)
                + of(Kind::BudgetReplenished)
                + of(Kind::SlackChange)
                + of(Kind::Promotion);
            overruns += of(Kind::Enforcement);
            let platform = system.platform();
            with_costs += usize::from(
                !platform.context_switch_cost().is_zero() || !platform.timer_interrupt_cost().is_zero(),
            );
        }
        println!("{kind:?}: {count} systems, {notes} notes, {overruns} overruns, {with_costs} with costs");
    }
}
