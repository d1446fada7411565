//! Every tolerance and every bound: a trace one nanosecond inside has no finding, a trace one nanosecond outside has
//! exactly the right one. The table in `docs/concepts/verification.md` names the test of each.

mod again;
mod beside;
mod best_effort;
mod budgets;
mod causes;
mod commands;
mod costs;
mod costs_seen;
mod counts;
mod cuts;
mod drivers;
mod exact;
mod explained;
mod foreign;
mod grants;
mod hidden;
mod machine;
mod measured;
mod records;
mod servers;
mod traces;
mod wandering;
mod windows;
