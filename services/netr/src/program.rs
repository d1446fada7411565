//! The programs that the kernel runs: which queue a packet goes to, and what became of each queue's packets.

use horolog_reserve::network::{AHEAD, ByteAmount, Flow, Protocol, WhenUsedUp};
use horolog_sys::Error;
use horolog_sys::bpf::{Assembler, Condition, Instruction, Label, Map, Operation, Register::*, Size};

/// Helpers of the kernel by number.
const MAP_LOOKUP: i32 = 1;
const CLOCK: i32 = 5;
const REDIRECT_MAP: i32 = 51;
/// What an XDP program answers.
const XDP_DROP: i32 = 1;
const XDP_PASS: i32 = 2;

/// Of one queue, as the program keeps it: six words of 64 bits.
pub(crate) const STATE_SIZE: usize = 48;
/// Where they are: the bucket, packets and bytes that came, those beyond the budget, those that changed their queue on the way.
const BUCKET: i16 = 0;
const CAME: i16 = 8;
const BEYOND: i16 = 24;
const MOVED: i16 = 40;

/// Of one map of queues, as the tracepoints tell it: packets put in and refused, taken out and lost.
pub(crate) const TOLD_SIZE: usize = 32;

/// How often a budget is tried again that other CPUs take from at once.
const TRIES: i32 = 32;

/// A queue as the program sees it.
#[derive(Debug)]
pub struct Target<'a> {
    /// Its packets; none for the last one, which takes the rest.
    pub flows: &'a [Flow],
    /// Bytes in every period.
    pub amount: Option<ByteAmount>,
    /// And beyond.
    pub when_used_up: WhenUsedUp,
    /// The map whose entry `cpu` is the queue.
    pub queue: &'a Map,
}

/// Puts each packet into its queue. `states` has an entry of each target; the last target takes what no flow is for.
///
/// # Errors
/// Where there are too many targets for one program.
pub fn demultiplexer(
    targets: &[Target<'_>],
    states: &Map,
    cpu: u32,
    start_ns: u64,
) -> Result<Vec<Instruction>, Error> {
    let mut code = Assembler::default();
    let entries: Vec<Label> = targets.iter().map(|_| code.label()).collect();
    let rest =
        *entries.last().ok_or_else(|| Error::bad_input("a program", "without a queue", "report this"))?;
    // R7: where the packet begins, later where its ports are; R8: its end; R9: its length, which stays.
    code.load(Size::Word, R7, R1, 0);
    code.load(Size::Word, R8, R1, 4);
    code.by(R9, Operation::Move, R8);
    code.by(R9, Operation::Subtract, R7);
    find_ports(&mut code, rest);
    for (target, entry) in targets.iter().zip(&entries) {
        for flow in target.flows {
            match_flow(&mut code, flow, *entry);
        }
    }
    code.jump(rest);
    for (at, (target, entry)) in targets.iter().zip(&entries).enumerate() {
        code.place(*entry);
        look_up_state(&mut code, states, at as i32);
        count(&mut code, CAME);
        let Some(amount) = &target.amount else {
            redirect(&mut code, target.queue, cpu);
            continue;
        };
        let beyond = code.label();
        take(&mut code, amount, start_ns, beyond);
        redirect(&mut code, target.queue, cpu);
        code.place(beyond);
        count(&mut code, BEYOND);
        if target.when_used_up == WhenUsedUp::Unreserved && at + 1 < targets.len() {
            code.set(R1, 1);
            code.add_at(R7, MOVED, R1);
            code.jump(rest);
        } else {
            code.set(R0, XDP_DROP);
            code.exit();
        }
    }
    code.finish()
}

/// Ends with the packet in this queue.
fn redirect(code: &mut Assembler, queue: &Map, cpu: u32) {
    code.set_map(R1, queue);
    code.set(R2, cpu as i32);
    code.set(R3, 0);
    code.call(REDIRECT_MAP);
    code.exit();
}

/// Leaves the port that the packet is sent to in `R3`, as it lies in the packet, and the protocol in `R4`. Packets without ports, and all
/// fragments (which would else go different ways), are unreserved.
fn find_ports(code: &mut Assembler, rest: Label) {
    let (version_6, ports) = (code.label(), code.label());
    room_for(code, 34, rest);
    code.load(Size::Half, R3, R7, 12);
    code.jump_if(R3, Condition::Equal, in_packet(0x86dd), version_6);
    code.jump_if(R3, Condition::NotEqual, in_packet(0x0800), rest);
    // More fragments, or not the first one.
    code.load(Size::Half, R3, R7, 20);
    code.with(R3, Operation::And, in_packet(0x3fff));
    code.jump_if(R3, Condition::NotEqual, 0, rest);
    code.load(Size::Byte, R4, R7, 23);
    // The header has 5 to 15 words of 4 bytes.
    code.load(Size::Byte, R5, R7, 14);
    code.with(R5, Operation::And, 15);
    code.jump_if(R5, Condition::Below, 5, rest);
    code.with(R5, Operation::ShiftLeft, 2);
    code.with(R7, Operation::Add, 14);
    code.by(R7, Operation::Add, R5);
    code.jump(ports);
    code.place(version_6);
    room_for(code, 54, rest);
    code.load(Size::Byte, R4, R7, 20);
    code.with(R7, Operation::Add, 54);
    code.place(ports);
    room_for(code, 4, rest);
    code.load(Size::Half, R3, R7, 2);
}

/// Goes on where the packet has so many bytes from `R7` on, else elsewhere.
fn room_for(code: &mut Assembler, bytes: i32, elsewhere: Label) {
    code.by(R2, Operation::Move, R7);
    code.with(R2, Operation::Add, bytes);
    code.jump_if_by(R2, Condition::Above, R8, elsewhere);
}

/// 16 bits as a load finds them in a packet.
fn in_packet(value: u16) -> i32 {
    i32::from(u16::from_ne_bytes(value.to_be_bytes()))
}

fn match_flow(code: &mut Assembler, flow: &Flow, entry: Label) {
    let other = code.label();
    code.jump_if(R3, Condition::NotEqual, in_packet(flow.port), other);
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        if flow.is_for(protocol.number(), flow.port) {
            code.jump_if(R4, Condition::Equal, i32::from(protocol.number()), entry);
        }
    }
    code.place(other);
}

/// `R7` = the state of a queue.
fn look_up_state(code: &mut Assembler, states: &Map, at: i32) {
    let found = code.label();
    code.set(R1, at);
    code.store(Size::Word, R10, -4, R1);
    code.set_map(R1, states);
    code.by(R2, Operation::Move, R10);
    code.with(R2, Operation::Add, -4);
    code.call(MAP_LOOKUP);
    code.jump_if(R0, Condition::NotEqual, 0, found);
    // Cannot be: the array has this entry. The verifier wants to see the way out.
    code.set(R0, XDP_PASS);
    code.exit();
    code.place(found);
    code.by(R7, Operation::Move, R0);
}

/// A packet more, and its bytes.
fn count(code: &mut Assembler, at: i16) {
    code.set(R1, 1);
    code.add_at(R7, at, R1);
    code.add_at(R7, at + 8, R9);
}

/// Takes `R9` bytes from the bucket at `R7`, as `horolog_reserve::network::Bucket` does; else goes on at `beyond`.
fn take(code: &mut Assembler, amount: &ByteAmount, start_ns: u64, beyond: Label) {
    let (again, same, old, taken) = (code.label(), code.label(), code.label(), code.label());
    // R8: the number of the period, 32 bits.
    code.call(CLOCK);
    code.by(R8, Operation::Move, R0);
    code.set_long(R1, start_ns);
    code.by(R8, Operation::Subtract, R1);
    code.set_long(R1, amount.period.as_ns());
    code.by(R8, Operation::Divide, R1);
    code.by_words(R8, Operation::Move, R8);
    code.set(R6, TRIES);
    code.place(again);
    code.load(Size::Long, R0, R7, BUCKET);
    // R1: the last period, R2: what it has used.
    code.by(R1, Operation::Move, R0);
    code.with(R1, Operation::ShiftRight, 32);
    code.by_words(R2, Operation::Move, R0);
    code.by(R3, Operation::Move, R1);
    code.by_words(R3, Operation::Subtract, R8);
    code.jump_if_word(R3, Condition::Above, AHEAD as i32, old);
    code.jump(same);
    code.place(old);
    code.by(R1, Operation::Move, R8);
    code.set(R2, 0);
    code.place(same);
    code.by(R2, Operation::Add, R9);
    code.set_long(R3, amount.bytes);
    code.jump_if_by(R2, Condition::Above, R3, beyond);
    code.with(R1, Operation::ShiftLeft, 32);
    code.by(R1, Operation::Or, R2);
    code.by(R4, Operation::Move, R0);
    code.exchange_at(R7, BUCKET, R1);
    code.jump_if_by(R0, Condition::Equal, R4, taken);
    code.with(R6, Operation::Subtract, 1);
    code.jump_if(R6, Condition::NotEqual, 0, again);
    code.jump(beyond);
    code.place(taken);
}

/// Adds the second argument of a tracepoint at `at` of the entry that the first one names in `told`, and the third one behind it.
///
/// # Errors
/// Never for programs of this size.
pub fn tally(told: &Map, at: i16) -> Result<Vec<Instruction>, Error> {
    let mut code = Assembler::default();
    let other = code.label();
    code.by(R6, Operation::Move, R1);
    code.load(Size::Long, R1, R6, 0);
    code.store(Size::Word, R10, -4, R1);
    code.set_map(R1, told);
    code.by(R2, Operation::Move, R10);
    code.with(R2, Operation::Add, -4);
    code.call(MAP_LOOKUP);
    // A queue of another program.
    code.jump_if(R0, Condition::Equal, 0, other);
    for (argument, offset) in [(8, at), (16, at + 8)] {
        code.load(Size::Long, R1, R6, argument);
        code.by_words(R1, Operation::Move, R1);
        code.add_at(R0, offset, R1);
    }
    code.place(other);
    code.set(R0, 0);
    code.exit();
    code.finish()
}

/// The six words of a state.
pub(crate) fn words(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect()
}
