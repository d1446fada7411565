//! The daemon's state, and what each method does to it.

use crate::config::Config;
use crate::host::{self, Binding, Host};
use crate::protocol::{
    Bind, BoundThread, Create, DESCRIPTION, ErrorReply, Event, INTERFACE, Named, Reserves, Resize, Shown,
};
use crate::store::Store;
use horolog_reserve::{Amount, Judgement, Kernel, Life, Owner, Part, Process, Refusal, Reserve, Seat};
use horolog_sys::clock::monotonic_ns;
use horolog_time::Span;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its user.
    pub uid: u32,
    /// Its process.
    pub process: Process,
}

/// So many events wait for a watcher; one that is further behind loses its connection.
const EVENTS_WAITING: usize = 256;

/// So often a seat or a booked share that is free soon is tried again.
const AGAIN: Duration = Duration::from_millis(10);

/// The daemon.
#[derive(Debug)]
pub struct Service {
    inner: Mutex<Inner>,
    config: Config,
    host: Host,
    /// Nothing is changed on this machine.
    is_dry: bool,
}

#[derive(Debug)]
struct Inner {
    kernel: Kernel,
    bindings: Vec<Binding>,
    /// Processes whose threads, also future ones, are bound.
    followed: Vec<(Process, u64)>,
    /// Bound threads whose amount somebody else has changed, and what they have.
    changed: Vec<(Process, Option<Amount>)>,
    store: Option<Store>,
    watchers: Vec<SyncSender<Event>>,
}

type Answer = Result<Value, ErrorReply>;

/// What one try to attach came to.
enum Tried {
    Done(Shown),
    /// Again after a while, for this reason.
    Again(ErrorReply),
    Refused(ErrorReply),
}

fn refused(refusal: &Refusal) -> ErrorReply {
    let parameters = json!({ "message": refusal.to_string(), "refusal": refusal });
    match refusal {
        Refusal::BadRequest { .. } => ErrorReply { error: format!("{INTERFACE}.BadRequest"), parameters },
        _ => ErrorReply { error: format!("{INTERFACE}.Refused"), parameters },
    }
}

fn parsed<T: DeserializeOwned>(parameters: &Value) -> Result<T, ErrorReply> {
    let given = if parameters.is_null() { json!({}) } else { parameters.clone() };
    serde_json::from_value(given).map_err(|error| ErrorReply {
        error: "org.varlink.service.InvalidParameter".to_owned(),
        parameters: json!({ "parameter": error.to_string(), "message": format!("parameters: {error}") }),
    })
}

impl Service {
    /// Takes over what a former daemon has left in the store; what cannot be taken over is told.
    ///
    /// # Errors
    /// In words: the state cannot be read.
    pub fn start(config: Config, host: Host, store: Option<Store>) -> Result<(Service, Vec<String>), String> {
        let mut inner = Inner {
            kernel: Kernel::new(vec![host.domain.clone()]),
            bindings: Vec::new(),
            followed: Vec::new(),
            changed: Vec::new(),
            store,
            watchers: Vec::new(),
        };
        let told = inner.take_over().inspect_err(|_| {
            for binding in &inner.bindings {
                let _ = host::put_back(binding);
            }
        })?;
        let is_dry = inner.store.is_none();
        Ok((Service { inner: Mutex::new(inner), config, host, is_dry }, told))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each event is carried out whole or not at all, so a panicked holder spoils nothing.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers one call; `Watch` has [`Service::watch`].
    ///
    /// # Errors
    /// The error of the protocol.
    pub fn answer(&self, method: &str, parameters: &Value, caller: Caller) -> Answer {
        let Some((interface, name)) = method.rsplit_once('.') else {
            return Err(no_method(method));
        };
        match (interface, name) {
            ("org.varlink.service", "GetInfo") => Ok(json!({
                "vendor": "horolog", "product": "horologd", "version": env!("CARGO_PKG_VERSION"),
                "url": "https://varlink.org", "interfaces": ["org.varlink.service", INTERFACE],
            })),
            ("org.varlink.service", "GetInterfaceDescription") => describe(parameters),
            (INTERFACE, "Create") => self.create(&parsed(parameters)?, caller),
            (INTERFACE, "Resize") => self.resize(&parsed(parameters)?, caller),
            (INTERFACE, "Delete") => self.delete(&parsed(parameters)?, caller),
            (INTERFACE, "Attach") => self.attach(&parsed(parameters)?, caller),
            (INTERFACE, "Detach") => self.detach(&parsed(parameters)?, caller),
            (INTERFACE, "List") => Ok(json!(self.list())),
            (INTERFACE, "Show") => self.show(parsed::<Named>(parameters)?.id),
            (INTERFACE, "Host") => Ok(json!({ "host": self.host })),
            (INTERFACE | "org.varlink.service", _) => Err(no_method(method)),
            _ => Err(ErrorReply {
                error: "org.varlink.service.InterfaceNotFound".to_owned(),
                parameters: json!({ "interface": interface, "message": format!("there is no interface {interface}") }),
            }),
        }
    }

    /// Every change from now on.
    pub fn watch(&self) -> Receiver<Event> {
        let (sender, receiver) = sync_channel(EVENTS_WAITING);
        self.lock().watchers.push(sender);
        receiver
    }

    fn list(&self) -> Reserves {
        let inner = self.lock();
        let ids: Vec<u64> = inner.kernel.reserves().map(|reserve| reserve.id).collect();
        Reserves { reserves: ids.into_iter().filter_map(|id| inner.shown(id)).collect() }
    }

    fn show(&self, id: u64) -> Answer {
        let shown = self.lock().shown(id);
        shown
            .map(|reserve| json!({ "reserve": reserve }))
            .ok_or_else(|| refused(&Refusal::NoSuchReserve { id }))
    }

    fn able(&self) -> Result<(), ErrorReply> {
        if self.is_dry || self.host.can_enforce {
            return Ok(());
        }
        let why = self.host.findings.iter().filter(|one| one.is_good == Some(false));
        let why: Vec<String> = why.map(|one| format!("{}: {}", one.what, one.found)).collect();
        Err(ErrorReply::new("NotAllowed", format!("this machine enforces no reserves: {}", why.join("; "))))
    }

    fn create(&self, asked: &Create, caller: Caller) -> Answer {
        self.able()?;
        let parts: Vec<Part> = asked
            .parts
            .iter()
            .map(|part| {
                let mut made = Part::new(part.amount);
                (made.threads, made.kind, made.name) = (part.threads, part.kind, part.name.clone());
                made
            })
            .collect();
        let life = if asked.kept { Life::Kept } else { Life::Client(caller.process) };
        let owner = Owner { uid: caller.uid, life };
        let mut inner = self.lock();
        inner.look_at_others();
        let before = inner.kernel.clone();
        let quota = self.config.quota_of(caller.uid);
        let granted = inner
            .kernel
            .create(&parts, owner, &quota, monotonic_ns())
            .map_err(|refusal| refused(&refusal))?;
        if let Err(error) = inner.save() {
            inner.kernel = before;
            return Err(error);
        }
        for one in &granted {
            inner.tell("created", one.id, one.amount.to_string());
        }
        Ok(json!(Reserves { reserves: granted.iter().filter_map(|one| inner.shown(one.id)).collect() }))
    }

    fn resize(&self, asked: &Resize, caller: Caller) -> Answer {
        self.able()?;
        let mut inner = self.lock();
        inner.look_at_others();
        let before = inner.kernel.reserve(asked.id).cloned();
        let quota = self.config.quota_of(before.as_ref().map_or(caller.uid, |reserve| reserve.owner.uid));
        inner
            .kernel
            .resize(asked.id, asked.amount, caller.uid, &quota, monotonic_ns())
            .map_err(|refusal| refused(&refusal))?;
        if let Some(before) = before
            && let Err(error) = inner.carry_out_resize(&before, self.is_dry)
        {
            inner.kernel.undo_resize(before);
            let _ = inner.save();
            return Err(error);
        }
        inner.tell("resized", asked.id, asked.amount.to_string());
        Ok(json!({ "reserve": inner.shown(asked.id) }))
    }

    fn delete(&self, asked: &Named, caller: Caller) -> Answer {
        let mut inner = self.lock();
        let threads =
            inner.kernel.delete(asked.id, caller.uid, monotonic_ns()).map_err(|one| refused(&one))?;
        inner.followed.retain(|(_, id)| *id != asked.id);
        threads.into_iter().for_each(|thread| inner.unbind(thread));
        inner.tell("deleted", asked.id, String::new());
        inner.save()?;
        Ok(json!({}))
    }

    fn detach(&self, asked: &Bind, caller: Caller) -> Answer {
        same_numbers(caller)?;
        let mut inner = self.lock();
        let not_bound = Refusal::NotBound { tid: asked.tid, id: asked.id };
        let bound =
            inner.kernel.reserve(asked.id).and_then(|one| one.threads().find(|one| one.id == asked.tid));
        let thread = match (bound, inner.kernel.reserve(asked.id)) {
            (Some(thread), _) => thread,
            (None, Some(_)) => return Err(refused(&not_bound)),
            (None, None) => return Err(refused(&Refusal::NoSuchReserve { id: asked.id })),
        };
        let now = monotonic_ns();
        inner.kernel.detach(asked.id, thread, caller.uid, now).map_err(|one| refused(&one))?;
        inner.followed.retain(|(process, id)| *id != asked.id || process.id != asked.tid);
        inner.unbind(thread);
        inner.tell("detached", asked.id, format!("thread {}", asked.tid));
        inner.save()?;
        Ok(json!({ "reserve": inner.shown(asked.id) }))
    }

    fn attach(&self, asked: &Bind, caller: Caller) -> Answer {
        self.able()?;
        same_numbers(caller)?;
        if let Some(why) = host::objection(asked.tid, caller.uid) {
            return Err(ErrorReply::new("NotAllowed", why));
        }
        let Some(thread) = host::process(asked.tid) else {
            return Err(ErrorReply::new("NotAllowed", format!("thread {} has ended", asked.tid)));
        };
        let until = monotonic_ns().saturating_add(host::LONGEST_PATIENCE_NS);
        loop {
            // Not in the head of the match, where the lock would be held throughout.
            let tried = self.lock().try_attach(asked.id, thread, caller, self.is_dry);
            match tried {
                Tried::Done(shown) => {
                    if asked.process {
                        self.lock().followed.push((thread, asked.id));
                        self.follow(thread, asked.id);
                    }
                    let shown = self.lock().shown(asked.id).unwrap_or(shown);
                    return Ok(json!({ "reserve": shown }));
                }
                Tried::Refused(error) => return Err(error),
                Tried::Again(error) if monotonic_ns() >= until => return Err(error),
                Tried::Again(_) => {}
            }
            // Others are served meanwhile.
            std::thread::sleep(AGAIN);
        }
    }

    /// Binds the threads of a process that have no reserve yet, as far as there is room.
    fn follow(&self, process: Process, id: u64) {
        for tid in horolog_sys::thread_facts::of_process(process.id).unwrap_or_default() {
            let mut inner = self.lock();
            let Some(thread) = host::process(tid) else { continue };
            let Some(reserve) = inner.kernel.reserve(id) else { return };
            let caller = Caller { uid: reserve.owner.uid, process };
            if inner.kernel.reserve_of(thread).is_some() || host::objection(tid, caller.uid).is_some() {
                continue;
            }
            if reserve.threads().count() == reserve.seats.len() {
                return;
            }
            // What is refused now is tried again at the next look.
            let _ = inner.try_attach(id, thread, caller, self.is_dry);
        }
    }

    /// Looks who has ended and which threads have begun.
    pub fn look_around(&self) {
        let followed = {
            let mut inner = self.lock();
            inner.sweep();
            inner.followed.clone()
        };
        followed.into_iter().for_each(|(process, id)| self.follow(process, id));
    }

    /// Gives every thread back how it was scheduled; the state on disk stays for the next daemon.
    pub fn end(&self) -> Vec<String> {
        let inner = self.lock();
        inner.bindings.iter().filter_map(|one| host::put_back(one).err()).map(|one| one.to_string()).collect()
    }
}

impl Inner {
    fn take_over(&mut self) -> Result<Vec<String>, String> {
        let Some(store) = &self.store else { return Ok(Vec::new()) };
        let state = store.load()?;
        let mut told = Vec::new();
        self.bindings = state.bindings;
        self.look_at_others();
        for (reserve, refusal) in self.kernel.restore(state.kernel, monotonic_ns()) {
            told.push(format!("reserve {} ({}) is dropped: {refusal}", reserve.id, reserve.amount));
        }
        for binding in std::mem::take(&mut self.bindings) {
            let Binding { thread, reserve, amount, former, .. } = binding;
            if !host::lives(thread) {
                continue;
            }
            let is_there = self.kernel.reserve_of(thread) == Some(reserve);
            let kept = is_there && host::granted(thread.id) == Some(amount);
            // Where somebody else has changed it meanwhile it is left alone.
            let is_as_before = host::former(thread.id).is_ok_and(|now| now == former);
            if kept || (is_there && is_as_before && host::bind(thread.id, &amount, Span::ZERO).is_ok()) {
                told.push(format!("thread {} goes on with reserve {reserve}, {amount}", thread.id));
                self.bindings.push(binding);
            } else {
                let _ = host::put_back(&binding);
                let _ = self.kernel.detach(reserve, thread, 0, monotonic_ns());
                told.push(format!("thread {} is no longer bound to reserve {reserve}", thread.id));
            }
        }
        self.sweep();
        self.save().map_err(|error| error.message().to_owned())?;
        Ok(told)
    }

    /// Counts threads that others have put under the mechanism.
    fn look_at_others(&mut self) {
        self.kernel.set_foreign(host::foreign(&self.bindings));
        if self.kernel.judge_domain(0, monotonic_ns()) != Judgement::Holds {
            self.tell(
                "unproved",
                0,
                "threads that others have put under SCHED_DEADLINE leave too little".to_owned(),
            );
        }
    }

    fn save(&self) -> Result<(), ErrorReply> {
        let Some(store) = &self.store else { return Ok(()) };
        store
            .save(self.kernel.snapshot(), &self.bindings)
            .map_err(|error| ErrorReply::new("NotAllowed", format!("the state cannot be written: {error}")))
    }

    fn tell(&mut self, what: &str, id: u64, why: String) {
        let event = Event { at_ns: monotonic_ns(), what: what.to_owned(), id, why };
        self.watchers.retain(|watcher| watcher.try_send(event.clone()).is_ok());
    }

    fn shown(&self, id: u64) -> Option<Shown> {
        let Reserve { name, owner, kind, amount, seats, .. } = self.kernel.reserve(id)?.clone();
        let client = match owner.life {
            Life::Kept => None,
            Life::Client(process) => Some(process.id),
        };
        let now = monotonic_ns();
        let bound = seats.iter().filter_map(|seat| match seat {
            Seat::Bound(thread) => Some(*thread),
            Seat::Free { .. } => None,
        });
        let bound = bound.map(|thread| {
            let tid = thread.id;
            // A dry daemon binds nothing for real.
            let binding = self.bindings.iter().find(|one| one.thread == thread);
            let (executed, since) = binding.map_or((0, now), |one| (one.executed_ns, one.since_ns));
            let comm = std::fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
            BoundThread {
                tid,
                comm: comm.trim_end().to_owned(),
                granted: host::granted(tid),
                executed_ns: Span::from_ns(
                    binding.map_or(0, |_| host::executed(tid)).saturating_sub(executed),
                ),
                bound_ns: Span::from_ns(now.saturating_sub(since)),
            }
        });
        let bound = bound.collect();
        Some(Shown { id, name, uid: owner.uid, client, kind, amount, threads: seats.len(), bound })
    }

    fn try_attach(&mut self, id: u64, thread: Process, caller: Caller, is_dry: bool) -> Tried {
        let amount = match self.kernel.attach(id, thread, caller.uid, monotonic_ns()) {
            Ok(attached) => attached.amount,
            Err(refusal @ Refusal::Later { .. }) => return Tried::Again(refused(&refusal)),
            Err(refusal) => return Tried::Refused(refused(&refusal)),
        };
        if !is_dry {
            match self.bind(id, thread, amount) {
                Ok(()) => {}
                Err((error, is_busy)) => {
                    self.bindings.retain(|one| one.thread != thread);
                    self.kernel.undo_attach(id, thread, monotonic_ns());
                    let _ = self.save();
                    return if is_busy { Tried::Again(error) } else { Tried::Refused(error) };
                }
            }
        }
        self.tell("attached", id, format!("thread {}", thread.id));
        match self.shown(id) {
            Some(shown) => Tried::Done(shown),
            None => Tried::Refused(refused(&Refusal::NoSuchReserve { id })),
        }
    }

    /// Writes down how the thread is scheduled, then changes it; whether the kernel may grant it later goes with an error.
    fn bind(&mut self, reserve: u64, thread: Process, amount: Amount) -> Result<(), (ErrorReply, bool)> {
        let not_allowed = |error: horolog_sys::Error| {
            let is_busy = error.is_busy();
            (ErrorReply::new("NotAllowed", error.to_string()), is_busy)
        };
        let former = host::former(thread.id).map_err(not_allowed)?;
        let (since_ns, executed_ns) = (monotonic_ns(), host::executed(thread.id));
        self.bindings.push(Binding { thread, reserve, former, amount, since_ns, executed_ns });
        self.save().map_err(|error| (error, false))?;
        let granted = host::bind(thread.id, &amount, Span::ZERO).map_err(not_allowed)?;
        if !host::lives(thread) {
            // The number belongs to another thread by now, or to none.
            let _ = horolog_sys::fixed_priority::Former::from_parts(thread.id, (0, 0, 0)).give_back();
            return Err((ErrorReply::new("NotAllowed", format!("thread {} has ended", thread.id)), false));
        }
        if granted == Some(amount) {
            return Ok(());
        }
        let says = granted.map_or("nothing".to_owned(), |granted| granted.to_string());
        let _ = horolog_sys::fixed_priority::Former::from_parts(thread.id, former).give_back();
        Err((
            ErrorReply::new("NotAllowed", format!("the kernel says that it gives {says}, not {amount}")),
            false,
        ))
    }

    fn unbind(&mut self, thread: Process) {
        for binding in self.bindings.extract_if(.., |one| one.thread == thread) {
            // A thread that the kernel does not give back goes on with its amount until it ends; it is counted as a foreign one then.
            let _ = host::put_back(&binding);
        }
    }

    /// Gives bound threads the new amount; where one is refused, all have the old one.
    fn carry_out_resize(&mut self, before: &Reserve, is_dry: bool) -> Result<(), ErrorReply> {
        let Some(amount) = self.kernel.reserve(before.id).map(|reserve| reserve.amount) else {
            return Ok(());
        };
        let places: Vec<usize> =
            (0..self.bindings.len()).filter(|&place| self.bindings[place].reserve == before.id).collect();
        if is_dry {
            return Ok(());
        }
        for (done, &place) in places.iter().enumerate() {
            let tid = self.bindings[place].thread.id;
            self.bindings[place].amount = amount;
            let changed = self.save().and_then(|()| {
                host::bind(tid, &amount, Span::ZERO)
                    .map_err(|error| ErrorReply::new("NotAllowed", error.to_string()))
            });
            if let Err(error) = changed {
                for &undone in &places[..=done] {
                    self.bindings[undone].amount = before.amount;
                    let _ = host::bind(self.bindings[undone].thread.id, &before.amount, Span::ZERO);
                }
                return Err(error);
            }
        }
        self.save()
    }

    /// Tells of bound threads that no longer have what they were given.
    fn tell_changed(&mut self) {
        let others = self.bindings.iter().map(|one| (one, host::granted(one.thread.id)));
        let others = others.filter(|(one, granted)| *granted != Some(one.amount) && host::lives(one.thread));
        let now: Vec<(Process, u64, Option<Amount>)> =
            others.map(|(one, granted)| (one.thread, one.reserve, granted)).collect();
        let is_news = |thread: Process, granted| !self.changed.contains(&(thread, granted));
        let news: Vec<_> =
            now.iter().copied().filter(|&(thread, _, granted)| is_news(thread, granted)).collect();
        self.changed = now.into_iter().map(|(thread, _, granted)| (thread, granted)).collect();
        for &(thread, reserve, granted) in &news {
            let has = granted.map_or("nothing".to_owned(), |amount| amount.to_string());
            self.tell("changed", reserve, format!("thread {} has {has} by another's doing", thread.id));
        }
        if news.iter().any(|(_, _, granted)| granted.is_some()) {
            self.look_at_others();
        }
    }

    /// Lets go what belongs to threads and processes that have ended.
    fn sweep(&mut self) {
        let now = monotonic_ns();
        let bound = self.kernel.reserves().flat_map(|reserve| reserve.threads().collect::<Vec<_>>());
        let clients = self.kernel.reserves().filter_map(|reserve| match reserve.owner.life {
            Life::Client(process) => Some(process),
            Life::Kept => None,
        });
        let mut ended: Vec<Process> = bound.chain(clients).filter(|process| !host::lives(*process)).collect();
        ended.sort_unstable();
        ended.dedup();
        for process in &ended {
            let reserve = self.kernel.reserve_of(*process);
            let dropped = self.kernel.process_ended(*process, now);
            self.bindings.retain(|one| one.thread != *process);
            dropped.threads.into_iter().for_each(|thread| self.unbind(thread));
            if let Some(id) = reserve {
                self.tell("detached", id, format!("thread {} has ended", process.id));
            }
            for id in dropped.reserves {
                self.followed.retain(|(_, followed)| *followed != id);
                self.tell("dropped", id, format!("process {} has ended", process.id));
            }
        }
        self.followed.retain(|(process, _)| host::lives(*process));
        self.tell_changed();
        if !ended.is_empty() {
            // The next change writes it again; until then the old state names processes that are gone, which does no harm.
            let _ = self.save();
        }
    }
}

/// Refuses a caller to whom numbers of threads mean others.
fn same_numbers(caller: Caller) -> Result<(), ErrorReply> {
    host::foreign_numbers(caller.process).map_or(Ok(()), |why| Err(ErrorReply::new("NotAllowed", why)))
}

fn describe(parameters: &Value) -> Answer {
    match parameters.get("interface").and_then(Value::as_str) {
        Some(INTERFACE) => Ok(json!({ "description": DESCRIPTION })),
        other => Err(ErrorReply {
            error: "org.varlink.service.InterfaceNotFound".to_owned(),
            parameters: json!({ "interface": other, "message": "no description of that interface" }),
        }),
    }
}

fn no_method(method: &str) -> ErrorReply {
    ErrorReply {
        error: "org.varlink.service.MethodNotFound".to_owned(),
        parameters: json!({ "method": method, "message": format!("there is no method {method}") }),
    }
}
