//! CPUs kept free for real-time tasks.

use super::{Fact, State, command_line};
use horolog_sys::affinity::allowed_cpus;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::machine::{names_in, read};

pub(super) fn facts() -> Vec<Fact> {
    vec![cpus(), isolation(), full_dynticks(), process_cpus(), threaded_napi()]
}

fn cpus() -> Fact {
    const NAME: &str = "cpus";
    const FOR: &str = "a CPU for the tasks and another for the reader, the guardian and everything else";
    let online = match online_cpus() {
        Ok(online) => online,
        Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()),
    };
    let smt = match read("/sys/devices/system/cpu/smt/active") {
        Ok(active) if active == "1" => "; siblings share cores (SMT on)",
        Ok(_) => "; no siblings (SMT off)",
        Err(_) => "",
    };
    let detail = format!("{} online{smt}", online.len());
    match online.len() {
        1 => Fact::new(NAME, FOR, State::Limited, detail)
            .remedy("give the machine a second CPU; here the recorder and the tasks share one"),
        _ => Fact::new(NAME, FOR, State::Yes, detail),
    }
}

fn isolation() -> Fact {
    const NAME: &str = "isolated-cpus";
    const FOR: &str = "tasks that ordinary threads never disturb";
    match read("/sys/devices/system/cpu/isolated") {
        Ok(list) if !list.is_empty() => Fact::new(NAME, FOR, State::Yes, format!("CPUs {list}")),
        Ok(_) => Fact::new(NAME, FOR, State::No, "none").remedy(
            "boot with isolcpus=managed_irq,domain,LIST irqaffinity=OTHERS, or make a cpuset partition \
             (cpuset.cpus.partition = isolated); real-time priorities work without it",
        ),
        Err(error) => Fact::new(NAME, FOR, State::Unknown, error.what()),
    }
}

fn full_dynticks() -> Fact {
    const NAME: &str = "nohz-full";
    const FOR: &str = "long computations without the tick";
    let rcu = command_line("rcu_nocbs").map_or_else(String::new, |list| format!("; rcu_nocbs={list}"));
    match read("/sys/devices/system/cpu/nohz_full") {
        Ok(list) if !list.is_empty() && list != "(null)" => {
            Fact::new(NAME, FOR, State::Yes, format!("CPUs {list}{rcu}"))
        }
        Ok(_) => Fact::new(NAME, FOR, State::No, format!("no CPU is booted so{rcu}"))
            .remedy("boot with nohz_full=LIST rcu_nocbs=LIST; the tick costs a few us at HZ otherwise"),
        Err(error) if error.is_not_permitted() => {
            Fact::new(NAME, FOR, State::No, "this kernel is built without CONFIG_NO_HZ_FULL")
                .remedy("a kernel with CONFIG_NO_HZ_FULL; the tick costs a few us at HZ otherwise")
        }
        Err(error) => Fact::new(NAME, FOR, State::Unknown, error.what()),
    }
}

fn process_cpus() -> Fact {
    const NAME: &str = "allowed-cpus";
    const FOR: &str = "pinning tasks to the CPUs of the system file";
    match (allowed_cpus(), online_cpus()) {
        (Ok(allowed), Ok(online)) => {
            let missing: Vec<u32> = online.into_iter().filter(|cpu| !allowed.contains(*cpu)).collect();
            if missing.is_empty() {
                Fact::new(NAME, FOR, State::Yes, "this process may use every online CPU")
            } else {
                Fact::new(
                    NAME,
                    FOR,
                    State::Limited,
                    format!("this process was started without CPUs {missing:?}"),
                )
                .remedy("check taskset, the service's AllowedCPUs and the cpuset of this process")
            }
        }
        (Err(error), _) | (_, Err(error)) => Fact::new(NAME, FOR, State::Unknown, error.what()),
    }
}

fn threaded_napi() -> Fact {
    const NAME: &str = "threaded-napi";
    const FOR: &str = "network processing in threads that have a priority";
    let (mut threaded, mut able) = (Vec::new(), Vec::new());
    for name in names_in("/sys/class/net") {
        match read(&format!("/sys/class/net/{name}/threaded")) {
            Ok(state) if state != "0" => threaded.push(name),
            // The loopback device has the file and no NAPI.
            Ok(_) if name != "lo" => able.push(name),
            _ => {}
        }
    }
    if !threaded.is_empty() {
        return Fact::new(NAME, FOR, State::Yes, format!("on for {}", threaded.join(", ")));
    }
    if able.is_empty() {
        return Fact::new(NAME, FOR, State::No, "no interface offers it")
            .remedy("Linux 5.12 or newer and a network card with a NAPI driver");
    }
    Fact::new(NAME, FOR, State::Limited, format!("available for {}, off", able.join(", ")))
        .remedy("write 1 into /sys/class/net/NAME/threaded, then give the napi/* threads their priority")
}
