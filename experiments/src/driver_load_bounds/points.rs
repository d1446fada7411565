//! What was measured so far; in a folder, a line of a file each, so that a killed experiment goes on where it was.

use super::RATE;
use super::accounts::Accounts;
use super::interference::Configuration;
use super::table::Cell;
use crate::ExperimentError;
use horolog_sys::network::LabOptions;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// The interference of one configuration.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Load {
    pub(super) configuration: Configuration,
    /// Packets really sent, and those that the ring had no room for.
    pub(super) sent: u64,
    pub(super) dropped: u64,
    pub(super) elapsed_ns: u64,
    /// Stretches in which the kernel held a real-time thread back; left out.
    pub(super) held_back: u64,
    pub(super) stolen_ns: u64,
    /// The window nearest to 10 ms, and its mean and median share.
    pub(super) near_ns: u64,
    pub(super) mean_ppb: u64,
    pub(super) median_ppb: u64,
    /// (window ns, share in parts per billion) by statistic.
    pub(super) max: Vec<(u64, u64)>,
    pub(super) p95: Vec<(u64, u64)>,
    pub(super) median: Vec<(u64, u64)>,
}

impl Load {
    /// Packets a second really sent.
    pub(super) fn rate_hz(&self) -> f64 {
        self.sent as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// One cell of the table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) cell: Cell,
    pub(super) jobs: u64,
    /// Deadlines missed by τ1 and by τ2.
    pub(super) misses1: u64,
    pub(super) misses2: u64,
    pub(super) heartbeats_sent: u64,
    pub(super) heartbeats_received: u64,
    /// Packets really sent, and those that the ring had no room for.
    pub(super) sent: u64,
    pub(super) dropped: u64,
    pub(super) elapsed_ns: u64,
    /// How often the kernel held a real-time thread back.
    pub(super) held_back: Option<u64>,
    pub(super) stolen_ns: Option<u64>,
    /// The server's own account, where there is one.
    pub(super) server: Option<ServerAccount>,
}

/// What the agent of the sporadic server says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct ServerAccount {
    /// What tells how much the thread has executed.
    pub(super) accounting: String,
    /// Executed at the high priority and charged, and below.
    pub(super) consumed_ns: u64,
    pub(super) low_ns: u64,
    /// Budgets used up; by how much they were overdrawn.
    pub(super) exhaustions: u64,
    pub(super) overshoot_median_ns: u64,
    pub(super) overshoot_max_ns: u64,
    /// What each wake-up was charged with, and how many were.
    pub(super) wake_cost_ns: u64,
    pub(super) wakes_charged: u64,
    /// What the agent itself took, and how often it looked.
    pub(super) agent_ns: u64,
    pub(super) looks: u64,
}

impl Outcome {
    pub(super) fn misses_percent(&self) -> f64 {
        100.0 * self.misses2 as f64 / self.jobs.max(1) as f64
    }

    pub(super) fn heartbeats_percent(&self) -> f64 {
        100.0 * self.heartbeats_received as f64 / self.heartbeats_sent.max(1) as f64
    }

    /// Packets a second really sent.
    pub(super) fn rate_hz(&self) -> f64 {
        self.sent as f64 * 1e9 / self.elapsed_ns.max(1) as f64
    }
}

/// The first line: what must be equal for points to belong together.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    schema: String,
    stretches: u32,
    jobs: u64,
    rate: u32,
    receive_cpu: u32,
    send_cpu: u32,
    kernel: String,
}

impl Head {
    pub(super) fn new(stretches: u32, jobs: u64, cpus: LabOptions) -> Head {
        Head {
            schema: "horolog.driver-load-bounds/2".to_owned(),
            stretches,
            jobs,
            rate: RATE,
            receive_cpu: cpus.receive_cpu,
            send_cpu: cpus.send_cpu,
            kernel: horolog_sys::machine::kernel_release(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Load(Load),
    Cell(Outcome),
    Accounts(Accounts),
}

/// All points.
#[derive(Default)]
pub(super) struct Points {
    loads: Vec<Load>,
    cells: Vec<Outcome>,
    accounts: Option<Accounts>,
    file: Option<(File, PathBuf)>,
}

impl Points {
    pub(super) fn in_memory() -> Points {
        Points::default()
    }

    /// Goes on with `points.jsonl` of the folder, or begins it.
    pub(super) fn open(folder: &Path, head: &Head) -> Result<Points, ExperimentError> {
        let path = folder.join("points.jsonl");
        let failed = |error| cannot("open", &path, &error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let text =
            if path.exists() { std::fs::read_to_string(&path).map_err(failed)? } else { String::new() };
        // What follows the last newline was cut off by a kill.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        let mut points = Points::default();
        let mut lines = text[..whole].lines();
        let first = lines.next();
        if first.is_some_and(|line| serde_json::from_str(line).ok().as_ref() != Some(head)) {
            return Err(ExperimentError::failed(format!(
                "{} was measured otherwise (another length, rate, kernel or pair of CPUs): give another folder",
                path.display()
            )));
        }
        for line in lines {
            match serde_json::from_str(line) {
                Ok(Line::Load(load)) => points.loads.push(load),
                Ok(Line::Cell(outcome)) => points.cells.push(outcome),
                Ok(Line::Accounts(accounts)) => points.accounts = Some(accounts),
                Err(error) => {
                    return Err(ExperimentError::failed(format!("{}: {error}: {line}", path.display())));
                }
            }
        }
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        points.file = Some((file, path));
        if first.is_none() {
            points.append(head)?;
        }
        Ok(points)
    }

    pub(super) fn has_load(&self, configuration: &Configuration) -> bool {
        self.load(configuration).is_some()
    }

    pub(super) fn has_cell(&self, cell: &Cell) -> bool {
        self.cell(cell).is_some()
    }

    pub(super) fn load(&self, configuration: &Configuration) -> Option<&Load> {
        self.loads.iter().find(|load| load.configuration == *configuration)
    }

    pub(super) fn cell(&self, cell: &Cell) -> Option<&Outcome> {
        self.cells.iter().find(|outcome| outcome.cell == *cell)
    }

    pub(super) fn loads(&self) -> &[Load] {
        &self.loads
    }

    pub(super) fn cells(&self) -> &[Outcome] {
        &self.cells
    }

    pub(super) fn add_load(&mut self, load: Load) -> Result<(), ExperimentError> {
        self.append(&Line::Load(load.clone()))?;
        self.loads.push(load);
        Ok(())
    }

    pub(super) fn add_cell(&mut self, outcome: Outcome) -> Result<(), ExperimentError> {
        self.append(&Line::Cell(outcome.clone()))?;
        self.cells.push(outcome);
        Ok(())
    }

    /// Where the periods under the sporadic server went.
    pub(super) fn accounts(&self) -> Option<&Accounts> {
        self.accounts.as_ref()
    }

    pub(super) fn add_accounts(&mut self, accounts: Accounts) -> Result<(), ExperimentError> {
        self.append(&Line::Accounts(accounts.clone()))?;
        self.accounts = Some(accounts);
        Ok(())
    }

    fn append(&mut self, line: &impl Serialize) -> Result<(), ExperimentError> {
        let Some((file, path)) = &mut self.file else { return Ok(()) };
        let text = serde_json::to_string(line).map_err(|error| ExperimentError::failed(error.to_string()))?;
        file.write_all(format!("{text}\n").as_bytes()).map_err(|error| cannot("write", path, &error))
    }
}

fn cannot(doing: &str, path: &Path, error: &std::io::Error) -> ExperimentError {
    ExperimentError::failed(format!("cannot {doing} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::interference::Receiver;
    use super::super::table::Server;
    use super::*;

    fn head(jobs: u64) -> Head {
        Head::new(5, jobs, LabOptions { receive_cpu: 1, send_cpu: 0 })
    }

    fn outcome(e2_us: u64) -> Outcome {
        Outcome {
            cell: Cell { server: Server::Foreground, e2_us },
            jobs: 150,
            misses1: 0,
            misses2: 15,
            heartbeats_sent: 50,
            heartbeats_received: 49,
            sent: 1_000,
            dropped: 0,
            elapsed_ns: 10_000_000,
            held_back: Some(0),
            stolen_ns: None,
            server: None,
        }
    }

    #[test]
    fn points_read_back_and_go_on_after_a_cut() {
        let folder = tempfile::tempdir().unwrap();
        let mut points = Points::open(folder.path(), &head(150)).unwrap();
        points.add_cell(outcome(1)).unwrap();
        points.add_cell(outcome(2)).unwrap();
        drop(points);
        let path = folder.path().join("points.jsonl");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 9]).unwrap();
        let mut points = Points::open(folder.path(), &head(150)).unwrap();
        assert_eq!(points.cells(), [outcome(1)]);
        assert!(!points.has_cell(&outcome(2).cell));
        assert!(!points.has_load(&Configuration { receiver: Receiver::Idle, replies: false }));
        points.add_cell(outcome(2)).unwrap();
        drop(points);
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        assert!(Points::open(folder.path(), &head(151)).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn shares_are_percent() {
        let outcome = outcome(1);
        assert_eq!((outcome.misses_percent(), outcome.heartbeats_percent()), (10.0, 98.0));
        assert_eq!(outcome.rate_hz(), 100_000.0);
    }
}
