//! Suspended waits across processors on real threads (decisions 0020 and 0029).

mod common;

use common::{ms, run_bodies_or_skip, two_cpus, with_exclusive_bodies};
use horolog_exec::{Executive, RunOptions};
use horolog_model::{System, file};
use horolog_trace::{Kind, Record};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn read(text: &str) -> System {
    file::read(text, "suspended.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

const NAMES: [&str; 6] = ["u", "v", "w", "x", "y", "z"];

/// Six tasks, three on each of two processors, that all want two resources; on one processor alone where both are the same.
fn text(protocol: &str, (first, last): (u32, u32)) -> String {
    let cpus = if first == last { format!("{first}") } else { format!("{first}, {last}") };
    let mut text = format!(
        "[system]\nname = \"many\"\n[platform]\ncpus = [{cpus}]\n[[resource]]\nname = \"a\"\nprotocol = \"{protocol}\"\n\
         [[resource]]\nname = \"b\"\nprotocol = \"{protocol}\"\n"
    );
    for (index, name) in NAMES.iter().enumerate() {
        let cpu = if index % 2 == 0 { first } else { last };
        text += &format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {}\nperiod = \"{} us\"\noffset = \"0 ms\"\nwcet = \"200 us\"\n\
             [[task.section]]\nresource = \"a\"\nfrom = \"0 us\"\nlength = \"80 us\"\n\
             [[task.section]]\nresource = \"b\"\nfrom = \"100 us\"\nlength = \"80 us\"\n",
            40 - index,
            1_500 + 7 * index,
        );
    }
    text
}

/// What the records say of one resource.
#[derive(Default)]
struct Seen {
    holder: Option<u32>,
    waiting: Vec<u32>,
    /// Who was chosen by the last unlock, and has not noticed it yet.
    next: Option<u32>,
}

/// Where one job of each processor at a time has a place in the queues: who waits for that, and for which resource.
#[derive(Default)]
struct Asking(Vec<(u32, usize)>);

impl Asking {
    /// The most important one of a processor; of equals the one that came first.
    fn next(
        &mut self,
        is_here: impl Fn(u32) -> bool,
        priority: impl Fn(u32) -> Option<i64>,
    ) -> Option<(u32, usize)> {
        let here = (0..self.0.len()).rev().filter(|&place| is_here(self.0[place].0));
        let next = here.max_by_key(|&place| priority(self.0[place].0))?;
        Some(self.0.remove(next))
    }
}

/// One holder at a time; who waits gets it in the order of the protocol; whoever else begins or goes on, no holder of its processor is ready. How often
/// somebody waited.
fn check(system: &System, protocol: &str, records: &[Record]) -> u64 {
    let (by_importance, in_turn) = (protocol == "mpcp", protocol == "omlp");
    let (mut seen, mut waits, mut asking) = ([Seen::default(), Seen::default()], 0, Asking::default());
    let priority = |task: u32| system.tasks()[task as usize].priority.map(horolog_model::Priority::number);
    let cpu = |task: u32| system.tasks()[task as usize].cpu;
    for record in records {
        match record.kind {
            Kind::Suspend => {
                waits += 1;
                let has_place = |one: &Seen| {
                    let mut all = one.waiting.iter().chain(&one.holder).chain(&one.next);
                    all.any(|&other| cpu(other) == cpu(record.task))
                };
                if in_turn && seen.iter().any(has_place) {
                    asking.0.push((record.task, record.value as usize));
                    continue;
                }
                let one = &mut seen[record.value as usize];
                assert!(one.holder.or(one.next).is_some(), "it waits for a free one: {record:?}");
                one.waiting.push(record.task);
            }
            Kind::Lock => {
                let beside = |one: &Seen| {
                    let mut all = one.waiting.iter().chain(&one.holder);
                    all.any(|&other| cpu(other) == cpu(record.task))
                };
                assert!(
                    !in_turn || !seen.iter().any(beside),
                    "another one of its processor has a place: {record:?}"
                );
                let one = &mut seen[record.value as usize];
                assert_eq!(one.holder.replace(record.task), None, "{record:?}");
                // A job that has not waited finds it free, and no other job waits.
                assert_eq!(one.next.take().unwrap_or(record.task), record.task, "{record:?}");
            }
            Kind::Unlock => {
                let one = &mut seen[record.value as usize];
                assert_eq!(one.holder.take(), Some(record.task), "{record:?}");
                let first = match by_importance {
                    // Of equals the last one that is looked at would be taken, so the longest wait comes last.
                    true => (0..one.waiting.len()).rev().max_by_key(|&place| priority(one.waiting[place])),
                    false => (!one.waiting.is_empty()).then_some(0),
                };
                one.next = first.map(|place| one.waiting.remove(place));
                let here = |other: u32| cpu(other) == cpu(record.task);
                if in_turn && let Some((next, resource)) = asking.next(here, priority) {
                    let one = &mut seen[resource];
                    match one.holder.or(one.next) {
                        None => one.next = Some(next),
                        Some(_) => one.waiting.push(next),
                    }
                }
            }
            Kind::Start | Kind::Resume => {
                let holders: Vec<u32> = seen.iter().filter_map(|one| one.holder).collect();
                let is_beside = |&&other: &&u32| other != record.task && cpu(other) == cpu(record.task);
                let beside = holders.iter().find(is_beside);
                let holds = holders.contains(&record.task);
                assert!(holds || beside.is_none(), "{record:?} beside the holder {beside:?}");
            }
            _ => {}
        }
    }
    waits
}

fn bodies_exclude_each_other(protocol: &str, cpus: (u32, u32)) -> Option<u64> {
    let system = read(&text(protocol, cpus));
    let executive = Executive::new(system.clone()).options(RunOptions::for_span(ms(700)));
    let (executive, sections) = with_exclusive_bodies(executive, &NAMES);
    let result = run_bodies_or_skip(executive)?;
    sections.check(protocol);
    let is_lost = result.records.iter().any(|record| record.kind == Kind::Lost);
    assert!(!is_lost, "{protocol}: records are lost");
    Some(check(&system, protocol, &result.records))
}

#[test]
fn jobs_of_two_processors_have_it_in_the_order_of_the_protocol() {
    let Some(cpus) = two_cpus() else { return };
    for protocol in ["mpcp", "fmlp-plus", "omlp"] {
        let Some(waits) = bodies_exclude_each_other(protocol, cpus) else { return };
        assert!(waits > 20, "{protocol}: {waits}");
    }
}

/// All users on one processor: a holder comes before all others there, so no job finds it taken.
#[test]
fn on_one_processor_no_job_waits() {
    let Some((first, _)) = two_cpus() else { return };
    for protocol in ["mpcp", "fmlp-plus", "omlp"] {
        let Some(waits) = bodies_exclude_each_other(protocol, (first, first)) else { return };
        assert_eq!(waits, 0, "{protocol}");
    }
}

/// A job that never unlocks lets go at its end.
#[test]
fn what_a_job_leaves_locked_is_handed_on() {
    let Some(cpus) = two_cpus() else { return };
    let system = read(&text("fmlp-plus", cpus));
    let counts: [Arc<AtomicU64>; 2] = Default::default();
    let mut executive = Executive::new(system).options(RunOptions::for_span(ms(300)));
    for (index, name) in NAMES.into_iter().enumerate() {
        let count = counts[index % 2].clone();
        executive = executive.body(name, move |job| {
            let has_it = job.lock("a");
            for _ in 0..2_000 {
                std::hint::spin_loop();
            }
            count.fetch_add(u64::from(has_it), Ordering::Relaxed);
        });
    }
    let Some(result) = run_bodies_or_skip(executive) else { return };
    let left = result.records.iter().filter(|it| it.kind == Kind::Unlock && it.extra != 0).count() as u64;
    let counted = counts.map(|count| count.load(Ordering::Relaxed));
    assert!(counted.iter().all(|&count| count > 200), "{counted:?}");
    // But for the last ones of the run.
    assert!(left + 6 >= counted.iter().sum::<u64>(), "{left} {counted:?}");
}

/// Under `dpcp` every section executes on the processor of its resource, one in each resource, one section that began later before one that began earlier.
#[test]
fn sections_execute_on_the_processor_of_their_resource() {
    let Some((first, last)) = two_cpus() else { return };
    let text = text("dpcp", (first, first))
        .replace(&format!("cpus = [{first}]"), &format!("cpus = [{first}, {last}]"))
        .replace("protocol = \"dpcp\"\n", &format!("protocol = \"dpcp\"\ncpu = {last}\n"));
    let system = read(&text);
    let counts: [Arc<AtomicU64>; 4] = Default::default();
    let held: Arc<AtomicU64> = Arc::default();
    let mut executive = Executive::new(system.clone()).options(RunOptions::for_span(ms(700)));
    for name in NAMES {
        let ([sections, elsewhere, beside, home], held) = (counts.clone(), held.clone());
        executive = executive.body(name, move |job| {
            for (bit, resource) in [(1, "a"), (2, "b")] {
                if !job.lock(resource) {
                    continue;
                }
                beside
                    .fetch_add(u64::from(held.fetch_or(bit, Ordering::SeqCst) & bit != 0), Ordering::Relaxed);
                for _ in 0..5_000 {
                    std::hint::spin_loop();
                }
                let is_there = horolog_sys::affinity::current_cpu() == Some(last);
                elsewhere.fetch_add(u64::from(!is_there), Ordering::Relaxed);
                held.fetch_and(!bit, Ordering::SeqCst);
                sections.fetch_add(1, Ordering::Relaxed);
                job.unlock(resource);
                let is_home = horolog_sys::affinity::current_cpu() == Some(first);
                home.fetch_add(u64::from(!is_home && !job.is_run_over()), Ordering::Relaxed);
            }
        });
    }
    let Some(result) = run_bodies_or_skip(executive) else { return };
    let [sections, elsewhere, beside, away] = counts.map(|count| count.load(Ordering::Relaxed));
    assert!(sections > 1_000, "{sections} sections");
    assert_eq!(
        (elsewhere, beside, away),
        (0, 0, 0),
        "{sections} sections: not there, beside another one, not home"
    );
    let kinds = |kind: Kind| result.records.iter().filter(|it| it.kind == kind).count() as u64;
    let of = [Kind::Suspend, Kind::Lock, Kind::Unlock, Kind::Wake].map(kinds);
    assert!(of.iter().all(|&count| count.abs_diff(sections) <= 12), "{of:?} of {sections}");
    assert_eq!(kinds(Kind::Lost), 0, "records are lost");
    assert!(result.records.is_sorted_by_key(|it| it.time), "in the order of their times");
}
