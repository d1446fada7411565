//! Whether the kernel served the threads of a program as its system file says: what a foreign trace tells of their priorities.

use horolog_model::{Policy, Priority, System, Task};
use horolog_trace::foreign::Foreign;
use horolog_trace::kernel_priority::{FIRST_ORDINARY, Seen, is_changing, own, words};
use std::collections::BTreeMap;

/// A task with its one thread, and the kernel's number of its priority.
struct Served<'a> {
    task: &'a Task,
    thread: u32,
    prio: i32,
}

/// Why the trace of a program says nothing about a file, a sentence each.
pub(crate) fn doubts(system: &System, foreign: &Foreign) -> Vec<String> {
    let mut threads: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for thread in &foreign.threads {
        thread.task.into_iter().for_each(|task| threads.entry(task).or_default().push(thread.tid));
    }
    let (mut doubts, mut served) = (Vec::new(), Vec::new());
    for (number, id) in (0..).zip(system.task_ids()) {
        let task = system.task(id);
        match threads.get(&number).map_or(&[][..], Vec::as_slice) {
            // One that is not seen has no job, which says enough.
            [] => {}
            &[thread] => {
                let is_served = system.server_of(id).is_some();
                match of_thread(system, is_served, thread, foreign.priorities.get(&thread)) {
                    Ok(prio) => served.push(Served { task, thread, prio }),
                    Err(why) => doubts.push(format!("`{}`: {why}", task.name)),
                }
            }
            several => {
                let (name, numbers) = (&task.name, several.iter().map(u32::to_string).collect::<Vec<_>>());
                doubts.push(format!(
                    "`{name}`: {} threads count as this task ({}): `--map {name}=NUMBER` takes one of them",
                    several.len(),
                    numbers.join(", ")
                ));
            }
        }
    }
    if system.policy() == Policy::FixedPriority {
        // Those below a server have none.
        served.retain(|one| one.task.priority.is_some());
        served.sort_by_key(|one| (one.task.cpu, std::cmp::Reverse(one.task.priority.map(Priority::number))));
        for on_one_cpu in served.chunk_by(|one, other| one.task.cpu == other.task.cpu) {
            doubts.extend(out_of_order(on_one_cpu));
        }
    }
    doubts
}

/// The kernel's number of the priority of a task's thread, or why it was not served as the file says. A server changes its threads' priorities.
fn of_thread(system: &System, is_served: bool, thread: u32, seen: Option<&Seen>) -> Result<i32, String> {
    let Some((seen, prio)) = seen.and_then(|seen| Some((seen, own(seen)?))) else {
        return Err(format!("the trace does not tell the priority of thread {thread}"));
    };
    if prio >= FIRST_ORDINARY {
        return Err(format!(
            "thread {thread} is an ordinary one, which the kernel serves by no priority of the file"
        ));
    }
    if system.policy() == Policy::Edf && prio >= 0 {
        return Err(format!("the file has EDF, and thread {thread} has {}", words(prio)));
    }
    if is_changing(seen) && !is_served {
        return Err(format!("the priority or class of thread {thread} changed meanwhile"));
    }
    Ok(prio)
}

/// Of tasks in the file's order, the most important first, those that the kernel does not serve behind all before them.
fn out_of_order(tasks: &[Served<'_>]) -> Vec<String> {
    let mut doubts = Vec::new();
    // The least important of those above the group of equals, by the kernel's priorities.
    let mut above: Option<&Served<'_>> = None;
    for equals in tasks.chunk_by(|one, other| one.task.priority == other.task.priority) {
        for task in equals {
            if let Some(other) = above.filter(|other| other.prio >= task.prio) {
                doubts.push(format!(
                    "`{}`, `{}`: the file has the first above the second, and the kernel served thread {} with {} and thread {} with {}",
                    other.task.name,
                    task.task.name,
                    other.thread,
                    words(other.prio),
                    task.thread,
                    words(task.prio)
                ));
            }
        }
        above = equals.iter().chain(above).max_by_key(|one| one.prio);
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_trace::file::{Header, Thread};

    /// Tasks `t0`, `t1`, … on these processors with these priorities, whose threads 10, 11, … were seen with the kernel's.
    fn told(policy: &str, tasks: &[(u32, i64, i32)]) -> Vec<String> {
        told_of("", policy, tasks, &|prio| Seen::from([(prio, 1)]))
    }

    /// With servers, whose tasks have the priority 0 here, and with what the kernel shows of a thread of a priority.
    fn told_of(
        servers: &str,
        policy: &str,
        tasks: &[(u32, i64, i32)],
        seen_of: &dyn Fn(i32) -> Seen,
    ) -> Vec<String> {
        let is_edf = policy == "edf";
        let mut text = format!("[system]\nname = \"s\"\npolicy = \"{policy}\"\n[platform]\ncpus = [0, 1]\n");
        for (place, (cpu, priority, _)) in tasks.iter().enumerate() {
            text +=
                &format!("[[task]]\nname = \"t{place}\"\ncpu = {cpu}\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n");
            text +=
                &if is_edf || *priority == 0 { String::new() } else { format!("priority = {priority}\n") };
        }
        text += servers;
        let (system, _) =
            horolog_model::file::read(&text, "s.toml", &[]).unwrap_or_else(|error| panic!("{error}"));
        let thread = |place: usize| Thread {
            id: place as u64,
            tid: 10 + place as u32,
            task: Some(place as u32),
            comm: format!("t{place}"),
            process: None,
        };
        let seen = |(place, (_, _, prio)): (usize, &(u32, i64, i32))| (10 + place as u32, seen_of(*prio));
        let foreign = Foreign {
            header: Header::session(0),
            threads: (0..tasks.len()).map(thread).collect(),
            records: Vec::new(),
            notes: Vec::new(),
            priorities: tasks.iter().enumerate().map(seen).collect(),
            damage: None,
        };
        doubts(&system, &foreign)
    }

    #[test]
    fn the_order_of_the_file_is_held_against_the_kernels() {
        let fixed = |tasks: &[(u32, i64, i32)]| told("fixed-priority", tasks);
        // The numbers may differ, the order may not; a lower priority of the file may be listed first.
        assert_eq!(fixed(&[(0, 5, 60), (0, 9, 40), (0, 7, 50)]), Vec::<String>::new());
        for second in [49, 50] {
            let told = fixed(&[(0, 5, second), (0, 9, 50)]);
            assert!(
                told.len() == 1 && told[0].starts_with("`t1`, `t0`: the file has the first above"),
                "{told:?}"
            );
        }
        assert_eq!(fixed(&[(0, 5, 51), (0, 9, 50)]), Vec::<String>::new());
        // Equals may have any order among each other, but all lie below those above.
        assert_eq!(fixed(&[(0, 9, 30), (0, 5, 50), (0, 5, 40)]), Vec::<String>::new());
        assert_eq!(fixed(&[(0, 9, 45), (0, 5, 50), (0, 5, 40)]).len(), 1);
        // The least important of all above counts, not the last one.
        assert_eq!(fixed(&[(0, 9, 60), (0, 7, 61), (0, 5, 62), (0, 3, 61)]).len(), 1);
        assert_eq!(fixed(&[(0, 9, 70), (0, 7, 60), (0, 5, 65)]).len(), 2);
        // On processors of their own nothing is compared.
        assert_eq!(fixed(&[(0, 9, 50), (1, 5, 40)]), Vec::<String>::new());
    }

    #[test]
    fn what_is_not_told_or_changes_is_no_yes() {
        let one = |seen: &dyn Fn(i32) -> Seen| told_of("", "fixed-priority", &[(0, 9, 50)], seen);
        assert_eq!(one(&|_| Seen::new()), ["`t0`: the trace does not tell the priority of thread 10"]);
        for other in [(120, 1), (40, 1), (60, 1)] {
            let told = one(&|prio| Seen::from([(prio, 5), other]));
            assert_eq!(told, ["`t0`: the priority or class of thread 10 changed meanwhile"], "{other:?}");
        }
    }

    /// A task below a server has the server's priority, which changes as the budget does.
    #[test]
    fn tasks_below_a_server_are_in_no_order() {
        let server = "[[server]]\nname = \"s\"\nkind = \"sporadic\"\nbudget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 3\n\
                      cpu = 0\ntasks = [\"t0\"]\n";
        let lowered = |prio| Seen::from([(prio, 1), (120, 9)]);
        let told = |tasks: &[(u32, i64, i32)]| told_of(server, "fixed-priority", tasks, &lowered);
        assert_eq!(told(&[(0, 0, 60)]), Vec::<String>::new());
        let only = told(&[(0, 0, 60), (0, 5, 40)]);
        assert!(only.len() == 1 && only[0].starts_with("`t1`: the priority or class"), "{only:?}");
    }

    #[test]
    fn classes_are_held_against_the_policy() {
        assert_eq!(told("edf", &[(0, 0, -1), (0, 0, -1)]), Vec::<String>::new());
        for (prio, named) in [
            (0, "priority of 99"),
            (50, "priority of 49"),
            (99, "the file has EDF"),
            (100, "an ordinary one"),
        ] {
            let told = told("edf", &[(0, 0, prio)]);
            assert!(told.len() == 1 && told[0].contains(named), "{told:?}");
        }
        assert!(told("fixed-priority", &[(0, 9, 120)])[0].contains("an ordinary one"));
        // One under SCHED_DEADLINE is above all real-time priorities.
        assert_eq!(told("fixed-priority", &[(0, 9, -1), (0, 5, 40)]), Vec::<String>::new());
        assert_eq!(told("fixed-priority", &[(0, 9, -1), (0, 5, -1)]).len(), 1);
        assert_eq!(told("fixed-priority", &[(0, 9, 40), (0, 5, -1)]).len(), 1);
    }
}
