//! One page of the documents: its fenced blocks with their markers, its code spans, its links.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A page as it is read.
pub(crate) struct Page {
    /// Its path within the repository.
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
    /// Code spans with the line of each.
    pub(crate) spans: Vec<(usize, String)>,
    pub(crate) links: Vec<(usize, String)>,
}

/// A fenced block: what is behind its fence says what the tests do with it.
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) language: String,
    /// Everything behind the language.
    marks: Vec<String>,
    pub(crate) text: String,
    /// Where the text lies in the page.
    pub(crate) range: Range<usize>,
    /// The paragraph before it.
    pub(crate) before: String,
}

impl Block {
    /// The value of `NAME=VALUE`.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.marks.iter().find_map(|mark| mark.strip_prefix(name)?.strip_prefix('='))
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.marks.iter().any(|mark| mark == flag)
    }

    pub(crate) fn marks(&self) -> &[String] {
        &self.marks
    }
}

/// `a b="c d"` as two marks.
fn marks(text: &str) -> Vec<String> {
    let mut marks = vec![String::new()];
    let mut quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => quoted = !quoted,
            ' ' if !quoted => marks.push(String::new()),
            _ => marks.last_mut().expect("never empty").push(letter),
        }
    }
    marks.retain(|mark| !mark.is_empty());
    marks
}

impl Page {
    pub(crate) fn read(root: &Path, path: &str) -> Page {
        let text = std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let mut page = Page {
            path: path.to_owned(),
            text: String::new(),
            blocks: Vec::new(),
            spans: Vec::new(),
            links: Vec::new(),
        };
        let line_of = |at: usize| text[..at].matches('\n').count() + 1;
        let mut open: Option<Block> = None;
        let mut paragraph = String::new();
        for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(kind)) => {
                    let info = match &kind {
                        CodeBlockKind::Fenced(info) => info.to_string(),
                        CodeBlockKind::Indented => "indented".to_owned(),
                    };
                    let (language, rest) = info.split_once(' ').unwrap_or((&info, ""));
                    open = Some(Block {
                        line: line_of(range.start),
                        language: language.to_owned(),
                        marks: marks(rest),
                        text: String::new(),
                        range: 0..0,
                        before: paragraph.clone(),
                    });
                }
                Event::End(TagEnd::CodeBlock) => page.blocks.extend(open.take()),
                Event::Text(part) => match &mut open {
                    Some(block) => {
                        block.text.push_str(&part);
                        if block.range.is_empty() {
                            block.range.start = range.start;
                        }
                        block.range.end = range.end;
                    }
                    None => paragraph.push_str(&part),
                },
                Event::Code(code) => {
                    paragraph.push_str(&format!("`{code}`"));
                    page.spans.push((line_of(range.start), code.to_string()));
                }
                Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Item) => paragraph.clear(),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((line_of(range.start), dest_url.to_string()));
                }
                _ => {}
            }
        }
        page.text = text;
        page
    }

    /// A place for messages.
    pub(crate) fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path)
    }

    /// Where the page's links start from.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new(&self.path).parent().map(Path::to_path_buf).unwrap_or_default()
    }
}

/// Every page that a user reads: the README, the notes for contributors and all of `docs/`, tracked or about to be.
pub(crate) fn pages(root: &Path) -> Vec<Page> {
    let list = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "--"])
        .args(["README.md", "CONTRIBUTING.md", "docs/*.md"])
        .current_dir(root)
        .output()
        .expect("git lists files");
    let list = String::from_utf8(list.stdout).expect("names in UTF-8");
    let mut paths: Vec<&str> = list.lines().filter(|path| root.join(path).exists()).collect();
    paths.sort_unstable();
    assert!(paths.len() > 40, "git lists the documents: {paths:?}");
    paths.into_iter().map(|path| Page::read(root, path)).collect()
}

#[test]
fn a_block_says_what_is_done_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "Save it as `a.toml`:\n\n```toml file=a.toml base=\"one two\"\nx = 1\n\n[y]\n```\n\nSee [b](c.md#d) and `e`.\n";
    std::fs::write(folder.path().join("p.md"), text).expect("writable");
    let page = Page::read(folder.path(), "p.md");
    let block = &page.blocks[0];
    assert_eq!((block.line, block.language.as_str(), block.text.as_str()), (3, "toml", "x = 1\n\n[y]\n"));
    assert_eq!(
        (block.value("file"), block.value("base"), block.value("fil")),
        (Some("a.toml"), Some("one two"), None)
    );
    assert_eq!(&page.text[block.range.clone()], block.text);
    assert_eq!(block.before, "Save it as `a.toml`:");
    assert_eq!(page.links, [(9, "c.md#d".to_owned())]);
    assert_eq!(page.spans, [(1, "a.toml".to_owned()), (9, "e".to_owned())]);
}
