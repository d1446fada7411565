//! Why a certificate is refused.

/// Why a certificate is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("certificate refused{}: {reason}", if task.is_empty() { String::new() } else { format!(" at task `{task}`") })]
pub struct Flaw {
    task: String,
    reason: String,
}

impl Flaw {
    pub(crate) fn new(task: &str, reason: impl Into<String>) -> Flaw {
        Flaw { task: task.to_owned(), reason: reason.into() }
    }

    /// The task whose claim is refused; empty where the certificate as a whole is.
    #[must_use]
    pub fn task(&self) -> &str {
        &self.task
    }

    /// What is wrong, in words.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
