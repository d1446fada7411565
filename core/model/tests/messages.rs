//! The messages of every file in `examples/broken/`, beside it as `.txt`. `HOROLOG_BLESS=1` writes them anew.

use horolog_model::file;
use std::fs;
use std::path::Path;

#[test]
fn every_broken_example_is_told_as_its_text_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/broken");
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("examples/broken/").map(|e| e.expect("readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    assert!(files.len() >= 20, "{} files", files.len());
    let mut differing = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("readable");
        let name = format!("examples/broken/{}", path.file_name().expect("a file").to_string_lossy());
        let Err(errors) = file::read(&text, &name, &[]) else {
            panic!("{name} reads without a message");
        };
        let found = format!("{errors}\n");
        let expected = path.with_extension("txt");
        if std::env::var_os("HOROLOG_BLESS").is_some() {
            fs::write(&expected, found).expect("writable");
        } else if fs::read_to_string(&expected).unwrap_or_default() != found {
            differing.push(format!("{name} now says:\n{found}"));
        }
        for message in errors.messages() {
            assert!(message.line.is_some() && message.column.is_some(), "{name}: no place for: {message:?}");
            assert!(!message.remedy.is_empty(), "{name}: no remedy for: {message:?}");
        }
    }
    assert!(differing.is_empty(), "{}\n(HOROLOG_BLESS=1 accepts them)", differing.join("\n"));
}
