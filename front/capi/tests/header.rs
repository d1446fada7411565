//! The header describes the layout that the executive uses, in C and in C++, without a warning.

use horolog_capi::job_abi::{self, JobHandle, JobTable, OverrunInfo};
use std::fmt::Write;
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// (C expression, value in Rust).
fn layout() -> Vec<(String, usize)> {
    let mut all = vec![
        ("sizeof(struct horolog_job)".to_owned(), size_of::<JobHandle>()),
        ("sizeof(struct horolog_job_table)".to_owned(), size_of::<JobTable>()),
        ("sizeof(horolog_overrun)".to_owned(), size_of::<OverrunInfo>()),
        ("HOROLOG_ABI_VERSION".to_owned(), job_abi::ABI_VERSION as usize),
        ("HOROLOG_SEGMENT_OVERRUN".to_owned(), job_abi::SEGMENT_OVERRUN as usize),
        ("HOROLOG_JOB_OVERRUN_CERTAIN".to_owned(), job_abi::JOB_OVERRUN_CERTAIN as usize),
        ("HOROLOG_JOB_OVERRUN".to_owned(), job_abi::JOB_OVERRUN as usize),
        ("HOROLOG_HARMS_MORE_IMPORTANT".to_owned(), job_abi::HARMS_MORE_IMPORTANT as usize),
    ];
    for (name, code) in [
        ("HOROLOG_NOT_FOUND", job_abi::NOT_FOUND),
        ("HOROLOG_NO_HANDLE", job_abi::NO_HANDLE),
        ("HOROLOG_OTHER_THREAD", job_abi::OTHER_THREAD),
        ("HOROLOG_JOB_ENDED", job_abi::JOB_ENDED),
    ] {
        all.push((format!("-{name}"), code.unsigned_abs() as usize));
    }
    macro_rules! offsets {
        ($c:literal, $rust:ty: $($field:ident)*) => {
            $(all.push((format!("offsetof({}, {})", $c, stringify!($field)), offset_of!($rust, $field)));)*
        };
    }
    offsets!("struct horolog_job", JobHandle: attention table context state number release_ns deadline_ns owner refusals);
    offsets!("struct horolog_job_table", JobTable: version reserved preemption_point next_segment set_preemptible
        remaining_ns executed_ns must_end on_overrun request_mode publish latched read lock unlock check);
    offsets!("horolog_overrun", OverrunInfo: job executed_ns segment flags);
    all
}

#[test]
fn the_header_and_the_executive_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    for (compiler, name, standard) in [("cc", "check.c", "-std=c11"), ("c++", "check.cpp", "-std=c++17")] {
        let mut source = String::from(
            "#include \"horolog.h\"\n#include <stddef.h>\n#ifdef __cplusplus\n#define CHECK static_assert\n#else\n#define CHECK _Static_assert\n#endif\n",
        );
        for (expression, value) in layout() {
            writeln!(source, "CHECK({expression} == {value}, \"{expression}\");").expect("a string");
        }
        source.push_str("int use(horolog_job *job) { return horolog_preemption_point(job, 1); }\nint hand(horolog_job *job) { char b[4] = {0}; return horolog_publish(job, \"x\", b, 4) + (int)horolog_latched(job, \"x\") + (int)horolog_read(job, \"x\", b, 4) + horolog_lock(job, \"r\") + horolog_unlock(job, \"r\"); }\n");
        let path = folder.path().join(name);
        std::fs::write(&path, source).expect("writable");
        let output = Command::new(compiler)
            .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I"])
            .arg(&include)
            .arg(&path)
            .output();
        match output {
            Ok(output) => {
                assert!(output.status.success(), "{compiler}:\n{}", String::from_utf8_lossy(&output.stderr));
            }
            Err(error) => println!("SKIPPED: {compiler}: {error}"),
        }
    }
}
