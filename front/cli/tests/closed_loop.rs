//! `horolog loop` and `horolog verify` on real runs: what holds is told from a violated model, a violated bound and a
//! disturbed machine. Nothing here judges how fast the machine was.

mod common;

use common::{Done, PATIENT, SYSTEM, done, folder, horolog, inside, real_time};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A thread above every task: it takes CPU 1 for 150 ms at a time.
const BURST: &str = "
import os, time
os.sched_setaffinity(0, {1})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
open('/proc/self/comm', 'w').write('e2e-burst')
print('ready', flush=True)
while True:
    end = time.monotonic() + 0.15
    while time.monotonic() < end: pass
    time.sleep(0.25)
";

/// Runs the loop into a folder; without costs to measure, since the file gives them.
fn close(file: &str, out: &str, more: &[&str]) -> Done {
    let words = ["loop", file, "--for", "1500 ms", "--out", out, "--seed", "1", "--format", "json"];
    let done = done(words.into_iter().chain(more.iter().copied()));
    done.no_panic();
    done
}

/// The findings of one class.
fn found<'a>(verification: &'a Value, class: &str) -> Vec<&'a Value> {
    let groups = verification["groups"].as_array().expect("groups");
    groups.iter().filter(|group| group["class"] == class).collect()
}

#[test]
fn the_quick_start_closes_and_leaves_everything_behind() {
    let Some(_alone) = real_time() else { return };
    let (place, _) = folder("");
    let out = inside(&place, "out");
    let words = ["loop", "examples/quick-start/system.toml", "--for", "2s", "--out", &out];
    let ended = done(words);
    ended.no_panic();
    let verification: Value =
        serde_json::from_slice(&fs::read(Path::new(&out).join("verification.json")).expect("written"))
            .expect("JSON");
    let analysis: Value =
        serde_json::from_slice(&fs::read(Path::new(&out).join("analysis.json")).expect("written"))
            .expect("JSON");
    // The machine may be busy: its measured costs may make a deadline unprovable, and a host may take time that the
    // task's own clock counts. The exit status is the answer's.
    let violated =
        ["model-violated", "bound-violated"].iter().any(|class| !found(&verification, class).is_empty());
    println!("schedulable: {}, verified: {}", analysis["schedulable"], verification["verdict"]);
    let said_no = violated || analysis["schedulable"] == "no";
    assert!(ended.status == Some(1) || !said_no, "{ended:?}");
    assert!(ended.status != Some(0) || analysis["schedulable"] == "yes", "{ended:?}");
    // The closing line is the last, and says the status.
    let closing = ended.err.lines().rev().find(|line| !line.starts_with("  help: ")).unwrap_or_default();
    assert!(closing.ends_with(&format!("(exit {})", ended.status.unwrap_or(-1))), "{ended:?}");
    let page = fs::read_to_string(Path::new(&out).join("report.html")).expect("written");
    assert!(page.contains(&closing.replace('"', "\\\"")), "{closing}");
    assert!(found(&verification, "bound-violated").is_empty(), "{verification:#}");
    assert!(ended.out.contains("report.html"), "{ended:?}");
    for name in ["report.html", "system.toml", "simulated.json", "run.json", "simulated.trace", "run.trace"] {
        assert!(fs::metadata(Path::new(&out).join(name)).is_ok_and(|file| file.len() > 100), "{name}");
    }
    let trace = inside(&place, "out/run.trace");
    let counts = done(["trace", "stats", &trace, "--format", "json"]).json()["counts"].to_string();
    if verification["notes"].to_string().contains("no records of the kernel") {
        println!("SKIPPED: this machine does not let the kernel be recorded");
    } else {
        assert!(counts.contains("kernel-switch"), "{counts}");
    }
    opens_in_a_browser(&Path::new(&out).join("report.html"));
}

/// The page opens in a real browser without a complaint.
fn opens_in_a_browser(report: &Path) {
    let viewer = common::root().join("viewer");
    if !viewer.join("node_modules/playwright-core").exists() {
        println!("SKIPPED: viewer/node_modules is missing (`cargo xtask test` installs it)");
        return;
    }
    let script = format!(
        "import {{ CHROMIUM, launch, open, decoded }} from '{}/test/browser.mjs';
         if (!CHROMIUM) {{ console.log('no browser'); process.exit(0); }}
         const browser = await launch();
         const {{ page, troubles }} = await open(browser, '{}');
         await decoded(page);
         const text = await page.locator('body').innerText();
         await browser.close();
         if (troubles.length) {{ console.log(troubles.join('\\n')); process.exit(1); }}
         console.log(text);",
        viewer.display(),
        report.canonicalize().expect("the report").display()
    );
    let node =
        Command::new("node").args(["--input-type=module", "-e", &script]).current_dir(&viewer).output();
    match node {
        Err(error) => println!("SKIPPED: no node: {error}"),
        Ok(output) => {
            let ended = Done::from(output);
            if ended.out.contains("no browser") {
                println!("SKIPPED: no Chromium");
                return;
            }
            assert_eq!(ended.status, Some(0), "{ended:?}");
            assert!(ended.out.contains("camera") && ended.out.contains("navigation"), "{}", ended.out);
        }
    }
}

#[test]
fn a_wrong_wcet_is_a_violated_model() {
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(SYSTEM);
    let set = ["--set", "task.e2e-fast.body={ spin = \"3 ms\" }"];
    let ended = close(&file, &inside(&place, "out"), &set);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let verification = ended.json()["verification"].clone();
    assert_eq!(verification["verdict"], "model-violated", "{verification:#}");
    let execution = found(&verification, "model-violated");
    assert!(
        execution.iter().any(|group| group["check"] == "execution" && group["subject"] == "e2e-fast"),
        "{verification:#}"
    );
    // The same by hand, as the user would ask again.
    let again = done(["verify", &file, &inside(&place, "out/run.trace")]);
    assert_eq!(again.status, Some(1), "{again:?}");
    assert!(again.out.contains("MODEL VIOLATED") && again.out.contains("e2e-fast job"), "{again:?}");
}

#[test]
fn a_wrong_bound_is_a_violated_bound() {
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(PATIENT);
    let ended = close(&file, &inside(&place, "out"), &["--bound-override", "e2e-patient=1ms"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let verification = ended.json()["verification"].clone();
    let violated = found(&verification, "bound-violated");
    assert!(violated.iter().any(|group| group["subject"] == "e2e-patient"), "{verification:#}");
    assert!(found(&verification, "model-violated").is_empty(), "{verification:#}");
}

#[test]
fn a_foreign_burst_is_a_disturbed_machine() {
    let Some(_alone) = real_time() else { return };
    for _ in 0..3 {
        let burst = Command::new("python3").args(["-c", BURST]).stdout(Stdio::piped()).spawn();
        let Ok(mut burst) = burst else {
            println!("SKIPPED: no python3");
            return;
        };
        let mut ready = String::new();
        let pipe = burst.stdout.take().expect("a pipe");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(pipe), &mut ready).expect("it speaks");
        let (place, file) = folder(PATIENT);
        let ended = close(&file, &inside(&place, "out"), &["--gate", "proof,model"]);
        burst.kill().expect("it was there");
        burst.wait().expect("it ends");
        let verification = ended.json()["verification"].clone();
        if verification["notes"].to_string().contains("no records of the kernel") {
            println!("SKIPPED: this machine does not let the kernel be recorded");
            return;
        }
        let foreign = found(&verification, "machine-disturbed");
        assert!(
            foreign.iter().any(|group| group["check"] == "foreign-thread" && group["subject"] == "e2e-burst"),
            "{verification:#}"
        );
        // Where the kernel hides the switch to the burst, nobody can be blamed for what follows.
        if verification["verdict"] == "unknown" && !found(&verification, "cannot-tell").is_empty() {
            let of_it = verification["findings"].as_array().expect("a list").iter();
            let mut open = of_it.filter(|one| one["class"] == "cannot-tell");
            assert!(
                open.all(|one| one["evidence"].to_string().contains("hidden switches")),
                "{verification:#}"
            );
            continue;
        }
        assert_eq!(verification["verdict"], "machine-disturbed", "{verification:#}");
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let strict = done(["verify", &file, &inside(&place, "out/run.trace"), "--strict"]);
        assert_eq!(strict.status, Some(1), "{strict:?}");
        assert!(strict.out.contains("e2e-burst"), "{strict:?}");
        return;
    }
    println!("SKIPPED: this kernel hid switches in each of three runs");
}

#[test]
fn a_foreign_trace_gets_a_verdict() {
    let application = "
import os, time
os.sched_setaffinity(0, {1})
open('/proc/self/comm', 'w').write('e2e-foreign')
while True:
    end = time.monotonic() + 0.001
    while time.monotonic() < end: pass
    time.sleep(0.02)
";
    let system = "[system]\nname = \"foreign\"\npolicy = \"fixed-priority\"\n[platform]\ncpus = [1]\n[[task]]\n\
                  name = \"control\"\nseparation = \"10 ms\"\nwcet = \"5 ms\"\nbcet = \"100 us\"\npriority = 1\n";
    let Some(_alone) = real_time() else { return };
    let (place, file) = folder(system);
    let Ok(mut child) = Command::new("python3").args(["-c", application]).spawn() else {
        println!("SKIPPED: no python3");
        return;
    };
    let perf = inside(&place, "perf.data");
    let events = "sched:sched_switch,sched:sched_wakeup";
    let words = ["record", "-a", "-e", events, "-k", "CLOCK_MONOTONIC", "-o", &perf, "--", "sleep", "1"];
    let perf_done = Command::new("perf").args(words).output();
    let dat = inside(&place, "trace.dat");
    let words = [
        "record",
        "-e",
        "sched:sched_switch",
        "-e",
        "sched:sched_wakeup",
        "-C",
        "mono",
        "-o",
        &dat,
        "sleep",
        "1",
    ];
    let trace_cmd = Command::new("trace-cmd").args(words).output();
    child.kill().expect("it was there");
    child.wait().expect("it ends");
    for (tool, recorded, trace) in [("perf", perf_done, perf), ("trace-cmd", trace_cmd, dat)] {
        match recorded {
            Err(error) => println!("SKIPPED: {tool}: {error}"),
            Ok(output) if !output.status.success() => {
                println!("SKIPPED: {tool}: {}", String::from_utf8_lossy(&output.stderr).trim());
            }
            Ok(_) => {
                let words = ["verify", &file, &trace, "--map", "control=e2e-foreign", "--format", "json"];
                let ended = Done::of(&mut horolog(words));
                ended.no_panic();
                let verification = ended.json();
                assert_eq!(verification["backend"], "foreign", "{tool}: {verification:#}");
                let judged = verification["checks"].as_array().into_iter().flatten();
                let judged = judged.filter(|check| check["check"] == "execution");
                if judged.map(|check| check["applied"].as_u64()).sum::<Option<u64>>() == Some(0) {
                    // Some kernels hide the switches of certain threads. Then no job is seen, and nothing is said of one.
                    assert_eq!(verification["verdict"], "unknown", "{tool}: {verification:#}");
                    assert_eq!(ended.status, Some(4), "{tool}: {ended:?}");
                    assert_ne!(verification["losses"]["other"], 0, "{tool}: {verification:#}");
                    println!("SKIPPED: {tool}: this kernel hid the switches of the application");
                    continue;
                }
                let violated = verification["verdict"] == "model-violated"
                    || verification["verdict"] == "bound-violated";
                assert!(ended.status == Some(1) || !violated, "{tool}: {ended:?}");
                let nobody = done(["verify", &file, &trace, "--map", "control=e2e-nobody"]);
                assert_eq!(nobody.status, Some(2), "{tool}: {nobody:?}");
            }
        }
    }
}

/// Nothing runs here: the file counts its CPUs.
#[test]
fn the_loop_says_what_the_simulation_broke() {
    let text = "[system]\nname = \"overrunning\"\n[[task]]\nname = \"imu\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 1\n\
                offset = \"0 ms\"\nexecution = { jobs = [\"2 ms\", \"3 ms\"] }\n";
    let (place, file) = folder(text);
    let out = inside(&place, "out");
    let words = ["loop", &file, "--for", "40 ms", "--out", &out, "--seed", "1"];
    let ended = done(words);
    assert_eq!(ended.no_panic().status, Some(1), "{ended:?}");
    for said in
        ["overrunning (sim): MODEL VIOLATED", "model violated  execution", "model violated: imu job 1"]
    {
        assert!(ended.out.contains(said), "{said}: {}", ended.out);
    }
    let json = done(words.into_iter().chain(["--format", "json"])).json();
    assert_eq!(json["simulated_verification"]["verdict"], "model-violated", "{json:#}");
    assert!(json["verification"].is_null());
    // Within its wcet nothing is said of the simulation.
    let within = ["--set", "task.imu.wcet=3 ms"];
    let ended = done(words.into_iter().chain(within));
    assert_eq!(ended.no_panic().status, Some(0), "{ended:?}");
    assert!(!ended.out.contains("(sim)"), "{}", ended.out);
}
