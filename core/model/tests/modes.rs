//! Modes: what a file says of them, how it is printed, and what follows a period into a mode.

use horolog_model::{
    Capacity, Companion, LeftOver, OverrunPolicy, Priority, SecondRequest, ServerId, System, TakesEffect,
    TaskId, file,
};
use horolog_time::Span;

const FILE: &str = r#"
[system]
name = "modes"
[[task]]
name = "control"
period = "10 ms"
wcet = "2 ms"
priority = 9
[[task]]
name = "camera"
separation = "40 ms"
deadline = "30 ms"
wcet = "2 ms"
priority = 5
[[task]]
name = "logger"
period = "40 ms"
wcet = "2 ms"
[[server]]
name = "logs"
kind = "deferrable"
budget = "2 ms"
period = "10 ms"
priority = 7
tasks = ["logger"]
[[mode]]
name = "degraded"
at = ["40 ms", "90 ms"]
active = ["control", "logger"]
takes_effect = { frame = "logs" }
second_request = "refuse"
left_over = "suspend"
[[mode.task]]
name = "control"
period = "5 ms"
priority = 3
[[mode.task]]
name = "camera"
left_over = "drop"
[[mode.task]]
name = "logger"
period = "20 ms"
[[mode.server]]
name = "logs"
budget = "1 ms"
period = "5 ms"
[[mode]]
name = "watching"
takes_effect = { when_done = ["camera"] }
[[mode.task]]
name = "camera"
period = "20 ms"
[[mode]]
name = "normal"
at = ["70 ms"]
"#;

fn read(sets: &[&str]) -> Result<System, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    file::read(FILE, "modes.toml", &sets).map(|(system, _)| system).map_err(|errors| errors.to_string())
}

fn ms(ms: u64) -> Span {
    Span::from_ns(ms * 1_000_000)
}

#[test]
fn a_mode_is_read_with_what_it_changes() {
    let system = read(&[]).expect("valid");
    let [degraded, watching, normal] = system.modes() else { panic!("three modes") };
    assert_eq!(degraded.at, [ms(40), ms(90)]);
    assert_eq!(degraded.takes_effect, TakesEffect::Frame("logs".to_owned()));
    assert_eq!((degraded.second_request, degraded.left_over), (SecondRequest::Refuse, LeftOver::Suspend));
    assert_eq!(watching.takes_effect, TakesEffect::WhenDone(vec!["camera".to_owned()]));
    assert_eq!((&watching.active, watching.at.len()), (&None, 0));
    assert_eq!((&normal.takes_effect, normal.second_request), (&TakesEffect::AtOnce, SecondRequest::Queue));

    let in_degraded = |task| system.task_in(1, TaskId(task));
    assert_eq!(in_degraded(0).priority, Some(Priority::new(3)));
    assert_eq!((in_degraded(0).is_active, in_degraded(1).is_active), (true, false));
    assert_eq!((in_degraded(0).left_over, in_degraded(1).left_over), (LeftOver::Suspend, LeftOver::Drop));
    assert_eq!(system.capacity_in(1, ServerId(0)), Some(Capacity { budget: ms(1), period: ms(5) }));
    assert_eq!(system.capacity_in(2, ServerId(0)), Some(Capacity { budget: ms(2), period: ms(10) }));
    assert_eq!(system.mode_requests(), [(ms(40), 1), (ms(70), 3), (ms(90), 1)]);
    assert_eq!(system.first_beyond_servers().as_deref(), Some("mode.degraded"));
}

/// A deadline that is the period because nothing else is said is the new period in a mode.
#[test]
fn a_deadline_by_default_follows_the_period() {
    let system = read(&[]).expect("valid");
    assert_eq!(system.task_in(1, TaskId(0)).deadline, Some(ms(5)));
    assert_eq!(system.task_in(2, TaskId(1)).deadline, Some(ms(30)), "its own");
    assert_eq!(system.task_in(1, TaskId(2)).deadline, None, "it is soft");
    let system = read(&["mode.degraded.task.control.deadline=4ms"]).expect("valid");
    assert_eq!(system.task_in(1, TaskId(0)).deadline, Some(ms(4)));
    let system = read(&["task.control.deadline=9ms"]).expect("valid");
    assert_eq!(system.task_in(1, TaskId(0)).deadline, Some(ms(9)));
}

#[test]
fn modes_print_as_they_read() {
    let system = read(&[]).expect("valid");
    for printed in [file::print(&system), file::print_expanded(&system)] {
        assert_eq!(printed.matches("[[mode]]").count(), 3);
        assert_eq!(printed.matches("[[mode.task]]").count(), 4);
        assert!(printed.contains("takes_effect = { frame = \"logs\" }"), "{printed}");
        assert_eq!(file::read(&printed, "printed", &[]).expect("reads back").0, system);
    }
    assert_eq!(System::new(system.to_draft()), Ok(system));
}

#[test]
fn the_whole_mode_is_checked() {
    let said = read(&["mode.degraded.task.control.period=1ms"]).expect_err("below the wcet");
    assert!(said.contains("the wcet 2 ms is above the deadline 1 ms, which is the period"), "{said}");
    let said = read(&["mode.degraded.server.logs.budget=6ms"]).expect_err("above the period");
    assert!(said.contains("the budget 6 ms is above the period 5 ms"), "{said}");
    let said = read(&["mode.watching.takes_effect={ frame = \"log\" }"]).expect_err("no such server");
    assert!(said.contains("there is no server or scheduler `log`") && said.contains("`logs`"), "{said}");
    // A broken base mode is told once.
    let said = read(&["task.control.bcet=3ms"]).expect_err("above the wcet");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
}

#[test]
fn an_overrun_may_name_a_mode() {
    let system = read(&["task.control.overrun={ mode = \"degraded\" }"]).expect("valid");
    assert_eq!(system.task(TaskId(0)).overrun, OverrunPolicy::Mode("degraded".to_owned()));
    assert_eq!((system.find_mode("degraded"), system.find_mode("base")), (Some(1), None));
    let printed = file::print(&system);
    assert!(printed.contains("overrun = { mode = \"degraded\" }"), "{printed}");
    assert_eq!(file::read(&printed, "printed", &[]).expect("reads back").0, system);
    let said = read(&["task.control.overrun={ mode = \"degarded\" }"]).expect_err("no such mode");
    assert_eq!(said.matches("error:").count(), 1, "{said}");
    assert!(said.contains("there is no mode `degarded`") && said.contains("`degraded`"), "{said}");
    // A mode that cannot be read is none that is missing.
    let sets = ["task.control.overrun={ mode = \"degraded\" }", "mode.degraded.left_over=\"keep\""];
    let said = read(&sets).expect_err("no such word");
    assert!(!said.contains("there is no mode"), "{said}");
    let said = read(&["task.control.overrun=\"degraded\""]).expect_err("no such word");
    assert!(said.contains("`degraded` is not a word that is known here"), "{said}");
    let said = read(&["task.control.overrun={ }"]).expect_err("no mode");
    assert!(said.contains("mode"), "{said}");
}

#[test]
fn what_drivers_do_in_threads_goes_on_in_every_mode() {
    let device = "[[device]]\nname = \"network\"\nservice = \"thread\"\npriority = 6\nseparation = \"1 ms\"\ncost = \"10 us\"\n";
    let (system, _) = file::read(&format!("{FILE}{device}"), "modes.toml", &[]).expect("valid");
    let companion = Companion::new(&system).expect("valid").system;
    let thread = companion.find_task("network").expect("a thread");
    assert!(companion.task_in(1, thread).is_active);
    assert!(!companion.task_in(1, TaskId(1)).is_active);
}
