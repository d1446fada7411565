//! Sweeps as a whole: the same rows however they come about, and nothing lost or taken for granted.

#[path = "sweep/file.rs"]
mod file_of_a_sweep;
#[path = "sweep/folder.rs"]
mod folder_of_a_sweep;
#[path = "sweep/rows_of_sets.rs"]
mod rows_of_sets;
#[path = "sweep/systems.rs"]
mod systems_of_a_sweep;

use horolog_draw::Random;
use horolog_sweep::{
    BlockId, Found, Plan, Row, Store, Summary, SweepError, block_file, estimate, file, run, store,
};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const TEXT: &str = r#"
schema = "horolog.sweep/1"
[sweep]
name = "a small one"
seeds = [1, 2]
sets = 70
block = 30
tests = ["edf-qpa", "rm-hyperbolic", "fp-preemptive"]
[generator]
tasks = [2, 5]
utilisation = { from = 0.6, to = 0.9, steps = 3 }
method = ["uunifast", "randfixedsum"]
"#;

fn plan_of(text: &str) -> Plan {
    file::read(text, "sweep.toml").expect("a good file")
}

/// Computes all that is missing.
fn swept(folder: &Path, text: &str, workers: usize) -> (Found, HashMap<BlockId, Vec<Row>>) {
    let plan = plan_of(text);
    let (store, mut found) = Store::open(folder, &plan, text, false).expect("a folder");
    let ran = run(&plan, &store, &found.missing, workers, &AtomicBool::new(false), &|_| ());
    assert!(ran.error.is_none(), "{:?}", ran.error);
    let mut rows = std::mem::take(&mut found.rows);
    rows.extend(ran.rows);
    (found, rows)
}

/// Every file below a folder but the lock, with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.file_name().is_some_and(|name| name != "lock") {
            let content = fs::read(&path).expect("a file");
            all.insert(path, content);
        }
    }
    all
}

fn below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    files(folder)
        .into_iter()
        .map(|(path, content)| (path.strip_prefix(folder).expect("below it").to_owned(), content))
        .collect()
}

fn rows_of(folder: &Path) -> Vec<PathBuf> {
    files(&folder.join("rows")).into_keys().collect()
}

#[test]
fn files_are_the_same_on_any_number_of_workers() {
    let folders: Vec<TempDir> = (0..3).map(|_| TempDir::new().unwrap()).collect();
    let (_, rows) = swept(folders[0].path(), TEXT, 1);
    assert_eq!(rows.len(), 2 * 3 * 2 * 2 * 3, "tasks, utilisations, methods, seeds, blocks");
    for (folder, workers) in folders.iter().skip(1).zip([3, 0]) {
        assert_eq!(swept(folder.path(), TEXT, workers).1, rows);
        assert_eq!(below(folder.path()), below(folders[0].path()));
    }
    assert_eq!(fs::read_dir(folders[0].path().join("tmp")).unwrap().count(), 0);
}

#[test]
fn one_block_is_the_same_whoever_helps() {
    // Sets that take long between quick ones: parts come back in another order than they were taken in.
    let text = TEXT
        .replace("sets = 70", "sets = 900")
        .replace("block = 30", "block = 900")
        .replace("seeds = [1, 2]", "")
        .replace("tasks = [2, 5]", "tasks = 12")
        .replace("{ from = 0.6, to = 0.9, steps = 3 }", "0.97")
        .replace("[\"uunifast\", \"randfixedsum\"]", "\"uunifast\"");
    let folders: Vec<TempDir> = (0..3).map(|_| TempDir::new().unwrap()).collect();
    let (_, rows) = swept(folders[0].path(), &text, 1);
    assert_eq!(rows.len(), 1);
    for (folder, workers) in folders.iter().skip(1).zip([2, 7]) {
        assert_eq!(swept(folder.path(), &text, workers).1, rows);
        assert_eq!(below(folder.path()), below(folders[0].path()));
    }
}

#[test]
fn rows_are_what_a_plain_loop_counts() {
    let plan = plan_of(TEXT);
    let folder = TempDir::new().unwrap();
    let (_, rows) = swept(folder.path(), TEXT, 2);
    for (id, rows) in rows {
        let batch = plan.batch(id).unwrap();
        let (sets, tasks) = (plan.sets_of(id) as usize, batch.tasks);
        let mut arrays = [const { Vec::new() }; 3];
        arrays.iter_mut().for_each(|array| array.resize(sets * tasks, 0_u64));
        let [wcet, deadline, period] = &mut arrays;
        batch.draw(0, [wcet, deadline, period], 1).unwrap();
        let mut meets = [0; 2];
        for set in 0..sets {
            let shares = (set * tasks..(set + 1) * tasks).map(|at| wcet[at] as f64 / period[at] as f64);
            let (load, product) =
                shares.fold((0.0, 1.0), |(load, product), share| (load + share, product * (1.0 + share)));
            // EDF with deadlines at the periods: Σ C/T ≤ 1; the hyperbolic bound: Π (1 + C/T) ≤ 2. No set lies near either.
            assert!(load < 0.95 && (product - 2.0_f64).abs() > 1e-9);
            meets[0] += 1;
            meets[1] += u64::from(product < 2.0);
        }
        assert_eq!([rows[0].counts.meets, rows[1].counts.meets], meets, "{}", plan.cells[id.cell].text());
        let fixed = rows[2].counts;
        assert!(
            fixed.meets >= rows[1].counts.meets && fixed.meets + fixed.misses + fixed.unknown == sets as u64
        );
        let nominal = plan.cells[id.cell].recipe.utilisation * sets as f64;
        assert!((fixed.utilisation - nominal).abs() < 1e-4 * nominal);
    }
}

#[test]
fn what_was_broken_off_goes_on_and_comes_to_the_same() {
    let (whole, folder) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (_, expected) = swept(whole.path(), TEXT, 2);
    let plan = plan_of(TEXT);
    let stop = AtomicBool::new(false);
    {
        let (store, found) = Store::open(folder.path(), &plan, TEXT, false).unwrap();
        let ran = run(&plan, &store, &found.missing, 2, &stop, &|count| {
            if count == 20 {
                stop.store(true, Ordering::Relaxed);
            }
        });
        assert!((20..=21).contains(&ran.rows.len()), "{}", ran.rows.len());
    }
    // A killed process leaves half a file among the temporary ones; a disk may lose or turn what was there.
    fs::write(folder.path().join("tmp/17"), "half a fi").unwrap();
    let kept = rows_of(folder.path());
    let cut = fs::read(&kept[0]).unwrap();
    fs::write(&kept[0], &cut[..cut.len() / 2]).unwrap();
    fs::write(&kept[1], "").unwrap();
    let mut turned = fs::read(&kept[2]).unwrap();
    let place = turned.len() / 3;
    turned[place] ^= 1;
    fs::write(&kept[2], turned).unwrap();
    let (found, rows) = swept(folder.path(), TEXT, 3);
    assert_eq!(found.damaged, kept[..3]);
    assert_eq!(found.missing.len(), expected.len() - (kept.len() - 3));
    assert_eq!(rows, expected);
    assert_eq!(below(folder.path()), below(whole.path()));
}

#[test]
fn a_larger_grid_keeps_what_is_there_and_a_smaller_one_refuses_it() {
    let folder = TempDir::new().unwrap();
    let small = TEXT.replace("sets = 70", "sets = 60");
    swept(folder.path(), &small, 2);
    let before = below(&folder.path().join("rows"));
    let larger = small.replace("tasks = [2, 5]", "tasks = [2, 3, 5]").replace("sets = 60", "sets = 90");
    let (found, _) = swept(folder.path(), &larger, 2);
    // Of each cell a third block, and the new cells.
    assert_eq!(found.missing.len(), 24 + 12 * 3);
    let after = below(&folder.path().join("rows"));
    assert!(before.iter().all(|(path, content)| after.get(path) == Some(content)));
    let smaller = plan_of(&small);
    let refused = Store::open(folder.path(), &smaller, &small, false).expect_err("rows of others");
    let SweepError::Others { count, .. } = refused else { panic!("{refused}") };
    assert_eq!(count, 24 + 12 * 3);
    let (_, found) = Store::open(folder.path(), &smaller, &small, true).expect("others are dropped");
    assert_eq!((found.others.len(), found.missing.len()), (60, 0));
    assert_eq!(below(&folder.path().join("rows")), before);
    // Ten sets more of each cell are one block more.
    let odd = Store::open(folder.path(), &plan_of(TEXT), TEXT, false).expect("nothing is too much").1;
    assert_eq!(odd.missing.len(), 24);
}

#[test]
fn folders_of_others_and_busy_ones_are_left_alone() {
    let folder = TempDir::new().unwrap();
    let plan = plan_of(TEXT);
    fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
    let foreign = Store::open(folder.path(), &plan, TEXT, true).expect_err("not empty");
    assert!(matches!(foreign, SweepError::Foreign(_)), "{foreign}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let mine = folder.path().join("mine");
    let (held, _) = Store::open(&mine, &plan, TEXT, false).unwrap();
    let busy = Store::open(&mine, &plan, TEXT, false).expect_err("busy");
    assert!(matches!(busy, SweepError::Busy(_)), "{busy}");
    drop(held);
    assert!(Store::open(&mine, &plan, TEXT, false).is_ok());
}

#[test]
fn a_block_from_elsewhere_must_be_the_one_that_was_asked_for() {
    let folder = TempDir::new().unwrap();
    let plan = plan_of(TEXT);
    let (store, _) = Store::open(folder.path(), &plan, TEXT, false).unwrap();
    let id = BlockId { cell: 3, block: 1 };
    let file = block_file(&plan, id).unwrap();
    for wrong in [
        BlockId { cell: 3, block: 0 },
        BlockId { cell: 2, block: 1 },
        BlockId { cell: 3, block: 3 },
        BlockId { cell: 24, block: 0 },
    ] {
        let refused = store.commit(&plan, wrong, &file).expect_err("another block");
        assert!(matches!(refused, SweepError::BadBlock { .. }), "{refused}");
    }
    for wrong in [&file[..file.len() - 1], b"PAR1", b""] {
        assert!(store.commit(&plan, id, wrong).is_err());
    }
    assert!(rows_of(folder.path()).is_empty());
    // Twice is as good as once.
    store.commit(&plan, id, &file).unwrap();
    store.commit(&plan, id, &file).unwrap();
    assert_eq!(rows_of(folder.path()).len(), 1);
}

#[test]
fn files_with_drawn_faults_are_never_believed() {
    let plan = plan_of(TEXT);
    let id = BlockId { cell: 0, block: 0 };
    let good = block_file(&plan, id).unwrap();
    let mut random = Random::new(5);
    let folder = TempDir::new().unwrap();
    let (_, rows) = swept(folder.path(), TEXT, 2);
    let path = rows_of(folder.path()).into_iter().find(|path| fs::read(path).unwrap() == good).unwrap();
    for _ in 0..30 {
        let mut bad = good.clone();
        match random.below(3) {
            0 => bad.truncate(random.below(good.len() as u64) as usize),
            1 => bad[random.below(good.len() as u64) as usize] ^= 1 << random.below(8),
            _ => bad.extend_from_slice(b"PAR1"),
        }
        fs::write(&path, bad).unwrap();
        let found = store::look(folder.path(), &plan).unwrap();
        assert_eq!((found.damaged.len(), &found.missing[..]), (1, &[id][..]));
        assert_eq!(found.rows.len(), rows.len() - 1);
    }
}

#[test]
fn a_summary_adds_seeds_and_blocks_and_weighs_by_utilisation() {
    let folder = TempDir::new().unwrap();
    let (_, mut rows) = swept(folder.path(), TEXT, 2);
    let plan = plan_of(TEXT);
    let summary = Summary::of(&plan, &rows);
    assert!(summary.is_complete && summary.cells.iter().all(|cell| cell.tests[0].ratio == Some(1.0)));
    assert!(summary.cells.iter().all(|cell| cell.tests.iter().all(|test| test.sets == 70)));
    // Four groups of tasks and method, three tests each; EDF takes every set.
    assert_eq!(summary.weighted.len(), 12);
    assert_eq!(summary.weighted[0].group, "tasks=2 method=uunifast");
    assert!(summary.weighted.iter().step_by(3).all(|one| one.value == Some(1.0)));
    // By hand: every set of a cell has its utilisation but for rounding, so Σ U·ratio / Σ U over three utilisations and two seeds.
    let of_group: Vec<_> = summary
        .cells
        .iter()
        .filter(|cell| cell.recipe.tasks == 2 && cell.recipe.method == "uunifast")
        .collect();
    let sum: f64 = of_group.iter().map(|cell| cell.recipe.utilisation).sum();
    let met: f64 = of_group.iter().map(|cell| cell.recipe.utilisation * cell.tests[1].ratio.unwrap()).sum();
    assert!((summary.weighted[1].value.unwrap() - met / sum).abs() < 1e-6);
    let drawings = summary.drawings(&plan, &rows);
    let names: Vec<_> = drawings.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["acceptance-1.svg", "acceptance-2.svg", "acceptance-3.svg", "acceptance-4.svg"]);
    assert!(drawings[3].1.contains("tasks=5 method=randfixedsum"));
    rows.remove(&BlockId { cell: 0, block: 0 });
    assert!(!Summary::of(&plan, &rows).is_complete);
    // One number that differs is the axis of the weighted schedulability.
    let one = plan_of(&TEXT.replace("method = [\"uunifast\", \"randfixedsum\"]", ""));
    let drawings = Summary::of(&one, &HashMap::new()).drawings(&one, &HashMap::new());
    assert!(drawings.iter().any(|(name, svg)| name == "weighted.svg" && svg.contains(">tasks<")));
}

#[test]
fn the_page_has_the_result_and_asks_nobody() {
    let text = TEXT.replace("a small one", "</script><b>\\u003c a small one");
    let folder = TempDir::new().unwrap();
    let (_, rows) = swept(folder.path(), &text, 2);
    let plan = plan_of(&text);
    let (store, _) = Store::open(folder.path(), &plan, &text, false).unwrap();
    let result = horolog_sweep::finish(&plan, &store, &rows, rows.len(), 0).unwrap();
    let page = fs::read_to_string(folder.path().join(result.page)).unwrap();
    let data =
        page.split_once("id=\"data\">").and_then(|(_, rest)| rest.split_once("</script>")).expect("data").0;
    let told: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let file: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("sweep.json")).unwrap()).expect("JSON");
    assert_eq!(told, file);
    assert_eq!(told["name"], "</script><b>< a small one");
    // Nothing but the name space of SVG looks like an address.
    let addresses: Vec<&str> = page.split("http").skip(1).collect();
    assert!(addresses.len() == 1 && addresses[0].starts_with("://www.w3.org/2000/svg"), "{addresses:?}");
    assert!(!page.contains("src=") && !page.contains("@import") && !page.contains("url("));
    let one = &told["cells"][0]["tests"][0];
    assert_eq!(one["utilisation_sum"], one["utilisation_met"], "EDF takes every set");
}

#[test]
fn an_estimate_counts_what_is_left_and_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let plan = plan_of(TEXT);
    let missing = store::look(&folder.path().join("none"), &plan).unwrap().missing;
    let found = estimate(&plan, &missing, 2).unwrap();
    assert_eq!((found.cells, found.sets, found.blocks, found.missing_blocks), (24, 24 * 70, 72, 72));
    assert!(found.processor_s > 0.0 && (found.wall_s - found.processor_s / 2.0).abs() < 1e-12);
    assert!(!folder.path().join("none").exists());
    swept(folder.path(), TEXT, 2);
    let written: u64 = rows_of(folder.path()).iter().map(|path| path.metadata().unwrap().len()).sum();
    let on_disk = written.div_ceil(4_096) * 4_096;
    assert!(found.disk_bytes >= written && found.disk_bytes < 2 * on_disk, "{} {written}", found.disk_bytes);
    let none = estimate(&plan, &[], 0).unwrap();
    assert_eq!((none.missing_blocks, none.disk_bytes, none.processor_s), (0, 0, 0.0));
}

#[test]
fn an_estimate_counts_files_and_ends_in_time() {
    // Blocks of one set are files above all.
    let text = TEXT.replace("sets = 70", "sets = 3000").replace("block = 30", "block = 1");
    let plan = plan_of(&text);
    let missing: Vec<BlockId> = plan.blocks().collect();
    let one_by_one = estimate(&plan, &missing, 1).unwrap();
    let whole = Plan { block: 3_000, ..plan };
    let together = estimate(&whole, &whole.blocks().collect::<Vec<_>>(), 1).unwrap();
    assert_eq!((one_by_one.missing_blocks, together.missing_blocks), (72_000, 24));
    assert!(one_by_one.processor_s > 72_000.0 * 40e-6, "{}", one_by_one.processor_s);
    assert!(one_by_one.processor_s > 3.0 * together.processor_s, "{one_by_one:?} {together:?}");
    // A set of these takes tens of milliseconds: 8,000 of them would take minutes.
    let slow = plan_of(
        "schema = \"horolog.sweep/1\"\n[sweep]\nname = \"x\"\nsets = 1000\ntests = [\"edf-qpa\"]\n[generator]\ntasks = 100\nutilisation = { from = 34, to = 34.1, steps = 40 }\n",
    );
    let begun = std::time::Instant::now();
    let found = estimate(&slow, &slow.blocks().collect::<Vec<_>>(), 1).unwrap();
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert!(found.processor_s > 20.0, "{}", found.processor_s);
}
