//! Judging statements over several seeds: each seed draws other applications, so one seed alone says what happened to be drawn.

use super::statement::Statement;
use crate::{Agreement, Fact, OverSeeds};

/// The facts that the same statements come to, one list a seed; words and figures are those of the first seed.
///
/// A statement is a list of margins, each above zero where the statement is right. Of each margin the mean over the seeds has an
/// interval of 95 % confidence, mean ± t·s/√n. Agrees: every interval lies above zero. Disagrees: one lies below zero.
/// Undecided: neither, so the seeds do not tell. With one seed the signs of its margins decide.
pub(super) fn judge(seeds: &[Vec<Statement>]) -> Vec<Fact> {
    let Some((first, others)) = seeds.split_first() else { return Vec::new() };
    let fact = |(place, statement): (usize, &Statement)| {
        let mut fact = Fact::trend(
            statement.number,
            &statement.statement,
            &statement.published,
            statement.ours.clone(),
            statement.agrees(),
            &statement.note,
        );
        let all: Vec<&Statement> =
            std::iter::once(statement).chain(others.iter().filter_map(|seed| seed.get(place))).collect();
        if all.len() > 1 {
            let (agreement, over) = over_seeds(&all);
            fact.agreement = agreement;
            fact.seeds = Some(over);
        }
        fact
    };
    first.iter().enumerate().map(fact).collect()
}

fn over_seeds(all: &[&Statement]) -> (Agreement, OverSeeds) {
    let values = all.iter().map(|statement| statement.margins.len()).min().unwrap_or(0);
    let seeds = all.len() as u64;
    let agree = all.iter().filter(|statement| statement.agrees()).count() as u64;
    // A seed without a value, or with a list of another length, says nothing of it.
    let is_whole = all
        .iter()
        .all(|one| one.margins.len() == values && one.margins.iter().all(|margin| margin.is_finite()));
    if values == 0 || !is_whole {
        let over = OverSeeds { seeds, agree, values, low: f64::NAN, high: f64::NAN };
        return (Agreement::Undecided("a value is not there with every seed".to_owned()), over);
    }
    let intervals: Vec<(f64, f64)> = (0..values)
        .map(|margin| interval(&all.iter().map(|one| one.margins[margin]).collect::<Vec<_>>()))
        .collect();
    let least = |of: fn(&(f64, f64)) -> f64| intervals.iter().copied().min_by(|a, b| of(a).total_cmp(&of(b)));
    let (least_low, least_high) = (least(|one| one.0), least(|one| one.1));
    let told = |(low, high): (f64, f64)| OverSeeds { seeds, agree, values, low, high };
    match (least_low, least_high) {
        (_, Some(below)) if below.1 < 0.0 => (Agreement::Disagrees, told(below)),
        (Some(above), _) if above.0 > 0.0 => (Agreement::Agrees, told(above)),
        (weakest, _) => {
            let weakest = weakest.unwrap_or((f64::NAN, f64::NAN));
            let reason = format!("an interval holds zero, {agree} of {seeds} seeds agree");
            (Agreement::Undecided(reason), told(weakest))
        }
    }
}

/// The interval of 95 % confidence of the mean of several values.
fn interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let half = quantile(values.len() - 1) * (square / count).sqrt();
    (mean - half, mean + half)
}

/// Student's t, 97.5 %, by degrees of freedom; beyond the table that of its end, which is larger than the right one.
fn quantile(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    TABLE[freedom.clamp(1, TABLE.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(margins: &[&[f64]]) -> Vec<Fact> {
        let seed = |margins: &&[f64]| vec![Statement::new(7, "a", "b", "c".to_owned(), margins.to_vec(), "")];
        judge(&margins.iter().map(seed).collect::<Vec<_>>())
    }

    #[test]
    fn a_margin_that_varies_around_zero_is_not_decided_by_the_first_seed() {
        let of = |margins: &[&[f64]]| facts(margins)[0].clone();
        assert_eq!(of(&[&[0.1, 0.2]]).agreement, Agreement::Agrees);
        assert_eq!(of(&[&[0.1, -0.2]]).agreement, Agreement::Disagrees);
        assert_eq!(
            of(&[&[0.1, f64::NAN]]).agreement,
            Agreement::Disagrees,
            "what is not there agrees with nothing"
        );
        assert!(of(&[&[0.1, 0.2]]).seeds.is_none());
        for odd in [f64::NAN, -f64::NAN, f64::INFINITY] {
            let missing = of(&[&[0.1, odd], &[0.1, 0.2]]);
            assert!(matches!(missing.agreement, Agreement::Undecided(_)), "{missing:?}");
        }
        let short = of(&[&[0.1, 0.2], &[0.1]]);
        assert!(matches!(short.agreement, Agreement::Undecided(_)), "{short:?}");
        // The mean is 0.02, the interval of three seeds reaches far below zero.
        let noise = of(&[&[0.10], &[-0.06], &[0.02]]);
        assert!(matches!(noise.agreement, Agreement::Undecided(_)), "{noise:?}");
        assert_eq!(noise.seeds.as_ref().map(|over| (over.seeds, over.agree, over.values)), Some((3, 2, 1)));
        let sure = of(&[&[0.10, 1.0], &[0.11, 1.1], &[0.12, 1.2]]);
        assert_eq!(sure.agreement, Agreement::Agrees);
        let over = sure.seeds.expect("three seeds");
        // 0.11 ± 4.303 · 0.01 / √3
        assert!((over.low - 0.08516).abs() < 1e-4 && (over.high - 0.13484).abs() < 1e-4, "{over:?}");
        assert_eq!(of(&[&[0.10, -1.0], &[0.11, -1.1], &[0.12, -1.2]]).agreement, Agreement::Disagrees);
        assert!((interval(&[1.0, 1.0]).0 - 1.0).abs() < 1e-12);
    }
}
