//! A small load for memcached: pipelined gets and sets over its local socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Requests sent before their answers are read.
const BATCH: usize = 16;
/// Between two batches of a connection.
const PAUSE: Duration = Duration::from_millis(1);
/// Different keys.
const KEYS: u64 = 1_000;

/// Connections that ask until they are told to end.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(socket: &Path, connections: u64) -> Load {
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let threads = (0..connections).map(|number| {
            let (socket, stop, answered): (PathBuf, _, _) =
                (socket.to_owned(), stop.clone(), answered.clone());
            // The server's end ends the thread; what it answered until then counts.
            std::thread::spawn(move || {
                let _ = ask(&socket, number, &stop, &answered);
            })
        });
        Load { threads: threads.collect(), stop, answered }
    }

    /// Ends it; how many requests were answered.
    pub(super) fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
        self.answered.load(Ordering::Relaxed)
    }
}

fn ask(socket: &Path, number: u64, stop: &AtomicBool, answered: &AtomicU64) -> std::io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let (mut request, mut buffer) = (Vec::new(), vec![0_u8; 64 << 10]);
    while !stop.load(Ordering::Relaxed) {
        request.clear();
        for _ in 0..BATCH {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let key = random % KEYS;
            // One set in four.
            if random & 0x300 == 0 {
                write!(request, "set key{key} 0 0 32\r\n{:032}\r\n", random)?;
            } else {
                write!(request, "get key{key}\r\n")?;
            }
        }
        stream.write_all(&request)?;
        // Every answer ends in STORED or END on a line of its own.
        let (mut ended, mut rest): (usize, Vec<u8>) = (0, Vec::new());
        while ended < BATCH {
            let length = stream.read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            rest.extend_from_slice(&buffer[..length]);
            let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            ended += rest[..whole].split(|byte| *byte == b'\n').filter(|line| ends_an_answer(line)).count();
            rest.drain(..whole);
        }
        answered.fetch_add(BATCH as u64, Ordering::Relaxed);
        // Faster, and the reader of the trace would not keep up.
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn ends_an_answer(line: &[u8]) -> bool {
    line.starts_with(b"END\r") || line.starts_with(b"STORED\r") || line.starts_with(b"SERVER_ERROR")
}
