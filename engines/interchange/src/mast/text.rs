//! MAST's text: `Keyword ( key => value, … );`, comments from `--` to the end of the line.

use super::system;
use super::tree::{Item, Value, Word};
use crate::reading::{Bytes, Reading};

/// How deep lists may nest; MAST's nest six deep.
const DEEPEST: usize = 32;

pub(crate) fn read(reading: &mut Reading<'_>, text: &str) {
    let mut parser = Parser { text, tokens: tokens(text), at: 0 };
    let mut items = Vec::new();
    while parser.at < parser.tokens.len() {
        match parser.element() {
            Ok(item) => items.push(item),
            Err((at, reason)) => {
                let remedy = "write elements as in `Operation ( Type => Simple, Name => a );`";
                reading.refuse(at, reason, remedy);
                return;
            }
        }
    }
    system::read(reading, &items);
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Word,
    Open,
    Close,
    Comma,
    End,
    Arrow,
    Other,
}

struct Token {
    kind: Kind,
    at: Bytes,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = 0;
    while let Some(c) = text[rest..].chars().next() {
        let tail = &text[rest..];
        let (kind, length) = match c {
            _ if c.is_whitespace() => {
                rest += c.len_utf8();
                continue;
            }
            _ if tail.starts_with("--") => {
                rest += tail.find('\n').unwrap_or(tail.len());
                continue;
            }
            _ if tail.starts_with("=>") => (Kind::Arrow, 2),
            '(' => (Kind::Open, 1),
            ')' => (Kind::Close, 1),
            ',' => (Kind::Comma, 1),
            ';' => (Kind::End, 1),
            '"' => (Kind::Word, tail[1..].find('"').map_or(tail.len(), |end| end + 2)),
            _ if is_of_word(c) => (Kind::Word, tail.find(|c: char| !is_of_word(c)).unwrap_or(tail.len())),
            _ => (Kind::Other, c.len_utf8()),
        };
        found.push(Token { kind, at: rest..rest + length });
        rest += length;
    }
    found
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '-' | ':' | '\'')
}

type Wrong = (Bytes, String);

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
}

impl Parser<'_> {
    fn next_is(&self, kind: Kind) -> bool {
        self.tokens.get(self.at).is_some_and(|token| token.kind == kind)
    }

    fn here(&self) -> Bytes {
        self.tokens.get(self.at).map_or(self.text.len()..self.text.len(), |token| token.at.clone())
    }

    fn take(&mut self, kind: Kind, what: &str) -> Result<Bytes, Wrong> {
        let at = self.here();
        if !self.next_is(kind) {
            let instead = if at.is_empty() { "the end of the file" } else { &self.text[at.clone()] };
            return Err((at.clone(), format!("here should be {what}, and there is {instead}")));
        }
        self.at += 1;
        Ok(at)
    }

    fn word(&mut self, what: &str) -> Result<Word, Wrong> {
        let at = self.take(Kind::Word, what)?;
        Ok(Word { text: self.text[at.clone()].trim_matches('"').to_owned(), at })
    }

    /// `Keyword ( … );`
    fn element(&mut self) -> Result<Item, Wrong> {
        let key = self.word("a keyword")?;
        let value = self.list(0)?;
        self.take(Kind::End, "`;`")?;
        Ok(Item { key, value })
    }

    fn list(&mut self, depth: usize) -> Result<Value, Wrong> {
        let open = self.take(Kind::Open, "`(`")?;
        if depth == DEEPEST {
            return Err((open, format!("lists nest deeper than {DEEPEST}")));
        }
        let mut items = Vec::new();
        loop {
            if self.next_is(Kind::Close) {
                break;
            }
            items.push(self.item(depth)?);
            if !self.next_is(Kind::Comma) {
                break;
            }
            self.at += 1;
        }
        self.take(Kind::Close, "`,` or `)`")?;
        Ok(Value::List(items))
    }

    fn item(&mut self, depth: usize) -> Result<Item, Wrong> {
        if self.next_is(Kind::Open) {
            let at = self.here();
            return Ok(Item { key: Word { text: String::new(), at }, value: self.list(depth + 1)? });
        }
        let first = self.word("a word")?;
        if !self.next_is(Kind::Arrow) {
            let at = first.at.start..first.at.start;
            return Ok(Item { key: Word { text: String::new(), at }, value: Value::Word(first) });
        }
        self.at += 1;
        let value =
            if self.next_is(Kind::Open) { self.list(depth + 1)? } else { Value::Word(self.word("a value")?) };
        Ok(Item { key: first, value })
    }
}
