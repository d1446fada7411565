//! Finds where a small fault can be put into a source file.

use std::ops::Range;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ReturnType, Stmt, Type, UnOp};

/// A stretch of the new text: written out, or taken from the file with the faults inside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    Text(String),
    Source(Range<usize>),
}

/// One fault that can be switched on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Candidate {
    /// The bytes of the file that it replaces; empty: something is put in.
    pub(super) range: Range<usize>,
    /// What stands there with the fault.
    pub(super) faulty: Vec<Piece>,
    /// Whether it replaces statements, so that no value is wanted.
    pub(super) is_statement: bool,
    /// The line, from 1.
    pub(super) line: usize,
    /// The function that it lies in.
    pub(super) function: String,
    /// What is changed, as text: `< becomes <=`.
    pub(super) what: String,
}

/// All faults of a file in the order of the source; none inside tests, constants and macro calls.
pub(super) fn candidates(source: &str) -> Result<Vec<Candidate>, String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let mut finder = Finder { source, function: Vec::new(), found: Vec::new() };
    finder.visit_file(&file);
    finder.found.sort_by_key(|candidate| (candidate.range.start, candidate.range.end));
    Ok(finder.found)
}

struct Finder<'a> {
    source: &'a str,
    function: Vec<String>,
    found: Vec<Candidate>,
}

/// Bytes of a node.
fn range(node: &impl syn::spanned::Spanned) -> Range<usize> {
    node.span().byte_range()
}

fn text(words: &str) -> Piece {
    Piece::Text(words.to_owned())
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let words = || attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        path.is_ident("test") || path.is_ident("cfg") && words().contains("test")
    })
}

/// Another operator in place of this one.
fn other(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        BinOp::Add(_) => "-",
        BinOp::Sub(_) | BinOp::Div(_) => "+",
        BinOp::Mul(_) => "+",
        BinOp::Rem(_) => "/",
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        BinOp::BitAnd(_) => "|",
        BinOp::BitOr(_) => "&",
        BinOp::Shl(_) => ">>",
        BinOp::Shr(_) => "<<",
        _ => return None,
    })
}

/// Another method in place of this one.
fn other_method(name: &str) -> Option<&'static str> {
    Some(match name {
        "min" => "max",
        "max" => "min",
        "any" => "all",
        "all" => "any",
        "saturating_add" => "saturating_sub",
        "saturating_sub" => "saturating_add",
        "is_some" => "is_none",
        "is_none" => "is_some",
        "min_by_key" => "max_by_key",
        "max_by_key" => "min_by_key",
        "div_ceil" => "div_euclid",
        "first" => "last",
        "last" => "first",
        _ => return None,
    })
}

/// What a function may give back instead of its result.
fn plain_value(result: &ReturnType) -> Option<&'static str> {
    let ReturnType::Type(_, kind) = result else { return Some("") };
    let Type::Path(path) = kind.as_ref() else { return None };
    Some(match path.path.segments.last()?.ident.to_string().as_str() {
        "bool" => "true",
        "Option" => "None",
        "Vec" => "Vec::new()",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" | "i32" | "i64" | "i128" => "0",
        "Span" | "String" => "Default::default()",
        _ => return None,
    })
}

/// Whether `let` stands in a chain of conditions, where nothing can be put around an operand.
fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        Expr::Paren(inner) => has_let(&inner.expr),
        _ => false,
    }
}

impl Finder<'_> {
    fn add(&mut self, range: Range<usize>, faulty: Vec<Piece>, is_statement: bool, what: String) {
        if self.function.is_empty() {
            return;
        }
        let line = self.source[..range.start].matches('\n').count() + 1;
        let function = self.function.join("::");
        self.found.push(Candidate { range, faulty, is_statement, line, function, what });
    }

    /// The function's body gives something plain at once.
    fn add_body(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let value = match plain_value(&signature.output) {
            Some(value) if !block.stmts.is_empty() => value,
            _ => return,
        };
        let at = range(&block.stmts[0]).start;
        let at = self.source[..at].rfind('{').map_or(at, |brace| brace + 1);
        if at <= range(block).start {
            return;
        }
        self.add(at..at, vec![text(&format!("return {value};"))], true, format!("returns {value:?} at once"));
    }

    fn inside(&mut self, name: String, walk: impl FnOnce(&mut Self)) {
        self.function.push(name);
        walk(self);
        self.function.pop();
    }

    /// The statement is left out.
    fn add_statement(&mut self, statement: &Stmt) {
        let Stmt::Expr(expression, Some(_)) = statement else { return };
        let words = match expression {
            Expr::MethodCall(_) | Expr::Call(_) => "call left out",
            Expr::Assign(_) => "assignment left out",
            Expr::Binary(_) => "change left out",
            _ => return,
        };
        let at = range(statement);
        let line = self.source[at.clone()].split('\n').next().unwrap_or_default().trim().to_owned();
        self.add(at, Vec::new(), true, format!("{words}: {line}"));
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_test(&item.attrs) || item.sig.constness.is_some() {
            return;
        }
        self.inside(item.sig.ident.to_string(), |finder| {
            finder.add_body(&item.sig, &item.block);
            visit::visit_block(finder, &item.block);
        });
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        // What is printed for a developer is no behaviour.
        if is_test(&item.attrs) || item.sig.constness.is_some() || item.sig.ident == "fmt" {
            return;
        }
        self.inside(item.sig.ident.to_string(), |finder| {
            finder.add_body(&item.sig, &item.block);
            visit::visit_block(finder, &item.block);
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if is_test(&item.attrs) {
            return;
        }
        let name = match item.self_ty.as_ref() {
            Type::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        let items = |finder: &mut Self| item.items.iter().for_each(|item| finder.visit_impl_item(item));
        match name {
            Some(name) => self.inside(name, items),
            None => items(self),
        }
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.inside(item.ident.to_string(), |finder| {
            for item in &item.items {
                if let syn::TraitItem::Fn(function) = item
                    && let Some(block) = &function.default
                {
                    finder.inside(function.sig.ident.to_string(), |finder| {
                        finder.add_body(&function.sig, block);
                        visit::visit_block(finder, block);
                    });
                }
            }
        });
    }

    // Nothing can be switched at run time there.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
    fn visit_macro(&mut self, _: &'ast syn::Macro) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        self.add_statement(statement);
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let whole = range(binary);
        if !has_let(&binary.left)
            && !has_let(&binary.right)
            && let Some(new) = other(&binary.op)
        {
            let left = Piece::Source(range(&binary.left));
            let right = Piece::Source(range(&binary.right));
            let old = &self.source[range(&binary.op)];
            let what = format!("{old} becomes {new}");
            self.add(whole, vec![left, text(&format!(" {new} ")), right], false, what);
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'ast syn::ExprUnary) {
        if matches!(unary.op, UnOp::Not(_)) && !has_let(&unary.expr) {
            self.add(range(unary), vec![Piece::Source(range(&unary.expr))], false, "! left out".to_owned());
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let name = call.method.to_string();
        if let Some(new) = other_method(&name) {
            let (whole, method) = (range(call), range(&call.method));
            let faulty = vec![
                Piece::Source(whole.start..method.start),
                text(new),
                Piece::Source(method.end..whole.end),
            ];
            self.add(whole, faulty, false, format!(".{name} becomes .{new}"));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_if(&mut self, condition: &'ast syn::ExprIf) {
        if !has_let(&condition.cond) {
            for value in ["true", "false"] {
                let at = range(&condition.cond);
                self.add(at, vec![text(value)], false, format!("condition becomes {value}"));
            }
        }
        visit::visit_expr_if(self, condition);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard
            && !has_let(guard)
        {
            for value in ["true", "false"] {
                self.add(range(guard), vec![text(value)], false, format!("guard becomes {value}"));
            }
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        let syn::Lit::Int(number) = &literal.lit else { return };
        let at = range(literal);
        let faulty = vec![Piece::Source(at.clone()), text(" + 1")];
        self.add(at, faulty, false, format!("{number} becomes {number} + 1"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whats(source: &str) -> Vec<String> {
        let found = candidates(source).expect("it parses");
        found.into_iter().map(|candidate| format!("{} {}", candidate.function, candidate.what)).collect()
    }

    #[test]
    fn each_kind_of_fault_is_found_and_tests_and_constants_are_left_alone() {
        let found = whats(
            "const A: u32 = 1 + 2;\n\
             impl Thing { fn less(&self, b: u32) -> bool { self.a < b && !self.c } fn fmt(&self) -> u32 { 7 } }\n\
             fn act(x: &mut u32) { *x += 3; note(x.max(4)); }\n\
             const fn fixed() -> u32 { 1 + 1 }\n\
             #[cfg(test)] mod tests { fn no() -> u32 { 1 + 1 } }",
        );
        assert_eq!(
            found,
            [
                "Thing::less returns \"true\" at once",
                "Thing::less < becomes <=",
                "Thing::less && becomes ||",
                "Thing::less ! left out",
                "act returns \"\" at once",
                "act += becomes -=",
                "act change left out: *x += 3;",
                "act 3 becomes 3 + 1",
                "act call left out: note(x.max(4));",
                "act .max becomes .min",
                "act 4 becomes 4 + 1",
            ]
        );
    }

    #[test]
    fn chains_with_let_are_left_whole() {
        assert_eq!(whats("fn f(a: Option<u8>) { if let Some(b) = a && b < 3 { g(b) } }").len(), 3);
    }
}
