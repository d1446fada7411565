//! Golden facts 1 and 3 for Rust, and the ways of switching.
#![cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#![allow(unsafe_code)]

use horolog_probe::switching::{self, Method};
use horolog_probe::{Event, trigger, trigger_callback};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes of a site.
fn bytes(address: u64) -> [u8; 7] {
    // SAFETY: the address of a site of this program, which is seven bytes long; another thread may change one.
    std::array::from_fn(|index| unsafe { ((address as *const u8).add(index)).read_volatile() })
}

static CALLS: AtomicU64 = AtomicU64::new(0);

fn count(_: &Event, words: &[u64]) {
    CALLS.fetch_add(words.first().copied().unwrap_or(1), Ordering::Relaxed);
}

#[inline(never)]
fn counted(by: u64) -> u64 {
    trigger_callback!("sites/counted", count, by);
    by
}

/// Tests that use `CALLS`.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn one_byte_changes_and_the_jump_leads_behind_the_site() {
    #[inline(never)]
    fn site(value: u32) -> u32 {
        trigger!("sites/bytes", value, 1.5_f64, &raw const value);
        value
    }
    assert_eq!(site(3), 3);
    let addresses = switching::addresses("sites/bytes");
    assert!(!addresses.is_empty(), "every copy that the compiler made has its entry");
    let before: Vec<[u8; 7]> = addresses.iter().map(|&address| bytes(address)).collect();
    for site in &before {
        assert_eq!((site[0], site[1], site[2]), (0xEB, 5, 0xE9), "jmp +5, over jmp rel32");
        assert!((1..=127).contains(&site[1]), "a short jump reaches its end");
        assert_eq!(2 + usize::from(site[1]), site.len(), "to the first byte behind the site");
    }
    let count = switching::apply("sites/bytes", true).expect("switchable");
    assert_eq!((count.events, count.sites, count.changed), (1, addresses.len(), addresses.len()));
    assert!(count.synchronised);
    for (&address, before) in addresses.iter().zip(&before) {
        let mut expected = *before;
        expected[1] = 0;
        assert_eq!(bytes(address), expected, "one byte, to 00");
    }
    assert_eq!(switching::apply("sites/bytes", true).expect("switchable").changed, 0);
    switching::apply("sites/bytes", false).expect("switchable");
    let after: Vec<[u8; 7]> = addresses.iter().map(|&address| bytes(address)).collect();
    assert_eq!(before, after);
    let listed = switching::events();
    let event = listed.iter().find(|event| event.name == "sites/bytes").expect("listed");
    assert_eq!((event.types.as_str(), event.enabled), ("ufp", 0));
}

#[test]
fn both_ways_of_switching_switch() {
    let _alone = ALONE.lock();
    for method in [Method::Kernel, Method::Remap, Method::Auto] {
        let before = CALLS.load(Ordering::Relaxed);
        counted(1);
        switching::apply_by("sites/counted", true, method).expect("switchable");
        counted(10);
        switching::apply_by("sites/counted", false, method).expect("switchable");
        counted(100);
        assert_eq!(CALLS.load(Ordering::Relaxed) - before, 10, "{method:?}");
    }
    let maps = std::fs::read_to_string("/proc/self/maps").expect("readable");
    assert!(maps.contains("memfd:horolog-text"), "the page was replaced");
    let writable_code = maps.lines().find(|line| line.split(' ').nth(1).is_some_and(|p| p.contains("wx")));
    assert_eq!(writable_code, None);
}

#[test]
fn foreign_code_is_refused_and_named() {
    #[inline(never)]
    fn site() {
        trigger!("sites/foreign");
    }
    site();
    let addresses = switching::addresses("sites/foreign");
    let address = addresses[0];
    let memory = horolog_sys::text::SelfMemory::open().expect("own memory");
    // SAFETY: nobody runs the site now; the byte is put back below.
    unsafe { memory.write(address, 0xCC) }.expect("writable");
    let error = switching::apply("sites/foreign", true).expect_err("a breakpoint stands there");
    assert!(error.is_foreign_code());
    assert!(error.to_string().contains(&format!("{address:#x}")), "{error}");
    assert!(error.to_string().contains("cc 05 e9"), "{error}");
    // SAFETY: as above.
    unsafe { memory.write(address, 0xEB) }.expect("writable");
    switching::apply("sites/foreign", true).expect("switchable again");
    site();
    switching::apply("sites/foreign", false).expect("switchable again");
}

#[test]
fn arguments_are_evaluated_only_while_enabled() {
    static EVALUATED: AtomicU64 = AtomicU64::new(0);
    fn argument() -> u64 {
        EVALUATED.fetch_add(1, Ordering::Relaxed)
    }
    #[inline(never)]
    fn site() {
        trigger!("sites/evaluated", argument());
    }
    site();
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 0);
    switching::apply("sites/evaluated", true).expect("switchable");
    site();
    site();
    switching::apply("sites/evaluated", false).expect("switchable");
    site();
    assert_eq!(EVALUATED.load(Ordering::Relaxed), 2);
}

#[test]
fn every_copy_has_an_entry_and_a_name_switches_all() {
    #[inline(always)]
    fn inlined(sum: &AtomicU64) {
        fn add(_: &Event, words: &[u64]) {
            // SAFETY: the word is the address of the sum, which outlives the call.
            unsafe { &*(words[0] as *const AtomicU64) }.fetch_add(1, Ordering::Relaxed);
        }
        trigger_callback!("sites/copied", add, std::ptr::from_ref(sum));
    }
    #[inline(never)]
    fn first(sum: &AtomicU64) {
        inlined(sum);
    }
    #[inline(never)]
    fn second(sum: &AtomicU64) {
        inlined(sum);
        inlined(sum);
    }
    let sum = AtomicU64::new(0);
    first(&sum);
    second(&sum);
    assert_eq!(sum.load(Ordering::Relaxed), 0);
    let count = switching::apply("sites/cop?ed", true).expect("switchable");
    assert_eq!((count.events, count.sites), (1, 3));
    first(&sum);
    second(&sum);
    switching::apply("sites/copied", false).expect("switchable");
    second(&sum);
    assert_eq!(sum.load(Ordering::Relaxed), 3);
}

#[test]
fn a_panic_unwinds_through_an_enabled_site() {
    fn refuse(_: &Event, words: &[u64]) {
        assert!(words[0] < 4, "the invariant is broken");
    }
    struct Witness<'a>(&'a AtomicU64);
    impl Drop for Witness<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    #[inline(never)]
    fn checked(depth: u64, dropped: &AtomicU64) {
        let _witness = Witness(dropped);
        trigger_callback!("sites/invariant", refuse, depth);
        if depth < 10 {
            checked(depth + 1, dropped);
        }
    }
    let dropped = AtomicU64::new(0);
    switching::apply("sites/invariant", true).expect("switchable");
    let result = std::panic::catch_unwind(|| checked(0, &dropped));
    switching::apply("sites/invariant", false).expect("switchable");
    assert!(result.is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 5, "every frame was left by its own landing pad");
    checked(0, &dropped);
    assert_eq!(dropped.load(Ordering::Relaxed), 16);
}

#[test]
fn a_child_keeps_the_positions_and_switches_for_itself() {
    static CALLED: AtomicU64 = AtomicU64::new(0);
    fn call(_: &Event, _: &[u64]) {
        CALLED.fetch_add(1, Ordering::Relaxed);
    }
    #[inline(never)]
    fn site() {
        trigger_callback!("sites/forked", call);
    }
    switching::apply("sites/forked", true).expect("switchable");
    site();
    // SAFETY: the child allocates, which glibc allows after a fork, and leaves without running handlers.
    let child = unsafe { libc::fork() };
    if child == 0 {
        site();
        let kept = CALLED.load(Ordering::Relaxed) == 2;
        let switched = switching::apply("sites/forked", false).is_ok_and(|count| count.changed == 1);
        site();
        let stopped = CALLED.load(Ordering::Relaxed) == 2;
        // SAFETY: ends the child at once.
        unsafe { libc::_exit(i32::from(!(kept && switched && stopped))) };
    }
    let mut status = 0;
    // SAFETY: the child is ours.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(status, 0, "the child saw what it should");
    site();
    assert_eq!(CALLED.load(Ordering::Relaxed), 2, "the parent's site is still enabled");
    switching::apply("sites/forked", false).expect("switchable");
}

#[test]
fn an_empty_pattern_is_refused_and_a_strange_one_matches_nothing() {
    assert!(switching::apply("", true).is_err());
    let count = switching::apply("no/such/event", true).expect("nothing to do");
    assert_eq!((count.events, count.sites, count.changed), (0, 0, 0));
}
