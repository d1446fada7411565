//! A device with reserves.

use crate::counters::QueueCounters;
use crate::options::Options;
use crate::program::{STATE_SIZE, TOLD_SIZE, Target, demultiplexer, tally, words};
use crate::threads;
use horolog_reserve::network::WhenUsedUp;
use horolog_sys::Error;
use horolog_sys::bpf::{Link, Map, MapKind, Program, ProgramKind, XdpMode};
use horolog_sys::clock::monotonic_ns;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::fixed_priority::{Class, class_of, set_class};

/// A queue of one CPU, and its thread.
#[derive(Debug)]
struct Queue {
    map: Map,
    id: u32,
    thread: u32,
}

/// Early demultiplexing at work. Dropping it, or the end of the process, takes all of it away: the programs, the queues, their threads.
#[derive(Debug)]
pub struct Receiver {
    mode: XdpMode,
    queues: Vec<Queue>,
    states: Map,
    told: Result<(Map, [Link; 2]), Error>,
    _link: Link,
}

impl Receiver {
    /// Sets it up on a device of the calling thread's namespace. The threads have their classes before the first packet comes.
    ///
    /// # Errors
    /// Bad input; a right or a facility that is missing.
    pub fn attach(options: &Options) -> Result<Receiver, Error> {
        options.check()?;
        check_cpu(options.cpu)?;
        let queues: Vec<Queue> =
            options.buffers().map(|buffer| queue(options.cpu, buffer)).collect::<Result<_, _>>()?;
        for (queue, class) in queues.iter().zip(options.classes()) {
            if class != Class::Normal {
                set_class(queue.thread, class)?;
            }
        }
        let states = Map::create(MapKind::Array, STATE_SIZE, queues.len() as u32)?;
        let code = demultiplexer(&targets(options, &queues), &states, options.cpu, monotonic_ns())?;
        let program = Program::load(ProgramKind::Xdp, &code)?;
        // Before the first packet: what is put into queues must be counted from the first one on.
        let told = listen(&queues);
        let (mode, link) = program.attach_xdp(&options.device)?;
        Ok(Receiver { mode, queues, states, told, _link: link })
    }

    /// Where in the kernel the program looks at packets.
    #[must_use]
    pub fn mode(&self) -> XdpMode {
        self.mode
    }

    /// Why drops of full queues and deliveries are not counted; none where they are.
    #[must_use]
    pub fn uncounted(&self) -> Option<&Error> {
        self.told.as_ref().err()
    }

    /// The protocol thread of a queue: those of the reserves as given, then the unreserved one.
    #[must_use]
    pub fn threads(&self) -> Vec<u32> {
        self.queues.iter().map(|queue| queue.thread).collect()
    }

    /// How the protocol thread of each queue is scheduled now, as the kernel says.
    ///
    /// # Errors
    /// Where a thread is gone.
    pub fn classes(&self) -> Result<Vec<Class>, Error> {
        self.queues.iter().map(|queue| class_of(queue.thread)).collect()
    }

    /// Changes how the protocol thread of a queue is scheduled.
    ///
    /// # Errors
    /// Without the right.
    pub fn set_class(&self, queue: usize, class: Class) -> Result<(), Error> {
        let queue = self.queues.get(queue).ok_or_else(|| {
            Error::bad_input(
                format!("queue {queue}"),
                "there is none",
                "count from 0; the last one is unreserved",
            )
        })?;
        set_class(queue.thread, class)
    }

    /// The counters of each queue: the reserves as given, then the unreserved one.
    ///
    /// # Errors
    /// Where the kernel does not let them be read.
    pub fn counters(&self) -> Result<Vec<QueueCounters>, Error> {
        (0..)
            .zip(&self.queues)
            .map(|(at, queue)| {
                // What was delivered is read first, so that it is never more than what came.
                let told = match &self.told {
                    Ok((map, _)) => Some(words(&map.get(queue.id)?)),
                    Err(_) => None,
                };
                let state = words(&self.states.get(at)?);
                Ok(QueueCounters::of(&state, told.as_deref(), threads::executed_ns(queue.thread)))
            })
            .collect()
    }
}

fn targets<'a>(options: &'a Options, queues: &'a [Queue]) -> Vec<Target<'a>> {
    let reserved =
        options.reserves.iter().map(|one| (one.flows.as_slice(), Some(one.amount), one.when_used_up));
    let rest = (&[][..], options.unreserved.cap, WhenUsedUp::Drop);
    reserved
        .chain([rest])
        .zip(queues)
        .map(|((flows, amount, when_used_up), queue)| Target {
            flows,
            amount,
            when_used_up,
            queue: &queue.map,
        })
        .collect()
}

fn check_cpu(cpu: u32) -> Result<(), Error> {
    if online_cpus()?.contains(&cpu) {
        return Ok(());
    }
    Err(Error::bad_input(
        format!("cpu {cpu}"),
        "it is not online",
        "give one that /sys/devices/system/cpu/online names",
    ))
}

fn queue(cpu: u32, buffer: u32) -> Result<Queue, Error> {
    let map = Map::create(MapKind::Cpus, 4, cpu + 1)?;
    map.set(cpu, &buffer.to_ne_bytes())?;
    let id = map.id()?;
    Ok(Queue { thread: threads::of_queue(cpu, id)?, id, map })
}

/// Counts what the kernel tells of the queues.
fn listen(queues: &[Queue]) -> Result<(Map, [Link; 2]), Error> {
    let told = Map::create(MapKind::Hash, TOLD_SIZE, queues.len() as u32)?;
    for queue in queues {
        told.set(queue.id, &[0; TOLD_SIZE])?;
    }
    let link =
        |name, at| Program::load(ProgramKind::RawTracepoint, &tally(&told, at)?)?.attach_tracepoint(name);
    let links = [link(c"xdp_cpumap_enqueue", 0)?, link(c"xdp_cpumap_kthread", 16)?];
    Ok((told, links))
}

/// What this kernel and the rights of this process lack for reserves; nothing is attached.
///
/// # Errors
/// The first thing that is missing.
pub fn check(cpu: u32) -> Result<(), Error> {
    check_cpu(cpu)?;
    let queues = [queue(cpu, 1)?];
    let states = Map::create(MapKind::Array, STATE_SIZE, 1)?;
    let target = Target { flows: &[], amount: None, when_used_up: WhenUsedUp::Drop, queue: &queues[0].map };
    Program::load(ProgramKind::Xdp, &demultiplexer(&[target], &states, cpu, 0)?)?;
    listen(&queues).map(|_| ())
}
