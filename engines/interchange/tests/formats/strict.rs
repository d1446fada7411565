//! Nothing is dropped in silence: whatever a sample is given more is refused by its name, and so is what another tool takes otherwise.

use crate::{MS, NS, US, folder, refusal, samples, toml};
use horolog_interchange::{Format, Read, read, write};
use horolog_model::Arrival;
use horolog_time::Span;

fn ms(count: u64) -> Span {
    Span::from_ns(count * 1_000_000)
}

fn fine(format: Format, text: &str) -> Read {
    read(format, text, "sample", MS).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refused(format: Format, text: &str, expected: &str) {
    let message = refusal(format, text);
    assert!(message.contains(expected), "{}: {expected}\n{message}", format.word());
}

/// The bytes of each start tag, from `<` to behind `>`.
fn tags(text: &str) -> Vec<std::ops::Range<usize>> {
    let starts = text.match_indices('<').map(|(at, _)| at);
    starts
        .filter(|at| text[at + 1..].starts_with(|c: char| c.is_ascii_alphabetic()))
        .map(|at| at..at + text[at..].find('>').expect("a tag has an end") + 1)
        .collect()
}

/// The text with something more in the element of a tag.
fn within(text: &str, tag: &std::ops::Range<usize>, more: &str) -> String {
    let (before, own, after) = (&text[..tag.start], &text[tag.clone()], &text[tag.end..]);
    match own.strip_suffix("/>") {
        Some(open) => {
            let name: String = own[1..].chars().take_while(|c| !c.is_whitespace() && *c != '/').collect();
            format!("{before}{open}>{more}</{name}>{after}")
        }
        None => format!("{before}{own}{more}{after}"),
    }
}

#[test]
fn no_element_attribute_or_text_of_xml_is_dropped() {
    let mut count = 0;
    for format in [Format::Simso, Format::MastXml] {
        for (name, text) in samples(format) {
            for tag in tags(&text) {
                for more in ["<zz/>", "zz", "<!-- a -->zz<!-- b -->", "<![CDATA[zz]]>"] {
                    refused(format, &within(&text, &tag, more), "zz");
                }
                let end = tag.start + text[tag.clone()].find([' ', '>', '/']).expect("a name has an end");
                refused(format, &format!("{} zz=\"1\"{}", &text[..end], &text[end..]), "zz");
                let foreign = format!("{} xmlns:q=\"q\" q:zz=\"1\"{}", &text[..end], &text[end..]);
                // The root alone may say where its schema lies.
                if format == Format::Simso || tag.start > text.find("MAST_MODEL").expect("a model") {
                    refused(format, &foreign, "zz");
                }
                count += 1;
            }
            assert!(count > 0, "{name}");
        }
    }
    assert!(count > 30, "{count}");
}

#[test]
fn no_element_of_xml_is_there_twice() {
    let text = &samples(Format::MastXml)[0].1;
    for tag in tags(text).into_iter().filter(|tag| text[tag.clone()].ends_with("/>")) {
        let twice = format!("{}{}{}", &text[..tag.end], &text[tag.clone()], &text[tag.end..]);
        // The same once more, and another value: neither is taken for the first one.
        refusal(Format::MastXml, &twice);
        refusal(Format::MastXml, &twice.replacen("=\"2", "=\"3", 1));
    }
    for (_, text) in samples(Format::Simso) {
        refused(Format::Simso, &text.replace("<caches ", "<caches/><caches "), "`caches` is there twice");
        let with_fields = text.replace("<tasks>", "<tasks><tasks/>");
        refused(Format::Simso, &with_fields, "the element `tasks` in `tasks`");
    }
}

#[test]
fn no_item_of_mast_is_unknown_or_there_twice() {
    let mut count = 0;
    for (_, text) in samples(Format::Mast) {
        for (at, _) in text.match_indices('(') {
            refusal(Format::Mast, &format!("{}Zz => 1, {}", &text[..=at], &text[at + 1..]));
            refusal(Format::Mast, &format!("{}(Zz => 1), {}", &text[..=at], &text[at + 1..]));
            refusal(Format::Mast, &format!("{}Zz, {}", &text[..=at], &text[at + 1..]));
        }
        for (at, _) in text.match_indices("=>") {
            let key = text[..at].trim_end().rsplit([' ', '(', ',', '\n']).next().expect("a key");
            let start = at - text[..at].len() + text[..at].rfind(key).expect("the key");
            for twice in [format!("{key} => 77, "), format!("{} => (a), ", key.to_uppercase())] {
                refused(
                    Format::Mast,
                    &format!("{}{twice}{}", &text[..start], &text[start..]),
                    "is there twice",
                );
            }
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
}

#[test]
fn no_key_of_a_workload_is_unknown_or_there_twice() {
    for (_, text) in samples(Format::RtApp) {
        for (at, _) in text.match_indices('{') {
            refused(Format::RtApp, &format!("{}\"zz\" : 1, {}", &text[..=at], &text[at + 1..]), "zz");
        }
        for (at, _) in text.match_indices("\" :") {
            let start = text[..at].rfind('"').expect("a key");
            let twice = format!("{}{} : 1, {}", &text[..start], &text[start..=at], &text[start..]);
            refused(Format::RtApp, &twice, "is there twice");
        }
    }
}

fn simulation(class: &str, processors: usize, field: &str, tasks: &str) -> String {
    let processors: String =
        (0..processors).map(|id| format!("<processor name=\"p{id}\" id=\"{id}\"/>")).collect();
    format!(
        "<simulation etm=\"wcet\"><sched class=\"simso.schedulers.{class}\"/><caches/>\
         <processors>{processors}</processors><tasks>{field}{tasks}</tasks></simulation>"
    )
}

fn simso_task(name: &str, more: &str) -> String {
    format!("<task name=\"{name}\" id=\"1\" WCET=\"2\" deadline=\"6\" abort_on_miss=\"no\" {more}/>")
}

const INT: &str = "<field name=\"priority\" type=\"int\"/>";

#[test]
fn what_simso_takes_otherwise_is_refused() {
    let periodic = simso_task("a", "period=\"6\" priority=\"1\"");
    for class in ["EDF_mono", "RM_mono"] {
        fine(Format::Simso, &simulation(class, 1, "", &periodic));
        refused(Format::Simso, &simulation(class, 2, "", &periodic), "uses one processor, and there are 2");
    }
    fine(Format::Simso, &simulation("FP", 1, INT, &periodic));
    for kind in ["str", "bool", "float"] {
        let field = format!("<field name=\"priority\" type=\"{kind}\"/>");
        refused(
            Format::Simso,
            &simulation("FP", 1, &field, &periodic),
            &format!("as `{kind}`, not as integers"),
        );
    }
    refused(
        Format::Simso,
        &simulation("FP", 1, &[INT, INT].concat(), &periodic),
        "`priority` is there twice",
    );
    let inside = periodic.replace("/>", &format!(">{}</task>", simso_task("b", "period=\"9\"")));
    refused(Format::Simso, &simulation("EDF", 1, "", &inside), "the element `task` in `task`");
    let aperiodic = simso_task("a", "task_type=\"APeriodic\" list_activation_dates=\"0,4\"");
    refused(Format::Simso, &simulation("EDF", 1, "", &aperiodic), "no job by itself");
    let both = simulation("EDF", 1, "", &simso_task("a", "period=\"1_0\""));
    assert_eq!(refusal(Format::Simso, &both).matches("is not a number").count(), 1);
}

#[test]
fn sporadic_tasks_of_simso_have_the_jobs_of_their_dates() {
    let of = |period: u64, dates: &str| {
        let more = format!("task_type=\"Sporadic\" period=\"{period}\" list_activation_dates=\"{dates}\"");
        simulation("EDF", 1, "", &simso_task("a", &more))
    };
    let arrival = |text: &str| fine(Format::Simso, text).system.tasks()[0].arrival.clone();
    assert_eq!(arrival(&of(6, "0, 6, 13")), Arrival::Sporadic { separation: ms(6) });
    refused(Format::Simso, &of(7, "0, 6, 13"), "activations are 6 ms apart, and the period is 7 ms");
    assert_eq!(arrival(&of(0, "4, 0")), Arrival::Aperiodic { arrivals: vec![ms(0), ms(4)] });
    assert!(fine(Format::Simso, &of(6, "")).notes.iter().any(|note| note.contains("have no job in SimSo")));

    let head = "system = { name = \"s\", policy = \"edf\" }\n[[task]]\nname = \"a\"\nwcet = \"1 ms\"\ndeadline = \"4 ms\"\n";
    let listed = toml(&format!("{head}arrivals = [\"0 ms\", \"3.5 ms\"]\n"));
    let written = write(Format::Simso, &listed, MS).expect("dates can be said").text;
    assert!(written.contains("task_type=\"Sporadic\"") && written.contains("\"0.0,3.5\""), "{written}");
    assert_eq!(arrival(&written), listed.tasks()[0].arrival);

    let sporadic = toml(&format!(
        "{head}separation = \"5 ms\"\n[[task]]\nname = \"b\"\nwcet = \"1 ms\"\nperiod = \"15 ms\"\noffset = \"1 ms\"\n"
    ));
    let written = write(Format::Simso, &sporadic, MS).expect("it can be said");
    // One hyperperiod behind the largest offset: 16 ms.
    assert!(written.text.contains("list_activation_dates=\"0.0,5.0,10.0,15.0\""), "{}", written.text);
    assert!(written.notes.iter().any(|note| note.contains("from 0 to 16 ms")), "{:?}", written.notes);
    assert_eq!(arrival(&written.text), Arrival::Sporadic { separation: ms(5) });
}

#[test]
fn times_of_simso_are_whole_cycles() {
    let of = |cycles: &str, period: &str| {
        simulation("EDF", 1, "", &simso_task("a", &format!("period=\"{period}\"")))
            .replace("etm=", &format!("cycles_per_ms=\"{cycles}\" etm="))
    };
    fine(Format::Simso, &of("1000", "6.001"));
    fine(Format::Simso, &of("1000000", "6.000001"));
    refused(Format::Simso, &of("1000", "6.0005"), "not a whole number of cycles");
    refused(Format::Simso, &of("1", "6.5"), "not a whole number of cycles");
    for cycles in ["0", "x", "1.5"] {
        refused(Format::Simso, &of(cycles, "6"), "not cycles per millisecond");
    }
}

#[test]
fn equals_of_simso_are_equals_here_and_named() {
    let tasks = [("a", 6), ("b", 4), ("c", 6)]
        .map(|(name, period)| simso_task(name, &format!("period=\"{period}\"")));
    let read = fine(Format::Simso, &simulation("RM", 1, "", &tasks.concat()));
    let numbers: Vec<_> =
        read.system.tasks().iter().filter_map(|task| task.priority).map(|p| p.number()).collect();
    assert_eq!(numbers, [1, 2, 1]);
    let note = |notes: &[String]| notes.iter().any(|note| note.starts_with("`a`, `c` have the same p"));
    assert!(note(&read.notes), "{:?}", read.notes);
    let written = write(Format::Simso, &read.system, MS).expect("priorities can be said");
    assert!(note(&written.notes), "{:?}", written.notes);
    assert!(note(&fine(Format::Simso, &written.text).notes));
}

#[test]
fn a_job_goes_on_after_a_miss_and_simso_ends_it_unless_told_otherwise() {
    let of = |more: &str| {
        let task = format!("<task name=\"a\" id=\"1\" WCET=\"1\" period=\"4\" deadline=\"4\" {more}/>");
        let read = fine(Format::Simso, &simulation("EDF", 1, "", &task));
        read.notes.iter().any(|note| note.contains("abort_on_miss"))
    };
    assert!(of("") && of("abort_on_miss=\"yes\"") && !of("abort_on_miss=\"no\""));
}

/// A model of one task that `more` belongs to, with a resource.
fn mast(resource: &str, operations: &str, operation: &str) -> String {
    format!(
        "Model (Model_Name => m);\nProcessing_Resource (Type => Regular_Processor, Name => p);\n\
         Scheduler (Type => Primary_Scheduler, Name => sc, Host => p, Policy => (Type => Fixed_Priority));\n\
         Shared_Resource (Type => Immediate_Ceiling_Resource, Name => r{resource});\n\
         Scheduling_Server (Type => Regular, Name => s, Server_Sched_Parameters => (Type => Fixed_Priority_Policy, The_Priority => 5), Scheduler => sc);\n\
         {operations}\n\
         Transaction (Type => Regular, Name => t, External_Events => ((Type => Periodic, Name => e, Period => 20)),\n\
         Internal_Events => ((Type => Regular, Name => o, Timing_Requirements => (Type => Hard_Global_Deadline, Deadline => 9, Referenced_Event => e))),\n\
         Event_Handlers => ((Type => Activity, Input_Event => e, Output_Event => o, Activity_Operation => {operation}, Activity_Server => s)));\n"
    )
}

const LOCKS: &str =
    "Operation (Type => Simple, Name => x, Worst_Case_Execution_Time => 2, Shared_Resources_List => (r));";

#[test]
fn a_ceiling_of_mast_is_that_of_the_users_or_refused() {
    fine(Format::Mast, &mast("", LOCKS, "x"));
    fine(Format::Mast, &mast(", Ceiling => 5", LOCKS, "x"));
    for ceiling in [4, 6] {
        let given = format!(", Ceiling => {ceiling}");
        refused(Format::Mast, &mast(&given, LOCKS, "x"), "is not the highest priority of those that use `r`");
        fine(Format::Mast, &mast(&format!("{given}, Preassigned => NO"), LOCKS, "x"));
    }
    let level = mast("", LOCKS, "x")
        .replace("Immediate_Ceiling_Resource, Name => r", "SRP_Resource, Name => r, Preemption_Level => 5");
    refused(Format::Mast, &level, "a given preemption level is beyond the model");
}

#[test]
fn an_operation_of_mast_says_its_worst_case_and_its_best_case_is_zero() {
    let parts = |worst: &str| {
        format!(
            "Operation (Type => Simple, Name => a, Worst_Case_Execution_Time => 1, Best_Case_Execution_Time => 1);\n\
             Operation (Type => Simple, Name => b{worst});\n\
             Operation (Type => Composite, Name => x, Composite_Operation_List => (a, b));"
        )
    };
    let read = fine(Format::Mast, &mast("", &parts(", Worst_Case_Execution_Time => 3"), "x"));
    assert_eq!((read.system.tasks()[0].bcet, read.system.tasks()[0].wcet), (ms(1), ms(4)));
    for worst in ["", ", Avg_Case_Execution_Time => 3", ", Worst_Case_Execution_Time => (3)"] {
        refused(Format::Mast, &mast("", &parts(worst), "x"), "Worst_Case_Execution_Time`");
    }
}

#[test]
fn events_of_mast_are_those_of_their_transaction() {
    let fitting = mast("", LOCKS, "x");
    refused(Format::Mast, &fitting.replace("Input_Event => e", "Input_Event => q"), "no external event");
    refused(Format::Mast, &fitting.replace("Output_Event => o", "Output_Event => q"), "no internal event");
    let second =
        fitting.replace("Internal_Events => (", "Internal_Events => ((Type => Regular, Name => q), ");
    refused(Format::Mast, &second, "a second internal event");
}

#[test]
fn names_of_mast_lie_beside_comments() {
    let file = folder("mast-xml").join("two-tasks.xml");
    let text = std::fs::read_to_string(file).expect("a sample");
    let list = "<mast_mdl:Shared_Resources_List>";
    let beside = text.replace(list, &format!("{list}<!-- the table -->"));
    assert_ne!(text, beside);
    assert_eq!(fine(Format::MastXml, &text).system, fine(Format::MastXml, &beside).system);
}

#[test]
fn priorities_and_timers_of_rt_app() {
    let of = |priority: &str, mode: &str| {
        format!(
            "{{ \"tasks\" : {{ \"a\" : {{ \"policy\" : \"SCHED_FIFO\", \"cpus\" : [0], \"priority\" : {priority}, \"run\" : 5, \
             \"timer\" : {{ \"ref\" : \"unique\", \"period\" : 10{mode} }} }} }} }}"
        )
    };
    for priority in ["0", "-3", "100"] {
        refused(Format::RtApp, &of(priority, ""), "is no priority of SCHED_FIFO");
    }
    let notes = |priority: &str, mode: &str| fine(Format::RtApp, &of(priority, mode)).notes.len();
    assert_eq!(notes("1", ", \"mode\" : \"absolute\""), 0);
    assert_eq!((notes("99", ""), notes("99", ", \"mode\" : \"relative\"")), (1, 1));
}

#[test]
fn a_system_that_leaves_something_out_is_not_written() {
    let system = toml(
        "[system]\nname = \"s\"\nunmodelled = [\"a lock\"]\n[[task]]\nname = \"a\"\nperiod = \"4 ms\"\noffset = \"0 ms\"\nwcet = \"1 ms\"\n\
         priority = 1\npreemption = \"non-preemptive\"\n",
    );
    for format in Format::ALL.into_iter().filter(|format| format.is_written()) {
        let errors = write(format, &system, MS).expect_err(format.word());
        assert!(errors.iter().any(|error| error.at == "system.unmodelled"), "{}: {errors:?}", format.word());
    }
}

#[test]
fn texts_that_nest_or_repeat_without_end_are_refused_at_once() {
    for text in ["? ", "- ", ": ", "- ? ", "[", "{"] {
        let message = refusal(Format::NpYaml, &text.repeat(50_000));
        assert!(message.contains("nests deeper") || message.contains("it is not YAML"), "{text}: {message}");
    }
    let attributes: String = (0..40_000).map(|number| format!(" a{number}=\"1\"")).collect();
    let spaces: String = (0..2_000).map(|number| format!("<a xmlns:n{number}=\"u{number}\">")).collect();
    for format in [Format::Simso, Format::MastXml] {
        refused(format, &format!("<simulation{attributes}/>"), "more than 100 attributes of one element");
        refused(format, &spaces, "more than 16 declarations of namespaces");
    }
}

#[test]
fn a_long_value_is_not_repeated() {
    let long = "7".repeat(1_000_000);
    for (format, text) in [
        (Format::Columns, format!("C D T\n{long} 2 3\n")),
        (Format::Columns, format!("C D T {long}x\n1 2 3 4\n")),
        (Format::Mast, format!("Zz{long} ( Name => b );")),
        (Format::RtApp, format!("{{ \"{long}\" : 1 }}")),
    ] {
        let message = refusal(format, &text);
        assert!(message.len() < 4_000, "{}: {} bytes", format.word(), message.len());
    }
}

#[test]
fn two_tasks_of_one_name_have_a_place() {
    let two = [4, 6].map(|period| simso_task("a", &format!("period=\"{period}\""))).concat();
    let message = refusal(Format::Simso, &simulation("EDF", 1, "", &two));
    assert!(message.contains("two tasks are called `a`") && message.contains("sample:1:"), "{message}");
    refused(Format::Columns, "C T name\n1 9 x\n1 8 x\n", "sample:3:1");
}

#[test]
fn job_sets_in_yaml() {
    let head = "jobset:\n";
    let job = |number: usize, cost: &str| {
        format!(
            "  - Task ID: {number}\n    Job ID: 1\n    Arrival min: 0\n    Arrival max: 0\n    Cost min: 1\n    Cost max: {cost}\n    Deadline: 90\n    Priority: 8\n"
        )
    };
    // Twenty times the jobs of what took seconds when the text was counted anew for each place.
    let many: String = (0..20_000).map(|number| job(number, "1")).collect();
    let read = read(Format::NpYaml, &format!("{head}{many}"), "jobs", NS).expect("it reads");
    assert_eq!(read.system.tasks().len(), 20_000);
    refused(Format::NpYaml, &format!("{head}{}", job(1, "010")), "octal");
    refused(Format::NpYaml, &format!("{head}{}    Job ID: 2\n", job(1, "1")), "`Job ID` is there twice");
    refused(
        Format::NpYaml,
        &format!("{head}{}{head}{}", job(1, "1"), job(2, "1")),
        "`jobset` is there twice",
    );
    refused(Format::NpYaml, &format!("{head}{}---\n{head}{}", job(1, "1"), job(2, "1")), "a second document");
    // Places count characters that are longer than a byte.
    let message = refusal(Format::NpYaml, &format!("# Größe\n{head}{}", job(1, "x")));
    assert!(message.contains("sample:8:15"), "{message}");
}

#[test]
fn columns_may_begin_with_the_mark_of_a_spreadsheet() {
    let read = read(Format::Columns, "\u{feff}C D T\n2 8 10\n", "set", US).expect("it reads");
    assert_eq!(read.system.tasks()[0].wcet, Span::from_ns(2_000));
}
