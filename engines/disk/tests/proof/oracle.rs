//! A disk in units of time: every instant is looked at, and whether another operation may go first is tried out.

use horolog_disk::{Request, Reserve};

/// What happened.
pub(crate) struct Outcome {
    /// (offset, begin, end).
    pub(crate) served: Vec<(u64, u64, u64)>,
    /// Reserved operations that ended after their deadline.
    pub(crate) late: u64,
    /// How often another than the earliest deadline went first.
    pub(crate) went_first: u64,
}

#[derive(Clone, Copy, Debug)]
struct Op {
    client: Option<usize>,
    offset: u64,
    release: u64,
    deadline: u64,
    length: u64,
    order: (usize, u64),
}

/// How much must be done by `d`, with the longest operation that is in the way.
pub(crate) fn needed_by(reserves: &[Reserve], best_effort: u64, d: u64) -> u64 {
    let mut demand = 0;
    let mut in_the_way = best_effort;
    for one in reserves {
        if one.deadline_ns > d {
            in_the_way = in_the_way.max(one.longest_ns);
        }
        let mut deadline = one.deadline_ns;
        while deadline <= d {
            demand += one.operations * one.longest_ns;
            deadline += one.period_ns;
        }
    }
    if demand == 0 { 0 } else { demand + in_the_way }
}

/// All operations with their releases: the i-th of a client not before a period after the (i - n)-th.
fn operations(
    reserves: &[Reserve],
    best_effort: u64,
    requests: &[(Option<usize>, Request)],
) -> (Vec<Op>, Vec<Vec<u64>>) {
    let (mut all, mut released) = (Vec::new(), vec![Vec::<u64>::new(); reserves.len()]);
    for (place, (client, request)) in requests.iter().enumerate() {
        for offset in request.offset..request.offset + request.bytes {
            let (release, deadline, length) = match client {
                None => (request.at_ns, u64::MAX, best_effort),
                Some(client) => {
                    let release = earliest(&reserves[*client], &released[*client], request.at_ns);
                    released[*client].push(release);
                    let one = &reserves[*client];
                    (release, release + one.deadline_ns, one.longest_ns)
                }
            };
            all.push(Op { client: *client, offset, release, deadline, length, order: (place, offset) });
        }
    }
    (all, released)
}

fn earliest(reserve: &Reserve, released: &[u64], asked: u64) -> u64 {
    let mut release = asked;
    if release < reserve.start_ns {
        release = reserve.start_ns;
    }
    if let Some(&last) = released.last() {
        release = release.max(last);
    }
    let n = reserve.operations as usize;
    if released.len() >= n {
        release = release.max(released[released.len() - n] + reserve.period_ns);
    }
    release
}

pub(crate) fn run(
    reserves: &[Reserve],
    best_effort: u64,
    is_just_in_time: bool,
    requests: &[(Option<usize>, Request)],
    seed: u64,
) -> Outcome {
    let (mut left, _) = operations(reserves, best_effort, requests);
    let mut outcome = Outcome { served: Vec::new(), late: 0, went_first: 0 };
    let (mut t, mut head, mut rises) = (0, 0, true);
    while !left.is_empty() {
        let here: Vec<Op> = left.iter().copied().filter(|op| op.release <= t).collect();
        let urgent = here
            .iter()
            .filter(|op| op.client.is_some())
            .min_by_key(|op| (op.deadline, op.release, op.client, op.order))
            .copied();
        let Some((nearest, way)) = scan(&here, head, rises, urgent, is_just_in_time) else {
            t += 1;
            continue;
        };
        let (chosen, by_scan) = match urgent {
            None => (nearest, true),
            Some(urgent) if !is_just_in_time => (urgent, false),
            Some(urgent) if urgent.order == nearest.order => (nearest, true),
            Some(urgent) => {
                let history = history_of(reserves, requests, t);
                if nothing_misses_behind(reserves, &here, &history, nearest, t) {
                    outcome.went_first += 1;
                    (nearest, true)
                } else {
                    (urgent, false)
                }
            }
        };
        if by_scan {
            rises = way;
        }
        let end = t + crate::time_of(seed, t, chosen.offset, chosen.length);
        outcome.late += u64::from(chosen.client.is_some() && end > chosen.deadline);
        outcome.served.push((chosen.offset, t, end));
        left.retain(|op| op.order != chosen.order);
        head = chosen.offset + u64::from(rises);
        t = end;
    }
    outcome
}

/// The next one on the head's way. Without just in time, reserved ones are not looked at where one of them is urgent.
fn scan(
    here: &[Op],
    head: u64,
    rises: bool,
    urgent: Option<Op>,
    is_just_in_time: bool,
) -> Option<(Op, bool)> {
    if !is_just_in_time && let Some(urgent) = urgent {
        return Some((urgent, rises));
    }
    let mut best: Option<(u64, u64, bool, Op)> = None;
    for op in here {
        let is_up = op.offset >= head;
        let distance = if is_up { op.offset - head } else { head - op.offset };
        let turn = u64::from(is_up != rises);
        let is_nearer = best.is_none_or(|(its_turn, its_distance, _, other)| {
            (turn, distance, key(op)) < (its_turn, its_distance, key(&other))
        });
        if is_nearer {
            best = Some((turn, distance, is_up, *op));
        }
    }
    best.map(|(_, _, is_up, op)| (op, is_up))
}

/// In which order operations at one place are served: as they were released; best effort when it came.
fn key(op: &Op) -> (u64, bool, Option<usize>, (usize, u64)) {
    (op.release, op.client.is_some(), op.client, op.order)
}

/// Releases of each client up to `t`.
fn history_of(reserves: &[Reserve], requests: &[(Option<usize>, Request)], t: u64) -> Vec<Vec<u64>> {
    let up_to: Vec<_> = requests.iter().copied().filter(|(_, request)| request.at_ns <= t).collect();
    let (_, mut released) = operations(reserves, 1, &up_to);
    released.iter_mut().for_each(|releases| releases.retain(|&release| release <= t));
    released
}

/// `first` goes first, then EDF follows, everybody asks as soon as possible, and everything takes its longest: is nothing late until
/// nothing is left?
fn nothing_misses_behind(reserves: &[Reserve], here: &[Op], history: &[Vec<u64>], first: Op, t: u64) -> bool {
    let mut waiting: Vec<(u64, u64)> = here
        .iter()
        .filter(|op| op.client.is_some() && op.order != first.order)
        .map(|op| (op.deadline, op.length))
        .collect();
    let mut released = history.to_vec();
    let mut u = t + first.length;
    if first.client.is_some() && u > first.deadline {
        return false;
    }
    loop {
        for (one, released) in reserves.iter().zip(&mut released) {
            loop {
                let release = earliest(one, released, t);
                if release > u {
                    break;
                }
                released.push(release);
                waiting.push((release + one.deadline_ns, one.longest_ns));
            }
        }
        let Some(place) = (0..waiting.len()).min_by_key(|&place| waiting[place]) else { return true };
        let (deadline, length) = waiting.swap_remove(place);
        u += length;
        if u > deadline {
            return false;
        }
    }
}
