//! What the sources say, by the numbers of the facts: what it is in our words, and its place. The pages below
//! `docs/experiments` have these lists.

use crate::Listed;

const fn fact(number: u32, what: &'static str, place: &'static str) -> Listed {
    Listed { number, what, place }
}

pub(crate) const FPDS_RTAI: &[Listed] = &[
    fact(
        3,
        "How often a low job is switched in, and whether it is switched out at preemption points alone",
        "sections 5.3 and 6.4, table 5.1",
    ),
    fact(
        12,
        "System calls that a preemption point or a non-preemptive job needs",
        "sections 5.1, 6.3 and 7.1",
    ),
    fact(
        13,
        "Run time of preemption points of both versions beside a control",
        "sections 6.6.2 and 7.3, figures 6.6 and 7.1",
    ),
    fact(14, "Task sets without preemption points are not slowed down", "section 6.6.1, figure 6.5"),
    fact(15, "Response times of a low task under deferred and full preemption", "section 6.6.3"),
    fact(16, "Lines of code and memory of the extension", "section 6.5"),
];

pub(crate) const FEATHER_TRACE: &[Listed] = &[
    fact(9, "How nesting and lengths of sections are counted", "follows from section 3.2"),
    fact(10, "Mean lengths of critical sections, idle, compiling and under stress", "section 3.3"),
    fact(11, "How deeply locks nest", "sections 3.3 and 3.4, figures 4, 6 and 8"),
    fact(12, "Shares of short sections", "sections 3.3 and 3.4, figures 5 and 9"),
    fact(13, "What a sample costs", "section 2"),
];

pub(crate) const DRIVER_FRAMEWORK: &[Listed] = &[
    fact(
        2,
        "A task below a server: a polling or sporadic server counts as a periodic task",
        "follows from section 2",
    ),
    fact(3, "A task beside interrupts that nothing or NAPI throttles", "follows from section 7"),
    fact(4, "Interrupts that NAPI lets through while a more important job runs", "follows from section 7"),
    fact(5, "Response times of a task with server threads below and above it", "section 6, figure 2"),
    fact(
        6,
        "When a packet is delivered under three rules for the priority of the server",
        "follows from section 6",
    ),
    fact(7, "One budget for all devices, or one for each", "follows from section 6"),
    fact(8, "Without preemption a shorter job may make another one later", "follows from section 4"),
    fact(9, "By when a frame grabber's data has to be taken", "section 5"),
    fact(10, "Higher packet rates with the server below the thread", "follows from sections 6 and 7"),
    fact(11, "Interrupts a packet under NAPI", "section 7"),
];

pub(crate) const DRIVER_LOAD_BOUNDS: &[Listed] = &[
    fact(1, "The refined and the traditional demand of one task in one window", "section 2, figure 1"),
    fact(2, "Both demands over windows of several lengths", "section 2, figure 1"),
    fact(3, "The refined demand is exact", "follows from section 2"),
    fact(4, "The refined load falls from 1 to the utilisation", "section 2, figure 2"),
    fact(5, "Fitting a hyperbola to samples of a known load", "follows from section 4"),
    fact(6, "The fitted bound is on or above each sample, and tight", "section 4"),
    fact(7, "The longest execution time of a task below two others", "section 5, computed by section 2"),
    fact(8, "The hyperbolic load of the first task", "section 2"),
    fact(9, "A simulated server never exceeds its bound", "follows from section 2"),
    fact(10, "Interference of a driver's thread above and below the probe", "section 4, figures 4 to 6"),
    fact(11, "A thread takes at least as much as softirqs do", "section 4, figure 5"),
    fact(12, "How missed deadlines grow with the execution time", "section 5, figure 7"),
    fact(13, "How many heartbeats arrive", "section 5, figure 8"),
    fact(14, "The order of the first misses", "section 5, figure 7"),
    fact(15, "What the measured bound predicts", "section 5, figures 9 and 10"),
];

const BENCH_SIZE: &str = "How many combinations and applications there are";
const BENCH_DEADLINES: &str = "No hard deadline is missed under any policy";

pub(crate) const APERIODIC_1: &[Listed] = &[
    fact(4, BENCH_DEADLINES, "follows from section 4.1: hard tasks are guaranteed"),
    fact(5, BENCH_SIZE, "section 4.2"),
    fact(6, "Every policy against the background", "section 4.3.1, figures 2 to 4"),
    fact(
        7,
        "Servers against slack stealing and dual priority, and against each other",
        "section 4.3.1, figures 2 to 4",
    ),
    fact(8, "How the advantage changes with loads and the number of tasks", "section 4.3.1, figures 2 to 4"),
    fact(9, "The mean time of one interruption of the scheduler", "section 4.3.3, figures 8 to 10"),
    fact(10, "The scheduler's total time", "section 4.3.3, figures 11 to 13"),
    fact(11, "Context switches", "section 4.3.2, figures 5 to 7"),
    fact(
        13,
        "Slack stealing against dual priority, and what gain time brings",
        "section 4.3.1, figures 2 to 4",
    ),
];

pub(crate) const APERIODIC_2: &[Listed] = &[
    fact(4, BENCH_DEADLINES, "follows from section 4.1: hard tasks are guaranteed"),
    fact(5, BENCH_SIZE, "section 4.4"),
    fact(12, "What supporting gain time brings each policy", "section 4.5, figures 14 to 17"),
    fact(13, "Dual priority against slack stealing", "section 4.5, figures 14 to 17"),
];

pub(crate) const FSLM_ERIKA: &[Listed] = &[
    fact(1, "The ceilings of the worked examples", "section III.A, examples 1 and 2, figure 1"),
    fact(2, "When the task that uses nothing has the processor", "section III.A, examples 1 and 2, figure 1"),
    fact(3, "When the section of the job that waited is", "section III.A, examples 1 and 2, figure 1"),
    fact(4, "The costs of both protocols in all", "section VI, table II"),
    fact(5, "From which remote sections on the ceiling is better", "section VI, follows from table II"),
    fact(
        6,
        "One request of a processor, m - 1 that wait, first in first out, sections without preemption",
        "section III.A",
    ),
    fact(7, "For how many sections a request waits", "follows from section III.A"),
    fact(8, "The highest spin priority is MSRP", "section III.A"),
    fact(9, "How often less important tasks of the same processor block a job", "section III.A"),
    fact(10, "What requests, grants and releases cost", "section VI, table II"),
    fact(11, "How blocking of a task above the spin priority grows", "follows from section VI"),
    fact(12, "Whom a release notifies", "section IV.C"),
    fact(13, "What the preemption of the job that spins costs", "section VI, table II"),
];

pub(crate) const HTM_BUDGET: &[Listed] = &[
    fact(1, "How many periods there are, and their hyperperiod", "section IV"),
    fact(2, "How many lines of one set a transaction may use", "follows from section III.A"),
    fact(3, "What becomes of a line at each access, and what an abort gives back", "section III.B, figure 2"),
    fact(4, "Local accesses while a transaction is preempted", "section III.B"),
    fact(5, "An abort ends the whole nest", "section III.B, figure 1"),
    fact(6, "Beginning and resuming after a preemption, eager and lazy", "section III.B, figure 1"),
    fact(
        7,
        "An overrun gives back the resource and the lock, and low tasks are dropped",
        "follows from section IV",
    ),
    fact(8, "For how long a high task waits for a low section without end", "follows from section IV"),
    fact(9, "The load of high mode", "section IV"),
    fact(10, "Task sets lost without transactions", "section IV, figures 3 to 5"),
    fact(11, "At a load of 1 every low task is too much", "follows from section IV"),
    fact(12, "The mean load without transactions", "section IV, figure 3"),
    fact(13, "The load with transactions", "section IV, figures 3 to 5"),
    fact(14, "Task sets lost with a processor for sections", "section IV, figure 6"),
];

pub(crate) const RK_NETR: &[Listed] = &[
    fact(
        9,
        "The protocol thread below and above the receiver: where packets are lost",
        "section 7, figure 7",
    ),
    fact(10, "A full queue drops no packet of another reserve", "follows from section 7"),
    fact(19, "Protocol processing by the interrupt's bottom half", "section 7, figure 7 (i)"),
    fact(20, "Protocol processing below the receiver", "section 7, figure 7 (ii)"),
    fact(21, "Protocol processing above the receiver", "section 7, figure 7 (iii)"),
    fact(22, "A reserved flow beside a flood", "section 7"),
];

pub(crate) const RK_CPU: &[Listed] = &[
    fact(1, "The reserves of the table are admitted: by when each has its amount", "follows from Figure 1"),
    fact(2, "A hard reserve gets its share and no more, with and without competing loops", "Figure 1"),
    fact(
        3,
        "A firm reserve beside loops gets its share, a soft one an equal part of what is left, too",
        "follows from Figure 1",
    ),
    fact(4, "Deferrable and sporadic replenishment: when requests end", "follows from section 4"),
];

pub(crate) const RK_HIERARCHY: &[Listed] = &[
    fact(
        5,
        "Completion times below a parent on top and below one that is served late",
        "follows from section 6",
    ),
    fact(
        6,
        "The least upper bound of the utilisation with rate-monotonic priorities",
        "follows from section 6",
    ),
    fact(
        7,
        "A child that exceeds what its parent has left is refused, and others are not asked",
        "section 6",
    ),
    fact(
        8,
        "What one child leaves goes to its siblings, so that the parent has its whole amount",
        "section 6",
    ),
];

pub(crate) const RK_QRAM: &[Listed] = &[
    fact(
        13,
        "The concave majorant in both variants, the optimum and the fractional bound of an example",
        "follows from section 9",
    ),
    fact(
        14,
        "The local search on a compound resource: its loss, and how much faster it is",
        "section 9, Results",
    ),
    fact(16, "Exact algorithms find the same optimum", "section 9, Results"),
    fact(17, "The adapted mixed-integer program: its loss, and whether it is faster", "section 9, Results"),
    fact(18, "The local search as the number of resources increases", "section 9, Results"),
];

pub(crate) const RK_DISK: &[Listed] = &[
    fact(11, "When the operations of an example end, by EDF and just in time", "follows from section 8"),
    fact(12, "What just in time does to mean responses, and that nothing is late", "follows from section 8"),
    fact(19, "Completion times of real-time requests with and without reserves", "section 8, figure 8"),
    fact(20, "Blocks read in each period with and without reserves", "section 8, figure 9"),
    fact(21, "The loss of throughput", "section 8"),
];
