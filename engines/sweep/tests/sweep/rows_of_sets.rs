//! Rows of single sets: what they say, and that a file of them is believed no more easily than others.

use crate::{TEXT, below, plan_of, rows_of, swept};
use horolog_draw::Random;
use horolog_sweep::{BlockId, block_file, compute, file, file_rows, store};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::fs;
use tempfile::TempDir;

fn text() -> String {
    TEXT.replace("block = 30", "block = 30\nrows = \"sets\"").replace("seeds = [1, 2]", "")
}

#[test]
fn rows_of_sets_come_to_the_counts_of_blocks() {
    let (of_sets, of_blocks) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let (_, rows) = swept(of_sets.path(), &text(), 2);
    let (_, expected) = swept(of_blocks.path(), &TEXT.replace("seeds = [1, 2]", ""), 1);
    // The same to the last digit: they are added in the same order.
    assert_eq!(rows, expected);
    let again = swept(of_sets.path(), &text(), 3);
    assert!(again.0.missing.is_empty() && again.1 == expected);
    let other = TempDir::new().unwrap();
    swept(other.path(), &text(), 1);
    assert_eq!(below(other.path()), below(of_sets.path()));
    // One folder has rows of one kind.
    let plan = plan_of(&text());
    assert_eq!(store::look(of_blocks.path(), &plan).unwrap().others.len(), rows.len());
}

#[test]
fn each_row_names_its_set_and_what_draws_it_again() {
    let plan = plan_of(&text());
    let id = BlockId { cell: 7, block: 2 };
    let file = block_file(&plan, id).unwrap();
    let reader = SerializedFileReader::new(bytes::Bytes::from(file.clone())).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let place = |name: &str| schema.columns().iter().position(|column| column.name() == name).expect(name);
    let recipe = &plan.cells[7].recipe;
    let mut count = 0;
    for (number, row) in reader.get_row_iter(None).unwrap().enumerate() {
        let row = row.unwrap();
        let (set, test) = (number / 3, number % 3);
        assert_eq!(row.get_ulong(place("set")).unwrap(), set as u64);
        assert_eq!(row.get_string(place("test")).unwrap(), plan.tests[test].word());
        let seed = row.get_ulong(place("block_seed")).unwrap();
        let mut arrays = [const { Vec::new() }; 3];
        arrays.iter_mut().for_each(|array| array.resize(recipe.tasks, 0_u64));
        let [wcet, deadline, period] = &mut arrays;
        recipe.batch(seed).unwrap().draw(set as u64, [wcet, deadline, period], 1).unwrap();
        let share: f64 = wcet.iter().zip(&*period).map(|(&wcet, &period)| wcet as f64 / period as f64).sum();
        assert_eq!(row.get_double(place("set_utilisation")).unwrap(), share);
        // EDF with deadlines at the periods: Σ C/T ≤ 1.
        if test == 0 {
            assert_eq!(row.get_string(place("verdict")).unwrap(), "meets");
        }
        count += 1;
    }
    assert_eq!(count, 10 * 3, "the last block has what is left");
    assert_eq!(file_rows(&plan, id, &file).unwrap(), compute(&plan, id).unwrap());
}

#[test]
fn damaged_files_of_sets_are_never_believed() {
    let plan = plan_of(&text());
    let id = BlockId { cell: 0, block: 0 };
    let good = block_file(&plan, id).unwrap();
    let folder = TempDir::new().unwrap();
    swept(folder.path(), &text(), 2);
    let path = rows_of(folder.path()).into_iter().find(|path| fs::read(path).unwrap() == good).unwrap();
    let mut random = Random::new(6);
    for _ in 0..60 {
        let mut bad = good.clone();
        match random.below(3) {
            0 => bad.truncate(random.below(good.len() as u64) as usize),
            1 => bad[random.below(good.len() as u64) as usize] ^= 1 << random.below(8),
            _ => bad.extend_from_slice(b"PAR1"),
        }
        // Whatever it says, reading it ends.
        let _ = file_rows(&plan, id, &bad);
        fs::write(&path, bad).unwrap();
        assert_eq!(store::look(folder.path(), &plan).unwrap().missing, [id]);
    }
}

#[test]
fn files_of_sets_have_a_limit() {
    let large = text().replace("sets = 70", "sets = 500000").replace("block = 30", "block = 333334");
    let told = file::read(&large, "a.toml").expect_err("too many rows").to_string();
    assert!(
        told.contains("the file of a block has 1000002 rows") && told.contains("`block = 333333`"),
        "{told}"
    );
    assert!(file::read(&large.replace("333334", "333333"), "a.toml").is_ok());
    assert!(file::read(&large.replace("rows = \"sets\"", "rows = \"blocks\""), "a.toml").is_ok());
    let told = file::read(&large.replace("rows = \"sets\"", "rows = \"set\""), "a.toml")
        .expect_err("a word")
        .to_string();
    assert!(told.contains("no rows are of `set`") && told.contains("sets"), "{told}");
}
