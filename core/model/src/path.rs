//! Dotted paths of keys, as messages and `--set` write them: `task.control.wcet`, `task."my task".wcet`.

/// One step of a path: bare where it can be, quoted where it holds a dot, a quote or white space at an end.
#[must_use]
pub(crate) fn step(name: &str) -> String {
    let plain = !name.is_empty()
        && name.trim() == name
        && !name.starts_with('#')
        && !name.contains(['.', '=', '"', '\'', '\\'])
        && !name.chars().any(char::is_control);
    if plain { name.to_owned() } else { format!("{name:?}") }
}

/// `base.name`, the name quoted where needed.
#[must_use]
pub(crate) fn join(base: &str, name: &str) -> String {
    format!("{base}.{}", step(name))
}

/// The path of a key of an item, as messages write it: `task.control.wcet`; with an empty key that of the item itself.
///
/// ```
/// assert_eq!(horolog_model::path_of("task", "a.b", "wcet"), "task.\"a.b\".wcet");
/// ```
#[must_use]
pub fn of(section: &str, name: &str, key: &str) -> String {
    let item = join(section, name);
    if key.is_empty() { item } else { format!("{item}.{key}") }
}

/// The path of the item `name` in the list `base`: by its name where that says which one is meant, else by its
/// place counted from 1, as in `task.#2`.
#[must_use]
pub(crate) fn item(base: &str, name: &str, index: usize, is_unique: bool) -> String {
    if is_unique && !name.is_empty() { join(base, name) } else { by_place(base, index) }
}

/// `base.#n`, counted from 1.
#[must_use]
pub(crate) fn by_place(base: &str, index: usize) -> String {
    format!("{base}.#{}", index + 1)
}

/// The path without its last step; `None` for a single step.
#[must_use]
pub(crate) fn parent(path: &str) -> Option<&str> {
    let mut quoted = false;
    let mut escaped = false;
    let mut cut = None;
    for (at, c) in path.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '.' if !quoted => cut = Some(at),
            _ => {}
        }
    }
    cut.map(|at| &path[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_only_what_needs_it() {
        assert_eq!(join("task", "control"), "task.control");
        assert_eq!(join("task", "two words"), "task.two words");
        assert_eq!(join("task", "a.b"), "task.\"a.b\"");
        assert_eq!(join("task", "#1"), "task.\"#1\"");
    }

    #[test]
    fn the_parent_drops_one_step() {
        assert_eq!(parent("task.control.wcet"), Some("task.control"));
        assert_eq!(parent("task.\"a.\\\".b\".wcet"), Some("task.\"a.\\\".b\""));
        assert_eq!(parent("task.\"a.b\""), Some("task"));
        assert_eq!(parent("task"), None);
    }
}
