//! Files of other tools: every sample reads, what is written reads back, what is beyond the model is refused by name.

mod strict;

use horolog_draw::Random;
use horolog_interchange::{Format, read, write};
use horolog_model::{Policy, System};
use horolog_sim::{Horizon, SimOptions, simulate};
use horolog_time::Span;
use horolog_trace::{Kind, Record};
use std::collections::BTreeMap;
use std::path::PathBuf;

const MS: Span = Span::from_ns(1_000_000);
const US: Span = Span::from_ns(1_000);
const NS: Span = Span::from_ns(1);

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interchange")).join(name)
}

fn samples(format: Format) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder(format.word())).expect("a folder for the format");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no sample of {}", format.word());
    let text = |file: &PathBuf| std::fs::read_to_string(file).expect("a sample is text");
    files
        .iter()
        .map(|file| (file.file_name().unwrap_or_default().to_string_lossy().into_owned(), text(file)))
        .collect()
}

/// The system that a file of the product's own format describes.
fn toml(text: &str) -> System {
    horolog_model::file::read(text, "expected.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0
}

fn refusal(format: Format, text: &str) -> String {
    match read(format, text, "sample", MS) {
        Ok(read) => panic!("{} was read: {:?}", format.word(), read.system),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_sample_reads_and_what_is_written_is_a_fixed_point() {
    for format in Format::ALL {
        for (name, text) in samples(format) {
            let first = read(format, &text, &name, MS).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!first.system.tasks().is_empty());
            if !format.is_written() {
                continue;
            }
            let system = horolog_of_explicit(&first.system);
            let written = write(format, &system, US).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            let second =
                read(format, &written.text, &name, US).unwrap_or_else(|error| panic!("{name}: {error}"));
            let again = write(format, &horolog_of_explicit(&second.system), US)
                .expect("what was read can be written");
            assert_eq!(written.text, again.text, "{name}");
        }
    }
}

/// Priorities by deadline or period, as the assignments of the file say.
fn horolog_of_explicit(system: &System) -> System {
    use horolog_model::{Priority, PriorityAssignment};
    if system.policy() == Policy::Edf || system.priorities() == PriorityAssignment::Explicit {
        return system.clone();
    }
    let key = |index: &usize| {
        let task = &system.tasks()[*index];
        let by = if system.priorities() == PriorityAssignment::RateMonotonic {
            task.separation()
        } else {
            task.deadline
        };
        (by, *index)
    };
    let mut order: Vec<usize> = (0..system.tasks().len()).collect();
    order.sort_by_key(key);
    let mut priorities = vec![Priority::new(0); order.len()];
    for (place, index) in order.iter().enumerate() {
        priorities[*index] = Priority::new((order.len() - place) as i64);
    }
    system.with_explicit_priorities(&priorities).expect("one priority a task")
}

#[test]
fn a_job_set_becomes_a_task_a_job_in_the_order_of_its_priorities() {
    let text = "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority\n\
                7, 2, 3, 3, 0, 4, 20, 5\n 2, 9, 0, 0, 1, 2, 10, 5\n2, 1, 0, 0, 2, 2, 30, 8\n";
    let read = read(Format::NpCsv, text, "jobs.csv", US).expect("it reads");
    let expected = "system = { name = \"jobs\" }\n\
        [[task]]\nname = \"T7J2\"\narrivals = [\"3 us\"]\nbcet = \"0 us\"\nwcet = \"4 us\"\ndeadline = \"17 us\"\npriority = 2\npreemption = \"non-preemptive\"\n\
        [[task]]\nname = \"T2J9\"\narrivals = [\"0 us\"]\nbcet = \"1 us\"\nwcet = \"2 us\"\ndeadline = \"10 us\"\npriority = 3\npreemption = \"non-preemptive\"\n\
        [[task]]\nname = \"T2J1\"\narrivals = [\"0 us\"]\nwcet = \"2 us\"\ndeadline = \"30 us\"\npriority = 1\npreemption = \"non-preemptive\"\n";
    assert_eq!(read.system, toml(expected));
}

#[test]
fn both_forms_of_a_mast_model_are_the_same_system() {
    let of = |format: Format, file: &str| {
        let text = std::fs::read_to_string(folder(format.word()).join(file)).expect("a sample");
        read(format, &text, file, MS).unwrap_or_else(|error| panic!("{error}")).system
    };
    let text = of(Format::Mast, "two-tasks.txt");
    assert_eq!(text, of(Format::MastXml, "two-tasks.xml"));
    let expected = "system = { name = \"Two_Tasks\" }\n\
        [[task]]\nname = \"Control\"\nperiod = \"20 ms\"\ndeadline = \"15 ms\"\nwcet = \"4 ms\"\nbcet = \"1 ms\"\njitter = \"0.5 ms\"\npriority = 20\n\
        [[task.section]]\nresource = \"Map\"\nfrom = \"2.5 ms\"\nlength = \"1.5 ms\"\n\
        [[task]]\nname = \"Log\"\nseparation = \"100 ms\"\nbcet = \"0 ms\"\nwcet = \"3 ms\"\npriority = 5\nconstraint = \"soft\"\npreemption = \"non-preemptive\"\n\
        [[task.section]]\nresource = \"Map\"\nfrom = \"0 ms\"\nlength = \"3 ms\"\n\
        [[resource]]\nname = \"Map\"\nprotocol = \"ceiling\"\n";
    assert_eq!(text, toml(expected));
}

#[test]
fn workloads_of_rt_app_have_sections_where_they_lock() {
    let text = std::fs::read_to_string(folder("rt-app").join("mutex.json")).expect("a sample");
    let read = read(Format::RtApp, &text, "mutex.json", NS).unwrap_or_else(|error| panic!("{error}"));
    let expected = "system = { name = \"mutex\" }\nplatform = { cpus = [1] }\n\
        [[task]]\nname = \"control\"\nperiod = \"10 ms\"\nwcet = \"600 us\"\npriority = 50\ncpu = 1\n\
        [[task.section]]\nresource = \"m0\"\nfrom = \"200 us\"\nlength = \"300 us\"\n\
        [[task]]\nname = \"logger\"\nperiod = \"40 ms\"\nwcet = \"400 us\"\npriority = 20\ncpu = 1\n\
        [[task.section]]\nresource = \"m0\"\nfrom = \"0 us\"\nlength = \"400 us\"\n\
        [[resource]]\nname = \"m0\"\nprotocol = \"inheritance\"\n";
    assert_eq!(read.system, toml(expected));
}

#[test]
fn columns_without_names_are_execution_time_deadline_and_period() {
    let read = read(Format::Columns, "2 8 10\n", "set", MS).expect("it reads");
    let expected = "system = { name = \"set\", priorities = \"deadline-monotonic\" }\n\
        [[task]]\nname = \"task 1\"\nseparation = \"10 ms\"\nwcet = \"2 ms\"\ndeadline = \"8 ms\"\n";
    assert_eq!(read.system, toml(expected));
}

/// When each job completes, by task and number.
fn completions(system: &System, until: u64) -> BTreeMap<(u32, u64), u64> {
    let options = SimOptions { horizon: Horizon::Time(Span::from_ns(until)), ..SimOptions::default() };
    let mut records: Vec<Record> = Vec::new();
    simulate(system, &options, &mut records).expect("it can be simulated");
    let done = records.iter().filter(|record| record.kind == Kind::Completion);
    done.map(|record| ((record.task, record.job), record.time.as_ns())).collect()
}

#[test]
fn a_system_and_its_job_set_have_the_same_schedule() {
    let mut jobs = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let (system, end) = drawn(&mut random);
        let format = if seed % 2 == 0 { Format::NpCsv } else { Format::NpYaml };
        let written = write(format, &system, NS).unwrap_or_else(|error| panic!("{seed}: {error:?}"));
        let set =
            read(format, &written.text, "set", NS).unwrap_or_else(|error| panic!("{seed}: {error}")).system;
        let (expected, found) = (completions(&system, end), completions(&set, end));
        let of_set: BTreeMap<(u32, u64), u64> = found
            .iter()
            .map(|(&(task, _), &at)| {
                let (of, job) = set.tasks()[task as usize].name[1..].split_once('J').expect("T…J…");
                ((of.parse::<u32>().expect("a number") - 1, job.parse::<u64>().expect("a number") - 1), at)
            })
            .collect();
        assert_eq!(expected, of_set, "seed {seed}\n{}", written.text);
        jobs += expected.len();
    }
    assert!(jobs > 2_000, "{jobs}");
}

/// Tasks with few distinct small periods, so that many instants, priorities and deadlines are equal; and the end of the jobs that are written.
fn drawn(random: &mut Random) -> (System, u64) {
    let is_edf = random.below(2) == 0;
    let periods = [4, 6, 8, 12];
    let mut text = format!(
        "system = {{ name = \"drawn\", policy = \"{}\" }}\n",
        if is_edf { "edf" } else { "fixed-priority" }
    );
    let (mut latest, mut hyperperiod) = (0, 1);
    for task in 0..random.between(1, 4) {
        let period = periods[random.below(4) as usize];
        let (wcet, offset) = (random.between(1, 3), random.below(5));
        let deadline = random.between(wcet, 2 * period);
        let priority = if is_edf { String::new() } else { format!("priority = {}\n", random.between(1, 3)) };
        text += &format!(
            "[[task]]\nname = \"{task}\"\nperiod = \"{period} ns\"\noffset = \"{offset} ns\"\nwcet = \"{wcet} ns\"\ndeadline = \"{deadline} ns\"\n\
             preemption = \"non-preemptive\"\n{priority}"
        );
        latest = latest.max(offset);
        hyperperiod = (1..)
            .map(|factor| factor * period)
            .find(|multiple| multiple % hyperperiod == 0)
            .expect("a multiple");
    }
    (toml(&text), latest + hyperperiod)
}

#[test]
fn what_is_beyond_the_model_is_refused_by_name() {
    let simso = |attributes: &str, inside: &str| {
        format!(
            "<simulation {attributes}><sched class=\"simso.schedulers.EDF\"/><caches/>\
             <processors><processor name=\"a\" id=\"1\"/></processors><tasks>{inside}</tasks></simulation>"
        )
    };
    let rt_app = |thread: &str| {
        format!("{{ \"tasks\" : {{ \"a\" : {{ \"policy\" : \"SCHED_FIFO\", \"cpus\" : [0], {thread} }} }} }}")
    };
    let head = "Task ID, Job ID, Arrival min, Arrival max, Cost min, Cost max, Deadline, Priority\n";
    let cases = [
        (
            Format::NpCsv,
            format!("{head}1, 1, 0, 1, 1, 1, 9, 1\n"),
            "an arrival that is known only within an interval",
        ),
        (Format::NpCsv, format!("{head}1, 1, 0, 0, 1, 1, 9\n"), "a job has 8 values, and there are 7"),
        (Format::NpCsv, format!("{head}1, 1, 0, 0, 1, 1, 9, 1, 3\n"), "a job has 8 values, and there are 9"),
        (Format::NpCsv, "1, 1, 0, 0, 1, 1, 9, 1\n".to_owned(), "the first line is a job"),
        (Format::NpCsv, format!("{head}1, 1, 5, 5, 1, 1, 5, 1\n"), "not after the arrival"),
        (Format::NpCsv, format!("{head}1, 1, 0, 0, 1, 1, 9, 1\n1, 1, 4, 4, 1, 1, 9, 1\n"), "given twice"),
        (Format::NpCsv, format!("{head}1, 1, 0, 0, -1, 1, 9, 1\n"), "-1 is negative"),
        (Format::NpCsv, head.to_owned(), "there is no job"),
        (
            Format::NpYaml,
            "jobset:\n  - Task ID: 1\n    Successors: [[1, 2]]\n".to_owned(),
            "`Successors` is beyond the model",
        ),
        (Format::NpYaml, "jobs: []\n".to_owned(), "`jobs` is beyond the model"),
        (Format::NpYaml, "- ".repeat(100_000), "nests deeper than 64"),
        (Format::Simso, simso("etm=\"acet\"", ""), "execution times by `acet` is beyond the model"),
        (
            Format::Simso,
            simso("", "<task name=\"a\" id=\"1\" period=\"4\" deadline=\"4\" WCET=\"1\" followed_by=\"2\"/>"),
            "released by another one",
        ),
        (
            Format::Simso,
            simso(
                "",
                "<task name=\"a\" id=\"1\" task_type=\"APeriodic\" list_activation_dates=\"3\" deadline=\"4\" WCET=\"1\"/>",
            ),
            "of which SimSo releases no job by itself",
        ),
        (
            Format::Simso,
            simso("", "<task name=\"a\" id=\"1\" period=\"4\" deadline=\"4\"/>"),
            "the task has no `WCET`",
        ),
        (
            Format::Simso,
            simso("", "<task name=\"a\" id=\"1\" period=\"4\" deadline=\"4\" WCET=\"1e-7\"/>"),
            "not a whole number of nanoseconds",
        ),
        (
            Format::Simso,
            "<simulation><sched class=\"simso.schedulers.LLF\"/></simulation>".to_owned(),
            "the scheduler `LLF` is beyond the model",
        ),
        (Format::Simso, "<simulation>".to_owned(), "it is not XML"),
        (Format::RtApp, rt_app("\"run\" : 5, \"sleep\" : 10"), "`sleep` of a thread is beyond the model"),
        (Format::RtApp, rt_app("\"run\" : 5"), "no timer"),
        (
            Format::RtApp,
            rt_app("\"lock\" : \"m\", \"run\" : 5, \"timer\" : { \"ref\" : \"t\", \"period\" : 10 }"),
            "never unlocked",
        ),
        (
            Format::RtApp,
            rt_app("\"timer\" : { \"ref\" : \"t\", \"period\" : 10 }, \"run\" : 5"),
            "after the timer",
        ),
        (
            Format::RtApp,
            rt_app(
                "\"policy\" : \"SCHED_DEADLINE\", \"run\" : 5, \"timer\" : { \"ref\" : \"t\", \"period\" : 10 }",
            ),
            "under SCHED_DEADLINE",
        ),
        (Format::RtApp, "{ \"tasks\" : [".to_owned(), "it is not JSON"),
        (Format::Columns, "C D T X\n1 2 3 4\n".to_owned(), "the column `X` is beyond the model"),
        (Format::Columns, "1 2\n".to_owned(), "the row has 2 values, and there are 3 columns"),
        (Format::Columns, "C C T\n".to_owned(), "there twice"),
        (Format::Mast, "Operation ( Type => Simple".to_owned(), "here should be"),
        (
            Format::Mast,
            "Operation ( Type => Simple, Name => a );\nTimer ( Name => b );".to_owned(),
            "`Timer` is beyond the model",
        ),
    ];
    for (format, text, expected) in cases {
        let message = refusal(format, &text);
        assert!(message.contains(expected), "{}: {expected}\n{message}", format.word());
    }
    for file in ["skipped-job.csv", "abort.jobs.csv"] {
        let text = std::fs::read_to_string(folder("refused").join(file)).expect("a sample");
        assert!(refusal(Format::NpCsv, &text).contains("error"), "{file}");
    }
}

#[test]
fn operations_that_hold_each_other_many_times_end() {
    let mut text = String::from(
        "Processing_Resource ( Type => Fixed_Priority_Processor, Name => c );\n\
         Scheduling_Server ( Type => Regular, Name => s, Server_Sched_Parameters => ( Type => Fixed_Priority_Policy, The_Priority => 1), Server_Processing_Resource => c );\n\
         Operation ( Type => Simple, Name => o0, Worst_Case_Execution_Time => 1 );\n",
    );
    for level in 1..=30 {
        let below = level - 1;
        text += &format!(
            "Operation ( Type => Composite, Name => o{level}, Composite_Operation_List => (o{below}, o{below}) );\n"
        );
    }
    let transaction = |operation: &str| {
        format!(
            "Transaction ( Type => Regular, Name => t, External_Events => ((Type => Periodic, Name => e, Period => 100)),\n\
             Event_Handlers => ((Type => Activity, Activity_Operation => {operation}, Activity_Server => s)) );\n"
        )
    };
    assert!(
        refusal(Format::Mast, &(text.clone() + &transaction("o30"))).contains("more than 10000 operations")
    );
    let fine = read(Format::Mast, &(text.clone() + &transaction("o5")), "m", MS).expect("32 operations");
    assert_eq!(fine.system.tasks()[0].wcet, Span::from_ns(32_000_000));
    let circle = text.replace("(o0, o0)", "(o1, o1)") + &transaction("o1");
    assert!(refusal(Format::Mast, &circle).contains("look for a circle"));
}

#[test]
fn what_a_format_cannot_say_is_refused_by_its_path() {
    let one = |more: &str| {
        toml(&format!(
            "system = {{ name = \"s\" }}\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 1\n{more}"
        ))
    };
    let refused = |format: Format, system: &System| -> Vec<String> {
        write(format, system, MS)
            .map_or_else(|errors| errors.into_iter().map(|error| error.at).collect(), |_| Vec::new())
    };
    assert_eq!(refused(Format::NpCsv, &one("")), ["task.a.preemption", "task.a.offset"]);
    assert_eq!(
        refused(Format::NpCsv, &one("preemption = \"non-preemptive\"\noffset = \"0.5 ms\"\n")),
        ["task.a.offset"]
    );
    assert_eq!(refused(Format::Columns, &one("")), [""; 0]);
    assert_eq!(refused(Format::Columns, &one("offset = \"0 ms\"\n")), ["task.a.offset"]);
    assert_eq!(refused(Format::Columns, &one("jitter = \"1 us\"\n")), ["task.a.jitter"]);
    assert_eq!(refused(Format::Simso, &one("constraint = \"soft\"\n")), ["task.a.constraint"]);
    assert_eq!(refused(Format::RtApp, &one("deadline = \"9 ms\"\n")), ["task.a.deadline"]);
    assert_eq!(refused(Format::RtApp, &one("body = { spin = 0.5 }\n")), ["task.a.body"]);
    assert_eq!(refused(Format::Mast, &one("")), ["system"]);
    let costs = toml(
        "system = { name = \"s\" }\nplatform = { context_switch = \"1 us\" }\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 100\n",
    );
    assert_eq!(refused(Format::Columns, &costs), ["platform.context_switch"]);
    assert_eq!(refused(Format::RtApp, &costs), ["platform.context_switch", "task.a.priority"]);
}

/// No text, however damaged, ends in a panic, and each message has a place.
#[test]
fn damaged_files_are_read_or_refused() {
    let rounds: u64 = std::env::var("HOROLOG_DRAWS").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    for format in Format::ALL {
        for (name, text) in samples(format) {
            for seed in 0..rounds {
                let damaged = damaged(&text, &mut Random::new(seed));
                if let Err(error) = read(format, &damaged, &name, MS) {
                    assert!(
                        error
                            .messages()
                            .all(|message| !message.reason.is_empty() && !message.remedy.is_empty())
                    );
                    let _ = error.to_string();
                }
            }
        }
    }
}

fn damaged(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..random.between(1, 3) {
        let at = random.below(bytes.len().max(1) as u64) as usize;
        match random.below(5) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at.min(bytes.len()), b"0-.,()<>\"{}[]:eE\n\xc3"[random.below(18) as usize]),
            2 if at < bytes.len() => {
                bytes.remove(at);
            }
            3 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            _ => {
                let end = (at + random.below(40) as usize).min(bytes.len());
                let piece = bytes[at.min(end)..end].to_vec();
                bytes.splice(at.min(end)..at.min(end), piece);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn simso_releases_listed_arrivals_as_a_sporadic_task() {
    let task = |arrival: &str| {
        toml(&format!(
            "system = {{ name = \"s\", policy = \"edf\" }}\n[[task]]\nname = \"a\"\n{arrival}\nwcet = \"1 ms\"\ndeadline = \"4 ms\"\n"
        ))
    };
    let listed =
        write(Format::Simso, &task("arrivals = [\"3 ms\", \"8 ms\"]"), MS).expect("it can be written");
    assert!(listed.text.contains("task_type=\"Sporadic\""), "{}", listed.text);
    assert!(listed.text.contains("list_activation_dates=\"3.0,8.0\""), "{}", listed.text);
    assert!(listed.notes.is_empty());
    let sporadic = write(Format::Simso, &task("separation = \"5 ms\""), MS).expect("it can be written");
    assert!(
        sporadic.notes.iter().any(|note| note.contains("as densely as they may come")),
        "{:?}",
        sporadic.notes
    );
    let again = read(Format::Simso, &listed.text, "sample", MS).expect("it reads");
    assert_eq!(again.system.tasks()[0].arrival, task("arrivals = [\"3 ms\", \"8 ms\"]").tasks()[0].arrival);
    let again = read(Format::Simso, &sporadic.text, "sample", MS).expect("it reads");
    assert_eq!(again.system.tasks()[0].arrival, task("separation = \"5 ms\"").tasks()[0].arrival);
}
