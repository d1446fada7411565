//! Making text from the outside harmless inside a page.

/// JSON that may stand inside a `<script>` element: no `<`, `>` or `&` can end the element or open a comment,
/// and the two line separators that old JavaScript refuses in strings are written as escapes. Those characters
/// only occur inside JSON strings, where `\u003c` means the same as `<`.
pub(crate) fn json_for_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out
}

/// Text for an HTML element or a quoted attribute.
pub(crate) fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn closes_no_element() {
        assert_eq!(json_for_script(r#"{"a":"</script><!--"}"#), r#"{"a":"\u003c/script\u003e\u003c!--"}"#);
        assert_eq!(html("<b title=\"x\">&'"), "&lt;b title=&quot;x&quot;&gt;&amp;&#39;");
    }

    proptest! {
        #[test]
        fn json_means_the_same_and_holds_no_markup(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            let safe = json_for_script(&json);
            let forbidden = ['<', '>', '&', '\u{2028}', '\u{2029}'];
            prop_assert!(!safe.contains(forbidden));
            prop_assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        }
    }
}
