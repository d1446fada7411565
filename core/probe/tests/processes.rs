//! Sessions of other processes: handed over a socket, commanded, drained, and drained after the writer was killed.
//!
//! The traced processes are this test's own executable, started with a variable that says which part to play.
#![allow(unsafe_code)]

use horolog_probe::Event;
use horolog_probe::session::service::{OPTIONS, SOCKET};
use horolog_probe::session::{Connection, Listener, Losses, Options, start_from_environment};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

static VALUE: Event = Event::new(c"processes/value", c"uuu");
static SMALL: Event = Event::new(c"processes/small", c"uu");

/// Emits numbers.
#[inline(always)]
fn emit_words<const COUNT: usize>(event: &Event, words: [u64; COUNT]) {
    // SAFETY: no event that comes here has an argument that is a text.
    unsafe { horolog_probe::emit_words(event, words) }
}

const PART: &str = "HOROLOG_TEST_PART";

/// A socket in a folder of its own, removed at the end.
struct Socket {
    folder: PathBuf,
    listener: Listener,
}

impl Socket {
    fn new(name: &str) -> Socket {
        let folder = std::env::temp_dir().join(format!("horolog-test-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let listener = Listener::bind(&folder.join("s")).expect("listens");
        Socket { folder, listener }
    }

    /// Starts this executable in the part `part` and takes its session.
    fn start(&self, part: &str, options: &str) -> (Traced, Connection) {
        let child = Command::new(std::env::current_exe().expect("an executable"))
            .args(["--exact", "plays_a_part", "--nocapture", "--test-threads=1"])
            .env(PART, part)
            .env(SOCKET, self.folder.join("s"))
            .env(OPTIONS, options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        let mut traced = Traced(child);
        loop {
            if let Some(connection) = self.listener.accept().expect("a session") {
                assert_eq!(connection.reader.process().pid(), traced.0.id());
                return (traced, connection);
            }
            assert!(
                traced.0.try_wait().expect("our child").is_none(),
                "the process ended before it connected"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A process that is killed at the latest when this is dropped.
struct Traced(Child);

impl Drop for Traced {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test but the other process: does what its environment says.
#[test]
fn plays_a_part() {
    let Ok(part) = std::env::var(PART) else { return };
    let started = start_from_environment(|command| format!("heard {command}"));
    assert!(started.expect("a session"), "the environment asks for one");
    match part.as_str() {
        "write" => {
            for writer in 0..3_u64 {
                std::thread::spawn(move || write_for_ever(writer));
            }
            write_for_ever(3)
        }
        "few" => {
            (0..10).for_each(|value| emit_words(&SMALL, [value, !value]));
            std::thread::sleep(Duration::from_secs(600));
        }
        other => panic!("no part `{other}`"),
    }
}

/// Both size classes, so that both multi-writer buffers are in use.
fn write_for_ever(writer: u64) -> ! {
    let mut value = 0_u64;
    loop {
        emit_words(&VALUE, [writer, value, !value]);
        emit_words(&SMALL, [writer << 56 | value, value]);
        value += 1;
    }
}

/// Nothing is left once all was read, and something is while there is a record, also of a process that was killed.
#[test]
fn a_session_is_drained_when_all_was_read() {
    let socket = Socket::new("drained");
    let (traced, mut connection) = socket.start("few", "");
    while connection.reader.is_drained() {
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(traced);
    assert!(!connection.reader.is_drained());
    assert!(connection.reader.drain(|_| {}) <= 10 && connection.reader.is_drained());
}

/// Checks what one killed process left: nothing torn, nothing twice, every writer in its own order.
#[derive(Default)]
struct Checked {
    last: BTreeMap<(String, u64), u64>,
    records: u64,
}

impl Checked {
    fn drain(&mut self, connection: &mut Connection, names: &mut BTreeMap<u32, String>) -> u64 {
        let mut records = Vec::new();
        let count = connection.reader.drain(|record| records.push((record.event, record.args.to_vec())));
        for (event, args) in records {
            let name = names.entry(event).or_insert_with(|| {
                connection.reader.event(event).expect("declared before it is emitted").name
            });
            let (writer, value) = match (name.as_str(), args.as_slice()) {
                ("processes/value", &[writer, value, check]) if check == !value => (writer, value),
                ("processes/small", &[both, value]) if both << 8 == value << 8 => (both >> 56, value),
                (name, args) => panic!("a torn record: {name} {args:x?}"),
            };
            let key = (name.clone(), writer);
            assert!(
                self.last.get(&key).is_none_or(|last| *last < value),
                "{key:?}: {value} again or too early"
            );
            self.last.insert(key, value);
        }
        self.records += count;
        count
    }
}

#[test]
fn killed_writers_leave_nothing_in_the_way() {
    let socket = Socket::new("kill");
    let (mut dead_slots, mut records) = (0, 0);
    for round in 0..40_u64 {
        // Without rings everything goes through the multi-writer buffers, so that most kills hit an operation there.
        let rings = if round % 4 == 0 { 2 } else { 0 };
        let options = format!("rings={rings},ring-bytes=65536,small-slots=16384,large-slots=16384,writers=8");
        let (mut traced, mut connection) = socket.start("write", &options);
        let (mut checked, mut names) = (Checked::default(), BTreeMap::new());
        while checked.records < 50 + round * 37 % 500 {
            checked.drain(&mut connection, &mut names);
            std::thread::yield_now();
        }
        assert!(!connection.reader.process().is_dead());
        checked.drain(&mut connection, &mut names); // full buffers would be the end of most operations
        traced.0.kill().expect("our child");
        // Drain while it dies, too.
        while !connection.reader.process().is_dead() {
            checked.drain(&mut connection, &mut names);
        }
        traced.0.wait().expect("our child");
        // Bounded: each pass empties the buffers up to a slot whose owner is proven dead in the next.
        for _ in 0..8 {
            checked.drain(&mut connection, &mut names);
        }
        assert_eq!(checked.drain(&mut connection, &mut names), 0);
        assert_eq!(
            connection.reader.free_slots(),
            [16384; 2],
            "round {round}: {:?}",
            connection.reader.losses()
        );
        assert!(connection.reader.writers().iter().all(|w| connection.reader.is_writer_dead(w.number)));
        let losses = connection.reader.losses();
        assert_eq!(losses.damaged + losses.no_event, 0, "{losses:?}");
        dead_slots += losses.dead_writer;
        records += checked.records;
    }
    println!("{records} records read, {dead_slots} slots given up");
    assert!(records > 0);
}

#[test]
fn what_a_process_emits_comes_with_its_thread() {
    let socket = Socket::new("commands");
    let (_traced, mut connection) = socket.start("few", "rings=1,ring-bytes=4096");
    let mut seen = Vec::new();
    while seen.len() < 10 {
        connection.reader.drain(|record| seen.push(record.args[0]));
        std::thread::yield_now();
    }
    assert_eq!(seen, (0..10).collect::<Vec<u64>>());
    let writers = connection.reader.writers();
    assert_eq!(writers.len(), 1);
    assert!(!connection.reader.is_writer_dead(writers[0].number));
    assert_eq!(connection.reader.losses(), Losses::default());
    assert_eq!(connection.reader.sizes().ring_bytes, 4096);
}

#[test]
fn an_overwriting_process_shows_its_newest_after_it_was_killed() {
    let socket = Socket::new("overwrite");
    let (mut traced, mut connection) = socket.start("few", "rings=1,ring-bytes=4096,overwrite");
    assert!(connection.reader.overwrites());
    let mut seen = Vec::new();
    while seen.len() < 10 {
        seen.clear();
        connection.reader.snapshot(|record| seen.push(record.args[0]));
        std::thread::yield_now();
    }
    traced.0.kill().expect("our child");
    traced.0.wait().expect("our child");
    let mut after = Vec::new();
    connection.reader.snapshot(|record| after.push(record.args[0]));
    assert_eq!((seen, after), ((0..10).collect::<Vec<u64>>(), (0..10).collect::<Vec<u64>>()));
}

#[test]
fn whoever_sends_no_session_is_refused_and_the_listener_goes_on() {
    use std::io::Write;
    let socket = Socket::new("refused");
    // Nobody waits for one that says nothing.
    let silent = std::os::unix::net::UnixStream::connect(socket.folder.join("s")).expect("listens");
    let asked = std::time::Instant::now();
    assert!(socket.listener.accept().expect("goes on").is_none());
    assert!(asked.elapsed() < Duration::from_secs(2));
    for hello in [&b"GET / HTTP/1.1\r\n"[..], b"horolog-session 2 7\n", b"\n"] {
        let mut stream = std::os::unix::net::UnixStream::connect(socket.folder.join("s")).expect("listens");
        stream.write_all(hello).expect("sends");
        let error = socket.listener.accept().expect_err("no session");
        assert!(error.is_bad_input(), "{error}");
    }
    assert!(socket.listener.accept().expect("goes on").is_none());
    let (_traced, connection) = socket.start("few", "");
    assert_eq!(connection.reader.sizes().rings, Options::recorded().rings);
    drop(silent);
}

/// A process that runs another program hands over a session of each, one after the other: the earlier program's never comes
/// last, though it was looked at between its connection and its words.
#[test]
fn sessions_come_in_the_order_in_which_they_connected() {
    use std::io::{ErrorKind, Read, Write};
    use std::os::unix::net::UnixStream;
    let socket = Socket::new("order");
    let connect = || UnixStream::connect(socket.folder.join("s")).expect("listens");
    let mut earlier = connect();
    assert!(socket.listener.accept().expect("goes on").is_none());
    earlier.write_all(b"the earlier one\n").expect("sends");
    let mut later = connect();
    later.write_all(b"the later one\n").expect("sends");
    for stream in [&earlier, &later] {
        stream.set_nonblocking(true).expect("a socket");
    }
    // A process that another test makes just now keeps a closed socket open until it has become its program.
    let is_taken = |stream: &mut UnixStream| {
        let limit = std::time::Instant::now() + Duration::from_secs(5);
        let mut read = stream.read(&mut [0]);
        while read.is_err() && std::time::Instant::now() < limit {
            std::thread::yield_now();
            read = stream.read(&mut [0]);
        }
        matches!(read, Ok(0))
    };
    socket.listener.accept().expect_err("no session");
    assert!(is_taken(&mut earlier), "the earlier one was taken");
    assert_eq!(later.read(&mut [0]).expect_err("nothing was said to it").kind(), ErrorKind::WouldBlock);
    socket.listener.accept().expect_err("no session");
    assert!(is_taken(&mut later), "the later one was taken");
}
