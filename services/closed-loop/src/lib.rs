//! The main job: prove, simulate, run, trace, verify, report.
