//! Rajkumar 2002, section 6: reserves below reserves. The report gives no experiment; its tests are recomputed by hand.
//!
//! See docs/experiments/rk-hierarchy.md.

use crate::rk_reserves::{analysed, bound, completion, endless, simulated, system};
use crate::{Agreement, ExperimentError, ExperimentReport, Fact, Options, Series};
use horolog_analysis::least_upper_bound;
use horolog_draw::Random;

/// The seed where none is given.
const SEED: u64 = 2_002;

/// Runs all of it. `full`: more sets for fact 6.
///
/// # Errors
/// Never: the systems are given.
pub(crate) fn run(
    options: &Options,
    progress: &mut dyn FnMut(u64, u64, &str),
) -> Result<ExperimentReport, ExperimentError> {
    let mut report = ExperimentReport::new("rk-hierarchy");
    let seed = options.seed.unwrap_or(SEED);
    report.seed = Some(seed);
    progress(0, 4, "completion times");
    report.facts.extend(completions()?);
    progress(1, 4, "least upper bounds");
    least_upper_bounds(&mut report, seed, if options.full { 2_000 } else { 200 })?;
    progress(2, 4, "refusal by the parent");
    report.facts.extend(refusal()?);
    progress(3, 4, "unused amounts");
    report.facts.extend(unused()?);
    Ok(report)
}

fn task(name: &str, (wcet, period): (u64, u64), more: &str) -> String {
    format!("[[task]]\nname = \"{name}\"\nperiod = \"{period} us\"\nwcet = \"{wcet} us\"\n{more}\n")
}

fn reserve(name: &str, (budget, period): (u64, u64), more: &str) -> String {
    format!(
        "[[scheduler]]\nname = \"{name}\"\nkind = \"deferrable\"\nbudget = \"{budget} us\"\nperiod = \"{period} us\"\n{more}\n"
    )
}

const HEAD: &str = "[system]\nname = \"reserves below reserves\"\n";
const ORDERED: &str = "order = \"fixed-priority\"\nlow_priority = \"none\"";

/// Fact 5: children of a parent on top, and of one whose own completion is the end of its period.
fn completions() -> Result<Vec<Fact>, ExperimentError> {
    let mut facts = Vec::new();
    for (above, own, wanted) in [("", 2, [4, 9]), ("above", 5, [7, 13])] {
        let mut text = HEAD.to_owned()
            + &reserve(
                "parent",
                (2_000, 5_000),
                &format!("{ORDERED}\npriority = 5\ntasks = [\"first\", \"second\"]"),
            );
        text += &task("first", (1_000, 10_000), "priority = 2");
        text += &task("second", (2_000, 20_000), "priority = 1");
        if !above.is_empty() {
            text += &task(above, (3_000, 5_000), "priority = 9");
        }
        let analysis = analysed(&system(&text)?)?;
        facts.push(Fact::exact(
            5,
            &format!("the parent has its amount within {own} ms, ms"),
            own,
            completion(&analysis, "parent"),
        ));
        for (name, wanted) in ["first", "second"].into_iter().zip(wanted) {
            let what = format!("with that, its {name} child is done within, ms");
            facts.push(Fact::exact(5, &what, wanted, bound(&analysis, name)));
        }
    }
    Ok(facts)
}

/// Whether tasks of these (budget, period), in us, with rate-monotonic priorities pass below a parent of 5 in 10 ms that has its amount at
/// the end of its period.
fn passes(children: &[(u64, u64)]) -> Result<bool, ExperimentError> {
    let mut order: Vec<usize> = (0..children.len()).collect();
    order.sort_by_key(|&place| std::cmp::Reverse(children[place].1));
    let names: Vec<String> = (0..children.len()).map(|place| format!("\"child {place}\"")).collect();
    let more = format!("{ORDERED}\npriority = 500\ntasks = [{}]", names.join(", "));
    let mut text = HEAD.to_owned() + &reserve("parent", (5_000, 10_000), &more);
    text += &task("above", (5_000, 10_000), "priority = 900");
    for (rank, &place) in order.iter().enumerate() {
        text += &task(&format!("child {place}"), children[place], &format!("priority = {}", rank + 1));
    }
    let analysis = analysed(&system(&text)?)?;
    let met = |place: usize| {
        let found = bound_us(&analysis, &format!("child {place}"));
        found.is_some_and(|bound| bound <= children[place].1 * 1_000)
    };
    Ok((0..children.len()).all(met))
}

fn bound_us(analysis: &horolog_analysis::Analysis, name: &str) -> Option<u64> {
    let found = analysis.tasks.iter().find(|task| task.name == name);
    found.and_then(|task| task.response).map(|time| time.as_ns())
}

/// Fact 6: the formula; sets at the bound pass; the least utilisation that a search finds refused is not below it.
fn least_upper_bounds(report: &mut ExperimentReport, seed: u64, sets: u64) -> Result<(), ExperimentError> {
    let mut rows = Vec::new();
    for (children, published) in [(1, "0.2500"), (2, "0.2361"), (0, "0.2231")] {
        let bound = least_upper_bound(0.5, children);
        let ours = format!("{bound:.4}");
        let agreement = if ours == published { Agreement::Agrees } else { Agreement::Disagrees };
        let count = if children == 0 { "many".to_owned() } else { children.to_string() };
        let what = format!("bound of the utilisation at U = 0.5, {count} below it");
        report.facts.push(Fact { exact: true, ..Fact::new(6, &what, published, ours, agreement) });
    }
    for children in [1_u32, 2, 4] {
        let bound = least_upper_bound(0.5, children);
        let (mut pass, mut least) = (0, f64::MAX);
        for index in 0..sets {
            let mut random = Random::of_item(seed + u64::from(children), index);
            let periods: Vec<u64> = (0..children).map(|_| random.between(15_000, 60_000)).collect();
            let weights: Vec<u64> = (0..children).map(|_| random.between(1, 100)).collect();
            let whole: u64 = weights.iter().sum();
            let scaled = |utilisation: f64| -> Vec<(u64, u64)> {
                let part = |weight: u64| utilisation * weight as f64 / whole as f64;
                let amounts = periods.iter().zip(&weights);
                amounts
                    .map(|(&period, &weight)| (((part(weight) * period as f64) as u64).max(1), period))
                    .collect()
            };
            pass += u64::from(passes(&scaled(bound))?);
            // The utilisation at which this set is refused first, to 1/1000.
            let (mut low, mut high) = (0.0, 0.5);
            for _ in 0..10 {
                let middle = (low + high) / 2.0;
                if passes(&scaled(middle))? { low = middle } else { high = middle }
            }
            least = least.min(high);
        }
        let ours = format!("{pass} of {sets}; least refused {least:.3}");
        let agrees = pass == sets && least >= bound;
        let what = format!("drawn sets of {children} that pass the completion test at their bound");
        report.facts.push(Fact::trend(6, &what, &format!("all; none below {bound:.3}"), ours, agrees, ""));
        rows.push(vec![f64::from(children), bound, least]);
    }
    report.series.push(Series {
        name: "utilisation below a parent of 5 in 10 ms".to_owned(),
        columns: ["children", "bound", "least refused"].map(str::to_owned).to_vec(),
        rows,
    });
    Ok(())
}

/// Fact 7: the child of one parent is too large; the other parent's answers are the same.
fn refusal() -> Result<Vec<Fact>, ExperimentError> {
    let analysis = |amount: u64| {
        let mut text = HEAD.to_owned();
        for (name, own, priority) in [("left", (2_000, 5_000), 9), ("right", (1_000, 5_000), 8)] {
            text += &reserve(name, own, &format!("{ORDERED}\npriority = {priority}"));
        }
        for (name, own, parent, priority) in [
            ("sibling", (1_000, 10_000), "left", 2),
            ("child", (amount, 20_000), "left", 1),
            ("other", (1_000, 20_000), "right", 1),
        ] {
            text += &task(&format!("of {name}"), (1_000, 1_000_000), "");
            let more = format!(
                "parent = \"{parent}\"\nlow_priority = \"none\"\npriority = {priority}\ntasks = [\"of {name}\"]"
            );
            text += &reserve(name, own, &more);
        }
        analysed(&system(&text)?)
    };
    let (inside, outside) = (analysis(5_000)?, analysis(5_001)?);
    let others = |of: &horolog_analysis::Analysis| {
        ["left", "right", "sibling", "other"].map(|name| completion(of, name))
    };
    let words = |promised: u64| if promised > 0 { "granted" } else { "refused" };
    let same = others(&inside) == others(&outside);
    Ok(vec![
        exact_words(
            7,
            "a child of 5 ms in 20 beside 1 in 10, below 2 in 5",
            "granted",
            words(completion(&inside, "child")),
        ),
        exact_words(7, "one of 5.001 ms", "refused", words(completion(&outside, "child"))),
        exact_words(
            7,
            "what all others are promised, below either parent",
            "the same",
            if same { "the same" } else { "not the same" },
        ),
    ])
}

fn exact_words(number: u32, what: &str, published: &str, ours: &str) -> Fact {
    let agreement = if published == ours { Agreement::Agrees } else { Agreement::Disagrees };
    Fact { exact: true, ..Fact::new(number, what, published, ours.to_owned(), agreement) }
}

/// Fact 8: one child sleeps; what it leaves goes to its siblings within the parent, beside a loop outside of it.
fn unused() -> Result<Vec<Fact>, ExperimentError> {
    let share = |busy: [bool; 3]| {
        let mut text =
            HEAD.to_owned() + &reserve("parent", (4_000, 10_000), &format!("{ORDERED}\npriority = 9"));
        text += &endless("outside", "priority = 1");
        for (place, (amount, is_busy)) in
            [(2_000, 20_000), (1_000, 10_000), (2_000, 20_000)].into_iter().zip(busy).enumerate()
        {
            text += &match is_busy {
                true => endless(&format!("of {place}"), ""),
                false => {
                    format!("[[task]]\nname = \"of {place}\"\narrivals = [\"500 s\"]\nwcet = \"1 ms\"\n")
                }
            };
            let more = format!(
                "parent = \"parent\"\npriority = {}\nlow_priority = \"background\"\ntasks = [\"of {place}\"]",
                9 - place
            );
            text += &reserve(&format!("child {place}"), amount, &more);
        }
        let executed = simulated(&system(&text)?, 1_000)?;
        let inside: u64 = executed.total.iter().skip(1).sum();
        Ok::<_, ExperimentError>(inside / 10_000)
    };
    let mut facts = Vec::new();
    for (what, busy) in [
        ("all three children busy", [true; 3]),
        ("one of them asleep", [true, true, false]),
        ("two of them asleep", [false, true, false]),
    ] {
        let found = share(busy)?;
        let ours = format!("{}.{:02} %", found / 1_000, found % 1_000 / 10);
        facts.push(Fact::trend(
            8,
            &format!("what the children of 4 in 10 ms get, {what}"),
            "40.00 %",
            ours,
            found == 40_000,
            "",
        ));
    }
    Ok(facts)
}
