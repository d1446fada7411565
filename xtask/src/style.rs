//! The style guide as a check: file lengths, leftovers, paths of a single machine.

use std::path::Path;
use std::process::Command;

const LONGEST_FILE: usize = 800;

/// The files that git tracks under these patterns.
pub(crate) fn tracked(root: &Path, patterns: &[&str]) -> Vec<String> {
    let output = Command::new("git").arg("ls-files").arg("--").args(patterns).current_dir(root).output();
    output.map_or_else(
        |_| Vec::new(),
        |o| String::from_utf8_lossy(&o.stdout).lines().map(str::to_owned).collect(),
    )
}

/// What breaks the style guide, in words.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut findings = Vec::new();
    let files = tracked(root, &["*.rs", "*.ts", "*.py", "*.c", "*.h"]);
    if files.is_empty() {
        findings.push("style: git lists no source file; the check saw nothing".to_owned());
    }
    // Spelled in two halves so that this file does not find itself.
    let leftovers =
        [concat!("todo", "!("), concat!("unimplemented", "!("), concat!("FIX", "ME"), concat!("dbg", "!(")];
    for path in files {
        let Ok(text) = std::fs::read_to_string(root.join(&path)) else { continue };
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            findings.push(format!("style: {path} has {lines} lines, more than {LONGEST_FILE}: split it"));
        }
        for word in leftovers {
            if let Some(at) = text.lines().position(|line| line.contains(word)) {
                findings.push(format!("style: {path}:{} holds `{word}`", at + 1));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_follows_the_style_guide() {
        assert_eq!(super::check(&crate::step::repository_root()), Vec::<String>::new());
    }
}
