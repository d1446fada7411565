//! Failed Rust tests, once more and alone.
//!
//! Many tests run real-time threads, and on a shared virtual machine the host may stop all of it for longer than any
//! margin, or other tests may take the processors away. What failed beside other tests and passes alone is reported
//! as flaky, by name and counted; what fails again has failed (decision 0004).

use crate::step::Outcome;

/// The library of Python cannot be linked as a program of tests, and `--lib` asks for one, whatever its manifest says.
const WITHOUT_TESTS: &str = "horolog-python";

/// A test binary in which something failed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct FailedTarget {
    /// Its package.
    pub(crate) package: String,
    /// The words that choose it among cargo's targets: `--test NAME`, `--lib`, `--doc`, ….
    pub(crate) target: Vec<String>,
    /// The failed tests; none where the binary itself broke off, or could not say.
    pub(crate) tests: Vec<String>,
}

/// Reads the failures out of the output of `cargo test --no-fail-fast`, line by line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    listing: bool,
    names: Vec<String>,
    targets: Vec<FailedTarget>,
    /// How many failed by cargo's own closing count.
    announced: Option<usize>,
}

impl Failures {
    /// Takes the next line.
    pub(crate) fn take(&mut self, line: &str) {
        let word = line.trim_start();
        if line == "failures:" {
            // The second such list of a binary holds the names; the first one the captured output.
            self.listing = true;
            self.names.clear();
        } else if word.starts_with("Running ") || word.starts_with("Doc-tests ") {
            self.listing = false;
            self.names.clear();
        } else if line.starts_with("test result:") {
            self.listing = false;
        } else if let Some((_, rest)) = line.split_once("failed, to rerun pass `") {
            self.close(rest.trim_end().trim_end_matches('`'));
        } else if let Some(count) = line
            .strip_prefix("error: ")
            .and_then(|rest| rest.split_once(" target").filter(|(_, tail)| tail.contains(" failed:")))
        {
            self.announced = count.0.parse().ok();
        } else if self.listing && line.starts_with("    ") && !line.starts_with("     ") {
            self.names.push(line.trim().to_owned());
        }
    }

    fn close(&mut self, selection: &str) {
        let words: Vec<&str> = selection.split_whitespace().collect();
        if let ["-p", package, target @ ..] = words.as_slice() {
            self.targets.push(FailedTarget {
                package: (*package).to_owned(),
                target: target.iter().map(|&word| word.to_owned()).collect(),
                tests: std::mem::take(&mut self.names),
            });
        }
        self.listing = false;
        self.names.clear();
    }

    /// The failed targets; `None` where the output does not name each of them, or nothing got as far as running.
    pub(crate) fn targets(&self) -> Option<&[FailedTarget]> {
        (!self.targets.is_empty() && self.announced == Some(self.targets.len())).then_some(&self.targets)
    }
}

impl FailedTarget {
    /// The words for cargo that run what failed here and nothing beside it.
    ///
    /// The whole workspace stays selected, so that nothing is built anew; names of tests are
    /// matched whole.
    pub(crate) fn words(&self) -> Vec<String> {
        let is_doc = self.target.iter().any(|word| word == "--doc");
        let mut words = vec!["test".to_owned()];
        if is_doc {
            words.extend(["-p".to_owned(), self.package.clone()]);
        } else {
            words.push("--workspace".to_owned());
        }
        words.extend(self.target.iter().cloned());
        if self.target.iter().any(|word| word == "--lib") {
            words.extend(["--exclude", WITHOUT_TESTS].map(str::to_owned));
        }
        words.extend(["--no-fail-fast", "--", "--test-threads=1", "--nocapture"].map(str::to_owned));
        // Names of documentation tests hold blanks, which rustdoc does not pass on whole.
        if !is_doc && !self.tests.is_empty() {
            words.push("--exact".to_owned());
            words.extend(self.tests.iter().cloned());
        }
        words
    }

    /// What the summary calls its failures.
    pub(crate) fn names(&self) -> Vec<String> {
        let place = format!("{} {}", self.package, self.target.join(" "));
        if self.tests.is_empty() {
            return vec![place];
        }
        self.tests.iter().map(|test| format!("{place} {test}")).collect()
    }
}

/// What a repetition says of a first outcome: each failed target with the outcome of running it alone.
pub(crate) fn settle(first: &mut Outcome, repeated: &[(FailedTarget, Outcome, Failures)]) {
    let mut left = 0;
    first.tail.clear();
    for (target, again, failures) in repeated {
        if !again.succeeded {
            first.tail.push_back(format!("-- {}", again.name));
            first.tail.extend(again.tail.iter().cloned());
        }
        let ran = again.passed + again.failed >= target.tests.len().max(1) as u64;
        let failed_again: Vec<&String> = failures.targets.iter().flat_map(|target| &target.tests).collect();
        if !again.succeeded && failed_again.is_empty() || !ran {
            left += target.tests.len().max(1) as u64;
            continue;
        }
        for (test, name) in target.tests.iter().zip(target.names()) {
            if failed_again.contains(&test) {
                left += 1;
            } else {
                first.flaky.push(name);
            }
        }
        if target.tests.is_empty() {
            if again.succeeded {
                first.flaky.extend(target.names());
            } else {
                left += 1;
            }
        }
    }
    let healed = first.failed.saturating_sub(left);
    first.failed = left;
    first.passed += healed;
    first.succeeded = left == 0;
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running unittests src/lib.rs (target/debug/deps/horolog_exec-1)

running 3 tests
test agent::tests::yields ... ok
test agent::tests::waits ... FAILED
test agent::tests::asks ... FAILED

failures:

---- agent::tests::waits stdout ----
    not_a_name

failures:
    agent::tests::waits
    agent::tests::asks

test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

error: test failed, to rerun pass `-p horolog-exec --lib`
     Running tests/real.rs (target/debug/deps/real-1)

running 1 test
error: test failed, to rerun pass `-p horolog-exec --test real`

Caused by:
  process didn't exit successfully: `target/debug/deps/real-1` (signal: 11, SIGSEGV: invalid memory reference)
   Doc-tests horolog_time

failures:
    core/time/src/span.rs - span::Span (line 12)

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s

error: doctest failed, to rerun pass `-p horolog-time --doc`
error: 3 targets failed:
    `-p horolog-exec --lib`
    `-p horolog-exec --test real`
    `-p horolog-time --doc`
";

    fn read(output: &str) -> Failures {
        let mut failures = Failures::default();
        output.lines().for_each(|line| failures.take(line));
        failures
    }

    fn outcome(passed: u64, failed: u64, succeeded: bool) -> Outcome {
        Outcome { passed, failed, succeeded, ..Outcome::new("tests") }
    }

    #[test]
    fn every_failed_test_is_found_with_its_target() {
        let failures = read(OUTPUT);
        let targets = failures.targets().expect("three");
        assert_eq!(targets[0].tests, ["agent::tests::waits", "agent::tests::asks"]);
        let words = targets[0].words().join(" ");
        assert_eq!(
            words,
            "test --workspace --lib --exclude horolog-python --no-fail-fast -- --test-threads=1 --nocapture --exact \
             agent::tests::waits agent::tests::asks"
        );
        assert_eq!(targets[1].names(), ["horolog-exec --test real"]);
        assert_eq!(
            targets[1].words().join(" "),
            "test --workspace --test real --no-fail-fast -- --test-threads=1 --nocapture"
        );
        assert_eq!(
            targets[2].words().join(" "),
            "test -p horolog-time --doc --no-fail-fast -- --test-threads=1 --nocapture"
        );
    }

    #[test]
    fn a_build_that_failed_has_nothing_to_repeat() {
        assert_eq!(read("error: could not compile `x`").targets(), None);
        // A target that cargo counts and the output does not name.
        assert_eq!(read(&OUTPUT.replace("3 targets", "4 targets")).targets(), None);
    }

    #[test]
    fn only_what_fails_again_has_failed() {
        let targets = read(OUTPUT).targets().expect("three").to_vec();
        let mut first = outcome(10, 3, false);
        let again = read(
            "failures:\n    agent::tests::asks\n\ntest result: FAILED.\nerror: test failed, to rerun pass \
             `-p horolog-exec --lib`\nerror: 1 target failed:",
        );
        let repeated = [
            (targets[0].clone(), outcome(1, 1, false), again),
            (targets[1].clone(), outcome(4, 0, true), Failures::default()),
            (targets[2].clone(), outcome(2, 0, true), Failures::default()),
        ];
        settle(&mut first, &repeated);
        assert!(!first.succeeded);
        assert_eq!((first.passed, first.failed), (12, 1));
        assert_eq!(
            first.flaky,
            [
                "horolog-exec --lib agent::tests::waits",
                "horolog-exec --test real",
                "horolog-time --doc core/time/src/span.rs - span::Span (line 12)"
            ]
        );
    }

    #[test]
    fn a_repetition_that_ran_nothing_heals_nothing() {
        let targets = read(OUTPUT).targets().expect("three").to_vec();
        let mut first = outcome(10, 3, false);
        settle(&mut first, &[(targets[0].clone(), outcome(0, 0, true), Failures::default())]);
        assert!(!first.succeeded && first.flaky.is_empty());
        assert_eq!(first.failed, 2);
    }
}
