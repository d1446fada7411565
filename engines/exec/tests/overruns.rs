//! Budgets of jobs and segments on threads (decision 0010): the machine's actions are those of a simulation.
#![allow(clippy::panic)] // Helpers of an integration test are tests too.

mod common;

use common::{deferred, last_cpu, ms, run_or_skip, system, task};
use horolog_exec::RunOptions;
use horolog_model::{Body, CpuId, Cpus, OverrunPolicy, SpinTarget, System};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_trace::{Kind, Record};

/// How often a policy acted on each task, and how many releases did not take place.
fn actions(system: &System, records: &[Record]) -> Vec<(String, Vec<u64>, usize)> {
    let of = |index: usize| {
        let own = || records.iter().filter(move |record| record.task == index as u32);
        let acted = own().filter(|record| record.kind == Kind::Enforcement).map(|record| record.extra);
        let skipped = own().filter(|record| record.kind == Kind::Skip).count();
        (system.tasks()[index].name.clone(), acted.collect(), skipped)
    };
    (0..system.tasks().len()).map(of).collect()
}

#[test]
fn the_example_s_actions_are_those_of_its_simulation() {
    let text = include_str!("../../../examples/overruns/system.toml");
    let (read, _) = horolog_model::file::read(text, "system.toml", &[]).expect("the example can be read");
    let mut draft = read.to_draft();
    let cpu = last_cpu();
    draft.platform.cpus = Cpus::Listed(vec![cpu]);
    draft.tasks.iter_mut().for_each(|task| task.cpu = CpuId(cpu.0));
    let system = System::new(draft).expect("any CPU will do");
    let options = SimOptions { horizon: Horizon::Time(ms(395)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(&system, &options, &mut records).expect("it can be simulated");
    let simulated = actions(&system, &records);
    let acted: Vec<(usize, usize)> =
        simulated.iter().map(|(_, acted, skips)| (acted.len(), *skips)).collect();
    assert_eq!(acted, [(4, 0), (4, 4), (1, 7)], "{simulated:?}");
    let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(395))) else { return };
    assert_eq!(actions(&system, &result.records), simulated, "{:#?}", result.outcome.tasks);
}

/// The longest segment is the low task's own: no job blocks longer than was analysed, and each may use what is left to it.
#[test]
fn what_earlier_segments_left_may_be_used() {
    for (last, acts) in [(ms(7), 0), (ms(14), 4)] {
        let mut low = deferred("low", 1, ms(50), &[ms(5), ms(5)]);
        low.body = Some(Body::Spin(SpinTarget::PerSegment(vec![ms(1), last])));
        low.overrun = OverrunPolicy::Demote;
        let Some(result) = run_or_skip(&system(vec![low]), &RunOptions::for_span(ms(190))) else { return };
        let acted = result.records.iter().filter(|record| record.kind == Kind::Enforcement).count();
        assert_eq!(acted, acts, "{last:?} {:#?}", result.outcome);
    }
}

#[test]
fn those_that_wait_behind_a_stopped_job_are_gone() {
    let mut low = task("low", 1, ms(20), ms(15));
    (low.overrun, low.body) = (OverrunPolicy::Stop, Some(Body::Spin(SpinTarget::Total(ms(60)))));
    low.deadline = Some(ms(100));
    let mut high = task("high", 9, ms(400), ms(30));
    high.offset = Some(ms(10));
    let Some(result) = run_or_skip(&system(vec![low, high]), &RunOptions::for_span(ms(190))) else { return };
    let records = |kind: Kind| result.records.iter().filter(move |one| one.kind == kind && one.task == 0);
    // The job has used its budget up at 42, as two others have arrived.
    assert_eq!(records(Kind::Enforcement).map(|one| one.extra).collect::<Vec<_>>(), [3]);
    assert_eq!((records(Kind::Release).count(), records(Kind::Start).count()), (3, 1));
    let outcome = &result.outcome.tasks[0];
    // Whether the thread of the stopped one comes to its end below everything is left open.
    assert_eq!((outcome.completed + outcome.unfinished, outcome.skipped), (3, 7), "{outcome:?}");
    assert!(outcome.unfinished >= 2, "{outcome:?}");
}

#[test]
fn a_policy_acts_behind_a_server_and_beside_slack_stealing() {
    let servers = [
        "kind = \"polling\"\nbudget = \"8 ms\"\nperiod = \"20 ms\"\npriority = 5\nlow_priority = \"none\"\n",
        "kind = \"slack-stealing\"\n",
    ];
    for server in servers {
        let cpu = last_cpu().0;
        let text = format!(
            "[system]\nname = \"served\"\n[platform]\ncpus = [{cpu}]\n\
             [[task]]\nname = \"soft\"\nperiod = \"60 ms\"\noffset = \"1 ms\"\nwcet = \"4 ms\"\noverrun = \"skip\"\nbody = {{ spin = \"9 ms\" }}\n\
             [[task]]\nname = \"hard\"\nperiod = \"40 ms\"\noffset = \"0 ms\"\nwcet = \"4 ms\"\npriority = 9\noverrun = \"demote\"\n\
             body = {{ spin = \"6 ms\" }}\n\
             [[server]]\nname = \"s\"\ntasks = [\"soft\"]\n{server}"
        );
        let (system, _) =
            horolog_model::file::read(&text, "served.toml", &[]).unwrap_or_else(|e| panic!("{e}"));
        let Some(result) = run_or_skip(&system, &RunOptions::for_span(ms(235))) else { return };
        let acted = actions(&system, &result.records);
        // Of the soft jobs at 1, 61, 121 and 181 every other one is skipped; each hard job is demoted.
        assert_eq!(acted[0].1, [1, 1], "{server}: {acted:?}");
        assert_eq!(acted[1].1, [2; 6], "{server}: {acted:?}");
    }
}
