//! Events that traced programs lost: by cause, and what helps.

use horolog_probe::session::{Listener, Losses};
use horolog_trace::LossCause;
use std::collections::BTreeMap;

/// What a session has lost so far, by cause; a cause may be there several times.
#[must_use]
pub fn by_cause(losses: &Losses) -> [(LossCause, u64); 7] {
    [
        (LossCause::ThreadRing, losses.ring_full),
        (LossCause::SharedBuffer, losses.shared_full),
        (LossCause::Horolog, losses.no_writer),
        (LossCause::Horolog, losses.no_event),
        (LossCause::Horolog, losses.no_session),
        (LossCause::DeadWriter, losses.dead_writer),
        (LossCause::Damaged, losses.damaged),
    ]
}

/// What helps against the greatest of these losses by cause ([`LossCause::name`]); `None` where nothing was lost, or nothing
/// helps. `is_limited`: the memory of the rings reached its limit, from which threads without a ring come as well.
#[must_use]
pub fn remedy<K: AsRef<str>>(losses: &BTreeMap<K, u64>, is_limited: bool) -> Option<&'static str> {
    let lost = losses.iter().filter(|(_, count)| **count > 0);
    let greatest = lost.max_by_key(|(_, count)| **count)?.0.as_ref();
    let of = |cause: LossCause| greatest == cause.name();
    if of(LossCause::ThreadRing) || (of(LossCause::SharedBuffer) && is_limited) {
        Some("give more memory (`--buffer 4M --memory 4G`) or trace fewer events (`trace record --event`)")
    } else if of(LossCause::SharedBuffer) {
        Some("give more threads a buffer of their own (`trace record --rings 4096`)")
    } else if of(LossCause::Horolog) {
        Some("trace fewer events (`trace record --event`)")
    } else if of(LossCause::Kernel) {
        Some("give the kernel's record more memory (`--kernel-buffer 64M`)")
    } else {
        None
    }
}

/// What is to be said about the memory of the rings: that its limit was reached.
#[must_use]
pub fn memory_note(listener: &Listener) -> Option<String> {
    let budget = listener.budget();
    (budget.refused() > 0).then(|| {
        format!(
            "the buffers reached their limit of {} KiB for all processes together, {} times; `--memory` raises it",
            budget.limit() >> 10,
            budget.refused()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_loss_has_its_remedy() {
        let of = |losses: &[(LossCause, u64)]| {
            remedy(
                &losses.iter().map(|(cause, count)| (cause.name(), *count)).collect::<BTreeMap<_, _>>(),
                false,
            )
        };
        assert_eq!(
            (of(&[]), of(&[(LossCause::ThreadRing, 0)]), of(&[(LossCause::DeadWriter, 5)])),
            (None, None, None)
        );
        let both = of(&[(LossCause::ThreadRing, 5), (LossCause::SharedBuffer, 6)]);
        assert!(both.is_some_and(|remedy| remedy.contains("--rings")), "{both:?}");
        let limited = remedy(&BTreeMap::from([("shared-buffer", 5)]), true);
        assert!(limited.is_some_and(|remedy| remedy.contains("--memory")), "{limited:?}");
        let kernel = of(&[(LossCause::ThreadRing, 5), (LossCause::Kernel, 6)]);
        assert!(kernel.is_some_and(|remedy| remedy.contains("--kernel-buffer")), "{kernel:?}");
    }
}
