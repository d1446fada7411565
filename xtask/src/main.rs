//! Set-up, tests, checks and generated files: `cargo xtask VERB`.

mod arrows;
mod dist;
mod environment;
mod gallery;
mod left_behind;
mod limited;
mod long_functions;
mod module_cycles;
mod mutants;
mod python;
mod retry;
mod site;
mod step;
mod style;
mod test;

use std::process::ExitCode;

const USAGE: &str = "cargo xtask VERB

  test [--quick]   every test; makes its own Python environment, installs what it needs, says what it skips
  arrows           checks that crates depend only downwards, and that modules do not use each other in circles
  style            checks the lengths of files and functions, leftovers and phrases
  site             the documents as a site in target/site; looks up its links and searches it
  setup            only the installing part of `test`
  limited S PROGRAM ARGUMENTS...
                   runs a test program; ends it, with all that it started, after S seconds
  dist [--profile P]
                   a tarball and a Debian package, in target/package; P: `dist` (fat LTO) or `release`
  try-package      makes both with the profile `release`; installs, uses and removes them in a Debian of their own
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let root = step::repository_root();
    match words.as_slice() {
        ["test"] => test::run(&root, false),
        ["test", "--quick"] => test::run(&root, true),
        ["arrows"] => report(&[arrows::check(&root), module_cycles::check(&root)].concat()),
        ["style"] => report(&[style::check(&root), long_functions::check(&root)].concat()),
        ["limited", words @ ..] => limited::run(words),
        ["mutants", words @ ..] => mutants::run(&root, words),
        ["site"] => site::run(&root),
        ["dist"] => dist::run(&root, "dist"),
        ["dist", "--profile", profile @ ("dist" | "release")] => dist::run(&root, profile),
        ["try-package"] => dist::try_package(&root),
        ["setup"] => {
            let environment = environment::prepare(&root);
            for line in environment.missing() {
                println!("SKIPPED: {line}");
            }
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("{USAGE}  {}", mutants::USAGE);
            ExitCode::from(2)
        }
    }
}

fn report(findings: &[String]) -> ExitCode {
    for finding in findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
