//! Interrupts and devices: read, checked with a place for every fault, printed and read back.
#![allow(clippy::unwrap_used)] // Helpers of an integration test are tests too.

use horolog_model::{DeviceClass, DeviceService, PriorityRule, RequestOrder, Throttling, file};
use horolog_time::Span;

const HEAD: &str = "[system]\nname = \"x\"\n[[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\npriority = 9\n\
                    [[interrupt]]\nname = \"eth0\"\nrate = 100000\ncost = \"4 us\"\nthrottling = \"napi\"\n";

const NET: &str = "[[device]]\nname = \"net\"\ninterrupt = \"eth0\"\nservice = \"thread\"\npriority = 5\n\
                   separation = \"10 us\"\ncost = \"6 us\"\nring = 64\n";

fn first_fault(rest: &str) -> String {
    let errors = file::read(&format!("{HEAD}{rest}"), "x.toml", &[]).unwrap_err();
    let first = errors.messages().next().unwrap();
    format!("{}: {}", first.path.unwrap_or_default(), first.reason)
}

#[test]
fn a_file_is_read_printed_and_read_back() {
    let others = "[[interrupt]]\nname = \"sda\"\nseparation = \"1 ms\"\ncost = \"3 us\"\nthrottling = \"moderated\"\n\
                  interval = \"2 ms\"\n[[device]]\nname = \"disk\"\nclass = \"closed\"\nservice = \"server\"\n\
                  server = \"s\"\nrate = 1000\ncost = \"20 us\"\nslots = 4\norder = \"fixed-priority\"\ndeadline = \"5 ms\"\nconstraint = \"soft\"\n\
                  [[device]]\nname = \"uart\"\nservice = \"softirq\"\nrounds = 3\nrate = 7\ncost = \"1 us\"\n\
                  [[device]]\nname = \"pen\"\nservice = \"interrupt\"\nrate = 1\ncost = \"1 us\"\n\
                  [[device]]\nname = \"cam\"\nservice = \"thread\"\nrule = \"waiting\"\nusers = [\"a\"]\nrate = 30\n\
                  cost = \"1 ms\"\n[[server]]\nname = \"s\"\nkind = \"sporadic\"\ntasks = []\nbudget = \"1 ms\"\n\
                  period = \"10 ms\"\npriority = 7\n";
    let (system, _) = file::read(&format!("{HEAD}{NET}{others}"), "x.toml", &[]).unwrap();
    let [eth, sda] = system.interrupts() else { panic!("two interrupts") };
    assert_eq!((eth.separation, eth.throttling), (Span::from_us(10).unwrap(), Throttling::Napi));
    assert_eq!(sda.throttling, Throttling::Moderated { interval: Span::from_ms(2).unwrap() });
    let [net, disk, uart, pen, cam] = system.devices() else { panic!("five devices") };
    assert_eq!((net.ring, disk.class, disk.is_soft), (64, DeviceClass::Closed, true));
    assert_eq!(disk.service, DeviceService::Server { server: "s".into() });
    assert_eq!(uart.service, DeviceService::Softirq { rounds: 3, poll_budget: 64 });
    assert_eq!((uart.separation.as_ns(), pen.ring), (142_857_142, 256));
    assert_eq!((disk.slots, disk.order, net.slots), (4, RequestOrder::FixedPriority, 1));
    let waiting =
        DeviceService::Thread { priority: None, rule: PriorityRule::Waiting, users: vec!["a".into()] };
    assert_eq!(cam.service, waiting);
    assert_eq!(system.first_driver().as_deref(), Some("interrupt.eth0"));
    let printed = file::print(&system);
    assert_eq!(file::read(&printed, "printed", &[]).unwrap().0, system, "{printed}");
    let (set, _) =
        file::read(&printed, "x", &["device.net.ring=9".into(), "interrupt.sda.cost=5us".into()]).unwrap();
    assert_eq!((set.devices()[0].ring, set.interrupts()[1].cost), (9, Span::from_us(5).unwrap()));
}

#[test]
fn every_fault_has_its_place() {
    let fault = |change: &str, by: &str| first_fault(&NET.replace(change, by));
    for (change, by, expected) in [
        ("cost = \"6 us\"", "cost = \"0 us\"", "device.net.cost: an event takes no time"),
        ("ring = 64", "slots = 0", "device.net.slots: no request is ever worked on"),
        ("ring = 64", "slots = 2", "device.net.slots: only a closed device works on requests"),
        (
            "ring = 64",
            "order = \"fixed-priority\"",
            "device.net.order: only a closed device has requests to order",
        ),
        (
            "ring = 64",
            "class = \"closed\"\nslots = 1025",
            "device.net.slots: more than 1024 requests at once",
        ),
        ("ring = 64", "ring = 0", "device.net.ring: no event has room"),
        ("priority = 5\n", "", "device.net.priority: the thread has no priority"),
        ("priority = 5", "rule = \"open\"", "device.net.users: nobody lends the thread a priority"),
        (
            "priority = 5",
            "rule = \"open\"\nusers = [\"b\"]",
            "device.net.users.#1: there is no task `b` on its CPU",
        ),
        ("ring = 64", "rounds = 3", "device.net.rounds: a device served by thread has no `rounds`"),
        ("ring = 64", "rate = 5", "device.net.rate: a device has `separation` or `rate`, not both"),
        ("separation = \"10 us\"\n", "", "device.net.separation: a device needs a `separation` or a `rate`"),
        ("separation = \"10 us\"", "separation = \"0 us\"", "device.net.separation: the separation is zero"),
        (
            "ring = 64",
            "constraint = \"soft\"",
            "device.net.constraint: there is no deadline that could be soft",
        ),
        ("ring = 64", "deadline = \"5 us\"", "device.net.deadline: every event would miss it"),
    ] {
        assert_eq!(fault(change, by), expected);
    }
    assert_eq!(
        first_fault(
            "[[device]]\nname = \"d\"\nservice = \"server\"\nserver = \"t\"\nrate = 1\ncost = \"1 us\"\n"
        ),
        "interrupt.eth0.throttling: a NAPI interrupt stays off until its device's service is done, so one device has \
         to name it"
    );
    let server =
        "[[device]]\nname = \"d\"\nservice = \"server\"\nserver = \"t\"\nrate = 1\ncost = \"1 us\"\n";
    assert_eq!(first_fault(&format!("{NET}{server}")), "device.d.server: there is no server `t` on its CPU");
    let moderated = "[[interrupt]]\nname = \"i\"\nrate = 1\ncost = \"1 us\"\nthrottling = \"moderated\"\n";
    assert_eq!(
        first_fault(&format!("{NET}{moderated}")),
        "interrupt.i.interval: a moderated interrupt needs an `interval`"
    );
    let slack = "[[task]]\nname = \"soft\"\nseparation = \"9 ms\"\nwcet = \"1 ms\"\n[[server]]\nname = \"s\"\n\
                 kind = \"slack-stealing\"\ntasks = [\"soft\"]\n";
    assert_eq!(
        first_fault(&format!("{NET}{slack}")),
        "server.s.kind: slack-stealing knows nothing of interrupts and devices"
    );
}
