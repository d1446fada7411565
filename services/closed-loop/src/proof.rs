//! What is proved before anything runs, and with which costs.

use crate::LoopError;
use crate::costs::{CostOrigin, CostSource};
use horolog_analysis::{Analysis, Options, analyze, resolve};
use horolog_measure::binomial::is_improbable;
use horolog_measure::machine::CostName;
use horolog_model::{PlatformCosts, System};
use horolog_time::Span;
use horolog_verify::{CostSeen, ProcessorVerification, Verification};

/// What was proved, about exactly which system.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The system with its priorities resolved and its costs filled in.
    pub system: System,
    /// Where the costs come from.
    pub costs: CostSource,
    /// The answer with the costs.
    pub analysis: Analysis,
    /// The answer with no cost at all, where any cost comes from a profile or was measured: `None` where they are the file's own,
    /// which are the user's model, or count as zero anyway.
    pub without_costs: Option<Box<Analysis>>,
}

/// Resolves priorities and analyses, with the costs and without them.
///
/// # Errors
/// Where the system lies outside every test's assumptions.
pub fn prove(system: &System, costs: CostSource) -> Result<Proof, LoopError> {
    let system = resolve(system)?;
    let mut options = Options::default();
    options.sensitivity = true;
    let analysis = analyze(&system, &options)?;
    let is_measured = costs.has(CostOrigin::Profile) || costs.has(CostOrigin::ThisMinute);
    let without_costs = is_measured.then(|| without_costs(&system)).transpose()?.map(Box::new);
    Ok(Proof { system, costs, analysis, without_costs })
}

/// The same priorities on a machine that costs nothing.
fn without_costs(system: &System) -> Result<Analysis, LoopError> {
    let nothing = Some(Span::ZERO);
    let free = PlatformCosts { context_switch: nothing, timer_interrupt: nothing, release_latency: nothing };
    Ok(analyze(&system.with_platform_costs(free), &Options::default())?)
}

/// Whether what the run shows of the machine's costs fits the profile that the proof took: a note of each cost that was above its
/// quantile so often that chance gives as much in less than one run of a million.
#[must_use]
pub fn misfit(costs: &CostSource, found: &Verification) -> Vec<String> {
    // Under normal scheduling releases and switches wait for other threads; a simulation draws them.
    if found.backend != "linux" {
        return Vec::new();
    }
    let seen = |of: fn(&ProcessorVerification) -> CostSeen| {
        let all = found.processors.iter().map(of);
        all.fold((0, 0), |(longer, seen), one| (longer + one.longer, seen + one.seen))
    };
    let releases: u64 = found.tasks.iter().map(|task| task.releases_noticed).sum();
    let late: u64 = found.tasks.iter().map(|task| task.releases_late).sum();
    let counted = |name| match name {
        CostName::ContextSwitch => (seen(|one| one.context_switches), "context switches took longer than"),
        CostName::TimerInterrupt => (seen(|one| one.timer_interrupts), "timer interrupts took longer than"),
        CostName::ReleaseLatency => ((late, releases), "releases were later than"),
    };
    let fits_not = |name: CostName| {
        let cost = costs.cost(name);
        let measured = cost.measured.as_ref().filter(|_| cost.origin == CostOrigin::Profile)?;
        let ((above, all), what) = counted(name);
        let (chance, of) = measured.quantile.above();
        is_improbable(all, above, chance, of).then(|| {
            format!(
                "this machine no longer fits its profile: {above} of {all} {what} {name}, {} = {}; `horolog measure machine` \
                 makes a new one",
                measured.quantile, measured.value
            )
        })
    };
    CostName::ALL.into_iter().filter_map(fits_not).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::tests::profile;
    use horolog_analysis::Schedulable;

    const FLAT: &str = "[system]\nname = \"one\"\n[[task]]\nname = \"detect\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n";

    fn read(text: &str) -> System {
        horolog_model::file::read(text, "one.toml", &[]).expect("valid").0
    }

    fn proved(text: &str) -> Proof {
        let system = read(text);
        let costs = CostSource::of_file(&system, "none is given");
        prove(&system, costs).expect("an answer")
    }

    #[test]
    fn a_tree_is_proved_like_any_other_and_one_with_modes_is_not() {
        let tree = "[[scheduler]]\nname = \"vision\"\norder = \"fixed-priority\"\npriority = 5\ntasks = [\"detect\"]\n";
        let flat_proof = proved(FLAT);
        assert_eq!(flat_proof.analysis.schedulable, Schedulable::Yes);
        assert_eq!(crate::bounds(&flat_proof).len(), 1);
        assert!(flat_proof.without_costs.is_none(), "nothing was measured");
        let proof = proved(&format!("{FLAT}{tree}"));
        assert_eq!(proof.analysis.schedulable, Schedulable::Yes);
        assert_eq!(crate::bounds(&proof).len(), 1);
        let proof = proved(&format!("{FLAT}{tree}[[mode]]\nname = \"same\"\n"));
        assert_eq!(proof.analysis.schedulable, Schedulable::Unknown);
        assert_eq!(crate::bounds(&proof).len(), 0);
    }

    /// The same with a measured context switch of this length.
    fn proved_with(switch_ns: u64) -> Proof {
        let mut system = read(FLAT);
        let mut costs = CostSource::of_file(&system, "none is given");
        let cost = &mut costs.costs[CostName::ContextSwitch as usize];
        (cost.value_ns, cost.origin) = (Span::from_ns(switch_ns), CostOrigin::ThisMinute);
        system = system.with_platform_costs(PlatformCosts {
            context_switch: Some(Span::from_ns(switch_ns)),
            ..PlatformCosts::default()
        });
        prove(&system, costs).expect("an answer")
    }

    #[test]
    fn the_proof_is_given_with_costs_and_without() {
        // Two switches a job and one that was under way: 1 ms + 3 s.
        let proof = proved_with(100_000);
        let without = proof.without_costs.expect("it was measured");
        assert_eq!(proof.analysis.tasks[0].response, Some(Span::from_ns(1_300_000)));
        assert_eq!(without.tasks[0].response, Some(Span::from_ns(1_000_000)));
        let proof = proved_with(4_000_000);
        // A bound with costs is sufficient and not exact: no proof of a miss.
        assert_eq!(proof.analysis.schedulable, Schedulable::Unknown);
        assert_eq!(proof.without_costs.expect("it was measured").schedulable, Schedulable::Yes);
    }

    /// What is said of a run in which so many of so many releases were late.
    fn said(late: u64, releases: u64, origin: CostOrigin, backend: &str) -> Option<String> {
        let system = read(FLAT);
        let mut costs = CostSource::of_file(&system, "");
        let cost = &mut costs.costs[CostName::ReleaseLatency as usize];
        cost.origin = origin;
        cost.measured = profile().cost(CostName::ReleaseLatency, 1).cloned();
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("simulated.trace");
        crate::simulated_run(&system, &horolog_sim::SimOptions::default(), Some(&trace))
            .expect("it is simulated");
        let proof = proved(FLAT);
        let mut found = crate::verify_trace(
            &proof,
            &trace,
            &horolog_verify::Options::default(),
            &crate::counterexample_beside(&trace),
        )
        .expect("it is verified");
        found.backend = backend.to_owned();
        found.tasks[0].releases_noticed = releases;
        found.tasks[0].releases_late = late;
        let notes = misfit(&costs, &found);
        assert!(notes.len() < 2, "{notes:?}");
        notes.into_iter().next()
    }

    /// What is said where the kernel's record shows so many timer interrupts and switches, so many of them longer than the profile's.
    fn said_of(name: CostName, longer: u64, seen: u64) -> Vec<String> {
        let system = read(FLAT);
        let mut costs = CostSource::of_file(&system, "");
        for cost in &mut costs.costs {
            cost.origin = CostOrigin::Profile;
            cost.measured = profile().cost(cost.name, 1).cloned();
        }
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("simulated.trace");
        crate::simulated_run(&system, &horolog_sim::SimOptions::default(), Some(&trace))
            .expect("it is simulated");
        let mut found = crate::verify_trace(
            &proved(FLAT),
            &trace,
            &horolog_verify::Options::default(),
            &crate::counterexample_beside(&trace),
        )
        .expect("it is verified");
        found.backend = "linux".to_owned();
        // Half of them on one processor.
        let mut other = found.processors[0].clone();
        for (processor, parts) in
            [(&mut found.processors[0], (seen / 2, longer)), (&mut other, (seen - seen / 2, 0))]
        {
            let counted = CostSeen { seen: parts.0, longer: parts.1, longest: Span::ZERO };
            match name {
                CostName::ContextSwitch => processor.context_switches = counted,
                CostName::TimerInterrupt => processor.timer_interrupts = counted,
                CostName::ReleaseLatency => {}
            }
        }
        found.processors.push(other);
        misfit(&costs, &found)
    }

    #[test]
    fn switches_and_timer_interrupts_are_held_against_the_profile_likewise() {
        // p99 of 1,000: 28 are above it in 1.3 of a million runs, 29 in 0.5.
        for (name, what) in [
            (CostName::ContextSwitch, "context switches took longer than context_switch, p99 = "),
            (CostName::TimerInterrupt, "timer interrupts took longer than timer_interrupt, p99 = "),
        ] {
            assert_eq!(said_of(name, 28, 1_000), [""; 0]);
            let notes = said_of(name, 29, 1_000);
            assert_eq!(notes.len(), 1, "{notes:?}");
            let told = format!("this machine no longer fits its profile: 29 of 1000 {what}");
            assert!(notes[0].starts_with(&told), "{notes:?}");
            assert_eq!(said_of(name, 1, 1), [""; 0], "never by one outlier");
        }
    }

    #[test]
    fn a_misfit_is_told_where_chance_gives_it_in_less_than_one_run_of_a_million() {
        // p99.9 of 1,000: nine are above it in 1.1 of a million runs, ten in 0.1.
        assert_eq!(said(9, 1_000, CostOrigin::Profile, "linux"), None);
        let note = said(10, 1_000, CostOrigin::Profile, "linux").expect("a misfit");
        assert!(note.starts_with("this machine no longer fits its profile: 10 of 1000 releases were later than release_latency, p99.9 = 3 us"), "{note}");
        assert_eq!(said(1, 1, CostOrigin::Profile, "linux"), None, "never by one outlier");
        for (origin, backend) in [
            (CostOrigin::File, "linux"),
            (CostOrigin::ThisMinute, "linux"),
            (CostOrigin::Profile, "linux-best-effort"),
        ] {
            assert_eq!(said(1_000, 1_000, origin, backend), None);
        }
    }
}
