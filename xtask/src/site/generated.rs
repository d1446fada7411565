//! A page an example, made from its folder.

use super::source::{read, write};
use std::fmt::Write as _;
use std::path::Path;

/// Writes them into the source of the site.
pub(super) fn pages(root: &Path, source: &Path) -> Result<(), String> {
    let mut list = String::new();
    for name in folders(&root.join("examples"))?.iter().filter(|name| *name != "broken") {
        write(&source.join(format!("examples/{name}.md")), &example(root, name)?)?;
        let _ = writeln!(list, "  - [{name}](examples/{name}.md)");
    }
    // They come below the page that sorts them.
    let summary = source.join("SUMMARY.md");
    let text = read(&summary)?;
    let place = "(reference/examples.md)\n";
    let at = text.find(place).ok_or("docs/SUMMARY.md does not name reference/examples.md")? + place.len();
    write(&summary, &format!("{}{list}{}", &text[..at], &text[at..]))
}

/// An example: what it is for, its files.
fn example(root: &Path, name: &str) -> Result<String, String> {
    let folder = root.join("examples").join(name);
    let mut page = format!("# The example {name}\n\nThe files of `examples/{name}`.\n");
    for file in files(&folder)? {
        let language = match file.rsplit_once('.').map_or("", |(_, extension)| extension) {
            "toml" => "toml",
            "c" => "c",
            "md" => "markdown",
            _ => "text",
        };
        let _ = write!(
            page,
            "\n## {file}\n\n`````{language}\n{}\n`````\n",
            read(&folder.join(&file))?.trim_end()
        );
    }
    Ok(page)
}

fn names(folder: &Path, wanted: impl Fn(&std::fs::DirEntry) -> bool) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut names: Vec<String> =
        entries.flatten().filter(wanted).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

fn folders(folder: &Path) -> Result<Vec<String>, String> {
    names(folder, |entry| entry.path().is_dir())
}

/// The text files of a folder; with an extension, those alone.
fn files(folder: &Path) -> Result<Vec<String>, String> {
    names(folder, |entry| std::fs::read_to_string(entry.path()).is_ok())
}
