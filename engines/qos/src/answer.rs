//! What an allocation comes to, and what is known about its distance from the best one.

use serde::Serialize;

/// Where an upper bound of the utility comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BoundKind {
    /// The best utility itself, proved in integers.
    Optimum,
    /// One resource: the majorants' upgrades with a fraction of the first that does not fit, rounded down.
    Fractional,
    /// Any number of resources: capacities at a price each, and for every application its best set-point at these prices, rounded down.
    Lagrangian,
    /// What the solver of integer programs says, in floating point: not proved.
    Solver,
}

impl BoundKind {
    /// The word in tables and JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            BoundKind::Optimum => "optimum",
            BoundKind::Fractional => "fractional",
            BoundKind::Lagrangian => "lagrangian",
            BoundKind::Solver => "solver",
        }
    }

    /// Whether it holds by integer arithmetic alone.
    #[must_use]
    pub fn is_proved(self) -> bool {
        self != BoundKind::Solver
    }
}

/// No allocation is worth more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Bound {
    /// Where it comes from.
    pub kind: BoundKind,
    /// In units of 10^-9.
    pub utility: u64,
}

/// How an allocation is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// One resource: the concave majorant, to the first upgrade that does not fit (variant 1).
    Majorant,
    /// One resource: the same, and an application whose upgrade does not fit stays while others go on (variant 2).
    MajorantDrop,
    /// Exact: dynamic programming over what is used.
    Dynamic,
    /// The mixed-integer program, by a solver.
    Mip,
    /// The mixed-integer program of the set-points that may still matter.
    FastMip,
    /// Upgrades by one compound resource, and exchanges.
    LocalSearch,
    /// One divisible resource: equal marginal utility.
    Marginal,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 7] = [
        Algorithm::Majorant,
        Algorithm::MajorantDrop,
        Algorithm::Dynamic,
        Algorithm::Mip,
        Algorithm::FastMip,
        Algorithm::LocalSearch,
        Algorithm::Marginal,
    ];

    /// The word on the command line and in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Algorithm::Majorant => "majorant",
            Algorithm::MajorantDrop => "majorant-drop",
            Algorithm::Dynamic => "dynamic",
            Algorithm::Mip => "mip",
            Algorithm::FastMip => "fast-mip",
            Algorithm::LocalSearch => "local-search",
            Algorithm::Marginal => "marginal",
        }
    }
}

/// An allocation within every capacity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// How it was found.
    pub algorithm: Algorithm,
    /// The set-point of each application, by its number there.
    pub choice: Vec<usize>,
    /// The sum of the utilities, in units of 10^-9.
    pub utility: u64,
    /// How much of each resource is used.
    pub used: Vec<u64>,
    /// Upper bounds, the least one that is proved first.
    pub bounds: Vec<Bound>,
    /// What the reader must know, as a time limit that was reached.
    pub notes: Vec<String>,
}

impl Answer {
    /// The least bound that is proved.
    #[must_use]
    pub fn bound(&self) -> Option<Bound> {
        self.bounds.iter().copied().find(|bound| bound.kind.is_proved())
    }

    /// Whether it is proved that no allocation is worth more.
    #[must_use]
    pub fn is_optimal(&self) -> bool {
        self.bound().is_some_and(|bound| bound.utility <= self.utility)
    }

    /// How far it may be below the best, in units of 10^-9: against the least bound that is proved.
    #[must_use]
    pub fn loss(&self) -> Option<u64> {
        self.bound().map(|bound| bound.utility.saturating_sub(self.utility))
    }
}

/// What became of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// An allocation.
    Found(Box<Answer>),
    /// Proved: no choice of set-points is within the capacities.
    NoneFits(String),
    /// Not decided, for this reason.
    Undecided(String),
}
