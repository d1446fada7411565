//! The arrows between rooms: a crate depends only on layers below its own, or on lower crates of its own layer.

use std::path::Path;
use std::process::Command;

/// Layers from the top; within a layer, crates from the top. `testkit` and `xtask` stand beside. `time` has no
/// dependency at all, so that the floor may use it.
const ORDER: [&[&str]; 5] = [
    &[
        "horolog",
        "horolog-capi",
        "horolog-tracer",
        "horolog-tracing",
        "horolog-locks",
        "horolog-python",
        "horolog-example-rust-api",
        "horolog-example-tracing",
    ],
    &["horolog-closed-loop", "horolog-experiments", "horolog-recording", "horolog-daemon", "horolog-netr"],
    &[
        "horolog-interchange",
        "horolog-sweep",
        "horolog-report",
        "horolog-reserve",
        "horolog-disk",
        "horolog-verify",
        "horolog-measure",
        "horolog-exec",
        "horolog-sim",
        "horolog-analysis",
        "horolog-certificate",
        "horolog-qos",
    ],
    &["horolog-trace", "horolog-sched", "horolog-draw", "horolog-model", "horolog-probe"],
    &["horolog-sys", "horolog-time"],
];

/// Pairs that no order may ever allow, in ordinary, build or development dependencies alike.
const NEVER: [(&str, &str); 6] = [
    ("horolog-analysis", "horolog-sim"),
    ("horolog-sim", "horolog-analysis"),
    ("horolog-sched", "horolog-sys"),
    ("horolog-certificate", "horolog-analysis"),
    ("horolog-verify", "horolog-analysis"),
    ("horolog-exec", "horolog-analysis"),
];

/// Only these engines may talk to the operating system.
const MAY_USE_SYS: [&str; 12] = [
    "horolog",
    "horolog-capi",
    "horolog-tracer",
    "horolog-locks",
    "horolog-recording",
    "horolog-daemon",
    "horolog-netr",
    "horolog-probe",
    "horolog-closed-loop",
    "horolog-experiments",
    "horolog-exec",
    "horolog-measure",
];

/// Crates whose code may contain `unsafe`.
const MAY_BE_UNSAFE: [&str; 7] =
    ["floor/sys", "core/trace", "core/probe", "front/capi", "front/tracer", "front/locks", "front/python"];

/// One dependency of a workspace crate on another.
struct Arrow {
    from: String,
    to: String,
    development: bool,
}

/// Every arrow that points the wrong way, in words; empty when all is well.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let arrows = match arrows(root) {
        Ok(arrows) => arrows,
        Err(reason) => return vec![format!("arrows: cannot read the crate graph: {reason}")],
    };
    let mut findings = Vec::new();
    if arrows.len() < 10 {
        findings.push(format!("arrows: only {} dependencies found; the check saw too little", arrows.len()));
    }
    for arrow in &arrows {
        findings.extend(judge(arrow));
    }
    findings.extend(unsafe_outside(root));
    findings
}

fn judge(arrow: &Arrow) -> Option<String> {
    let Arrow { from, to, development } = arrow;
    if NEVER.contains(&(from.as_str(), to.as_str())) && !(*development && from == "horolog-verify") {
        return Some(format!("arrows: {from} must never depend on {to}"));
    }
    if to == "horolog-python" {
        return Some(format!("arrows: nothing depends on {to}"));
    }
    if *development || beside(from) {
        return None;
    }
    if beside(to) {
        return Some(format!("arrows: {from} depends on {to}, which is for development only"));
    }
    if to == "horolog-sys" && !MAY_USE_SYS.contains(&from.as_str()) {
        return Some(format!("arrows: {from} must not talk to the operating system ({to})"));
    }
    match (rank(from), rank(to)) {
        (Some(from_rank), Some(to_rank)) if from_rank < to_rank => None,
        (Some(_), Some(_)) => Some(format!("arrows: {from} stands below {to} and must not depend on it")),
        (None, _) => Some(format!("arrows: {from} has no place in xtask/src/arrows.rs: give it one")),
        (_, None) => Some(format!("arrows: {to} has no place in xtask/src/arrows.rs: give it one")),
    }
}

fn beside(name: &str) -> bool {
    matches!(name, "xtask" | "horolog-testkit")
}

fn rank(name: &str) -> Option<usize> {
    ORDER.iter().copied().flatten().position(|&known| known == name)
}

fn arrows(root: &Path) -> Result<Vec<Arrow>, String> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let graph: serde_json::Value = serde_json::from_slice(&output.stdout).map_err(|e| e.to_string())?;
    let packages = graph["packages"].as_array().ok_or("no packages")?;
    let ours: Vec<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let mut arrows = Vec::new();
    for package in packages {
        let from = package["name"].as_str().unwrap_or_default();
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = dependency["name"].as_str().unwrap_or_default();
            if ours.contains(&to) {
                let development = dependency["kind"] == "dev";
                arrows.push(Arrow { from: from.to_owned(), to: to.to_owned(), development });
            }
        }
    }
    Ok(arrows)
}

/// `unsafe` allowed anywhere but in the crates that may hold it.
fn unsafe_outside(root: &Path) -> Vec<String> {
    crate::style::tracked(root, &["*.rs"])
        .into_iter()
        .filter(|path| !MAY_BE_UNSAFE.iter().any(|prefix| path.starts_with(prefix)))
        .filter(|path| {
            !path.contains("/tests/") && !path.starts_with("bench/") && !path.starts_with("xtask/")
        })
        .filter(|path| {
            std::fs::read_to_string(root.join(path)).is_ok_and(|text| text.contains("allow(unsafe_code"))
        })
        .map(|path| format!("arrows: {path} allows unsafe code; only {MAY_BE_UNSAFE:?} may"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: &str, to: &str, development: bool) -> Arrow {
        Arrow { from: from.to_owned(), to: to.to_owned(), development }
    }

    #[test]
    fn the_graph_points_downwards() {
        assert_eq!(check(&crate::step::repository_root()), Vec::<String>::new());
    }

    #[test]
    fn wrong_arrows_are_found() {
        assert!(judge(&arrow("horolog-sim", "horolog-analysis", false)).is_some());
        assert!(judge(&arrow("horolog-analysis", "horolog-sim", true)).is_some());
        assert!(judge(&arrow("horolog-model", "horolog-sched", false)).is_some());
        assert!(judge(&arrow("horolog-sim", "horolog-sys", false)).is_some());
        assert!(judge(&arrow("horolog-sim", "horolog-testkit", false)).is_some());
        assert!(judge(&arrow("horolog-nowhere", "horolog-sys", false)).is_some());
        assert!(judge(&arrow("horolog-sim", "horolog-sched", false)).is_none());
        assert!(judge(&arrow("horolog-sim", "horolog-testkit", true)).is_none());
    }
}
