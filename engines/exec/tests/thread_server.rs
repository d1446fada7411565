//! Servers for threads that exist already: budgets kept, the former class given back.

use horolog_exec::thread_server::{
    Accounting, Low, Notice, Rules, ThreadServer, ThreadServerOptions, ThreadServerReport,
};
use horolog_sys::affinity::{CpuSet, set_affinity};
use horolog_sys::fixed_priority::{Class, class_of};
use horolog_sys::{clock, thread};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

mod common;
use common::{alone, last_cpu, ms};

/// How often a disturbed run is tried again.
const TRIES: usize = 4;

/// Serves a thread that never sleeps for 0.5 s; `None`: not permitted here.
fn serve(change: impl Fn(&mut ThreadServerOptions)) -> Option<ThreadServerReport> {
    let _alone = alone();
    let (tid, end) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            set_affinity(0, &CpuSet::new([last_cpu().0])).expect("pins");
            tid.store(thread::id(), Ordering::Release);
            while !end.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
        });
        while tid.load(Ordering::Acquire) == 0 {
            std::thread::yield_now();
        }
        let tid = tid.load(Ordering::Acquire);
        let mut options = ThreadServerOptions::sporadic(tid, ms(2), ms(10), 50);
        change(&mut options);
        let served = ThreadServer::start(&options).and_then(|server| {
            let _ = clock::sleep_until(clock::monotonic_ns() + 500_000_000);
            server.stop()
        });
        let class = class_of(tid);
        end.store(true, Ordering::Release);
        assert_eq!(class.expect("it lives"), Class::Normal, "its class is given back");
        match served {
            Ok(report) => Some(report),
            Err(error) if error.is_not_permitted() => {
                println!("SKIPPED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    })
}

fn keeps_its_budget(what: &str, change: impl Fn(&mut ThreadServerOptions)) {
    let mut shares = Vec::new();
    for _ in 0..TRIES {
        let Some(report) = serve(&change) else { return };
        println!("{what}: {report:?}");
        let share = report.server.enforcement.as_ref().expect("it has a budget").share;
        assert!(report.executed_ns >= report.low_ns, "{report:?}");
        shares.push(share);
        if (0.18..0.22).contains(&share) {
            return;
        }
    }
    panic!("{what}: shares of the processor {shares:?}, 0.2 allowed");
}

#[test]
fn every_kind_keeps_its_budget() {
    keeps_its_budget("sporadic", |_| {});
    keeps_its_budget("deferrable", |options| options.rules = Rules::Deferrable);
    keeps_its_budget("polling", |options| options.rules = Rules::Polling);
}

#[test]
fn every_way_to_notice_keeps_the_budget() {
    keeps_its_budget("overflow", |options| options.notice = Notice::Overflow);
    keeps_its_budget("schedstat", |options| {
        options.accounting = Some(Accounting::SchedStat);
        options.low = Low::Fifo(1);
    });
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let options = ThreadServerOptions::sporadic(thread::id(), ms(2), ms(1), 50);
    assert!(ThreadServer::start(&options).expect_err("more than the period").is_bad_input());
    let mut options = ThreadServerOptions::sporadic(thread::id(), ms(1), ms(2), 50);
    options.low = Low::Fifo(50);
    assert!(ThreadServer::start(&options).expect_err("not above").is_bad_input());
    options.low = Low::Background;
    options.agent_priority = 50;
    assert!(ThreadServer::start(&options).expect_err("the agent must be above").is_bad_input());
    options.agent_priority = 98;
    options.tid = u32::MAX >> 1;
    assert!(ThreadServer::start(&options).is_err(), "no such thread");
}
