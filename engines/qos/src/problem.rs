//! What is to be allocated: resources, applications, and the set-points that each may have.

/// Utilities are integers in units of 10^-9: 1 in a file is this many.
pub const UTILITY: u64 = 1_000_000_000;

/// The most resources of a problem. Sums of squares of scaled amounts stay within 64 bits with as many.
pub const MOST_RESOURCES: usize = 32;

/// The largest sum, over all applications, of their largest utilities or amounts: products with prices then fit 128 bits.
pub(crate) const LARGEST: u64 = i64::MAX as u64;

/// Something of which there is only so much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resource {
    /// Its name.
    pub name: String,
    /// What an amount of 1 is, in the user's words; may be empty.
    pub unit: String,
    /// How much there is.
    pub capacity: u64,
}

/// One way an application may be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetPoint {
    /// Its name, unique in its application.
    pub name: String,
    /// What it is worth, in units of 10^-9.
    pub utility: u64,
    /// How much of each resource it takes, in the order of the resources.
    pub uses: Vec<u64>,
}

/// An application: it gets one of its set-points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Application {
    /// Its name, unique in the problem.
    pub name: String,
    /// How many quality dimensions its set-points differ in; 0 where they have bare utilities.
    pub dimensions: usize,
    /// At least one.
    pub set_points: Vec<SetPoint>,
}

/// The class of a problem, as the source names them: single or multiple resource, single or multiple dimension.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Class {
    /// One resource, one quality dimension in each application.
    Srsd,
    /// One resource, several dimensions.
    Srmd,
    /// Several resources, one dimension.
    Mrsd,
    /// Several resources and dimensions.
    Mrmd,
}

impl Class {
    /// The word of the source.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Class::Srsd => "SRSD",
            Class::Srmd => "SRMD",
            Class::Mrsd => "MRSD",
            Class::Mrmd => "MRMD",
        }
    }
}

/// What keeps parts from being a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProblemError {
    /// The application that it is about; `None`: the whole.
    pub application: Option<usize>,
    /// Its set-point.
    pub set_point: Option<usize>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl std::fmt::Display for ProblemError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.reason, self.remedy)
    }
}

impl std::error::Error for ProblemError {}

/// A checked problem. Set-points lie one behind the other, so that algorithms read memory in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    name: String,
    resources: Vec<Resource>,
    applications: Vec<Application>,
    divisible: bool,
    starts: Vec<usize>,
    utilities: Vec<u64>,
    uses: Vec<u64>,
}

impl Problem {
    /// Checks the parts. `divisible`: an application may get any amount between its set-points, with the utility on the
    /// line between them; one resource alone, and utilities that rise ever more slowly.
    ///
    /// # Errors
    /// The first rule that is broken: at least one resource and at most [`MOST_RESOURCES`], at least one application, each with at
    /// least one set-point, one amount a resource; sums of the largest utilities and amounts within 63 bits; names that are unique.
    pub fn new(
        name: impl Into<String>,
        resources: Vec<Resource>,
        applications: Vec<Application>,
        divisible: bool,
    ) -> Result<Problem, ProblemError> {
        check_resources(&resources)?;
        check_applications(&resources, &applications)?;
        if divisible {
            check_divisible(&resources, &applications)?;
        }
        let mut starts = vec![0];
        let (mut utilities, mut uses) = (Vec::new(), Vec::new());
        for application in &applications {
            for point in &application.set_points {
                utilities.push(point.utility);
                uses.extend_from_slice(&point.uses);
            }
            starts.push(utilities.len());
        }
        Ok(Problem { name: name.into(), resources, applications, divisible, starts, utilities, uses })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The resources.
    #[must_use]
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The applications.
    #[must_use]
    pub fn applications(&self) -> &[Application] {
        &self.applications
    }

    /// Whether amounts between set-points are allowed.
    #[must_use]
    pub fn is_divisible(&self) -> bool {
        self.divisible
    }

    /// Its class.
    #[must_use]
    pub fn class(&self) -> Class {
        let many = self.applications.iter().any(|one| one.dimensions > 1);
        match (self.resources.len() > 1, many) {
            (false, false) => Class::Srsd,
            (false, true) => Class::Srmd,
            (true, false) => Class::Mrsd,
            (true, true) => Class::Mrmd,
        }
    }

    /// How many set-points there are in all.
    #[must_use]
    pub fn set_points(&self) -> usize {
        self.utilities.len()
    }

    /// The set-points of an application, as places in the whole list.
    pub(crate) fn range(&self, application: usize) -> std::ops::Range<usize> {
        self.starts[application]..self.starts[application + 1]
    }

    /// The utility of a place.
    pub(crate) fn utility(&self, place: usize) -> u64 {
        self.utilities[place]
    }

    /// The amounts of a place.
    pub(crate) fn uses(&self, place: usize) -> &[u64] {
        let width = self.resources.len();
        &self.uses[place * width..(place + 1) * width]
    }

    /// The capacities.
    pub(crate) fn capacities(&self) -> Vec<u64> {
        self.resources.iter().map(|one| one.capacity).collect()
    }

    /// What a choice (a set-point of each application, by its number there) is worth and takes. `None`: it is not one of this problem.
    #[must_use]
    pub fn of_choice(&self, choice: &[usize]) -> Option<Totals> {
        if choice.len() != self.applications.len() {
            return None;
        }
        let mut totals = Totals { utility: 0, used: vec![0; self.resources.len()] };
        for (application, &point) in choice.iter().enumerate() {
            let range = self.range(application);
            if point >= range.len() {
                return None;
            }
            // Sums of the largest fit, so these do.
            totals.utility += self.utility(range.start + point);
            for (used, one) in totals.used.iter_mut().zip(self.uses(range.start + point)) {
                *used += one;
            }
        }
        Some(totals)
    }

    /// Whether amounts are within every capacity.
    #[must_use]
    pub fn fits(&self, used: &[u64]) -> bool {
        used.iter().zip(&self.resources).all(|(used, resource)| *used <= resource.capacity)
    }
}

/// What a choice comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Totals {
    /// The sum of the utilities, in units of 10^-9.
    pub utility: u64,
    /// How much of each resource is used.
    pub used: Vec<u64>,
}

fn error(
    application: Option<usize>,
    set_point: Option<usize>,
    reason: impl Into<String>,
    remedy: &str,
) -> ProblemError {
    ProblemError { application, set_point, reason: reason.into(), remedy: remedy.to_owned() }
}

fn twice<'a>(names: impl Iterator<Item = &'a str>) -> Option<(usize, String)> {
    let mut seen = std::collections::HashSet::new();
    names.enumerate().find(|(_, name)| !seen.insert(*name)).map(|(at, name)| (at, name.to_owned()))
}

fn check_resources(resources: &[Resource]) -> Result<(), ProblemError> {
    if resources.is_empty() || resources.len() > MOST_RESOURCES {
        let reason = format!("there are {} resources", resources.len());
        return Err(error(None, None, reason, "give from 1 to 32"));
    }
    if let Some((_, name)) = twice(resources.iter().map(|one| one.name.as_str())) {
        return Err(error(None, None, format!("two resources are called `{name}`"), "rename one of them"));
    }
    Ok(())
}

fn check_applications(resources: &[Resource], applications: &[Application]) -> Result<(), ProblemError> {
    if applications.is_empty() {
        return Err(error(None, None, "there is no application", "add one"));
    }
    if let Some((at, name)) = twice(applications.iter().map(|one| one.name.as_str())) {
        let reason = format!("two applications are called `{name}`");
        return Err(error(Some(at), None, reason, "rename one of them"));
    }
    let mut utility = 0_u64;
    let mut sums = vec![0_u64; resources.len()];
    let add = |sum: u64, more: u64| sum.checked_add(more).filter(|sum| *sum <= LARGEST);
    for (at, application) in applications.iter().enumerate() {
        let points = &application.set_points;
        let Some(best) = points.iter().map(|point| point.utility).max() else {
            let reason = format!("`{}` has no set-point", application.name);
            return Err(error(Some(at), None, reason, "give at least one"));
        };
        if let Some((point, name)) = twice(points.iter().map(|point| point.name.as_str())) {
            let reason = format!("two set-points of `{}` are called `{name}`", application.name);
            return Err(error(Some(at), Some(point), reason, "give each a `name` of its own"));
        }
        if let Some(point) = points.iter().position(|point| point.uses.len() != resources.len()) {
            let reason = format!("a set-point of `{}` has no amount for each resource", application.name);
            return Err(error(Some(at), Some(point), reason, "give one for each"));
        }
        utility = add(utility, best).ok_or_else(|| {
            let reason = "the utilities of all applications add up to more than 63 bits hold";
            error(Some(at), None, reason, "lower the weights, or utilities: only their ratios matter")
        })?;
        for (resource, sum) in sums.iter_mut().enumerate() {
            let most = points.iter().map(|point| point.uses[resource]).max().unwrap_or(0);
            *sum = add(*sum, most).ok_or_else(|| {
                let name = &resources[resource].name;
                let reason = format!("the amounts of `{name}` add up to more than 63 bits hold");
                error(Some(at), None, reason, "state the amounts in a larger unit")
            })?;
        }
    }
    Ok(())
}

/// One resource; amounts and utilities that rise, the latter ever more slowly.
fn check_divisible(resources: &[Resource], applications: &[Application]) -> Result<(), ProblemError> {
    if resources.len() > 1 {
        let remedy = "leave `divisible` out, or keep one resource";
        return Err(error(None, None, "several resources cannot be divided between set-points", remedy));
    }
    for (at, application) in applications.iter().enumerate() {
        let points = &application.set_points;
        for (place, pair) in points.windows(2).enumerate() {
            if pair[1].uses[0] <= pair[0].uses[0] || pair[1].utility < pair[0].utility {
                let reason = format!("the amounts of `{}` do not rise with its utilities", application.name);
                let remedy = "of a divisible problem: list the set-points from the least to the most amount";
                return Err(error(Some(at), Some(place + 1), reason, remedy));
            }
        }
        for (place, three) in points.windows(3).enumerate() {
            let rise = |from: &SetPoint, to: &SetPoint| {
                (u128::from(to.utility - from.utility), u128::from(to.uses[0] - from.uses[0]))
            };
            let ((gain, more), (next_gain, next_more)) =
                (rise(&three[0], &three[1]), rise(&three[1], &three[2]));
            if next_gain * more > gain * next_more {
                let reason =
                    format!("behind this set-point the utility of `{}` rises faster", application.name);
                let remedy = "equal marginal utility is best for concave utilities alone: remove the set-point, or leave `divisible` out";
                return Err(error(Some(at), Some(place + 1), reason, remedy));
            }
        }
    }
    Ok(())
}
