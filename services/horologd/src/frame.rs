//! Frames of Varlink: JSON objects, each ended by a zero byte, of bounded length and patience.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// No call is longer, its zero byte included.
pub const LONGEST_FRAME: usize = 64 * 1024;

/// No reply is longer: some 50,000 reserves.
pub const LONGEST_REPLY: usize = 16 * 1024 * 1024;

/// So long a frame may take from its first byte to its last.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reading end of a connection.
#[derive(Debug)]
pub struct Frames {
    socket: UnixStream,
    held: Vec<u8>,
    longest: usize,
}

/// Why no frame came.
#[derive(Debug)]
pub enum NoFrame {
    /// The other end has closed, between two frames.
    End,
    /// It closed within a frame.
    Cut,
    /// The frame has more bytes than this.
    TooLong(usize),
    /// It took too long.
    Late,
    /// The kernel says.
    Io(io::Error),
}

impl std::fmt::Display for NoFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoFrame::End => f.write_str("the other end closed the connection"),
            NoFrame::Cut => f.write_str("the other end closed the connection within a message"),
            NoFrame::TooLong(longest) => write!(f, "a message has more than {longest} bytes"),
            NoFrame::Late => f.write_str("no whole message came in time"),
            NoFrame::Io(error) => write!(f, "{error}"),
        }
    }
}

impl Frames {
    /// Reads calls from this socket.
    #[must_use]
    pub fn new(socket: UnixStream) -> Frames {
        Frames { socket, held: Vec::new(), longest: LONGEST_FRAME }
    }

    /// Reads replies from this socket.
    #[must_use]
    pub fn of_replies(socket: UnixStream) -> Frames {
        Frames { socket, held: Vec::new(), longest: LONGEST_REPLY }
    }

    /// The next frame, without its zero byte; waits `idle` for its first byte.
    ///
    /// # Errors
    /// Why there is none. The connection is of no use any more.
    pub fn next(&mut self, idle: Duration) -> Result<Vec<u8>, NoFrame> {
        let mut until = Instant::now() + if self.held.is_empty() { idle } else { PATIENCE };
        let mut searched = 0;
        loop {
            if let Some(end) = self.held[searched..].iter().position(|&byte| byte == 0) {
                let rest = self.held.split_off(searched + end + 1);
                let mut frame = std::mem::replace(&mut self.held, rest);
                frame.pop();
                return Ok(frame);
            }
            searched = self.held.len();
            if searched >= self.longest {
                return Err(NoFrame::TooLong(self.longest));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NoFrame::Late);
            }
            self.socket.set_read_timeout(Some(left)).map_err(NoFrame::Io)?;
            let mut part = [0; 4096];
            let room = part.len().min(self.longest - searched);
            match self.socket.read(&mut part[..room]) {
                Ok(0) => return Err(if self.held.is_empty() { NoFrame::End } else { NoFrame::Cut }),
                Ok(length) => {
                    if self.held.is_empty() {
                        until = Instant::now() + PATIENCE;
                    }
                    self.held.extend_from_slice(&part[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(NoFrame::Io(error)),
            }
        }
    }
}

/// Writes one frame; a reader that takes nothing for `patience` loses its connection.
///
/// # Errors
/// What the kernel says.
pub fn write(socket: &mut UnixStream, value: &serde_json::Value, patience: Duration) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(0);
    socket.set_write_timeout(Some(patience))?;
    socket.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(50);

    #[test]
    fn frames_come_whole_however_they_are_cut() {
        let (mut there, here) = UnixStream::pair().expect("a pair");
        let mut frames = Frames::new(here);
        there.write_all(b"one\0tw").expect("room");
        assert_eq!(frames.next(SOON).expect("whole"), b"one");
        there.write_all(b"o\0\0").expect("room");
        assert_eq!(frames.next(SOON).expect("whole"), b"two");
        assert_eq!(frames.next(SOON).expect("whole"), b"");
        there.write_all(b"cut").expect("room");
        drop(there);
        assert!(matches!(frames.next(SOON), Err(NoFrame::Cut)));
    }

    #[test]
    fn frames_end_at_their_limit() {
        for (length, is_taken) in [(LONGEST_FRAME - 1, true), (LONGEST_FRAME, false)] {
            let (mut there, here) = UnixStream::pair().expect("a pair");
            let sender = std::thread::spawn(move || {
                let mut bytes = vec![b'x'; length];
                bytes.push(0);
                let _ = there.write_all(&bytes);
            });
            let read = Frames::new(here).next(Duration::from_secs(5));
            match read {
                Ok(frame) => assert!(is_taken && frame.len() == length),
                Err(error) => {
                    assert!(!is_taken && matches!(error, NoFrame::TooLong(LONGEST_FRAME)), "{error}")
                }
            }
            sender.join().expect("ends");
        }
        let (_there, here) = UnixStream::pair().expect("a pair");
        assert!(matches!(Frames::new(here).next(SOON), Err(NoFrame::Late)));
    }
}
