//! Whether the kernel served the threads of a program as its system file says: what a foreign trace tells of their priorities.

use horolog_model::{CpuId, Policy, Priority, System, Task};
use horolog_trace::foreign::Foreign;
use horolog_trace::kernel_priority::{FIRST_ORDINARY, own, words};

/// A task with its one thread, and the kernel's number of its priority.
struct Served<'a> {
    task: &'a Task,
    thread: u32,
    prio: i32,
}

/// Why the trace of a program says nothing about a file, a sentence each.
pub(crate) fn doubts(system: &System, foreign: &Foreign) -> Vec<String> {
    let mut doubts = Vec::new();
    let mut served = Vec::new();
    for (number, task) in (0..).zip(system.tasks()) {
        let name = &task.name;
        let of_it = foreign.threads.iter().filter(|thread| thread.task == Some(number));
        let threads: Vec<u32> = of_it.map(|thread| thread.tid).collect();
        let &[thread] = &threads[..] else {
            if !threads.is_empty() {
                let numbers: Vec<String> = threads.iter().map(u32::to_string).collect();
                doubts.push(format!(
                    "`{name}`: {} threads count as this task ({}): `--map {name}=NUMBER` takes one of them",
                    threads.len(),
                    numbers.join(", ")
                ));
            }
            continue;
        };
        let Some(prio) = foreign.priorities.get(&thread).and_then(own) else { continue };
        if prio >= FIRST_ORDINARY {
            doubts.push(format!(
                "`{name}`: thread {thread} is an ordinary one, which the kernel serves by no priority of the file"
            ));
        } else if system.policy() == Policy::Edf && prio >= 0 {
            doubts.push(format!("`{name}`: the file has EDF, and thread {thread} {}", words(prio)));
        } else {
            served.push(Served { task, thread, prio });
        }
    }
    if system.policy() == Policy::FixedPriority && system.servers().is_empty() {
        let mut cpus: Vec<CpuId> = served.iter().map(|one| one.task.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        for cpu in cpus {
            let mut on_it: Vec<&Served<'_>> = served.iter().filter(|one| one.task.cpu == cpu).collect();
            on_it.retain(|one| one.task.priority.is_some());
            on_it.sort_by_key(|one| std::cmp::Reverse(one.task.priority.map(Priority::number)));
            doubts.extend(out_of_order(&on_it));
        }
    }
    doubts
}

/// Of tasks in the file's order, the most important first, those that the kernel does not serve behind all before them.
fn out_of_order(tasks: &[&Served<'_>]) -> Vec<String> {
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
        let least = equals.iter().copied().chain(above).max_by_key(|one| one.prio);
        above = least;
    }
    doubts
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_trace::file::{Header, Thread};
    use std::collections::BTreeMap;

    /// Tasks `t0`, `t1`, … of one processor with these priorities, whose threads 10, 11, … were seen with the kernel's.
    fn told(policy: &str, tasks: &[(u32, i64, i32)]) -> Vec<String> {
        let is_edf = policy == "edf";
        let mut text = format!("[system]\nname = \"s\"\npolicy = \"{policy}\"\n[platform]\ncpus = [0, 1]\n");
        for (place, (cpu, priority, _)) in tasks.iter().enumerate() {
            text +=
                &format!("[[task]]\nname = \"t{place}\"\ncpu = {cpu}\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n");
            text += &if is_edf { String::new() } else { format!("priority = {priority}\n") };
        }
        let (system, _) = horolog_model::file::read(&text, "s.toml", &[]).expect("a system");
        let thread = |place: usize| Thread {
            id: place as u64,
            tid: 10 + place as u32,
            task: Some(place as u32),
            comm: format!("t{place}"),
            process: None,
        };
        let seen = |(place, (_, _, prio)): (usize, &(u32, i64, i32))| {
            (10 + place as u32, BTreeMap::from([(*prio, 1), (prio - 1, 9)]))
        };
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
        // On processors of their own nothing is compared.
        assert_eq!(fixed(&[(0, 9, 50), (1, 5, 40)]), Vec::<String>::new());
    }

    #[test]
    fn classes_are_held_against_the_policy() {
        assert_eq!(told("edf", &[(0, 0, -1), (0, 0, -1)]), Vec::<String>::new());
        assert!(told("edf", &[(0, 0, 50)])[0].contains("the file has EDF"));
        assert!(told("edf", &[(0, 0, 120)])[0].contains("an ordinary one"));
        assert!(told("fixed-priority", &[(0, 9, 120)])[0].contains("an ordinary one"));
        // One under SCHED_DEADLINE is above all real-time priorities.
        assert_eq!(told("fixed-priority", &[(0, 9, -1), (0, 5, 40)]), Vec::<String>::new());
        assert_eq!(told("fixed-priority", &[(0, 9, -1), (0, 5, -1)]).len(), 1);
        assert_eq!(told("fixed-priority", &[(0, 9, 40), (0, 5, -1)]).len(), 1);
    }
}
