//! Q-RAM: which quality each application gets, so that the utility of all together is greatest.
//!
//! A [`Problem`] has resources with capacities and applications with set-points; a set-point takes an amount of each resource and has a utility.
//! [`allocate`] chooses one set-point for each application within the capacities. `docs/concepts/quality-of-service.md` has the formulas, and says which
//! algorithm is exact.
//!
//! Amounts and utilities are integers, utilities in units of 10^-9. What fits, what an allocation is worth, upper bounds, dominance and the order on a majorant are
//! decided in integers. In floating point are the prices that the local search looks for (any prices are right, good ones are better) and
//! the order in which it looks at steps of several applications; and the solver of integer programs, whose answers are checked in integers and whose
//! claim to be the best is told as the solver's.
//!
//! Source: Rajkumar 2002 (key rajkumar02), section 9; Rajkumar, Lee, Lehoczky and Siewiorek 1998 and Lee, Lehoczky, Siewiorek, Rajkumar and Hansen
//! 1999 are its sources for the algorithms, which it names and does not print.

mod again;
mod allocate;
mod answer;
mod candidates;
mod curve;
mod drawn;
mod dynamic;
pub mod file;
mod integer_program;
mod local_search;
mod majorant;
mod marginal;
mod prices;
mod problem;
mod start;

pub use again::{Again, Change, again};
pub use allocate::{Request, Unsuitable, allocate, divisible};
pub use answer::{Algorithm, Answer, Bound, BoundKind, Outcome};
pub use curve::{CurvePoint, curve};
pub use drawn::Recipe;
pub use integer_program::solver;
pub use local_search::LocalSearchOptions;
pub use marginal::Divided;
pub use problem::{
    Application, Class, MOST_RESOURCES, Problem, ProblemError, Resource, SetPoint, Totals, UTILITY,
};
