//! `horolog init`.

use crate::failure::{Done, Failure, Verdict};
use crate::init_arguments::{InitArguments, Kind};
use crate::{output, progress};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

pub(crate) fn run(words: &InitArguments) -> Done {
    let (kind, path) = words.what_and_where().map_err(Failure::usage)?;
    let text = match kind {
        Kind::Robot => include_str!("../../templates/robot.toml"),
        Kind::Audio => include_str!("../../templates/audio.toml"),
        Kind::Network => include_str!("../../templates/network.toml"),
        Kind::Daemon => include_str!("../../templates/daemon.toml"),
    };
    if path == Path::new("-") {
        output::write(format_args!("{text}"));
        return Ok(Verdict::Holds);
    }
    write(path, &about(text, path), words.force).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::bad_input(format_args!(
            "{} is there already\n  = help: give another path, or `--force` to overwrite it",
            path.display()
        )),
        _ => Failure::file("write", path, &error),
    })?;
    let path = path.display();
    progress::say(format_args!("wrote {path}; next: `horolog analyze {path}`"));
    Ok(Verdict::Holds)
}

/// The template with the name of its file in the commands that it shows, where they can name it as it is.
fn about(template: &str, path: &Path) -> String {
    let is_plain =
        |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    path.to_str()
        .filter(is_plain)
        .map_or_else(|| template.to_owned(), |name| template.replace("system.toml", name))
}

fn write(path: &Path, text: &str, is_forced: bool) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    if is_forced {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    options.open(path)?.write_all(text.as_bytes())
}
