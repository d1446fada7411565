//! Points and synthetic applications: everything that chance decides, drawn once and the same under every policy.

use super::policy::EFFORT;
use super::spec::{Costs, Execution, Spec};
use crate::ExperimentError;
use horolog_analysis::arrival_curve::ArrivalCurve;
use horolog_analysis::server::{HardTask, Retention, Victim, victims};
use horolog_sim::Stream;
use horolog_time::Span;
use num_rational::Ratio;

/// One combination of the parameters; `None` where an application draws its own value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Point {
    pub(crate) hard_tasks: Option<u64>,
    pub(crate) hard_load: Option<u64>,
    pub(crate) soft_tasks: Option<u64>,
    pub(crate) soft_load: Option<u64>,
}

/// The values of one application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parameters {
    pub(crate) hard_tasks: u64,
    pub(crate) hard_load: u64,
    pub(crate) soft_tasks: u64,
    pub(crate) soft_load: u64,
}

/// A soft task: jobs of one length at drawn instants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SoftTask {
    pub(crate) wcet: u64,
    /// Ascending, the first at 0, all below the hyperperiod.
    pub(crate) arrivals: Vec<u64>,
}

/// A synthetic application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Application {
    /// Which of the experiment's, from 0.
    pub(crate) index: usize,
    /// Which point, from 0, and which of its sets.
    pub(crate) point: usize,
    pub(crate) set: u64,
    pub(crate) parameters: Parameters,
    /// The most important first; deadlines are the periods.
    pub(crate) hard: Vec<HardTask>,
    pub(crate) soft: Vec<SoftTask>,
    /// The time at which all hard tasks are released together again.
    pub(crate) hyperperiod: u64,
    /// What the hard jobs' executions are drawn from.
    seed: u64,
}

/// Tries before a point is given up.
const TRIES: u32 = 20_000;

/// All points of an experiment, in order: hard tasks, hard load, soft tasks, soft load.
pub(crate) fn points(spec: &Spec) -> Vec<Point> {
    let mut all = Vec::new();
    for hard_tasks in spec.hard.tasks.points() {
        for hard_load in spec.hard.load.points() {
            for soft_tasks in spec.soft.tasks.points() {
                for soft_load in spec.soft.load.points() {
                    let total = hard_load.unwrap_or(0) + soft_load.unwrap_or(0);
                    if spec.most_total_load.is_none_or(|most| total <= most) {
                        all.push(Point { hard_tasks, hard_load, soft_tasks, soft_load });
                    }
                }
            }
        }
    }
    all
}

impl Application {
    /// Draws the application with this index: set `index % sets` of point `index / sets`.
    ///
    /// What is drawn depends on the seed, the point's values and the set alone, so that an experiment with fewer points
    /// has the same applications at those it keeps.
    ///
    /// # Errors
    /// Where no schedulable set is found, with the remedy.
    pub(crate) fn draw(spec: &Spec, points: &[Point], index: usize) -> Result<Application, ExperimentError> {
        let (place, set, mut stream) = start(spec, points, index);
        let parameters = parameters(spec, &points[place], &mut stream);
        let hard = draw_hard(spec, parameters, &mut stream)?;
        let hyperperiod = spec.hard.hyperperiod.as_ns();
        let grid = spec.grid(spec.soft.shortest_interarrival, spec.soft.longest_interarrival);
        let work = u128::from(parameters.soft_load) * u128::from(hyperperiod) / 100;
        let shares = spacings(work as u64, parameters.soft_tasks as usize, &mut stream);
        let soft = shares.into_iter().map(|work| draw_soft(hyperperiod, work, &grid, &mut stream)).collect();
        let seed = stream.next();
        Ok(Application { index, point: place, set, parameters, hard, soft, hyperperiod, seed })
    }

    /// How long its jobs are released: hyperperiods enough for every soft job that arrives in the first one to finish
    /// under any policy that leaves nobody idle who has work.
    ///
    /// In n − 1 more hyperperiods hard tasks leave (n − 1)(1 − U_h) of them, at least the soft work U_s of the first:
    /// n = 1 + ⌈U_s / (1 − U_h)⌉.
    pub(crate) fn until(&self) -> u64 {
        let left = 100_u64.saturating_sub(self.parameters.hard_load).max(1);
        self.hyperperiod.saturating_mul(1 + self.parameters.soft_load.div_ceil(left))
    }

    /// What each job of a hard task executes, job by job up to `until`: the same under every policy and in every back
    /// end.
    pub(crate) fn executions(
        &self,
        task: usize,
        execution: &Execution,
        gain: Option<u64>,
        until: u64,
    ) -> Vec<u64> {
        let jobs = until.div_ceil(self.hard[task].period.as_ns());
        let (least, most) = self.bounds(task, execution, gain);
        let mut stream = Stream::new(self.seed, &format!("hard {task}"), "executions");
        (0..jobs).map(|_| if least < most { least + stream.up_to(most - least) } else { least }).collect()
    }

    /// The least and the most that a job of a hard task executes.
    pub(crate) fn bounds(&self, task: usize, execution: &Execution, gain: Option<u64>) -> (u64, u64) {
        let wcet = u128::from(self.hard[task].wcet.as_ns());
        let percent = |share: u64| (wcet * u128::from(share) / 100).max(1) as u64;
        match (execution, gain) {
            (Execution::Drawn(low, high), _) => (percent(*low), percent(*high)),
            (Execution::Gain(_), gain) => {
                let all = percent(100 - gain.unwrap_or(0));
                (all, all)
            }
        }
    }
}

/// Point, set and stream of the application with this index.
fn start(spec: &Spec, points: &[Point], index: usize) -> (usize, u64, Stream) {
    let sets = usize::try_from(spec.sets).unwrap_or(usize::MAX).max(1);
    let (place, set) = (index / sets, (index % sets) as u64);
    let Point { hard_tasks, hard_load, soft_tasks, soft_load } = points[place];
    let word = |value: Option<u64>| value.map_or_else(|| "drawn".to_owned(), |value| value.to_string());
    let name = [hard_tasks, hard_load, soft_tasks, soft_load, Some(set)].map(word).join(" ");
    (place, set, Stream::new(spec.seed, &name, "application"))
}

/// The parameters of the application with this index.
pub(crate) fn parameters_of(spec: &Spec, points: &[Point], index: usize) -> Parameters {
    let (place, _, mut stream) = start(spec, points, index);
    parameters(spec, &points[place], &mut stream)
}

fn parameters(spec: &Spec, point: &Point, stream: &mut Stream) -> Parameters {
    use super::spec::Choice;
    let mut value = |fixed: Option<u64>, choice: &Choice| match (fixed, choice) {
        (Some(value), _) => value,
        (None, Choice::Random(low, high)) => low + stream.up_to(high - low),
        (None, Choice::Values(values)) => values.first().copied().unwrap_or(1),
    };
    Parameters {
        hard_tasks: value(point.hard_tasks, &spec.hard.tasks),
        hard_load: value(point.hard_load, &spec.hard.load),
        soft_tasks: value(point.soft_tasks, &spec.soft.tasks),
        soft_load: value(point.soft_load, &spec.soft.load),
    }
}

/// Shares `total` uniformly over all ways (UUniFast's distribution, by the spacings of sorted uniform numbers).
fn spacings(total: u64, count: usize, stream: &mut Stream) -> Vec<u64> {
    let mut cuts: Vec<u64> = (1..count).map(|_| stream.up_to(total)).collect();
    cuts.push(total);
    cuts.sort_unstable();
    let mut before = 0;
    cuts.into_iter().map(|cut| cut - std::mem::replace(&mut before, cut)).collect()
}

/// Rate-monotonic hard tasks that pass the response-time test, the most important first.
fn draw_hard(
    spec: &Spec,
    parameters: Parameters,
    stream: &mut Stream,
) -> Result<Vec<HardTask>, ExperimentError> {
    const ONE: u64 = 1 << 40;
    let grid = spec.grid(spec.hard.shortest_period, spec.hard.longest_period);
    let count = parameters.hard_tasks as usize;
    let total = (u128::from(ONE) * u128::from(parameters.hard_load) / 100) as u64;
    for _ in 0..TRIES {
        let mut set: Vec<HardTask> = spacings(total, count, stream)
            .into_iter()
            .map(|share| {
                let period = grid[stream.up_to(grid.len() as u64 - 1) as usize];
                let wcet = (u128::from(share) * u128::from(period) / u128::from(ONE)) as u64;
                let period = Span::from_ns(period);
                HardTask { wcet: Span::from_ns(wcet.max(1)), period, deadline: period }
            })
            .collect();
        set.sort_by_key(|task| task.period);
        let long_enough = set.iter().all(|task| task.wcet >= spec.hard.least_wcet);
        // One set for both back ends: with what the real one takes, too.
        let both = [&spec.simulated, &spec.real.costs];
        if long_enough && both.iter().all(|costs| is_schedulable(&set, costs)) {
            return Ok(set);
        }
    }
    Err(ExperimentError::bad_input(format!(
        "no schedulable set of {count} hard tasks with {} % load and wcets of at least {} in {TRIES} draws; lower \
         hard.load or hard.least_wcet, or allow longer periods",
        parameters.hard_load, spec.hard.least_wcet
    )))
}

/// The set as the tests see it on a platform with costs: each job costs two switches (`docs/concepts/costs.md`), and is
/// noticed late.
pub(crate) fn victims_of(set: &[HardTask], costs: &Costs) -> Vec<Victim> {
    let interrupt = costs.timer_interrupt.as_ns();
    let more = costs.context_switch.as_ns().saturating_mul(2).saturating_add(interrupt);
    let jitter = costs.release_latency.as_ns();
    let task =
        |task: &HardTask| HardTask { wcet: Span::from_ns(task.wcet.as_ns().saturating_add(more)), ..*task };
    let mut victims = victims(&set.iter().map(task).collect::<Vec<_>>());
    for victim in &mut victims {
        victim.jitter = jitter;
        // A switch that had begun before.
        victim.above.blocking = costs.context_switch.as_ns();
        for load in &mut victim.above.loads {
            if let ArrivalCurve::Periodic { separation, .. } = load.arrival {
                load.arrival = ArrivalCurve::Periodic { separation, jitter };
            }
        }
    }
    victims
}

fn is_schedulable(set: &[HardTask], costs: &Costs) -> bool {
    let none = Ratio::from_integer(0);
    let meets = |victim: &Victim| victim.meets_below(Retention::AsPeriodic, none, 1, &mut { EFFORT });
    victims_of(set, costs).iter().all(|victim| meets(victim).unwrap_or(false))
}

/// Jobs of one length that sum up to `work`, as many as fit a mean inter-arrival time of the grid: the first at 0, the
/// others uniform over the hyperperiod, as a Poisson process has them once their number is known.
fn draw_soft(hyperperiod: u64, work: u64, grid: &[u64], stream: &mut Stream) -> SoftTask {
    let interarrival = grid[stream.up_to(grid.len() as u64 - 1) as usize];
    let jobs = (hyperperiod / interarrival).max(1);
    let mut arrivals: Vec<u64> = vec![0];
    while (arrivals.len() as u64) < jobs {
        let at = stream.up_to(hyperperiod - 1);
        if let Err(place) = arrivals.binary_search(&at) {
            arrivals.insert(place, at);
        }
    }
    SoftTask { wcet: (work / jobs).max(1), arrivals }
}
