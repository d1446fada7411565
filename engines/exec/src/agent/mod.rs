//! The release agent: `sched`'s machine decides, the kernel carries out (authoritative mode).
//!
//! On each processor, one agent thread above every task sleeps to the next release. Of the tasks' threads at most
//! one is meant to run: it stands in the `RUN` band. The others sleep on their *gates* (they wait for a job, or gave
//! way at a preemption point) or stand in the `WAIT` band (they were preempted in the middle of their code). A
//! completion or a yield is carried out by the task's own thread: it enters the processor's [`monitor`], tells the
//! machine, wakes whoever follows and sleeps itself: two system calls.

mod cpu;
mod devices;
mod driver;
mod locks;
mod modes;
mod monitor;
mod overruns;
mod seat;
mod served;
mod tasks;

pub(crate) use cpu::CpuAgent;
pub(crate) use devices::Devices;
pub(crate) use driver::Driver;
pub(crate) use modes::InModes;
pub(crate) use seat::Seat;
pub(crate) use served::Served;
pub(crate) use tasks::run_jobs;
