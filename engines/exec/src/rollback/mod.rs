//! Sections that roll back (decision 0022): a low section works on a private copy and publishes it by one store, and where it overruns its budget
//! a high user takes the resource and leaves the copy to die.
//!
//! Nothing jumps out of the low section's body. It goes on in its own copy until it returns, and its last store fails. So this is safe for
//! every body, also for one that never ends: it cannot free the lock twice, nor write what others read.
//!
//! ```
//! use horolog_exec::rollback::{Ended, Resource};
//! use horolog_time::Span;
//!
//! let resource = Resource::new(&[0; 8], 2, Span::from_ns(1_000_000)).unwrap();
//! let (mut logger, mut control) = (resource.user().unwrap(), resource.user().unwrap());
//! assert_eq!(logger.low(|map| map[3] = 7), Ended::Published);
//! let high = control.high(|map| map[3]);
//! assert_eq!((high.value, high.abandoned), (7, 0));
//! ```

mod word;

use horolog_sys::{clock, futex};
use horolog_time::Span;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use word::{Claim, Core, MOST_USERS, State};

/// Why there is no such resource, or no further user of one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct RollbackError(String);

#[derive(Debug)]
struct Shared {
    core: Core<AtomicU64>,
    budget: Span,
    users: AtomicUsize,
    /// Counts what may let a user that sleeps on it go on.
    bell: AtomicU32,
    sleepers: AtomicU32,
}

/// Words of memory that threads share by sections.
#[derive(Clone, Debug)]
pub struct Resource {
    shared: Arc<Shared>,
}

/// How a low section ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Ended {
    /// What it has written is what everybody sees.
    Published,
    /// It overran its budget while a high user waited, and nothing of it is left.
    Abandoned,
}

/// A high section that is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct High<R> {
    /// What its body returned.
    pub value: R,
    /// How long it waited for the resource.
    pub waited: Span,
    /// How many low sections it abandoned: 0 or 1.
    pub abandoned: u32,
}

impl Resource {
    /// A resource with these words, and a copy for each of so many users. A low section may be abandoned once a high user has seen it
    /// for `budget`, on the monotonic clock.
    ///
    /// # Errors
    /// No word, no user or more than 63, or no budget.
    pub fn new(words: &[u64], users: usize, budget: Span) -> Result<Resource, RollbackError> {
        let refused = |what: &str, remedy: &str| Err(RollbackError(format!("{what}: {remedy}")));
        if words.is_empty() {
            return refused("a resource without a word", "give it one at least");
        }
        if users == 0 || users > MOST_USERS {
            return refused(&format!("{users} users of a resource"), &format!("give it 1 to {MOST_USERS}"));
        }
        if budget.is_zero() {
            return refused("low sections without a budget", "give them more than 0 ns");
        }
        let (users, core) = (AtomicUsize::new(users), Core::new(words, users));
        let (bell, sleepers) = (AtomicU32::new(0), AtomicU32::new(0));
        Ok(Resource { shared: Arc::new(Shared { core, budget, users, bell, sleepers }) })
    }

    /// The next user: one for each thread. Allocates the words that its bodies work on.
    ///
    /// # Errors
    /// Where all users are given out.
    pub fn user(&self) -> Result<User, RollbackError> {
        let one_less = |left: usize| left.checked_sub(1);
        let left = self.shared.users.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        match left {
            Ok(own) => Ok(User { shared: self.shared.clone(), own, words: vec![0; self.shared.core.len()] }),
            Err(_) => {
                Err(RollbackError("all users of the resource are given out: make it for more".to_owned()))
            }
        }
    }
}

/// A user of a resource. Its sections allocate nothing.
#[derive(Debug)]
pub struct User {
    shared: Arc<Shared>,
    /// The copy that is its own.
    own: usize,
    words: Vec<u64>,
}

/// Frees the resource where a body panics: nothing of it is published.
struct Guard<'a> {
    shared: &'a Shared,
    claim: Claim,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.shared.core.leave(self.claim, None);
        self.shared.ring();
    }
}

impl User {
    /// A low section: waits for the resource, and for every high user that waits too; then works on a copy of the words. The body must do
    /// nothing that its private copy cannot undo. Where it is abandoned, it goes on in its copy until it returns.
    pub fn low(&mut self, body: impl FnOnce(&mut [u64])) -> Ended {
        let claim = loop {
            if let Some(claim) = self.shared.core.take_low() {
                break claim;
            }
            self.shared.sleep(u64::MAX, &|core| core.seen().state != State::Free);
        };
        let guard = Guard { shared: &self.shared, claim };
        if !self.shared.core.copy_in(claim, &mut self.words) {
            return Ended::Abandoned;
        }
        body(&mut self.words);
        // One that was abandoned does not even write its copy.
        if !self.shared.core.holds(claim) {
            return Ended::Abandoned;
        }
        self.shared.core.copy_out(self.own, &self.words);
        let is_published = self.shared.core.leave(claim, Some(self.own));
        drop(guard);
        if !is_published {
            return Ended::Abandoned;
        }
        self.own = Core::<AtomicU64>::former(claim);
        Ended::Published
    }

    /// A high section: takes the resource where it is free, else waits for it; a low section that it has seen for the whole budget is
    /// abandoned. It waits at most for this budget, or for high sections before it. A high section is never abandoned.
    pub fn high<R>(&mut self, body: impl FnOnce(&mut [u64]) -> R) -> High<R> {
        let arrived = clock::monotonic_ns();
        let (claim, abandoned) = self.shared.take_high();
        let waited = Span::from_ns(clock::monotonic_ns().saturating_sub(arrived));
        let guard = Guard { shared: &self.shared, claim };
        let is_whole = self.shared.core.copy_in(claim, &mut self.words);
        debug_assert!(is_whole, "a high section is never abandoned");
        let value = body(&mut self.words);
        self.shared.core.copy_out(self.own, &self.words);
        self.shared.core.leave(claim, Some(self.own));
        self.own = Core::<AtomicU64>::former(claim);
        std::mem::forget(guard);
        self.shared.ring();
        High { value, waited, abandoned }
    }
}

impl Shared {
    fn take_high(&self) -> (Claim, u32) {
        let (mut waits, mut abandons) = (false, None);
        // The low section that was seen, and until when it may go on.
        let mut watched: Option<(u64, u64)> = None;
        loop {
            let before = self.core.seen();
            let seen = match self.core.take_high(abandons, waits) {
                Ok(claim) => {
                    let took_over = before.state == State::Low && abandons == Some(before.generation);
                    return (claim, u32::from(took_over));
                }
                Err(seen) => seen,
            };
            if !waits {
                self.core.announce();
                waits = true;
            }
            let now = clock::monotonic_ns();
            let limit = match (seen.state, watched) {
                (State::Low, Some((generation, limit))) if generation == seen.generation => limit,
                (State::Low, _) => {
                    // Between the first look and the announcement another one may begin: it has a budget of its own.
                    let limit = now.saturating_add(self.budget.as_ns());
                    watched = Some((seen.generation, limit));
                    limit
                }
                _ => u64::MAX,
            };
            if now >= limit {
                abandons = Some(seen.generation);
                continue;
            }
            self.sleep(limit, &|core| core.seen() == seen);
        }
    }

    /// Sleeps until the bell rings, as long as there is nothing to do.
    fn sleep(&self, until: u64, nothing_to_do: &dyn Fn(&Core<AtomicU64>) -> bool) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let bell = self.bell.load(Ordering::SeqCst);
        if nothing_to_do(&self.core) {
            let _ = futex::wait(&self.bell, bell, until);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    fn ring(&self) {
        self.bell.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake(&self.bell, u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    fn resource(words: &[u64], budget_us: u64) -> Resource {
        Resource::new(words, 3, Span::from_ns(budget_us * 1_000)).expect("a resource")
    }

    /// A body that has written over everything and goes on until it is told to return.
    fn endless(user: &mut User, is_inside: &AtomicBool, stop: &AtomicBool) -> Ended {
        user.low(|words| {
            is_inside.store(true, Ordering::SeqCst);
            while !stop.load(Ordering::SeqCst) {
                words.iter_mut().for_each(|word| *word = word.wrapping_add(1));
                std::thread::yield_now();
            }
        })
    }

    #[test]
    fn an_endless_body_is_abandoned_and_leaves_nothing() {
        let before: Vec<u64> = (0..100).map(|word| word * word).collect();
        let resource = resource(&before, 500);
        let (mut low, mut high) = (resource.user().expect("one"), resource.user().expect("two"));
        let (is_inside, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| endless(&mut low, &is_inside, &stop));
            while !is_inside.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_micros(100));
            }
            let first = high.high(|words| {
                let found = words.to_vec();
                words[0] = 77;
                found
            });
            assert_eq!((&first.value, first.abandoned), (&before, 1));
            assert!(first.waited >= Span::from_ns(500_000), "it had its budget: {:?}", first.waited);
            // The body is in its copy still, and the lock is free.
            let second = high.high(|words| words[0]);
            assert_eq!((second.value, second.abandoned), (77, 0));
            stop.store(true, Ordering::SeqCst);
            assert_eq!(thread.join().expect("it returns"), Ended::Abandoned);
        });
        // What it returned with is nowhere, and its user goes on as before.
        assert_eq!(high.high(|words| words[0]).value, 77);
        assert_eq!(low.low(|words| words[0] = 78), Ended::Published);
        assert_eq!(high.high(|words| words[0]).value, 78);
    }

    #[test]
    fn a_body_within_its_budget_is_waited_for() {
        let resource = resource(&[1], 3_600_000_000);
        let (mut low, mut high) = (resource.user().expect("one"), resource.user().expect("two"));
        let (is_inside, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| endless(&mut low, &is_inside, &stop));
            while !is_inside.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_micros(100));
            }
            let waiting = scope.spawn(|| high.high(|words| words[0]));
            std::thread::sleep(Duration::from_millis(5));
            assert!(!waiting.is_finished(), "within the budget no section is abandoned");
            stop.store(true, Ordering::SeqCst);
            assert_eq!(thread.join().expect("it returns"), Ended::Published);
            assert_eq!(waiting.join().expect("it gets it").abandoned, 0);
        });
    }

    #[test]
    fn a_body_that_panics_frees_the_resource_and_leaves_nothing() {
        let resource = resource(&[4, 5], 1_000);
        let (mut low, mut high) = (resource.user().expect("one"), resource.user().expect("two"));
        let panics = std::panic::AssertUnwindSafe(|| {
            let _ = low.low(|words| {
                words[0] = 9;
                panic!("a body at fault");
            });
        });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(high.high(|words| words.to_vec()).value, [4, 5]);
        let panics = std::panic::AssertUnwindSafe(|| high.high(|_| panic!("a high one")).waited);
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(low.low(|words| assert_eq!(words, [4, 5])), Ended::Published);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_remedy() {
        let refused = |words: &[u64], users, budget| {
            Resource::new(words, users, Span::from_ns(budget)).expect_err("refused").to_string()
        };
        assert!(refused(&[], 1, 1).contains("without a word"));
        assert!(refused(&[0], 0, 1).contains("1 to 63") && refused(&[0], 64, 1).contains("1 to 63"));
        assert!(refused(&[0], 1, 0).contains("budget"));
        let resource = Resource::new(&[0], 1, Span::from_ns(u64::MAX)).expect("a resource");
        assert!(resource.user().is_ok() && resource.user().is_err());
    }

    #[test]
    fn users_of_both_kinds_lose_nothing() {
        let resource = resource(&[0, 0], 2_000_000_000);
        let mut users: Vec<User> = (0..3).map(|_| resource.user().expect("one")).collect();
        let mut last = users.pop().expect("three");
        std::thread::scope(|scope| {
            for user in &mut users {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let ended = user.low(|words| words.iter_mut().for_each(|word| *word += 1));
                        assert_eq!(ended, Ended::Published);
                    }
                });
            }
            for _ in 0..2_000 {
                assert_eq!(last.high(|words| words.iter_mut().for_each(|word| *word += 1)).abandoned, 0);
            }
        });
        assert_eq!(last.high(|words| words.to_vec()).value, [6_000, 6_000]);
    }
}
