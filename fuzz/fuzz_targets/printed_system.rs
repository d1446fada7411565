//! Every valid system prints as a file that reads back to the same.

#![no_main]

use horolog_model::file;
use horolog_testkit::system::{Shape, Words, draw_system};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|words: Vec<u64>| {
    let system = draw_system(&Shape::everything(), &mut Words::new(words));
    let (again, _) = file::read(&file::print(&system), "printed.toml", &[]).expect("a printed system reads");
    assert_eq!(again, system);
});
