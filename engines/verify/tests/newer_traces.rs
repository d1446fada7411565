//! Traces of a newer version of the format.

use horolog_model::System;
use horolog_time::{Instant, Span};
use horolog_trace::Kind;
use horolog_trace::file::{Header, Reader, Writer};
use horolog_verify::{Options, Verification, verify};

fn system() -> System {
    let text =
        "[system]\nname = \"s\"\n[[task]]\nname = \"a\"\nperiod = \"5 ms\"\nwcet = \"1 ms\"\npriority = 1\n";
    horolog_model::file::read(text, "s.toml", &[]).expect("a valid file").0
}

/// The checksum of `docs/trace-format.md`: CRC-32.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
    !bytes.iter().fold(!0, |sum, &byte| (0..8).fold(sum ^ u32::from(byte), step))
}

/// A head, and one block of these entries behind it.
fn verified(entries: &[&[u8]]) -> Verification {
    let header = Header::simulated(String::new(), vec!["a".to_owned()], 0, Span::ZERO);
    let mut bytes = Vec::new();
    Writer::new(&mut bytes, &header).expect("a head").finish(Instant::ZERO).expect("a foot");
    // Magic, versions, length and checksum; then so many bytes of JSON.
    let length = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
    bytes.truncate(20 + length);
    let payload = entries.concat();
    let mut head = b"HBLK".to_vec();
    head.extend((payload.len() as u32).to_le_bytes());
    head.extend((entries.len() as u32).to_le_bytes());
    head.extend([0; 16]);
    let sum = checksum(&[&head[..], &payload].concat());
    bytes.extend([&head[..], &sum.to_le_bytes(), &payload].concat());
    let mut reader = Reader::new(&bytes[..]).expect("a trace");
    verify(&system(), &[], &mut reader, &Options::default()).expect("it can be verified")
}

#[test]
fn entries_that_were_skipped_are_told() {
    let skipped =
        |result: &Verification| result.notes.iter().find(|note| note.contains("newer format")).cloned();
    // A start of task 0, job 0.
    let start = [Kind::Start as u8, 0b1, 0b11, 0b1];
    let known = verified(&[&start]);
    assert_eq!((known.records, skipped(&known)), (1, None), "{:?}", known.notes);
    let newer = verified(&[&[60, 0b111, 1, 2, 3], &[61, 0b1], &start]);
    let said = "2 entries of a newer format were skipped".to_owned();
    assert_eq!((newer.records, skipped(&newer)), (1, Some(said)), "{:?}", newer.notes);
}
