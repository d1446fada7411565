//! Code size and memory: the thesis counts 106 lines added and two integers in the task's control block.

use crate::{Agreement, Fact};

/// The sources that make deferred preemption on top of the kernel's scheduling.
const SOURCES: [&str; 3] = [
    include_str!("../../../engines/exec/src/agent/monitor.rs"),
    include_str!("../../../engines/exec/src/agent/driver.rs"),
    include_str!("../../../engines/exec/src/agent/tasks.rs"),
];

pub(super) fn fact() -> Fact {
    let lines: usize = SOURCES.iter().map(|text| code_lines(text)).sum();
    let ours = format!(
        "0 lines in the kernel; {lines} lines of agent in user space; one word read at a point, in two cache lines a task"
    );
    Fact::new(
        16,
        "code size and memory of the mechanism",
        "106 lines added, 3 modified, 0 removed in the kernel; 2 integers a task",
        ours,
        Agreement::NotMeasurable(
            "a stock kernel is not patched, so lines of a kernel patch do not compare".to_owned(),
        ),
    )
}

/// Lines that hold code, tests left out.
fn code_lines(text: &str) -> usize {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_code_and_nothing_else() {
        assert_eq!(super::code_lines("//! doc\nfn a() {\n}\n\n#[cfg(test)]\nmod tests {}\n"), 2);
    }
}
