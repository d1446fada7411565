//! What one purpose needs of a machine, and what to do where it is missing, the most effective first.

use super::{Doctor, State};
use serde::Serialize;

/// What a machine is examined for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// Real threads in real scheduling classes.
    Run,
    /// Proofs with this machine's costs.
    Analyze,
    /// The kernel's events beside those of a program.
    Record,
    /// Proof, run, record and verification.
    Loop,
}

/// What is needed for which question of a verdict; the most effective first. The first group are facts that have to be there, all of them.
type Needs = (&'static [&'static str], &'static [(&'static str, &'static str)]);

impl Purpose {
    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Purpose::Run => "run",
            Purpose::Analyze => "analyze",
            Purpose::Record => "record",
            Purpose::Loop => "loop",
        }
    }

    fn needs(self) -> Needs {
        match self {
            Purpose::Run => (
                &["sched-fifo", "locked-memory"],
                &[
                    ("sched-fifo", "deadlines"),
                    ("locked-memory", "deadlines"),
                    ("file-capabilities", "deadlines"),
                    ("clean", "deadlines"),
                    ("conflicts", "deadlines"),
                    ("allowed-cpus", "deadlines"),
                    ("rt-throttling", "deadlines"),
                    ("cpus", "deadlines"),
                    ("high-resolution-timers", "deadlines"),
                    ("preemption-model", "deadlines"),
                    ("isolated-cpus", "deadlines"),
                    ("cpu-dma-latency", "deadlines"),
                    ("frequency-governor", "model"),
                    ("no-steal", "deadlines"),
                    ("bare-metal", "deadlines"),
                ],
            ),
            // A proof needs no right; what follows makes its costs those of this machine.
            Purpose::Analyze => (
                &[],
                &[
                    ("machine-profile", "proof"),
                    ("sched-fifo", "proof"),
                    ("high-resolution-timers", "proof"),
                    ("clocksource", "proof"),
                    ("frequency-governor", "proof"),
                    ("no-steal", "proof"),
                    ("bare-metal", "proof"),
                ],
            ),
            Purpose::Record => (
                &["kernel-recorder"],
                &[
                    ("kernel-recorder", "model"),
                    ("file-capabilities", "model"),
                    ("clean", "model"),
                    ("interrupt-vectors", "model"),
                    ("cpus", "model"),
                    ("tsc", "model"),
                    ("fair-server", "model"),
                ],
            ),
            Purpose::Loop => (
                &["sched-fifo", "locked-memory"],
                &[
                    ("sched-fifo", "deadlines"),
                    ("locked-memory", "deadlines"),
                    ("file-capabilities", "deadlines"),
                    ("clean", "deadlines"),
                    ("conflicts", "deadlines"),
                    ("kernel-recorder", "model"),
                    ("machine-profile", "proof"),
                    ("allowed-cpus", "deadlines"),
                    ("rt-throttling", "deadlines"),
                    ("cpus", "deadlines"),
                    ("high-resolution-timers", "deadlines"),
                    ("preemption-model", "deadlines"),
                    ("isolated-cpus", "deadlines"),
                    ("frequency-governor", "model"),
                    ("interrupt-vectors", "model"),
                    ("fair-server", "model"),
                    ("no-steal", "deadlines"),
                    ("bare-metal", "deadlines"),
                ],
            ),
        }
    }

    /// The facts that it looks at, the most effective first.
    pub fn facts(self) -> impl Iterator<Item = &'static str> {
        self.needs().1.iter().map(|(fact, _)| *fact)
    }
}

/// What is to be done for a purpose.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Remedy {
    /// The fact that is missing.
    pub fact: &'static str,
    /// Which question of a verdict hangs on it: `proof`, `model` or `deadlines`.
    pub question: &'static str,
    /// Whether the purpose is impossible without it.
    pub required: bool,
    /// What to do.
    pub remedy: String,
}

/// Whether a machine allows a purpose.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Suitability {
    /// The purpose.
    pub purpose: Purpose,
    /// Whether it is possible.
    pub possible: bool,
    /// What to do, the most effective first.
    pub remedies: Vec<Remedy>,
}

impl Doctor {
    /// Whether this machine allows the purpose, and what would help.
    #[must_use]
    pub fn suits(&self, purpose: Purpose) -> Suitability {
        let (required, needs) = purpose.needs();
        let has = |name: &&str| {
            self.fact(name).is_some_and(|fact| matches!(fact.state, State::Yes | State::Limited))
        };
        let possible = required.iter().all(has);
        let remedies = needs.iter().filter_map(|(name, question)| {
            let fact = self.fact(name).filter(|fact| fact.state != State::Yes)?;
            // Who has all the rights needs none from the program file.
            let is_vain = *name == "file-capabilities" && possible;
            let remedy = fact.remedy.clone().filter(|_| !is_vain)?;
            let required = required.contains(name) && !has(name);
            Some(Remedy { fact: fact.name, question, required, remedy })
        });
        let mut remedies: Vec<Remedy> = remedies.collect();
        // What makes it possible at all comes before what makes it better.
        remedies.sort_by_key(|remedy| !remedy.required);
        Suitability { purpose, possible, remedies }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{Fact, examine};

    const ALL: [Purpose; 4] = [Purpose::Run, Purpose::Analyze, Purpose::Record, Purpose::Loop];

    fn doctor(states: &[(&'static str, State)]) -> Doctor {
        let fact = |(name, state): &(&'static str, State)| {
            Fact::new(name, "a test", *state, "found").remedy(format!("mend {name}"))
        };
        Doctor { schema: Doctor::SCHEMA, facts: states.iter().map(fact).collect() }
    }

    #[test]
    fn each_need_is_a_fact_of_the_examination() {
        let found = examine();
        for purpose in ALL {
            for name in purpose.facts() {
                // The command adds these two.
                let is_added = ["conflicts", "machine-profile"].contains(&name);
                assert!(is_added || found.fact(name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn what_makes_it_possible_comes_first() {
        let found = doctor(&[
            ("bare-metal", State::No),
            ("sched-fifo", State::Limited),
            ("clean", State::No),
            ("locked-memory", State::No),
            ("file-capabilities", State::No),
        ]);
        let run = found.suits(Purpose::Run);
        assert!(!run.possible);
        let told: Vec<(&str, bool)> = run.remedies.iter().map(|one| (one.fact, one.required)).collect();
        let expected = [
            ("locked-memory", true),
            ("sched-fifo", false),
            ("file-capabilities", false),
            ("clean", false),
            ("bare-metal", false),
        ];
        assert_eq!(told, expected);
        assert_eq!(run.remedies[0].remedy, "mend locked-memory");
        let rights = [("sched-fifo", State::Yes), ("file-capabilities", State::No)];
        for (memory, possible) in [(State::Limited, true), (State::No, false), (State::Unknown, false)] {
            let found = doctor(&[&rights[..], &[("locked-memory", memory)]].concat()).suits(Purpose::Loop);
            assert_eq!(found.possible, possible, "{memory:?}");
            let told = found.remedies.iter().any(|one| one.fact == "file-capabilities");
            assert_eq!(told, !possible, "who may do everything needs nothing of the program file");
        }
    }

    #[test]
    fn a_recorder_that_works_is_required_and_a_proof_needs_no_right() {
        let found = doctor(&[("kernel-recorder", State::Yes), ("sched-fifo", State::No)]);
        let record = found.suits(Purpose::Record);
        assert!(record.possible && record.remedies.is_empty(), "{record:?}");
        // Tracefs alone records nothing.
        let none = doctor(&[("tracefs", State::Yes), ("kernel-recorder", State::No)]).suits(Purpose::Record);
        assert!(!none.possible && none.remedies.iter().all(|one| one.required && one.question == "model"));
        let analyze = found.suits(Purpose::Analyze);
        assert!(analyze.possible);
        assert_eq!((analyze.remedies[0].fact, analyze.remedies[0].question), ("sched-fifo", "proof"));
    }
}
