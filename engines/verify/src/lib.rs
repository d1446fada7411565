//! Checks a trace against the model and against the proof.
