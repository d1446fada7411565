//! Resources and sections: what the file says, what is refused, to the unit.

use horolog_model::{AtExhaustion, Protocol, System, file};

const HEAD: &str = "[system]\nname = \"r\"\n[platform]\ncpus = 2\n";
const BUS: &str = "[[resource]]\nname = \"bus\"\n[[resource]]\nname = \"log\"\n";

fn task(name: &str, cpu: u32, rest: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"\npriority = 1\ncpu = {cpu}\n{rest}\n"
    )
}

fn section(resource: &str, from: &str, length: &str) -> String {
    format!("[[task.section]]\nresource = \"{resource}\"\nfrom = \"{from}\"\nlength = \"{length}\"\n")
}

fn read(parts: &[&str]) -> Result<System, String> {
    let text = format!("{HEAD}{}", parts.concat());
    file::read(&text, "r.toml", &[]).map(|(system, _)| system).map_err(|errors| errors.to_string())
}

fn refused(parts: &[&str], words: &str) {
    let error = read(parts).expect_err(words);
    assert!(error.contains(words), "{words}: {error}");
}

#[test]
fn what_a_file_says_is_printed_and_read_again() {
    let sections = section("bus", "0.5 ms", "1 ms") + &section("log", "0.5 ms", "0.25 ms");
    let waits = "[[resource]]\nname = \"bus\"\nprotocol = \"ceiling\"\nat_exhaustion = \"wait\"\n[[resource]]\nname = \"log\"\n";
    let system = read(&[&task("a", 0, &sections), &task("b", 0, ""), waits]).expect("valid");
    let [bus, log] = system.resources() else { panic!("two resources") };
    assert_eq!((bus.protocol, bus.at_exhaustion), (Protocol::Ceiling, AtExhaustion::Wait));
    assert_eq!(log.at_exhaustion, AtExhaustion::Finish);
    assert_eq!(system.tasks()[0].sections.len(), 2);
    assert_eq!(system.tasks()[0].sections[1].end(), horolog_time::Span::from_us(750));
    assert_eq!(system.first_beyond_servers(), None);
    assert_eq!(system.first_held().as_deref(), Some("resource.bus"));
    let printed = file::print(&system);
    assert_eq!(file::read(&printed, "printed", &[]).expect("valid").0, system, "{printed}");
}

#[test]
fn sections_stay_within_the_wcet_and_nest() {
    let within = |parts: &[String]| read(&[&task("a", 0, &parts.concat()), BUS]).map(|_| ());
    assert_eq!(within(&[section("bus", "1 ms", "1 ms")]), Ok(()));
    assert_eq!(within(&[section("bus", "0 ms", "2 ms")]), Ok(()));
    refused(&[&task("a", 0, &section("bus", "1 ms", "1.000001 ms")), BUS], "beyond the wcet 2 ms");
    refused(&[&task("a", 0, &section("bus", "584 years", "1 ms")), BUS], "");
    refused(&[&task("a", 0, &section("bus", "0 ms", "0 ms")), BUS], "has no length");
    // One after the other, one within the other, and one unit of overlap.
    assert_eq!(within(&[section("bus", "0 ms", "1 ms"), section("bus", "1 ms", "1 ms")]), Ok(()));
    assert_eq!(within(&[section("bus", "0 ms", "1 ms"), section("log", "0.5 ms", "0.5 ms")]), Ok(()));
    let overlap = section("bus", "0 ms", "1 ms") + &section("log", "0.5 ms", "0.500001 ms");
    refused(&[&task("a", 0, &overlap), BUS], "overlap");
    let twice = section("bus", "0 ms", "1 ms") + &section("bus", "0.5 ms", "0.5 ms");
    refused(&[&task("a", 0, &twice), BUS], "is locked while the job holds it");
    refused(&[&task("a", 0, &twice), BUS], "keep the outer section alone");
    // Neither lies within the other: the two are one.
    let crossing = section("bus", "0 ms", "1 ms") + &section("bus", "0.5 ms", "0.500001 ms");
    refused(&[&task("a", 0, &crossing), BUS], "make one section of the two");
}

#[test]
fn names_and_processors() {
    refused(&[&task("a", 0, &section("bux", "0 ms", "1 ms")), BUS], "there is no resource `bux`");
    refused(&[&task("a", 0, ""), BUS, "[[resource]]\nname = \"bus\"\n"], "two resources are called `bus`");
    refused(&[&task("a", 0, ""), "[[resource]]\nname = \"bus\"\nprotocol = \"inherit\"\n"], "protocol");
    let users =
        [task("a", 0, &section("bus", "0 ms", "1 ms")), task("b", 1, &section("bus", "0 ms", "1 ms"))];
    refused(&[&users.concat(), BUS], "held on another CPU");
    let others =
        [task("a", 0, &section("bus", "0 ms", "1 ms")), task("b", 1, &section("log", "0 ms", "1 ms"))];
    assert!(read(&[&others.concat(), BUS]).is_ok());
    refused(&["[[task.section]]\nresource = \"bus\"\n", BUS], "");
}

#[test]
fn protocols_of_one_processor() {
    let bus = |protocol: &str| {
        format!("[[resource]]\nname = \"bus\"\nprotocol = \"{protocol}\"\n[[resource]]\nname = \"log\"\n")
    };
    let user = |cpu: u32| task(&format!("t{cpu}"), cpu, &section("bus", "0 ms", "1 ms"));
    let edf = |text: &str| {
        let text = text.replace("priority = 1\n", "");
        let text = format!("[system]\nname = \"r\"\npolicy = \"edf\"\n{text}");
        file::read(&text, "r.toml", &[]).map(|_| ()).map_err(|errors| errors.to_string())
    };
    for protocol in ["non-preemptive", "inheritance", "original-ceiling", "none", "mpcp", "fmlp-plus", "omlp"]
    {
        let is_global = ["mpcp", "fmlp-plus", "omlp"].contains(&protocol);
        let bus = bus(protocol);
        let system = read(&[&user(0), &bus]).expect("valid");
        assert_eq!(system.resources()[0].protocol.word(), protocol);
        let printed = file::print(&system);
        assert_eq!(file::read(&printed, "printed", &[]).expect("valid").0, system, "{printed}");
        if is_global {
            let shared = read(&[&user(0), &user(1), &bus]).expect("for several CPUs");
            assert!(shared.first_boosting().is_some() && !shared.has_spin_locks());
            let acts = user(0).replace("wcet", "overrun = \"skip\"\nwcet");
            refused(&[&acts, &bus], &format!("an overrun policy beside `{protocol}` is not there yet"));
            for other in ["mpcp", "fmlp-plus", "omlp", "msrp"] {
                let other_one = format!("[[resource]]\nname = \"o\"\nprotocol = \"{other}\"\n");
                let both = read(&[&user(0), &bus, &other_one]).map(|_| ());
                let reason = format!("`{other}` and `{protocol}` are not there in one system yet");
                match both {
                    Ok(()) => assert_eq!(other, protocol),
                    Err(error) => assert!(error.contains(&reason), "{error}"),
                }
            }
        } else {
            refused(&[&user(0), &user(1), &bus], "is held on another CPU, too, and its protocol is local");
        }
        let server = "[[server]]\nname = \"s\"\nkind = \"polling\"\nbudget = \"2 ms\"\nperiod = \"5 ms\"\npriority = 2\ntasks = [\"t0\"]\n";
        let served = user(0).replace("priority = 1\n", "");
        refused(
            &[&served, &bus, server],
            &format!("resources with `protocol = \"{protocol}\"` below servers"),
        );
        let mode = "[[mode]]\nname = \"m\"\n";
        refused(&[&user(0), &bus, mode], &format!("`{protocol}` beside modes is not there yet"));
        // One unit of overlap, and none.
        let apart = section("bus", "0 ms", "1 ms") + &section("log", "1 ms", "1 ms");
        assert!(read(&[&task("a", 0, &apart), &bus]).is_ok(), "{protocol}");
        let within = section("bus", "0 ms", "1.000001 ms") + &section("log", "1 ms", "0.000001 ms");
        let (nested, edf) = (read(&[&task("a", 0, &within), &bus]), edf(&format!("{}{bus}", user(0))));
        if protocol == "non-preemptive" {
            assert!(nested.is_ok() && edf.is_ok(), "{edf:?}");
        } else {
            let nested = nested.expect_err("nested");
            let with = if protocol == "original-ceiling" { " with that one" } else { "" };
            assert!(nested.contains(&format!("this protocol knows no nesting{with}")), "{nested}");
            let edf = edf.expect_err("under EDF");
            assert!(edf.contains(&format!("`{protocol}` needs fixed priorities")), "{edf}");
        }
    }
}

#[test]
fn what_does_not_know_of_resources_is_refused() {
    let user = section("bus", "0 ms", "1 ms");
    let soft = |kind: &str| {
        let hard = task("h", 0, &user);
        let soft = "[[task]]\nname = \"s\"\narrivals = [\"0 ms\"]\nwcet = \"1 ms\"\ncpu = 0\n";
        read(&[&hard, soft, &format!("[[server]]\nname = \"v\"\n{kind}\ntasks = [\"s\"]\ncpu = 0\n"), BUS])
    };
    assert!(soft("kind = \"deferrable\"\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 3").is_ok());
    for kind in ["kind = \"slack-stealing\"", "kind = \"dual-priority\""] {
        assert!(soft(kind).expect_err(kind).contains("looks at every task of the CPU"));
    }
    let exchange = "kind = \"priority-exchange\"\nbudget = \"1 ms\"\nperiod = \"5 ms\"\npriority = 3";
    assert!(soft(exchange).expect_err("refused").contains("looks at every task of the CPU"));
    let device = "[[interrupt]]\nname = \"i\"\ncpu = 0\nseparation = \"10 ms\"\ncost = \"10 us\"\n";
    refused(&[&task("a", 0, &user), BUS, device], "beside interrupts, devices and requests");
    let cluster =
        "[[scheduler]]\nname = \"pair\"\ncpus = [0, 1]\norder = \"fixed-priority\"\ntasks = [\"a\"]\n";
    let in_cluster = task("a", 0, &user).replace("cpu = 0\n", "");
    refused(&[&in_cluster, BUS, cluster], "resources in clusters");
}

#[test]
fn a_mode_lets_jobs_with_sections_finish() {
    let user = task("a", 0, &section("bus", "0 ms", "1 ms"));
    let mode = |left_over: &str, change: &str| {
        let mode = format!("[[mode]]\nname = \"m\"\nat = [\"5 ms\"]\nleft_over = \"{left_over}\"\n{change}");
        read(&[&user, &task("b", 0, ""), BUS, &mode])
    };
    assert!(mode("finish", "").is_ok());
    assert!(mode("drop", "").expect_err("refused").contains("cannot be left with `drop`"));
    assert!(mode("drop", "[[mode.task]]\nname = \"a\"\nleft_over = \"finish\"\n").is_ok());
    let own = "[[mode.task]]\nname = \"a\"\nleft_over = \"suspend\"\n";
    assert!(mode("finish", own).expect_err("refused").contains("`suspend`"));
}
