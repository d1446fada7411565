//! Discrete-event simulator that drives the scheduling machine.
