//! What experiments share that send from one CPU and receive on another.

use horolog_sys::Error;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::guardian::{Guardian, GuardianOptions};
use horolog_sys::network::LabOptions;
use horolog_time::Span;

/// The last CPU receives, the first sends; `why` says what two are needed for.
pub(crate) fn two_cpus(why: &str) -> Result<LabOptions, Error> {
    match online_cpus()?.as_slice() {
        [first, .., last] => Ok(LabOptions { receive_cpu: *last, send_cpu: *first }),
        _ => Err(Error::unsupported("an experiment with a sender and a receiver", why)),
    }
}

/// A guardian beside the sender, which ends an experiment that hangs.
pub(crate) fn guarded(cpus: LabOptions, patience: Span) -> Result<Guardian, Error> {
    Guardian::start(&GuardianOptions {
        deadline: Some(patience),
        housekeeping: vec![cpus.send_cpu],
        ..GuardianOptions::default()
    })
}
