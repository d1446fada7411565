//! Clocks, the tick, frequency and idle states, and the hypervisor.

use super::{Fact, State, cpuinfo, in_words};
use horolog_sys::Error;
use horolog_sys::cpu_list::online_cpus;
use horolog_sys::machine::{architecture, may_use_dma_latency, names_in, read, tick_hz, timer_resolution_ns};
use horolog_sys::steal::stolen_ns;
use horolog_time::Span;

pub(super) const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CPU: &str = "/sys/devices/system/cpu";

pub(super) fn facts() -> Vec<Fact> {
    let mut facts = vec![timers(), tick(), clocksource()];
    facts.extend(counter());
    facts.extend([frequency(), idle_states(), dma_latency(), bare_metal(), stolen_time()]);
    facts
}

fn timers() -> Fact {
    const NAME: &str = "high-resolution-timers";
    const FOR: &str = "one-shot releases";
    match timer_resolution_ns() {
        1 => Fact::new(NAME, FOR, State::Yes, "resolution 1 ns"),
        ns => Fact::new(
            NAME,
            FOR,
            State::No,
            format!("resolution {}: releases come at ticks", Span::from_ns(ns)),
        )
        .remedy("a kernel with CONFIG_HIGH_RES_TIMERS, booted without highres=off; or `tick` in [platform]"),
    }
}

fn tick() -> Fact {
    const NAME: &str = "tick";
    const FOR: &str = "granularity of SCHED_DEADLINE budgets, stolen time and POSIX CPU timers";
    match tick_hz() {
        Some(hz) => Fact::new(NAME, FOR, State::Yes, format!("HZ = {hz}")),
        None => Fact::new(NAME, FOR, State::Unknown, "the coarse clock tells no resolution"),
    }
}

fn clocksource() -> Fact {
    const NAME: &str = "clocksource";
    const FOR: &str = "reading the time in user space at some 30 ns";
    match read(CLOCKSOURCE) {
        // These are read without a system call.
        Ok(name)
            if ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"]
                .contains(&name.as_str()) =>
        {
            Fact::new(NAME, FOR, State::Yes, name)
        }
        Ok(name) => Fact::new(NAME, FOR, State::Limited, format!("{name}: every reading is a slow access"))
            .remedy("boot with clocksource=tsc where the processor's counter is stable"),
        Err(error) => Fact::new(NAME, FOR, State::Unknown, error.what()),
    }
}

/// The time-stamp counter's properties, on the architecture that has them.
fn counter() -> Option<Fact> {
    if architecture() != "x86_64" {
        return None;
    }
    const NAME: &str = "tsc";
    const FOR: &str = "time stamps by the processor's counter, comparable between CPUs";
    let Some(flags) = cpuinfo("flags") else {
        return Some(Fact::new(NAME, FOR, State::Unknown, "/proc/cpuinfo tells no flags"));
    };
    let missing: Vec<&str> = ["constant_tsc", "nonstop_tsc"]
        .into_iter()
        .filter(|wanted| !flags.split_whitespace().any(|flag| flag == *wanted))
        .collect();
    Some(if missing.is_empty() {
        Fact::new(NAME, FOR, State::Yes, "constant_tsc and nonstop_tsc")
    } else {
        Fact::new(
            NAME,
            FOR,
            State::Limited,
            format!("the processor does not promise {}", missing.join(" and ")),
        )
        .remedy("horolog reads CLOCK_MONOTONIC instead, which the kernel corrects")
    })
}

/// The distinct frequency governors of all CPUs.
pub(super) fn governors() -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for cpu in online_cpus()? {
        let path = format!("{CPU}/cpu{cpu}/cpufreq/scaling_governor");
        match read(&path) {
            Ok(governor) => found.push(governor),
            Err(error) if error.is_not_permitted() && error.errno() == Some(2) => {}
            Err(error) => return Err(error),
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn frequency() -> Fact {
    const NAME: &str = "frequency-governor";
    const FOR: &str = "execution times that repeat";
    match governors() {
        Ok(governors) if governors.is_empty() => {
            let who = if is_virtual() {
                "the host may change it unseen"
            } else {
                "it stays as the firmware set it"
            };
            Fact::new(
                NAME,
                FOR,
                State::Unknown,
                format!("no cpufreq: the kernel does not govern the frequency; {who}"),
            )
            .remedy("set a fixed frequency in the firmware or on the host")
        }
        Ok(governors) if governors == ["performance"] => {
            Fact::new(NAME, FOR, State::Yes, "performance on every CPU")
        }
        Ok(governors) => Fact::new(NAME, FOR, State::Limited, governors.join(", "))
            .remedy("`cpupower frequency-set -g performance`, and turn boost off for times that repeat"),
        Err(error) => Fact::new(NAME, FOR, State::Unknown, error.what()),
    }
}

fn idle_states() -> Fact {
    const NAME: &str = "idle-states";
    const FOR: &str = "release latency on an idle CPU";
    /// Waking from here is below the kernel's own release latency.
    const SHALLOW_US: u64 = 10;
    let states: Vec<(String, u64)> = names_in(&format!("{CPU}/cpu0/cpuidle"))
        .into_iter()
        .filter_map(|state| {
            let name = read(&format!("{CPU}/cpu0/cpuidle/{state}/name")).ok()?;
            let latency = read(&format!("{CPU}/cpu0/cpuidle/{state}/latency")).ok()?;
            Some((name, latency.parse().ok()?))
        })
        .collect();
    if states.is_empty() {
        let driver = read(&format!("{CPU}/cpuidle/current_driver")).unwrap_or_else(|_| "none".to_owned());
        return Fact::new(
            NAME,
            FOR,
            State::Yes,
            format!("the kernel shows no idle states (driver {driver})"),
        );
    }
    let shown: Vec<String> = states
        .iter()
        .map(|(name, latency)| format!("{name} in {}", in_words(&latency.to_string(), 1_000, "us")))
        .collect();
    let is_deep = states.iter().any(|(_, latency)| *latency > SHALLOW_US);
    let state = if is_deep { State::Limited } else { State::Yes };
    Fact::new(NAME, FOR, state, format!("cpu 0 wakes from {}", shown.join(", ")))
        .remedy("hold /dev/cpu_dma_latency at 0, or boot with idle=poll or a low max_cstate")
}

fn dma_latency() -> Fact {
    let outcome = may_use_dma_latency().map(|()| "/dev/cpu_dma_latency may be opened (tried)".to_owned());
    Fact::tried("cpu-dma-latency", "keeping CPUs out of deep idle states during a run", outcome)
}

/// Whether the processor says that a hypervisor is below.
pub(super) fn is_virtual() -> bool {
    cpuinfo("flags").is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"))
        || read("/sys/hypervisor/type").is_ok()
}

/// The hypervisor's name, or `unknown`; `None` where there is no sign of one.
pub(super) fn hypervisor() -> Option<String> {
    if !is_virtual() {
        return None;
    }
    let product = read("/sys/devices/virtual/dmi/id/product_name").or_else(|_| read("/sys/hypervisor/type"));
    Some(product.ok().filter(|product| !product.is_empty()).unwrap_or_else(|| "unknown".to_owned()))
}

fn bare_metal() -> Fact {
    const NAME: &str = "bare-metal";
    const FOR: &str = "bounds that nothing below the kernel can break";
    let detail = match hypervisor().as_deref() {
        None => return Fact::new(NAME, FOR, State::Yes, "no sign of a hypervisor"),
        Some("unknown") => "a virtual machine".to_owned(),
        Some(product) => format!("a virtual machine ({product})"),
    };
    Fact::new(NAME, FOR, State::No, detail)
        .remedy("measure on the target machine; here compare medians and shares, never single maxima")
}

fn stolen_time() -> Fact {
    const NAME: &str = "no-steal";
    const FOR: &str =
        "CPUs that are always there; `verify` counts stolen time as a disturbance of the machine";
    let cpus = match online_cpus() {
        Ok(cpus) => cpus,
        Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()),
    };
    let mut stolen = Vec::new();
    for cpu in cpus {
        match stolen_ns(cpu) {
            Ok(ns) => stolen.push((cpu, ns)),
            Err(error) => return Fact::new(NAME, FOR, State::Unknown, error.what()),
        }
    }
    let sum = stolen.iter().fold(0_u64, |sum, (_, ns)| sum.saturating_add(*ns));
    if sum == 0 {
        return Fact::new(NAME, FOR, State::Yes, "no time was stolen from any CPU since boot");
    }
    let worst = stolen.iter().max_by_key(|(_, ns)| *ns).copied().unwrap_or_default();
    let uptime = read("/proc/uptime").ok().and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    let share = uptime.filter(|seconds| *seconds > 0.0).map_or_else(String::new, |seconds| {
        format!(", {:.2} % of its time", worst.1 as f64 / 1e9 / seconds * 100.0)
    });
    let detail = format!("cpu {} lost {} since boot{share}", worst.0, Span::from_ns(worst.1).rounded());
    Fact::new(NAME, FOR, State::Limited, detail)
        .remedy("have the host pin and reserve the virtual CPUs, or measure on bare metal")
}
