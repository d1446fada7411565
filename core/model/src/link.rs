//! Links: values that one task hands to others at instants that do not depend on who runs when (decision 0009).

/// How many bytes a value has at the most.
pub const MAX_LINK_SIZE: u32 = 1 << 16;

/// When a value passes from the writer to the readers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum LinkKind {
    /// Logical execution time: published at the arrival plus the relative deadline, latched at a reader's arrival.
    #[default]
    Let,
}

/// A value that one task publishes and others latch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Link {
    /// Its name, unique among links.
    pub name: String,
    /// When values pass.
    pub kind: LinkKind,
    /// The name of the writer.
    pub from: String,
    /// The names of the readers; the writer may be among them.
    pub to: Vec<String>,
    /// Bytes that a body may publish; `None`: the instance number alone.
    pub size: Option<u32>,
}

impl LinkKind {
    /// The words of the system file.
    pub const WORDS: [&'static str; 1] = ["let"];

    /// The word of the system file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Let => "let",
        }
    }

    /// What a word of the system file names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<LinkKind> {
        [Self::Let].into_iter().find(|it| it.word() == word)
    }
}
