//! `horolog reserve network run`, on the receiving end of a virtual pair in namespaces of its own.

#![allow(clippy::unwrap_used)]

use crate::common::{self, Done, folder, horolog, inside, is_alive, real_time, wait_for};
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::fixed_priority::{Class, class_of};
use horolog_sys::guardian::{Guardian, GuardianOptions};
use horolog_sys::network::{Lab, LabOptions, threads_of};
use std::path::{Path, PathBuf};
use std::process::Command;

/// 80 bytes in a datagram, with the headers of Ethernet, IPv4 and UDP.
const FRAME: u64 = 122;

struct Network {
    lab: Lab,
    guardian: Guardian,
    place: tempfile::TempDir,
}

impl Network {
    /// `None`, and the reason, where this machine does not allow it.
    fn set() -> Option<Network> {
        let cpus = online_cpus().unwrap();
        let options = LabOptions { receive_cpu: *cpus.last().unwrap(), send_cpu: cpus[0] };
        let (place, _) = folder("");
        let program = PathBuf::from(env!("CARGO_BIN_EXE_horolog"));
        let directory = Some(place.path().join("journals"));
        let options_of_guardian = GuardianOptions { program, directory, ..GuardianOptions::default() };
        let mut guardian = Guardian::start(&options_of_guardian).unwrap();
        let set = horolog_netr::check(options.receive_cpu)
            .and_then(|()| Lab::build(&mut guardian, options, &mut |_| {}));
        match set {
            Ok(lab) => {
                lab.offload_checksums(false).unwrap();
                Some(Network { lab, guardian, place })
            }
            Err(error) if error.is_not_permitted() => {
                println!("SKIPPED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// The command inside the receiver's namespace, with the namespace's /sys where asked for.
    fn run(&self, with_sys: bool, words: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", self.lab.receiver_namespace().display()));
        if with_sys {
            command.args([
                "unshare",
                "--mount",
                "sh",
                "-c",
                "mount -t sysfs sysfs /sys && exec \"$@\"",
                "sh",
            ]);
        }
        command.arg(env!("CARGO_BIN_EXE_horolog"));
        command.args(["reserve", "network", "run", "--device", self.lab.receiving_device()]);
        command.args(words);
        command
    }

    fn file(&self, name: &str) -> String {
        inside(&self.place, name)
    }

    fn clear(self) {
        let restored = self.guardian.finish().unwrap();
        assert!(restored.failures.is_empty(), "{restored}");
    }
}

fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

/// Tells by a file that it runs, and ends when another one is there.
fn script(begun: &str, end: &str, status: u8) -> String {
    format!("touch {begun}; while [ ! -e {end} ]; do sleep 0.01; done; exit {status}")
}

#[test]
fn a_program_has_its_bytes_and_the_counters_tell_of_each_packet() {
    let Some(_alone) = real_time() else { return };
    let Some(network) = Network::set() else { return };
    let [begun, end, counters] = ["begun", "end", "counters"].map(|name| network.file(name));
    let amount = format!("{} B / 3600 s", 10 * FRAME);
    let words =
        ["--port", "udp:5000", "--amount", &amount, "--unreserved", "1 kB / 3600 s", "--counters", &counters];
    let script = script(&begun, &end, 7);
    let more = ["--every", "20ms", "--protocol-priority", "3", "--", "sh", "-c", &script];
    let running = common::start(&mut network.run(false, &[&words[..], &more].concat()));
    wait_for("the command", || exists(&begun));
    let (reserved, other) =
        (network.lab.sender_socket(5_000).unwrap(), network.lab.sender_socket(5_001).unwrap());
    // Without a listener some sends would only report an answer to the one before.
    let _listening = [5_000, 5_001].map(|port| network.lab.receiver_socket(port).unwrap());
    for _ in 0..12 {
        reserved.send(&[0; 80]).unwrap();
        other.send(&[0; 80]).unwrap();
    }
    let looks = || -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&counters).unwrap();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let delivered =
        |look: &serde_json::Value, queue: usize| look["queues"][queue]["counters"]["delivered"].as_u64();
    wait_for("the packets", || {
        looks().last().is_some_and(|look| delivered(look, 0) == Some(10) && delivered(look, 1) == Some(8))
    });
    std::fs::write(&end, "").unwrap();
    let done = common::end(running);
    assert_eq!(done.status, Some(7), "{done:?}");
    let all = looks();
    let last = all.last().unwrap();
    assert_eq!(last["schema"], "horolog.network-reserve/1");
    assert!(
        last["ended"] == true
            && all[0]["ended"] == false
            && last["mechanism"].as_str().unwrap().starts_with("xdp")
    );
    let [reserve, unreserved] = [&last["queues"][0], &last["queues"][1]];
    assert_eq!(
        (reserve["queue"].as_str(), unreserved["queue"].as_str()),
        (Some("reserve"), Some("unreserved"))
    );
    assert_eq!(
        (&reserve["scheduling"][0], &unreserved["scheduling"][0]),
        (&"fifo 3".into(), &"normal".into())
    );
    assert_eq!(reserve["counters"]["arrived"]["bytes"], 12 * FRAME);
    assert_eq!(
        (&reserve["counters"]["used_up"]["packets"], &reserve["counters"]["queue_full"]),
        (&2.into(), &0.into())
    );
    // 8 frames of 122 bytes are in 1000.
    assert_eq!(unreserved["counters"]["used_up"]["packets"], 4);
    assert!(done.err.contains("delivered"), "the table: {}", done.err);
    network.clear();
}

#[test]
fn a_killed_command_leaves_the_device_as_it_was() {
    let Some(_alone) = real_time() else { return };
    let Some(network) = Network::set() else { return };
    for (mechanism, with_sys) in [("xdp", false), ("napi", true)] {
        let begun = network.file(mechanism);
        let pid = network.file(&format!("{mechanism}-pid"));
        let words = ["--port", "5000", "--amount", "1 kB / 1 ms", "--mechanism", mechanism, "--", "sh", "-c"];
        let script = format!("echo $$ > {pid}; touch {begun}; sleep 600");
        let mut command = network.run(with_sys, &[&words[..], &[&script]].concat());
        let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        wait_for("the command", || exists(&begun));
        let threads = threads_of(network.lab.receiving_device());
        if mechanism == "napi" {
            assert_eq!(class_of(threads[0]).unwrap(), Class::Fifo(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let program = std::fs::read_to_string(&pid).unwrap();
        wait_for("the program's end", || !is_alive(program.trim()));
        wait_for("the end of the device's threads", || threads_of(network.lab.receiving_device()).is_empty());
    }
    // Nothing looks at its packets any more: another one may.
    let words = ["--port", "5000", "--amount", "1 kB / 1 ms", "--mechanism", "xdp", "--", "true"];
    let done = Done::of(&mut network.run(false, &words));
    assert_eq!(done.status, Some(0), "{done:?}");
    network.clear();
}

#[test]
fn what_makes_no_sense_is_refused_with_a_remedy() {
    let refused = |words: &[&str], status: i32| {
        let given = ["reserve", "network", "run", "--device", "no-such-device"];
        let done = Done::of(&mut horolog(given.iter().chain(words).copied()));
        assert_eq!(done.status, Some(status), "{done:?}");
        done.err
    };
    let asked = |amount| ["--port", "5000", "--amount", amount, "--", "true"];
    assert!(refused(&asked("4500 B / 4 ms by 2 ms"), 2).contains("leave `by` out"));
    assert!(refused(&asked("4500 / 4 ms"), 2).contains("B, kB or MB"));
    assert!(refused(&["--port", "udp:0", "--amount", "1 B / 1 s", "--", "true"], 2).contains("udp:5000"));
    assert!(
        refused(&["--port", "5", "--port", "tcp:5", "--amount", "1 B / 1 s", "--", "true"], 2)
            .contains("once")
    );
    assert!(
        refused(&["--cpu", "4095", "--port", "5", "--amount", "1 B / 1 s", "--", "true"], 2)
            .contains("online")
    );
    if horolog_netr::check(0).is_ok() {
        assert!(refused(&asked("4500 B / 4 ms"), 2).contains("ip link"));
    }
    assert!(
        refused(&["--mechanism", "napi", "--port", "5", "--amount", "1 B / 1 s", "--", "true"], 2)
            .contains("ip link")
    );
}
