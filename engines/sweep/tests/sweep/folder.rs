//! The folder of a sweep: only what this program made is touched, and no result of another grid stays.

use crate::{TEXT, below, plan_of, swept};
use horolog_sweep::{BlockId, Store, SweepError, block_file, finish, run, store};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

#[test]
fn only_real_files_with_names_of_blocks_are_touched() {
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let out = folder.path().join("out");
    swept(&out, TEXT, 2);
    let rows = out.join("rows");
    let cell = fs::read_dir(&rows).unwrap().flatten().next().unwrap().path();
    let good = "000000-0123456789abcdef-0123456789abcdef.parquet";
    for name in ["7", "notes.txt", good] {
        fs::write(other.path().join(name), "mine").unwrap();
    }
    let mine = [
        rows.join("README"),
        cell.join("notes.txt"),
        cell.join("000000-0123456789abcdef-0123456789abcdef.parquet.bak"),
        cell.join("00000-0123456789abcdef-0123456789abcdef.parquet"),
        cell.join("0000000-0123456789abcdef-0123456789abcdef.parquet"),
        cell.join("000000-0123456789abcde-0123456789abcdef.parquet"),
        cell.join("000000-0123456789abcdef-0123456789abcdeF.parquet"),
        out.join("tmp/notes.txt"),
        out.join("acceptance-x.svg"),
    ];
    mine.iter().for_each(|path| fs::write(path, "mine").unwrap());
    fs::create_dir(rows.join("cell=0123")).unwrap();
    fs::write(rows.join("cell=0123").join(good), "mine").unwrap();
    let link = |from: PathBuf, to: PathBuf| std::os::unix::fs::symlink(to, from).unwrap();
    link(rows.join("cell=0123456789abcdef"), other.path().to_owned());
    link(cell.join("000001-0123456789abcdef-0123456789abcdef.parquet"), other.path().join(good));
    link(out.join("tmp/0"), other.path().join("7"));
    // A pipe with a block's name: who opens it waits for ever.
    let pipe = cell.join("000002-0123456789abcdef-0123456789abcdef.parquet");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    let pipes = usize::from(made.is_ok_and(|status| status.success()));
    let before = below(other.path());
    let plan = plan_of(TEXT);
    let found = store::look(&out, &plan).unwrap();
    assert_eq!((found.others.len(), found.missing.len(), found.foreign.len()), (0, 0, 10 + pipes));
    // One file that is a block's by its name is the only one that goes.
    fs::write(cell.join(good), "").unwrap();
    let refused = Store::open(&out, &plan, TEXT, false).expect_err("a block of others").to_string();
    assert!(refused.contains("holds 1 block that"), "{refused}");
    let (_, found) = Store::open(&out, &plan, TEXT, true).unwrap();
    assert_eq!(found.others, [cell.join(good)]);
    assert!(mine.iter().all(|path| fs::read(path).is_ok_and(|text| text == b"mine")));
    assert!(rows.join("cell=0123").join(good).exists() && !cell.join(good).exists());
    assert!(fs::symlink_metadata(out.join("tmp/0")).is_ok_and(|found| found.is_symlink()));
    assert_eq!(below(other.path()), before);
}

#[test]
fn a_link_in_a_folders_place_is_refused() {
    let plan = plan_of(TEXT);
    for name in ["tmp", "rows"] {
        let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(other.path().join("0"), "mine").unwrap();
        drop(Store::open(folder.path(), &plan, TEXT, false).unwrap());
        fs::remove_dir(folder.path().join(name)).unwrap();
        std::os::unix::fs::symlink(other.path(), folder.path().join(name)).unwrap();
        let refused = Store::open(folder.path(), &plan, TEXT, true).expect_err("a link");
        assert!(matches!(refused, SweepError::NoFolder(_)), "{refused}");
        assert_eq!(fs::read(other.path().join("0")).unwrap(), b"mine");
    }
    // The same of a cell's folder, and of the lock.
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (store, _) = Store::open(folder.path(), &plan, TEXT, false).unwrap();
    let id = BlockId { cell: 0, block: 0 };
    let cell = folder.path().join(format!("rows/cell={}", plan.cells[0].id()));
    std::os::unix::fs::symlink(other.path(), cell).unwrap();
    let refused = store.commit(&plan, id, &block_file(&plan, id).unwrap()).expect_err("a link");
    assert!(matches!(refused, SweepError::NoFolder(_)), "{refused}");
    drop(store);
    fs::write(other.path().join("thesis"), "mine").unwrap();
    fs::remove_file(folder.path().join("lock")).unwrap();
    std::os::unix::fs::symlink(other.path().join("thesis"), folder.path().join("lock")).unwrap();
    assert!(matches!(Store::open(folder.path(), &plan, TEXT, true), Err(SweepError::Foreign(_))));
    assert_eq!(below(other.path()).into_values().collect::<Vec<_>>(), [b"mine"]);
}

#[test]
fn results_of_another_grid_do_not_stay() {
    let folder = TempDir::new().unwrap();
    let results = || -> Vec<String> {
        let names = fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| ["json", "html", "svg"].iter().any(|kind| name.ends_with(kind)));
        names.sort();
        names
    };
    let end = |text: &str, drops_others: bool| {
        let plan = plan_of(text);
        let (store, found) = Store::open(folder.path(), &plan, text, drops_others).unwrap();
        let between = results();
        let ran = run(&plan, &store, &found.missing, 2, &AtomicBool::new(false), &|_| ());
        let (computed, mut rows) = (ran.rows.len(), found.rows);
        rows.extend(ran.rows);
        let ended = finish(&plan, &store, &rows, computed, 0).unwrap();
        assert_eq!(ended.blocks.kept, (rows.len() - computed) as u64);
        (between, ended.drawings)
    };
    let two = TEXT.replace("method = [\"uunifast\", \"randfixedsum\"]", "");
    let (none, drawings) = end(&two, false);
    assert_eq!(none, [""; 0]);
    assert_eq!(drawings, ["acceptance-1.svg", "acceptance-2.svg", "weighted.svg"]);
    fs::write(folder.path().join("figure.svg"), "mine").unwrap();
    let all =
        ["acceptance-1.svg", "acceptance-2.svg", "figure.svg", "sweep.html", "sweep.json", "weighted.svg"];
    assert_eq!(results(), all);
    // Nothing is missing: they are its own.
    assert_eq!(end(&two, false).0, all);
    // A larger grid, which is not done yet.
    let three = two.replace("[2, 5]", "[2, 3, 5]");
    assert_eq!(end(&three, false).0, ["figure.svg"]);
    assert_eq!(results().len(), 7);
    // A smaller one, of which nothing is missing.
    let one = two.replace("[2, 5]", "5");
    assert_eq!(end(&one, true), (vec!["figure.svg".to_owned()], vec!["acceptance.svg".to_owned()]));
    assert_eq!(results(), ["acceptance.svg", "figure.svg", "sweep.html", "sweep.json"]);
    // What another version drew goes with the end.
    fs::write(folder.path().join("acceptance-17.svg"), "").unwrap();
    end(&one, false);
    assert_eq!(results(), ["acceptance.svg", "figure.svg", "sweep.html", "sweep.json"]);
}
