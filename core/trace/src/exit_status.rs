//! How a process ended, in words.

/// What a status says that `wait` gives: how a process exited, or which signal killed it.
///
/// ```
/// use horolog_trace::exit_status;
/// assert_eq!(exit_status(0x0300), "exited with status 3");
/// assert_eq!(exit_status(11), "was killed by SIGSEGV");
/// ```
#[must_use]
pub fn exit_status(status: u64) -> String {
    match status & 0x7f {
        0 => format!("exited with status {}", status >> 8 & 0xff),
        4 => "was killed by SIGILL".to_owned(),
        6 => "was killed by SIGABRT".to_owned(),
        7 => "was killed by SIGBUS".to_owned(),
        8 => "was killed by SIGFPE".to_owned(),
        9 => "was killed by SIGKILL".to_owned(),
        11 => "was killed by SIGSEGV".to_owned(),
        15 => "was killed by SIGTERM".to_owned(),
        signal => format!("was killed by signal {signal}"),
    }
}
