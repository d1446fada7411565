//! Figure 2: response times of a task of 10 ms every 100 ms, with the driver's server threads below and above it.

use super::simulated::run;
use crate::{Agreement, ExperimentError, ExperimentReport, Fact, Series};
use horolog_sim::ExecutionChoice::AsModelled;

/// Pings at random gaps of 10 to 2000 us; 131 to 168 us each make the load that the figure shows, 13 to 17 %.
pub(super) const GAP_US: (u64, u64) = (10, 2_000);
pub(super) const WORK_US: (u64, u64) = (131, 168);

/// Response times in ms with the server threads below, and above.
pub(super) struct Figure {
    pub(super) below: Vec<f64>,
    pub(super) above: Vec<f64>,
    /// What the server took of the processor while it was above, if that was measured.
    pub(super) load: f64,
}

const BELOW: &str = "server threads below the task: it stays within about 0.5 ms of 10 ms";
const ABOVE: &str = "server threads above the task: a clear extra of 1.5 to 2 ms";

pub(super) fn simulate() -> Result<Figure, ExperimentError> {
    let responses = |priority: u32| -> Result<(Vec<f64>, f64), ExperimentError> {
        let text = format!(
            "[system]\nname = \"figure 2\"\n[[task]]\nname = \"task\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\npriority = 50\n\
             [[interrupt]]\nname = \"eth0\"\nseparation = \"{} us\"\ncost = \"5 us\"\n[[device]]\nname = \"pings\"\n\
             interrupt = \"eth0\"\nseparation = \"{} us\"\nspread = \"{} us\"\nleast_cost = \"{} us\"\ncost = \"{} us\"\n\
             service = \"thread\"\npriority = {priority}\n",
            GAP_US.0,
            GAP_US.0,
            GAP_US.1 - GAP_US.0,
            WORK_US.0,
            WORK_US.1
        );
        let found = run(&text, 100_000, AsModelled)?;
        let busy = found.outcome.devices[0].executed_ns.as_ns() as f64;
        Ok((found.responses_ms(0), busy / found.outcome.horizon_ns.as_ns() as f64))
    };
    let (below, load) = responses(40)?;
    let (above, _) = responses(60)?;
    Ok(Figure { below, above, load })
}

pub(super) fn simulated_facts(figure: &Figure, report: &mut ExperimentReport) {
    facts(figure, "simulated", "", report);
}

pub(super) fn real_facts(figure: &Figure, report: &mut ExperimentReport) {
    let note = "on this machine: timer thread, server thread and task under SCHED_FIFO on one CPU beside compilations; a \
                host that takes the processor away lengthens the tails, so medians and shares are compared";
    facts(figure, "real", note, report);
}

/// The real part needs a privilege that is not there.
pub(super) fn not_permitted(reason: &str, report: &mut ExperimentReport) {
    for (statement, published) in
        [(BELOW, "a spike from 10 to 10.5 ms"), (ABOVE, "a hump from 11.5 to 12 ms")]
    {
        let mut fact = Fact::not_measurable(5, &format!("{statement} (real)"), published, reason.to_owned());
        fact.agreement = Agreement::NotPermitted(reason.to_owned());
        report.facts.push(fact);
    }
}

fn facts(figure: &Figure, how: &str, note: &str, report: &mut ExperimentReport) {
    let (below, above) = (Shape::of(&figure.below), Shape::of(&figure.above));
    let near = share(&figure.below, 10.0, 10.5);
    report.facts.push(Fact::trend(
        5,
        &format!("{BELOW} ({how})"),
        "a spike from 10 to 10.5 ms",
        format!("{}; {:.1} % between 10 and 10.5", below.text(), 100.0 * near),
        below.median < 10.5 && near > 0.8,
        note,
    ));
    let extra = above.median - below.median;
    report.facts.push(Fact::trend(
        5,
        &format!("{ABOVE} ({how})"),
        "a hump from 11.5 to 12 ms",
        format!(
            "{}; {:.1} % between 11.5 and 12; median {extra:.2} ms longer, at a driver load of {:.1} %",
            above.text(),
            100.0 * share(&figure.above, 11.5, 12.0),
            100.0 * figure.load
        ),
        (1.4..=2.1).contains(&extra),
        note,
    ));
    let rows = histogram(&figure.below, &figure.above);
    report.series.push(Series {
        name: format!("figure 2, {how}: jobs by response time"),
        columns: ["from_ms", "below", "above"].map(str::to_owned).to_vec(),
        rows,
    });
}

/// Minimum, quantiles and maximum.
struct Shape {
    min: f64,
    tenth: f64,
    median: f64,
    ninetieth: f64,
    max: f64,
    jobs: usize,
}

impl Shape {
    fn of(responses: &[f64]) -> Shape {
        let mut sorted = responses.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let last = sorted.len().saturating_sub(1) as f64;
            sorted.get((share * last).round() as usize).copied().unwrap_or(0.0)
        };
        let jobs = sorted.len();
        Shape { min: at(0.0), tenth: at(0.1), median: at(0.5), ninetieth: at(0.9), max: at(1.0), jobs }
    }

    fn text(&self) -> String {
        format!(
            "{} jobs: min {:.2}, p10 {:.2}, median {:.2}, p90 {:.2}, max {:.2} ms",
            self.jobs, self.min, self.tenth, self.median, self.ninetieth, self.max
        )
    }
}

fn share(responses: &[f64], from: f64, to: f64) -> f64 {
    // A response of 10 ms to the nanosecond may be told as a hair less.
    let within = responses.iter().filter(|value| (from - 1e-6..=to).contains(*value)).count();
    within as f64 / responses.len().max(1) as f64
}

/// Jobs in bins of 0.1 ms, from 9.9 ms to 13 ms; the last bin holds all that took longer.
fn histogram(below: &[f64], above: &[f64]) -> Vec<Vec<f64>> {
    let bins = 32;
    let count = |responses: &[f64]| {
        let mut counts = vec![0.0; bins];
        for response in responses {
            let bin = ((response + 1e-6 - 9.9).max(0.0) / 0.1) as usize;
            counts[bin.min(bins - 1)] += 1.0;
        }
        counts
    };
    let (below, above) = (count(below), count(above));
    let rows = (0..bins).map(|bin| vec![9.9 + 0.1 * bin as f64, below[bin], above[bin]]);
    rows.filter(|row| row[1] + row[2] > 0.0).collect()
}
