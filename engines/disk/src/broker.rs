//! Which operation of a disk is next.

use crate::admission::{NoRoom, Reserve, admit};
use crate::holder::{Holder, Life, Piece, ReserveId, Tally};
use crate::scan::Head;
use crate::slack::{First, Stream, goes_first};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// In which order operations begin when the disk is idle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// The reserved operation with the earliest deadline; without one, best effort in SCAN order.
    Edf,
    /// The next one of all in SCAN order where no deadline suffers from it, else as EDF.
    JustInTime,
}

/// What holds for the disk as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The order.
    pub policy: Policy,
    /// The longest operation, bytes: longer requests are cut, from their first byte on.
    #[serde(rename = "chunk_bytes")]
    pub chunk: u64,
    /// β: the longest time of a best-effort operation, ns.
    pub longest_ns: u64,
}

/// Bytes that a client wants read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When, ns.
    pub at_ns: u64,
    /// Given back with the answer.
    pub tag: u64,
    /// On which reserve; `None`: best effort.
    pub reserve: Option<ReserveId>,
    /// From this byte of the disk on.
    pub offset: u64,
    /// So many.
    pub bytes: u64,
}

/// What the disk is to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// The tag of its request.
    pub tag: u64,
    /// Whose; `None`: best effort.
    pub reserve: Option<ReserveId>,
    /// From this byte on.
    pub offset: u64,
    /// So many.
    pub bytes: u64,
    /// By when it is to be done, ns; `None`: best effort.
    pub deadline_ns: Option<u64>,
    /// So long it takes at the most, as the admission counts, ns.
    pub longest_ns: u64,
}

/// What to do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Next {
    /// Begin this; [`Broker::done`] when it has ended.
    Issue(Operation),
    /// Nothing before this instant, or before the next request.
    Wait(u64),
    /// Nothing before the next request.
    Idle,
    /// An operation has begun and not ended.
    Busy,
}

/// A request that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finished {
    /// Its tag.
    pub tag: u64,
    /// Its reserve.
    pub reserve: Option<ReserveId>,
    /// Its bytes.
    pub bytes: u64,
    /// When it came, ns.
    pub asked_ns: u64,
    /// By when it was to be done: D after the release of its last operation, ns; `None`: best effort.
    pub promised_ns: Option<u64>,
    /// When it was done, ns.
    pub done_ns: u64,
}

impl Finished {
    /// Whether it was done after what was promised.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.promised_ns.is_some_and(|promised| self.done_ns > promised)
    }
}

/// Why a request or a setting is not taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SubmitError {
    /// It makes no sense: what, and the remedy.
    Bad(String),
    /// The reserve is not there, or was given back.
    NoSuchReserve(ReserveId),
    /// So many operations wait already.
    Full(usize),
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Bad(why) => f.write_str(why),
            SubmitError::NoSuchReserve(id) => write!(f, "there is no reserve {}", id.0),
            SubmitError::Full(most) => write!(f, "{most} operations wait already: wait for answers first"),
        }
    }
}

impl std::error::Error for SubmitError {}

/// So many operations wait at the most.
const MOST_WAITING: usize = 65_536;

/// An operation that is released.
#[derive(Clone, Copy, Debug)]
struct Ready {
    piece: Piece,
    reserve: Option<ReserveId>,
    /// Best effort has none.
    deadline_ns: Option<u64>,
    longest_ns: u64,
    /// When it was released; of equals, the one that was told first.
    order: (u64, u64),
}

/// A request with operations that are not done.
#[derive(Clone, Copy, Debug)]
struct Open {
    request: Request,
    left: u64,
    promised_ns: Option<u64>,
}

/// The operation that the disk does.
#[derive(Clone, Copy, Debug)]
struct InService {
    ready: Ready,
    since_ns: u64,
}

/// The reserves of a disk and what waits for it.
#[derive(Debug)]
pub struct Broker {
    settings: Settings,
    holders: Vec<Holder>,
    ready: Vec<Ready>,
    open: BTreeMap<u64, Open>,
    in_service: Option<InService>,
    head: Head,
    /// Operations that wait for their release.
    held: usize,
    numbers: u64,
    best_effort: Tally,
}

impl Broker {
    /// A disk without reserves.
    ///
    /// # Errors
    /// Where the chunk or the longest time of an operation is zero.
    pub fn new(settings: Settings) -> Result<Broker, SubmitError> {
        if settings.chunk == 0 || settings.longest_ns == 0 {
            let why = "the chunk or the longest time of an operation is zero: give both";
            return Err(SubmitError::Bad(why.to_owned()));
        }
        Ok(Broker {
            settings,
            holders: Vec::new(),
            ready: Vec::new(),
            open: BTreeMap::new(),
            in_service: None,
            head: Head::new(),
            held: 0,
            numbers: 0,
            best_effort: Tally::default(),
        })
    }

    /// Admits a reserve. Its operations are released from the next instant on at which no reserved operation is left (so that a change
    /// breaks no promise), and not before `start_ns`.
    ///
    /// # Errors
    /// Where some operation might miss its deadline.
    pub fn create(&mut self, reserve: Reserve, now: u64) -> Result<ReserveId, NoRoom> {
        let mut all = self.counted();
        all.push(reserve);
        admit(&all, self.settings.longest_ns)?;
        self.numbers += 1;
        let id = ReserveId(self.numbers);
        self.holders.push(Holder::new(id, reserve));
        self.settle(now);
        Ok(id)
    }

    /// The reserves that an admission counts: those that were given back, too, until no reserved operation is left.
    #[must_use]
    pub fn counted(&self) -> Vec<Reserve> {
        self.holders.iter().map(|holder| holder.reserve).collect()
    }

    /// Gives a reserve back. Its requests that are not done are dropped: their tags.
    pub fn delete(&mut self, id: ReserveId, now: u64) -> Vec<u64> {
        let dropped = self.drop_requests(now, |request| request.reserve == Some(id));
        if let Some(holder) = self.holders.iter_mut().find(|holder| holder.id == id) {
            holder.life = Life::Leaving;
        }
        self.settle(now);
        dropped
    }

    /// Drops the request with this tag, for whose answer its client waits no more. It counts as unanswered, and as late where its promise
    /// is past.
    pub fn cancel(&mut self, tag: u64, now: u64) {
        self.drop_requests(now, |request| request.tag == tag);
    }

    /// Drops all requests, counted as by [`Broker::cancel`].
    pub fn end(&mut self, now: u64) {
        self.drop_requests(now, |_| true);
    }

    /// Drops the requests that are not done and meant: their tags.
    fn drop_requests(&mut self, now: u64, is_meant: impl Fn(&Request) -> bool) -> Vec<u64> {
        // What is released by now has its promise.
        self.release(now);
        let all = std::mem::take(&mut self.open);
        let (dropped, kept): (BTreeMap<u64, Open>, _) =
            all.into_iter().partition(|(_, open)| is_meant(&open.request));
        self.open = kept;
        self.ready.retain(|ready| !dropped.contains_key(&ready.piece.ticket));
        // The promise of a request is that of its last operation: where that is not released, it lies ahead.
        let mut ahead = BTreeSet::new();
        for holder in &mut self.holders {
            let before = holder.waiting.len();
            holder.waiting.retain(|(piece, _)| {
                let is_dropped = dropped.contains_key(&piece.ticket);
                if is_dropped {
                    ahead.insert(piece.ticket);
                }
                !is_dropped
            });
            self.held -= before - holder.waiting.len();
        }
        for (ticket, open) in &dropped {
            let is_late = !ahead.contains(ticket) && open.promised_ns.is_some_and(|promised| promised < now);
            let mut unknown = Tally::default();
            let tally = self.tally_of(open.request.reserve).unwrap_or(&mut unknown);
            tally.unanswered += 1;
            tally.late += u64::from(is_late);
        }
        dropped.values().map(|open| open.request.tag).collect()
    }

    fn tally_of(&mut self, reserve: Option<ReserveId>) -> Option<&mut Tally> {
        match reserve {
            None => Some(&mut self.best_effort),
            Some(id) => {
                self.holders.iter_mut().find(|holder| holder.id == id).map(|holder| &mut holder.tally)
            }
        }
    }

    /// What became of the requests on a reserve; `None`: of best effort.
    #[must_use]
    pub fn tally(&self, reserve: Option<ReserveId>) -> Option<Tally> {
        match reserve {
            None => Some(self.best_effort),
            Some(id) => self.holders.iter().find(|holder| holder.id == id).map(|holder| holder.tally),
        }
    }

    /// Takes a request.
    ///
    /// # Errors
    /// Where it makes no sense or too many wait.
    pub fn submit(&mut self, request: &Request) -> Result<(), SubmitError> {
        let Request { offset, bytes, .. } = *request;
        let Some(end) = offset.checked_add(bytes).filter(|&end| end > offset) else {
            let why =
                format!("{bytes} bytes from byte {offset} on: ask for one byte at least, within 2^64 bytes");
            return Err(SubmitError::Bad(why));
        };
        let chunk = self.settings.chunk;
        let operations = bytes.div_ceil(chunk);
        let waiting = (self.held + self.ready.len()) as u64;
        if waiting.saturating_add(operations) > MOST_WAITING as u64 {
            return Err(SubmitError::Full(MOST_WAITING));
        }
        let holder = match request.reserve {
            None => None,
            Some(id) => Some(
                self.holders
                    .iter_mut()
                    .find(|holder| holder.id == id && holder.life != Life::Leaving)
                    .ok_or(SubmitError::NoSuchReserve(id))?,
            ),
        };
        self.numbers += 1;
        let ticket = self.numbers;
        let pieces = (0..operations).map(|number| {
            let from = offset + number * chunk;
            Piece { ticket, offset: from, bytes: chunk.min(end - from) }
        });
        match holder {
            Some(holder) => {
                holder.waiting.extend(pieces.map(|piece| (piece, request.at_ns)));
                self.held += operations as usize;
            }
            None => {
                let numbers = &mut self.numbers;
                self.ready.extend(pieces.map(|piece| {
                    *numbers += 1;
                    let longest_ns = self.settings.longest_ns;
                    let order = (request.at_ns, *numbers);
                    Ready { piece, reserve: None, deadline_ns: None, longest_ns, order }
                }));
            }
        }
        self.open.insert(ticket, Open { request: *request, left: operations, promised_ns: None });
        Ok(())
    }

    /// What the disk does at `now`; all requests up to `now` have been told before.
    pub fn next(&mut self, now: u64) -> Next {
        if self.in_service.is_some() {
            return Next::Busy;
        }
        self.release(now);
        self.settle(now);
        let Some((place, way)) = self.choose(now) else {
            let soonest = self.holders.iter().filter_map(Holder::next_release).min();
            return soonest.map_or(Next::Idle, Next::Wait);
        };
        let ready = self.ready.swap_remove(place);
        self.head.moved(ready.piece.offset, ready.piece.offset + ready.piece.bytes, way);
        self.in_service = Some(InService { ready, since_ns: now });
        Next::Issue(Operation {
            tag: self.open.get(&ready.piece.ticket).map_or(0, |open| open.request.tag),
            reserve: ready.reserve,
            offset: ready.piece.offset,
            bytes: ready.piece.bytes,
            deadline_ns: ready.deadline_ns,
            longest_ns: ready.longest_ns,
        })
    }

    /// The operation that was begun has ended; its request, where that was the last one.
    pub fn done(&mut self, now: u64) -> Option<Finished> {
        self.ended(now, true)
    }

    /// The same where the disk failed at it: its bytes were neither read nor written.
    pub fn failed(&mut self, now: u64) -> Option<Finished> {
        self.ended(now, false)
    }

    fn ended(&mut self, now: u64, has_bytes: bool) -> Option<Finished> {
        let InService { ready, since_ns } = self.in_service.take()?;
        let overran = now.saturating_sub(since_ns) > ready.longest_ns;
        if let Some(tally) = self.tally_of(ready.reserve) {
            tally.operations += 1;
            tally.overran += u64::from(overran);
            tally.bytes += if has_bytes { ready.piece.bytes } else { 0 };
        }
        let open = self.open.get_mut(&ready.piece.ticket)?;
        open.left -= 1;
        if open.left > 0 {
            return None;
        }
        let Open { request, promised_ns, .. } = *open;
        self.open.remove(&ready.piece.ticket);
        let Request { tag, reserve, bytes, at_ns: asked_ns, .. } = request;
        let finished = Finished { tag, reserve, bytes, asked_ns, promised_ns, done_ns: now };
        if let Some(tally) = self.tally_of(reserve) {
            tally.requests += 1;
            tally.late += u64::from(finished.is_late());
        }
        Some(finished)
    }

    /// Moves what is released up to `now` to the operations that may begin.
    fn release(&mut self, now: u64) {
        for holder in &mut self.holders {
            while let Some(release) = holder.next_release().filter(|&release| release <= now) {
                let Some((piece, _)) = holder.waiting.pop_front() else { break };
                holder.releases.push(&holder.reserve, release);
                self.held -= 1;
                self.numbers += 1;
                let deadline = release.saturating_add(holder.reserve.deadline_ns);
                if let Some(open) = self.open.get_mut(&piece.ticket) {
                    open.promised_ns = Some(deadline);
                }
                self.ready.push(Ready {
                    piece,
                    reserve: Some(holder.id),
                    deadline_ns: Some(deadline),
                    longest_ns: holder.reserve.longest_ns,
                    order: (release, self.numbers),
                });
            }
        }
    }

    /// At an instant without a reserved operation: who left counts no more, who joins takes part.
    fn settle(&mut self, now: u64) {
        let is_changing = self.holders.iter().any(|holder| holder.life != Life::Present);
        if !is_changing || self.in_service.is_some_and(|one| one.ready.reserve.is_some()) {
            return;
        }
        self.release(now);
        if self.ready.iter().any(|ready| ready.reserve.is_some()) {
            return;
        }
        self.holders.retain(|holder| holder.life != Life::Leaving);
        for holder in self.holders.iter_mut().filter(|holder| holder.life == Life::Joining) {
            holder.life = Life::Present;
            holder.reserve.start_ns = holder.reserve.start_ns.max(now);
        }
        self.release(now);
    }

    /// The place of the next operation among those that may begin, and the way of the head.
    fn choose(&self, now: u64) -> Option<(usize, Option<bool>)> {
        let places = 0..self.ready.len();
        let scan = || {
            self.head.next(
                places.clone().map(|place| (self.ready[place].piece.offset, self.ready[place].order, place)),
            )
        };
        let reserved = places.clone().filter(|&place| self.ready[place].deadline_ns.is_some());
        let Some(earliest) =
            reserved.min_by_key(|&place| (self.ready[place].deadline_ns, self.ready[place].order))
        else {
            return scan().map(|(place, way)| (place, Some(way)));
        };
        // A change waits for an instant without reserved operations, which EDF reaches soonest.
        let is_changing = self.holders.iter().any(|holder| holder.life != Life::Present);
        if self.settings.policy == Policy::JustInTime && !is_changing {
            let next = scan().filter(|&(next, _)| next == earliest || self.may_go_first(now, next));
            if let Some((place, way)) = next {
                return Some((place, Some(way)));
            }
        }
        Some((earliest, None))
    }

    fn may_go_first(&self, now: u64, place: usize) -> bool {
        let first = self.ready[place];
        let others = self.ready.iter().filter(|ready| ready.order != first.order);
        let others = others.filter_map(|ready| Some((ready.deadline_ns?, ready.longest_ns))).collect();
        let streams: Vec<Stream<'_>> = self
            .holders
            .iter()
            .map(|holder| Stream { reserve: &holder.reserve, releases: &holder.releases })
            .collect();
        let first = First { longest_ns: first.longest_ns, deadline_ns: first.deadline_ns };
        goes_first(now, first, others, &streams)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broker() -> Broker {
        Broker::new(Settings { policy: Policy::Edf, chunk: 4, longest_ns: 1 }).expect("settings")
    }

    fn request(reserve: Option<ReserveId>, offset: u64, bytes: u64) -> Request {
        Request { at_ns: 0, tag: 0, reserve, offset, bytes }
    }

    #[test]
    fn long_requests_are_cut_from_their_first_byte_on() {
        let mut broker = broker();
        broker.submit(&request(None, 3, 10)).expect("taken");
        let mut pieces = Vec::new();
        while let Next::Issue(operation) = broker.next(0) {
            pieces.push((operation.offset, operation.bytes));
            assert_eq!(broker.next(0), Next::Busy);
            assert_eq!(broker.done(1).is_some(), pieces.len() == 3);
        }
        assert_eq!(pieces, [(3, 4), (7, 4), (11, 2)]);
    }

    #[test]
    fn what_was_given_back_takes_nothing() {
        let mut broker = broker();
        let reserve = Reserve { operations: 2, longest_ns: 1, period_ns: 10, deadline_ns: 10, start_ns: 0 };
        let (leaving, other) =
            (broker.create(reserve, 0).expect("room"), broker.create(reserve, 0).expect("room"));
        for id in [leaving, other] {
            broker.submit(&request(Some(id), 0, 4)).expect("taken");
        }
        let Next::Issue(_) = broker.next(0) else { panic!("there is work") };
        assert_eq!(broker.delete(leaving, 0), [0]);
        assert_eq!(broker.counted().len(), 2, "it counts while the other one's work is left");
        assert_eq!(broker.submit(&request(Some(leaving), 0, 4)), Err(SubmitError::NoSuchReserve(leaving)));
        assert_eq!(broker.done(1), None, "no request waits for it");
    }

    /// One operation in 10 by 4: of three at 0 they are released at 0, 10 and 20, and promised by 24.
    fn three_in_turn() -> (Broker, ReserveId) {
        let mut broker = broker();
        let reserve = Reserve { operations: 1, longest_ns: 1, period_ns: 10, deadline_ns: 4, start_ns: 0 };
        let id = broker.create(reserve, 0).expect("room");
        broker.submit(&request(Some(id), 0, 12)).expect("taken");
        (broker, id)
    }

    #[test]
    fn what_is_not_answered_in_the_end_is_late_from_its_promise_on() {
        for (end, late) in [(0, 0), (5, 0), (19, 0), (20, 0), (24, 0), (25, 1), (1_000, 1)] {
            let (mut broker, id) = three_in_turn();
            broker.submit(&request(None, 0, 4)).expect("taken");
            broker.end(end);
            let of = |reserve| broker.tally(reserve).map(|one| (one.requests, one.unanswered, one.late));
            assert_eq!((of(Some(id)), of(None)), (Some((0, 1, late)), Some((0, 1, 0))), "{end}");
            broker.end(2_000);
            assert_eq!(of_all(&broker, id), (1, late), "counted once");
        }
    }

    fn of_all(broker: &Broker, id: ReserveId) -> (u64, u64) {
        let tally = broker.tally(Some(id)).expect("it is there");
        (tally.unanswered, tally.late)
    }

    #[test]
    fn what_is_called_off_takes_no_time_of_the_disk() {
        let (mut broker, id) = three_in_turn();
        broker.submit(&Request { tag: 1, ..request(None, 8, 4) }).expect("taken");
        let Next::Issue(first) = broker.next(0) else { panic!("there is work") };
        assert_eq!((first.tag, first.bytes), (0, 4));
        broker.cancel(0, 1);
        assert_eq!(broker.failed(1), None, "no request waits for it");
        let Next::Issue(second) = broker.next(1) else { panic!("there is work") };
        assert_eq!(second.tag, 1);
        assert!(broker.done(2).is_some());
        assert_eq!(broker.next(100), Next::Idle);
        let bytes = |reserve| broker.tally(reserve).map(|one| (one.operations, one.bytes));
        assert_eq!((bytes(Some(id)), bytes(None)), (Some((1, 0)), Some((1, 4))));
        assert_eq!(of_all(&broker, id), (1, 0));
    }

    #[test]
    fn too_much_and_nothing_are_refused() {
        let mut broker = broker();
        let most = MOST_WAITING as u64 * 4;
        assert_eq!(broker.submit(&request(None, 0, most + 1)), Err(SubmitError::Full(MOST_WAITING)));
        broker.submit(&request(None, 0, most)).expect("as many as may wait");
        assert_eq!(broker.submit(&request(None, 0, 1)), Err(SubmitError::Full(MOST_WAITING)));
        for (offset, bytes) in [(0, 0), (u64::MAX, 1)] {
            assert!(matches!(broker.submit(&request(None, offset, bytes)), Err(SubmitError::Bad(_))));
        }
    }
}
