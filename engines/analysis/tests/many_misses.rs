//! Of many tasks that miss only the first ones have a witness: each has a row for every task.

use horolog_analysis::{Options, Verdict, analyze};

#[test]
fn the_rows_of_all_witnesses_are_at_most_a_million() {
    let mut text = "[system]\nname = \"many\"\n".to_owned();
    for task in 0..1_001 {
        text += &format!(
            "[[task]]\nname = \"t{task}\"\nperiod = \"1 ms\"\nwcet = \"1 ms\"\npriority = {}\n",
            2_000 - task
        );
    }
    let (system, _) = horolog_model::file::read(&text, "many.toml", &[]).expect("a valid file");
    let found = analyze(&system, &Options::default()).expect("an answer");
    let missing: Vec<bool> = found
        .tasks
        .iter()
        .filter(|task| task.verdict == Verdict::Misses)
        .map(|task| task.witness.is_some())
        .collect();
    // The first one meets; a million rows are those of 999 witnesses.
    assert_eq!(missing.len(), 1_000);
    assert!(missing[..999].iter().all(|has_witness| *has_witness));
    assert!(!missing[999]);
}
