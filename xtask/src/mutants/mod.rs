//! `cargo xtask mutants NAME`: do the tests notice a small fault?
//!
//! All faults of a sample are built in at once, each behind a switch, so that the crate is built once and not once a fault
//! (decision 0006). The record is written to `docs/mutants/`.

mod build;
mod find;
mod journal;
mod judge;
mod record;
mod schema;
mod table;

use build::Placed;
use find::Candidate;
use journal::{Journal, Outcome};
use judge::Verdict;
use record::{Record, Survivor};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::process::{Command, ExitCode};
use table::Subject;

/// Words for the usage.
pub(crate) const USAGE: &str = "mutants NAME [--sample N] [--seed S] [--again | --open | --resume] [--jobs J] [--minutes M]
                   puts N small faults (300) into sched, analysis, certificate, verify or guardian and says which
                   ones no test notices (reference: those of sched, by that comparison alone);
                   --again: only those that the record lists; --open: of them those without a reason; --minutes: ends
                   after so long;
                   --resume: goes on with the sample where the last run ended; see docs/mutants.md
  mutants page
                   writes docs/mutants.md anew from the records, after a reason was put into one";

struct Options {
    sample: usize,
    seed: u64,
    again: bool,
    /// Of those that the record lists only the open ones; `again` is set, too.
    open: bool,
    /// What was judged before is not judged again while the sources are the same.
    resume: bool,
    jobs: Option<usize>,
    /// How long faults are judged; what was judged by then is the sample.
    minutes: Option<u64>,
}

/// The verb.
pub(crate) fn run(root: &Path, words: &[&str]) -> ExitCode {
    let done = match (words, parse(words)) {
        (["page"], _) => record::write_page(root),
        (_, Some((subject, options))) => measure(root, subject, &options),
        (_, None) => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(words: &[&str]) -> Option<(&'static Subject, Options)> {
    let [name, rest @ ..] = words else { return None };
    let mut options =
        Options { sample: 300, seed: 1, again: false, open: false, resume: false, jobs: None, minutes: None };
    let mut rest = rest.iter();
    while let Some(&word) = rest.next() {
        match word {
            "--sample" => options.sample = rest.next()?.parse().ok()?,
            "--seed" => options.seed = rest.next()?.parse().ok()?,
            "--jobs" => options.jobs = Some(rest.next()?.parse().ok()?),
            "--minutes" => options.minutes = Some(rest.next()?.parse().ok()?),
            "--again" => options.again = true,
            "--open" => (options.again, options.open) = (true, true),
            "--resume" => options.resume = true,
            _ => return None,
        }
    }
    Some((table::subject(name)?, options))
}

/// Takes `count` of `items`, each equally likely, by the seed (splitmix64 and Fisher-Yates).
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    };
    for last in (1..items.len()).rev() {
        items.swap(last, (next() % (last as u64 + 1)) as usize);
    }
}

fn measure(root: &Path, subject: &Subject, options: &Options) -> Result<(), String> {
    let mut faults = build::all_faults(root, subject)?;
    let mut of_sources = DefaultHasher::new();
    faults.iter().for_each(|fault| (&fault.file, &fault.text, fault.candidate.line).hash(&mut of_sources));
    let of_sources = of_sources.finish();
    let known = record::read(root, subject.name);
    println!("{}: {} faults in all", subject.name, faults.len());
    // What is not judged again stays as it is, where the fault is still there.
    let mut kept: Vec<Survivor> = Vec::new();
    if options.again {
        let survivors = known.as_ref().map(|record| record.survivors.clone()).unwrap_or_default();
        let listed = |fault: &Placed| survivors.iter().find(|one| one.is_same(&Survivor::of(fault)));
        kept.extend(faults.iter().filter_map(listed).cloned());
        faults.retain(|fault| listed(fault).is_some_and(|one| !options.open || one.why.is_empty()));
    } else {
        shuffle(&mut faults, options.seed);
        // Some do not compile.
        faults.truncate(options.sample + options.sample / 4 + 10);
    }
    let faults: BTreeMap<u32, Placed> = (1..).zip(faults).collect();
    let copy = root.join("target/mutants").join(subject.name).join("tree");
    let journal = copy.with_file_name("judged");
    let journal = Journal::open(&journal, of_sources, options.resume || options.again)?;
    let outcome = |number: &u32| faults.get(number).and_then(|fault| journal.outcome(fault));
    build::copy_tree(root, &copy, subject, &faults)?;
    println!("building {} faults", faults.len());
    let mut refused: BTreeSet<u32> =
        faults.keys().copied().filter(|number| outcome(number) == Some(Outcome::Refused)).collect();
    let programs = build::build(root, &copy, subject, &faults, &mut refused)?;
    for number in &refused {
        journal.note(&faults[number], Outcome::Refused);
    }
    judge::clean_up();
    let groups = judge::baseline(&programs, subject.is_real)?;
    for group in &groups {
        println!("  {:>6} ms  {}", group.took().as_millis(), group.name());
    }
    let mut numbers: Vec<u32> = faults.keys().copied().filter(|number| !refused.contains(number)).collect();
    if !options.again {
        numbers.truncate(options.sample);
    }
    let jobs = options.jobs.unwrap_or(if subject.is_real { 1 } else { 2 });
    let mut verdicts = BTreeMap::new();
    if !options.again {
        verdicts.extend(numbers.iter().filter_map(|number| match outcome(number)? {
            Outcome::Judged(verdict) => Some((*number, verdict)),
            Outcome::Refused => None,
        }));
        numbers.retain(|number| !verdicts.contains_key(number));
        println!("{} judged before", verdicts.len());
    }
    let note = |number: u32, verdict| {
        let fault = &faults[&number];
        journal.note(fault, Outcome::Judged(verdict));
        if verdict == Verdict::Survived {
            let Candidate { line, function, what, .. } = &fault.candidate;
            println!("  survived: {}:{line} {function}: {what} ({})", fault.file, fault.text);
        }
    };
    verdicts.extend(judge::judge(&groups, &numbers, jobs, subject.is_real, options.minutes, &note));
    let mut survivors: Vec<Survivor> = verdicts
        .iter()
        .filter(|(_, verdict)| **verdict == Verdict::Survived)
        .map(|(number, _)| Survivor::of(&faults[number]))
        .collect();
    kept.retain(|old| !verdicts.keys().any(|number| old.is_same(&Survivor::of(&faults[number]))));
    survivors.extend(kept);
    survivors.sort();
    for one in &mut survivors {
        let old = known.iter().flat_map(|record| &record.survivors).find(|old| old.is_same(one));
        one.why = old.map(|old| old.why.clone()).unwrap_or_default();
    }
    let too_long = verdicts.values().filter(|&&verdict| verdict == Verdict::TooLong).count();
    let commit = build::output(Command::new("git").args(["rev-parse", "--short", "HEAD"]).current_dir(root))?;
    let mut record = Record {
        commit: commit.trim().to_owned(),
        seed: options.seed,
        viable: verdicts.len(),
        too_long,
        survivors,
        tests: subject.stages.iter().map(|words| words.join(" ")).collect(),
    };
    if let (true, Some(known)) = (options.again, known) {
        record.viable = known.viable;
        record.seed = known.seed;
        record.too_long += known.too_long;
    }
    println!(
        "{} judged, {} survived, {} did not compile",
        verdicts.len(),
        record.survivors.len(),
        refused.len()
    );
    record::write(root, subject.name, &record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_depends_on_the_seed_alone() {
        let draw = |seed| {
            let mut items: Vec<u32> = (0..100).collect();
            shuffle(&mut items, seed);
            items
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let mut sorted = draw(7);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn words_are_read_and_wrong_ones_refused() {
        let (subject, options) = parse(&["verify", "--sample", "20", "--seed", "3"]).expect("right");
        assert_eq!((subject.name, options.sample, options.seed, options.again), ("verify", 20, 3, false));
        let (_, options) = parse(&["verify", "--open"]).expect("right");
        assert!(options.again && options.open);
        for wrong in [&["nothing"][..], &[], &["verify", "--sample"], &["verify", "--sample", "x"]] {
            assert!(parse(wrong).is_none(), "{wrong:?}");
        }
    }
}
