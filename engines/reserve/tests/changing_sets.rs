//! Random sequences of events against a simulation that shares no code with the test of admission: the scheduler of the kernel in
//! units of time, global EDF over constant bandwidth servers with overdrawn budgets. No promise may break, nothing may leak.

mod queue_machine;

use horolog_reserve::{Amount, Domain, Judgement, Kernel, Life, Owner, Part, Process, Quota, Refusal};
use horolog_time::Span;

/// Splitmix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `below` - 1.
    fn below(&mut self, below: u64) -> u64 {
        self.next() % below
    }
}

/// A bound thread, as SCHED_DEADLINE treats it.
struct Server {
    thread: Process,
    reserve: u64,
    /// C, T, D.
    shape: (i64, i64, i64),
    left: i64,
    deadline: i64,
    awake: bool,
    /// Until when it is throttled.
    throttled: Option<i64>,
    /// How far this budget will be overdrawn.
    over: i64,
}

impl Server {
    fn new(thread: Process, reserve: u64, amount: Amount) -> Server {
        let (shape, deadline) = (shape(amount), i64::MIN);
        Server { thread, reserve, shape, left: 0, deadline, awake: false, throttled: None, over: 0 }
    }

    fn replenish(&mut self, now: i64) {
        let Some(at) = self.throttled.filter(|&at| at <= now) else { return };
        let (budget, period, relative) = self.shape;
        self.throttled = None;
        (self.left, self.deadline) = (self.left + budget, at + relative);
        while self.left <= 0 {
            (self.left, self.deadline) = (self.left + budget, self.deadline + period);
        }
        if self.deadline <= now {
            (self.left, self.deadline) = (budget, now + relative);
        }
        // Replenishments that lie ahead: the kernel moves the deadline, it waits no longer.
    }

    fn wake(&mut self, now: i64) {
        let (budget, period, relative) = self.shape;
        self.awake = true;
        if self.throttled.is_some() {
            return;
        }
        if self.deadline <= now {
            (self.left, self.deadline) = (budget, now + relative);
        } else if self.left * relative > (self.deadline - now) * budget {
            if relative == period {
                (self.left, self.deadline) = (budget, now + relative);
            } else {
                self.left = (self.deadline - now) * budget / relative;
                if self.left == 0 {
                    self.throttle();
                }
            }
        }
    }

    fn throttle(&mut self) {
        let (_, period, relative) = self.shape;
        self.throttled = Some(self.deadline - relative + period);
    }

    fn is_ready(&self) -> bool {
        self.awake && self.throttled.is_none()
    }
}

fn shape(amount: Amount) -> (i64, i64, i64) {
    let whole = |span: Span| i64::try_from(span.as_ns()).expect("small");
    (whole(amount.budget), whole(amount.period), whole(amount.deadline))
}

struct World {
    draw: Draw,
    kernel: Kernel,
    servers: Vec<Server>,
    clients: Vec<Process>,
    now: u64,
    processors: usize,
    tick: i64,
    next_process: u32,
    admitted: u64,
    refused: u64,
}

const ROOT: u32 = 0;

impl World {
    fn new(seed: u64, processors: u32, tick: u64) -> World {
        let domain = Domain::new((0..processors).collect()).with_tick_ns(tick);
        World {
            draw: Draw(seed),
            kernel: Kernel::new(vec![domain]),
            servers: Vec::new(),
            clients: Vec::new(),
            now: 0,
            processors: processors as usize,
            tick: tick as i64,
            next_process: 1,
            admitted: 0,
            refused: 0,
        }
    }

    fn fresh(&mut self) -> Process {
        self.next_process += 1;
        // Numbers come back, as they do: only the start tells processes apart.
        Process { id: self.next_process % 50, started: u64::from(self.next_process) }
    }

    fn amount(&mut self) -> Amount {
        let period = 2 + self.draw.below(11);
        // Deadlines at the end of the period often: there the kernel begins anew at a wake-up.
        let deadline = if self.draw.below(2) == 0 { period } else { 1 + self.draw.below(period) };
        let budget = 1 + self.draw.below(deadline);
        let span = Span::from_ns;
        Amount { budget: span(budget), period: span(period), deadline: span(deadline) }
    }

    fn any_reserve(&mut self) -> Option<u64> {
        let ids: Vec<u64> = self.kernel.reserves().map(|one| one.id).collect();
        if ids.is_empty() { None } else { Some(ids[self.draw.below(ids.len() as u64) as usize]) }
    }

    fn event(&mut self) {
        match self.draw.below(10) {
            0..=2 => self.create(),
            3 => self.resize(),
            4 => self.delete(),
            5 | 6 => self.attach(),
            7 => self.detach(),
            8 => self.kill(),
            _ => self.restart(),
        }
    }

    fn create(&mut self) {
        let client = self.fresh();
        let life = if self.draw.below(2) == 0 { Life::Kept } else { Life::Client(client) };
        let count = 1 + self.draw.below(2);
        let parts: Vec<Part> = (0..count)
            .map(|_| {
                let mut part = Part::new(self.amount());
                part.threads = 1 + self.draw.below(2) as usize;
                part
            })
            .collect();
        let before = self.kernel.snapshot().reserves.len();
        match self.kernel.create(&parts, Owner { uid: 7, life }, &Quota::default(), self.now) {
            Ok(granted) => {
                self.admitted += 1;
                assert_eq!(granted.len(), parts.len());
                if life != Life::Kept {
                    self.clients.push(client);
                }
                for one in granted {
                    (0..2).for_each(|_| self.attach_to(one.id));
                }
            }
            Err(refusal) => {
                self.refused += 1;
                assert_eq!(self.kernel.snapshot().reserves.len(), before, "all or nothing");
                if parts.len() == 1 {
                    self.hold_the_refusal_to_its_word(&parts[0], &refusal);
                }
            }
        }
    }

    /// The largest amount that a refusal names is granted, and one unit more is not.
    fn hold_the_refusal_to_its_word(&self, part: &Part, refusal: &Refusal) {
        let Refusal::NoRoom { largest, granted_after, .. } = refusal else { panic!("{refusal}") };
        let grants = |amount: Amount, at: u64| {
            let mut part = part.clone();
            part.amount = amount;
            let owner = Owner { uid: 7, life: Life::Kept };
            self.kernel.clone().create(&[part], owner, &Quota::default(), at).is_ok()
        };
        if let Some(amount) = largest {
            let more = Amount { budget: Span::from_ns(amount.budget.as_ns() + 1), ..*amount };
            assert!(grants(*amount, self.now), "{refusal}");
            assert!(!grants(more, self.now), "{refusal}");
        } else {
            assert!(!grants(Amount { budget: Span::from_ns(1), ..part.amount }, self.now), "{refusal}");
        }
        if let Some(after) = granted_after {
            assert!(grants(part.amount, self.now + after.as_ns()), "{refusal}");
            assert!(!grants(part.amount, self.now + after.as_ns() - 1), "{refusal}");
        }
    }

    fn resize(&mut self) {
        let Some(id) = self.any_reserve() else { return };
        let amount = self.amount();
        let old = self.kernel.reserve(id).expect("it is there").amount;
        let kept = match self.kernel.resize(id, amount, ROOT, &Quota::default(), self.now) {
            Ok(_) => {
                self.servers
                    .iter_mut()
                    .filter(|one| one.reserve == id)
                    .for_each(|one| one.shape = shape(amount));
                amount
            }
            Err(_) => old,
        };
        assert_eq!(self.kernel.reserve(id).expect("it is there").amount, kept);
    }

    fn delete(&mut self) {
        let Some(id) = self.any_reserve() else { return };
        assert!(self.kernel.delete(id, 8, self.now).is_err(), "another user's");
        let threads = self.kernel.delete(id, 7, self.now).expect("it is there");
        for thread in threads {
            self.take_out(thread);
        }
        assert!(self.kernel.delete(id, ROOT, self.now).is_err(), "no double release");
    }

    /// It has exactly one server.
    fn take_out(&mut self, thread: Process) {
        let place = self.servers.iter().position(|one| one.thread == thread).expect("it was bound");
        self.servers.swap_remove(place);
    }

    fn attach(&mut self) {
        if let Some(id) = self.any_reserve() {
            self.attach_to(id);
        }
    }

    fn attach_to(&mut self, id: u64) {
        let thread = self.fresh();
        if let Ok(attached) = self.kernel.attach(id, thread, 7, self.now) {
            self.servers.push(Server::new(thread, id, attached.amount));
        }
    }

    fn detach(&mut self) {
        if self.servers.is_empty() {
            return;
        }
        let place = self.draw.below(self.servers.len() as u64) as usize;
        let Server { thread, reserve, .. } = self.servers.swap_remove(place);
        self.kernel.detach(reserve, thread, 7, self.now).expect("it is bound");
        assert!(self.kernel.detach(reserve, thread, 7, self.now).is_err(), "no double release");
        // Another thread at once.
        self.attach_to(reserve);
    }

    fn kill(&mut self) {
        if self.draw.below(2) == 0 && !self.servers.is_empty() {
            let place = self.draw.below(self.servers.len() as u64) as usize;
            let thread = self.servers.swap_remove(place).thread;
            let _ = self.kernel.process_ended(thread, self.now);
            assert_eq!(self.kernel.process_ended(thread, self.now), horolog_reserve::Dropped::default());
        } else if !self.clients.is_empty() {
            let place = self.draw.below(self.clients.len() as u64) as usize;
            let client = self.clients.swap_remove(place);
            let dropped = self.kernel.process_ended(client, self.now);
            dropped.threads.into_iter().for_each(|thread| self.take_out(thread));
        }
    }

    /// The daemon dies and comes back; bound threads go on meanwhile.
    fn restart(&mut self) {
        let mut next = Kernel::new(self.kernel.domains().to_vec());
        let left_out = next.restore(self.kernel.snapshot(), self.now);
        assert!(left_out.is_empty(), "what was admitted is admitted again: {left_out:?}");
        self.kernel = next;
    }

    fn unit(&mut self) {
        let now = self.now as i64;
        for place in 0..self.servers.len() {
            let (wakes, over) = (self.draw.below(3) == 0, self.draw.below(self.tick as u64 + 1) as i64);
            let server = &mut self.servers[place];
            if server.throttled.is_some_and(|at| at <= now) {
                server.over = over;
            }
            server.replenish(now);
            if !server.awake && wakes {
                server.over = over;
                server.wake(now);
            }
            if server.is_ready() && server.left > 0 {
                assert!(
                    server.deadline > now,
                    "at {now} reserve {} ({:?}) has not got {} by {}",
                    server.reserve,
                    server.shape,
                    server.left,
                    server.deadline
                );
            }
        }
        let mut ready: Vec<usize> =
            (0..self.servers.len()).filter(|&one| self.servers[one].is_ready()).collect();
        ready.sort_by_key(|&one| self.servers[one].deadline);
        for &place in ready.iter().take(self.processors) {
            let sleeps = self.draw.below(8) == 0;
            let server = &mut self.servers[place];
            server.left -= 1;
            if server.left <= -server.over {
                server.throttle();
            }
            if sleeps {
                server.awake = false;
            }
        }
        self.now += 1;
    }

    fn check(&self) {
        assert_eq!(self.kernel.judge_domain(0, self.now), Judgement::Holds);
        let mut bound: Vec<Process> =
            self.kernel.reserves().flat_map(|one| one.threads().collect::<Vec<_>>()).collect();
        let mut there: Vec<Process> = self.servers.iter().map(|one| one.thread).collect();
        bound.sort_unstable();
        there.sort_unstable();
        assert_eq!(bound, there);
    }
}

#[test]
fn no_later_event_breaks_a_promise_and_nothing_leaks() {
    const SEQUENCES: u64 = 500;
    const EVENTS: u64 = 200;
    let (mut admitted, mut refused) = (0, 0);
    for seed in 0..SEQUENCES {
        let processors = 1 + (seed % 3) as u32;
        let mut world = World::new(seed, processors, seed / 3 % 3);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..EVENTS {
                world.event();
                world.check();
                // Several events at one instant, too.
                for _ in 0..world.draw.below(9) {
                    world.unit();
                }
            }
            let ids: Vec<u64> = world.kernel.reserves().map(|one| one.id).collect();
            for id in ids {
                let _ = world.kernel.delete(id, ROOT, world.now);
            }
            let later = world.now + 13;
            let room = Amount::implicit(Span::from_ns(100), Span::from_ns(100 + world.tick as u64));
            // One of density 1 leaves room for nothing else, on any number of processors.
            let all = Part::new(room);
            let owner = Owner { uid: 7, life: Life::Kept };
            world.kernel.create(&[all], owner, &Quota::default(), later).expect("nothing has leaked");
        }));
        assert!(ran.is_ok(), "seed {seed}, {processors} processors, at {}", world.now);
        (admitted, refused) = (admitted + world.admitted, refused + world.refused);
    }
    // The test judges nothing if nearly all is refused, or nothing.
    assert!(admitted > 4_000 && refused > 4_000, "{admitted} admitted, {refused} refused");
}

#[test]
fn of_several_parts_the_first_that_does_not_go_in_is_named_and_may_be_as_large_as_is_said() {
    let ms = |budget: u64, period: u64| {
        Part::new(Amount::implicit(Span::from_ns(budget * 1_000_000), Span::from_ns(period * 1_000_000)))
    };
    let kernel = || Kernel::new(vec![Domain::new(vec![0, 1]).with_tick_ns(4_000_000)]);
    let owner = Owner { uid: 7, life: Life::Kept };
    let ask = |parts: &[Part]| kernel().create(parts, owner, &Quota::default(), 0);
    // The parts before it go in by themselves; what is named goes in beside all, and 1 ns more does not.
    for (parts, failing) in [
        (vec![ms(20, 20), ms(8, 20)], 0_usize),
        (vec![ms(1, 20), ms(99, 100), ms(2, 50)], 1),
        (vec![ms(5, 20), ms(5, 20), ms(9, 20)], 2),
    ] {
        let Err(Refusal::NoRoom { reserve, part, largest, .. }) = ask(&parts) else {
            panic!("{parts:?} is refused");
        };
        assert_eq!((reserve, part), (None, Some(failing as u32 + 1)), "{parts:?}");
        let mut with = parts.clone();
        with[failing].amount = largest.unwrap_or_else(|| panic!("{parts:?}: some amount goes in"));
        ask(&with).unwrap_or_else(|refusal| panic!("{with:?}: {refusal}"));
        let budget = with[failing].amount.budget.as_ns() + 1;
        with[failing].amount.budget = Span::from_ns(budget);
        assert!(ask(&with).is_err(), "1 ns more than {largest:?}");
    }
    // One part alone is the new reserve, without a number.
    let Err(Refusal::NoRoom { whom, reserve, part, .. }) = ask(&[ms(20, 20)]) else { panic!("refused") };
    assert_eq!((whom.as_ref(), reserve, part), ("the new reserve", None, None));
}
