use super::*;

/// A small generator of its own: nothing here is shared with what draws sets elsewhere.
struct Numbers(u64);

impl Numbers {
    fn upto(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most + 1
    }
}

/// Whether every job of the synchronous release is done in time, nanosecond by nanosecond over two hyperperiods and the longest
/// deadline; `rank` gives the most important ready job (task, absolute deadline).
fn simulated(set: &[(u64, u64, u64)], rank: impl Fn(usize, u64) -> u64) -> bool {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let hyperperiod = set.iter().fold(1, |all, &(_, _, period)| all / gcd(all, period) * period);
    let end = 2 * hyperperiod + set.iter().map(|task| task.1).max().unwrap_or(0);
    let mut jobs: Vec<(usize, u64, u64)> = Vec::new();
    for now in 0..end {
        for (task, &(wcet, deadline, period)) in set.iter().enumerate() {
            if now % period == 0 {
                jobs.push((task, now + deadline, wcet));
            }
        }
        // The older job of a task goes first.
        if let Some(at) = (0..jobs.len()).min_by_key(|&at| (rank(jobs[at].0, jobs[at].1), jobs[at].0, at)) {
            jobs[at].2 -= 1;
            if jobs[at].2 == 0 {
                jobs.remove(at);
            }
        }
        if jobs.iter().any(|job| job.1 <= now + 1) {
            return false;
        }
    }
    true
}

fn verdicts(set: &[(u64, u64, u64)]) -> [Verdict; 4] {
    let [mut wcet, mut deadline, mut period] = [const { Vec::new() }; 3];
    for &(c, d, t) in set {
        wcet.push(c);
        deadline.push(d);
        period.push(t);
    }
    let sets = Sets::new(set.len(), &wcet, &deadline, &period).expect("good sets");
    let mut found = [Verdict::Unknown; 4];
    decide(sets, &BatchTest::ALL, &mut found, 1);
    found
}

#[test]
fn verdicts_are_those_of_a_simulation_step_by_step() {
    let mut numbers = Numbers(11);
    let (mut met, mut missed) = ([0; 2], [0; 2]);
    for _ in 0..1_500 {
        let count = numbers.upto(3);
        let set: Vec<(u64, u64, u64)> = (0..count)
            .map(|_| (numbers.upto(4), numbers.upto(16), [2, 3, 4, 6, 8, 12][numbers.upto(6) as usize - 1]))
            .collect();
        let mut order: Vec<usize> = (0..set.len()).collect();
        order.sort_by_key(|&task| (set[task].1, task));
        let place = |task: usize| order.iter().position(|&one| one == task).expect("a place") as u64;
        let by_hand = [simulated(&set, |task, _| place(task)), simulated(&set, |_, deadline| deadline)];
        let over = set.iter().map(|task| task.0 as f64 / task.2 as f64).sum::<f64>() > 1.0 + 1e-9;
        let found = verdicts(&set);
        for kind in 0..2 {
            // Above full utilisation a miss may come later than the simulation looks.
            let holds = by_hand[kind] && !over;
            let wanted = if holds { Verdict::Meets } else { Verdict::Misses };
            // A full level is left open where its search would not end.
            let is_open = found[kind] == Verdict::Unknown;
            assert!(found[kind] == wanted || is_open, "{set:?}: {found:?}, by hand {wanted:?} ({kind})");
            if !is_open {
                *(if holds { &mut met[kind] } else { &mut missed[kind] }) += 1;
            }
        }
        // What is sufficient is contained in what is exact; priorities are the same for D = T.
        for sufficient in &found[2..] {
            let is_implicit = set.iter().all(|task| task.1 == task.2);
            assert!(*sufficient != Verdict::Meets || !is_implicit || found[0] == Verdict::Meets, "{set:?}");
            assert_ne!(*sufficient, Verdict::Misses, "a sufficient bound proves no miss");
        }
    }
    assert!(met.iter().chain(&missed).all(|&count| count > 200), "{met:?} {missed:?}");
}

#[test]
fn the_bounds_are_exact_at_their_border() {
    use Verdict::{Meets, Unknown};
    let implicit = |set: &[(u64, u64)]| {
        let set: Vec<(u64, u64, u64)> = set.iter().map(|&(c, t)| (c, t, t)).collect();
        verdicts(&set)
    };
    // 1/2 and 1/3: the product is 2.
    assert_eq!(implicit(&[(1, 2), (1, 3)])[3], Meets);
    let large = 1 << 50;
    assert_eq!(implicit(&[(large / 2, large), (large, 3 * large)])[3], Meets);
    assert_eq!(implicit(&[(large / 2 + 1, large), (large, 3 * large)])[3], Unknown);
    // Two tasks: 2(sqrt 2 - 1) = 0.828427124746190097…
    let half = 10_u64.pow(17);
    let bound = 41_421_356_237_309_504;
    assert_eq!(implicit(&[(bound, half), (bound, half)])[2], Meets);
    assert_eq!(implicit(&[(bound + 1, half), (bound, half)])[2], Meets);
    assert_eq!(implicit(&[(bound + 1, half), (bound + 1, half)])[2], Unknown);
    // A deadline below the period is outside their assumptions.
    assert_eq!(verdicts(&[(1, 99, 100)])[2..], [Unknown; 2]);
    assert_eq!(verdicts(&[(1, 100, 100)])[2..], [Meets; 2]);
}

#[test]
fn the_order_of_rows_does_not_hang_on_threads() {
    let mut numbers = Numbers(5);
    let count = 3 * BLOCK + 7;
    let period: Vec<u64> = (0..2 * count).map(|_| 50 + numbers.upto(50)).collect();
    let wcet: Vec<u64> = (0..2 * count).map(|_| numbers.upto(60)).collect();
    let sets = Sets::new(2, &wcet, &period, &period).expect("good sets");
    let of = |threads: usize| {
        let mut found = vec![Verdict::Unknown; count * 4];
        decide(sets, &BatchTest::ALL, &mut found, threads);
        found
    };
    let one = of(1);
    assert!(one.contains(&Verdict::Meets) && one.contains(&Verdict::Misses));
    for threads in [0, 2, 3, 8] {
        assert_eq!(of(threads), one, "{threads} threads");
    }
}

#[test]
fn bad_sets_are_named() {
    let good = [5_u64, 6];
    assert_eq!(Sets::new(0, &good, &good, &good).err(), Some(BadSets::Tasks(0)));
    assert_eq!(Sets::new(1, &good, &good, &good[..1]).err(), Some(BadSets::Lengths(2, 2, 1, 1)));
    let none: Vec<u64> = Vec::new();
    assert!(Sets::new(3, &none, &none, &none).is_ok());
    assert_eq!(Sets::new(3, &good, &good, &good).err(), Some(BadSets::Lengths(2, 2, 2, 3)));
    for (value, is_good) in [(0, false), (1, true), (LIMIT - 1, true), (LIMIT, false), (u64::MAX, false)] {
        let deadline = [7, value];
        let found = Sets::new(2, &good, &deadline, &good);
        let bad = BadSets::Time { argument: "deadline", set: 0, task: 1, value };
        assert_eq!(found.err(), (!is_good).then_some(bad));
    }
}
