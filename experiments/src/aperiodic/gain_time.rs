//! The statements of experiment 2, section 4.5 of the paper. The criteria were written down before the first run and are not
//! changed until they fit.

use super::judge::judge;
use super::statement::{Plotted, Statement, View, held};
use crate::Fact;
use crate::test_bench::{self, Axis, Backend, Figures, Metric, Policy, Results, Row};

const METRIC: Metric = Metric::Response;
const AXES: [Axis; 4] = [Axis::Gain, Axis::HardLoad, Axis::HardTasks, Axis::SoftLoad];
const DUAL: [Policy; 4] = [
    Policy::DualPriority,
    Policy::DualPrioritySelf,
    Policy::DualPriorityPropagated,
    Policy::DualPriorityBoth,
];
const ALL: [Policy; 6] = [
    Policy::SlackStealing,
    Policy::SlackStealingGain,
    Policy::DualPriority,
    Policy::DualPrioritySelf,
    Policy::DualPriorityPropagated,
    Policy::DualPriorityBoth,
];

/// The facts; `others`: the figures of further seeds.
pub(super) fn facts(results: &Results, others: &[Figures]) -> Vec<Fact> {
    let mut facts = vec![
        Fact::exact(5, "combinations of the parameters", 36, results.points.len() as u64),
        Fact::exact(5, "synthetic applications", 180, results.applications()),
        test_bench::deadlines(results),
    ];
    facts.extend(test_bench::real_deadlines(results));
    let of = |figures, backend| statements(View { figures, backend });
    let seeds = std::iter::once(&results.figures).chain(others);
    facts.extend(judge(&seeds.map(|figures| of(figures, Backend::Simulated)).collect::<Vec<_>>()));
    if results.figures.has(Backend::Real, METRIC) {
        facts.extend(judge(&[of(&results.figures, Backend::Real)]));
    }
    facts
}

fn statements(view: View<'_>) -> Vec<Statement> {
    let on = |statement: &str| format!("{statement} ({})", view.backend.word());
    let (dass, dass_gain) = (Policy::SlackStealing, Policy::SlackStealingGain);
    // Without any gain time both are the same policy.
    let with_gain = |(axis, at, _): &Plotted| (*axis, *at) != (Axis::Gain, 0);
    let better = view.gaps_where(METRIC, &AXES, dass_gain, dass, with_gain);
    let differences: Vec<f64> = view
        .line(METRIC, Axis::HardLoad, dass)
        .values()
        .zip(view.line(METRIC, Axis::HardLoad, dass_gain).values())
        .map(|(without, with)| without - with)
        .collect();
    let relative = |without: Policy, with: Policy| 1.0 - view.mean(METRIC, with) / view.mean(METRIC, without);
    let by_dass = relative(dass, dass_gain);
    let by_dual = relative(Policy::DualPriority, Policy::DualPriorityBoth);
    let (own, propagated) =
        (view.mean(METRIC, Policy::DualPrioritySelf), view.mean(METRIC, Policy::DualPriorityPropagated));
    let mut facts = vec![
        Statement::new(
            12,
            &on("DASS has better results when gain time is supported"),
            "in all plots",
            format!(
                "at {} of {} plotted values; {}",
                held(&better),
                better.len(),
                view.along(METRIC, Axis::Gain, &[dass, dass_gain])
            ),
            better,
            "criterion: strictly better at every plotted value but that at 0 % gain time, where both are the same policy",
        ),
        Statement::new(
            12,
            &on("the difference between the two versions of DASS grows with the hard load"),
            "grows",
            format!(
                "DASS - DASS gain at 60, 70, 80 %: {}",
                differences.iter().map(|d| format!("{d:.3}")).collect::<Vec<_>>().join(" ")
            ),
            vec![differences.last().unwrap_or(&f64::NAN) - differences.first().unwrap_or(&f64::NAN)],
            "",
        ),
        Statement::new(
            12,
            &on("for DP, gain time matters less"),
            "less important",
            format!(
                "DP gain {:.1} % below DP; DASS gain {:.1} % below DASS",
                by_dual * 100.0,
                by_dass * 100.0
            ),
            vec![by_dass - by_dual],
            "",
        ),
        Statement::new(
            12,
            &on("the best results of DP are with self gain rather than propagated gain"),
            "self better than propagated",
            format!("{}; {}", view.means(METRIC, &DUAL), view.along(METRIC, Axis::Gain, &DUAL)),
            vec![propagated - own],
            "",
        ),
    ];
    facts.extend(against_dass(view, on));
    facts
}

/// Dual priority beside slack stealing without gain.
fn against_dass(view: View<'_>, on: impl Fn(&str) -> String) -> [Statement; 2] {
    let high = |row: &Row| {
        let parameters = row.parameters;
        parameters.hard_tasks >= 8 && parameters.hard_load >= 70 && parameters.soft_load >= 20
    };
    let mean = |policy: Policy, wanted: &dyn Fn(&Row) -> bool| {
        view.figures.mean_where(view.backend, METRIC, policy, wanted).unwrap_or(f64::NAN)
    };
    let listed = |wanted: &dyn Fn(&Row) -> bool| {
        ALL.map(|policy| format!("{} {:.3}", policy.label(), mean(policy, wanted))).join(", ")
    };
    let largest = |row: &Row| row.parameters.hard_tasks == 16 && row.parameters.hard_load >= 70;
    let dass = mean(Policy::SlackStealing, &high);
    [
        Statement::new(
            13,
            &on("except for low loads or small sets, every version of DP is better than DASS without gain"),
            "all below DASS",
            listed(&high),
            DUAL.iter().map(|policy| dass - mean(*policy, &high)).collect(),
            "criterion: means over at least 8 hard tasks, 70 % hard load and 20 % soft load",
        ),
        Statement::new(
            13,
            &on("DP outperforms DASS when the number of hard tasks or the load grows"),
            "DP below DASS",
            listed(&largest),
            vec![mean(Policy::SlackStealing, &largest) - mean(Policy::DualPriority, &largest)],
            "criterion: means over 16 hard tasks and at least 70 % hard load, both without gain",
        ),
    ]
}
