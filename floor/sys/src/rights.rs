//! The rights that a program file gives to whoever starts it, and how those that open any file are kept back.
//!
//! `cap_dac_read_search` opens tracefs to the recorder of the kernel, and every other file of the machine, too. A command that reads
//! files for its user must not have it in effect meanwhile: [`put_file_rights_away`] comes first, [`raise_file_rights`] is put around
//! what touches tracefs, and [`give_up_file_rights`] goes before the code of the user. Capabilities belong to threads.

use crate::Error;
use crate::machine::Capability;
use rustix::thread::{
    CapabilitySet, capabilities, capability_is_in_ambient_set, configure_capability_in_ambient_set,
    set_capabilities,
};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the documents give to a program file: enough to run, to lock memory, and to record the kernel.
#[macro_export]
macro_rules! setcap_command {
    () => {
        "sudo setcap cap_sys_nice,cap_ipc_lock,cap_perfmon,cap_dac_read_search+ep \"$(readlink -f \"$(command -v horolog)\")\""
    };
}

/// The whole command that gives a program file all that horolog uses; a shorter list would take the rest away again.
pub const SETCAP: &str = setcap_command!();

/// What a recording of the kernel needs.
pub const RECORDING: &str = concat!("needs perf and tracefs: run as root, or `", setcap_command!(), "`");

/// With these words the remedy for a missing right begins.
const REMEDY: &str = "run as root";

/// A refusal and its remedy in lines of their own, the remedy behind `  = help: `: what is wrong is short, and what to do may be long.
#[must_use]
pub fn in_lines(refusal: &str) -> String {
    match refusal.split_once(&format!(": {REMEDY}")) {
        Some((reason, rest)) if !reason.contains('\n') => format!("{reason}\n  = help: {REMEDY}{rest}"),
        _ => refusal.to_owned(),
    }
}

/// The rights that open any file.
const OF_FILES: CapabilitySet = CapabilitySet::DAC_OVERRIDE.union(CapabilitySet::DAC_READ_SEARCH);

/// Those of them that were ambient when the program began (`AmbientCapabilities=` of a unit): its own guardian needs them again.
static WERE_AMBIENT: AtomicU64 = AtomicU64::new(0);

/// Whether this is root, to whom the files belong anyway.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Takes the rights to open any file out of effect, and out of what programs that are started would inherit. They stay permitted.
/// To be called first, while the process has one thread; root keeps what it has.
pub fn put_file_rights_away() {
    if is_root() {
        return;
    }
    for one in OF_FILES.iter() {
        if capability_is_in_ambient_set(one).unwrap_or(false) {
            WERE_AMBIENT.fetch_or(one.bits(), Ordering::Relaxed);
        }
        // Lowering is always allowed; a kernel without ambient capabilities has none to lower.
        let _ = configure_capability_in_ambient_set(one, false);
    }
    change(|sets| {
        sets.effective.remove(OF_FILES);
        sets.inheritable.remove(OF_FILES);
    });
}

/// Whether rights to open any file were ambient when the program began.
pub(crate) fn were_ambient() -> bool {
    WERE_AMBIENT.load(Ordering::Relaxed) != 0
}

/// Gives what was ambient at the beginning to the program that this process becomes, which has to be this one again. Makes system calls
/// alone, so that it may be called between `fork` and `exec`.
pub(crate) fn pass_file_rights_on() {
    let ambient = CapabilitySet::from_bits_truncate(WERE_AMBIENT.load(Ordering::Relaxed));
    change(|sets| sets.inheritable.insert(ambient & sets.permitted));
    for one in ambient.iter() {
        let _ = configure_capability_in_ambient_set(one, true);
    }
}

/// Gives the rights to open any file up for good, before code of the user runs in this process. To be called while it has one thread.
pub fn give_up_file_rights() {
    if is_root() {
        return;
    }
    change(|sets| {
        sets.effective.remove(OF_FILES);
        sets.permitted.remove(OF_FILES);
        sets.inheritable.remove(OF_FILES);
    });
}

/// The rights to open any file, in effect for this thread until this is dropped, as far as they are permitted.
#[derive(Debug)]
pub(crate) struct Raised {
    /// What was not in effect before.
    added: CapabilitySet,
}

/// Puts the permitted rights to open any file into effect, for a file of the kernel whose path is ours.
pub(crate) fn raise_file_rights() -> Raised {
    let mut added = CapabilitySet::empty();
    change(|sets| {
        added = (sets.permitted & OF_FILES).difference(sets.effective);
        sets.effective.insert(added);
    });
    Raised { added }
}

impl Drop for Raised {
    fn drop(&mut self) {
        change(|sets| sets.effective.remove(self.added));
    }
}

/// Whether this process may use real-time priorities by a capability of its program file, which a command that it starts does not
/// inherit: `chrt -f` is refused there.
#[must_use]
pub fn are_not_inherited() -> bool {
    let has = capabilities(None).is_ok_and(|sets| sets.permitted.contains(CapabilitySet::SYS_NICE));
    let is_inherited = capability_is_in_ambient_set(CapabilitySet::SYS_NICE).unwrap_or(false);
    has && !is_inherited && !is_root()
}

/// What to do where a right is there and the kernel refuses all the same.
const FORBIDDEN_ALL_THE_SAME: &str = "the capability is in effect, so something else forbids it: where this process's cgroup (v1) has no share of \
     real-time, write one into its cpu.rt_runtime_us; in a container or sandbox, let it allow this call";

/// The refusal of `call`, which asked for `what`: where the calling thread lacks the capability that this needs, the capability is named.
pub(crate) fn refused(
    (what, needs): (&'static str, Capability),
    call: String,
    errno: i32,
    remedy: &str,
) -> Error {
    let (capability, name) = match needs {
        Capability::SysNice => (CapabilitySet::SYS_NICE, "CAP_SYS_NICE"),
        Capability::IpcLock => (CapabilitySet::IPC_LOCK, "CAP_IPC_LOCK"),
        Capability::SysAdmin => (CapabilitySet::SYS_ADMIN, "CAP_SYS_ADMIN"),
        Capability::Perfmon => (CapabilitySet::PERFMON, "CAP_PERFMON"),
        Capability::Bpf => (CapabilitySet::BPF, "CAP_BPF"),
    };
    let has = capabilities(None).is_ok_and(|sets| sets.effective.contains(capability));
    // Memory beyond the limit is refused with ENOMEM.
    let is_for_right = errno == libc::EPERM || errno == libc::ENOMEM && needs == Capability::IpcLock;
    match (is_for_right, has) {
        (true, false) => Error::lacks_right((what, name), call, errno, remedy),
        (true, true) if remedy.starts_with(REMEDY) => Error::os(call, errno, FORBIDDEN_ALL_THE_SAME),
        _ => Error::os(call, errno, remedy),
    }
}

/// Changes the sets of the calling thread where they become others. None of the changes here is one that a kernel refuses.
fn change(how: impl FnOnce(&mut rustix::thread::CapabilitySets)) {
    let Ok(before) = capabilities(None) else { return };
    let mut after = before;
    how(&mut after);
    if after != before {
        let _ = set_capabilities(None, after);
    }
}

/// What keeps a program file's capabilities from having effect, as a sentence: `no_new_privs` (containers, systemd's `NoNewPrivileges=`),
/// or a bounding set without them. `None` where nothing does, or nothing is known.
#[must_use]
pub fn what_stops_file_capabilities() -> Option<String> {
    let status = crate::machine::read("/proc/self/status").ok()?;
    why_none(&status)
}

/// The same by the text of `/proc/self/status`.
fn why_none(status: &str) -> Option<String> {
    let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    if value("NoNewPrivs:") == Some("1") {
        return Some(
            "no_new_privs is set for this process (a container's `no-new-privileges`, `NoNewPrivileges=` of a unit): capabilities of the program \
             file have no effect"
                .to_owned(),
        );
    }
    const USED: [(u8, &str); 4] =
        [(23, "cap_sys_nice"), (14, "cap_ipc_lock"), (38, "cap_perfmon"), (2, "cap_dac_read_search")];
    let bounding = value("CapBnd:").and_then(|hex| u64::from_str_radix(hex, 16).ok())?;
    let missing: Vec<&str> =
        USED.iter().filter(|(number, _)| bounding & (1 << number) == 0).map(|(_, name)| *name).collect();
    (!missing.is_empty()).then(|| {
        format!(
            "the bounding set of this process lacks {}: a program file cannot give what lacks there",
            missing.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_gives_all_at_once() {
        for name in ["cap_sys_nice", "cap_ipc_lock", "cap_perfmon", "cap_dac_read_search"] {
            assert!(SETCAP.contains(name), "{name}");
        }
    }

    #[test]
    fn a_refusal_names_the_capability_that_is_missing_and_no_other() {
        use Capability::{IpcLock, SysNice};
        let told =
            |needs, errno| refused(("this", needs), "call".to_owned(), errno, "run as root").to_string();
        // Capabilities belong to threads, so the others of this process keep theirs.
        let without = std::thread::spawn(move || {
            change(|sets| sets.effective.remove(CapabilitySet::SYS_NICE | CapabilitySet::IPC_LOCK));
            [
                (SysNice, libc::EPERM),
                (SysNice, libc::ENOMEM),
                (IpcLock, libc::ENOMEM),
                (IpcLock, libc::EAGAIN),
            ]
            .map(|(needs, errno)| told(needs, errno))
        });
        let expected = [
            "this needs CAP_SYS_NICE (call: EPERM): run as root",
            "call: ENOMEM: run as root",
            "this needs CAP_IPC_LOCK (call: ENOMEM): run as root",
            "call: EAGAIN: run as root",
        ];
        assert_eq!(without.join().expect("no panic"), expected);
        let has = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_NICE));
        if !has {
            println!("SKIPPED: CAP_SYS_NICE is not in effect");
            return;
        }
        // Who has the right is not sent to get it.
        let all_the_same = told(SysNice, libc::EPERM);
        assert!(all_the_same.starts_with("call: EPERM: the capability is in effect"), "{all_the_same}");
        assert_eq!(told(SysNice, libc::ESRCH), "call: ESRCH: run as root");
    }

    #[test]
    fn what_stops_a_program_files_capabilities_is_named() {
        let status =
            |privs: &str, bounding: &str| format!("Name:\tx\nNoNewPrivs:\t{privs}\nCapBnd:\t{bounding}\n");
        assert_eq!(why_none(&status("0", "000001ffffffffff")), None);
        assert!(why_none(&status("1", "000001ffffffffff")).unwrap().contains("no_new_privs"));
        // A container's usual set has none of the four.
        let told = why_none(&status("0", "00000000a80425fb")).unwrap();
        assert!(told.contains("cap_sys_nice, cap_ipc_lock, cap_perfmon, cap_dac_read_search"), "{told}");
        let told = why_none(&status("0", "000001ffff7fffff")).unwrap();
        assert!(told.contains("lacks cap_sys_nice:"), "{told}");
        assert_eq!(why_none("Name:\tx\n"), None);
    }

    #[test]
    fn each_remedy_for_a_right_has_a_line_of_its_own() {
        use crate::{fixed_priority::PRIVILEGE_REMEDY, memory::LOCKED_MEMORY_REMEDY};
        for remedy in [PRIVILEGE_REMEDY, LOCKED_MEMORY_REMEDY] {
            let error = crate::Error::os("call(7)", libc::EPERM, remedy).to_string();
            assert_eq!(in_lines(&error), format!("call(7): EPERM\n  = help: {remedy}"));
        }
        assert_eq!(in_lines("no remedy"), "no remedy");
        let told = "told\n  = help: : run as root";
        assert_eq!(in_lines(told), told);
    }

    /// On a thread of its own, whose rights no other thread has.
    #[test]
    fn rights_that_were_put_away_come_back_for_a_moment_alone() {
        std::thread::spawn(|| {
            let before = capabilities(None).unwrap();
            if !before.permitted.contains(OF_FILES) {
                println!("SKIPPED: no CAP_DAC_READ_SEARCH to put away");
                return;
            }
            change(|sets| sets.effective.remove(OF_FILES));
            let in_effect = || capabilities(None).unwrap().effective & OF_FILES;
            assert_eq!(in_effect(), CapabilitySet::empty());
            {
                let _raised = raise_file_rights();
                assert_eq!(in_effect(), OF_FILES);
                drop(raise_file_rights());
                assert_eq!(in_effect(), OF_FILES, "the inner one takes only what it has added");
            }
            assert_eq!(in_effect(), CapabilitySet::empty());
            change(|sets| {
                sets.permitted.remove(OF_FILES);
            });
            let _raised = raise_file_rights();
            assert_eq!(in_effect(), CapabilitySet::empty(), "what was given up does not come back");
        })
        .join()
        .unwrap();
    }
}
