//! The statements of experiment 1, in the order of the paper's section 4.3. The criteria were written down before the first
//! run and are not changed until they fit.

use super::judge::judge;
use super::statement::{Plotted, Statement, View, held};
use crate::Fact;
use crate::test_bench::{self, Axis, Backend, Figures, Metric, Policy, Results};

const AXES: [Axis; 3] = [Axis::HardLoad, Axis::HardTasks, Axis::SoftLoad];
const SERVERS: [Policy; 2] = [Policy::Deferrable, Policy::Sporadic];
const OTHERS: [Policy; 4] =
    [Policy::SlackStealing, Policy::SlackStealingGain, Policy::DualPriority, Policy::DualPriorityBoth];
const ALL: [Policy; 6] = [
    Policy::Deferrable,
    Policy::Sporadic,
    Policy::SlackStealing,
    Policy::SlackStealingGain,
    Policy::DualPriority,
    Policy::DualPriorityBoth,
];

/// The facts; `others`: the figures of further seeds.
pub(super) fn facts(results: &Results, others: &[Figures]) -> Vec<Fact> {
    let mut facts = vec![
        Fact::exact(5, "combinations of the parameters", 72, results.points.len() as u64),
        Fact::exact(5, "synthetic applications", 360, results.applications()),
        test_bench::deadlines(results),
    ];
    facts.extend(test_bench::real_deadlines(results));
    let statements = |figures: &Figures, backend| {
        let view = View { figures, backend };
        [responses(view), switches(view)].concat()
    };
    let seeds = std::iter::once(&results.figures).chain(others);
    facts.extend(judge(&seeds.map(|figures| statements(figures, Backend::Simulated)).collect::<Vec<_>>()));
    if results.figures.has(Backend::Real, Metric::Response) {
        facts.extend(judge(&[statements(&results.figures, Backend::Real)]));
    }
    let view = View { figures: &results.figures, backend: Backend::Real };
    facts.extend(overheads(view));
    facts.push(Fact::not_measurable(
        7,
        "DASS is close to optimal until hard load, soft load and overhead reach 90 % (quoted from an older study)",
        "no figure survives",
        "the optimum, exact slack stealing, is not built".to_owned(),
    ));
    facts
}

/// The statement with the back end that it was looked at on.
fn on(view: View<'_>, statement: &str) -> String {
    format!("{statement} ({})", view.backend.word())
}

/// Section 4.3.1.
fn responses(view: View<'_>) -> Vec<Statement> {
    let metric = Metric::Response;
    let (worst, most) = extreme(view, metric, |a, b| a.2 > b.2);
    let singles = ALL.map(|policy| view.figures.count(view.backend, metric, policy, |_, ratio| ratio < 1.0));
    let (of, below) = singles.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let mut facts = vec![Statement::new(
        6,
        &on(view, "every policy has lower soft response times than the background in all cases"),
        "all plotted ratios are below 1",
        format!("the largest of all plotted ratios is {}", place(worst, most)),
        ALL.iter().flat_map(|policy| view.plotted(metric, &AXES, *policy)).map(|one| 1.0 - one.2).collect(),
        &format!("{below} of {of} single applications are below 1"),
    )];
    for (axis, falls, statement) in [
        (Axis::HardLoad, true, "the advantage over the background grows with the hard load"),
        (Axis::HardTasks, false, "it shrinks as the number of hard tasks grows"),
        (Axis::SoftLoad, false, "it shrinks as the soft load grows"),
    ] {
        facts.push(Statement::new(
            8,
            &on(view, statement),
            if falls { "ratios fall" } else { "ratios rise" },
            view.along(metric, axis, &ALL),
            rises(view, metric, axis, !falls),
            "criterion: last against first value of the parameter, every policy",
        ));
    }
    facts.extend(responses_of_servers(view));
    facts.extend(responses_of_slack_policies(view));
    facts
}

fn responses_of_servers(view: View<'_>) -> Vec<Statement> {
    let metric = Metric::Response;
    let pairs = OTHERS.iter().flat_map(|other| SERVERS.iter().map(move |server| (other, server)));
    let above: Vec<f64> =
        pairs.flat_map(|(other, server)| view.gaps(metric, &AXES, *other, *server)).collect();
    let apart = view.gaps(metric, &AXES, Policy::Sporadic, Policy::Deferrable);
    let gaps: Vec<f64> = view
        .line(metric, Axis::HardLoad, Policy::Deferrable)
        .values()
        .zip(view.line(metric, Axis::HardLoad, Policy::Sporadic).values())
        .map(|(deferrable, sporadic)| deferrable - sporadic)
        .collect();
    let widest_last = gaps
        .split_last()
        .map_or_else(Vec::new, |(last, before)| before.iter().map(|gap| last - gap).collect());
    let mean = |policies: &[Policy]| {
        policies.iter().map(|policy| view.mean(metric, *policy)).sum::<f64>() / policies.len() as f64
    };
    let (sporadic_mean, deferrable_mean) = (mean(&[Policy::Sporadic]), mean(&[Policy::Deferrable]));
    vec![
        Statement::new(
            7,
            &on(view, "server-based policies always have higher response times than DASS and DP"),
            "in all plots",
            format!(
                "in {} of {} pairs of plotted values; means {}",
                held(&above),
                above.len(),
                view.means(metric, &ALL)
            ),
            above,
            "criterion: each of DASS, DASS gain, DP, DP gain below each of DS and SS at every plotted value",
        ),
        Statement::new(
            7,
            &on(view, "in the mean: DASS, DP < SS <= DS"),
            "mean(DASS, DP) < SS <= DS",
            format!("{:.3} < {sporadic_mean:.3} <= {deferrable_mean:.3}", mean(&OTHERS)),
            vec![sporadic_mean - mean(&OTHERS), deferrable_mean - sporadic_mean],
            "",
        ),
        Statement::new(
            7,
            &on(view, "SS has lower response times than DS in all cases"),
            "in all plots, close to each other",
            format!("at {} of {} plotted values", held(&apart), apart.len()),
            apart,
            "",
        ),
        Statement::new(
            7,
            &on(view, "DS and SS separate when the hard load is high, as DS has the smaller capacity"),
            "the gap is widest at 60 %",
            format!("gaps DS - SS at 20, 40, 60 %: {}", words(&gaps)),
            widest_last,
            "criterion: the gap at 60 % is wider than each of the others",
        ),
    ]
}

fn responses_of_slack_policies(view: View<'_>) -> Vec<Statement> {
    let metric = Metric::Response;
    let (dass, dp) = (Policy::SlackStealing, Policy::DualPriority);
    let at_end = |policy: Policy| {
        AXES.map(|axis| *view.line(metric, axis, policy).values().next_back().unwrap_or(&f64::NAN))
    };
    let (dass_end, dp_end) = (at_end(dass), at_end(dp));
    let relative = |a: Policy, b: Policy| view.mean(metric, b) / view.mean(metric, a) - 1.0;
    let gains = [relative(dass, Policy::SlackStealingGain), relative(dp, Policy::DualPriorityBoth)];
    vec![
        Statement::new(
            13,
            &on(view, "DASS and DP have very similar response times"),
            "very similar",
            format!("DP {:+.1} % of DASS; {}", relative(dass, dp) * 100.0, view.means(metric, &[dass, dp])),
            within(0.1, &[relative(dass, dp)]),
            "criterion: means differ by less than 10 %",
        ),
        Statement::new(
            13,
            &on(
                view,
                "DP is better than DASS where the hard load, the number of hard tasks or the soft load is high",
            ),
            "DP below DASS",
            format!(
                "at 60 % hard load, 16 hard tasks, 60 % soft load: DP {}, DASS {}",
                words(&dp_end),
                words(&dass_end)
            ),
            dp_end.iter().zip(&dass_end).map(|(dp, dass)| dass - dp).collect(),
            "criterion: at the last value of each of the three parameters",
        ),
        Statement::new(
            13,
            &on(
                view,
                "supporting gain time brings no significant improvement, since jobs use at least 95 % of their wcet",
            ),
            "no significant improvement",
            format!("DASS gain {:+.1} %, DP gain {:+.1} %", gains[0] * 100.0, gains[1] * 100.0),
            within(0.05, &gains),
            "criterion: means differ by less than 5 %",
        ),
    ]
}

/// Section 4.3.2.
fn switches(view: View<'_>) -> Vec<Statement> {
    let metric = Metric::Switches;
    let (high_policy, highest) = extreme(view, metric, |a, b| a.2 > b.2);
    let (low_policy, lowest) = extreme(view, metric, |a, b| a.2 < b.2);
    let mut facts = vec![Statement::new(
        11,
        &on(view, "the numbers of context switches are very close to the background's"),
        "ratios very close to 1",
        format!("from {} to {}", place(low_policy, lowest), place(high_policy, highest)),
        ALL.iter()
            .flat_map(|policy| view.plotted(metric, &AXES, *policy))
            .flat_map(|one| [1.5 - one.2, one.2 - 1.0 / 1.5])
            .collect(),
        "criterion: all plotted ratios from 0.67 to 1.5",
    )];
    for (axis, upwards, statement) in [
        (Axis::HardLoad, true, "they rise with the hard load"),
        (Axis::SoftLoad, true, "they rise with the soft load"),
        (Axis::HardTasks, false, "they fall as the number of hard tasks grows"),
    ] {
        facts.push(Statement::new(
            11,
            &on(view, statement),
            if upwards { "ratios rise" } else { "ratios fall" },
            view.along(metric, axis, &ALL),
            rises(view, metric, axis, upwards),
            "criterion: last against first value of the parameter, every policy",
        ));
    }
    let others = [Policy::SlackStealing, Policy::DualPriority, Policy::DualPriorityBoth];
    let above = |server: &Policy| {
        let mean = view.mean(metric, *server);
        others.map(|policy| mean - view.mean(metric, policy))
    };
    let more = view.gaps(metric, &AXES, Policy::SlackStealing, Policy::SlackStealingGain);
    let most_of_a_server = SERVERS
        .iter()
        .flat_map(|policy| {
            view.figures
                .rows
                .iter()
                .filter(|row| (row.backend, row.metric, row.policy) == (view.backend, metric, *policy))
        })
        .filter_map(|row| row.ratio)
        .fold(0.0, f64::max);
    facts.extend([
        Statement::new(
            11,
            &on(view, "server-based policies are the most preemptive, exceeded by DASS with gain alone"),
            "DS and SS above DASS, DP and DP with gain",
            view.means(metric, &ALL),
            SERVERS.iter().flat_map(above).collect(),
            "criterion: means",
        ),
        Statement::new(
            11,
            &on(view, "for DASS, supporting gain time always leads to more context switches"),
            "in all plots",
            format!("at {} of {} plotted values", held(&more), more.len()),
            more,
            "",
        ),
        Statement::new(
            11,
            &on(view, "servers switch far less often than in an older study"),
            "up to 5 times the background there, close to 1 here",
            format!("{most_of_a_server:.2} times the background at most, in a single application"),
            vec![5.0 - most_of_a_server],
            "",
        ),
    ]);
    facts
}

/// Whether every policy's ratio rises, or falls, from the first to the last value of a parameter.
fn rises(view: View<'_>, metric: Metric, axis: Axis, upwards: bool) -> Vec<f64> {
    let sign = if upwards { 1.0 } else { -1.0 };
    ALL.iter().map(|policy| sign * view.rise(metric, axis, *policy)).collect()
}

/// Whether values differ from zero by less than a limit.
fn within(limit: f64, values: &[f64]) -> Vec<f64> {
    values.iter().flat_map(|value| [limit - value, limit + value]).collect()
}

/// Section 4.3.3: from real runs alone, since a simulation would give back the costs that it was given.
fn overheads(view: View<'_>) -> Vec<Fact> {
    let statements = [
        (9, "the mean time of an interruption of the scheduler does not depend on the hard or soft load"),
        (9, "it grows with the number of hard tasks, above all for DASS"),
        (9, "DASS's is far above that of all others"),
        (9, "DS's is slightly below SS's"),
        (9, "supporting gain time adds nothing notable to it"),
        (10, "the ratios of the total scheduler time are nearly horizontal lines"),
        (10, "total scheduler time: DASS > DP > SS > DS"),
    ];
    if !view.figures.has(Backend::Real, Metric::Interruption) {
        let reason = "overheads come from real runs alone, and there are none: --real runs some";
        return statements
            .map(|(number, statement)| Fact::not_measurable(number, statement, "stated", reason.to_owned()))
            .to_vec();
    }
    let found = [
        flat(view, Metric::Interruption, &[Axis::HardLoad, Axis::SoftLoad]),
        grows(view),
        far_above(view),
        deferrable_below(view),
        gain_adds_nothing(view),
        flat(view, Metric::Scheduler, &AXES),
        order_of_totals(view),
    ];
    let fact = |((number, statement), (published, ours, agrees, note)): ((u32, &str), Found)| {
        Fact::trend(number, &on(view, statement), published, ours, agrees, note)
    };
    statements.into_iter().zip(found).map(fact).collect()
}

/// Published, ours, whether they agree, note.
type Found = (&'static str, String, bool, &'static str);

fn flat(view: View<'_>, metric: Metric, axes: &[Axis]) -> Found {
    let change =
        |policy: &Policy, axis: &Axis| view.rise(metric, *axis, *policy) / view.mean(metric, *policy);
    let worst = ALL
        .iter()
        .flat_map(|policy| axes.iter().map(move |axis| (policy, axis, change(policy, axis))))
        .fold(None, |worst: Option<(&Policy, &Axis, f64)>, one| match worst {
            Some(worst) if worst.2.abs() >= one.2.abs() => Some(worst),
            _ => Some(one),
        });
    let (words, agrees) = worst.map_or_else(Default::default, |(policy, axis, change)| {
        let words = format!("at most {:+.0} % ({} along {})", change * 100.0, policy.label(), axis.title());
        (words, change.abs() < 0.2)
    });
    (
        "no important influence",
        words,
        agrees,
        "criterion: from first to last value by less than 20 % of the mean",
    )
}

fn grows(view: View<'_>) -> Found {
    let rise = |policy: Policy| view.rise(Metric::Interruption, Axis::HardTasks, policy);
    let dass = rise(Policy::SlackStealing);
    let others = [Policy::Deferrable, Policy::Sporadic, Policy::DualPriority, Policy::DualPriorityBoth];
    (
        "grows, above all for DASS",
        view.along(Metric::Interruption, Axis::HardTasks, &ALL),
        dass > 0.0 && others.iter().all(|policy| rise(*policy) < dass),
        "criterion: DASS's ratio rises, and by more than any other's",
    )
}

fn far_above(view: View<'_>) -> Found {
    let mean = |policy: Policy| view.mean(Metric::Interruption, policy);
    let others = [Policy::Deferrable, Policy::Sporadic, Policy::DualPriority, Policy::DualPriorityBoth];
    let most = others.iter().map(|policy| mean(*policy)).fold(0.0, f64::max);
    (
        "much higher",
        view.means(Metric::Interruption, &ALL),
        mean(Policy::SlackStealing) > 1.5 * most,
        "criterion: 1.5 times the highest of DS, SS, DP and DP gain",
    )
}

fn deferrable_below(view: View<'_>) -> Found {
    let (deferrable, sporadic) = (
        view.mean(Metric::Interruption, Policy::Deferrable),
        view.mean(Metric::Interruption, Policy::Sporadic),
    );
    (
        "DS slightly below SS",
        format!("DS {deferrable:.3}, SS {sporadic:.3}"),
        deferrable < sporadic,
        "criterion: means",
    )
}

fn gain_adds_nothing(view: View<'_>) -> Found {
    let relative = |with: Policy, without: Policy| {
        view.mean(Metric::Interruption, with) / view.mean(Metric::Interruption, without) - 1.0
    };
    let dass = relative(Policy::SlackStealingGain, Policy::SlackStealing);
    let dp = relative(Policy::DualPriorityBoth, Policy::DualPriority);
    (
        "no significant increase",
        format!("DASS {:+.1} %, DP {:+.1} %", dass * 100.0, dp * 100.0),
        dass < 0.1 && dp < 0.1,
        "criterion: less than 10 % more",
    )
}

fn order_of_totals(view: View<'_>) -> Found {
    let mean = |policy: Policy| view.mean(Metric::Scheduler, policy);
    let order = [Policy::SlackStealing, Policy::DualPriority, Policy::Sporadic, Policy::Deferrable];
    (
        "DASS > DP > SS > DS",
        view.means(Metric::Scheduler, &order),
        order.windows(2).all(|pair| mean(pair[0]) > mean(pair[1])),
        "criterion: means",
    )
}

/// The plotted value of all policies that nothing beats.
fn extreme(view: View<'_>, metric: Metric, beats: impl Fn(&Plotted, &Plotted) -> bool) -> (Policy, Plotted) {
    let mut best = (Policy::Background, (Axis::HardLoad, 0, f64::NAN));
    for policy in ALL {
        for plotted in view.plotted(metric, &AXES, policy) {
            if best.1.2.is_nan() || beats(&plotted, &best.1) {
                best = (policy, plotted);
            }
        }
    }
    best
}

fn place(policy: Policy, (axis, at, ratio): Plotted) -> String {
    format!("{ratio:.3} ({} at {at} {})", policy.label(), axis.title())
}

fn words(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.3}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Agreement;

    #[test]
    fn a_fact_whose_statement_is_not_looked_at_says_so() {
        let figures = crate::test_bench::Figures { rows: Vec::new() };
        let facts = overheads(View { figures: &figures, backend: Backend::Real });
        assert_eq!(facts.len(), 7);
        assert!(facts.iter().all(|fact| matches!(fact.agreement, Agreement::NotMeasurable(_))));
    }
}
