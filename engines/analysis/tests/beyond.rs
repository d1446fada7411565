//! Systems with modes or devices with several slots: no entry of this library says a number about them. Of trees and clusters
//! `analyze` and `explain` alone do.

use horolog_analysis::{Options, Schedulable, Verdict, analyze, certify, cpu_model, explain, size_server};
use horolog_certificate::{Certificate, check};
use horolog_model::{Mode, System, file};
use horolog_testkit::Random;
use horolog_testkit::tree::{TreeShape, draw_tree};

const FLAT: &str = "[system]\nname = \"flat\"\n[platform]\ncpus = 2\n\
    [[task]]\nname = \"control\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n\
    [[task]]\nname = \"soft\"\ncpu = 0\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n\
    [[server]]\nname = \"events\"\nkind = \"deferrable\"\ncpu = 0\ntasks = [\"soft\"]\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 5\n\
    [[task]]\nname = \"far\"\ncpu = 1\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n";

fn flat() -> System {
    file::read(FLAT, "flat.toml", &[]).expect("valid").0
}

/// Systems with a mode that changes nothing, flat ones and drawn ones with trees and clusters.
fn beyond() -> Vec<System> {
    let same = || Mode { name: "same".to_owned(), ..Mode::default() };
    let with_mode = |system: &System| {
        let mut draft = system.to_draft();
        draft.modes = vec![same()];
        System::new(draft).expect("valid")
    };
    let mut systems = vec![with_mode(&flat())];
    let disk = "[[device]]\nname = \"disk\"\ncpu = 0\nclass = \"closed\"\nservice = \"interrupt\"\nseparation = \"1 ms\"\n\
                cost = \"1 us\"\nslots = 2\n";
    systems.push(file::read(&format!("{FLAT}{disk}"), "slots.toml", &[]).expect("valid").0);
    let mut random = Random::new(8);
    systems.extend((0..200).map(|_| with_mode(&draw_tree(TreeShape::everything(), &mut random))));
    assert!(systems.iter().all(|system| system.first_beyond_trees().is_some()));
    assert!(systems.len() > 150 && systems.iter().any(|system| !system.clusters().is_empty()));
    systems
}

/// Drawn systems with clusters and nothing else that the tests do not know.
fn clusters_alone() -> Vec<System> {
    let mut random = Random::new(9);
    let mut systems: Vec<System> =
        (0..400).map(|_| draw_tree(TreeShape::everything(), &mut random)).collect();
    systems.retain(|system| system.first_beyond_clusters().is_none() && !system.clusters().is_empty());
    assert!(systems.len() > 3, "{}", systems.len());
    systems
}

/// Drawn systems with trees, some beside clusters.
fn trees() -> Vec<System> {
    let mut random = Random::new(10);
    let mut systems: Vec<System> =
        (0..300).map(|_| draw_tree(TreeShape::everything(), &mut random)).collect();
    systems.extend((0..300).map(|_| draw_tree(TreeShape::small(), &mut random)));
    systems.retain(|system| system.platform().cpus.iter().any(|cpu| system.has_tree(cpu)));
    systems
}

/// Nothing but `analyze` and `explain` knows of a tree; both say the same, and what hinders the tests is named.
#[test]
fn of_a_tree_there_is_an_analysis_and_no_certificate() {
    let (mut known, mut unknown) = (0, 0);
    for system in trees() {
        let analysis = analyze(&system, &options()).expect("an answer, not an error");
        assert_eq!(analysis.tasks.len(), system.tasks().len());
        assert!(certify(&system, &analysis, &options()).is_err());
        for (id, task) in system.task_ids().zip(&analysis.tasks).filter(|(_, task)| system.has_tree(task.cpu))
        {
            let explanation = explain(&system, id, &options()).expect("an answer");
            assert_eq!(explanation.response, task.response, "{}: {explanation}", task.name);
            assert_eq!(explanation.test, task.test);
            assert!(explanation.response.is_some() || explanation.reason.is_some());
            assert!(task.verdict != Verdict::Misses, "no miss is proved");
            assert!(cpu_model::CpuModel::new(&system, task.cpu).is_err());
            *if task.response.is_some() { &mut known } else { &mut unknown } += 1;
        }
        for id in system.server_ids().filter(|id| system.has_tree(system.server(*id).cpu)) {
            assert!(size_server(&system, id, None, &options()).is_err());
        }
    }
    assert!(known > 200 && unknown > 200, "{known} {unknown}");
}

/// Nothing but `analyze` and `explain` knows of a cluster, and nothing is explained that `analyze` does not bound.
#[test]
fn of_a_cluster_there_is_an_analysis_and_no_certificate() {
    for system in clusters_alone() {
        let analysis = analyze(&system, &options()).expect("an answer, not an error");
        assert_eq!(analysis.tasks.len(), system.tasks().len());
        assert!(certify(&system, &analysis, &options()).is_err());
        for (id, task) in system.task_ids().zip(&analysis.tasks) {
            let explanation = explain(&system, id, &options()).expect("an answer");
            if system.cluster_of(id).is_some() {
                assert_eq!(explanation.response, task.response, "{}: {explanation}", task.name);
                let cpu = task.cpu;
                assert!(cpu_model::CpuModel::new(&system, cpu).is_err());
            }
        }
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.sensitivity = true;
    options
}

/// What a file says that it leaves out takes every proof away, whatever else it has.
#[test]
fn nothing_is_proved_of_a_file_that_leaves_something_out() {
    let mixed = "system = { name = \"m\" }\n[criticality]\nscope = \"processor\"\nlow_jobs = \"drop\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\nwcet_high = \"2 ms\"\ncriticality = \"high\"\npriority = 2\n\
                 [[task]]\nname = \"b\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\ncriticality = \"low\"\npriority = 1\n";
    let mixed = file::read(mixed, "mixed.toml", &[]).unwrap_or_else(|error| panic!("{error}")).0;
    for known in clusters_alone().into_iter().chain([flat(), mixed]) {
        let mut draft = known.to_draft();
        draft.unmodelled = vec!["a lock".to_owned(), "another one".to_owned()];
        let system = System::new(draft).expect("valid");
        let analysis = analyze(&system, &options()).expect("an answer, not an error");
        assert_eq!(analysis.schedulable, Schedulable::Unknown);
        assert!(
            analysis.tasks.iter().all(|task| task.verdict == Verdict::Unknown && task.response.is_none())
        );
        assert!(analysis.notes[0].contains("a lock (and 1 more)"), "{:?}", analysis.notes);
        assert!(certify(&system, &analysis, &options()).is_err());
        let schema = Certificate::SCHEMA.to_owned();
        let empty = Certificate { schema, system: system.name().to_owned(), claims: Vec::new() };
        let flaw = check(&system, &empty).expect_err("refused even without a claim");
        assert!(flaw.reason().starts_with("system.unmodelled"), "{flaw}");
        for cpu in system.platform().cpus.iter() {
            assert!(cpu_model::CpuModel::new(&system, cpu).is_err());
        }
        for id in system.task_ids() {
            assert!(explain(&system, id, &options()).map_or(true, |it| it.response.is_none()));
        }
        let text = file::print(&system);
        assert_eq!(file::read(&text, "printed", &[]).expect("it reads back").0, system);
    }
}

#[test]
fn the_flat_system_is_proved() {
    let analysis = analyze(&flat(), &options()).expect("within the assumptions");
    assert_eq!(analysis.schedulable, Schedulable::Yes);
    assert!(analysis.utilisation.is_some() && analysis.tasks.iter().all(|task| task.blocking.is_some()));
}

#[test]
fn the_answer_is_unknown_and_has_no_number() {
    for system in beyond() {
        let at = system.first_beyond_trees().expect("kept for that");
        let analysis = analyze(&system, &options()).expect("an answer, not an error");
        assert_eq!(analysis.schedulable, Schedulable::Unknown);
        assert_eq!(analysis.tasks.len(), system.tasks().len());
        assert!(analysis.tasks.iter().all(|task| task.verdict == Verdict::Unknown));
        assert!(analysis.notes[0].contains(&format!("no test knows of `{at}`")), "{:?}", analysis.notes);
        let json = serde_json::to_value(&analysis).expect("plain data");
        assert!(json["utilisation"].is_null() && json["processors"].as_array().is_some_and(Vec::is_empty));
        for task in json["tasks"].as_array().expect("a list") {
            let numbers = task.as_object().expect("a table").iter().filter(|(_, value)| value.is_number());
            let named: Vec<&str> = numbers.map(|(key, _)| key.as_str()).collect();
            // What the file says itself is all.
            assert!(named.iter().all(|key| ["cpu", "deadline_ns"].contains(key)), "{named:?}");
        }
    }
}

#[test]
fn nothing_is_explained_sized_or_certified() {
    for system in beyond() {
        for id in system.task_ids() {
            let explanation = explain(&system, id, &options()).expect("an answer");
            assert_eq!((explanation.response, explanation.busy_period), (None, None));
            assert!(explanation.terms.is_empty());
            assert!(explanation.to_string().contains("has no bound: no test knows of"), "{explanation}");
        }
        for id in system.server_ids() {
            assert!(size_server(&system, id, None, &options()).is_err());
        }
        for cpu in system.platform().cpus.iter() {
            let error = cpu_model::CpuModel::new(&system, cpu).expect_err("no test begins");
            assert!(error.is_outside_assumptions(), "{error}");
        }
        let analysis = analyze(&system, &options()).expect("an answer");
        assert!(certify(&system, &analysis, &options()).is_err());
    }
}

#[test]
fn no_certificate_is_accepted() {
    for system in beyond() {
        let empty = Certificate {
            schema: Certificate::SCHEMA.to_owned(),
            system: system.name().to_owned(),
            claims: Vec::new(),
        };
        let flaw = check(&system, &empty).expect_err("refused even without a claim");
        assert!(flaw.reason().contains("knows no trees of schedulers"), "{flaw}");
    }
}

/// A certificate of the flat system says nothing about the same tasks below a scheduler.
#[test]
fn a_certificate_of_the_flat_system_does_not_carry_over() {
    let text = FLAT
        .split("[[server]]")
        .next()
        .expect("a head")
        .replace("wcet = \"1 ms\"\n[[task]]", "wcet = \"1 ms\"\npriority = 1\n[[task]]");
    let text = text.replace("name = \"soft\"", "priority = 1\nname = \"soft\"");
    let (flat, _) = file::read(&text, "flat.toml", &[]).expect("valid");
    let analysis = analyze(&flat, &options()).expect("within the assumptions");
    let certificate = certify(&flat, &analysis, &options()).expect("no servers");
    assert!(check(&flat, &certificate).is_ok());
    let tree = format!(
        "{text}[[scheduler]]\nname = \"tree\"\ncpu = 0\npriority = 5\norder = \"fixed-priority\"\ntasks = [\"soft\"]\n"
    );
    let (tree, _) = file::read(&tree, "tree.toml", &[]).expect("valid");
    assert!(check(&tree, &certificate).is_err());
}

#[test]
fn a_proof_says_that_it_holds_for_jobs_within_the_wcet() {
    let noted = |execution: &str, more: &str| {
        let text = format!("{FLAT}execution = {execution}\n{more}");
        let (system, _) = file::read(&text, "flat.toml", &[]).expect("valid");
        let notes = analyze(&system, &options()).expect("an answer").notes;
        notes.into_iter().filter(|note| note.contains("execution")).collect::<Vec<_>>()
    };
    // The last task of the file, whose wcet is 1 ms.
    let beyond = noted("{ jobs = [\"1 ms\", \"1000001 ns\"] }", "");
    assert!(
        beyond.len() == 1 && beyond[0].starts_with("task far: `execution` lists times above"),
        "{beyond:?}"
    );
    assert_eq!(noted("{ jobs = [\"1 ms\", \"1 ms\"] }", ""), [] as [String; 0]);
    // Where nothing is proved there is nothing to restrict.
    let mode = "[[mode]]\nname = \"same\"\n";
    assert_eq!(noted("{ jobs = [\"1 ms\", \"2 ms\"] }", mode), [] as [String; 0]);
}
