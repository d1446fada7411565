//! A `bcet` so small that the costs of a server are more than the processor has: told where it is the reason, and there alone.

use super::{SET_B, Verdict, read};
use horolog_analysis::{Options, analyze};

/// Three hard tasks below a server of 2 ms every 10 ms, whose task has this `bcet`.
fn text(bcet: &str, wcet_of_three: &str) -> String {
    format!(
        "{}[platform]\ncontext_switch = \"10 us\"\n[[task]]\nname = \"soft\"\nseparation = \"100 ms\"\nwcet = \"2 ms\"\n\
         bcet = \"{bcet}\"\n[[server]]\nname = \"s\"\nkind = \"polling\"\ntasks = [\"soft\"]\nbudget = \"2 ms\"\n\
         period = \"10 ms\"\npriority = 40\n",
        SET_B.replace("\"8 ms\"", &format!("\"{wcet_of_three}\""))
    )
}

fn reasons(bcet: &str, wcet_of_three: &str) -> (bool, Vec<String>) {
    let found = analyze(&read(&text(bcet, wcet_of_three)), &Options::default()).unwrap();
    (found.tasks.iter().all(|task| task.verdict == Verdict::Meets), found.reasons)
}

/// The `bcet` that the reason names proves what it says, and a nanosecond less does not.
#[test]
fn a_bcet_that_makes_the_costs_too_large_is_named_with_the_least_one_that_does_not() {
    let (is_proved, found) = reasons("1 ns", "8 ms");
    let [reason] = &found[..] else { panic!("{found:?}") };
    assert!(!is_proved);
    assert!(reason.starts_with("server `s`: 40 s of costs a period"), "{reason}");
    assert!(reason.contains("jobs of 1 ns, the bcet of task `soft`"), "{reason}");
    assert!(reason.ends_with("give `soft` that bcet, if it never takes less"), "{reason}");
    let (_, rest) = reason.split_once("with one of at least ").unwrap();
    let least: horolog_time::Span =
        rest.split_whitespace().take(2).collect::<Vec<_>>().join(" ").parse().unwrap();
    assert_eq!(reasons(&least.to_string(), "8 ms"), (true, Vec::new()));
    let less = format!("{} ns", least.as_ns() - 1);
    let (is_proved, found) = reasons(&less, "8 ms");
    assert!(!is_proved && found.len() == 1, "{found:?}");
    assert!(found[0].contains(&format!("with one of at least {least} ")), "{found:?}");
}

/// Nothing is told of a small `bcet` with which all is proved, of one that no other would help, and of one on a platform without
/// costs.
#[test]
fn a_bcet_that_is_not_the_reason_is_not_named() {
    assert_eq!(reasons("500 us", "8 ms"), (true, Vec::new()));
    let (is_proved, found) = reasons("2 ms", "20 ms");
    assert!(!is_proved && found.is_empty(), "{found:?}");
    let (is_proved, found) = reasons("200 us", "20 ms");
    assert!(!is_proved && found.is_empty(), "{found:?}");
    let free = text("1 ns", "8 ms").replace("[platform]\ncontext_switch = \"10 us\"\n", "");
    assert!(analyze(&read(&free), &Options::default()).unwrap().reasons.is_empty());
}
