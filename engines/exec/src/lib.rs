//! Executive that drives the scheduling machine on Linux threads.
