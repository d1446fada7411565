//! Machine facts, measured costs, kernel records of a run.
