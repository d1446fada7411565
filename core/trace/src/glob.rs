//! Patterns over names: `*` stands for any text, `?` for any one character.

use std::fmt;

/// A pattern; everything but `*` and `?` stands for itself, upper and lower case apart.
///
/// ```
/// use horolog_trace::Glob;
/// let locks = Glob::new("lock/*");
/// assert!(locks.matches("lock/acquired") && !locks.matches("net/packet"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Glob {
    pattern: String,
}

impl Glob {
    /// The pattern `pattern`; every text is one.
    pub fn new(pattern: impl Into<String>) -> Glob {
        Glob { pattern: pattern.into() }
    }

    /// Whether `name` as a whole fits. At most (length of the pattern) x (length of the name) steps.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let (mut pattern, mut rest) = (self.pattern.chars(), name.chars());
        // Where to go on when the text after the last star does not fit: one character later.
        let mut retry: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
        loop {
            let mut next = pattern.clone();
            match next.next() {
                Some('*') => {
                    retry = Some((next.clone(), rest.clone()));
                    pattern = next;
                    continue;
                }
                Some(wanted) => {
                    let mut after = rest.clone();
                    if after.next().is_some_and(|letter| wanted == '?' || wanted == letter) {
                        (pattern, rest) = (next, after);
                        continue;
                    }
                }
                None if rest.as_str().is_empty() => return true,
                None => {}
            }
            let Some((after_star, mut from)) = retry.take() else { return false };
            if from.next().is_none() {
                return false;
            }
            (pattern, rest) = (after_star.clone(), from.clone());
            retry = Some((after_star, from));
        }
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition itself, exponential and obvious.
    fn naive(pattern: &[char], name: &[char]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some(('*', rest)), _) => (0..=name.len()).any(|skip| naive(rest, &name[skip..])),
            (Some(('?', rest)), Some((_, name))) => naive(rest, name),
            (Some((a, rest)), Some((b, name))) => a == b && naive(rest, name),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?]{0,8}", name in "[abc]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            prop_assert_eq!(Glob::new(pattern.as_str()).matches(&name), naive(&chars(&pattern), &chars(&name)));
        }
    }

    #[test]
    fn a_pattern_without_stars_is_the_name_itself() {
        assert!(Glob::new("net/packet").matches("net/packet"));
        assert!(!Glob::new("net/packet").matches("net/packets"));
        assert!(Glob::new("").matches("") && !Glob::new("").matches("a"));
    }
}
