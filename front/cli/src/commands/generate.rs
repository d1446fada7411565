//! `horolog completions`, `horolog man` and `horolog --include-dir`.

use crate::arguments::Arguments;
use crate::failure::{Done, Failure, Verdict};
use crate::{headers, manual, output};
use clap::CommandFactory;
use std::path::Path;

pub(crate) fn completions(shell: clap_complete::Shell) -> Done {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "horolog", &mut text);
    print(&text);
    Ok(Verdict::Holds)
}

/// Prints the page of a verb, or writes all into a folder.
pub(crate) fn man(verb: &[String], out: Option<&Path>) -> Done {
    let failed = |error: String| Failure::bad_input(format_args!("error: {error}"));
    let Some(folder) = out else {
        print(manual::page(verb).map_err(failed)?.text.as_bytes());
        return Ok(Verdict::Holds);
    };
    std::fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, &error))?;
    for page in manual::all().map_err(failed)? {
        let path = folder.join(format!("{}.1", page.name));
        std::fs::write(&path, page.text).map_err(|error| Failure::file("write", &path, &error))?;
    }
    Ok(Verdict::Holds)
}

/// Prints where the C headers are.
pub(crate) fn include_dir() -> Done {
    output::outln!("{}", headers::folder()?.display());
    Ok(Verdict::Holds)
}

fn print(text: &[u8]) {
    output::write(format_args!("{}", String::from_utf8_lossy(text)));
}
