//! `horologd`: the resource kernel's daemon.

use clap::Parser;
use horolog_daemon::config::Config;
use horolog_daemon::host::Host;
use horolog_daemon::server::Server;
use horolog_daemon::store::{hold_lease, put_all_back};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Grants programs an amount of processor time by a deadline, and has the kernel enforce it.
///
/// Clients: `horolog reserve`. Exit status: 0 ended in order; 1 something could not be put back; 2 bad usage or configuration; 3 this
/// machine does not allow it.
#[derive(Parser, Debug)]
#[command(name = "horologd", version, max_term_width = 110)]
struct Arguments {
    /// The configuration file, TOML; default: built-in values.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where clients connect; replaces the value of the file.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The folder of the state; replaces the value of the file.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Decide and answer, but change nothing and keep no state.
    #[arg(long)]
    dry_run: bool,
    /// Say what this host allows, read the configuration, and end.
    #[arg(long, conflicts_with = "dry_run")]
    check: bool,
    /// With --check: as JSON (`horolog.reserve-host/1`).
    #[arg(long, requires = "check")]
    json: bool,
    /// Give threads back what a daemon that has died had changed, and end.
    #[arg(long, conflicts_with_all = ["check", "dry_run"])]
    put_back: bool,
    /// The lease process; started by the daemon itself.
    #[arg(long, hide = true, num_args = 3, value_names = ["NS", "PID", "DIR"])]
    lease: Option<Vec<String>>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some([grace, daemon, folder]) = arguments.lease.as_deref() {
        let grace = Duration::from_nanos(grace.parse().unwrap_or(0));
        return ExitCode::from(
            u8::try_from(hold_lease(Path::new(folder), daemon.parse().unwrap_or(0), grace)).unwrap_or(1),
        );
    }
    let mut config = match arguments.config.as_deref().map_or_else(|| Ok(Config::default()), Config::read) {
        Ok(config) => config,
        Err(error) => return fail(&error, 2),
    };
    if let Some(socket) = arguments.socket {
        config.socket = socket;
    }
    if let Some(state) = arguments.state {
        config.state = state;
    }
    if arguments.check {
        return check(arguments.json);
    }
    if arguments.put_back {
        return put_back(&config.state);
    }
    serve(config, arguments.dry_run)
}

fn fail(message: &str, status: u8) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(status)
}

fn check(as_json: bool) -> ExitCode {
    let host = Host::probe();
    if as_json {
        match serde_json::to_string_pretty(&host) {
            Ok(text) => println!("{text}"),
            Err(error) => return fail(&error.to_string(), 2),
        }
    } else {
        for finding in &host.findings {
            let word = match finding.is_good {
                Some(true) => "yes",
                Some(false) => "no",
                None => "-",
            };
            println!("{word:4}{:16}{}", finding.what, finding.found);
        }
        println!(
            "{}",
            if host.can_enforce { "holds: reserves can be enforced here" } else { "not allowed here" }
        );
    }
    ExitCode::from(if host.can_enforce { 0 } else { 3 })
}

fn put_back(folder: &Path) -> ExitCode {
    match put_all_back(folder) {
        Ok(Some((count, failures))) => {
            println!("put back {count} threads");
            failures.iter().for_each(|failure| eprintln!("not put back: {failure}"));
            ExitCode::from(u8::from(!failures.is_empty()))
        }
        Ok(None) => fail(&format!("a horologd lives and has {}: stop it first", folder.display()), 2),
        Err(error) => fail(&error, 2),
    }
}

fn serve(config: Config, is_dry: bool) -> ExitCode {
    let stop = Arc::default();
    if let Err(error) = horolog_sys::signal::set_on_interrupt(&stop) {
        return fail(&error.to_string(), 3);
    }
    let socket = config.socket.clone();
    let (server, told) = match Server::start(config, Some(Path::new("/proc/self/exe")), is_dry) {
        Ok(started) => started,
        Err(error) => return fail(&error, 3),
    };
    told.iter().for_each(|line| eprintln!("{line}"));
    eprintln!("horologd listens at {}{}", socket.display(), if is_dry { "; it changes nothing" } else { "" });
    let failures = server.serve(&stop);
    failures.iter().for_each(|failure| eprintln!("not put back: {failure}"));
    ExitCode::from(u8::from(!failures.is_empty()))
}
