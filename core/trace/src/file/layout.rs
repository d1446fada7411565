//! The parts around the entries, byte by byte: head, block header, foot. `docs/trace-format.md` is the same in
//! words; all numbers are little-endian.

use super::header::{Footer, Header};
use crate::TraceError;
use horolog_time::Instant;

/// The first bytes of every trace. The first one is no text, the last two show mangled line ends.
pub(super) const MAGIC: [u8; 8] = *b"\x93HOROT\r\n";
/// A change of this number breaks old readers.
pub(super) const MAJOR: u16 = 1;
/// A change of this number adds kinds or keys that old readers skip.
pub(super) const MINOR: u16 = 2;
/// Magic, major, minor, length and checksum of the JSON that follows.
pub(super) const HEAD: usize = 20;
/// The longest JSON of a head or foot that is believed.
pub(super) const MAX_JSON: u32 = 64 << 20;

/// The first bytes of every block.
pub(super) const BLOCK_MAGIC: [u8; 4] = *b"HBLK";
/// The length of a block's header.
pub(super) const BLOCK_HEADER: usize = 32;
/// The longest payload that is believed.
pub(super) const MAX_PAYLOAD: u32 = 1 << 20;

/// The first bytes of the foot.
pub(super) const FOOT_MAGIC: [u8; 4] = *b"HFTR";
/// Magic, length and checksum of the JSON that follows.
pub(super) const FOOT: usize = 12;
/// The last bytes of a finished trace, behind the offset of the foot.
pub(super) const END_MAGIC: [u8; 8] = *b"HOROTEND";
/// The offset of the foot and the last bytes.
pub(super) const END: usize = 16;

/// The head of a file: fixed part and JSON.
pub(super) fn head(header: &Header) -> Result<Vec<u8>, TraceError> {
    let json = json_of(header)?;
    let mut bytes = Vec::with_capacity(HEAD + json.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&MAJOR.to_le_bytes());
    bytes.extend_from_slice(&MINOR.to_le_bytes());
    bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&json).to_le_bytes());
    bytes.extend_from_slice(&json);
    Ok(bytes)
}

/// The foot of a file whose foot begins at `offset`.
pub(super) fn foot(footer: &Footer, offset: u64) -> Result<Vec<u8>, TraceError> {
    let json = json_of(footer)?;
    let mut bytes = Vec::with_capacity(FOOT + json.len() + END);
    bytes.extend_from_slice(&FOOT_MAGIC);
    bytes.extend_from_slice(&(json.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&crc32fast::hash(&json).to_le_bytes());
    bytes.extend_from_slice(&json);
    bytes.extend_from_slice(&offset.to_le_bytes());
    bytes.extend_from_slice(&END_MAGIC);
    Ok(bytes)
}

/// A head's JSON.
pub(super) fn header(json: &[u8]) -> serde_json::Result<Header> {
    serde_json::from_slice(json)
}

/// A foot's JSON.
pub(super) fn footer(json: &[u8]) -> serde_json::Result<Footer> {
    serde_json::from_slice(json)
}

fn json_of<T: serde::Serialize>(value: &T) -> Result<Vec<u8>, TraceError> {
    let json = serde_json::to_vec(value).map_err(|error| {
        TraceError::unsupported(format!("no JSON for the trace's head: {error}"), "report it")
    })?;
    if json.len() > MAX_JSON as usize {
        return Err(TraceError::unsupported(
            format!("the trace's head would take {} bytes, the format allows {MAX_JSON}", json.len()),
            "shorten the system file",
        ));
    }
    Ok(json)
}

/// What stands before a block's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BlockHeader {
    pub(super) payload: u32,
    pub(super) entries: u32,
    pub(super) first: Instant,
    pub(super) losses: u64,
}

impl BlockHeader {
    /// Magic, payload length, entry count, first time, losses before the block, and a checksum over all of
    /// that and the payload.
    pub(super) fn encode(&self, payload: &[u8]) -> [u8; BLOCK_HEADER] {
        let mut bytes = [0; BLOCK_HEADER];
        bytes[0..4].copy_from_slice(&BLOCK_MAGIC);
        bytes[4..8].copy_from_slice(&self.payload.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.entries.to_le_bytes());
        bytes[12..20].copy_from_slice(&self.first.as_ns().to_le_bytes());
        bytes[20..28].copy_from_slice(&self.losses.to_le_bytes());
        let checksum = checksum(&bytes[..28], payload);
        bytes[28..32].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the header without its checksum; `None` where the magic is not there.
    pub(super) fn decode(bytes: &[u8; BLOCK_HEADER]) -> Option<BlockHeader> {
        if bytes[0..4] != BLOCK_MAGIC {
            return None;
        }
        Some(BlockHeader {
            payload: u32_at(bytes, 4),
            entries: u32_at(bytes, 8),
            first: Instant::from_ns(u64_at(bytes, 12)),
            losses: u64_at(bytes, 20),
        })
    }
}

/// Whether the checksum in the block's header is that of header and payload.
pub(super) fn checksum_holds(header: &[u8; BLOCK_HEADER], payload: &[u8]) -> bool {
    checksum(&header[..28], payload) == u32_at(header, 28)
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize()
}

/// The 32-bit number at `at`, which must lie inside.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

/// The 64-bit number at `at`, which must lie inside.
pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}
