//! `horolog experiment sets`.

use crate::arguments::{SetDeadlines, SetsArguments};
use crate::failure::{Done, Failure, Verdict};
use crate::progress;
use horolog_draw::{Batch, Deadlines, PreemptionRecipe, Random, SplitMix64, TaskSetRecipe, system_of};
use horolog_model::{Policy, file};
use horolog_time::Span;

/// The sets of a seed, and the draws of their priorities: two series, which no other seed has.
const SETS: u64 = 0x5e75;
const SHAPES: u64 = 0x5e15;

pub(crate) fn run(words: &SetsArguments) -> Done {
    let policy = Policy::from_word(&words.policy).unwrap_or_default();
    let (least, most) = words.utilisation;
    let recipe = |utilisation_ppb: u64| TaskSetRecipe {
        tasks: words.tasks as usize,
        utilisation_ppb,
        shortest_period: words.periods.0,
        longest_period: words.periods.1,
        granularity: words.granularity,
        deadlines: match words.deadlines {
            SetDeadlines::Implicit => Deadlines::Implicit,
            SetDeadlines::Constrained => Deadlines::Constrained { least_ppm: 0 },
        },
    };
    let flaw = |share: u64| match bounded(words, &recipe(share)) {
        Some(batch) => batch.flaw(),
        None => recipe(share).flaw(),
    };
    if let Some(flaw) = [least, most].into_iter().find_map(flaw) {
        return Err(Failure::usage(flaw));
    }
    let bounds = match (words.lower, words.upper) {
        (None, None) => String::new(),
        (lower, upper) => format!(" of {} to {} a task", lower.unwrap_or(0.0), upper.unwrap_or(1.0)),
    };
    std::fs::create_dir_all(&words.dir).map_err(|error| Failure::file("make", &words.dir, &error))?;
    let digits = (words.count.saturating_sub(1)).to_string().len();
    for index in 0..words.count {
        let utilisation_ppb = share_of(least, most, index, words.count);
        let recipe = recipe(utilisation_ppb);
        let set = match bounded(words, &recipe) {
            Some(batch) => batch.draw_item(index).map_err(Failure::usage)?,
            None => recipe.draw_item(series(words.seed, SETS), index),
        };
        let shapes = &mut Random::of_item(series(words.seed, SHAPES), index);
        let system = system_of(&set, policy, PreemptionRecipe::Preemptive, shapes);
        let path = words.dir.join(format!("set-{index:0digits$}.toml"));
        let head = format!(
            "# Set {index} of seed {}: {} tasks, utilisation {}.{:09}{bounds}, periods {} to {} in steps of {}, {} deadlines.\n",
            words.seed,
            words.tasks,
            utilisation_ppb / 1_000_000_000,
            utilisation_ppb % 1_000_000_000,
            words.periods.0,
            words.periods.1,
            words.granularity,
            words.deadlines.word()
        );
        let text = head + &file::print(&system);
        std::fs::write(&path, text).map_err(|error| Failure::file("write", &path, &error))?;
    }
    let dir = words.dir.display();
    progress::say(format_args!(
        "wrote {} sets into {dir}; next: `horolog -q analyze {dir}/*.toml --format csv`",
        words.count
    ));
    Ok(Verdict::Holds)
}

/// What draws sets whose shares have bounds; `None`: they have none.
fn bounded(words: &SetsArguments, recipe: &TaskSetRecipe) -> Option<Batch> {
    let (lower, upper) = (words.lower, words.upper);
    (lower.is_some() || upper.is_some())
        .then(|| recipe.within(lower.unwrap_or(0.0), upper.unwrap_or(1.0), series(words.seed, SETS)))
}

/// A share of a processor.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let refuse = || format!("`{text}` is not a number from 0 to 1");
    let share: f64 = text.trim().parse().map_err(|_| refuse())?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(refuse()) }
}

/// A series of a seed. [`Random::of_item`] takes seed and item for the same kind of number: item 2 of 1 is item 1 of 2.
fn series(seed: u64, what: u64) -> u64 {
    SplitMix64::new(seed ^ what).next_u64()
}

/// The utilisation of a set: from the first to the last one in equal steps.
fn share_of(least: u64, most: u64, index: u64, count: u64) -> u64 {
    let steps = count.saturating_sub(1).max(1);
    let share = u128::from(most - least) * u128::from(index) / u128::from(steps);
    least + u64::try_from(share).unwrap_or(0)
}

/// `0.5..0.95`, or one number, in parts per billion.
pub(crate) fn utilisations(text: &str) -> Result<(u64, u64), String> {
    let refuse =
        || format!("`{text}` is neither a utilisation such as `0.7` nor a range of two such as `0.5..0.95`");
    let one = |text: &str| -> Option<u64> {
        let number: f64 = text.trim().parse().ok()?;
        (number.is_finite() && number > 0.0 && number <= 4_096.0).then_some((number * 1e9).round() as u64)
    };
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    match (one(from), one(to)) {
        (Some(from), Some(to)) if from <= to => Ok((from, to)),
        _ => Err(refuse()),
    }
}

/// `10 ms..1 s`.
pub(crate) fn periods(text: &str) -> Result<(Span, Span), String> {
    let refuse = || format!("`{text}` is not a range of periods such as `10ms..1s`");
    let (from, to) = text.split_once("..").ok_or_else(refuse)?;
    match (from.trim().parse::<Span>(), to.trim().parse::<Span>()) {
        (Ok(from), Ok(to)) if from <= to => Ok((from, to)),
        _ => Err(refuse()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utilisations_go_in_equal_steps_from_the_first_to_the_last() {
        let all: Vec<u64> = (0..4).map(|index| share_of(500, 950, index, 4)).collect();
        assert_eq!(all, [500, 650, 800, 950]);
        assert_eq!(share_of(500, 950, 0, 1), 500);
        assert_eq!(utilisations("0.5..0.95"), Ok((500_000_000, 950_000_000)));
        assert_eq!(utilisations("0.7"), Ok((700_000_000, 700_000_000)));
        assert!(["", "0", "-1", "1..0.5", "nan", "x", "1e9"].iter().all(|text| utilisations(text).is_err()));
        assert_eq!(periods("10ms..1s"), Ok((Span::from_ns(10_000_000), Span::from_ns(1_000_000_000))));
        assert!(["10ms", "1s..10ms", "a..b"].iter().all(|text| periods(text).is_err()));
    }
}
