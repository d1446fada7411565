//! The kernel's delays are watched under every load, and what was started ends.

use horolog_measure::blocking::{BlockingOptions, Load, measure};
use horolog_sys::cpu_list::online_cpus;
use horolog_time::Span;

fn options() -> BlockingOptions {
    let cpu = *online_cpus().expect("CPUs are listed").last().expect("there is one");
    let mut options = BlockingOptions::new(cpu);
    options.duration = Span::from_ns(100_000_000);
    options
}

#[test]
fn every_load_is_watched() {
    let mut options = options();
    options.loads = vec![Load::None, Load::Disk, Load::Net, Load::Fork];
    let mut told = Vec::new();
    let blocking = match measure(&options, &mut |load| told.push(load.to_owned())) {
        Ok(blocking) => blocking,
        Err(error) if error.is_not_permitted() => {
            println!("SKIPPED: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(told, ["none", "disk", "net", "fork"]);
    for load in &blocking.loads {
        assert!(
            load.delay.count > 0
                && load.delay.ns_min <= load.delay.ns_p50
                && load.delay.ns_p50 <= load.delay.ns_max,
            "{load:?}"
        );
        let buckets: u64 = load.histogram.iter().map(|bucket| bucket.count).sum();
        assert_eq!(buckets, load.delay.count, "{load:?}");
    }
    assert!(blocking.loads.iter().any(|load| load.delay.ns_max == blocking.longest_ns));
}

#[test]
fn bad_values_are_refused() {
    let refused = |change: &dyn Fn(&mut BlockingOptions)| {
        let mut options = options();
        change(&mut options);
        measure(&options, &mut |_| {}).expect_err("refused").is_bad_input()
    };
    assert!(refused(&|options| options.priority = 0));
    assert!(refused(&|options| options.period = Span::from_ns(49_999)));
    assert!(refused(&|options| options.duration = Span::from_ns(1)));
    assert!(
        refused(&|options| options.cpu = 1_000_000) || horolog_sys::fixed_priority::may_use_fifo(99).is_err()
    );
}
