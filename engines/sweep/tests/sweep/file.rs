//! The file of a sweep: values, and what is wrong at its place.

use crate::{TEXT, plan_of};
use horolog_draw::BatchRecipe;
use horolog_sweep::file;

#[test]
fn values_of_the_grid_are_exact_decimals() {
    let plan =
        plan_of(&TEXT.replace("{ from = 0.6, to = 0.9, steps = 3 }", "{ from = 0.05, to = 1, steps = 20 }"));
    let mut points: Vec<f64> = plan.cells.iter().map(|cell| cell.recipe.utilisation).collect();
    points.dedup();
    points.truncate(20);
    let literal = [
        0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9,
        0.95, 1.0,
    ];
    let mut sorted: Vec<f64> = points.clone();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    assert_eq!(sorted, literal);
    let minimal = "schema = \"horolog.sweep/1\"\n[sweep]\nname = \"x\"\nsets = 1\ntests = [\"edf-qpa\"]\n[generator]\nutilisation = 1\n";
    let plan = plan_of(minimal);
    assert_eq!((plan.block, plan.cells.len()), (1_000, 1));
    assert_eq!(plan.cells[0].recipe, BatchRecipe { utilisation: 1.0, ..BatchRecipe::default() });
    assert_eq!(plan.cells[0].seed, 1);
}

#[test]
fn what_is_wrong_is_told_at_its_place() {
    for (from, to, told) in [
        ("horolog.sweep/1", "horolog.qos/1", "another kind of file"),
        ("name = \"a small one\"", "", "has no `name`"),
        ("sets = 70", "sets = 0", "this number is out of bounds for `sets`"),
        ("sets = 70", "sets = 1099511627777", "this number is out of bounds for `sets`"),
        ("sets = 70", "", "has no `sets`"),
        ("block = 30", "block = 30.5", "`block` takes an integer here"),
        ("block = 30", "blok = 30", "did you mean `block`?"),
        ("seeds = [1, 2]", "seeds = [1, -2]", "this number is out of bounds for `seeds`"),
        ("seeds = [1, 2]", "seeds = [1, 1]", "this value twice"),
        ("seeds = [1, 2]", "seeds = [1, 0x1]", "this value twice"),
        ("seeds = [1, 2]", "seeds = []", "has 0 values"),
        ("\"edf-qpa\", ", "\"fp-preemptive\", ", "this value twice"),
        ("tasks = [2, 5]", "tasks = [2, 5, 2]", "`tasks` has this value twice"),
        ("{ from = 0.6, to = 0.9, steps = 3 }", "[0.5, 0.95, 0.950]", "`utilisation` has this value twice"),
        ("{ from = 0.6, to = 0.9, steps = 3 }", "[1, 1.0]", "`utilisation` has this value twice"),
        ("{ from = 0.6, to = 0.9, steps = 3 }", "[0.5, 5e-1]", "`utilisation` has this value twice"),
        ("{ from = 0.6, to = 0.9, steps = 3 }", "[0.5, 0.500000001]", ""),
        (
            "method = ",
            "granularity = [\"1 us\", \"1000 ns\"]\nmethod = ",
            "`granularity` has this value twice",
        ),
        ("method = ", "granularity = [\"1 us\", \"1001 ns\"]\nmethod = ", ""),
        ("method = ", "least = [0.1, 0.10]\nmethod = ", "`least` has this value twice"),
        ("[\"uunifast\", \"randfixedsum\"]", "[\"uunifast\", \"uunifast\"]", "`method` has this value twice"),
        ("\"edf-qpa\", ", "\"edf\", ", "no test is called `edf`"),
        ("\"edf-qpa\", ", "7, ", "`tests` takes text"),
        ("tests = [\"edf-qpa\", \"rm-hyperbolic\", \"fp-preemptive\"]", "", "has no `tests`"),
        ("tasks = [2, 5]", "tasks = [2, 1001]", "this number is out of bounds for `tasks`"),
        ("tasks = [2, 5]", "tasks = [1, 2]", ""),
        ("steps = 3", "steps = 1", "this number is out of bounds for `steps`"),
        ("from = 0.6", "from = 1.2", "has no 3 values"),
        ("from = 0.6", "from = 0.8999999995", "at most 9 decimals"),
        ("from = 0.6", "from = 0.899999999", "has no 3 values"),
        ("from = 0.6", "from = 0.899999998", ""),
        ("from = 0.6", "from = nan", "this number cannot be kept exactly as `utilisation`"),
        ("from = 0.6", "from = -0.6", "this number cannot be kept exactly as `utilisation`"),
        ("to = 0.9", "until = 0.9", "has no `until`"),
        ("to = 0.9", "to = 2.000000001", "2.000000001 is not above 0 and at most 2"),
        ("to = 0.9", "to = 2.0", ""),
        ("\"randfixedsum\"", "\"uniform\"", "`uniform` is not one of"),
        ("method = ", "shortest_period = \"10\"\nmethod = ", "unit"),
        ("method = ", "shortest_period = 10\nmethod = ", "takes a duration"),
        ("method = ", "shortest_period = \"2 s\"\nmethod = ", "is not from the shortest period"),
        ("method = ", "least = 0.0000001\nmethod = ", "at most 6 decimals"),
        ("method = ", "weekly = true\nmethod = ", "has no key `weekly`"),
        ("[generator]", "[generators]", "a file of a sweep has no `generators`"),
        ("tasks = [2, 5]", "tasks = [2, 5", "not valid TOML"),
    ] {
        let text = TEXT.replacen(from, to, 1);
        assert_ne!(text, TEXT, "{from}");
        match file::read(&text, "sweep.toml") {
            Ok(_) => assert_eq!(told, "", "{to}"),
            Err(found) => {
                let text = found.to_string();
                assert!(
                    !told.is_empty() && text.contains(told) && text.contains("sweep.toml:"),
                    "{to}: {text}"
                );
            }
        }
    }
    let list = |count: usize| (1..=count).map(|one| one.to_string()).collect::<Vec<_>>().join(", ");
    let seeds = |count| TEXT.replace("seeds = [1, 2]", &format!("seeds = [{}]", list(count)));
    assert!(file::read(&seeds(8_333), "s").is_ok(), "99,996 cells");
    let many = file::read(&seeds(8_334), "s").expect_err("100,008 cells").to_string();
    assert!(many.contains("more than 100000 cells"), "{many}");
    let blocks =
        |sets: u64| TEXT.replace("sets = 70", &format!("sets = {sets}")).replace("block = 30", "block = 24");
    assert!(file::read(&blocks(999_984), "s").is_ok(), "999,984 blocks");
    let many = file::read(&blocks(1_000_009), "s").expect_err("1,000,032 blocks").to_string();
    assert!(many.contains("blocks, and each is a file"), "{many}");
}

/// The messages without what surrounds them.
fn told(text: &str) -> Vec<String> {
    let found = file::read(text, "s").expect_err("wrong").to_string();
    found.lines().filter_map(|line| line.strip_prefix("error: ")).map(str::to_owned).collect()
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    // `seeds` and `[generator]`.
    let text = TEXT.replace("seeds = [1, 2]", "seeds = \"x\"").replace("[2, 5]", "0").replace("0.6", "nan");
    let all = told(&(text + "weekly = 1\n"));
    assert_eq!(all.len(), 4, "{all:?}");
    for (one, part) in all.iter().zip(["`seeds`", "`tasks`", "`utilisation`", "`weekly`"]) {
        assert!(one.contains(part), "{all:?}");
    }
    // Words and values of another type in the same list, and in others.
    let text = TEXT.replace("\"edf-qpa\", ", "\"edf\", 7, ").replace("\"randfixedsum\"", "\"m\", true");
    let text = text.replace("to = 0.9", "to = 99") + "periods = \"p\"\ndeadlines = \"d\"\ngranularity = 1\n";
    let all = told(&text);
    let parts = [
        "no test is called `edf`",
        "`tests` takes text",
        "`utilisation`: 49.8 is not above 0",
        "`m` is not",
        "`method` takes text",
        "`p` is not one of log-uniform, harmonic, automotive",
        "`d` is not one of implicit, constrained, arbitrary",
        "`granularity` takes a duration",
    ];
    assert_eq!(all.len(), parts.len(), "{all:?}");
    assert!(all.iter().zip(parts).all(|(one, part)| one.contains(part)), "{all:?}");
    // Of one cell every key that is at fault, and none that only another value makes wrong.
    let cell = "[generator]\ntasks = 201\nmethod = \"randfixedsum\"\nutilisation = 202\n";
    let more =
        "granularity = \"0 ns\"\nlongest_period = \"1 ms\"\ndeadlines = [\"constrained\", \"arbitrary\"]\n";
    let head = &TEXT[..TEXT.find("[generator]").unwrap()];
    let all = told(&format!("{head}{cell}{more}least = 1.000001\nfactor = 100.000001\n"));
    let keys: Vec<&str> = all.iter().filter_map(|one| one.split('`').nth(1)).collect();
    assert_eq!(keys, ["tasks", "utilisation", "granularity", "longest_period", "least", "factor"], "{all:?}");
    let only = told(&format!(
        "{head}[generator]\nutilisation = 0.5\nshortest_period = \"2 s\"\ngranularity = \"1 s\"\n"
    ));
    assert!(only.len() == 1 && only[0].contains("is not from the shortest period"), "{only:?}");
}

#[test]
fn keys_of_systems_are_needed_where_a_test_reads_them_and_refused_where_none_does() {
    let with = |tests: &str, keys: &str| {
        let text = TEXT.replace("\"edf-qpa\", \"rm-hyperbolic\", \"fp-preemptive\"", tests);
        file::read(&text.replace("[generator]", &format!("[generator]\n{keys}")), "a.toml")
    };
    let told = |tests: &str, keys: &str| with(tests, keys).expect_err(keys).to_string();
    let plan = with("\"global-edf\", \"edf-qpa\"", "processors = [2, 3]").expect("good");
    assert_eq!((plan.cells.len(), plan.cells[1].more.number("processors")), (48, Some(2)));
    assert!(plan.cells[2].text().ends_with(" factor=2 processors=3 seed=1"), "{}", plan.cells[2].text());
    for (tests, keys, expected) in [
        ("\"global-edf\"", "", "`global-edf` needs `processors`"),
        ("\"fp-deferred\"", "", "`fp-deferred` needs `segments`"),
        ("\"fp-polling\"", "server_period = \"5 ms\"", "`fp-polling` needs `server_budget`"),
        ("\"edf-qpa\"", "processors = 2", "no test of the file reads `processors`"),
        ("\"edf-qpa\"", "high = 0.5", "who reads it: fp-amc, edf-vd, fp-amc-degraded"),
        ("\"edf-qpa\"", "nesting = 0.5", "who reads it: fp-ceiling, fp-original-ceiling, edf-ceiling"),
        (
            "\"fp-amc-degraded\"",
            "high = 1\nhigh_factor = 2\nlow_factor = 1",
            "`low_factor`: 1 is not from 0 to 0.999999999",
        ),
        ("\"clustered-fp\"", "processors = [2, 4]\ncluster = 3", "`cluster`: 3 are more than 2 processors"),
        ("\"global-fp\"", "processors = 1", "`processors`: `global-fp` is about two processors at least"),
        ("\"global-fp\"", "processors = 65", "65"),
        ("\"global-fp\"", "processors = 0", "0"),
        ("\"global-fp\"", "processors = [2, 2]", "twice"),
        ("\"fp-amc\"", "high = 1.000000001\nhigh_factor = 2", "`high`: 1.000000001 is not from 0 to 1"),
        (
            "\"fp-amc\"",
            "high = 1\nhigh_factor = 0.999999999",
            "`high_factor`: 0.999999999 is not from 1 to 1000",
        ),
        ("\"fp-polling\"", "server_period = \"5 ms\"\nserver_budget = \"0 ms\"", "`server_budget` is zero"),
        ("\"fp-polling\"", "server_period = \"5 ms\"\nserver_budget = \"5000001 ns\"", "above 5000000 ns"),
        ("\"fp-polling\"", "server_period = 5\nserver_budget = \"1 ms\"", "takes a duration"),
        ("\"edf-qpa\"", "lower = 0.1", "uunifast takes no bounds"),
        ("\"edf-qpa\"", "upper = 1.1", "`upper`: 1.1 is not from 0 to 1"),
    ] {
        let told = told(tests, keys);
        assert!(told.contains(expected), "{keys}: {told}");
    }
    let locks = "resources = 2\naccess = 0.5\nrequests = 1\nshortest_section = \"5 us\"\nlongest_section = \"4999 ns\"";
    assert!(told("\"fp-ceiling\"", locks).contains("4999 ns is below 5000 ns, the shortest section"));
    assert!(with("\"fp-ceiling\"", &locks.replace("4999 ns", "5 us")).is_ok());
    let nested = format!("nesting = 0.5\n{}", locks.replace("4999 ns", "5 us"));
    assert!(with("\"fp-ceiling\", \"edf-ceiling\"", &nested).is_ok());
    let both = told("\"fp-ceiling\", \"fp-inheritance\"", &nested);
    assert!(both.contains("`nesting`: `fp-inheritance` takes no sections within sections"), "{both}");
    assert!(with("\"clustered-edf\"", "processors = 2\ncluster = [1, 2]").is_ok());
    assert!(with("\"fp-polling\"", "server_period = \"5 ms\"\nserver_budget = \"5 ms\"").is_ok());
}

#[test]
fn bounds_of_shares_are_dimensions_of_the_grid_and_change_no_other_cell() {
    let text = TEXT.replace("[\"uunifast\", \"randfixedsum\"]", "\"convolutionalfixedsum\"");
    let bounded = text.replace("[generator]", "[generator]\nlower = [0, 0.05]\nupper = 0.5");
    let (plain, plan) = (plan_of(&text), plan_of(&bounded));
    assert_eq!(plan.cells.len(), 2 * plain.cells.len());
    assert!(plain.cells.iter().all(|cell| !cell.text().contains("lower")));
    for cell in &plan.cells {
        let lower = cell.more.share("lower").expect("one");
        let batch = plan.batch(horolog_sweep::BlockId { cell: 0, block: 0 }).expect("a batch");
        assert_eq!(batch.bounds.expect("bounds").upper, [0.5, 0.5]);
        let (tasks, id) = (cell.recipe.tasks, plan.cells.iter().position(|one| one == cell).expect("one"));
        let batch = plan.batch(horolog_sweep::BlockId { cell: id, block: 0 }).expect("a batch");
        let mut arrays = [const { Vec::new() }; 3];
        arrays.iter_mut().for_each(|array| array.resize(30 * tasks, 0_u64));
        let [wcet, deadline, period] = &mut arrays;
        batch.draw(0, [wcet, deadline, period], 1).expect("sets");
        for (&wcet, &period) in wcet.iter().zip(&*period) {
            let share = wcet as f64 / period as f64;
            assert!(share > lower - 1e-6 && share <= 0.5, "{share}");
        }
    }
    // Two tasks with at most 0.44 each have no 0.9.
    let narrow = text.replace("[generator]", "[generator]\nupper = 0.44");
    let told = file::read(&narrow, "a.toml").expect_err("no such sets").to_string();
    assert!(told.contains("`utilisation`: 0.9 is not from 0 to 0.88"), "{told}");
    let crossed = text.replace("[generator]", "[generator]\nlower = 0.3\nupper = 0.2");
    let told = file::read(&crossed, "a.toml").expect_err("no bounds").to_string();
    assert!(told.contains("`upper`: 0.2 is below 0.3"), "{told}");
}
