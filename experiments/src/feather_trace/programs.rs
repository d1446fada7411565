//! The programs that are studied, each with the work that it gets.

use super::memcached;
use horolog_measure::lock_study::{LiveOptions, LiveStudy, Watched, start};
use horolog_measure::preload::find_program;
use horolog_sys::guardian::{run, spawn};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A real program of Debian.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Program {
    /// Bulk inserts, selects and an index sorted by threads.
    Sqlite,
    /// Four worker threads and a load of our own.
    Memcached,
    /// I/O threads under redis-benchmark.
    Redis,
    /// Decoding with threads, as fast as it goes.
    Ffmpeg,
    /// Playing in real time, without a screen or a loudspeaker: a media player, as the paper's.
    Mpv,
}

impl Program {
    pub(super) const ALL: [Program; 5] =
        [Program::Sqlite, Program::Memcached, Program::Redis, Program::Ffmpeg, Program::Mpv];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Program::Sqlite => "sqlite3",
            Program::Memcached => "memcached",
            Program::Redis => "redis-server",
            Program::Ffmpeg => "ffmpeg",
            Program::Mpv => "mpv",
        }
    }

    pub(super) const fn describe(self) -> &'static str {
        match self {
            Program::Sqlite => "sqlite3, inserts in transactions of 50 rows, selects, an index",
            Program::Memcached => "memcached, 4 threads, 4 connections of gets and sets",
            Program::Redis => "redis-server, 3 I/O threads, redis-benchmark with 20 connections",
            Program::Ffmpeg => "ffmpeg, decoding H.264 with 4 threads",
            Program::Mpv => "mpv, playing without screen or sound",
        }
    }

    /// Whether it is installed.
    pub(super) fn is_installed(self) -> bool {
        find_program(self.name()).is_some()
    }

    /// Whether it is a media player or decoder, like the paper's programs.
    pub(super) const fn is_media(self) -> bool {
        matches!(self, Program::Ffmpeg | Program::Mpv)
    }

    /// Runs it under its load and watches its locks for this long once it works.
    ///
    /// # Errors
    /// Why it could not be run, in words.
    pub(super) fn watch(
        self,
        folder: &Path,
        watch_ns: u64,
        options: &LiveOptions,
    ) -> Result<LiveStudy, String> {
        let folder = folder.join(self.name());
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        match self {
            Program::Sqlite => sqlite(&folder, watch_ns, options),
            Program::Memcached => run_memcached(&folder, watch_ns, options),
            Program::Redis => redis(&folder, watch_ns, options),
            Program::Ffmpeg => media(&folder, watch_ns, options, |video| {
                let mut command = Command::new("ffmpeg");
                command.args(["-nostdin", "-v", "error", "-threads", "4", "-stream_loop", "-1", "-i"]);
                command.arg(video).args(["-f", "null", "-"]);
                command
            }),
            Program::Mpv => media(&folder, watch_ns, options, |video| {
                let mut command = Command::new("mpv");
                command.args(["--no-config", "--really-quiet", "--vo=null", "--ao=null", "--loop-file=inf"]);
                command.arg(video);
                command
            }),
        }
    }
}

/// A child that is killed when it is no longer needed.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

fn begin(command: Command, options: &LiveOptions) -> Result<Watched, String> {
    start(command, options).map_err(|error| error.to_string())
}

/// Watches for `watch_ns`; a program that ends before has told what it had to.
fn watch(mut watched: Watched, watch_ns: u64) -> Result<LiveStudy, String> {
    watched.run_until_loaded(None);
    watched.run_until(horolog_sys::clock::monotonic_ns() + watch_ns);
    watched.end().map_err(|error| error.to_string())
}

/// Waits until `ready`; the program's buffers are emptied meanwhile.
fn wait_until(watched: &mut Watched, what: &str, mut ready: impl FnMut() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !ready() {
        if !watched.run_until(horolog_sys::clock::monotonic_ns() + 10_000_000) {
            return Err(format!("it ended before {what}"));
        }
        if begun.elapsed() > Duration::from_secs(20) {
            return Err(format!("no {what} within 20 s"));
        }
    }
    Ok(())
}

fn sqlite(folder: &Path, watch_ns: u64, options: &LiveOptions) -> Result<LiveStudy, String> {
    let script = folder.join("script.sql");
    let database = folder.join("database");
    let _ = std::fs::remove_file(&database);
    // Far more than there is time for: the program is asked to end in the middle.
    let mut text =
        String::from("pragma threads = 2; pragma synchronous = normal; create table t(a integer, b text);\n");
    for round in 0..2_000 {
        let _ = write!(
            text,
            "begin; with recursive c(x) as (select 1 union all select x + 1 from c where x < 50) insert into t \
             select x, hex(randomblob(32)) from c; commit;\nselect count(*), max(b) from t where b like 'A{}%';\n",
            round % 10
        );
        if round % 100 == 99 {
            text.push_str("create index i on t(b); drop index i;\n");
        }
    }
    std::fs::write(&script, text).map_err(|error| error.to_string())?;
    let input = std::fs::File::open(&script).map_err(|error| error.to_string())?;
    let mut command = Command::new("sqlite3");
    quiet(command.arg(&database)).stdin(input);
    watch(begin(command, options)?, watch_ns)
}

fn run_memcached(folder: &Path, watch_ns: u64, options: &LiveOptions) -> Result<LiveStudy, String> {
    let socket = folder.join("socket");
    let _ = std::fs::remove_file(&socket);
    let mut command = Command::new("memcached");
    quiet(command.arg("-s").arg(&socket).args(["-t", "4", "-m", "64", "-u", "root"]));
    let mut watched = begin(command, options)?;
    wait_until(&mut watched, "its socket", || socket.exists())?;
    let load = memcached::Load::start(&socket, 4);
    let study = watch(watched, watch_ns);
    let answered = load.end();
    if answered == 0 { Err("it answered no request".to_owned()) } else { study }
}

fn redis(folder: &Path, watch_ns: u64, options: &LiveOptions) -> Result<LiveStudy, String> {
    let socket = folder.join("socket");
    let _ = std::fs::remove_file(&socket);
    let mut command = Command::new("redis-server");
    command.args(["--port", "0", "--save", "", "--appendonly", "no", "--io-threads", "3"]);
    command.args(["--io-threads-do-reads", "yes", "--unixsocket"]).arg(&socket);
    command.arg("--dir").arg(folder);
    quiet(&mut command);
    let mut watched = begin(command, options)?;
    wait_until(&mut watched, "its socket", || socket.exists())?;
    let mut load = Command::new("redis-benchmark");
    load.arg("-s").arg(&socket).args(["-q", "-t", "set,get,lpush", "-n", "100000000", "-c", "20", "-P", "4"]);
    horolog_sys::process::die_with_parent(&mut load);
    let load = spawn(quiet(&mut load)).map_err(|error| format!("redis-benchmark: {error}"))?;
    let load = Helper(load.0);
    let study = watch(watched, watch_ns);
    drop(load);
    study
}

/// Two seconds of synthetic video, made once.
fn video(folder: &Path) -> Result<PathBuf, String> {
    let video = folder.join("video.mp4");
    if video.exists() {
        return Ok(video);
    }
    // H.264 where the encoder is there, else MPEG-4.
    for codec in ["libx264", "mpeg4"] {
        let mut command = Command::new("ffmpeg");
        command.args([
            "-nostdin",
            "-y",
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc=size=640x360:rate=30:duration=2",
        ]);
        command.args(["-pix_fmt", "yuv420p", "-c:v", codec]).arg(&video);
        let done =
            run(quiet(&mut command)).map_err(|error| format!("ffmpeg, for a synthetic video: {error}"))?;
        if done.status.success() {
            return Ok(video);
        }
    }
    Err("ffmpeg could not make a synthetic video".to_owned())
}

fn media(
    folder: &Path,
    watch_ns: u64,
    options: &LiveOptions,
    command: impl FnOnce(&Path) -> Command,
) -> Result<LiveStudy, String> {
    let video = video(folder)?;
    let mut command = command(&video);
    quiet(&mut command);
    watch(begin(command, options)?, watch_ns)
}
