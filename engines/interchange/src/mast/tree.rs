//! What a model of MAST is made of: items with a key and a word, or with further items.

use crate::reading::Bytes;

/// A word and where it lies.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) at: Bytes,
}

/// A word, or a list in parentheses.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Word(Word),
    List(Vec<Item>),
}

/// One item: `key => value`, or a value alone.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// Empty where there is none.
    pub(super) key: Word,
    pub(super) value: Value,
}

impl Item {
    /// Whether this is its key; MAST's words do not tell capitals apart.
    pub(super) fn is(&self, key: &str) -> bool {
        self.key.text.eq_ignore_ascii_case(key)
    }

    /// The items of its list; none for a word.
    pub(super) fn items(&self) -> &[Item] {
        match &self.value {
            Value::List(items) => items,
            Value::Word(_) => &[],
        }
    }

    /// The item with this key in its list.
    pub(super) fn item(&self, key: &str) -> Option<&Item> {
        self.items().iter().find(|item| item.is(key))
    }

    /// The word with this key in its list.
    pub(super) fn word(&self, key: &str) -> Option<&Word> {
        match &self.item(key)?.value {
            Value::Word(word) => Some(word),
            Value::List(_) => None,
        }
    }

    /// The word of its `Type`, in small letters.
    pub(super) fn kind(&self) -> String {
        self.word("Type").map(|word| word.text.to_ascii_lowercase()).unwrap_or_default()
    }

    /// The words of a list, or its only word.
    pub(super) fn words(&self) -> Vec<&Word> {
        match &self.value {
            Value::Word(word) => vec![word],
            Value::List(items) => items
                .iter()
                .filter_map(|item| match &item.value {
                    Value::Word(word) => Some(word),
                    Value::List(_) => None,
                })
                .collect(),
        }
    }
}
