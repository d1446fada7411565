//! What is asked for.

use horolog_reserve::network::{ByteAmount, Flow, WhenUsedUp};
use horolog_sys::Error;
use horolog_sys::fixed_priority::Class;

/// The most reserves of one device.
pub const MOST_RESERVES: usize = 32;
/// The largest queue that the kernel makes, packets.
pub const LARGEST_BUFFER: u32 = 16_384;

/// One reserve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reserve {
    /// The packets that it is for.
    pub flows: Vec<Flow>,
    /// Bytes in every period, as the device counts them, with the header of the link.
    pub amount: ByteAmount,
    /// What happens with packets beyond it.
    pub when_used_up: WhenUsedUp,
    /// Packets that its queue has room for.
    pub buffer: u32,
    /// How its protocol thread is scheduled.
    pub class: Class,
}

/// Everything else that the device receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreserved {
    /// Bytes in every period; none: no cap.
    pub cap: Option<ByteAmount>,
    /// Packets that its queue has room for.
    pub buffer: u32,
    /// How its protocol thread is scheduled.
    pub class: Class,
}

/// A device and its reserves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// As `ip link` shows it, in the calling thread's namespace.
    pub device: String,
    /// Where the protocol threads run.
    pub cpu: u32,
    /// The reserves.
    pub reserves: Vec<Reserve>,
    /// The rest.
    pub unreserved: Unreserved,
}

impl Options {
    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// What, and the remedy.
    pub fn check(&self) -> Result<(), Error> {
        let bad = |what: String, why: &str, remedy: String| Err(Error::bad_input(what, why, remedy));
        if self.reserves.is_empty() || self.reserves.len() > MOST_RESERVES {
            let what = format!("{} reserves of {}", self.reserves.len(), self.device);
            return bad(what, "out of bounds", format!("give 1 to {MOST_RESERVES}"));
        }
        let buffers = self.reserves.iter().map(|one| one.buffer).chain([self.unreserved.buffer]);
        for buffer in buffers {
            if buffer == 0 || buffer > LARGEST_BUFFER {
                let remedy = format!("give 1 to {LARGEST_BUFFER} packets");
                return bad(format!("a buffer of {buffer} packets"), "out of bounds", remedy);
            }
        }
        let amounts = self.reserves.iter().map(|one| one.amount).chain(self.unreserved.cap);
        for amount in amounts {
            if let Some(flaw) = amount.flaw() {
                return bad(amount.to_string(), &flaw, String::new());
            }
        }
        let flows: Vec<&Flow> = self.reserves.iter().flat_map(|one| &one.flows).collect();
        if self.reserves.iter().any(|one| one.flows.is_empty()) {
            return bad("a reserve".to_owned(), "it is for no packets", "give it a port".to_owned());
        }
        for (at, flow) in flows.iter().enumerate() {
            if let Some(other) = flows[..at].iter().find(|other| other.meets(flow)) {
                let why = format!("{other} is asked for already");
                return bad(format!("port {flow}"), &why, "give each port once".to_owned());
            }
        }
        Ok(())
    }

    /// Packets that each queue has room for; the unreserved one is last.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = u32> + '_ {
        self.reserves.iter().map(|one| one.buffer).chain([self.unreserved.buffer])
    }

    /// How the thread of each queue is scheduled; the unreserved one is last.
    pub(crate) fn classes(&self) -> impl Iterator<Item = Class> + '_ {
        self.reserves.iter().map(|one| one.class).chain([self.unreserved.class])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horolog_time::Span;

    fn options() -> Options {
        let amount = ByteAmount::implicit(1_000, Span::from_ns(1_000_000));
        let reserve = |port: &str| Reserve {
            flows: vec![port.parse().unwrap()],
            amount,
            when_used_up: WhenUsedUp::Drop,
            buffer: LARGEST_BUFFER,
            class: Class::Normal,
        };
        let unreserved = Unreserved { cap: None, buffer: 1, class: Class::Normal };
        Options { device: "d".to_owned(), cpu: 0, reserves: vec![reserve("1"), reserve("udp:2")], unreserved }
    }

    #[test]
    #[allow(clippy::unwrap_used)]
    fn what_makes_no_sense_is_refused_with_a_remedy() {
        assert_eq!(options().check(), Ok(()));
        let refused = |change: &dyn Fn(&mut Options)| {
            let mut options = options();
            change(&mut options);
            let error = options.check().unwrap_err();
            assert!(error.is_bad_input());
            error.to_string()
        };
        assert!(refused(&|o| o.reserves.clear()).contains("1 to 32"));
        assert!(refused(&|o| o.reserves[0].buffer = 0).contains("1 to 16384"));
        assert!(refused(&|o| o.unreserved.buffer = LARGEST_BUFFER + 1).contains("1 to 16384"));
        assert!(refused(&|o| o.reserves[1].flows.push("1".parse().unwrap())).contains("asked for already"));
        assert!(refused(&|o| o.reserves[1].flows.push("2".parse().unwrap())).contains("udp:2"));
        assert!(refused(&|o| o.reserves[1].flows.clear()).contains("no packets"));
        assert!(refused(&|o| o.reserves[0].amount.bytes = 0).contains("out of bounds"));
        let no_time = ByteAmount::implicit(1, Span::from_ns(1));
        assert!(refused(&|o| o.unreserved.cap = Some(no_time)).contains("too short"));
    }
}
