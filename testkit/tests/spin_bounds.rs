//! Spin locks: no simulated response is above its bound, over random phases and execution times of systems on two to four processors, with local
//! resources beside the global ones.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::{Options, TermKind, Verdict, analyze};
use horolog_model::{System, file};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_testkit::{Random, explanations};
use horolog_time::Span;
use horolog_trace::NullSink;

const PERIODS: [u64; 5] = [12, 16, 24, 32, 48];

/// The file of a system with the offsets left out, and where each belongs.
fn draw(random: &mut Random) -> Vec<String> {
    let cpus = random.between(2, 4);
    let globals = random.between(1, 2);
    let mut head = format!("[system]\nname = \"spin\"\n[platform]\ncpus = {cpus}\n");
    for resource in 0..globals {
        head += &format!("[[resource]]\nname = \"g{resource}\"\nprotocol = \"fslm\"\n");
    }
    let mut parts = Vec::new();
    for cpu in 0..cpus {
        head += &format!("[[resource]]\nname = \"l{cpu}\"\n");
        let count = random.between(1, 4);
        let mut ceiling = None;
        for number in 0..count {
            let period = PERIODS[random.below(5) as usize];
            let wcet = random.between(1, (period / (2 * count)).max(2));
            let mut text = format!(
                "[[task]]\nname = \"c{cpu}t{number}\"\ncpu = {cpu}\npriority = {number}\nperiod = \"{period} ns\"\n\
                 deadline = \"1 ms\"\nwcet = \"{wcet} ns\"\nbcet = \"1 ns\"\n"
            );
            let mut at = 0;
            while at < wcet && random.below(3) > 0 {
                let from = random.between(at, wcet - 1);
                let length = random.between(1, wcet - from);
                let is_global = random.below(2) == 0;
                let name = if is_global { format!("g{}", random.below(globals)) } else { format!("l{cpu}") };
                text += &format!(
                    "[[task.section]]\nresource = \"{name}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"\n"
                );
                ceiling = if is_global { Some(number) } else { ceiling };
                at = from + length;
            }
            parts.push(text);
        }
        head += &match random.below(3) {
            0 => format!("[[spin_priority]]\ncpu = {cpu}\npriority = \"ceiling\"\n"),
            1 => format!(
                "[[spin_priority]]\ncpu = {cpu}\npriority = {}\n",
                random.between(ceiling.unwrap_or(0), count - 1)
            ),
            _ => String::new(),
        };
    }
    parts.insert(0, head);
    parts
}

fn with_offsets(parts: &[String], random: &mut Random) -> System {
    let mut text = parts[0].clone();
    for part in &parts[1..] {
        let offset = format!("offset = \"{} ns\"\n[[task.section]]", random.below(48));
        let plain = format!("{part}offset = \"{} ns\"\n", random.below(48));
        text += &if part.contains("[[task.section]]") {
            part.replacen("[[task.section]]", &offset, 1)
        } else {
            plain
        };
    }
    read(&text)
}

fn read(text: &str) -> System {
    file::read(text, "s.toml", &[])
        .map(|(system, _)| system)
        .unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// Both block a task above the spin priority: the local section of a task that has preempted the job that spins, and that job's own section.
#[test]
fn a_local_section_and_a_spin_lock_block_one_job() {
    let task = |name: &str, cpu: u32, priority: u32, offset: u32, wcet: u32, section: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"100 ns\"\noffset = \"{offset} ns\"\n\
             wcet = \"{wcet} ns\"\n[[task.section]]\n{section}\n"
        )
    };
    let holds = |name: &str, from: u32, length: u32| {
        format!("resource = \"{name}\"\nfrom = \"{from} ns\"\nlength = \"{length} ns\"")
    };
    let text = [
        "[system]\nname = \"s\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"fslm\"\n\
         [[resource]]\nname = \"bus\"\n[[spin_priority]]\ncpu = 0\npriority = \"ceiling\"\n"
            .to_owned(),
        task("urgent", 0, 9, 4, 5, &holds("bus", 4, 1)),
        task("middle", 0, 7, 3, 6, &holds("bus", 0, 6)),
        task("spinner", 0, 3, 1, 5, &holds("map", 0, 4)),
        task("remote", 1, 5, 0, 12, &holds("map", 0, 12)),
    ]
    .concat();
    let system = read(&text);
    let outcome = simulate(&system, &SimOptions::default(), &mut NullSink).unwrap();
    let bound = analyze(&system, &Options::default()).unwrap().tasks[0].response.unwrap();
    // Released one unit into the local section of 6; the lock comes at 12, in the middle of its 5.
    assert_eq!(outcome.tasks[0].response_ns_max, Some(Span::from_ns(5 + 5 + 4)));
    assert_eq!(bound, Span::from_ns(5 + 6 + 4));
}

/// The same system without costs of locking and with sections longer by them.
fn with_longer_sections(system: &System) -> System {
    let mut draft = system.to_draft();
    let locking = std::mem::take(&mut draft.platform.locking);
    let cost = locking.of_section().unwrap().as_ns();
    let is_global = |name: &str| {
        let place = system.find_resource(name).unwrap();
        system.resources()[place].protocol.is_global()
    };
    for task in &mut draft.tasks {
        let mut later = 0;
        task.sections.sort_by_key(|section| section.from);
        for section in &mut task.sections {
            section.from = Span::from_ns(section.from.as_ns() + later);
            if is_global(&section.resource) {
                section.length = Span::from_ns(section.length.as_ns() + cost);
                later += cost;
            }
        }
        task.wcet = Span::from_ns(task.wcet.as_ns() + later);
    }
    System::new(draft).unwrap()
}

#[test]
fn locking_costs_what_longer_sections_cost() {
    let mut random = Random::new(77);
    let (mut bounded, mut longer) = (0, 0);
    for _ in 0..600 {
        let parts = draw(&mut random);
        let costs = format!(
            "[platform]\nlock_request = \"{} ns\"\nlock_grant = \"{} ns\"\nlock_release = \"{} ns\"\ncontext_switch = \"{} ns\"\n",
            random.below(2),
            random.below(3),
            random.below(2),
            random.below(2)
        );
        let text = parts.concat().replacen("[platform]\n", &costs, 1);
        let system = read(&text);
        let stretched = with_longer_sections(&system);
        let of = |system: &System| {
            let tasks = analyze(system, &Options::default()).unwrap().tasks.into_iter();
            tasks
                .map(|task| (task.verdict == Verdict::Meets, task.response, task.blocking))
                .collect::<Vec<_>>()
        };
        let found = of(&system);
        assert_eq!(found, of(&stretched), "{text}");
        longer += u32::from(system.platform().locking.of_section() > Some(Span::ZERO));
        for seed in 0..4 {
            let options =
                SimOptions { horizon: Horizon::Time(Span::from_ns(960)), seed, ..SimOptions::default() };
            let Ok(outcome) = simulate(&stretched, &options, &mut NullSink) else { continue };
            for ((_, bound, _), task) in found.iter().zip(&outcome.tasks) {
                if let (Some(bound), Some(response)) = (bound, task.response_ns_max) {
                    assert!(response <= *bound, "{text}");
                    bounded += 1;
                }
            }
        }
    }
    assert!(bounded > 5_000 && longer > 400, "{bounded} {longer}");
}

/// The terms of an explanation make up the bound of the analysis.
#[test]
fn what_is_explained_is_what_was_proved() {
    let mut random = Random::new(31);
    let (mut blocked, mut shorter, mut helped) = (0, 0, 0);
    for _ in 0..600 {
        let parts = draw(&mut random);
        let costs = "[platform]\ncontext_switch = \"1 ns\"\nlock_request = \"1 ns\"\nlock_grant = \"2 ns\"\n";
        let text = if random.below(2) == 0 {
            parts.concat()
        } else {
            parts.concat().replacen("[platform]\n", costs, 1)
        };
        let system = read(&text);
        for explained in explanations(&system) {
            let is_spin = |term: &horolog_analysis::Term| term.kind == TermKind::BlockingSpinLock;
            blocked += u32::from(explained.terms.iter().any(is_spin));
            shorter += u32::from(!explained.terms.iter().any(is_spin));
        }
        helped += explanations(&read(&draw_helping(&mut random).concat())).len();
    }
    assert!(blocked > 300 && shorter > 300 && helped > 300, "{blocked} {shorter} {helped}");
}

/// The same systems with locks that tell readers from writers: each task reads what it uses, or writes it.
fn draw_readers(random: &mut Random) -> Vec<String> {
    let protocol = if random.below(2) == 0 { "task-fair" } else { "phase-fair" };
    let is_edf = random.below(4) == 0;
    let mut parts = draw(random);
    let head = parts[0].split("[[spin_priority]]").next().unwrap().to_owned();
    let rest: String = parts[0].split("[[resource]]").skip(1).map(|it| format!("[[resource]]{it}")).collect();
    let rest: Vec<&str> = rest.split("[[").filter(|it| it.starts_with("resource")).collect();
    let platform = head.split("[[resource]]").next().unwrap();
    parts[0] = rest.iter().fold(platform.to_owned(), |text, one| text + "[[" + one).replace("fslm", protocol);
    if is_edf {
        parts[0] = parts[0].replacen("[system]\n", "[system]\npolicy = \"edf\"\n", 1);
    }
    for part in &mut parts[1..] {
        let reads: Vec<bool> = (0..2).map(|_| random.below(3) > 0).collect();
        let sections: Vec<String> = part
            .split("[[task.section]]")
            .map(|section| {
                let is_read = (0..2).any(|it| reads[it] && section.contains(&format!("\"g{it}\"")));
                format!("{section}{}", if is_read { "access = \"read\"\n" } else { "" })
            })
            .collect();
        *part = sections.join("[[task.section]]");
        if is_edf {
            *part = part
                .lines()
                .filter(|line| !line.starts_with("priority"))
                .map(|it| format!("{it}\n"))
                .collect();
        }
    }
    parts
}

/// The same systems under the multiprocessor resource sharing protocol.
fn draw_helping(random: &mut Random) -> Vec<String> {
    let mut parts = draw(random);
    let tables = parts[0].split("[[").filter(|it| !it.starts_with("spin_priority"));
    parts[0] = tables.collect::<Vec<_>>().join("[[").replace("fslm", "mrsp");
    parts
}

/// The same systems with preemptable spin locks, some of them beside `msrp` or `fslm`; with equal priorities, jitter, late releases, costs and local protocols.
fn draw_preemptable(random: &mut Random) -> Vec<String> {
    let mut parts = draw(random);
    if random.below(4) > 0 || !parts[0].contains("\"g1\"") {
        let tables = parts[0].split("[[").filter(|it| !it.starts_with("spin_priority"));
        parts[0] = tables.collect::<Vec<_>>().join("[[").replace("fslm", "preemptable-fifo");
    } else {
        parts[0] = parts[0].replacen("fslm", "preemptable-fifo", 1);
    }
    if random.below(3) == 0 {
        let local = ["inheritance", "original-ceiling", "non-preemptive"][random.below(3) as usize];
        for cpu in 0..4 {
            let name = format!("name = \"l{cpu}\"\n");
            parts[0] = parts[0].replace(&name, &format!("{name}protocol = \"{local}\"\n"));
        }
    }
    let mut platform = String::from("[platform]\n");
    for cost in ["release_latency", "context_switch", "lock_request"] {
        // What asking costs is in no simulation: it only makes the bound larger.
        if random.below(4) == 0 {
            platform += &format!("{cost} = \"{} ns\"\n", random.between(1, 2));
        }
    }
    parts[0] = parts[0].replacen("[platform]\n", &platform, 1);
    let (has_equals, has_jitter) =
        (random.below(3) == 0 && !parts[0].contains("spin_priority"), random.below(3) == 0);
    for part in &mut parts[1..] {
        if has_equals {
            *part =
                part.replace("priority = 2\n", "priority = 1\n").replace("priority = 3\n", "priority = 1\n");
        }
        if has_jitter {
            let jitter = format!("bcet = \"1 ns\"\njitter = \"{} ns\"\n", random.below(6));
            *part = part.replacen("bcet = \"1 ns\"\n", &jitter, 1);
        }
    }
    parts
}

/// How often bounds held and were attained, and in how many systems tasks had bounds of this kind.
fn hold_against_runs(
    random: &mut Random,
    rounds: u32,
    parts: impl Fn(&mut Random) -> Vec<String>,
) -> (u32, u32, u32) {
    let (mut bounded, mut attained, mut spun) = (0, 0, 0);
    for round in 0..rounds {
        let parts = parts(random);
        let system = read(&parts.concat());
        let analysis = analyze(&system, &Options::default()).unwrap();
        let bounds: Vec<Option<u64>> =
            analysis.tasks.iter().map(|task| task.response.map(Span::as_ns)).collect();
        let mut worst = vec![0; bounds.len()];
        for phase in 0..8 {
            let system = with_offsets(&parts, random);
            let mut options = SimOptions {
                horizon: Horizon::Time(Span::from_ns(960)),
                seed: phase,
                ..SimOptions::default()
            };
            if phase % 2 == 1 {
                options.execution = horolog_sim::ExecutionChoice::Uniform;
            }
            let Ok(outcome) = simulate(&system, &options, &mut NullSink) else { continue };
            for (worst, task) in worst.iter_mut().zip(&outcome.tasks) {
                *worst = (*worst).max(task.response_ns_max.map_or(0, Span::as_ns));
            }
        }
        for (task, (worst, bound)) in worst.iter().zip(&bounds).enumerate() {
            let Some(bound) = bound else { continue };
            assert!(worst <= bound, "round {round}, task {task}: {worst} of {bound}\n{}", parts.concat());
            bounded += 1;
            attained += u32::from(worst == bound);
        }
        let spins =
            |test: &str| test.ends_with("-spin-locks") || ["fp-mrsp", "fp-preemptable-fifo"].contains(&test);
        spun += u32::from(analysis.tasks.iter().any(|task| spins(task.test)));
    }
    (bounded, attained, spun)
}

#[test]
fn no_simulated_response_is_above_its_bound() {
    let (bounded, attained, spun) = hold_against_runs(&mut Random::new(5), 3_000, draw);
    assert!(bounded > 10_000 && attained > 2_000 && spun > 2_000, "{bounded} {attained} {spun}");
}

#[test]
fn no_response_beside_readers_and_writers_is_above_its_bound() {
    let (bounded, attained, spun) = hold_against_runs(&mut Random::new(17), 3_000, draw_readers);
    assert!(bounded > 10_000 && attained > 1_000 && spun > 2_000, "{bounded} {attained} {spun}");
}

#[test]
fn no_response_of_helped_jobs_is_above_its_bound() {
    let (bounded, attained, spun) = hold_against_runs(&mut Random::new(41), 3_000, draw_helping);
    assert!(bounded > 10_000 && attained > 1_000 && spun > 2_000, "{bounded} {attained} {spun}");
}

#[test]
fn no_response_of_jobs_that_spin_and_are_preempted_is_above_its_bound() {
    let (bounded, attained, spun) = hold_against_runs(&mut Random::new(27), 1_200, draw_preemptable);
    assert!(bounded > 4_000 && attained > 400 && spun > 700, "{bounded} {attained} {spun}");
}

/// The wait in vain counts whole: `waits` spins from 0 and loses its place one unit before the unlock at 50; the next section of the other processor is ahead then.
#[test]
fn a_request_in_vain_costs_its_whole_wait() {
    let section = |from: u32| {
        format!("[[task.section]]\nresource = \"map\"\nfrom = \"{from} ns\"\nlength = \"50 ns\"\n")
    };
    let task = |name: &str, cpu: u32, priority: u32, offset: u32, wcet: u32, sections: &str| {
        format!(
            "[[task]]\nname = \"{name}\"\ncpu = {cpu}\npriority = {priority}\nperiod = \"1 us\"\noffset = \"{offset} ns\"\n\
             wcet = \"{wcet} ns\"\n{sections}"
        )
    };
    let text = [
        "[system]\nname = \"s\"\n[platform]\ncpus = 2\n[[resource]]\nname = \"map\"\nprotocol = \"preemptable-fifo\"\n"
            .to_owned(),
        task("remote", 0, 1, 0, 110, &(section(0) + &section(50))),
        task("urgent", 1, 9, 49, 1, ""),
        task("waits", 1, 3, 0, 60, &section(0)),
    ];
    let system = read(&text.concat());
    let outcome = simulate(&system, &SimOptions::default(), &mut NullSink).unwrap();
    let bound = analyze(&system, &Options::default()).unwrap().tasks[2].response.unwrap();
    assert_eq!(bound, Span::from_ns(60 + 50 + 1 + 50));
    assert_eq!(
        outcome.tasks[2].response_ns_max,
        Some(Span::from_ns(160)),
        "all but the unit before the unlock"
    );
}
