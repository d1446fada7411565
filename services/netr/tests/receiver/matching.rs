//! Which queue a packet goes to, as the kernel runs the program on it, beside a second reading of the packet. Nothing is received or sent.

use crate::scene::unless_refused;
use horolog_netr::program::{Target, demultiplexer};
use horolog_reserve::network::{ByteAmount, Flow, WhenUsedUp};
use horolog_sys::Error;
use horolog_sys::bpf::{Map, MapKind, Program, ProgramKind};
use horolog_sys::clock::monotonic_ns;
use horolog_time::Span;

const DROP: u32 = 1;
const REDIRECT: u32 = 4;

struct Tried {
    program: Program,
    states: Map,
    _queues: Vec<Map>,
}

impl Tried {
    /// A queue of each list of flows, with this amount each, and the last one without.
    fn new(flows: &[Vec<Flow>], amount: Option<ByteAmount>) -> Result<Tried, Error> {
        let count = flows.len() + 1;
        let states = Map::create(MapKind::Array, 48, count as u32)?;
        let queues: Vec<Map> =
            (0..count).map(|_| Map::create(MapKind::Cpus, 4, 1)).collect::<Result<_, _>>()?;
        for queue in &queues {
            queue.set(0, &8_u32.to_ne_bytes())?;
        }
        let targets: Vec<Target<'_>> = (0..count)
            .map(|at| Target {
                flows: flows.get(at).map_or(&[], |one| one.as_slice()),
                amount: if at + 1 < count { amount } else { None },
                when_used_up: WhenUsedUp::Drop,
                queue: &queues[at],
            })
            .collect();
        let code = demultiplexer(&targets, &states, 0, monotonic_ns())?;
        Ok(Tried { program: Program::load(ProgramKind::Xdp, &code)?, states, _queues: queues })
    }

    fn came(&self, queue: u32) -> u64 {
        u64::from_ne_bytes(self.states.get(queue).unwrap()[8..16].try_into().unwrap())
    }
}

/// From right to left through the words of a packet, unlike the program.
fn expected(packet: &[u8], flows: &[Vec<Flow>]) -> usize {
    let none = flows.len();
    let half = |at: usize| packet.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]));
    let (protocol, header) = match half(12) {
        Some(0x0800) if packet.len() >= 34 => {
            let is_fragment = half(20).is_some_and(|word| word & 0x2000 != 0 || word & 0x1fff != 0);
            let words = usize::from(packet[14] % 16);
            if is_fragment || words < 5 {
                return none;
            }
            (packet[23], 14 + 4 * words)
        }
        Some(0x86dd) if packet.len() >= 54 => (packet[20], 54),
        _ => return none,
    };
    if packet.len() < header + 4 {
        return none;
    }
    let port = half(header + 2);
    let takes = |flow: &Flow| {
        let name = flow.to_string();
        let wanted: &[u8] = match name.split(':').next() {
            Some("udp") => &[17],
            Some("tcp") => &[6],
            _ => &[6, 17],
        };
        wanted.contains(&protocol) && port == Some(flow.port)
    };
    flows.iter().position(|flows| flows.iter().any(takes)).unwrap_or(none)
}

/// Packets that are nearly for some flow.
fn packet(draw: &mut impl FnMut(u64) -> u64) -> Vec<u8> {
    let mut packet = vec![0_u8; 14];
    let kind = draw(8);
    let words = [5, 5, 6, 15, 4][draw(5) as usize];
    packet[12..14].copy_from_slice(&match kind {
        0 => [0x08, 0x06],
        1 => [0x00, 0x08],
        2..=4 => [0x86, 0xdd],
        _ => [0x08, 0x00],
    });
    let protocol = [6, 17, 17, 1, 0][draw(5) as usize];
    if (2..=4).contains(&kind) {
        packet.resize(54, 0x60);
        packet[20] = protocol;
    } else {
        packet.resize(14 + 4 * words.max(5), 0);
        packet[14] = 0x40 | words as u8;
        packet[23] = protocol;
        let fragment: u16 = [0, 0, 0x4000, 0x2000, 1, 0x1fff, 0x8000][draw(7) as usize];
        packet[20..22].copy_from_slice(&fragment.to_be_bytes());
    }
    let port = [5_000_u16, 5_001, 34_835, 1, 65_535, 0][draw(6) as usize];
    packet.extend([0x13, 0x88]);
    packet.extend(port.to_be_bytes());
    packet.resize(packet.len() + draw(3) as usize * 4, 0);
    // Cut somewhere, most often near the ports.
    let cut = if draw(3) == 0 { draw(6) as usize } else { 0 };
    packet.truncate((packet.len() - cut).max(14));
    packet
}

#[test]
fn the_program_reads_a_packet_as_a_second_reader_does() {
    let flows: Vec<Vec<Flow>> = [&["udp:5000", "tcp:1"][..], &["5001"], &["udp:65535"], &["tcp:5000"]]
        .map(|flows| flows.iter().map(|text| text.parse().unwrap()).collect())
        .to_vec();
    let Some(tried) = unless_refused(Tried::new(&flows, None)) else { return };
    let mut state = 7_u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut came = vec![0_u64; flows.len() + 1];
    for number in 0..5_000 {
        let packet = packet(&mut draw);
        let wanted = expected(&packet, &flows);
        assert_eq!(tried.program.answer_to(&packet).unwrap(), REDIRECT);
        came[wanted] += 1;
        let seen: Vec<u64> = (0..came.len() as u32).map(|queue| tried.came(queue)).collect();
        assert_eq!(seen, came, "packet {number}: {packet:02x?}");
    }
    assert!(came.iter().all(|count| *count > 20), "every queue turns up: {came:?}");
}

#[test]
fn a_budget_is_exact_to_the_byte_and_bytes_are_those_of_the_frame() {
    let flows = [vec!["udp:5000".parse::<Flow>().unwrap()]];
    let mut packet = vec![0_u8; 100];
    packet[12..15].copy_from_slice(&[0x08, 0, 0x45]);
    packet[23] = 17;
    packet[36..38].copy_from_slice(&5_000_u16.to_be_bytes());
    for (bytes, answers) in [(299, [REDIRECT, REDIRECT, DROP]), (300, [REDIRECT; 3])] {
        let amount = ByteAmount::implicit(bytes, Span::from_ns(3_600_000_000_000));
        let Some(tried) = unless_refused(Tried::new(&flows, Some(amount))) else { return };
        let seen = [(); 3].map(|()| tried.program.answer_to(&packet).unwrap());
        assert_eq!(seen, answers, "{bytes} B");
    }
}
