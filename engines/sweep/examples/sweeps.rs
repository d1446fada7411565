//! How well sweeps use their cores, and how much memory they take: `bench/sweeps.sh`.
//!
//! `sweeps CELLS SECONDS SETS`: so many cells of about so many seconds of processor time each, and so many sets in bounded memory; without cells
//! what a set takes in each test alone.

use horolog_sweep::{SYSTEM_TESTS, Store, Test, file, run};
use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a sweep took, in seconds: by the clock, of processors, and of workers that waited for one that others had.
struct Taken {
    wall: f64,
    cpu: f64,
    waiting: f64,
}

impl Taken {
    /// Wall time by that of cores which are never idle; and the same where time that others took from the workers counts as theirs.
    fn over(&self, workers: f64) -> (f64, f64) {
        (self.wall * workers / self.cpu, self.wall * workers / (self.cpu + self.waiting))
    }
}

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: f64| {
        words
            .get(place)
            .map_or(Ok(default), |word| word.parse::<f64>().map_err(|error| format!("{word}: {error}")))
    };
    let (cells, seconds, sets) = (number(0, 120.0)? as usize, number(1, 1.0)?, number(2, 1e7)? as u64);
    each_test()?;
    if cells == 0 {
        return Ok(());
    }
    balance(cells, seconds)?;
    cores()?;
    memory(sets)
}

/// Computes all of a sweep in a new folder.
fn swept(text: &str, workers: usize) -> Result<Taken, String> {
    let folder = std::env::temp_dir().join(format!("horolog-sweeps-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let plan = file::read(text, "sweep.toml").map_err(|found| found.to_string())?;
    let (store, found) = Store::open(&folder, &plan, text, false).map_err(|error| error.to_string())?;
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut before = HashMap::new();
    look(&mut before);
    let taken = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut last = HashMap::new();
            while !done.load(Ordering::Relaxed) {
                look(&mut last);
                std::thread::sleep(Duration::from_millis(5));
            }
            look(&mut last);
            // Its own time is no part of the sweep.
            let own = fs::read_link("/proc/thread-self").unwrap_or_default();
            last.remove(&own.file_name().unwrap_or_default().to_string_lossy().into_owned());
            last.into_iter().fold((0, 0), |all: (u64, u64), (thread, one): (String, (u64, u64))| {
                let old = before.get(&thread).copied().unwrap_or_default();
                (all.0 + one.0 - old.0, all.1 + one.1 - old.1)
            })
        });
        let begun = Instant::now();
        let ran = run(&plan, &store, &found.missing, workers, &stop, &|_| ());
        let wall = begun.elapsed().as_secs_f64();
        done.store(true, Ordering::Relaxed);
        let (cpu, waiting) = watcher.join().map_err(|_| "the watcher ended".to_owned())?;
        match ran.error {
            Some(error) => Err(error.to_string()),
            None => Ok(Taken { wall, cpu: cpu as f64 / 1e9, waiting: waiting as f64 / 1e9 }),
        }
    });
    drop(store);
    fs::remove_dir_all(&folder).map_err(|error| error.to_string())?;
    taken
}

/// Processor time and waiting time of every thread, in ns; those of threads that have ended stay.
fn look(last: &mut HashMap<String, (u64, u64)>) {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return };
    for thread in threads.flatten() {
        let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
        let mut words = text.split_whitespace().filter_map(|word| word.parse().ok());
        if let (Some(cpu), Some(waiting)) = (words.next(), words.next()) {
            last.insert(thread.file_name().to_string_lossy().into_owned(), (cpu, waiting));
        }
    }
}

fn text(name: &str, sets: u64, block: u64, tests: &[&str], generator: &str) -> String {
    format!(
        "schema = \"horolog.sweep/1\"\n[sweep]\nname = \"{name}\"\nsets = {sets}\nblock = {block}\ntests = {tests:?}\n[generator]\n{generator}\n"
    )
}

/// What a set takes in each test, on one core.
fn each_test() -> Result<(), String> {
    let mut line = String::new();
    for (word, _) in SYSTEM_TESTS {
        let test = Test::of_word(word).ok_or("no such test")?;
        let mut generator = "tasks = 10\nutilisation = 0.8\n".to_owned();
        for key in test.needs() {
            let value =
                horolog_sweep::KEYS.iter().find(|one| one.name == *key).map_or("1", |one| one.example);
            writeln!(generator, "{key} = {value}").map_err(|error| error.to_string())?;
        }
        let taken = swept(&text("each", 1_000, 1_000, &[word], &generator), 1)?;
        write!(line, " {word} {:.0},", taken.cpu / 1_000.0 * 1e6).map_err(|error| error.to_string())?;
    }
    println!("µs of a set of 10 tasks, U = 0.8, one core:{}", line.trim_end_matches(','));
    Ok(())
}

/// Cells of which some take many times as long as others, one block each.
fn balance(cells: usize, seconds: f64) -> Result<(), String> {
    let generator = format!(
        "tasks = [5, 10, 20, 40]\nutilisation = {{ from = 0.5, to = 1.6, steps = {} }}\nprocessors = 2\nmethod = \"randfixedsum\"",
        (cells / 4).max(2)
    );
    let of = |sets: u64| text("balance", sets, sets, &["global-edf", "global-fp"], &generator);
    let cells = ((cells / 4).max(2) * 4) as f64;
    let tried = swept(&of(20), 2)?;
    let sets = (20.0 * seconds * cells / tried.cpu).max(1.0) as u64;
    let taken = swept(&of(sets), 2)?;
    let (all, own) = taken.over(2.0);
    println!(
        "balance: {cells} cells of one block, {:.2} s of processor time each in the mean, two workers: wall {:.2} s, {all:.3} times (cell CPU / cores), {own:.3} where time that other programs took counts as used",
        taken.cpu / cells,
        taken.wall
    );
    // One cell that takes as long as all others.
    let alone = text(
        "alone",
        sets,
        sets,
        &["global-edf", "global-fp"],
        "tasks = 40\nutilisation = 1.5\nprocessors = 2\nmethod = \"randfixedsum\"",
    );
    let taken = swept(&alone, 2)?;
    let (all, own) = taken.over(2.0);
    println!(
        "balance: one cell of one block, two workers: wall {:.2} s, {all:.3} times (cell CPU / cores), {own:.3} where time that other programs took counts as used",
        taken.wall
    );
    Ok(())
}

/// Two workers by one, the best of five each.
fn cores() -> Result<(), String> {
    let one = text("cores", 200_000, 10_000, &["edf-qpa", "fp-preemptive"], "tasks = 10\nutilisation = 0.9");
    let best = |workers: usize| -> Result<Taken, String> {
        let mut all = (0..5).map(|_| swept(&one, workers)).collect::<Result<Vec<Taken>, String>>()?;
        all.sort_by(|one, other| one.wall.total_cmp(&other.wall));
        all.into_iter().next().ok_or_else(|| "nothing".to_owned())
    };
    let (one, two) = (best(1)?, best(2)?);
    let (_, own) = two.over(2.0);
    println!(
        "cores: 200000 sets by two tests: {:.2} s with one worker, {:.2} s with two: {:.2} times as fast; {own:.3} times (cell CPU / cores) where time that other programs took counts as used, {:.3} times the processor time of one worker",
        one.wall,
        two.wall,
        one.wall / two.wall,
        two.cpu / one.cpu
    );
    Ok(())
}

/// So many sets, and the most memory that this process had.
fn memory(sets: u64) -> Result<(), String> {
    let taken = swept(
        &text("memory", sets, 100_000, &["rm-hyperbolic", "fp-preemptive"], "tasks = 10\nutilisation = 0.9"),
        2,
    )?;
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("not known").trim();
    println!("memory: {sets} sets by two tests in {:.1} s (wall), at most {most} resident", taken.wall);
    Ok(())
}
