//! Links of a site that lead nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Every link and anchor of the pages below a folder that does not exist.
pub(super) fn dead(site: &Path) -> Vec<String> {
    let mut pages = Vec::new();
    gather(site, &mut pages);
    if pages.len() < 20 {
        return vec![format!("{} has {} pages only", site.display(), pages.len())];
    }
    let texts: BTreeMap<PathBuf, String> = pages
        .into_iter()
        .filter_map(|path| Some((path.clone(), std::fs::read_to_string(&path).ok()?)))
        .collect();
    let anchors: BTreeMap<&Path, BTreeSet<&str>> =
        texts.iter().map(|(path, text)| (path.as_path(), values(text, "id").collect())).collect();
    let mut findings = BTreeSet::new();
    for (path, text) in &texts {
        // The page of all pages has each link once more, from another folder.
        if path.ends_with("print.html") || path.ends_with("404.html") {
            continue;
        }
        let own = path.strip_prefix(site).unwrap_or(path);
        for link in values(text, "href").chain(values(text, "src")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.contains(':') {
                continue;
            }
            let target =
                if file.is_empty() { path.clone() } else { flat(&path.parent().unwrap_or(path).join(file)) };
            if !target.exists() {
                findings.insert(format!("{}: the link {link} leads nowhere", own.display()));
            } else if !anchor.is_empty()
                && !anchors.get(target.as_path()).is_some_and(|ids| ids.contains(anchor))
            {
                findings.insert(format!("{}: {link}: the page has no such anchor", own.display()));
            }
        }
    }
    findings.into_iter().collect()
}

fn gather(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, pages);
        } else if path.extension().is_some_and(|extension| extension == "html") {
            pages.push(path);
        }
    }
}

/// The values of an attribute, as mdBook writes them.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    text.split('<').filter_map(move |tag| {
        let tag = tag.split('>').next()?;
        tag.split_once(&start)?.1.split('"').next()
    })
}

/// A path without `..`.
fn flat(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut flat, part| {
        match part {
            Component::ParentDir => {
                flat.pop();
            }
            part => flat.push(part),
        }
        flat
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_link_and_a_dead_anchor_are_found() {
        let folder = std::env::temp_dir().join(format!("horolog-links-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("a")).expect("a folder");
        for number in 0..20 {
            std::fs::write(folder.join(format!("{number}.html")), "<h1 id=\"top\">x</h1>").expect("writable");
        }
        let page =
            "<a class=\"x\" href=\"../1.html#top\">1</a> href=\"no-tag\" <a href=\"https://x.org/\">x</a>";
        std::fs::write(folder.join("a/good.html"), page).expect("writable");
        let bad = "<a href=\"../21.html\">no</a><a href=\"../2.html#no\">no</a><img src=\"i.png\">";
        std::fs::write(folder.join("a/bad.html"), bad).expect("writable");
        let findings = dead(&folder);
        std::fs::remove_dir_all(&folder).expect("removable");
        assert_eq!(findings.len(), 3, "{findings:?}");
        assert!(findings.iter().all(|finding| finding.starts_with("a/bad.html: ")), "{findings:?}");
    }
}
