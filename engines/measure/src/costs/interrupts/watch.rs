//! The first witness: a thread that spins on the CPU of the interrupt while another CPU asks.

use super::super::probes::{join, on_thread, spawn};
use super::super::{Setting, go_on};
use super::landing::Landing;
use super::provoke::Provoker;
use crate::interference::{Gap, Hourglass, clock_cost_ns};
use horolog_sys::Error;
use horolog_sys::clock::{monotonic_ns, sleep_until};
use horolog_time::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long the thread spins without a rest, and rests: half of the CPU at most, far from RT throttling.
const STRETCH_NS: u64 = 10_000_000;
/// From an answer to the next request.
const PAUSE_NS: u64 = 150_000;
/// An interrupt lies at most so long before the asker has its answer.
pub(super) const REACH_NS: u64 = 40_000;
/// A longer time between two reads of the clock was taken; no interrupt is that short.
const THRESHOLD: Span = Span::from_ns(500);
/// Gaps that are kept of one stretch.
const ROOM: usize = 4_096;

/// A request and its answer, on CLOCK_MONOTONIC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) asked_ns: u64,
    pub(super) answered_ns: u64,
}

/// What a witness saw.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Seen {
    pub(super) samples: Vec<u64>,
    pub(super) provoked: u64,
    pub(super) interrupts: u64,
    pub(super) disturbed_share: Option<f64>,
    pub(super) round_trip_ns_min: u64,
}

/// A time in which the thread spun.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Spun {
    begin_ns: u64,
    length_ns: u64,
    /// Whether requests were made meanwhile.
    asked: bool,
    gaps: Vec<Gap>,
}

/// Spins and asks for about `budget`; every third stretch goes without requests.
pub(super) fn watch(
    provoker: &mut Provoker,
    landing: &Landing,
    setting: Setting,
    budget: Span,
    stop: &Arc<AtomicBool>,
) -> Result<Seen, Error> {
    let stop = Arc::clone(stop);
    let before = landing.count()?;
    let (requests, spun) = asking(provoker, landing, setting, move |wanted| {
        let hourglass = Hourglass { threshold: THRESHOLD, clock_cost: Span::from_ns(clock_cost_ns()) };
        let rounds = (budget.as_ns() / (2 * STRETCH_NS)).clamp(6, 3_000);
        let mut spun = Vec::new();
        for round in 0..rounds {
            go_on(&stop)?;
            let asked = round % 3 != 2;
            let room = Vec::with_capacity(ROOM);
            wanted.store(asked, Ordering::Relaxed);
            let begin_ns = monotonic_ns();
            let stretch = hourglass.watch(Span::from_ns(STRETCH_NS), room);
            wanted.store(false, Ordering::Relaxed);
            spun.push(Spun { begin_ns, length_ns: stretch.length_ns, asked, gaps: stretch.gaps });
            let _ = sleep_until(monotonic_ns() + STRETCH_NS);
        }
        Ok(spun)
    })?;
    let interrupts = landing.count()?.saturating_sub(before);
    let samples: Vec<u64> = requests.iter().filter_map(|request| sample(request, &spun)).flatten().collect();
    // Requests that no stretch holds whole were not watched.
    let provoked = requests.iter().filter(|request| sample(request, &spun).is_some()).count() as u64;
    Ok(Seen {
        samples,
        provoked,
        interrupts,
        disturbed_share: disturbed_share(&requests, &spun),
        round_trip_ns_min: shortest(&requests),
    })
}

/// Runs `body` on the interrupt's CPU; while it wants requests, the asker's CPU makes them.
pub(super) fn asking<T: Send + 'static>(
    provoker: &mut Provoker,
    landing: &Landing,
    setting: Setting,
    body: impl FnOnce(&AtomicBool) -> Result<T, Error> + Send + 'static,
) -> Result<(Vec<Request>, T), Error> {
    let (wanted, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let watcher = spawn(Setting { cpu: landing.cpu, ..setting }, {
        let (wanted, done) = (Arc::clone(&wanted), Arc::clone(&done));
        move || {
            let result = body(&wanted);
            done.store(true, Ordering::Relaxed);
            result
        }
    })?;
    let requests = on_thread(Setting { cpu: landing.asker, ..setting }, || {
        let mut requests = Vec::with_capacity(1 << 14);
        // A watcher that failed at once has never said that it is done.
        while !done.load(Ordering::Relaxed) && !watcher.is_finished() {
            if wanted.load(Ordering::Relaxed) {
                let asked_ns = monotonic_ns();
                provoker.ask()?;
                requests.push(Request { asked_ns, answered_ns: monotonic_ns() });
            }
            let _ = sleep_until(monotonic_ns() + PAUSE_NS);
        }
        Ok(requests)
    });
    let watched = join(watcher)?;
    Ok((requests?, watched))
}

pub(super) fn shortest(requests: &[Request]) -> u64 {
    requests.iter().map(|request| request.answered_ns - request.asked_ns).min().unwrap_or(0)
}

/// Of a request that one stretch holds whole: the last gap that began before its answer and reached near to it.
fn sample(request: &Request, spun: &[Spun]) -> Option<Option<u64>> {
    let whole = |spun: &&Spun| {
        spun.asked
            && spun.begin_ns <= request.asked_ns
            && request.answered_ns <= spun.begin_ns + spun.length_ns
    };
    let spun = spun.iter().find(whole)?;
    let (from, until) = (request.asked_ns - spun.begin_ns, request.answered_ns - spun.begin_ns);
    Some(last_gap(&spun.gaps, from, until))
}

/// The length of the last gap that began in [from, until) and ended less than the reach before its end.
fn last_gap(gaps: &[Gap], from: u64, until: u64) -> Option<u64> {
    let last = gaps[..gaps.partition_point(|gap| gap.from_ns < until)].last()?;
    (last.from_ns >= from && last.until_ns + REACH_NS >= until).then(|| last.until_ns - last.from_ns)
}

/// The share of windows, as long as those of the requests and placed on the stretches without any, with such a gap.
fn disturbed_share(requests: &[Request], spun: &[Spun]) -> Option<f64> {
    let mut lengths =
        requests.iter().map(|request| (request.answered_ns - request.asked_ns).min(STRETCH_NS)).cycle();
    let (mut windows, mut disturbed) = (0_u64, 0_u64);
    for spun in spun.iter().filter(|spun| !spun.asked) {
        let mut from = 0;
        loop {
            let until = from + lengths.next()?.max(1);
            if until > spun.length_ns {
                break;
            }
            windows += 1;
            disturbed += u64::from(last_gap(&spun.gaps, from, until).is_some());
            from = until;
        }
    }
    (windows > 0).then(|| disturbed as f64 / windows as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(from_us: u64, until_us: u64) -> Gap {
        Gap { from_ns: from_us * 1_000, until_ns: until_us * 1_000 }
    }

    fn spun(asked: bool, gaps: &[Gap]) -> Spun {
        Spun { begin_ns: 1_000_000, length_ns: 10_000_000, asked, gaps: gaps.to_vec() }
    }

    fn request(asked_us: u64, answered_us: u64) -> Request {
        Request { asked_ns: 1_000_000 + asked_us * 1_000, answered_ns: 1_000_000 + answered_us * 1_000 }
    }

    #[test]
    fn the_last_gap_before_the_answer_is_the_interrupt() {
        let stretches = [spun(true, &[gap(100, 104), gap(180, 187), gap(500, 501), gap(1_000, 1_009)])];
        // A tick at 100 us does not count beside the interrupt just before the answer.
        assert_eq!(sample(&request(90, 195), &stretches), Some(Some(7_000)));
        // The handler wakes the asker before it ends.
        assert_eq!(sample(&request(900, 1_005), &stretches), Some(Some(9_000)));
        // No gap; one too long ago; one before the request.
        assert_eq!(sample(&request(300, 400), &stretches), Some(None));
        assert_eq!(sample(&request(450, 700), &stretches), Some(None));
        assert_eq!(sample(&request(188, 200), &stretches), Some(None));
        // Beyond the stretch, or in one without requests.
        assert_eq!(sample(&request(9_990, 10_010), &stretches), None);
        assert_eq!(sample(&request(90, 195), &[spun(false, &[])]), None);
    }

    #[test]
    fn windows_without_requests_tell_what_comes_anyway() {
        // 100 windows of 100 us, of which two hold the begin of a gap.
        let stretches = [spun(true, &[]), spun(false, &[gap(270, 274), gap(4_270, 4_274)])];
        assert_eq!(disturbed_share(&[request(0, 100)], &stretches), Some(0.02));
        assert_eq!(disturbed_share(&[], &stretches), None);
        assert_eq!(disturbed_share(&[request(0, 100)], &stretches[..1]), None);
        assert_eq!(shortest(&[request(0, 100), request(3, 5)]), 2_000);
    }
}
