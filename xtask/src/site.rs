//! `cargo xtask site`: the documents as a site that can be read from a folder, without a network.
//!
//! `docs/` is copied, with a page an example. mdBook makes the site; then every link and every anchor is looked up, and a
//! browser searches it.

mod generated;
mod links;
mod source;

use crate::environment;
use crate::step::{has, succeeds};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A word of one page alone, which the search has to find.
const RARE_WORD: &str = "hyperbolic";

/// The verb.
pub(crate) fn run(root: &Path) -> ExitCode {
    let mut missing = Vec::new();
    let Some(mdbook) = environment::mdbook(root, &mut missing) else {
        missing.iter().for_each(|reason| println!("SKIPPED: {reason}"));
        return ExitCode::SUCCESS;
    };
    let findings = match build(root, &mdbook) {
        Ok(site) => check(&site),
        Err(what) => vec![what],
    };
    for finding in &findings {
        println!("{finding}");
    }
    let failed = findings.len();
    println!(
        "site: {} passed, {failed} failed in {}",
        u8::from(failed == 0),
        root.join("target/site/index.html").display()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Builds the site; its folder.
pub(crate) fn build(root: &Path, mdbook: &Path) -> Result<PathBuf, String> {
    let source = root.join("target/site-source");
    let site = root.join("target/site");
    for folder in [&source, &site] {
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
    }
    source::copy(root, &source)?;
    generated::pages(root, &source)?;
    let mut command = Command::new(mdbook);
    command.arg("build").arg(&source).arg("--dest-dir").arg(&site);
    if succeeds(&mut command) { Ok(site) } else { Err("mdbook did not build the site".to_owned()) }
}

/// What is wrong with a site that was built.
fn check(site: &Path) -> Vec<String> {
    let mut findings = links::dead(site);
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| has(name));
    match browser {
        None => println!("SKIPPED: no chromium: the site was not searched"),
        Some(browser) => findings.extend(search(browser, site)),
    }
    findings
}

/// Opens the site as a file and has its own search look for a word.
fn search(browser: &str, site: &Path) -> Option<String> {
    let found = |word: &str| {
        let page = format!("file://{}/index.html?search={word}", site.display());
        let mut command = Command::new(browser);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=20000",
            "--dump-dom",
        ]);
        let output = command.arg(page).output().ok()?;
        let page = String::from_utf8_lossy(&output.stdout).into_owned();
        let list = page
            .split_once("id=\"mdbook-searchresults\"")
            .or_else(|| page.split_once("id=\"searchresults\""))?
            .1;
        Some(list.split("</ul>").next()?.matches("<a href=").count())
    };
    match (found(RARE_WORD), found("nosuchwordanywhere")) {
        (Some(some), Some(0)) if some > 0 => None,
        (some, none) => Some(format!(
            "search: {RARE_WORD} is found {some:?} times, a word that is nowhere {none:?} times"
        )),
    }
}
