//! The arrows between modules: those of one folder of a crate depend on each other in one direction only.
//!
//! Neighbours are compared, at each level of the tree: a module uses another one where anything in it, or in its submodules, names
//! anything in the other one or in that one's submodules. A re-export counts as what it names. A module and its own submodules may use
//! each other. Tests do not count.

use crate::style::tracked;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Attribute, ItemMod, ItemUse, UseTree};

/// Crates with modules in cycles, and how many at most. A number only goes down; a crate that is not here has none.
const ALLOWED: [(&str, usize); 18] = [
    ("core/draw", 2),
    ("core/model", 15),
    ("core/probe", 15),
    ("core/trace", 4),
    ("engines/exec", 10),
    ("engines/interchange", 2),
    ("engines/measure", 6),
    ("engines/report", 2),
    ("engines/reserve", 3),
    ("engines/sim", 9),
    ("engines/sweep", 5),
    ("experiments", 7),
    ("floor/sys", 13),
    ("front/cli", 22),
    ("front/locks", 2),
    ("services/closed-loop", 6),
    ("services/recording", 5),
    ("testkit", 3),
];

/// The path of a module below its crate's root.
type Module = Vec<String>;

/// The modules of one crate, and what each names.
#[derive(Default)]
struct Graph {
    modules: BTreeSet<Module>,
    /// Absolute paths that a module names, in full.
    named: BTreeMap<Module, BTreeSet<Module>>,
    /// What a module gives another name to.
    re_exports: BTreeMap<Module, Module>,
}

/// Every crate with more modules in cycles than it may have, in words; empty when all is well.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let mut crates: BTreeMap<String, Graph> = BTreeMap::new();
    let mut findings = Vec::new();
    let files = tracked(root, &["*/src/*.rs"]);
    let parts = |path: &String| {
        let (folder, inside) = path.split_once("/src/")?;
        let is_left_out = folder.starts_with("examples")
            || inside.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "bin"));
        (!is_left_out).then(|| (folder.to_owned(), module_of(inside)))
    };
    for (folder, module) in files.iter().filter_map(parts) {
        crates.entry(folder).or_default().modules.insert(module);
    }
    for path in &files {
        let Some((folder, module)) = parts(path) else { continue };
        let Ok(text) = std::fs::read_to_string(root.join(path)) else { continue };
        if let Some(Err(error)) = crates.get_mut(&folder).map(|graph| graph.read(&module, &text)) {
            findings.push(format!("modules: {path}: {error}"));
        }
    }
    if crates.len() < 10 {
        findings.push(format!("modules: only {} crates found; the check saw too little", crates.len()));
    }
    for (folder, graph) in &crates {
        let cycles = graph.cycles();
        let found: usize = cycles.iter().map(|cycle| cycle.len()).sum();
        let allowed = ALLOWED.iter().find(|(name, _)| name == folder).map_or(0, |(_, allowed)| *allowed);
        if found > allowed {
            let cycles: Vec<String> = cycles.iter().map(|cycle| cycle.join(", ")).collect();
            findings.push(format!(
                "modules: {folder}: {found} modules use each other in circles, {allowed} may: {}",
                cycles.join("; ")
            ));
        } else if found < allowed {
            findings.push(format!("modules: {folder}: {found} modules are left in circles: write that into xtask/src/module_cycles.rs"));
        }
    }
    findings
}

/// The module that a file below `src` is.
fn module_of(inside: &str) -> Module {
    let mut parts: Vec<String> = inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

impl Graph {
    fn read(&mut self, module: &Module, text: &str) -> Result<(), String> {
        let file = syn::parse_file(text).map_err(|error| error.to_string())?;
        let mut reader = Reader { graph: self, module: module.clone(), depth: 0 };
        reader.visit_file(&file);
        Ok(())
    }

    /// The module that a path leads to, through re-exports.
    fn resolve(&self, path: &[String], steps: usize) -> Option<Module> {
        (0..=path.len()).rev().find_map(|length| {
            let (start, rest) = path.split_at(length);
            self.modules.contains(start).then(|| {
                let next: Module = start.iter().chain(rest.first()).cloned().collect();
                match self.re_exports.get(&next) {
                    Some(target) if steps > 0 && *target != next => {
                        let whole: Module = target.iter().chain(rest.iter().skip(1)).cloned().collect();
                        self.resolve(&whole, steps - 1)
                    }
                    _ => Some(start.to_vec()),
                }
            })?
        })
    }

    /// Groups of neighbours that use each other in circles.
    fn cycles(&self) -> Vec<Vec<String>> {
        // By folder: which of its modules names which.
        let mut levels: BTreeMap<Module, BTreeMap<&str, BTreeSet<String>>> = BTreeMap::new();
        for (from, paths) in &self.named {
            for to in paths.iter().filter_map(|path| self.resolve(path, 8)) {
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                if let (Some(a), Some(b)) = (from.get(common), to.get(common)) {
                    let level = levels.entry(from[..common].to_vec()).or_default();
                    level.entry(a).or_default().insert(b.clone());
                }
            }
        }
        levels.iter().flat_map(|(folder, uses)| circles(folder, uses)).collect()
    }
}

/// The groups of modules each of which can be reached from each.
fn circles(folder: &Module, uses: &BTreeMap<&str, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached = |from: &str| {
        let mut seen: BTreeSet<&str> = BTreeSet::new();
        let mut open = vec![from];
        while let Some(module) = open.pop() {
            for next in uses.get(module).into_iter().flatten() {
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        seen
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|&module| (module, reached(module))).collect();
    let mut groups: Vec<Vec<String>> = Vec::new();
    let mut done: BTreeSet<&str> = BTreeSet::new();
    for (&module, seen) in all.iter().filter(|(module, seen)| seen.contains(**module)) {
        if done.contains(module) {
            continue;
        }
        let group: Vec<&str> = seen
            .iter()
            .copied()
            .filter(|other| all.get(other).is_some_and(|back| back.contains(module)))
            .collect();
        done.extend(&group);
        let name =
            |one: &&str| folder.iter().map(String::as_str).chain([*one]).collect::<Vec<_>>().join("::");
        groups.push(group.iter().map(name).collect());
    }
    groups
}

/// Collects what one file names.
struct Reader<'a> {
    graph: &'a mut Graph,
    module: Module,
    /// How many modules written out in the file are open.
    depth: usize,
}

impl Reader<'_> {
    /// From the crate's root, where a path begins with a word for it or with a module that is here.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let first = path.first()?;
        let own = &self.module[..];
        match first.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some(own.iter().chain(&path[1..]).cloned().collect()),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                // A module in the file itself is not one of the graph.
                let left = own.len().checked_sub(ups.saturating_sub(self.depth))?;
                Some(own[..left].iter().chain(&path[ups..]).cloned().collect())
            }
            _ => {
                let below: Module = own.iter().chain(path).cloned().collect();
                let is_module = self.graph.modules.contains(&below[..=own.len()]);
                is_module.then_some(below)
            }
        }
    }

    fn note(&mut self, path: &[String]) {
        if let Some(path) = self.absolute(path) {
            self.graph.named.entry(self.module.clone()).or_default().insert(path);
        }
    }

    fn note_use(&mut self, tree: &UseTree, before: &mut Module, is_public: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.note_use(&path.tree, before, is_public);
                before.pop();
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.note_use(tree, before, is_public));
            }
            UseTree::Glob(_) => self.note(before),
            UseTree::Name(name) => self.note_name(name.ident.to_string(), None, before, is_public),
            UseTree::Rename(name) => {
                self.note_name(name.ident.to_string(), Some(name.rename.to_string()), before, is_public);
            }
        }
    }

    fn note_name(&mut self, name: String, renamed: Option<String>, before: &mut Module, is_public: bool) {
        let path: Module =
            if name == "self" { before.clone() } else { before.iter().cloned().chain([name]).collect() };
        self.note(&path);
        if is_public
            && let Some(target) = self.absolute(&path)
            && let Some(last) = renamed.or_else(|| path.last().cloned())
        {
            let here = self.module.iter().cloned().chain([last]).collect();
            self.graph.re_exports.insert(here, target);
        }
    }
}

/// Whether code is there for tests alone.
fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().starts_with("test"))
    })
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_none() || is_test(&item.attrs) {
            return;
        }
        self.depth += 1;
        visit::visit_item_mod(self, item);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !is_test(&item.attrs) {
            let is_public = !matches!(item.vis, syn::Visibility::Inherited);
            self.note_use(&item.tree, &mut Vec::new(), is_public);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Module = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if parts.len() > 1 {
            self.note(&parts);
        }
        visit::visit_path(self, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let mut graph = Graph::default();
        for (name, _) in files {
            graph.modules.insert(module_of(name));
        }
        for (name, text) in files {
            graph.read(&module_of(name), text).expect("Rust");
        }
        graph.cycles()
    }

    #[test]
    fn neighbours_that_use_each_other_are_found() {
        let a = ("a.rs", "use crate::b::B; pub struct A(B);");
        assert_eq!(cycles(&[a, ("b.rs", "pub struct B;")]), Vec::<Vec<String>>::new());
        for back in [
            "pub fn b() { crate::a::f() }",
            "pub struct B(Option<super::a::A>);",
            "use crate::{x, a::A};",
            "impl crate::a::Trait for B {}",
            "mod inner { fn f() { super::super::a::f() } }",
        ] {
            assert_eq!(cycles(&[a, ("b.rs", back)]), [["a", "b"]], "{back}");
        }
    }

    #[test]
    fn a_module_and_its_own_are_no_circle_and_tests_do_not_count() {
        let none = Vec::<Vec<String>>::new();
        let files = [("a/mod.rs", "mod b; use b::B;"), ("a/b.rs", "use super::A; use crate::a::f;")];
        assert_eq!(cycles(&files), none);
        let files = [("a.rs", "use crate::b::B;"), ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; }")];
        assert_eq!(cycles(&files), none);
    }

    #[test]
    fn what_lies_in_folders_and_behind_other_names_counts() {
        let files = [("a/x.rs", "use crate::b::y::Y;"), ("b/y.rs", "use crate::a::x::X;")];
        assert_eq!(cycles(&files), [["a", "b"]]);
        let files = [
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a.rs", "use crate::B;"),
            ("b.rs", "use crate::A;"),
        ];
        assert_eq!(cycles(&files), [["a", "b"]]);
        let files = [("c/a.rs", "use super::b::B;"), ("c/b.rs", "use super::a::A;")];
        assert_eq!(cycles(&files), [["c::a", "c::b"]]);
    }

    #[test]
    fn the_house_has_no_more_circles_than_it_may() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        assert_eq!(check(root), Vec::<String>::new());
    }
}
