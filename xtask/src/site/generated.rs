//! Pages that are made from what is there.

use super::source::{read, write};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Writes them into the source of the site.
pub(super) fn pages(root: &Path, source: &Path, horolog: &Path) -> Result<(), String> {
    write(&source.join("reference/verbs.md"), &verbs(horolog)?)?;
    write(&source.join("reference/messages.md"), &messages(root)?)?;
    let mut list = String::new();
    for name in folders(&root.join("examples"))?.iter().filter(|name| *name != "broken") {
        write(&source.join(format!("examples/{name}.md")), &example(root, name)?)?;
        let _ = writeln!(list, "  - [{name}](examples/{name}.md)");
    }
    // They stand below the page that sorts them.
    let summary = source.join("SUMMARY.md");
    let text = read(&summary)?;
    let place = "(reference/examples.md)\n";
    let at = text.find(place).ok_or("docs/SUMMARY.md does not name reference/examples.md")? + place.len();
    write(&summary, &format!("{}{list}{}", &text[..at], &text[at..]))
}

/// Every verb with its help.
fn verbs(horolog: &Path) -> Result<String, String> {
    let mut page = "# Verbs\n\nEach verb as it prints itself: `horolog help VERB`.\n".to_owned();
    verb(horolog, &mut Vec::new(), &mut page)?;
    Ok(page)
}

fn verb(horolog: &Path, path: &mut Vec<String>, page: &mut String) -> Result<(), String> {
    let mut command = Command::new(horolog);
    let output = command.args(&*path).arg("--help").env("COLUMNS", "100").env("NO_COLOR", "1").output();
    let output = output.map_err(|error| format!("{}: {error}", horolog.display()))?;
    if !output.status.success() {
        return Err(format!("`horolog {} --help` fails", path.join(" ")));
    }
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let title = if path.is_empty() { "horolog".to_owned() } else { format!("horolog {}", path.join(" ")) };
    let _ = write!(page, "\n## {title}\n\n```text\n{}\n```\n", help.trim_end());
    for below in subcommands(&help) {
        path.push(below);
        verb(horolog, path, page)?;
        path.pop();
    }
    Ok(())
}

/// The verbs that a help lists.
fn subcommands(help: &str) -> Vec<String> {
    let lines =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| line.starts_with(' '));
    let names =
        lines.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Every message of `examples/broken`, with its place and its remedy.
fn messages(root: &Path) -> Result<String, String> {
    let folder = root.join("examples/broken");
    let mut page = "# Messages\n\nWhat `horolog check` says of a file that it refuses, with the remedy. Each message is that of a file in \
                    `examples/broken`, and a test compares them.\n"
        .to_owned();
    let mut count = 0;
    for name in files(&folder, "txt")? {
        for message in read(&folder.join(&name))?
            .split("\n\n")
            .map(str::trim_end)
            .filter(|message| message.starts_with("error: "))
        {
            let title = message.lines().next().unwrap_or_default();
            let title = title.strip_prefix("error: ").unwrap_or(title);
            let _ = write!(page, "\n### {title}\n\n```text\n{message}\n```\n");
            count += 1;
        }
    }
    if count < 20 {
        return Err(format!("examples/broken has {count} messages only"));
    }
    Ok(page)
}

/// An example: what it is for, its files.
fn example(root: &Path, name: &str) -> Result<String, String> {
    let folder = root.join("examples").join(name);
    let mut page = format!("# The example {name}\n\nThe files of `examples/{name}`.\n");
    for file in files(&folder, "")? {
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
fn files(folder: &Path, extension: &str) -> Result<Vec<String>, String> {
    names(folder, |entry| {
        let path = entry.path();
        let its = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        path.is_file() && (extension.is_empty() || its == extension) && std::fs::read_to_string(&path).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verbs_of_a_help_are_read() {
        let help = "Usage: x\n\nCommands:\n  check  Read\n         and more\n  trace  Record\n  help   Print\n\nOptions:\n  -q\n";
        assert_eq!(subcommands(help), ["check", "trace"]);
    }

    #[test]
    fn every_message_has_a_remedy() {
        let page = messages(&crate::step::repository_root()).expect("messages");
        assert_eq!(page.matches("\n### ").count(), page.matches("= help: ").count());
    }
}
