//! The kernel's constant bandwidth server against its rules, unit by unit: what it takes in every window, and when it has
//! served. Shares no code with the analysis or the scheduling machine.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_analysis::hyperbolic_load::HyperbolicLoad;
use horolog_analysis::server::{Above, Serve, Service, Supply};
use horolog_testkit::Random;

/// A reservation whose budgets may each be overdrawn.
struct Reservation {
    budget: i64,
    period: i64,
    left: i64,
    deadline: i64,
    throttled: bool,
    /// By how much this budget is overdrawn before anybody looks.
    overdraft: i64,
}

impl Reservation {
    fn replenish(&mut self) {
        while self.left <= 0 {
            self.left += self.budget;
            self.deadline += self.period;
        }
        self.throttled = false;
    }

    fn wake(&mut self, now: i64) {
        let too_much = self.left * self.period > (self.deadline - now) * self.budget;
        if !self.throttled && (self.deadline < now || too_much) {
            (self.left, self.deadline) = (self.budget, now + self.period);
        }
    }
}

/// For each unit of time whether the server executed, when its queue became empty, and arrival and response of each job.
fn run(
    mut server: Reservation,
    jobs: &[(i64, i64)],
    end: i64,
    most: i64,
    random: &mut Random,
) -> (Vec<bool>, Vec<i64>, Vec<(i64, i64)>) {
    let mut queue: Vec<(i64, i64)> = Vec::new();
    let (mut executed, mut emptied, mut responses) = (Vec::new(), Vec::new(), Vec::new());
    for now in 0..end {
        if server.throttled && server.deadline <= now {
            server.replenish();
            server.overdraft = random.below(most as u64 + 1) as i64;
        }
        let was_empty = queue.is_empty();
        queue.extend(jobs.iter().filter(|(at, _)| *at == now));
        if was_empty && !queue.is_empty() {
            server.wake(now);
        }
        let runs = !queue.is_empty() && !server.throttled;
        executed.push(runs);
        if !runs {
            continue;
        }
        server.left -= 1;
        queue[0].1 -= 1;
        if queue[0].1 == 0 {
            let (arrival, _) = queue.remove(0);
            responses.push((arrival, now + 1 - arrival));
            if queue.is_empty() {
                emptied.push(now + 1);
            }
        }
        // The kernel looks where the thread sleeps, and with delay where it runs on.
        if server.left <= -server.overdraft || (server.left <= 0 && queue.is_empty()) {
            server.throttled = true;
        }
    }
    (executed, emptied, responses)
}

#[test]
fn no_window_and_no_response_exceeds_its_bound() {
    const END: i64 = 300;
    let (mut reached, mut soft_reached, mut beyond_periodic) = (0, 0, 0);
    for index in 0..1_500 {
        let mut random = Random::of_item(77, index);
        let period = random.between(4, 16) as i64;
        let budget = random.between(1, period as u64 / 2) as i64;
        let most = if index % 2 == 0 { 0 } else { random.below(2 * budget as u64) as i64 };
        let mut jobs = Vec::new();
        let mut at = random.below(10) as i64;
        while at < END {
            jobs.push((at, random.between(1, 2 * budget as u64) as i64));
            at += random.between(1, 3 * period as u64) as i64;
        }
        let fresh =
            || Reservation { budget, period, left: budget, deadline: 0, throttled: false, overdraft: most };
        let (executed, emptied, _) = run(fresh(), &jobs, END, most, &mut Random::of_item(78, index));
        let load = HyperbolicLoad::of_reservation(budget as u64, period as u64, 0, most as u64).unwrap();
        for from in 0..executed.len() {
            let mut taken = 0;
            for (length, unit) in (1_u128..).zip(&executed[from..]) {
                taken += u128::from(*unit);
                let bound = HyperbolicLoad::demand(&[load], length).unwrap();
                assert!(taken <= bound, "{index}: {taken} in {length}, bound {bound}");
                reached += u32::from(taken == bound && length > budget as u128);
                let periodic = (length as i64 + period - 1) / period * budget;
                beyond_periodic += u32::from(most == 0 && taken as i64 > periodic);
            }
        }
        // Work that finds the queue empty, after each such history.
        let (above, effort) = (Above::default(), &mut 1_000_000);
        let service = Service::HardReservation { overdrawn: most as u64 };
        let supply = Supply::new(service, budget as u64, period as u64, &above, effort).unwrap();
        for &empty in emptied.iter().take(8) {
            let (at, work) = (empty + random.below(3) as i64, random.between(1, 3 * budget as u64) as i64);
            let mut history: Vec<(i64, i64)> =
                jobs.iter().copied().filter(|(other, _)| *other < empty).collect();
            history.push((at, work));
            let (_, _, worst) = run(fresh(), &history, END + 200, most, &mut Random::of_item(78, index));
            let (_, response) = worst.into_iter().rfind(|(arrival, _)| *arrival == at).unwrap();
            let bound = supply.finish(work as u128, effort).unwrap();
            assert!(response as u128 <= bound, "{index}: {response} above {bound}");
            soft_reached += u32::from(response as u128 == bound);
        }
    }
    assert!(reached > 100 && soft_reached > 100, "{reached} {soft_reached}");
    // The reason why it is no periodic task to the others.
    assert!(beyond_periodic > 100, "{beyond_periodic}");
}
