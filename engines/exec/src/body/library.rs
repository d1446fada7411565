//! Bodies in shared libraries: `int symbol(horolog_job *)`, once a job.

use super::TaskBody;
use crate::task_shared::Overrun;
use crate::{ExecError, Job, RunOptions};
use horolog_model::Body;
use horolog_sys::job_abi::{self, OverrunInfo};
use horolog_sys::library::{Code, JobCalls, JobFacts, Library, OverrunHook};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A body in a shared library.
pub(crate) struct LibraryBody {
    library: Library,
    symbol: String,
    init: Option<String>,
    arguments: Vec<String>,
}

impl LibraryBody {
    /// Loads the library of `body`; `None` where it is no library body.
    pub(crate) fn open(body: &Body, options: &RunOptions) -> Option<Result<LibraryBody, ExecError>> {
        let Body::Library { library, symbol, init, exit, arguments } = body else { return None };
        let path = place(library, options.folder.as_deref());
        let opened = Library::open(&path, symbol, init.as_deref(), exit.as_deref());
        Some(opened.map_err(ExecError::from).map(|library| LibraryBody {
            library,
            symbol: symbol.clone(),
            init: init.clone(),
            arguments: arguments.clone(),
        }))
    }
}

impl LibraryBody {
    /// The mapped code.
    pub(crate) fn code(&self) -> Arc<Code> {
        self.library.code()
    }
}

/// Relative paths count from the system file's folder; the loader searches its own way only for bare names that do
/// not exist there.
pub(crate) fn place(path: &str, folder: Option<&Path>) -> PathBuf {
    let given = Path::new(path);
    match folder {
        Some(folder) if given.is_relative() => {
            // Without `.` in the middle, as people write it.
            let joined: PathBuf = folder.join(given).components().collect();
            if joined.exists() || path.contains('/') { joined } else { given.to_owned() }
        }
        _ => given.to_owned(),
    }
}

impl TaskBody for LibraryBody {
    fn start(&mut self) -> Result<(), String> {
        match self.library.init(&self.arguments) {
            Ok(0) => Ok(()),
            Ok(value) => Err(format!(
                "`{}` returned {value}, so the task does not start",
                self.init.as_deref().unwrap_or(&self.symbol)
            )),
            Err(error) => Err(error.to_string()),
        }
    }

    fn job(&mut self, job: &mut Job<'_>) -> i32 {
        let facts = JobFacts {
            attention: &job.task.control.attention,
            number: job.facts.number,
            release_ns: job.facts.arrival,
            deadline_ns: job.facts.deadline,
        };
        self.library.call(&facts, job)
    }

    fn finish(&mut self) {
        self.library.exit();
    }

    fn remarks(&self) -> Vec<String> {
        let (other_thread, ended) = self.library.refusals();
        let remark = |count: u32, place: &str| {
            (count > 0).then(|| format!("{count} calls with a job handle were refused: {place}"))
        };
        let places = [
            (other_thread, "on another thread than the task's own"),
            (ended, "after the end of the handle's job"),
        ];
        places.into_iter().filter_map(|(count, place)| remark(count, place)).collect()
    }
}

impl JobCalls for Job<'_> {
    fn preemption_point(&mut self, allow: bool) -> bool {
        Job::preemption_point(self, allow)
    }

    fn next_segment(&mut self, segment: u32) {
        Job::next_segment(self, segment);
    }

    fn set_preemptible(&mut self, preemptible: bool) {
        Job::set_preemptible(self, preemptible);
    }

    fn remaining_ns(&self) -> u64 {
        self.remaining().as_ns()
    }

    fn executed_ns(&self) -> u64 {
        self.executed().as_ns()
    }

    fn must_end(&self) -> bool {
        Job::must_end(self)
    }

    fn publish(&mut self, link: &str, value: &[u8]) -> bool {
        Job::publish(self, link, value)
    }

    fn latched(&self, link: &str) -> Option<u64> {
        Job::latched(self, link)
    }

    fn read(&self, link: &str, into: &mut [u8]) -> Option<usize> {
        Job::read(self, link, into)
    }

    fn lock(&mut self, resource: &str) -> bool {
        Job::lock(self, resource)
    }

    fn unlock(&mut self, resource: &str) -> bool {
        Job::unlock(self, resource)
    }

    fn on_overrun(&mut self, hook: OverrunHook) {
        Job::on_overrun(self, move |overrun| hook.call(&info(overrun)));
    }

    fn request_mode(&mut self, name: &str) -> bool {
        Job::request_mode(self, name)
    }
}

fn info(overrun: Overrun) -> OverrunInfo {
    let verdict = overrun.verdict;
    let flag = |holds: bool, flag: u32| if holds { flag } else { 0 };
    OverrunInfo {
        job: overrun.job,
        executed_ns: overrun.executed.as_ns(),
        segment: overrun.segment as u32,
        flags: flag(verdict.segment_overrun, job_abi::SEGMENT_OVERRUN)
            | flag(verdict.job_overrun_certain, job_abi::JOB_OVERRUN_CERTAIN)
            | flag(verdict.job_overrun, job_abi::JOB_OVERRUN)
            | flag(verdict.harms_more_important, job_abi::HARMS_MORE_IMPORTANT),
    }
}
