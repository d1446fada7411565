//! The control loop of `examples/user-library`, in Rust: the same system file, the same output.
//!
//! `cargo run --release -p horolog-example-rust-api -- examples/user-library/system.toml`

use horolog_exec::{Executive, Job, RunOptions, TaskBody};
use horolog_model::System;
use horolog_time::Span;
use std::path::PathBuf;
use std::process::ExitCode;

/// A control loop that steers a position towards a target, once a job.
struct Control {
    gain: f64,
    target: f64,
    position: f64,
    jobs: u64,
}

impl TaskBody for Control {
    fn job(&mut self, _job: &mut Job<'_>) -> i32 {
        self.position += self.gain * (self.target - self.position);
        self.jobs += 1;
        0
    }

    fn finish(&mut self) {
        println!("control: {} jobs, position {:.3}", self.jobs, self.position);
    }
}

fn read(path: Option<PathBuf>) -> Result<System, String> {
    let path = path.ok_or("give the system file: examples/user-library/system.toml")?;
    let (system, _) =
        horolog_model::file::read_path(&path, &[]).map_err(|diagnostics| diagnostics.to_string())?;
    horolog_analysis::resolve(&system).map_err(|error| error.to_string())
}

fn main() -> ExitCode {
    let system = match read(std::env::args_os().nth(1).map(PathBuf::from)) {
        Ok(system) => system,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let run = Executive::new(system)
        .options(RunOptions::for_span(Span::from_ns(1_000_000_000)))
        .task_body("control", Control { gain: 0.5, target: 1000.0, position: 0.0, jobs: 0 })
        .run();
    match run {
        Ok(result) => ExitCode::from(u8::from(result.outcome.tasks.iter().any(|task| task.missed > 0))),
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(if error.is_not_permitted() { 3 } else { 2 })
        }
    }
}
