//! What holds for every system and for every text.

use horolog_model::{
    Capacity, LeftOver, Mode, Order, Priority, SecondRequest, ServerChange, ServerKind, System, TakesEffect,
    TaskChange, TimeTable, file,
};
use horolog_testkit::system::{Shape, systems};
use horolog_testkit::tree::{TreeShape, trees};
use proptest::prelude::*;
use std::path::Path;

/// Reads and renders whatever comes of it; the point is that nothing panics.
fn read_anything(text: &str, overrides: &[String]) {
    match file::read(text, "any.toml", overrides) {
        Ok((system, source)) => {
            let printed = file::print(&system);
            let again = file::read(&printed, "printed", &[]);
            assert!(
                again.as_ref().is_ok_and(|(again, _)| *again == system),
                "{text:?} prints {printed:?}: {again:?}"
            );
            let _ = source.diagnostic("task.x.wcet", "reason", "remedy").to_string();
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            let plain = errors.to_string();
            assert!(plain.contains("error: "), "{plain}");
            assert!(errors.render(true).len() >= plain.len());
            for message in errors.messages() {
                assert!(!message.reason.is_empty() && !message.remedy.is_empty(), "{message:?}");
            }
        }
    }
}

/// Every example and every broken file.
fn seeds() -> Vec<String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seeds = Vec::new();
    for entry in std::fs::read_dir(&examples).expect("examples/") {
        let folder = entry.expect("readable").path();
        for file in std::fs::read_dir(folder).expect("a folder") {
            let path = file.expect("readable").path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                seeds.push(std::fs::read_to_string(path).expect("UTF-8"));
            }
        }
    }
    seeds.sort();
    seeds
}

/// Bytes and words that matter to TOML and to the system file.
const PIECES: [&str; 43] = [
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "\"",
    "'",
    "\"\"\"",
    "=",
    ",",
    ".",
    "#",
    "\n",
    "\r\n",
    "\0",
    "\\",
    "\\u0000",
    "-",
    "0",
    "18446744073709551615 ns",
    "99999999999999999999999999999999999999999999",
    "1e308",
    "0x",
    "nan",
    "µs",
    "\u{feff}",
    "[system]\n",
    "[[task]]\n",
    "next = [\"scan\"]",
    "segments = []\n",
    "preemption = \"deferred\"\n",
    "\u{202e}",
    "name",
    "[[mode]]\nname = \"fast\"\n",
    "[[mode.task]]\nname = \"control\"\n",
    "takes_effect = { frame = \"vision\" }\n",
    "[[scheduler]]\n",
    "parent = \"vision\"\n",
    "order = \"edf\"\n",
    "cpus = [0, 1]\n",
    "kind = \"sporadic\"\n",
    "tasks = [\"control\"]\n",
];

/// One change: at a place (in parts per 65536 of the text) remove so many bytes and insert a piece.
fn mutated(text: &str, changes: &[(u16, u8, usize)]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for &(place, remove, piece) in changes {
        let at = bytes.len() * usize::from(place) / 65_536;
        let end = bytes.len().min(at + usize::from(remove));
        bytes.splice(at..end, PIECES[piece % PIECES.len()].bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The system with a mode that changes what `choice` has a bit for, and one that goes back.
fn with_modes(system: &System, choice: u32) -> System {
    let has = |bit: u32| choice >> bit & 1 == 1;
    let twice = |span: horolog_time::Span| span.checked_mul(2).unwrap_or(span);
    let active: Vec<String> =
        system.tasks().iter().step_by(if has(0) { 2 } else { 1 }).map(|task| task.name.clone()).collect();
    let change = |id| {
        let task = system.task(id);
        let is_ordered = has(1) && system.order_above(id) == Order::FixedPriority;
        let is_active = !has(2) || active.contains(&task.name);
        TaskChange {
            task: task.name.clone(),
            priority: if is_ordered { task.priority.map(|it| Priority::new(it.number() / 2)) } else { None },
            period: if is_active { task.separation().map(twice) } else { None },
            deadline: if has(3) { task.deadline.map(twice) } else { None },
            wcet: None,
            left_over: if is_active { None } else { Some(LeftOver::Suspend) },
        }
    };
    let is_said =
        |change: &TaskChange| *change != TaskChange { task: change.task.clone(), ..TaskChange::default() };
    let half = |capacity: Capacity| Capacity { period: twice(capacity.period), ..capacity };
    let servers = system.servers().iter().filter(|_| has(4)).filter_map(|server| {
        let capacity = server.kind.capacity().map(half);
        let table =
            server.table.as_ref().map(|table| TimeTable { cycle: twice(table.cycle), ..table.clone() });
        let change = ServerChange { server: server.name.clone(), capacity, table };
        (change.capacity.is_some() || change.table.is_some()).then_some(change)
    });
    let frame = system
        .servers()
        .iter()
        .find(|it| matches!(it.kind, ServerKind::Polling { .. } | ServerKind::Deferrable { .. }));
    let fast = Mode {
        then: None,
        name: "fast \"and\" loose".to_owned(),
        at: [3, 5].map(horolog_time::Span::from_ns).into_iter().take(if has(5) { 2 } else { 0 }).collect(),
        active: has(2).then(|| active.clone()),
        takes_effect: match (has(6), frame) {
            (true, Some(server)) => TakesEffect::Frame(server.name.clone()),
            (true, None) => TakesEffect::WhenDone(active.clone()),
            (false, _) => TakesEffect::AtOnce,
        },
        second_request: if has(7) { SecondRequest::Refuse } else { SecondRequest::Queue },
        left_over: if has(8) { LeftOver::Drop } else { LeftOver::Finish },
        tasks: system.task_ids().map(change).filter(is_said).collect(),
        servers: servers.collect(),
    };
    let mut draft = system.to_draft();
    draft.modes = vec![fast, Mode { name: "back".to_owned(), ..Mode::default() }];
    System::new(draft).unwrap_or_else(|errors| panic!("{errors:?} in {system:?}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_mode_reads_back_from_its_print(system in trees(TreeShape::everything()), choice in 0_u32..512) {
        let system = with_modes(&system, choice);
        let printed = file::print(&system);
        match file::read(&printed, "printed.toml", &[]) {
            Ok((again, _)) => prop_assert_eq!(&again, &system, "{}", printed),
            Err(errors) => prop_assert!(false, "{}\n{}", errors, printed),
        }
        // As a mode has it, a system obeys every rule by itself.
        for id in system.task_ids() {
            let task = system.task_in(1, id);
            prop_assert!(task.deadline.is_none_or(|deadline| deadline >= system.task(id).wcet));
        }
    }

    #[test]
    fn every_system_reads_back_from_its_print(system in systems(Shape::with_servers())) {
        let printed = file::print(&system);
        match file::read(&printed, "printed.toml", &[]) {
            Ok((again, _)) => prop_assert_eq!(again, system),
            Err(errors) => prop_assert!(false, "{}\n{}", errors, printed),
        }
    }

    #[test]
    fn every_tree_reads_back_from_its_print(system in trees(TreeShape::everything())) {
        for printed in [file::print(&system), file::print_expanded(&system)] {
            match file::read(&printed, "printed.toml", &[]) {
                Ok((again, _)) => prop_assert_eq!(&again, &system, "{}", printed),
                Err(errors) => prop_assert!(false, "{}\n{}", errors, printed),
            }
        }
        prop_assert_eq!(System::new(system.to_draft()), Ok(system));
    }

    #[test]
    fn every_server_reads_back_from_its_long_form(system in systems(Shape::with_servers())) {
        let printed = file::print_expanded(&system);
        let short = system.servers().iter().filter(|server| !server.kind.is_for_schedulers()).count();
        prop_assert_eq!(printed.matches("[[server]]").count(), short);
        match file::read(&printed, "printed.toml", &[]) {
            Ok((again, _)) => prop_assert_eq!(again, system),
            Err(errors) => prop_assert!(false, "{}\n{}", errors, printed),
        }
    }

    #[test]
    fn every_system_passes_its_own_checks_again(system in systems(Shape::with_servers())) {
        prop_assert_eq!(System::new(system.to_draft()), Ok(system));
    }

    #[test]
    fn every_value_has_its_place(system in systems(Shape { extremes: false, ..Shape::with_servers() })) {
        let printed = file::print(&system);
        let (_, source) = file::read(&printed, "printed.toml", &[]).expect("it reads back");
        for task in system.tasks() {
            let path = format!("task.{}.wcet", task.name);
            let range = source.range(&path).expect("the wcet is printed");
            prop_assert_eq!(&printed[range], format!("\"{}\"", task.wcet));
        }
        for server in system.servers() {
            let range = source.range(&format!("server.{}.kind", server.name)).expect("the kind is printed");
            prop_assert_eq!(&printed[range], format!("\"{}\"", server.kind.word()));
        }
    }

    #[test]
    fn no_mutation_of_an_example_panics(
        seed in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<u16>(), 0_u8..40, any::<usize>()), 0..6),
    ) {
        let seeds: Vec<String> = seeds();
        let text: &String = seed.get(&seeds);
        read_anything(&mutated(text, &changes), &[]);
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        read_anything(&text, &[]);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        read_anything(&String::from_utf8_lossy(&bytes), &[]);
    }

    #[test]
    fn no_pieces_panic(pieces in prop::collection::vec(0..PIECES.len(), 0..40)) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        read_anything(&text, &[]);
    }

    #[test]
    fn no_override_panics(
        path in "(task|system|platform|interference|server|[a-z]{0,5})(\\.(control|video|\"[^\"]{0,3}\"|#[0-9]|segments|wcet|body|\\PC{0,3})){0,4}",
        value in "= ?(3ms|\"3 ms\"|\\[.{0,8}|\\{.{0,8}|[0-9.e-]{1,25}|\\PC{0,12})|\\PC{0,6}",
    ) {
        for seed in seeds().iter().take(3) {
            read_anything(seed, &[format!("{path}{value}")]);
        }
    }
}

/// Files that are wrong in thousands of places are told about in a time that grows with their length.
#[test]
fn large_broken_files_end() {
    let count = 8_000;
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let head = "[system]\nname = \"s\"\n[[task]]\nname = \"t\"\nperiod = \"1 s\"\npriority = 1\npreemption = \"deferred\"\n";
    let next =
        |i: usize| format!("{{ name = \"s{i}\", wcet = \"1 ns\", next = [\"s{}\"] }}", (i + 1) % count);
    let cases = [
        format!("{head}segments = [{}]\n", list(&next)),
        format!("{head}segments = [{}]\n", list(&|_| "{ name = \"same\", wcet = \"1 ns\" }".to_owned())),
        format!("{head}segments = [{}]\n", list(&|_| "7".to_owned())),
        format!("{head}{}", "priority = 1\n".repeat(count)),
        format!("{head}{}", (0..count).map(|i| format!("unknown{i} = 1\n")).collect::<String>()),
        format!("[system]\nname = \"s\"\n{}", "[[task]]\nname = \"same\"\n".repeat(count)),
    ];
    for text in cases {
        let errors = file::read(&text, "large.toml", &[]).expect_err("broken");
        assert_eq!(errors.messages().count(), errors.len());
        assert!(errors.len() == 1 || errors.to_string().contains("more of them"));
    }
    let chain = (0..count).map(|i| format!("\"{} ns\"", i + 1)).collect::<Vec<_>>().join(", ");
    assert!(file::read(&format!("{head}segments = [{chain}]\n"), "large.toml", &[]).is_ok());
}

#[test]
fn line_ends_and_byte_order_marks_are_no_trouble() {
    let text = "[system]\r\nname = \"s\"\r\n[[task]]\r\nname = \"t\"\r\nperiod = \"9\"\r\nwcet = \"1 ms\"\r\npriority = 1\r\n";
    let errors = file::read(text, "crlf.toml", &[]).expect_err("no unit");
    assert!(errors.to_string().contains("crlf.toml:5:10"), "{errors}");
    let marked = format!("\u{feff}{}", text.replace("\"9\"", "\"9 ms\""));
    assert!(file::read(&marked, "bom.toml", &[]).is_ok());
    let errors = file::read(&marked.replace("\"9 ms\"", "9"), "bom.toml", &[]).expect_err("no duration");
    assert!(errors.to_string().contains("bom.toml:5:10"), "{errors}");
}
