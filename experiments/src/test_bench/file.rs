//! Reading an experiment file; `docs/concepts/test-bench.md` describes every key.

use super::policy::{Policy, WhenExhausted};
use super::spec::{Choice, Costs, Execution, HardSpec, RealSpec, SoftSpec, Spec};
use crate::ExperimentError;
use horolog_model::Capacity;
use horolog_model::file::did_you_mean;
use horolog_model::file::table::{Document, Finding, Table};
use horolog_time::Span;
use std::ops::RangeInclusive;
use toml::de::{DeTable, DeValue};

const TABLES: [&str; 7] = ["experiment", "server", "hard", "soft", "points", "real", "platform"];
const TASKS: RangeInclusive<u64> = 1..=64;
const HARD_LOAD: RangeInclusive<u64> = 1..=99;
const SOFT_LOAD: RangeInclusive<u64> = 1..=1_000;
/// The longest hyperperiod, and the most applications: what one machine can reasonably run.
const LONGEST: Span = Span::from_ns(3_600_000_000_000);
const MOST_APPLICATIONS: u64 = 1_000_000;

/// Reads an experiment file; `name` is what messages call it.
///
/// # Errors
/// Everything that is wrong with it, with carets.
pub(crate) fn read(name: &str, content: &str) -> Result<Spec, ExperimentError> {
    let document = Document { what: "an experiment", schema: None, header: "[hard]", sections: &TABLES };
    document.read(name, content, spec).map_err(ExperimentError::in_file)
}

fn spec(root: &DeTable<'_>, found: &mut Vec<Finding>) -> Option<Spec> {
    let mut head = Table::named(root, "experiment", found);
    let name = head.text("name", "\"my experiment\"");
    let seed = head.integer("seed", 0..=u64::MAX, Some(1));
    let sets = head.integer("sets", 1..=10_000, None);
    let policies = policies(&mut head);
    let when_exhausted = when_exhausted(&mut head, policies.as_deref());
    head.close();
    let hard = hard(Table::named(root, "hard", found));
    let soft = soft(Table::named(root, "soft", found), hard.as_ref());
    let server = match root.contains_key("server") {
        true => server(Table::named(root, "server", found), hard.as_ref()).map(Some),
        false => Some(None),
    };
    let mut points = Table::named(root, "points", found);
    let limit = points.get("most_total_load");
    let most_total_load = limit.and_then(|value| points.integer_of("most_total_load", value, &(1..=2_000)));
    points.close();
    let real = real(Table::named(root, "real", found), sets, hard.as_ref());
    let mut platform = Table::named(root, "platform", found);
    let simulated = costs(&mut platform, Costs::NONE);
    platform.close();
    let spec = Spec {
        name: name?,
        seed: seed?,
        sets: sets?,
        policies: policies?,
        when_exhausted: when_exhausted?,
        server: server?,
        hard: hard?,
        soft: soft?,
        most_total_load,
        real: real?,
        simulated: simulated?,
    };
    consistent(&spec, root, found);
    Some(spec)
}

/// What only the whole file shows.
fn consistent(spec: &Spec, root: &DeTable<'_>, found: &mut Vec<Finding>) {
    let place = |table: &str, key: &str| {
        let value = root.get(table)?;
        let DeValue::Table(table) = value.get_ref() else { return None };
        Some(table.get(key).map_or(value.span(), toml::Spanned::span))
    };
    let at = |table, key| place(table, key).unwrap_or(0..0);
    let hard = &spec.hard;
    if spec.grid(hard.shortest_period, hard.longest_period).is_empty() {
        found.push((
            at("hard", "hyperperiod"),
            format!(
                "no period from {} to {} is a whole part of {}",
                hard.shortest_period, hard.longest_period, hard.hyperperiod
            ),
            "widen the range, or take a hyperperiod with more parts, as \"1200 ms\"".to_owned(),
        ));
    }
    let soft = &spec.soft;
    if spec.grid(soft.shortest_interarrival, soft.longest_interarrival).is_empty() {
        found.push((
            at("soft", "longest_interarrival"),
            format!(
                "no time from {} to {} is a whole part of {}",
                soft.shortest_interarrival, soft.longest_interarrival, hard.hyperperiod
            ),
            "widen the range of the mean inter-arrival times".to_owned(),
        ));
    }
    let points = super::application::points(spec);
    if points.is_empty() {
        let remedy = "raise it, or lower the loads";
        found.push((
            at("points", "most_total_load"),
            "this leaves no point at all".to_owned(),
            remedy.to_owned(),
        ));
    }
    let runs = (points.len() as u64).saturating_mul(spec.sets);
    if runs > MOST_APPLICATIONS {
        let remedy = "fewer sets, or fewer values of the parameters".to_owned();
        found.push((
            at("experiment", "sets"),
            format!("{runs} applications are more than {MOST_APPLICATIONS}"),
            remedy,
        ));
    }
    let shortest_job = hard.shortest_period.as_ns() * *HARD_LOAD.start() / 100 / hard.tasks.most().max(1);
    if hard.least_wcet.as_ns() > shortest_job.max(1) * 100 {
        found.push((
            at("hard", "least_wcet"),
            format!("hardly any task has a wcet of at least {}", hard.least_wcet),
            "lower it, or lengthen the periods".to_owned(),
        ));
    }
}

fn when_exhausted(head: &mut Table<'_, '_>, policies: Option<&[Policy]>) -> Option<WhenExhausted> {
    let Some(value) = head.get("when_exhausted") else { return Some(WhenExhausted::default()) };
    let word = match value.get_ref() {
        DeValue::String(word) => word.as_ref(),
        _ => "",
    };
    let Some(found) = WhenExhausted::from_word(word) else {
        let remedy = did_you_mean(word, &WhenExhausted::WORDS);
        head.fail(Some(value.span()), "an exhausted server does `\"background\"` or `\"wait\"`", remedy);
        return None;
    };
    if let Some(reason) = cannot_wait(found, policies.unwrap_or_default()) {
        head.fail(Some(value.span()), reason, "take it out of `policies`, or use `\"background\"`");
        return None;
    }
    Some(found)
}

/// Priority exchange has no budget of its own that could be gone while others keep theirs.
pub(crate) fn cannot_wait(when: WhenExhausted, policies: &[Policy]) -> Option<&'static str> {
    (when == WhenExhausted::Wait && policies.contains(&Policy::PriorityExchange))
        .then_some("priority exchange goes on in the background, whatever its budget")
}

fn policies(head: &mut Table<'_, '_>) -> Option<Vec<Policy>> {
    let example = "policies = [\"background\", \"sporadic\", \"dual-priority\"]";
    let Some(value) = head.get("policies") else {
        head.fail(None, "[experiment] has no `policies`", format!("add `{example}`"));
        return None;
    };
    let DeValue::Array(list) = value.get_ref() else {
        head.fail(Some(value.span()), "here belongs a list of policies", format!("`{example}`"));
        return None;
    };
    let mut all: Vec<Policy> = Vec::new();
    let mut whole = true;
    for item in list {
        let word = match item.get_ref() {
            DeValue::String(word) => word.as_ref(),
            _ => "",
        };
        match Policy::from_word(word) {
            Some(policy) if all.contains(&policy) => {
                head.fail(Some(item.span()), format!("`{word}` is here twice"), "name it once");
                whole = false;
            }
            Some(policy) => all.push(policy),
            None => {
                let remedy = did_you_mean(word, &Policy::words());
                head.fail(Some(item.span()), format!("`{word}` is not a policy"), remedy);
                whole = false;
            }
        }
    }
    if whole && !all.contains(&Policy::Background) {
        let remedy = "add \"background\": every metric is divided by its background value";
        head.fail(Some(value.span()), "the background is missing", remedy);
        whole = false;
    }
    all.sort_by_key(|policy| *policy != Policy::Background);
    whole.then_some(all)
}

/// An integer, a list, `{ from, to, step }` or `{ random = [low, high] }`.
fn choice(table: &mut Table<'_, '_>, key: &'static str, bounds: RangeInclusive<u64>) -> Option<Choice> {
    let Some(value) = table.get(key) else {
        let remedy = format!("add `{key} = [{0}]`, or a range or `random` in braces", bounds.start());
        table.fail(None, format!("`{key}` is missing"), remedy);
        return None;
    };
    let DeValue::Table(inner) = value.get_ref() else {
        return table.integers(key, value, &bounds).map(Choice::Values);
    };
    let remedy = "an integer, a list, `{ from = 10, to = 60, step = 10 }` or `{ random = [10, 60] }`";
    if let Some(random) = inner.get("random")
        && inner.len() == 1
    {
        return match table.integers(key, random, &bounds)?.as_slice() {
            [low, high] if low < high => Some(Choice::Random(*low, *high)),
            _ => {
                table.fail(Some(random.span()), "`random` takes two integers, the lower one first", remedy);
                None
            }
        };
    }
    let mut part = |name: &'static str, named: &'static str, bounds: &RangeInclusive<u64>| {
        inner.get(name).map(|value| table.integer_of(named, value, bounds))
    };
    let (from, to, step) =
        (part("from", key, &bounds), part("to", key, &bounds), part("step", "step", &(1..=1_000)));
    if [from, to, step].contains(&Some(None)) {
        return None;
    }
    let (from, to, step) = (from.flatten(), to.flatten(), step.map_or(Some(1), |step| step));
    let known = inner.keys().all(|key| ["from", "to", "step"].contains(&key.get_ref().as_ref()));
    match (from, to, step, known) {
        (Some(from), Some(to), Some(step), true) if from <= to => {
            Some(Choice::Values((from..=to).step_by(step as usize).collect()))
        }
        _ => {
            table.fail(Some(value.span()), format!("`{key}` is not a range"), remedy);
            None
        }
    }
}

fn hard(mut table: Table<'_, '_>) -> Option<HardSpec> {
    let tasks = choice(&mut table, "tasks", TASKS);
    let load = choice(&mut table, "load", HARD_LOAD);
    let execution = execution(&mut table);
    let hyperperiod = table.span("hyperperiod", None, "1200 ms");
    let shortest_period = table.span("shortest_period", None, "20 ms");
    let longest_period = table.span("longest_period", None, "200 ms");
    let granularity = table.span("granularity", Some(Span::from_ns(1_000_000)), "1 ms");
    let least_wcet = table.span("least_wcet", Some(Span::from_ns(1)), "100 us");
    if hyperperiod.is_some_and(|span| span.is_zero() || span > LONGEST) {
        let place = table.place("hyperperiod");
        table.fail(
            place,
            format!("a hyperperiod lies above zero and is at most {LONGEST}"),
            "take \"1200 ms\"",
        );
    }
    if granularity.is_some_and(Span::is_zero) {
        let place = table.place("granularity");
        table.fail(place, "a granularity lies above zero", "take \"1 ms\"");
    }
    let steps = hyperperiod.zip(granularity).and_then(|(whole, step)| whole.div_ceil(step));
    if steps.is_some_and(|steps| steps > 10_000_000) {
        let place = table.place("granularity");
        table.fail(
            place,
            "there are too many possible periods",
            "a granularity of at least a ten-millionth of the hyperperiod",
        );
    }
    let order = shortest_period.zip(longest_period).is_none_or(|(short, long)| short <= long);
    if !order || shortest_period.is_some_and(Span::is_zero) {
        let place = table.place("shortest_period");
        table.fail(
            place,
            "the shortest period lies above zero and not above the longest",
            "exchange the two",
        );
    }
    table.close();
    Some(HardSpec {
        tasks: tasks?,
        load: load?,
        execution: execution?,
        hyperperiod: hyperperiod?,
        shortest_period: shortest_period?,
        longest_period: longest_period?,
        granularity: granularity?,
        least_wcet: least_wcet?,
    })
}

/// `execution = [95, 100]`, or `gain = [0, 20, 40]`.
fn execution(table: &mut Table<'_, '_>) -> Option<Execution> {
    let (drawn, gain) = (table.get("execution"), table.get("gain"));
    match (drawn, gain) {
        (Some(value), None) => {
            let numbers = table.integers("execution", value, &(1..=100))?;
            match numbers.as_slice() {
                [share] => Some(Execution::Drawn(*share, *share)),
                [low, high] if low <= high => Some(Execution::Drawn(*low, *high)),
                _ => {
                    let remedy = "one percentage of the wcet, or two that each job draws between: `execution = [95, 100]`";
                    table.fail(Some(value.span()), "these are not bounds", remedy);
                    None
                }
            }
        }
        (None, Some(value)) => table.integers("gain", value, &(0..=99)).map(Execution::Gain),
        (None, None) => Some(Execution::Drawn(100, 100)),
        (Some(_), Some(value)) => {
            let remedy =
                "remove one of the two: `gain` is what jobs leave of their wcet, `execution` what they take";
            table.fail(Some(value.span()), "both `execution` and `gain` are given", remedy);
            None
        }
    }
}

fn soft(mut table: Table<'_, '_>, hard: Option<&HardSpec>) -> Option<SoftSpec> {
    let tasks = choice(&mut table, "tasks", TASKS);
    let load = choice(&mut table, "load", SOFT_LOAD);
    // Where [hard] could not be read that has been told, and what would stand here does not matter.
    let shortest = hard.map_or(Span::ZERO, |hard| hard.shortest_period);
    let longest = hard.map_or(Span::ZERO, |hard| hard.longest_period);
    let shortest_interarrival = table.span("shortest_interarrival", Some(shortest), "20 ms");
    let longest_interarrival = table.span("longest_interarrival", Some(longest), "200 ms");
    table.close();
    Some(SoftSpec {
        tasks: tasks?,
        load: load?,
        shortest_interarrival: shortest_interarrival?,
        longest_interarrival: longest_interarrival?,
    })
}

/// One size for every server with a budget.
fn server(mut table: Table<'_, '_>, hard: Option<&HardSpec>) -> Option<Capacity> {
    let budget = table.span("budget", None, "2 ms");
    let period = table.span("period", None, "20 ms");
    if budget.is_some_and(Span::is_zero) || budget.zip(period).is_some_and(|(budget, period)| budget > period)
    {
        let place = table.place("budget");
        table.fail(place, "a budget lies above zero and not above its period", "take a part of the period");
    }
    if period.zip(hard).is_some_and(|(period, hard)| period > hard.hyperperiod) {
        let place = table.place("period");
        table.fail(place, "the period is longer than the hyperperiod", "shorten it: a run is about so long");
    }
    table.close();
    Some(Capacity { budget: budget?, period: period? })
}

fn real(mut table: Table<'_, '_>, sets: Option<u64>, hard: Option<&HardSpec>) -> Option<RealSpec> {
    let most = sets.unwrap_or(1);
    let subset = table.integer("sets", 1..=most, Some(1));
    let axis = match hard.map(|hard| &hard.execution) {
        Some(Execution::Gain(gains)) => gains.clone(),
        _ => Vec::new(),
    };
    let gain = match table.get("gain") {
        None => Some(Vec::new()),
        Some(value) => table.integers("gain", value, &(0..=99)),
    };
    if let Some(stray) = gain.iter().flatten().find(|gain| !axis.contains(gain)) {
        let place = table.place("gain");
        table.fail(
            place,
            format!("{stray} is not a value of the gain-time axis"),
            "give values that stand in `[hard] gain`",
        );
    }
    let most = Span::from_ns(100_000);
    let usual = Costs { context_switch: Span::from_ns(25_000), release_latency: most, ..Costs::NONE };
    let costs = costs(&mut table, usual);
    table.close();
    Some(RealSpec { sets: subset?, gain: gain?, costs: costs? })
}

fn costs(table: &mut Table<'_, '_>, absent: Costs) -> Option<Costs> {
    let context_switch = table.span("context_switch", Some(absent.context_switch), "25 us");
    let timer_interrupt = table.span("timer_interrupt", Some(absent.timer_interrupt), "10 us");
    let release_latency = table.span("release_latency", Some(absent.release_latency), "100 us");
    Some(Costs {
        context_switch: context_switch?,
        timer_interrupt: timer_interrupt?,
        release_latency: release_latency?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
[experiment]
name = "small"
sets = 2
policies = ["sporadic", "background"]
[hard]
tasks = { from = 2, to = 6, step = 2 }
load = 40
hyperperiod = "240 ms"
shortest_period = "10 ms"
longest_period = "80 ms"
[soft]
tasks = 1
load = { random = [10, 30] }
"#;

    fn refused(change: (&str, &str)) -> String {
        let text = GOOD.replace(change.0, change.1);
        assert_ne!(text, GOOD, "{change:?} changes nothing");
        read("f.toml", &text).expect_err("a bad file").to_string()
    }

    #[test]
    fn a_file_is_read_with_its_defaults() {
        let spec = read("f.toml", GOOD).expect("a good file");
        assert_eq!(spec.policies, [Policy::Background, Policy::Sporadic], "the background comes first");
        assert_eq!(spec.hard.tasks, Choice::Values(vec![2, 4, 6]));
        assert_eq!(spec.soft.load, Choice::Random(10, 30));
        assert_eq!(spec.hard.execution, Execution::Drawn(100, 100));
        assert_eq!(spec.soft.shortest_interarrival, spec.hard.shortest_period);
        assert_eq!((spec.seed, spec.real.sets, spec.most_total_load), (1, 1, None));
        assert_eq!(super::super::application::points(&spec).len(), 3);
        assert_eq!(spec.server, None);
        let fixed = GOOD.replace("[soft]", "[server]\nbudget = \"2 ms\"\nperiod = \"10 ms\"\n[soft]");
        let fixed = read("f.toml", &fixed).expect("a good file").server.map(|one| (one.budget, one.period));
        assert_eq!(fixed, Some((Span::from_ns(2_000_000), Span::from_ns(10_000_000))));
    }

    #[test]
    fn whatever_is_wrong_is_told_with_place_and_remedy() {
        for (change, place, words) in [
            (("\"sporadic\"", "\"sporadik\""), "f.toml:5:13", "did you mean `sporadic`?"),
            ((", \"background\"", ""), "f.toml:5:12", "divided by its background value"),
            (("sets = 2", "sets = 0"), "f.toml:4:8", "an integer from 1 to 10000"),
            (("load = 40", "laod = 40"), "f.toml:8:1", "did you mean `load`?"),
            (("load = 40", "load = [40, 40]"), "f.toml:8:13", "is here twice"),
            (("load = 40", "load = 100"), "f.toml:8:8", "an integer from 1 to 99"),
            (("\"240 ms\"", "\"240\""), "f.toml:9:15", "is not a duration"),
            (("\"240 ms\"", "\"7 ms\""), "f.toml:9:15", "a whole part of 7 ms"),
            (("step = 2", "stop = 2"), "f.toml:7:9", "is not a range"),
            (("[10, 30]", "[30, 10]"), "f.toml:14:19", "the lower one first"),
            (("[soft]", "[sofd]"), "f.toml:12:2", "did you mean `soft`?"),
            (("load = 40", "load = 40\ngain = [10]\nexecution = 90"), "f.toml:9:8", "remove one of the two"),
            (("sets = 2", "sets = 2\nwhen_exhausted = \"wail\""), "f.toml:5:18", "did you mean `wait`?"),
            (
                ("\"background\"]", "\"background\", \"priority-exchange\"]\nwhen_exhausted = \"wait\""),
                "f.toml:6:18",
                "take it out of `policies`",
            ),
            (("load = 40", "load = 40\n[real]\ngain = [5]"), "f.toml:10:8", "gain-time axis"),
            (("tasks = 1", "tasks = "), "f.toml:13", "this is not valid TOML"),
            (("[soft]", "[server]\nbudget = \"2 ms\"\n[soft]"), "f.toml:12:1", "[server] has no `period`"),
            (
                ("[soft]", "[server]\nbudget = \"9 ms\"\nperiod = \"5 ms\"\n[soft]"),
                "f.toml:13:10",
                "not above its period",
            ),
            (
                ("[soft]", "[server]\nbudget = \"1 ms\"\nperiod = \"1 s\"\n[soft]"),
                "f.toml:14:10",
                "longer than the hyperperiod",
            ),
        ] {
            let said = refused(change);
            assert!(said.contains(place) && said.contains(words), "{change:?} says\n{said}");
            assert!(said.contains("help: "), "{said}");
        }
        // What only follows from a mistake is not told as another.
        let said = refused(("step = 2", "step = 0"));
        assert_eq!(said.matches("help: ").count(), 1, "{said}");
        assert!(said.contains("an integer from 1 to 1000"), "{said}");
    }
}
