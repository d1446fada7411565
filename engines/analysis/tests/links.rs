//! Links change no bound, and the notes say what the writers' deadlines prove (decision 0009).

use horolog_analysis::{Options, Schedulable, analyze};
use horolog_model::{Mode, System, file};

fn system(deadline: &str, is_linked: bool) -> System {
    let mut text = format!(
        "[system]\nname = \"l\"\n[[task]]\nname = \"above\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 2\n\
        [[task]]\nname = \"writer\"\nperiod = \"20 ms\"\ndeadline = \"{deadline}\"\nwcet = \"3 ms\"\npriority = 1\n"
    );
    if is_linked {
        text += "[[link]]\nname = \"pose\"\nfrom = \"writer\"\nto = [\"above\"]\n";
    }
    file::read(&text, "l.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).0
}

#[test]
fn links_change_no_bound() {
    for deadline in ["5 ms", "4 ms"] {
        let [plain, linked] =
            [false, true].map(|is| analyze(&system(deadline, is), &Options::default()).expect("known"));
        assert_eq!(plain.schedulable, linked.schedulable);
        let responses =
            |it: &horolog_analysis::Analysis| it.tasks.iter().map(|task| task.response).collect::<Vec<_>>();
        assert_eq!(responses(&plain), responses(&linked));
        assert_eq!(plain.notes.len() + 1, linked.notes.len());
    }
}

#[test]
fn the_notes_say_what_the_deadline_of_the_writer_proves() {
    let note = |system: &System| {
        let analysis = analyze(system, &Options::default()).expect("known");
        (analysis.schedulable, analysis.notes.last().expect("a note").clone())
    };
    // The response time of the writer is 5 ms: exactly its deadline, and one above it.
    let (schedulable, proved) = note(&system("5 ms", true));
    assert_eq!(schedulable, Schedulable::Yes);
    assert_eq!(proved, "link pose: writer meets its deadline, so no value comes late");
    let (schedulable, missed) = note(&system("4999999 ns", true));
    assert_eq!(schedulable, Schedulable::No);
    assert_eq!(missed, "link pose: writer may miss its deadline, so values may come late");
    let mut draft = system("5 ms", true).to_draft();
    draft.modes = vec![Mode { name: "same".to_owned(), ..Mode::default() }];
    let (schedulable, unknown) = note(&System::new(draft).expect("valid"));
    assert_eq!(schedulable, Schedulable::Unknown);
    assert!(unknown.contains("the deadline of writer is not proved"), "{unknown}");
}
