//! Holes of traces: whole blocks that are missing, and losses that only the heads of blocks count.

use horolog_model::System;
use horolog_time::{Instant, Span};
use horolog_trace::file::{Header, Reader, Writer};
use horolog_trace::{Kind, Record, Sink};
use horolog_verify::{Class, Options, Verdict, Verification, verify};

const MS: u64 = 1_000_000;

fn system() -> System {
    let text = "[system]\nname = \"holes\"\n[[task]]\nname = \"high\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 2\n\
        [[task]]\nname = \"low\"\narrivals = [\"300 s\"]\nwcet = \"5 ms\"\ndeadline = \"20 ms\"\npriority = 1\n";
    horolog_model::file::read(text, "holes", &[]).expect("a valid file").0
}

fn run(time: u64, job: u64, length: u64) -> [Record; 3] {
    let at = |time: u64, kind: Kind, value: u64| Record {
        time: Instant::from_ns(time),
        kind,
        cpu: 0,
        task: 0,
        job,
        value,
        extra: 0,
    };
    [at(time, Kind::Release, time), at(time, Kind::Start, 0), at(time + length, Kind::Completion, length)]
}

/// A trace of jobs that execute for too long, with a loss of 17 records behind job `at`: its head, its blocks, its foot.
fn too_long_in_blocks(at: Option<u64>) -> Vec<Vec<u8>> {
    let names = vec!["high".to_owned(), "low".to_owned()];
    let header = Header::simulated(String::new(), names, 0, Span::ZERO);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &header).expect("writable");
    for job in 0..20_000 {
        run(10 * MS * job, job, 3 * MS).into_iter().for_each(|record| writer.record(record));
        if at == Some(job) {
            writer.lost(Instant::from_ns(10 * MS * job + 4 * MS), 0, 0, 17);
        }
    }
    writer.finish(Instant::from_ns(200_000 * MS)).expect("written");
    let mut reader = Reader::new(std::io::Cursor::new(&bytes)).expect("a trace");
    let index = reader.load_footer().expect("readable").expect("a foot").index.clone();
    let begins = index.iter().map(|place| place.offset as usize);
    // A block: its mark, the length of what it holds, the rest of its 32 bytes, what it holds.
    let last = index.last().expect("blocks").offset as usize;
    let payload = u32::from_le_bytes(bytes[last + 4..last + 8].try_into().expect("four bytes")) as usize;
    let mut borders: Vec<usize> = std::iter::once(0).chain(begins).collect();
    borders.extend([last + 32 + payload, bytes.len()]);
    borders.windows(2).map(|pair| bytes[pair[0]..pair[1]].to_vec()).collect()
}

fn verified(parts: &[Vec<u8>]) -> Verification {
    let bytes = parts.concat();
    verify(&system(), &[], &mut Reader::new(bytes.as_slice()).expect("a trace"), &Options::default())
        .expect("it can be verified")
}

#[test]
fn behind_a_hole_no_finding_accuses() {
    let whole = too_long_in_blocks(None);
    assert!(whole.len() > 5, "{}", whole.len());
    let found = verified(&whole);
    assert!(found.model_violated >= 20_000 && found.verdict == Verdict::ModelViolated, "{found:?}");
    let without: Vec<Vec<u8>> =
        whole.iter().enumerate().filter(|&(at, _)| at != 2).map(|(_, it)| it.clone()).collect();
    let found = verified(&without);
    assert_eq!(found.verdict, Verdict::Unknown);
    assert!(found.cannot_tell > 10_000);
    assert_eq!(
        (found.model_violated, found.bound_violated, found.machine_disturbed, found.schedule_differs),
        (0, 0, 0, 0)
    );
    assert!(found.findings.iter().all(|finding| finding.class == Class::CannotTell));
}

/// Without its foot a trace is cut: what came before is judged. Unless the heads of its blocks count losses that it tells of nowhere.
#[test]
fn losses_that_only_heads_of_blocks_count_are_a_hole() {
    let mut parts = too_long_in_blocks(Some(5_000));
    parts.pop();
    let found = verified(&parts);
    assert_eq!(found.losses.horolog, 17);
    assert_eq!(found.verdict, Verdict::ModelViolated);
    let told_in = (1..parts.len() - 1).find(|&at| {
        let rest: Vec<Vec<u8>> =
            parts.iter().enumerate().filter(|&(other, _)| other != at).map(|(_, it)| it.clone()).collect();
        verified(&rest).losses.horolog == 0
    });
    parts.remove(told_in.expect("the block that tells of the loss"));
    let found = verified(&parts);
    assert_eq!((found.losses.horolog, found.verdict), (0, Verdict::Unknown));
    assert_eq!(found.model_violated, 0);
    let damage = found.damage.expect("a hole");
    assert!(damage.is_hole && damage.reason.contains("17 records were lost and tells of 0"), "{damage}");
}
