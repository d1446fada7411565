//! Earliest deadline first.

use crate::cpu_model::CpuModel;
use crate::error::AnalysisError;
use crate::options::Options;
use crate::result::{TaskVerdict, TestResult};

/// Every test of every task of one processor, and the tests of the whole set.
pub(crate) fn analyze_cpu(
    _cpu: &CpuModel,
    _options: &Options,
) -> Result<(Vec<TaskVerdict>, Vec<TestResult>), AnalysisError> {
    Err(AnalysisError::outside(
        "system.policy",
        "no test for EDF is built yet",
        "use policy = \"fixed-priority\"",
    ))
}
