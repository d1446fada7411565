//! Hard tasks beside dual priority or slack stealing: soft work may take all the time up to the latest safe instant.

use crate::cpu_model::CpuModel;
use crate::result::{TestResult, Verdict};
use horolog_model::ServerKind;
use horolog_time::Span;

/// The test of a task beside a slack policy, from the one without; `None` where the processor has none.
///
/// A hard job is done by its deadline D_i if its response time R_i under plain fixed priorities is at most D_i, and may
/// be as late as that: the bound is D_i. Where R_i is above D_i, slack stealing misses as plain fixed priorities do (the
/// order of the hard tasks is theirs), while dual priority changes that order, so that nothing is known.
pub(super) fn test(cpu: &CpuModel, index: usize, plain: &TestResult) -> Option<TestResult> {
    let server = cpu.servers.iter().find(|server| server.kind.is_slack_policy())?;
    let (test, source) = match server.kind {
        ServerKind::DualPriority { .. } => ("fp-dual-priority", "davis95"),
        _ => ("fp-slack-stealing", "davis93"),
    };
    let unknown = |note: String| TestResult {
        test,
        verdict: Verdict::Unknown,
        response: None,
        exact: false,
        source,
        note: Some(note),
    };
    if cpu.has_costs {
        return Some(unknown(
            "promotion times and slack are not known to leave room for the platform's costs; use a sporadic server"
                .to_owned(),
        ));
    }
    if let Some(name) = &cpu.unsafe_promotion {
        return Some(unknown(format!(
            "task.{name}.promotion is later than its latest safe time: leave it out, or give less"
        )));
    }
    let deadline = cpu.tasks[index].deadline.map(Span::from_ns);
    Some(match (plain.response, deadline) {
        (Some(response), Some(deadline)) if response <= deadline => TestResult {
            test,
            verdict: Verdict::Meets,
            response: Some(deadline),
            exact: false,
            source,
            note: Some(format!("{response} under plain fixed priorities; soft work may take the rest")),
        },
        (Some(response), Some(_)) if !matches!(server.kind, ServerKind::DualPriority { .. }) => TestResult {
            test,
            verdict: plain.verdict,
            response: None,
            exact: plain.exact,
            source,
            note: Some(format!("{response} under plain fixed priorities, without any soft work")),
        },
        (Some(response), _) => unknown(format!(
            "{response} under plain fixed priorities: a task beyond its deadline there has no promotion time"
        )),
        (None, _) => {
            unknown(plain.note.clone().unwrap_or_else(|| "no bound under fixed priorities".to_owned()))
        }
    })
}
