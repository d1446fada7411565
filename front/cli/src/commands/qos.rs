//! `horolog qos`.

use crate::failure::{Done, Failure, Verdict};
use crate::output::{self, outln};
use crate::qos_arguments::{AllocateArguments, QosVerb};
use crate::results::{Point, Points, Standing, tell_points};
use crate::{input, progress};
use horolog_model::file::read_text;
use horolog_qos::{
    Again, Algorithm, Answer, Divided, Outcome, Problem, Request, UTILITY, Unsuitable, again, allocate,
    curve, divisible, file, solver,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

const SCHEMA: &str = "horolog.qos-allocation/1";

pub(crate) fn run(verb: &QosVerb) -> Done {
    match verb {
        QosVerb::Allocate(words) => allocate_file(words),
    }
}

/// The result in JSON. Utilities are in units of 10^-9.
#[derive(Serialize)]
struct Allocation<'a> {
    schema: &'static str,
    name: &'a str,
    class: &'static str,
    /// `found`, `none-fits`, `undecided`.
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    algorithm: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    utility_nano: Option<u64>,
    /// Against the first bound that is proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss_nano: Option<u64>,
    /// Whether it is proved that nothing is worth more.
    is_optimal: bool,
    bounds: Vec<ToldBound>,
    applications: Vec<Allocated<'a>>,
    resources: Vec<Used<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<Changes<'a>>,
    /// Of a divisible resource: the utility of so many units more.
    #[serde(skip_serializing_if = "Option::is_none")]
    marginal: Option<Marginal>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct ToldBound {
    kind: &'static str,
    utility_nano: u64,
    is_proved: bool,
}

#[derive(Serialize)]
struct Allocated<'a> {
    name: &'a str,
    /// None where the amount lies between two.
    set_point: Option<&'a str>,
    utility_nano: u64,
    uses: BTreeMap<&'a str, u64>,
}

#[derive(Serialize)]
struct Used<'a> {
    name: &'a str,
    unit: &'a str,
    capacity: u64,
    used: u64,
}

#[derive(Serialize)]
struct Marginal {
    utility_nano: u64,
    units: u64,
}

#[derive(Serialize)]
struct Changes<'a> {
    newcomers: Vec<&'a str>,
    changed: Vec<Changed<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anew_utility_nano: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anew_changes: Option<usize>,
}

#[derive(Serialize)]
struct Changed<'a> {
    name: &'a str,
    from: &'a str,
    to: &'a str,
    is_forced: bool,
}

/// What `--from` reads of a result of before.
#[derive(Deserialize)]
struct Previous {
    schema: String,
    applications: Vec<PreviousApplication>,
}

#[derive(Deserialize)]
struct PreviousApplication {
    name: String,
    set_point: Option<String>,
}

fn allocate_file(words: &AllocateArguments) -> Done {
    let name = input::name(&words.file);
    let problem = read(&words.file, &name)?;
    let request = Request {
        algorithm: words.algorithm.algorithm(),
        seconds: f64::from(words.seconds),
        most_states: words.most_states as usize,
        gap_millionths: words.gap.saturating_mul(1_000),
        ..Request::default()
    };
    let refused = |error: Unsuitable| {
        Failure::bad_input(format_args!("{error}\n  = help: {}", error.remedy)).in_file(&name)
    };
    let activity = progress::Activity::start("allocating");
    let is_marginal = problem.is_divisible() && matches!(request.algorithm, None | Some(Algorithm::Marginal));
    let again_found;
    let told = if is_marginal && words.from.is_none() {
        of_divided(&problem, divisible(&problem).map_err(refused)?)
    } else {
        match &words.from {
            None => of_outcome(&problem, &allocate(&problem, &request).map_err(refused)?),
            Some(path) => {
                let previous = previous(path)?;
                again_found = again(&problem, &previous, words.most_changes, &request).map_err(refused)?;
                of_again(&problem, &again_found)
            }
        }
    };
    if let Some(path) = &words.curve {
        let text = super::qos_curve::svg(problem.name(), &curve(&problem, &request));
        std::fs::write(path, text).map_err(|error| Failure::file("write", path, &error))?;
    }
    drop(activity);
    let (line, standing, status) = closing(&told);
    let points = told.applications.iter().map(|one| point(one, standing)).collect();
    let all = Points { about: "qos", result: &told, standing, closing: &line, points };
    tell_points(&words.format, &all, || {
        print(&told);
        Ok(())
    })?;
    Ok(Verdict::Line(line, status))
}

fn read(path: &Path, name: &str) -> Result<Problem, Failure> {
    let text = if input::is_standard(path) {
        std::io::read_to_string(std::io::stdin().lock())
    } else {
        read_text(path)
    };
    let text = text.map_err(|error| Failure::file("read", path, &error))?;
    file::read(&text, name).map_err(|found| Failure::diagnostics(found).in_file(name))
}

/// The set-point of each application in a result of before.
fn previous(path: &Path) -> Result<HashMap<String, String>, Failure> {
    let remedy = "give a result of `horolog qos allocate FILE --format json=PREVIOUS.json`";
    let previous: Previous = input::json(path, remedy)?;
    if previous.schema != SCHEMA {
        return Err(Failure::bad_input(format_args!(
            "{} is a `{}` and no allocation\n  = help: {remedy}",
            path.display(),
            previous.schema
        )));
    }
    let of = |one: PreviousApplication| Some((one.name, one.set_point?));
    Ok(previous.applications.into_iter().filter_map(of).collect())
}

fn empty<'a>(problem: &'a Problem, outcome: &'static str, reason: Option<String>) -> Allocation<'a> {
    Allocation {
        schema: SCHEMA,
        name: problem.name(),
        class: problem.class().word(),
        outcome,
        reason,
        algorithm: None,
        utility_nano: None,
        loss_nano: None,
        is_optimal: false,
        bounds: Vec::new(),
        applications: Vec::new(),
        resources: Vec::new(),
        changes: None,
        marginal: None,
        notes: Vec::new(),
    }
}

fn resources<'a>(problem: &'a Problem, used: &[u64]) -> Vec<Used<'a>> {
    let of = |(resource, &used): (&'a horolog_qos::Resource, &u64)| Used {
        name: &resource.name,
        unit: &resource.unit,
        capacity: resource.capacity,
        used,
    };
    problem.resources().iter().zip(used).map(of).collect()
}

fn uses<'a>(problem: &'a Problem, amounts: &[u64]) -> BTreeMap<&'a str, u64> {
    problem.resources().iter().zip(amounts).map(|(one, &amount)| (one.name.as_str(), amount)).collect()
}

fn of_outcome<'a>(problem: &'a Problem, outcome: &Outcome) -> Allocation<'a> {
    match outcome {
        Outcome::NoneFits(reason) => empty(problem, "none-fits", Some(reason.clone())),
        Outcome::Undecided(reason) => empty(problem, "undecided", Some(reason.clone())),
        Outcome::Found(answer) => found(problem, answer),
    }
}

fn found<'a>(problem: &'a Problem, answer: &Answer) -> Allocation<'a> {
    let allocated = |(application, &point): (&'a horolog_qos::Application, &usize)| {
        let point = &application.set_points[point];
        Allocated {
            name: &application.name,
            set_point: Some(&point.name),
            utility_nano: point.utility,
            uses: uses(problem, &point.uses),
        }
    };
    let mut notes = answer.notes.clone();
    if matches!(answer.algorithm, Algorithm::Mip | Algorithm::FastMip) {
        notes.push(format!(
            "solver: {}, in floating point; what fits and what it is worth is counted in integers",
            solver()
        ));
    }
    Allocation {
        algorithm: Some(answer.algorithm.word()),
        utility_nano: Some(answer.utility),
        loss_nano: answer.loss(),
        is_optimal: answer.is_optimal(),
        bounds: answer
            .bounds
            .iter()
            .map(|bound| ToldBound {
                kind: bound.kind.word(),
                utility_nano: bound.utility,
                is_proved: bound.kind.is_proved(),
            })
            .collect(),
        applications: problem.applications().iter().zip(&answer.choice).map(allocated).collect(),
        resources: resources(problem, &answer.used),
        notes,
        ..empty(problem, "found", None)
    }
}

fn of_again<'a>(problem: &'a Problem, again: &'a Again) -> Allocation<'a> {
    let application = |at: usize| &problem.applications()[at];
    let changed = |change: &'a horolog_qos::Change| Changed {
        name: &application(change.application).name,
        from: &change.from,
        to: &application(change.application).set_points[change.to].name,
        is_forced: change.is_forced,
    };
    let changes = Changes {
        newcomers: again.newcomers.iter().map(|&at| application(at).name.as_str()).collect(),
        changed: again.changes.iter().map(changed).collect(),
        anew_utility_nano: again.anew.map(|(utility, _)| utility),
        anew_changes: again.anew.map(|(_, changes)| changes),
    };
    Allocation { changes: Some(changes), ..of_outcome(problem, &again.outcome) }
}

fn of_divided(problem: &Problem, divided: Option<Divided>) -> Allocation<'_> {
    let Some(divided) = divided else {
        return empty(
            problem,
            "none-fits",
            Some("the least amounts of all applications do not fit".to_owned()),
        );
    };
    let allocated = |(at, application): (usize, &'_ horolog_qos::Application)| {
        let amount = divided.amounts[at];
        (application.set_points.iter().position(|point| point.uses[0] == amount), amount)
    };
    let applications = problem.applications().iter().enumerate().map(|(at, application)| {
        let (point, amount) = allocated((at, application));
        Allocated {
            name: &application.name,
            set_point: point.map(|point| application.set_points[point].name.as_str()),
            utility_nano: divided.utilities[at],
            uses: uses(problem, &[amount]),
        }
    });
    Allocation {
        algorithm: Some(Algorithm::Marginal.word()),
        utility_nano: Some(divided.utility),
        loss_nano: Some(0),
        is_optimal: true,
        bounds: vec![ToldBound { kind: "optimum", utility_nano: divided.utility, is_proved: true }],
        applications: applications.collect(),
        resources: resources(problem, &[divided.used]),
        marginal: divided.marginal.map(|(utility_nano, units)| Marginal { utility_nano, units }),
        ..empty(problem, "found", None)
    }
}

/// A utility as a decimal.
fn decimal(utility: u64) -> String {
    let text = format!("{}.{:09}", utility / UTILITY, utility % UTILITY);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A share in per cent, rounded up to hundredths, so that it is never told too small.
fn percent(part: u64, whole: u64) -> String {
    let hundredths = (u128::from(part) * 10_000).div_ceil(u128::from(whole.max(1)));
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

fn closing(told: &Allocation<'_>) -> (String, Standing, u8) {
    let reason = told.reason.as_deref().unwrap_or("nothing was found");
    let Some(utility) = told.utility_nano else {
        return match told.outcome {
            "none-fits" => (format!("no: {reason} (exit 1)"), Standing::No, 1),
            _ => (format!("undecided: {reason} (exit 4)"), Standing::Undecided, 4),
        };
    };
    let bound = told.bounds.iter().find(|bound| bound.is_proved);
    let distance = match (told.is_optimal, bound) {
        (true, _) => ", and nothing is worth more".to_owned(),
        (false, Some(bound)) => {
            let loss = percent(told.loss_nano.unwrap_or(0), bound.utility_nano);
            format!(", at most {loss} below the best ({} bound {})", bound.kind, decimal(bound.utility_nano))
        }
        (false, None) => String::new(),
    };
    let count = output::count(told.applications.len() as u64, "application");
    let algorithm = told.algorithm.unwrap_or_default();
    let line = format!("holds: {count} by {algorithm}, utility {}{distance} (exit 0)", decimal(utility));
    (line, Standing::Holds, 0)
}

fn point(one: &Allocated<'_>, standing: Standing) -> Point {
    let amounts: Vec<String> = one.uses.iter().map(|(name, amount)| format!("{name} {amount}")).collect();
    let set_point = one.set_point.unwrap_or("between two set-points");
    let text = format!("{set_point}; utility {}; {}", decimal(one.utility_nano), amounts.join(", "));
    Point { name: one.name.to_owned(), standing, text }
}

fn print(told: &Allocation<'_>) {
    outln!("{}: {}", told.name, told.class);
    if !told.applications.is_empty() {
        let mut head = vec!["application", "set-point", "utility"];
        head.extend(told.resources.iter().map(|one| one.name));
        let mut rows = output::table(&head, 2);
        for one in &told.applications {
            let mut row = vec![
                one.name.to_owned(),
                one.set_point.unwrap_or("(between)").to_owned(),
                decimal(one.utility_nano),
            ];
            row.extend(told.resources.iter().map(|resource| one.uses[resource.name].to_string()));
            rows.add_row(row);
        }
        output::print(&rows);
        outln!();
        let mut rows = output::table(&["resource", "unit", "used", "capacity"], 2);
        for one in &told.resources {
            rows.add_row([one.name, one.unit, &one.used.to_string(), &one.capacity.to_string()]);
        }
        output::print(&rows);
    }
    if !told.bounds.is_empty() {
        outln!();
        let mut rows = output::table(&["upper bound", "utility", "loss at most", "proved"], 1);
        for bound in &told.bounds {
            let loss = bound.utility_nano.saturating_sub(told.utility_nano.unwrap_or(0));
            let proved = if bound.is_proved { "yes" } else { "no" };
            rows.add_row([
                bound.kind,
                &decimal(bound.utility_nano),
                &percent(loss, bound.utility_nano),
                proved,
            ]);
        }
        output::print(&rows);
    }
    if let Some(Marginal { utility_nano, units }) = &told.marginal {
        outln!("\nmarginal utility: {} for {}", decimal(*utility_nano), output::count(*units, "unit"));
    }
    if let Some(changes) = &told.changes {
        print_changes(changes);
    }
    output::notes(&told.notes);
}

fn print_changes(changes: &Changes<'_>) {
    outln!();
    if !changes.newcomers.is_empty() {
        outln!("new: {}", changes.newcomers.join(", "));
    }
    for one in &changes.changed {
        let why = if one.is_forced { "to make room" } else { "since it fits" };
        outln!("changes: {} from {} to {}, {why}", one.name, one.from, one.to);
    }
    if changes.changed.is_empty() {
        outln!("no other application changes");
    }
    if let (Some(utility), Some(count)) = (changes.anew_utility_nano, changes.anew_changes) {
        outln!("anew: utility {}, {}", decimal(utility), output::count(count as u64, "change"));
    }
}
