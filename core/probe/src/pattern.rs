//! Names and globs of events.

/// Whether `pattern` matches the whole of `name`: `*` stands for any run of characters, `?` for one. Time is at most the
/// product of the lengths, memory constant.
///
/// ```
/// use horolog_probe::matches;
/// assert!(matches("lock/*", "lock/acquire"));
/// assert!(matches("lock/acquire", "lock/acquire"));
/// assert!(!matches("lock", "lock/acquire"));
/// assert!(matches("*/w?it", "lock/wait"));
/// ```
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    // Where the last `*` stood and how much of the name it has taken so far.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&wanted) if wanted == b'?' || wanted == name[n] => {
                // A character of several bytes is one character: `?` takes its continuation bytes too.
                n += 1;
                while wanted == b'?' && name.get(n).is_some_and(|byte| byte & 0xC0 == 0x80) {
                    n += 1;
                }
                p += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, by recursion.
    fn naive(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', rest @ ..], name) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
            (['?', rest @ ..], [_, tail @ ..]) => naive(rest, tail),
            ([wanted, rest @ ..], [found, tail @ ..]) if wanted == found => naive(rest, tail),
            _ => false,
        }
    }

    #[test]
    fn equals_the_definition_on_all_short_words() {
        let words = |letters: &str, longest: u32| {
            let letters: Vec<char> = letters.chars().collect();
            let mut all = vec![String::new()];
            let mut last = all.clone();
            for _ in 0..longest {
                last = last.iter().flat_map(|w| letters.iter().map(move |c| format!("{w}{c}"))).collect();
                all.extend(last.clone());
            }
            all
        };
        for pattern in words("ab*?", 4) {
            for name in words("abä", 4) {
                let (p, n): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
                assert_eq!(matches(&pattern, &name), naive(&p, &n), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn many_stars_end_soon() {
        let pattern = "*a".repeat(200) + "b";
        assert!(!matches(&pattern, &"a".repeat(20_000)));
    }
}
