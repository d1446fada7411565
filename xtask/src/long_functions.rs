//! How long functions are: those above the limit are counted, and the count only falls.

use crate::style::tracked;
use std::path::Path;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItemFn, ItemFn, ItemMod, Signature, TraitItemFn};

/// No new function is longer, in lines from its name to its end.
const LONGEST: usize = 70;

/// So many are, and not one more.
const ALLOWED: usize = 37;

/// Whether there are more long functions than there may be, in words; empty when all is well.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut long = Vec::new();
    let mut seen = 0;
    let files = tracked(root, &["*/src/*.rs"]);
    for path in files.iter().filter(|path| !path.contains("/tests/") && !path.ends_with("/tests.rs")) {
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        let Ok(file) = syn::parse_file(&text) else { continue };
        let mut reader = Reader { long: Vec::new(), seen: 0 };
        reader.visit_file(&file);
        seen += reader.seen;
        long.extend(
            reader.long.iter().map(|(name, line, lines)| format!("{path}:{line} {name} ({lines} lines)")),
        );
    }
    let mut findings = Vec::new();
    if seen < 1_000 {
        findings.push(format!("functions: only {seen} found; the check saw too little"));
    }
    if long.len() > ALLOWED {
        findings.push(format!(
            "functions: {} of {seen} have more than {LONGEST} lines, {ALLOWED} may: {}",
            long.len(),
            long.join(", ")
        ));
    } else if long.len() < ALLOWED {
        findings.push(format!(
            "functions: {} are left that are long: write that into xtask/src/long_functions.rs",
            long.len()
        ));
    }
    findings
}

struct Reader {
    /// Name, first line, lines.
    long: Vec<(String, usize, usize)>,
    seen: usize,
}

impl Reader {
    fn measure(&mut self, signature: &Signature, block: &Block) {
        let (first, last) = (signature.span().start().line, block.span().end().line);
        self.seen += 1;
        if last - first + 1 > LONGEST {
            self.long.push((signature.ident.to_string(), first, last - first + 1));
        }
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().starts_with("test"))
    })
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            self.measure(&item.sig, &item.block);
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.measure(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        if let Some(block) = &item.default {
            self.measure(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_the_limit_passes_and_one_line_more_does_not() {
        let of = |lines: usize| {
            let text =
                format!("impl X {{\n    fn f() {{\n{}    }}\n}}\n", "        x();\n".repeat(lines - 2));
            let mut reader = Reader { long: Vec::new(), seen: 0 };
            reader.visit_file(&syn::parse_file(&text).expect("Rust"));
            (reader.seen, reader.long)
        };
        assert_eq!(of(LONGEST), (1, Vec::new()));
        assert_eq!(of(LONGEST + 1), (1, vec![("f".to_owned(), 2, LONGEST + 1)]));
        let test = "#[cfg(test)]\nmod tests {\n fn f() {\n".to_owned() + &"x();\n".repeat(99) + "}}";
        let mut reader = Reader { long: Vec::new(), seen: 0 };
        reader.visit_file(&syn::parse_file(&test).expect("Rust"));
        assert_eq!((reader.seen, reader.long), (0, Vec::new()));
    }

    #[test]
    fn no_more_functions_are_long_than_may_be() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        assert_eq!(check(root), Vec::<String>::new());
    }
}
