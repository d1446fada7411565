//! Each test of several processors written a second time, slowly, as its source has it; and what each accepts that another one does not.

use horolog_analysis::global::{
    Scratch, SporadicTask, bak_holds, bar_holds, bcl_edf_holds, bcl_fp_bounds, bcl_slack_edf_bounds,
    bcl_slack_fp_bounds, density_holds, ff_dbf_speed, gfb_holds, limited_carry_in_bounds,
    non_preemptive_edf_bounds, non_preemptive_fp_bounds, response_edf_bounds, response_fp_bounds,
};
use horolog_testkit::Random;
use num_rational::Ratio;

type Set = Vec<SporadicTask>;
type Fraction = Ratio<i128>;

fn draw(random: &mut Random) -> (Set, u32) {
    let m = 1 + random.below(4) as u32;
    let count = 1 + random.below(6);
    let implicit = random.below(3) == 0;
    let equals = random.below(4) == 0;
    let mut rank = 0;
    let task = |_| {
        let period = 1 + random.below(14);
        let wcet = 1 + random.below(1 + period / 2);
        let deadline = if implicit { period } else { random.between(wcet, period) };
        rank += u32::from(!equals || random.below(2) == 0);
        SporadicTask { wcet, period, deadline, rank, is_periodic: false }
    };
    ((0..count).map(task).collect(), m)
}

fn fraction(over: u64, under: u64) -> Fraction {
    Ratio::new(over.into(), under.into())
}

/// Less than m (x + δ) of min(w, x + δ) for a δ that is as small as one likes: below 1/m it is, since all else is whole.
fn leaves_room(work: &[u64], wait: u64, m: u32) -> bool {
    let cap = 1_000 * u128::from(wait) + 1;
    work.iter().map(|&ns| (1_000 * u128::from(ns)).min(cap)).sum::<u128>() < u128::from(m) * cap
}

/// Job by job: the first one begins with the window and ends `slack` before its deadline, the others execute at their releases.
fn in_window(task: &SporadicTask, slack: u64, window: u64) -> u64 {
    let mut sum = task.wcet.min(window);
    let mut release = task.wcet as i64 - (task.deadline - slack) as i64 + task.period as i64;
    while release < window as i64 {
        sum += task.wcet.min((window as i64 - release) as u64);
        release += task.period as i64;
    }
    sum
}

/// Job by job, back from a deadline at the window's end.
fn due_no_later(task: &SporadicTask, slack: u64, window: u64) -> u64 {
    let (mut sum, mut due) = (0, window as i64);
    while due > 0 {
        let is_inside = due >= task.deadline as i64;
        sum += if is_inside { task.wcet } else { task.wcet.min((due - slack as i64).max(0) as u64) };
        due -= task.period as i64;
    }
    sum
}

fn demand(task: &SporadicTask, within: u64) -> u64 {
    (0..).take_while(|job| job * task.period + task.deadline <= within).count() as u64 * task.wcet
}

fn without_carry_in(task: &SporadicTask, window: u64) -> u64 {
    (0..)
        .map(|job| job * task.period)
        .take_while(|&at| at < window)
        .map(|at| task.wcet.min(window - at))
        .sum()
}

/// All ways to choose at most `most` of the pairs' second numbers.
fn choices(pairs: &[(u64, u64)], most: usize) -> Vec<Vec<u64>> {
    let chosen = (0_u32..1 << pairs.len()).filter(|bits| bits.count_ones() as usize <= most);
    let of = |bits: u32| -> Vec<u64> {
        pairs
            .iter()
            .enumerate()
            .map(|(place, pair)| if bits >> place & 1 == 1 { pair.1 } else { pair.0 })
            .collect()
    };
    chosen.map(of).collect()
}

#[test]
fn shares_are_those_of_the_papers() {
    let (mut random, mut held, mut gfb) = (Random::new(41), [0; 3], 0);
    for _ in 0..20_000 {
        let (set, m) = draw(&mut random);
        let whole = Fraction::from_integer(m.into());
        let rule = |share: &dyn Fn(&SporadicTask) -> Fraction| {
            let largest = set.iter().map(share).max().expect("a task");
            set.iter().map(share).sum::<Fraction>() <= whole - (whole - 1) * largest
        };
        let density = rule(&|task| fraction(task.wcet, task.deadline));
        assert_eq!(density_holds(&set, m), density, "{set:?} on {m}");
        let implicit = set.iter().all(|task| task.deadline == task.period);
        let expected = implicit.then(|| rule(&|task| fraction(task.wcet, task.period)));
        assert_eq!(gfb_holds(&set, m), expected);
        gfb += u32::from(expected == Some(true));

        let beta = |own: &SporadicTask, task: &SporadicTask| {
            let (lambda, share) = (fraction(own.wcet, own.deadline), fraction(task.wcet, task.period));
            let late = fraction(task.period - task.deadline, own.deadline);
            let more = (fraction(task.wcet, 1) - lambda * i128::from(task.period)) / i128::from(own.deadline);
            let beta = share * (late + 1) + if share > lambda { more } else { Fraction::from_integer(0) };
            beta.min(Fraction::from_integer(1))
        };
        let room = |own: &SporadicTask| {
            let lambda = fraction(own.wcet, own.deadline);
            whole * (-lambda + 1) + lambda - set.iter().map(|task| beta(own, task)).sum::<Fraction>()
        };
        let least = set.iter().map(room).min().expect("a task");
        // The fast one rounds.
        let (is_near, holds) = (least < Ratio::new(1, 1 << 30), bak_holds(&set, m));
        assert!(
            holds == (least >= Fraction::from_integer(0)) || (is_near && !holds),
            "{set:?} on {m}: {least}"
        );
        held[0] += u32::from(density);
        held[1] += u32::from(holds);
        held[2] += u32::from(!density && !holds);
    }
    assert!(held.iter().all(|&count| count > 1_000) && gfb > 500, "{held:?} {gfb}");
}

/// One unit inside and outside: Σ = m − (m − 1) max exactly, and with a hair more.
#[test]
fn shares_are_compared_exactly() {
    let task = |wcet, period| SporadicTask { wcet, period, deadline: period, rank: 0, is_periodic: false };
    let large = 1_000_000_000_000_000_003;
    for (third, m, others) in [(1, 2, 4), (1, 3, 6)] {
        // (others + 1)/3 = m - (m - 1)/3.
        let set: Set = (0..=others).map(|_| task(third * (large / 3), 3 * (large / 3))).collect();
        assert!(density_holds(&set, m) && gfb_holds(&set, m) == Some(true), "{set:?}");
        let mut more = set.clone();
        more[0].wcet += 1;
        assert!(!density_holds(&more, m) && gfb_holds(&more, m) == Some(false));
    }
}

#[test]
fn edf_windows_are_those_of_the_papers() {
    let (mut random, mut held) = (Random::new(42), [0; 3]);
    let mut scratch = Scratch::default();
    for _ in 0..6_000 {
        let (set, m) = draw(&mut random);
        let others = |own: usize| (0..set.len()).filter(move |&other| other != own);
        let bcl = |own: usize| {
            let d = set[own].deadline;
            let work: Vec<u64> = others(own).map(|other| due_no_later(&set[other], 0, d)).collect();
            leaves_room(&work, d - set[own].wcet, m)
        };
        let expected = (0..set.len()).all(bcl);
        assert_eq!(bcl_edf_holds(&set, m, &mut scratch), expected, "{set:?} on {m}");
        held[0] += u32::from(expected);
        for windowed in [false, true] {
            let (mut slacks, mut bounds) = (vec![0; set.len()], vec![None; set.len()]);
            loop {
                let before = slacks.clone();
                for own in 0..set.len() {
                    let (c, d) = (set[own].wcet, set[own].deadline);
                    let all = |x: u64| -> Vec<u64> {
                        let due = |other: usize| due_no_later(&set[other], slacks[other], d);
                        let within = |other: usize| in_window(&set[other], slacks[other], x);
                        others(own)
                            .map(|it| if windowed { due(it).min(within(it)) } else { due(it) })
                            .collect()
                    };
                    if let Some(x) = (c..=d).find(|&x| leaves_room(&all(x), x - c, m)) {
                        bounds[own] = Some(x);
                        slacks[own] = slacks[own].max(d - x);
                    }
                }
                if bounds.iter().all(Option::is_some) || slacks == before {
                    break;
                }
            }
            let found = match windowed {
                false => bcl_slack_edf_bounds(&set, m, &mut scratch),
                true => response_edf_bounds(&set, m, &mut 1_000_000, &mut scratch).expect("enough"),
            };
            assert_eq!(found, bounds.iter().all(Option::is_some), "{set:?} on {m}, {windowed}");
            // A set that is refused is refused as soon as that is clear.
            assert!(
                !found || scratch.bounds == bounds,
                "{set:?} on {m}, {windowed}: {:?}, {bounds:?}",
                scratch.bounds
            );
            held[1 + usize::from(windowed)] += u32::from(found);
        }
    }
    assert!(held[0] > 500 && held[1] > held[0] && held[2] > held[1], "{held:?}");
}

#[test]
fn fixed_priority_windows_are_those_of_the_papers() {
    let (mut random, mut held) = (Random::new(43), [0; 4]);
    let mut scratch = Scratch::default();
    for _ in 0..6_000 {
        let (set, m) = draw(&mut random);
        let distinct = set.windows(2).all(|pair| pair[0].rank < pair[1].rank);
        for (kind, held) in held.iter_mut().enumerate() {
            let mut bounds: Vec<Option<u64>> = vec![None; set.len()];
            for own in 0..set.len() {
                let (c, d, rank) = (set[own].wcet, set[own].deadline, set[own].rank);
                let slack = |other: usize| match bounds[other] {
                    Some(bound) if kind > 0 && set[other].rank < rank => set[other].deadline - bound,
                    _ => 0,
                };
                let above = || (0..set.len()).filter(|&other| other != own && set[other].rank <= rank);
                let fits = |x: u64| match kind {
                    3 => {
                        let pair = |it: usize| {
                            let without = without_carry_in(&set[it], x);
                            (without, without.max(in_window(&set[it], slack(it), x)))
                        };
                        let pairs: Vec<(u64, u64)> = above().map(pair).collect();
                        choices(&pairs, m as usize - 1).iter().all(|work| leaves_room(work, x - c, m))
                    }
                    _ => {
                        let window = if kind == 2 { x } else { d };
                        let work: Vec<u64> =
                            above().map(|it| in_window(&set[it], slack(it), window)).collect();
                        leaves_room(&work, x - c, m)
                    }
                };
                bounds[own] = (c..=d).find(|&x| fits(x));
                if bounds[own].is_none() {
                    let lost = (0..set.len()).filter(|&other| set[other].rank == rank);
                    lost.for_each(|other| bounds[other] = None);
                    break;
                }
            }
            let effort = &mut 1_000_000;
            match kind {
                0 => _ = bcl_fp_bounds(&set, m, &mut scratch),
                1 => _ = bcl_slack_fp_bounds(&set, m, &mut scratch),
                2 => _ = response_fp_bounds(&set, m, effort, &mut scratch).expect("enough"),
                _ => {
                    let found = limited_carry_in_bounds(&set, m, effort, &mut scratch).expect("enough");
                    assert_eq!(found.is_some(), distinct);
                    if !distinct {
                        continue;
                    }
                }
            }
            assert_eq!(scratch.bounds, bounds, "{kind}: {set:?} on {m}");
            *held += u32::from(scratch.all_bounded());
        }
    }
    assert!(held.iter().all(|&count| count > 500) && held[1] > held[0], "{held:?}");
}

/// With the carry-in limited no bound is greater.
#[test]
fn limited_carry_in_makes_no_bound_worse() {
    let (mut random, mut better) = (Random::new(44), 0);
    let (mut one, mut other) = (Scratch::default(), Scratch::default());
    for _ in 0..20_000 {
        let (mut set, m) = draw(&mut random);
        set.iter_mut().zip(0..).for_each(|(task, rank)| task.rank = rank);
        response_fp_bounds(&set, m, &mut 1_000_000, &mut one).expect("enough");
        limited_carry_in_bounds(&set, m, &mut 1_000_000, &mut other).expect("enough");
        for (all, limited) in one.bounds.iter().zip(&other.bounds) {
            assert!(limited.unwrap_or(u64::MAX) <= all.unwrap_or(u64::MAX), "{set:?} on {m}");
            better += u32::from(limited < all || (limited.is_some() && all.is_none()));
        }
    }
    assert!(better > 20, "{better}");
}

#[test]
fn non_preemptive_windows_are_those_of_the_derivation() {
    let (mut random, mut held) = (Random::new(45), [0; 2]);
    let mut scratch = Scratch::default();
    for _ in 0..4_000 {
        let (set, m) = draw(&mut random);
        for edf in [false, true] {
            let (mut slacks, mut bounds) = (vec![0; set.len()], vec![None; set.len()]);
            loop {
                let before = slacks.clone();
                for own in 0..set.len() {
                    let (c, d) = (set[own].wcet, set[own].deadline);
                    let pair = |it: usize, x: u64| {
                        let known = if edf || set[it].rank < set[own].rank { slacks[it] } else { 0 };
                        let all = in_window(&set[it], known, x + 1);
                        let blocks = if edf { set[it].deadline > d } else { set[it].rank > set[own].rank };
                        let first = match edf {
                            true => due_no_later(&set[it], slacks[it], d).min(all),
                            false if blocks => 0,
                            false => all,
                        };
                        let due = if edf { due_no_later(&set[it], slacks[it], d) } else { 0 };
                        (first, if blocks { (due + set[it].wcet).min(all) } else { first })
                    };
                    let fits = |x: u64| {
                        let others = (0..set.len()).filter(|&it| it != own);
                        let pairs: Vec<(u64, u64)> = others.map(|it| pair(it, x)).collect();
                        choices(&pairs, m as usize).iter().all(|work| leaves_room(work, x, m))
                    };
                    let bound = (0..=d - c).find(|&x| fits(x)).map(|x| x + c);
                    if !edf && bound.is_none() {
                        let rank = set[own].rank;
                        (0..set.len()).filter(|&it| set[it].rank == rank).for_each(|it| bounds[it] = None);
                        break;
                    }
                    if let Some(x) = bound {
                        (bounds[own], slacks[own]) = (Some(x), slacks[own].max(d - x));
                    }
                }
                if !edf || bounds.iter().all(Option::is_some) || slacks == before {
                    break;
                }
            }
            match edf {
                true => non_preemptive_edf_bounds(&set, m, &mut 1_000_000, &mut scratch).expect("enough"),
                false => non_preemptive_fp_bounds(&set, m, &mut 1_000_000, &mut scratch).expect("enough"),
            };
            assert_eq!(scratch.bounds, bounds, "edf {edf}: {set:?} on {m}");
            held[usize::from(edf)] += u32::from(scratch.all_bounded());
        }
    }
    assert!(held.iter().all(|&count| count > 300), "{held:?}");
}

/// All extensions in half units, and all choices of carried-in work.
#[test]
fn bar_is_that_of_the_paper_with_strict_caps() {
    let (mut random, mut held, mut refused) = (Random::new(46), 0, 0);
    let mut scratch = Scratch::default();
    for _ in 0..3_000 {
        let (single, m) = draw(&mut random);
        // In half units, so that the points between are whole numbers, too.
        let twice = |task: &SporadicTask| SporadicTask {
            wcet: 2 * task.wcet,
            period: 2 * task.period,
            deadline: 2 * task.deadline,
            ..*task
        };
        let set: Set = single.iter().map(twice).collect();
        let total: Fraction = set.iter().map(|task| fraction(task.wcet, task.period)).sum();
        let left = Fraction::from_integer(m.into()) - total;
        let expected = left > Fraction::from_integer(0)
            && (0..set.len()).all(|own| {
                let (c, d) = (set[own].wcet, set[own].deadline);
                let mut largest: Vec<u64> = set.iter().map(|task| task.wcet).collect();
                largest.sort_unstable_by(|a, b| b.cmp(a));
                let carried: u64 = largest.iter().take(m as usize - 1).sum();
                let late: Fraction = set
                    .iter()
                    .map(|task| fraction(task.wcet, task.period) * i128::from(task.period - task.deadline))
                    .sum();
                let most = (fraction(carried + u64::from(m) * c, 1) + late) / left - i128::from(d);
                let most = most.floor().to_integer().clamp(-1, 400);
                (0..=most).all(|extension| {
                    let extension = extension as u64;
                    let (t, x) = (extension + d, extension + d - c);
                    let pair = |it: usize| {
                        let (less, more) = (demand(&set[it], t), without_carry_in(&set[it], t));
                        if it == own {
                            ((less - c).min(extension), (more - c).min(extension))
                        } else {
                            (less, more)
                        }
                    };
                    let pairs: Vec<(u64, u64)> = (0..set.len()).map(pair).collect();
                    let own_work = |work: &[u64]| work[own];
                    choices(&pairs, m as usize - 1).iter().all(|work| {
                        let cap = 1_000 * u128::from(x) + 1;
                        let others = (0..set.len()).filter(|&it| it != own);
                        let sum: u128 = others.map(|it| (1_000 * u128::from(work[it])).min(cap)).sum();
                        sum + 1_000 * u128::from(own_work(work)) < u128::from(m) * cap
                    })
                })
            });
        let found = bar_holds(&single, m, &mut 10_000_000, &mut scratch).expect("enough");
        assert_eq!(found, expected, "{single:?} on {m}");
        (held, refused) = (held + u32::from(found), refused + u32::from(!found));
    }
    assert!(held > 500 && refused > 500, "{held} {refused}");
}

/// Two tasks that fill one processor each: with equal sides as enough this would be accepted.
#[test]
fn bar_does_not_accept_what_equal_sides_would() {
    let task = SporadicTask { wcet: 1, period: 10, deadline: 1, rank: 0, is_periodic: false };
    assert_eq!(bar_holds(&[task, task], 1, &mut 1_000, &mut Scratch::default()), Ok(false));
    assert_eq!(bar_holds(&[task, task], 2, &mut 1_000, &mut Scratch::default()), Ok(true));
    assert_eq!(bar_holds(&[task, task, task], 2, &mut 1_000, &mut Scratch::default()), Ok(false));
}

/// The demand at a speed at every quarter of a unit up to where it can matter.
fn holds_at_speed(set: &[SporadicTask], m: u32, speed: Fraction) -> bool {
    let total: Fraction = set.iter().map(|task| fraction(task.wcet, task.period)).sum();
    let room = Fraction::from_integer(m.into()) - speed * (i128::from(m) - 1);
    let late: Fraction = set
        .iter()
        .map(|task| fraction(task.wcet, task.period) * i128::from(task.period - task.deadline))
        .sum();
    if room <= total {
        return false;
    }
    let last = (late / (room - total)).floor().to_integer() + 1;
    (0..=4 * last.min(2_000)).all(|quarter| {
        let t = Ratio::new(quarter, 4);
        let of = |task: &SporadicTask| {
            let (c, d, period) = (i128::from(task.wcet), i128::from(task.deadline), i128::from(task.period));
            let jobs = (t / period).floor();
            let into = t - jobs * period;
            let rest = match into >= Fraction::from_integer(d) {
                true => Fraction::from_integer(c),
                false => (Fraction::from_integer(c) - (Fraction::from_integer(d) - into) * speed)
                    .max(Fraction::from_integer(0)),
            };
            jobs * c + rest
        };
        set.iter().map(of).sum::<Fraction>() <= room * t
    })
}

#[test]
fn ff_dbf_finds_a_speed_where_there_is_one() {
    let (mut random, mut found_one, mut none) = (Random::new(47), 0, 0);
    for _ in 0..1_500 {
        let (set, m) = draw(&mut random);
        let speed = ff_dbf_speed(&set, m, &mut 10_000_000).expect("enough");
        match speed {
            Some(speed) => {
                let speed = Ratio::new(i128::try_from(speed).expect("a speed"), 1 << 32);
                assert!(set.iter().all(|task| speed >= fraction(task.wcet, task.deadline)));
                assert!(holds_at_speed(&set, m, speed), "{set:?} on {m} at {speed}");
                found_one += 1;
            }
            None => {
                let least = set.iter().map(|task| fraction(task.wcet, task.deadline)).max().expect("a task");
                let speeds = (0..=24).map(|step| Ratio::new(step, 24)).filter(|&speed| speed > least);
                // One speed alone may lie between two multiples of 2^-32; a stretch of them may not.
                let hair = Ratio::new(1, 1 << 16);
                let holds = |speed| [speed, speed + hair].into_iter().all(|it| holds_at_speed(&set, m, it));
                assert!(!speeds.into_iter().any(holds), "{set:?} on {m}");
                none += 1;
            }
        }
    }
    assert!(found_one > 300 && none > 300, "{found_one} {none}");
}

/// Extremes: no task, one task, more processors than tasks, times at the end of the range, no effort.
#[test]
fn extremes_have_an_answer() {
    let mut scratch = Scratch::default();
    let long = horolog_analysis::global::longest_ns(3);
    let full = SporadicTask { wcet: long, period: long, deadline: long, rank: 0, is_periodic: false };
    for set in [vec![], vec![full], vec![full; 3], vec![SporadicTask { wcet: 1, ..full }; 3]] {
        for m in [1_u32, 2, 3, 8_192] {
            let fits = set.len() <= m as usize;
            let light = set.iter().all(|task| task.wcet == 1);
            assert_eq!(density_holds(&set, m), set.len() <= 1 || light);
            let _ = bak_holds(&set, m);
            let mut effort = 1_000_000_u64;
            assert_eq!(bcl_slack_edf_bounds(&set, m, &mut scratch), fits || light, "{} on {m}", set.len());
            assert_eq!(response_edf_bounds(&set, m, &mut effort, &mut scratch), Ok(fits || light));
            assert_eq!(response_fp_bounds(&set, m, &mut effort, &mut scratch), Ok(fits || light));
            let _ = bar_holds(&set, m, &mut effort, &mut scratch);
            let _ = ff_dbf_speed(&set, m, &mut effort);
            assert!(set.is_empty() || response_fp_bounds(&set, m, &mut 0, &mut scratch).is_err());
        }
    }
}

/// Fewer tasks than processors: the rounding of the largest share counts m times.
#[test]
fn the_largest_share_is_not_rounded_in_favour_of_the_set() {
    let task = |wcet, period| SporadicTask { wcet, period, deadline: period, rank: 0, is_periodic: false };
    let (unit, floor) = (1_u64 << 32, 3_435_973_837_u64);
    let other = 4 * unit - 4 * floor - 2;
    // 4 (floor + h) + other = 4 - 2 units + 4 h units: 4 at h = 0.5.
    let set = |hundredths: u64| [task(100 * floor + hundredths, 100 * unit), task(other, unit)];
    assert!(!density_holds(&set(99), 4) && !density_holds(&set(51), 4));
    assert!(density_holds(&set(50), 4) && density_holds(&set(25), 4));
}
