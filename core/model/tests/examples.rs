//! The examples that a newcomer reads: all of them read, and read back from their print.

use horolog_model::{System, file};
use std::path::{Path, PathBuf};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Every `system.toml` below `examples/`.
fn system_files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(examples())
        .expect("examples/ is there")
        .map(|entry| entry.expect("readable").path().join("system.toml"))
        .filter(|file| file.exists())
        .collect();
    files.sort();
    files
}

fn read(path: &Path, overrides: &[String]) -> System {
    match file::read_path(path, overrides) {
        Ok((system, source)) => {
            assert_eq!(source.folder(), path.parent());
            system
        }
        Err(errors) => panic!("{errors}"),
    }
}

fn utilisation(system: &System) -> f64 {
    let of = |task: &horolog_model::Task| {
        task.separation().map_or(0.0, |t| task.wcet.as_ns() as f64 / t.as_ns() as f64)
    };
    system.tasks().iter().map(of).sum()
}

#[test]
fn every_example_reads_and_reads_back() {
    let files = system_files();
    assert!(files.len() >= 4, "{files:?}");
    for path in files {
        let system = read(&path, &[]);
        let printed = file::print(&system);
        let (again, _) = file::read(&printed, "printed", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(again, system, "{}", path.display());
    }
}

#[test]
fn the_quick_start_leaves_room_and_has_no_costs_of_its_own() {
    let system = read(&examples().join("quick-start/system.toml"), &[]);
    assert!(utilisation(&system) < 0.7);
    assert_eq!(system.platform().context_switch, None);
    assert_eq!(system.tasks().len(), 3);
}

#[test]
fn the_camera_takes_its_commented_override() {
    let path = examples().join("camera-pipeline/system.toml");
    let system = read(&path, &[]);
    let video = system.find_task("video").expect("the video task");
    assert_eq!(system.task(video).wcet.to_string(), "11 ms");
    let system = read(&path, &["task.video.segments=[\"11 ms\"]".into()]);
    assert_eq!(system.task(video).wcet.to_string(), "11 ms");
    assert_eq!(system.task(video).segment_graph().map(|graph| graph.segments.len()), Some(1));
}
