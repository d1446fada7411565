//! Messages about a system file: where, what is wrong, what to do; with a caret under the place.

use crate::source::{Lines, Place, Text, floor_char_boundary};
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// So many bytes of a value, and of what follows it in its line, are shown.
const MOST_SHOWN: usize = 1_000;

/// At most so many messages are rendered; the rest is counted.
pub(crate) const RENDERED: usize = 40;

/// One finding: what is wrong at a place, and what to do about it.
#[derive(Clone, Debug)]
pub(crate) struct Diagnostic(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    reason: String,
    label: String,
    remedy: String,
    path: Option<String>,
    place: Option<Place>,
    others: Vec<(Place, String)>,
}

impl Diagnostic {
    pub(crate) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Diagnostic {
        Diagnostic(Box::new(Parts {
            reason: reason.into(),
            label: String::new(),
            remedy: remedy.into(),
            path: None,
            place: None,
            others: Vec::new(),
        }))
    }

    /// Names the value.
    pub(crate) fn at(mut self, path: impl Into<String>) -> Diagnostic {
        self.0.path = Some(path.into());
        self
    }

    /// Puts the caret.
    pub(crate) fn place(self, place: &Place) -> Diagnostic {
        self.maybe_place(Some(place.clone()))
    }

    pub(crate) fn maybe_place(mut self, place: Option<Place>) -> Diagnostic {
        self.0.place = place;
        self
    }

    /// Text beside the caret.
    pub(crate) fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.0.label = label.into();
        self
    }

    /// Where it starts, for putting messages into the order of the file; overrides come last.
    pub(crate) fn start(&self) -> (usize, usize) {
        self.0.place.as_ref().map_or((0, 0), |place| (place.text, place.range.start))
    }

    /// The value that it is about.
    pub(crate) fn path(&self) -> Option<&str> {
        self.0.path.as_deref()
    }

    /// All that makes one differ from another.
    pub(crate) fn key(&self) -> String {
        let Parts { path, reason, remedy, .. } = &*self.0;
        format!("{}\n{reason}\n{remedy}", path.as_deref().unwrap_or_default())
    }

    /// As [`Diagnostic::key`], by where it stands: the path may have a name in it that was only tried.
    pub(crate) fn key_by_place(&self) -> String {
        let Parts { path, place, reason, remedy, .. } = &*self.0;
        let Some(place) = place else {
            return format!("{}\n{reason}\n{remedy}", path.as_deref().unwrap_or_default());
        };
        format!("{} {:?}\n{reason}\n{remedy}", place.text, place.range)
    }

    /// What is wrong.
    pub(crate) fn reason(&self) -> &str {
        &self.0.reason
    }

    /// With places that a text has: one of text `none + n` becomes the `n`th of `instead`.
    pub(crate) fn within(mut self, none: usize, instead: &[Place]) -> Diagnostic {
        if let Some(place) = &self.0.place
            && place.text >= none
        {
            self.0.place = instead.get(place.text - none).cloned();
        }
        self.0.others.retain(|(place, _)| place.text < none);
        self
    }

    /// The first other place.
    pub(crate) fn first_other(&self) -> Option<&Place> {
        self.0.others.first().map(|(place, _)| place)
    }

    /// Where it points.
    pub(crate) fn its_place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// Marks another place that has to do with it.
    pub(crate) fn other(mut self, place: Place, label: impl Into<String>) -> Diagnostic {
        self.0.others.push((place, label.into()));
        self
    }
}

/// Everything that is wrong with a file and its overrides, in one go.
///
/// `Display` renders every message with its place, a caret and the remedy, without colour;
/// [`Diagnostics::render`] can colour it.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    texts: Arc<[Text]>,
}

/// One message, as programs read it; serialises to JSON.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Message {
    /// The file, or `--set`; `None` where the message is about no place.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// The value as a dotted path: `task.control.wcet`.
    pub path: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl Diagnostics {
    pub(crate) fn new(texts: Arc<[Text]>) -> Diagnostics {
        Diagnostics { list: Vec::new(), texts }
    }

    /// One message about no place in particular.
    #[must_use]
    pub fn general(reason: impl Into<String>, remedy: impl Into<String>) -> Diagnostics {
        let mut found = Diagnostics::new(Arc::from([]));
        found.push(Diagnostic::new(reason, remedy));
        found
    }

    /// Messages about places of one text that is no system file, such as an experiment's: for each the bytes, what is
    /// wrong and what to do about it. A range beyond the text is cut to it.
    ///
    /// ```
    /// let text = "sets = 0\n";
    /// let found = horolog_model::Diagnostics::in_text("a.toml", text, [(7..8, "no sets".into(), "give one".into())]);
    /// assert!(found.to_string().contains("a.toml:1:8"));
    /// ```
    #[must_use]
    pub fn in_text(
        name: &str,
        content: &str,
        found: impl IntoIterator<Item = (Range<usize>, String, String)>,
    ) -> Diagnostics {
        let texts: Arc<[Text]> = Arc::from([Text { name: name.to_owned(), content: content.to_owned() }]);
        let end = content.len();
        let list = found.into_iter().map(|(range, reason, remedy)| {
            let range = range.start.min(end)..range.end.min(end).max(range.start.min(end));
            Diagnostic::new(reason, remedy).place(&Place { text: 0, range })
        });
        Diagnostics { list: list.collect(), texts }
    }

    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    pub(crate) fn from_list(list: Vec<Diagnostic>, texts: Arc<[Text]>) -> Diagnostics {
        Diagnostics { list, texts }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Always: the input is at fault (exit status 2).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        true
    }

    /// The messages as programs read them.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        let lines: Vec<Lines> = self.texts.iter().map(|text| Lines::of(&text.content)).collect();
        self.list.iter().map(move |Diagnostic(diagnostic)| {
            let text = diagnostic.place.as_ref().map(|place| (&self.texts[place.text], place));
            let position =
                text.map(|(text, place)| lines[place.text].position(&text.content, place.range.start));
            Message {
                file: text.map(|(text, _)| text.name.clone()),
                line: position.map(|(line, _)| line),
                column: position.map(|(_, column)| column),
                path: diagnostic.path.clone(),
                reason: diagnostic.reason.clone(),
                remedy: diagnostic.remedy.clone(),
            }
        })
    }

    /// All messages as text, with carets; `colour` adds terminal colours.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let lines: Vec<Lines> = self.texts.iter().map(|text| Lines::of(&text.content)).collect();
        let mut out = String::new();
        for (index, Diagnostic(diagnostic)) in self.list.iter().take(RENDERED).enumerate() {
            if index > 0 {
                out.push_str("\n\n");
            }
            out.push_str(&renderer.render(&[self.group(diagnostic, &lines)]));
        }
        if self.list.len() > RENDERED {
            out.push_str(&format!("\n\nand {} more of them", self.list.len() - RENDERED));
        }
        if let (all @ 2.., Some(text)) = (self.list.len(), self.texts.first()) {
            out.push_str(&format!("\n\n{all} errors in {}", text.name));
        }
        out
    }

    fn group<'a>(&'a self, diagnostic: &'a Parts, lines: &[Lines]) -> Group<'a> {
        let mut group = Group::with_title(Level::ERROR.primary_title(&diagnostic.reason));
        let mut texts: Vec<usize> = diagnostic.place.iter().map(|place| place.text).collect();
        for (place, _) in &diagnostic.others {
            if !texts.contains(&place.text) {
                texts.push(place.text);
            }
        }
        for index in texts {
            group = group.element(self.snippet(diagnostic, index, &lines[index]));
        }
        if diagnostic.place.is_none()
            && let Some(text) = self.texts.first()
        {
            group = group.element(Origin::path(&text.name));
        }
        if diagnostic.remedy.is_empty() {
            group
        } else {
            group.element(Level::HELP.message(&diagnostic.remedy))
        }
    }

    /// The part of one text that a message shows: the lines from its first mark to its last, not the whole of a
    /// large file for each of many messages.
    fn snippet<'a>(
        &'a self,
        diagnostic: &'a Parts,
        index: usize,
        lines: &Lines,
    ) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
        let text = &self.texts[index];
        let content = text.content.as_str();
        let primary =
            diagnostic.place.iter().map(|place| (place, AnnotationKind::Primary, diagnostic.label.as_str()));
        let others =
            diagnostic.others.iter().map(|(place, label)| (place, AnnotationKind::Context, label.as_str()));
        let marks: Vec<(Range<usize>, AnnotationKind, &str)> = primary
            .chain(others)
            .filter(|(place, ..)| place.text == index)
            .map(|(place, kind, label)| (visible(content, &place.range), kind, label))
            .collect();
        let first = marks.iter().map(|(range, ..)| range.start).min().unwrap_or(0);
        let last = marks.iter().map(|(range, ..)| range.end).max().unwrap_or(0);
        let (first_line, start) = lines.line_of(first);
        let end = content[last..].find('\n').map_or(content.len(), |at| last + at + 1);
        // The rest of a very long line says nothing more, and takes the renderer long.
        let end = end.min(floor_char_boundary(content, last.saturating_add(MOST_SHOWN)));
        let mut snippet = Snippet::source(&content[start..end]).path(&text.name).line_start(first_line);
        for (range, kind, label) in marks {
            let mark = kind.span(range.start - start..range.end - start);
            snippet = snippet.annotation(mark.label(Some(label).filter(|label| !label.is_empty())));
        }
        snippet
    }
}

/// A range that lies within the text, starts and ends at characters and does not leave its first line, so that
/// a caret can stand under it.
fn visible(text: &str, range: &Range<usize>) -> Range<usize> {
    let start = floor_char_boundary(text, range.start);
    let end = floor_char_boundary(text, range.end.max(start).min(start.saturating_add(MOST_SHOWN)));
    let line_end = text[start..end].find(['\n', '\r']).map_or(end, |at| start + at);
    start..line_end
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}
