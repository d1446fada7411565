//! The configuration file, TOML.

use horolog_reserve::Quota;
use horolog_time::Span;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What the operator chooses.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Where clients connect.
    pub socket: PathBuf,
    /// The folder of the state file.
    pub state: PathBuf,
    /// How long grants stay with their threads after the daemon has died, so that a new one takes them over.
    #[serde(deserialize_with = "span")]
    pub lease: Span,
    /// What each user may hold; root may hold what fits.
    pub quota: Limits,
    /// The same of single users, by number.
    pub user: BTreeMap<String, Limits>,
}

/// What a user may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Reserves.
    pub reserves: usize,
    /// Threads over all of them.
    pub threads: usize,
    /// Percents of one CPU in all.
    pub percent: u64,
    /// The longest budget.
    #[serde(deserialize_with = "span")]
    pub longest_budget: Span,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            socket: PathBuf::from(SOCKET),
            state: PathBuf::from("/run/horologd"),
            lease: Span::from_ns(2_000_000_000),
            quota: Limits::default(),
            user: BTreeMap::new(),
        }
    }
}

/// Where clients connect where nothing else is said.
pub const SOCKET: &str = "/run/horologd/socket";

impl Default for Limits {
    fn default() -> Limits {
        Limits { reserves: 16, threads: 64, percent: 50, longest_budget: Span::from_ns(100_000_000) }
    }
}

fn span<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(serde::de::Error::custom)
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub fn read(path: &Path) -> Result<Config, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Config::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn parse(text: &str) -> Result<Config, String> {
        let config: Config = toml::from_str(text).map_err(|error| error.to_string())?;
        match config.user.keys().find(|user| user.parse::<u32>().is_err()) {
            Some(user) => {
                Err(format!("[user.{user}]: give the number of the user, as `id -u NAME` prints it"))
            }
            None => Ok(config),
        }
    }

    /// What a user may hold. Root may hold what fits.
    #[must_use]
    pub fn quota_of(&self, uid: u32) -> Quota {
        if uid == 0 {
            return Quota::default();
        }
        let limits = self.user.get(&uid.to_string()).unwrap_or(&self.quota);
        let mut quota = Quota::default();
        quota.reserves = limits.reserves;
        quota.threads = limits.threads;
        quota.share_ppm = limits.percent.saturating_mul(10_000);
        quota.longest_budget = limits.longest_budget;
        quota
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_and_its_errors_have_a_place() {
        let config = Config::parse("lease = \"1 s\"\n[quota]\npercent = 20\n[user.1000]\nreserves = 2\n")
            .expect("good");
        assert_eq!((config.quota_of(5).share_ppm, config.quota_of(1000).reserves), (200_000, 2));
        assert_eq!(config.quota_of(1000).share_ppm, 500_000, "what a user's table leaves out is the default");
        assert_eq!(config.quota_of(0), Quota::default());
        let error = Config::parse("socket = \"/x\"\nleas = \"1 s\"\n").expect_err("unknown");
        assert!(error.contains("line 2") && error.contains("leas"), "{error}");
        assert!(Config::parse("lease = \"1\"").expect_err("no unit").contains("line 1"));
        assert!(Config::parse("[user.bob]\n").expect_err("a name").contains("id -u"));
    }
}
