//! What a job executes: how long in a simulation, which code in a run.

use crate::{Segment, SegmentGraph};
use horolog_time::Span;

/// How long jobs execute in a simulation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum ExecutionTimes {
    /// Every job, or segment, takes its wcet (`execution = "wcet"`, the default).
    #[default]
    Wcet,
    /// Every job, or segment, draws uniformly from bcet to wcet (`execution = "uniform"`).
    Uniform,
    /// Jobs draw from this list (`execution = { samples = ["1 ms", …] }`), at least one, each between
    /// bcet and wcet; a segmented job's is shared among its segments in proportion to their wcets.
    Samples(Vec<Span>),
    /// Job k takes the k-th of this list, then from the first again (`execution = { jobs = ["2 ms", …] }`), at least one, none
    /// below bcet. Those above wcet are overruns.
    Jobs(Vec<Span>),
    /// A list a segment (`execution = { segments = [["3 ms", "5 ms"], …] }`), each with at least one time, none below the
    /// segment's bcet: where job k executes a segment it takes the k-th of its list, then from the first again. Those above the
    /// segment's wcet are overruns.
    Segments(Vec<Vec<Span>>),
}

impl ExecutionTimes {
    /// Whether a job or a segment may execute longer than its wcet: this one of the job, or that of the segment.
    #[must_use]
    pub fn may_exceed(&self, wcet: Span, segments: Option<&SegmentGraph>) -> bool {
        match self {
            ExecutionTimes::Jobs(times) => times.iter().any(|&time| time > wcet),
            ExecutionTimes::Segments(lists) => {
                let segments = segments.map_or(&[][..], |graph| &graph.segments);
                let exceeds =
                    |(times, segment): (&Vec<Span>, &Segment)| times.iter().any(|&t| t > segment.wcet);
                lists.iter().zip(segments).any(exceeds)
            }
            _ => false,
        }
    }
}

/// How much a `spin` body burns.
#[derive(Clone, PartialEq, Debug)]
pub enum SpinTarget {
    /// This long a job (`{ spin = "1.8 ms" }`), spread over segments in proportion to their wcets.
    Total(Span),
    /// This long a segment, one value each (`{ spin = ["1 ms", "2 ms"] }`).
    PerSegment(Vec<Span>),
    /// This fraction of the wcet, in parts per million, of the job or of each segment (`{ spin = 0.9 }`). Above
    /// zero; above one is allowed, as is a longer time: a wrong wcet must be expressible, so that one can see
    /// `verify` catch it.
    Fraction(u32),
}

/// What `run` executes for a task.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Body {
    /// Burn processor time on the thread's own CPU clock.
    Spin(SpinTarget),
    /// Call a function of a shared library once a job.
    Library {
        /// Path of the library; relative paths count from the system file's folder.
        library: String,
        /// `int symbol(horolog_job *)`, called once a job.
        symbol: String,
        /// Called before the start barrier.
        init: Option<String>,
        /// Called after the last job.
        exit: Option<String>,
        /// Handed to `init`.
        arguments: Vec<String>,
    },
    /// Attach a long-running process whose waits end its jobs.
    Command(Vec<String>),
}

impl Body {
    /// Whether what it executes is the user's own code.
    #[must_use]
    pub const fn is_users_code(&self) -> bool {
        match self {
            Body::Spin(_) => false,
            Body::Library { .. } | Body::Command(_) => true,
        }
    }
}
