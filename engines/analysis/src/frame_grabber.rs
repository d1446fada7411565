//! Three ways in which a frame grabber's driver asks for the processor, as tasks.
//!
//! A grabber delivers a frame every period T. The driver moves it by programmed input and output, lets the device write
//! into several buffers by itself, or is told only when few free buffers are left. Source: `baker07`, section on
//! driver demand.

use horolog_time::Span;

/// How frames come into memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// The processor copies each frame, before the next overwrites it: within half a period.
    Programmed,
    /// The device writes into `buffers` buffers in turn and interrupts when one is full; the frame has to be used before the
    /// device begins to write over it, which is when it has filled all others.
    Buffers {
        /// How many, at least 2.
        buffers: u64,
    },
    /// The device interrupts when only `free` buffers are left; it fills them while the driver supplies new ones.
    FreeBufferThreshold {
        /// How many, at least 1.
        free: u64,
    },
}

/// The software task of a grabber.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GrabberTask {
    /// Time between its jobs: exactly so long for programmed transfer, at least for the others.
    pub separation: Span,
    /// By when a job must be done.
    pub deadline: Span,
    /// Whether its jobs come exactly a separation apart, at times that the device gives.
    pub is_periodic: bool,
}

/// The task of a grabber of this frame period; `None` where a product leaves 64 bits, or there are too few buffers.
///
/// ```
/// use horolog_analysis::frame_grabber::{task, Transfer};
/// use horolog_time::Span;
/// let frame = Span::from_us(33_300).unwrap();
/// assert_eq!(task(Transfer::Programmed, frame).unwrap().deadline, Span::from_us(16_650).unwrap());
/// let threshold = task(Transfer::FreeBufferThreshold { free: 4 }, frame).unwrap();
/// assert_eq!(threshold.deadline, Span::from_us(133_200).unwrap());
/// ```
#[must_use]
pub fn task(transfer: Transfer, period: Span) -> Option<GrabberTask> {
    let of = |separation, deadline, is_periodic| GrabberTask { separation, deadline, is_periodic };
    match transfer {
        Transfer::Programmed => Some(of(period, Span::from_ns(period.as_ns() / 2), true)),
        Transfer::Buffers { buffers: 0 | 1 } | Transfer::FreeBufferThreshold { free: 0 } => None,
        Transfer::Buffers { buffers } => Some(of(period, period.checked_mul(buffers - 1)?, true)),
        Transfer::FreeBufferThreshold { free } => {
            let until_full = period.checked_mul(free)?;
            Some(of(until_full, until_full, false))
        }
    }
}
