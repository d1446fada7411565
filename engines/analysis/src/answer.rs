//! Answers about servers: the largest capacity, or why there is no answer.

use num_rational::Ratio;
use num_traits::ToPrimitive;

/// The largest safe capacity of a server of a given period.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// The largest capacity, in ns: with it every task meets, with any larger one some task misses.
    pub exact: Ratio<u128>,
    /// The victim that binds it, as an index; `None` where the period itself does.
    pub binding: Option<usize>,
}

impl Capacity {
    /// The largest capacity in whole nanoseconds: what a system file can say.
    #[must_use]
    pub fn floor_ns(&self) -> u64 {
        // At most the period, which is 64 bits.
        self.exact.to_integer().to_u64().unwrap_or(u64::MAX)
    }
}

/// Why a question about a server has no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// More work than the processor, or the server, can do in the long run.
    #[error("more is asked for than the processor, or the server, gives in the long run")]
    Overload,
    /// The effort ran out.
    #[error("the effort allowed by the options ran out")]
    Effort,
    /// The numbers leave the arithmetic.
    #[error("the numbers leave 63 bits of nanoseconds")]
    TooLarge,
    /// A load that does not come in whole pieces at least a separation apart.
    #[error("a list of arrivals or a measured load stands above: there is no exact ratio")]
    NotPiecewise,
    /// A server by POSIX's letter: it can take more than its capacity in a period, and is owed no less.
    #[error("no bound is known for a sporadic server with rules = \"posix\"")]
    PosixServer,
    /// The tasks and servers together do not pass the test that the server's promise rests on.
    #[error("the tasks and servers of the processor are not schedulable together")]
    NotSchedulable,
    /// The server's capacity is not certain to be served within its period.
    #[error("work above the server may keep it from its whole capacity in a period")]
    NotGuaranteed,
}
