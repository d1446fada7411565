//! What is named for a missed deadline.

use super::*;
use horolog_verify::Evidence as Found;

#[test]
fn a_cause_lies_in_the_busy_window_of_a_missed_job() {
    let text = |case: &Case| case.closing().text;
    let head = "3 deadlines missed (b 2, a 1)";
    let mut case = missed_both();
    assert_eq!(text(&case), format!("{head}; cause not known"));
    // The worst of the run, but in no missed job's window.
    case.found().findings.push(disturbance(Check::Steal, 30, 9_000, "CPU 0 stood still for 9 ms"));
    assert_eq!(text(&case), format!("{head}; cause not known"));
    case.found().findings.push(disturbance(Check::Interrupt, 50, 900, "softirq 3 took CPU 0"));
    let of_b = format!("{head}; found beside it: softirq 3 took CPU 0 (in the busy window of b job 2)");
    assert_eq!(text(&case), of_b);
    // A late release says less than what was found besides.
    case.found().findings.push(disturbance(
        Check::Release,
        45,
        5_000,
        "b job 2 was ready 5 ms after its arrival",
    ));
    assert_eq!(text(&case), of_b);
    // Another processor's, and one that is over when the window begins.
    let mut other = disturbance(Check::Steal, 15, 100, "CPU 1 stood still");
    other.cpu = 1;
    case.found().findings.push(other);
    case.found().findings.push(disturbance(Check::Steal, 10, 100, "CPU 0 stood still for 100 us"));
    assert_eq!(text(&case), of_b);
    // The more important task comes first, whoever had the worse one.
    case.found().findings.push(disturbance(Check::Gap, 11, 50, "a job 1 had CPU 0"));
    assert_eq!(text(&case), format!("{head}; found beside it: a job 1 had CPU 0"));
    // A gap between two jobs of a thread, in which another one should have run.
    let between = "cpu 0: a should have the processor, and b's thread between two jobs has it";
    case.found().findings.push(disturbance(Check::Divergence, 12, 60, between));
    assert_eq!(text(&case), format!("{head}; found beside it: {between} (in the busy window of a job 1)"));
    // One that is the schedule's is no disturbance.
    let mut of_schedule = disturbance(Check::Divergence, 12, 70, "cpu 0: a should have the processor");
    of_schedule.class = Class::ScheduleDiffers;
    case.found().findings.push(of_schedule);
    assert_eq!(text(&case), format!("{head}; found beside it: {between} (in the busy window of a job 1)"));
    // By the machine it is where a bound would have held.
    let mut late = disturbance(Check::Response, 21, 11_000, "late");
    (late.task, late.job) = (Some("a".to_owned()), Some(1));
    case.found().findings.push(late);
    let closing = case.closing();
    let by_machine = format!("{head}, by the machine: {between} (in the busy window of a job 1)");
    assert_eq!(closing.text, by_machine);
    assert!(closing.help.as_ref().is_some_and(|help| help.starts_with("isolate CPU")), "{closing}");
    case.found().backend = "linux-best-effort".to_owned();
    let closing = case.closing();
    assert!(closing.help.as_ref().is_some_and(|help| help.contains("real-time scheduling")), "{closing}");
}

/// What lasts meets a busy window to the nanosecond, whichever of its ends it was told at.
#[test]
fn a_cause_that_only_touches_the_busy_window_is_none() {
    let ms = |ms: u64| horolog_time::Instant::from_ns(ms * 1_000_000);
    let is_named = |from: horolog_time::Instant, to: horolog_time::Instant| {
        let both = [from, to].map(|time_ns| {
            let mut case = missed_both();
            let it = disturbance(Check::ForeignThread, 11, 5_000, "burst (thread 7) had CPU 0");
            case.found().findings.push(horolog_verify::Finding { time_ns, from_ns: from, to_ns: to, ..it });
            case.closing().text.contains("burst (thread 7) had CPU 0")
        });
        assert_eq!(both[0], both[1]);
        both[0]
    };
    let unit = Span::from_ns(1);
    // The window of a job 1 goes from 10 to 21 ms.
    assert!(!is_named(ms(5), ms(10)));
    assert!(is_named(ms(5), ms(10).checked_add(unit).expect("in range")));
    assert!(!is_named(ms(21), ms(26)));
    assert!(is_named(ms(21).checked_sub(unit).expect("in range"), ms(26)));
}

/// What the verification found of the missed job itself is told at that job's end.
#[test]
fn a_gap_in_the_missed_job_itself_is_a_cause() {
    let is_named = |job| {
        let mut case = missed_both();
        let at_the_end = horolog_time::Instant::from_ns(21_000_000);
        let gap = horolog_verify::Finding {
            from_ns: at_the_end,
            task: Some("a".to_owned()),
            job: Some(job),
            ..disturbance(Check::Gap, 21, 5_000, "the processor stood still")
        };
        case.found().findings.push(gap);
        case.closing().text.contains("the processor stood still")
    };
    assert!(is_named(1) && !is_named(2));
}

#[test]
fn a_late_release_is_a_cause_where_nothing_else_is() {
    let mut case = missed_both();
    let late = disturbance(Check::Release, 45, 5_000, "b job 2 was ready 5 ms after its arrival");
    case.found().findings.push(late);
    let text = case.closing().text;
    assert!(text.ends_with("; found beside it: b job 2 was ready 5 ms after its arrival"), "{text}");
}

/// What took most in all is named: by its longest case where one was found, and in sum where it came in small parts.
#[test]
fn the_greatest_cause_is_named() {
    let text = |amounts: &[(&str, u64)], has_burst: bool| {
        let mut case = missed_both();
        case.found().findings.push(disturbance(Check::Interrupt, 15, 900, "softirq 3 took CPU 0"));
        let burst = disturbance(Check::ForeignThread, 15, 500, "burst (thread 7) had CPU 0");
        case.found().findings.extend(has_burst.then_some(burst));
        let evidence = amounts.iter().map(|(what, amount_us)| Found {
            what: (*what).to_owned(),
            amount_ns: Span::from_ns(amount_us * 1_000),
        });
        case.found().findings.push(horolog_verify::Finding {
            task: Some("a".to_owned()),
            job: Some(1),
            evidence: evidence.collect(),
            ..disturbance(Check::Response, 21, 11_000, "late")
        });
        case.closing().text
    };
    let (interrupts, foreign) = (Found::INTERRUPTS, Found::FOREIGN_THREADS);
    let place = "(in the busy window of a job 1)";
    let in_parts = |amount_us| text(&[(Found::STEAL, 1), (foreign, amount_us)], false);
    let softirq = format!(", by the machine: softirq 3 took CPU 0 {place}");
    assert!(in_parts(900).ends_with(&softirq), "{}", in_parts(900));
    let summed = ", by the machine: foreign threads took 901 us in the busy window of a job 1";
    assert!(in_parts(901).ends_with(summed), "{}", in_parts(901));
    let both = |taken: u64| text(&[(interrupts, 950), (foreign, taken)], true);
    assert!(both(949).ends_with(&softirq), "{}", both(949));
    let thread = format!(", by the machine: burst (thread 7) had CPU 0 {place}");
    assert!(both(951).ends_with(&thread), "{}", both(951));
}
