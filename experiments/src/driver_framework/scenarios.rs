//! The paper's arguments as scenarios: interference of servers and interrupts, backlog inversion, budgets, predictability.

use super::simulated::run;
use crate::{ExperimentError, ExperimentReport, Fact};
use horolog_sim::ExecutionChoice::{AsModelled, Bcet, Wcet};
use horolog_trace::Kind;

const TASK: &str = "[system]\nname = \"interference\"\n[[task]]\nname = \"task\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\npriority = 50\n";

pub(super) fn facts(report: &mut ExperimentReport) -> Result<(), ExperimentError> {
    servers(report)?;
    interrupts(report)?;
    backlog(report)?;
    budgets(report)?;
    predictability(report)
}

/// Fact 2: a task below one server; the request comes so that the server hurts most.
fn servers(report: &mut ExperimentReport) -> Result<(), ExperimentError> {
    for (kind, offset, published) in
        [("sporadic", "9 ms", 12_000), ("polling", "10 ms", 12_000), ("deferrable", "9 ms", 13_000)]
    {
        let text = format!(
            "[system]\nname = \"below a server\"\n[[task]]\nname = \"task\"\nperiod = \"100 ms\"\nwcet = \"10 ms\"\n\
             offset = \"{offset}\"\npriority = 50\n[[task]]\nname = \"requests\"\nperiod = \"1 ms\"\nwcet = \"1 ms\"\n\
             offset = \"{offset}\"\n[[server]]\nname = \"server\"\nkind = \"{kind}\"\ntasks = [\"requests\"]\n\
             budget = \"1 ms\"\nperiod = \"10 ms\"\npriority = 60\nlow_priority = \"none\"\n"
        );
        let ours = run(&text, 90, AsModelled)?.response_us(0);
        let statement = format!("a task of 10 ms below a {kind} server of 1 ms every 10 ms: response, us");
        report.facts.push(Fact::exact(2, &statement, published, ours));
    }
    Ok(())
}

/// Facts 3 and 4: a task of 10 ms above or below a network card.
fn interrupts(report: &mut ExperimentReport) -> Result<(), ExperimentError> {
    let eth = |keys: &str| {
        format!("[[interrupt]]\nname = \"eth0\"\nseparation = \"10 us\"\ncost = \"4 us\"\n{keys}")
    };
    let bare = run(&format!("{TASK}{}", eth("")), 100, AsModelled)?;
    let statement = "10 ms beside a 4 us handler every 10 us: response, us";
    report.facts.push(Fact::exact(3, statement, 16_668, bare.response_us(0)));
    let poller = "[[device]]\nname = \"net\"\ninterrupt = \"eth0\"\nseparation = \"10 us\"\ncost = \"6 us\"\n\
                  service = \"thread\"\npriority = 1\n";
    let napi = run(&format!("{TASK}{}{poller}", eth("throttling = \"napi\"\n")), 100, AsModelled)?;
    let statement = "the same under NAPI with the poller below the task: response, us";
    report.facts.push(Fact::exact(3, statement, 10_004, napi.response_us(0)));
    let mut most = 0;
    for rate in [1_000_u64, 10_000, 100_000, 1_000_000] {
        let text = format!(
            "{TASK}[[interrupt]]\nname = \"eth0\"\nrate = {rate}\ncost = \"1 us\"\nthrottling = \"napi\"\n[[device]]\n\
             name = \"net\"\ninterrupt = \"eth0\"\nrate = {rate}\nspread = \"3 us\"\ncost = \"2 us\"\n\
             service = \"thread\"\npriority = 1\n"
        );
        let found = run(&text, 1_000, AsModelled)?;
        let (mut inside, mut count) = (false, 0);
        for record in &found.records {
            match (record.kind, record.task) {
                (Kind::Start, 0) => (inside, count) = (true, 0),
                (Kind::Completion, 0) => (inside, most) = (false, most.max(count)),
                (Kind::InterruptEntry, _) => count += u64::from(inside),
                _ => {}
            }
        }
    }
    let statement =
        "interrupts of a NAPI device during one more important job, at 1 000 to 1 000 000 packets a second";
    report.facts.push(Fact::exact(4, statement, 1, most));
    Ok(())
}

/// Fact 6: where the priority of the network's thread comes from.
fn backlog(report: &mut ExperimentReport) -> Result<(), ExperimentError> {
    let scenario = "[system]\nname = \"backlog\"\n\
        [[task]]\nname = \"H\"\narrivals = [\"9 ms\"]\nwcet = \"1 ms\"\npriority = 30\n\
        [[task]]\nname = \"M\"\narrivals = [\"0 ms\"]\nwcet = \"20 ms\"\npriority = 20\n\
        [[task]]\nname = \"L\"\narrivals = [\"0 ms\"]\nwcet = \"1 ms\"\npriority = 10\n\
        [[request]]\nname = \"H reads\"\ntask = \"H\"\ndevice = \"net\"\nafter = \"1 ms\"\narrivals = [\"10 ms\"]\n\
        [[request]]\nname = \"L reads\"\ntask = \"L\"\ndevice = \"net\"\narrivals = [\"1 ms\", \"2 ms\", \"3 ms\", \
        \"4 ms\", \"5 ms\", \"6 ms\", \"7 ms\", \"8 ms\"]\n\
        [[device]]\nname = \"net\"\nseparation = \"1 ms\"\ncost = \"1 ms\"\nservice = \"thread\"\n";
    for (name, keys, published) in [
        ("of who holds the device open (LynxOS)", "rule = \"open\"\nusers = [\"H\", \"L\"]\n", 11_000),
        (
            "of who waits for the device now (Zhang and West)",
            "rule = \"waiting\"\nusers = [\"H\", \"L\"]\n",
            19_000,
        ),
        ("below all that have deadlines", "priority = 11\n", 30_000),
    ] {
        let found = run(&format!("{scenario}{keys}"), 100, AsModelled)?;
        let ours = found.first_us(Kind::Wake, 0).unwrap_or(0);
        let statement =
            format!("the reader gets its packet when the server's priority is that {name}: at, us");
        report.facts.push(Fact::exact(6, &statement, published, ours));
    }
    Ok(())
}

/// Fact 7: a flood from the network and one completion of the disk, in one budget and in two.
fn budgets(report: &mut ExperimentReport) -> Result<(), ExperimentError> {
    let scenario = |server: &str, more: &str| {
        format!(
            "[system]\nname = \"budgets\"\n[[task]]\nname = \"application\"\nperiod = \"100 ms\"\nwcet = \"1 ms\"\n\
             priority = 1\n[[device]]\nname = \"network\"\nservice = \"server\"\nserver = \"first\"\n\
             separation = \"100 us\"\ncost = \"100 us\"\n[[device]]\nname = \"disk\"\nservice = \"server\"\n\
             server = \"{server}\"\nseparation = \"10 ms\"\narrivals = [\"3 ms\"]\ncost = \"100 us\"\n[[server]]\n\
             name = \"first\"\nkind = \"sporadic\"\ntasks = []\nbudget = \"2 ms\"\nperiod = \"10 ms\"\npriority = 50\n\
             low_priority = \"none\"\n{more}"
        )
    };
    let second = "[[server]]\nname = \"second\"\nkind = \"sporadic\"\ntasks = []\nbudget = \"2 ms\"\n\
                  period = \"10 ms\"\npriority = 60\nlow_priority = \"none\"\n";
    // Behind the application come the threads of network and disk.
    let shared = run(&scenario("first", ""), 100, AsModelled)?.first_us(Kind::Start, 2).unwrap_or(0);
    let ours = format!("{shared} us");
    let statement = "disk completion at 3 ms, one budget of 2 ms per 10 ms shared with a network flood: its handler begins";
    report.facts.push(Fact::trend(7, statement, "not before 10000 us", ours, shared >= 10_000, ""));
    let separate = run(&scenario("second", second), 100, AsModelled)?.first_us(Kind::Start, 2).unwrap_or(0);
    let statement = "the same with a server of its own at a higher priority: its handler begins at, us";
    report.facts.push(Fact::exact(7, statement, 3_000, separate));
    Ok(())
}

/// Fact 8: without preemption a shorter job makes another one late.
fn predictability(report: &mut ExperimentReport) -> Result<(), ExperimentError> {
    let job = |name: &str, at: u64, bcet: u64, wcet: u64, priority: u32| {
        format!(
            "[[task]]\nname = \"{name}\"\narrivals = [\"{at} ms\"]\nbcet = \"{bcet} ms\"\nwcet = \"{wcet} ms\"\n\
             priority = {priority}\npreemption = \"non-preemptive\"\n"
        )
    };
    let text = format!(
        "[system]\nname = \"lost predictability\"\n{}{}{}",
        job("J1", 0, 2, 4, 30),
        job("J2", 3, 2, 2, 20),
        job("J3", 0, 10, 10, 10)
    );
    for (execution, first, published) in [(Wcet, 4, 3_000), (Bcet, 2, 11_000)] {
        let ours = run(&text, 100, execution)?.response_us(1);
        let statement =
            format!("non-preemptive, the first job executes {first} ms: response of the second, us");
        report.facts.push(Fact::exact(8, &statement, published, ours));
    }
    Ok(())
}
