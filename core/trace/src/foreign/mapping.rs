//! Which thread of a foreign application is which task.

use crate::TraceError;

/// Picks threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Selector {
    /// By name; a `*` at the end stands for any rest.
    Comm(String),
    /// By the kernel's number.
    Tid(u32),
}

impl Selector {
    fn picks(&self, tid: u32, comm: &str) -> bool {
        match self {
            Self::Tid(wanted) => *wanted == tid,
            Self::Comm(pattern) => match pattern.strip_suffix('*') {
                Some(prefix) => comm.starts_with(prefix),
                None => comm == pattern,
            },
        }
    }
}

/// Maps threads to tasks.
///
/// ```
/// use horolog_trace::foreign::Mapping;
/// let tasks = ["control".to_owned(), "camera".to_owned()];
/// let mapping = Mapping::parse(["control=ctl-loop", "camera=tid:4711"], &tasks)?;
/// assert_eq!(mapping.task_of(12, "ctl-loop"), Some(0));
/// assert_eq!(mapping.task_of(4711, "anything"), Some(1));
/// assert_eq!(mapping.task_of(1, "init"), None);
/// # Ok::<(), horolog_trace::TraceError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mapping {
    rules: Vec<(u32, Selector)>,
}

impl Mapping {
    /// Reads rules `TASK=COMM`, `TASK=PREFIX*`, or `TASK=NUMBER` or `TASK=tid:NUMBER` for a thread's id.
    ///
    /// # Errors
    /// A rule without `=`, an unknown task, a tid that is no number.
    pub fn parse<'a>(
        rules: impl IntoIterator<Item = &'a str>,
        tasks: &[String],
    ) -> Result<Mapping, TraceError> {
        let mut mapping = Mapping::default();
        for rule in rules {
            let refuse = |what: String| {
                TraceError::unsupported(what, "write TASK=COMM, TASK=PREFIX* or TASK=tid:NUMBER")
            };
            let Some((task, thread)) = rule.split_once('=') else {
                return Err(refuse(format!("`{rule}` maps no thread to a task")));
            };
            let Some(index) = tasks.iter().position(|name| name == task.trim()) else {
                return Err(refuse(format!("`{rule}`: the system has no task `{}`", task.trim())));
            };
            let selector = match thread.trim().strip_prefix("tid:") {
                Some(tid) => match tid.trim().parse() {
                    Ok(tid) => Selector::Tid(tid),
                    Err(_) => return Err(refuse(format!("`{rule}`: `{tid}` is not a thread id"))),
                },
                None => match thread.trim().parse() {
                    Ok(tid) => Selector::Tid(tid),
                    Err(_) => Selector::Comm(thread.trim().to_owned()),
                },
            };
            mapping.rules.push((index as u32, selector));
        }
        Ok(mapping)
    }

    /// Threads named like their tasks (the kernel cuts names to 15 bytes).
    #[must_use]
    pub fn by_name(tasks: &[String]) -> Mapping {
        let cut = |name: &String| {
            let mut end = name.len().min(15);
            while !name.is_char_boundary(end) {
                end -= 1;
            }
            name[..end].to_owned()
        };
        let rules = tasks.iter().enumerate().map(|(index, name)| (index as u32, Selector::Comm(cut(name))));
        Mapping { rules: rules.collect() }
    }

    /// The task of a thread: by the first rule that picks it.
    #[must_use]
    pub fn task_of(&self, tid: u32, comm: &str) -> Option<u32> {
        self.rules.iter().find(|(_, selector)| selector.picks(tid, comm)).map(|(task, _)| *task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_rules_are_refused_with_the_remedy() {
        let tasks = ["a".to_owned()];
        for (rule, part) in [("a", "maps no thread"), ("b=x", "no task `b`"), ("a=tid:x", "not a thread id")]
        {
            let error = Mapping::parse([rule], &tasks).expect_err(rule).to_string();
            assert!(error.contains(part) && error.contains("TASK=COMM"), "{error}");
        }
        let mapping = Mapping::parse(["a=work*"], &tasks).expect("right");
        assert_eq!((mapping.task_of(1, "worker-3"), mapping.task_of(1, "wor")), (Some(0), None));
        assert_eq!(
            Mapping::by_name(&["a-very-long-task-name".to_owned()]).task_of(1, "a-very-long-tas"),
            Some(0)
        );
    }
}
