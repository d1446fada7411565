//! The copy of `docs/` that the site is made from.

use crate::style::tracked;
use pulldown_cmark::{Event, Options, Parser, Tag};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Copies every document, and what they link to outside of `docs/`.
pub(super) fn copy(root: &Path, to: &Path) -> Result<(), String> {
    let paths = tracked(root, &["docs"]);
    let summary = read(&root.join("docs/SUMMARY.md"))?;
    // Pages of the repository's root that the site has, too.
    let outside: BTreeSet<PathBuf> = links(&summary)
        .iter()
        .map(|(_, link)| flat(&Path::new("docs").join(link)))
        .filter(|path| !path.starts_with("docs"))
        .collect();
    for path in paths.iter().map(PathBuf::from).chain(outside.iter().cloned()) {
        let target =
            to.join(if path.ends_with("SUMMARY.md") { "SUMMARY.md".into() } else { place(&path, &outside) });
        let from = root.join(&path);
        if !from.is_file() {
            continue;
        }
        if path.extension().is_some_and(|extension| extension == "md") {
            let text = read(&from)?;
            write(&target, &relinked(root, to, &path, &text, &outside)?)?;
        } else {
            write_bytes(&target, &fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?)?;
        }
    }
    Ok(())
}

/// Where a file of the repository lies within the source.
fn place(path: &Path, pages: &BTreeSet<PathBuf>) -> PathBuf {
    match path.strip_prefix("docs") {
        // The list of all pages is a page of mdBook's own.
        Ok(inside) if inside == Path::new("SUMMARY.md") => PathBuf::from("toc.html"),
        Ok(inside) => inside.to_path_buf(),
        Err(_) if pages.contains(path) => path.to_path_buf(),
        Err(_) => match path.strip_prefix("examples") {
            // An example has a page of its own.
            Ok(example) if example.components().count() == 1 => {
                Path::new("examples").join(example).with_extension("md")
            }
            _ => Path::new("files").join(path),
        },
    }
}

/// The text with its links where the site has what they name.
fn relinked(
    root: &Path,
    to: &Path,
    path: &Path,
    text: &str,
    pages: &BTreeSet<PathBuf>,
) -> Result<String, String> {
    let mut text = text.to_owned();
    let own = place(path, pages);
    let folder = path.parent().unwrap_or(Path::new(""));
    for (at, link) in links(&text.clone()).into_iter().rev() {
        let (file, anchor) =
            link.split_once('#').map_or((link.as_str(), None), |(file, anchor)| (file, Some(anchor)));
        if file.is_empty() || file.contains("://") {
            continue;
        }
        let target = flat(&folder.join(file));
        let placed = place(&target, pages);
        if placed.starts_with("files") {
            let from = root.join(&target);
            if !from.is_file() {
                return Err(format!("{}: a link to {}, which is no file", path.display(), target.display()));
            }
            write_bytes(
                &to.join(&placed),
                &fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?,
            )?;
        }
        let mut link = relative(&own, &placed);
        if let Some(anchor) = anchor {
            link = format!("{link}#{anchor}");
        }
        text.replace_range(at, &link);
    }
    Ok(text)
}

/// The links of a page, and the place of each in its text.
pub(super) fn links(text: &str) -> Vec<(std::ops::Range<usize>, String)> {
    let mut links = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else { continue };
        // Only links that give their target at once: `[text](target)`.
        let Some(at) = text[range.clone()].rfind(&format!("]({dest_url}")) else { continue };
        let start = range.start + at + 2;
        links.push((start..start + dest_url.len(), dest_url.to_string()));
    }
    links.sort_by_key(|(range, _)| range.start);
    links
}

/// The way from one page to another.
fn relative(from: &Path, to: &Path) -> String {
    let up = from.parent().map_or(0, |folder| folder.components().count());
    let mut way = "../".repeat(up);
    way.push_str(&to.to_string_lossy());
    way
}

/// A path without `..`.
fn flat(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut flat, part| {
        match part {
            Component::ParentDir => {
                flat.pop();
            }
            Component::CurDir => {}
            part => flat.push(part),
        }
        flat
    })
}

pub(super) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), String> {
    write_bytes(path, text.as_bytes())
}

fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_go_where_the_site_has_the_page() {
        let pages = BTreeSet::from([PathBuf::from("CHANGELOG.md")]);
        let text = "[a](machine.md#x) ![i](../images/r.png) [e](../../examples/edf) [c](../../CHANGELOG.md) [w](https://x.org/y) [s](#here)";
        let root = crate::step::repository_root();
        let out = relinked(&root, Path::new("/nonexistent"), Path::new("docs/start/p.md"), text, &pages);
        let expected = "[a](../start/machine.md#x) ![i](../images/r.png) [e](../examples/edf.md) [c](../CHANGELOG.md) \
                        [w](https://x.org/y) [s](#here)";
        assert_eq!(out.as_deref(), Ok(expected));
        let folder =
            relinked(&root, Path::new("/nonexistent"), Path::new("docs/p.md"), "[b](../bench)", &pages);
        assert!(folder.is_err_and(|what| what.contains("bench")));
    }
}
