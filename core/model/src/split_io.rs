//! The split of input and output from the jobs that use them.
//!
//! A job that waits for a device suspends itself: its waits count in its bound and delay those below it. Where its input is
//! asked for a job in advance, and its output is buffered, one task becomes three independent streams: its own
//! execution, reads with the next release as deadline, and writes with a deadline of several periods.
//! Source: `baker07`, section 3.

use crate::{DeviceClass, ModelError, RequestKind, RequestMode, System};
use horolog_time::Span;

/// The system in which no job waits for a closed device: its requests are asynchronous, with deadlines.
///
/// A read is asked for at the release, for the next job: its deadline is one period, or separation. A write keeps its place
/// in the job and may take `write_periods` of them. Deadlines that the file gives are kept.
///
/// # Errors
/// Where a task that waits has neither period nor separation, `write_periods` is zero, or a product leaves 64 bits.
///
/// ```
/// let text = r#"
/// [system]
/// name = "player"
/// [[task]]
/// name = "player"
/// period = "100 ms"
/// wcet = "20 ms"
/// priority = 50
/// [[device]]
/// name = "disk"
/// class = "closed"
/// service = "interrupt"
/// separation = "5 ms"
/// cost = "200 us"
/// [[request]]
/// name = "output"
/// task = "player"
/// device = "disk"
/// kind = "write"
/// after = "20 ms"
/// "#;
/// let (system, _) = horolog_model::file::read(text, "player.toml", &[]).unwrap();
/// let split = horolog_model::split_io(&system, 3).unwrap();
/// assert_eq!(split.requests()[0].deadline, horolog_time::Span::from_ms(300));
/// ```
pub fn split_io(system: &System, write_periods: u32) -> Result<System, Vec<ModelError>> {
    let mut draft = system.to_draft();
    for request in &mut draft.requests {
        let device = system.devices().iter().find(|device| device.name == request.device);
        let is_closed = device.is_some_and(|device| device.class == DeviceClass::Closed);
        if request.mode == RequestMode::Asynchronous || !is_closed {
            continue;
        }
        let refuse = |reason: &str, remedy: &str| {
            let at = format!("request.{}", request.name);
            vec![ModelError { at, reason: reason.to_owned(), remedy: remedy.to_owned() }]
        };
        let task = system.tasks().iter().find(|task| task.name == request.task);
        let separation = task.and_then(|task| task.separation()).ok_or_else(|| {
            refuse(
                "its task has no period that a deadline could come from",
                "give it a `period` or `separation`",
            )
        })?;
        let periods = match request.kind {
            RequestKind::Write => write_periods,
            _ => 1,
        };
        let deadline = separation.checked_mul(u64::from(periods)).filter(|deadline| !deadline.is_zero());
        let deadline = deadline.ok_or_else(|| {
            refuse("that number of periods gives no deadline", "use a number from 1 on, such as 3")
        })?;
        request.mode = RequestMode::Asynchronous;
        request.deadline = request.deadline.or(Some(deadline));
        if request.kind == RequestKind::Read {
            request.after = Span::ZERO;
        }
    }
    System::new(draft)
}
