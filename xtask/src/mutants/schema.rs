//! Writes a source file anew with all chosen faults in it, each behind a switch.

use super::find::{Candidate, Piece};
use std::ops::Range;

/// A chosen fault and its number, from 1.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) number: u32,
    pub(super) candidate: Candidate,
}

/// The switch, put into the crate's root. Number [`LOOK`] is no fault: it notes which faults are come by.
pub(super) const SWITCH: &str = "
#[doc(hidden)]
#[allow(missing_docs, clippy::all)]
pub(crate) fn __mutant(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    let chosen = *CHOSEN.get_or_init(|| {
        std::env::var(\"HOROLOG_MUTANT\").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    });
    if chosen == u32::MAX {
        __mutant_reached(number);
    }
    number == chosen
}

#[cold]
fn __mutant_reached(number: u32) {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicBool, Ordering};
    static REACHED: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];
    if REACHED.get(number as usize).is_none_or(|reached| reached.swap(true, Ordering::Relaxed)) {
        return;
    }
    if let Some(path) = std::env::var_os(\"HOROLOG_MUTANTS_REACHED\") {
        if let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) {
            let _ = file.write_all(format!(\"{number}\\n\").as_bytes());
        }
    }
}
";

/// The number that only looks, in the variable `HOROLOG_MUTANT`.
pub(super) const LOOK: u32 = u32::MAX;

/// Of faults from this number on nobody says where they are reached.
pub(super) const MOST_LOOKED_AT: u32 = 4_096;

/// The file with the faults.
pub(super) fn render(source: &str, chosen: &[Chosen]) -> String {
    let mut sorted: Vec<&Chosen> = chosen.iter().collect();
    // Outer before inner.
    sorted.sort_by_key(|one| {
        let range = &one.candidate.range;
        (range.start, usize::MAX - range.end, one.number)
    });
    piece(source, 0..source.len(), &sorted)
}

/// A stretch of the file with the faults that lie in it.
fn piece(source: &str, within: Range<usize>, chosen: &[&Chosen]) -> String {
    let mut text = String::new();
    let mut at = within.start;
    let mut index = 0;
    while index < chosen.len() {
        let range = &chosen[index].candidate.range;
        if range.start < at || range.end > within.end || range.start < within.start {
            index += 1;
            continue;
        }
        text.push_str(&source[at..range.start]);
        // All on the same stretch are alternatives of one another.
        let same = chosen[index..].iter().take_while(|one| one.candidate.range == *range).count();
        let (here, rest) = chosen[index..].split_at(same);
        let inner: Vec<&Chosen> =
            rest.iter().take_while(|one| one.candidate.range.start < range.end).copied().collect();
        text.push_str(&alternatives(source, here, &inner));
        at = range.end;
        index += same;
    }
    text.push_str(&source[at..within.end]);
    text
}

/// One stretch with its alternatives.
fn alternatives(source: &str, here: &[&Chosen], inner: &[&Chosen]) -> String {
    let range = here[0].candidate.range.clone();
    let plain = if range.is_empty() { String::new() } else { piece(source, range, inner) };
    let mut text = plain;
    for one in here {
        let Candidate { faulty, is_statement, .. } = &one.candidate;
        let faulty: String = faulty
            .iter()
            .map(|part| match part {
                Piece::Text(words) => words.clone(),
                Piece::Source(range) => piece(source, range.clone(), inner),
            })
            .collect();
        let switch = format!("if crate::__mutant({})", one.number);
        text = if *is_statement {
            format!("{switch} {{ {faulty} }} else {{ {text} }}")
        } else {
            format!("({switch} {{ {faulty} }} else {{ {text} }})")
        };
    }
    text
}

/// The numbers of the faults on each line of the written file: a compiler's message names a line.
pub(super) fn numbers_in(text: &str) -> Vec<u32> {
    text.split("__mutant(").skip(1).filter_map(|rest| rest.split(')').next()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::find::candidates;
    use super::*;

    fn all(source: &str) -> String {
        let chosen: Vec<Chosen> = (1..)
            .zip(candidates(source).expect("it parses"))
            .map(|(number, candidate)| Chosen { number, candidate })
            .collect();
        render(source, &chosen)
    }

    #[test]
    fn what_is_written_parses_and_holds_every_fault() {
        for source in [
            "fn f(a: u32, b: u32) -> bool { a + 1 < b * 2 && !(a == b) }",
            "fn g(a: &mut u32) { *a += 1; h(a.min(2)); if *a > 3 { *a = 4; } }",
            "fn k(a: Option<u32>) -> Option<u32> { match a { Some(b) if b < 3 => a, _ => None } }",
        ] {
            let written = all(source);
            syn::parse_file(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
            let mut numbers = numbers_in(&written);
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), candidates(source).expect("it parses").len(), "{written}");
        }
    }

    #[test]
    fn a_fault_in_a_fault_is_written_on_both_sides() {
        let source = "fn f(a: u32) -> u32 { a + 1 }";
        let found = candidates(source).expect("it parses");
        let chosen: Vec<Chosen> = found
            .into_iter()
            .filter(|one| !one.is_statement)
            .zip(1..)
            .map(|(candidate, number)| Chosen { number, candidate })
            .collect();
        assert_eq!(
            render(source, &chosen),
            "fn f(a: u32) -> u32 { (if crate::__mutant(1) { a - (if crate::__mutant(2) { 1 + 1 } else { 1 }) } \
             else { a + (if crate::__mutant(2) { 1 + 1 } else { 1 }) }) }"
        );
    }

    #[test]
    fn the_switch_takes_one_fault_or_notes_those_that_are_come_by() {
        let folder = std::env::temp_dir().join(format!("horolog-switch-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("made");
        let (source, program) = (folder.join("main.rs"), folder.join("main"));
        let main = "fn main() { for number in [7, 3, 7] { print!(\"{} \", __mutant(number)); } }";
        std::fs::write(&source, format!("{main}{SWITCH}")).expect("written");
        let mut rustc = std::process::Command::new("rustc");
        rustc.args(["--edition", "2024", "-o"]).arg(&program).arg(&source);
        assert!(rustc.status().expect("rustc is there").success());
        let run = |number: u32, reached: &str| {
            let mut command = std::process::Command::new(&program);
            command.env("HOROLOG_MUTANT", number.to_string());
            command.env("HOROLOG_MUTANTS_REACHED", folder.join(reached));
            String::from_utf8(command.output().expect("it runs").stdout).expect("words")
        };
        assert_eq!(run(3, "three"), "false true false ");
        assert_eq!(run(LOOK, "all"), "false false false ");
        assert!(!folder.join("three").exists());
        assert_eq!(std::fs::read_to_string(folder.join("all")).expect("noted"), "7\n3\n");
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
