//! No bytes make the reader of system files panic; what it reads prints as a file that reads back to the same.

#![no_main]

use horolog_model::file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // A line of three percent signs separates the file from overrides, one a line.
    let text = String::from_utf8_lossy(data);
    let (file_text, sets) = text.split_once("\n%%%\n").unwrap_or((&text, ""));
    let sets: Vec<String> = sets.lines().map(str::to_owned).collect();
    match file::read(file_text, "fuzz.toml", &sets) {
        Ok((system, source)) => {
            let printed = file::print(&system);
            let (again, _) = file::read(&printed, "printed.toml", &[]).expect("a printed system reads");
            assert_eq!(again, system);
            let _ = source.diagnostic("task.a.wcet", "reason", "remedy").to_string();
        }
        Err(errors) => {
            assert!(!errors.is_empty() && !errors.to_string().is_empty());
            assert_eq!(errors.messages().count(), errors.len());
        }
    }
});
