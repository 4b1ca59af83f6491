//! Structure of the sources: the modules of a crate do not import each other in circles, no package
//! of `host/`, `attestation/` or `shell-rtl/` depends on one of `sim/` or `tests/`, and none of
//! `attestation/` or `shell-rtl/` on one of `host/`.
//!
//! Manifests and sources are all that this reads. A path is an import wherever it stands: in `use`,
//! in an expression, in a macro. It leads to the module that declares the item, also if other
//! modules re-export it. A file and its inline modules are one module. Imports from a module above
//! (`super`) are free, and so is everything in tests inside the sources.

use crate::process::{Context as _, Result, anyhow, ensure};
use crate::root;
use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// Folders whose packages must not depend on those of other folders.
const BELOW: &[(&str, &[&str])] = &[
    ("attestation/", &["host/", "sim/", "tests/"]),
    ("host/", &["sim/", "tests/"]),
    // Programs of the host read designs with these packages.
    ("shell-rtl/", &["host/", "sim/", "tests/"]),
    // Tests of shipped packages use these fixtures, which contain no simulator.
    (FIXTURES, &["sim/", "tests/"]),
];

/// A module, by the names that lead to it from the crate's root.
type Module = Vec<String>;
/// A name in a module.
type Name = (Module, String);
/// A path as it is written, by segments.
type Segments = Vec<String>;
/// The modules that each module imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The modules and paths of a crate.
#[derive(Default)]
struct Crate {
    /// All modules, inline ones too, each with the module of its file.
    modules: BTreeMap<Module, Module>,
    /// Modules that exist in tests only.
    tests: BTreeSet<Module>,
    /// Names that a module declares.
    items: BTreeSet<Name>,
    /// Names that `use` brings into a module.
    names: BTreeMap<Name, Segments>,
    /// Modules whose names `use PATH::*` brings into a module.
    globs: BTreeMap<Module, Vec<Segments>>,
    /// Every path, and the module that it stands in.
    paths: BTreeSet<(Module, Segments)>,
}

impl Crate {
    /// Reads one file, `name` below `src/`.
    fn read(&mut self, name: &str, text: &str) -> Result<(), LexError> {
        let path = name.strip_suffix(".rs").unwrap_or(name);
        let path = path.strip_suffix("/mod").unwrap_or(path);
        let module: Module = match path {
            "lib" | "main" => Vec::new(),
            path => path.split('/').map(str::to_owned).collect(),
        };
        self.modules.insert(module.clone(), module.clone());
        self.walk(&module, text.parse()?);
        Ok(())
    }

    fn walk(&mut self, module: &Module, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = match (&tokens[at], tokens.get(at + 1)) {
                (TokenTree::Punct(p), Some(TokenTree::Group(attribute)))
                    if p.as_char() == '#' && only_in_tests(attribute) =>
                {
                    self.skip(module, &tokens, at + 2)
                }
                (TokenTree::Group(group), _) => {
                    self.walk(module, group.stream());
                    at + 1
                }
                (TokenTree::Ident(word), next) => match (word.to_string().as_str(), next) {
                    ("mod", Some(TokenTree::Ident(name))) => {
                        if let Some(TokenTree::Group(body)) = tokens.get(at + 2) {
                            let inner = child(module, &name.to_string());
                            self.modules.insert(inner.clone(), self.modules[module].clone());
                            self.walk(&inner, body.stream());
                        }
                        at + 3
                    }
                    // Not the bound `use<..>`.
                    ("use", Some(next)) if !is(next, '<') => {
                        let end = (at..tokens.len()).find(|n| is(&tokens[*n], ';'));
                        let end = end.unwrap_or(tokens.len());
                        self.import(module, &[], &tokens[at + 1..end]);
                        end
                    }
                    (
                        "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static",
                        Some(TokenTree::Ident(name)),
                    ) => {
                        self.items.insert((module.clone(), name.to_string()));
                        at + 1
                    }
                    _ => self.path(module, &tokens, at),
                },
                _ => at + 1,
            };
        }
    }

    /// Passes over an item of the tests, which begins at `at`.
    fn skip(&mut self, module: &Module, tokens: &[TokenTree], mut at: usize) -> usize {
        while let Some(token) = tokens.get(at) {
            at += 1;
            match (token, tokens.get(at)) {
                (TokenTree::Ident(word), Some(TokenTree::Ident(name))) if *word == "mod" => {
                    self.tests.insert(child(module, &name.to_string()));
                }
                (TokenTree::Group(group), next) if group.delimiter() == Delimiter::Brace => {
                    return at + usize::from(next.is_some_and(|next| is(next, ';')));
                }
                (token, _) if is(token, ';') => return at,
                _ => {}
            }
        }
        at
    }

    /// Notes the path that begins at `at`, if it has several segments.
    fn path(&mut self, module: &Module, tokens: &[TokenTree], at: usize) -> usize {
        let colons = |at: usize| {
            [at, at + 1].iter().all(|at| tokens.get(*at).is_some_and(|token| is(token, ':')))
        };
        let (mut segments, mut end) = (vec![tokens[at].to_string()], at + 1);
        while let (true, Some(TokenTree::Ident(name))) = (colons(end), tokens.get(end + 2)) {
            segments.push(name.to_string());
            end += 3;
        }
        // After `>::` or a leading `::` there is no name of this module.
        if segments.len() > 1 && !(at >= 2 && colons(at - 2)) {
            self.paths.insert((module.clone(), segments));
        }
        end
    }

    /// Notes the paths and names of a `use` declaration, or of a part of one below `prefix`.
    fn import(&mut self, module: &Module, prefix: &[String], tokens: &[TokenTree]) {
        let (mut path, mut name) = (prefix.to_vec(), None);
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    let parts = inner.split(|token| is(token, ','));
                    parts
                        .filter(|part| !part.is_empty())
                        .for_each(|p| self.import(module, &path, p));
                    return;
                }
                TokenTree::Ident(word) if *word == "as" => {
                    name = tokens.get(at + 1).map(ToString::to_string);
                    break;
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                token if is(token, '*') => {
                    self.globs.entry(module.clone()).or_default().push(path.clone());
                    self.paths.insert((module.clone(), path));
                    return;
                }
                _ => {}
            }
        }
        path.pop_if(|last| last == "self");
        if let Some(name) = name.or_else(|| path.last().cloned()) {
            self.names.insert((module.clone(), name), path.clone());
        }
        self.paths.insert((module.clone(), path));
    }

    /// The module that a path leads to, and whether it names the module and not an item in it.
    /// `None` for a path into another crate. `on` holds the names on the way, which may lead back.
    fn follow(
        &self,
        module: &Module,
        path: &[String],
        on: &mut Vec<Name>,
    ) -> Option<(Module, bool)> {
        // The last names may be unknown: macros make items.
        (1..=path.len()).rev().find_map(|known| self.resolve(module, &path[..known], on))
    }

    /// The same for a path whose names are all known.
    fn resolve(
        &self,
        module: &Module,
        path: &[String],
        on: &mut Vec<Name>,
    ) -> Option<(Module, bool)> {
        let (first, rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => (Vec::new(), true),
            "self" => (module.clone(), true),
            "super" => (parent(module), true),
            name => self.find(module, name, on)?,
        };
        for name in rest {
            at = match at {
                (module, true) if name == "super" => (parent(&module), true),
                (module, true) => self.find(&module, name, on)?,
                item => return Some(item),
            };
        }
        Some(at)
    }

    /// The same for a name in a module.
    fn find(&self, module: &Module, name: &str, on: &mut Vec<Name>) -> Option<(Module, bool)> {
        let inner = child(module, name);
        if self.modules.contains_key(&inner) {
            return Some((inner, true));
        }
        let key = (module.clone(), name.to_owned());
        if on.contains(&key) {
            return None;
        }
        let (imported, declared) = (self.names.get(&key), self.items.contains(&key));
        on.push(key);
        let found = match imported {
            Some(path) => self.follow(module, path, on),
            None if declared => Some((module.clone(), false)),
            None => self.globs.get(module).into_iter().flatten().find_map(|path| {
                let (target, _) = self.resolve(module, path, on)?;
                self.find(&target, name, on)
            }),
        };
        on.pop();
        found
    }

    /// What each file imports from others, except from those above it.
    fn imports(&self) -> Imports {
        let in_tests = |m: &Module| self.tests.iter().any(|test| m.starts_with(test));
        let mut imports = Imports::new();
        for (module, path) in self.paths.iter().filter(|(module, _)| !in_tests(module)) {
            let Some((target, _)) = self.follow(module, path, &mut Vec::new()) else { continue };
            let (from, to) = (self.modules.get(module), self.modules.get(&target));
            if let (Some(from), Some(to)) = (from, to)
                && !from.starts_with(to)
            {
                imports.entry(from.clone()).or_default().insert(to.clone());
            }
        }
        imports
    }
}

/// Whether an attribute keeps an item out of programs.
fn only_in_tests(attribute: &Group) -> bool {
    let text = attribute.stream().to_string().replace(' ', "");
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn is(token: &TokenTree, char: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == char)
}

fn child(module: &Module, name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

fn parent(module: &Module) -> Module {
    module[..module.len().saturating_sub(1)].to_vec()
}

/// The circles of a crate: modules that all reach each other.
fn circles(imports: &Imports) -> BTreeSet<BTreeSet<&Module>> {
    let reach = |from| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(module) = next.pop() {
            next.extend(imports.get(module).into_iter().flatten().filter(|to| seen.insert(*to)));
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|module| (module, reach(module))).collect();
    let circles = reached.iter().map(|(from, seen)| {
        let back = |to: &&Module| reached.get(to).is_some_and(|seen| seen.contains(from));
        seen.iter().copied().filter(back).collect::<BTreeSet<_>>()
    });
    circles.filter(|circle| !circle.is_empty()).collect()
}

/// A line for each circle of a crate.
fn shown(name: &str, imports: &Imports) -> Vec<String> {
    let line = |circle: BTreeSet<&Module>| {
        let arrow = |from: &&Module| {
            let to = imports[*from].iter().filter(|to| circle.contains(to));
            let to: Vec<String> = to.map(|module| module.join("::")).collect();
            format!("{} -> {}", from.join("::"), to.join(", "))
        };
        let arrows: Vec<String> = circle.iter().map(arrow).collect();
        format!("{name}: a circle of imports, {}", arrows.join("; "))
    };
    circles(imports).into_iter().map(line).collect()
}

/// The fixtures without a simulator.
const FIXTURES: &str = "tests/fixtures";

/// The dependencies against [`BELOW`]. `manifests` are by folder; `workspace` is the root's.
fn upward(manifests: &BTreeMap<String, Table>, workspace: &Table) -> Vec<String> {
    let package =
        |manifest: &Table| manifest.get("package")?.get("name")?.as_str().map(str::to_owned);
    let packages: BTreeMap<String, &String> = manifests
        .iter()
        .filter_map(|(folder, manifest)| Some((package(manifest)?, folder)))
        .collect();
    let shared = workspace.get("workspace").and_then(|table| table.get("dependencies"));
    let mut found = Vec::new();
    let held = manifests.iter().filter_map(|(folder, manifest)| {
        let (_, above) = BELOW.iter().find(|(room, _)| folder.starts_with(room))?;
        Some((folder, manifest, above))
    });
    for (folder, manifest, above) in held {
        let targets = manifest.get("target").and_then(Value::as_table);
        let tables = targets.into_iter().flatten().filter_map(|(_, target)| target.as_table());
        for (kind, list) in tables.chain([manifest]).flatten() {
            for (key, value) in
                list.as_table().filter(|_| kind.ends_with("dependencies")).into_iter().flatten()
            {
                // A renamed dependency has its package's name beside it, here or at the root.
                let renamed = [Some(value), shared.and_then(|shared| shared.get(key))];
                let renamed =
                    renamed.into_iter().flatten().find_map(|value| value.get("package")?.as_str());
                let to = packages.get(renamed.unwrap_or(key)).filter(|to| {
                    above.iter().any(|room| to.starts_with(room))
                        && (kind != "dev-dependencies" || **to != FIXTURES)
                });
                if let Some(to) = to {
                    found.push(format!("{folder}: {kind} name {key}, which is {to}"));
                }
            }
        }
    }
    found
}

/// The packages of [`PICTURE`]'s rooms that it does not name.
fn not_shown(manifests: &BTreeMap<String, Table>, picture: &str) -> Vec<String> {
    let folders = manifests.keys().filter(|folder| {
        ["attestation/", "host/", "shell-rtl/", "sim/"].iter().any(|room| folder.starts_with(room))
    });
    let named = |folder: &&String| {
        let name = folder.rsplit('/').next().unwrap_or_default();
        picture.contains(&format!(">{name}</text>"))
    };
    let line = |folder: &String| format!("{folder}: {PICTURE} does not show it");
    folders.filter(|folder| !named(folder)).map(line).collect()
}

/// The picture of the folders and their packages.
const PICTURE: &str = "docs/pictures/rooms.light.svg";

/// Checks the packages whose manifests and sources are among `paths`.
///
/// # Errors
/// The modules of a crate import each other in a circle; a package depends on one that is above it,
/// or is not in the picture; a file is unreadable.
pub fn check<'a>(paths: impl Iterator<Item = &'a str>) -> Result<()> {
    let read = |path: &str| fs_err::read_to_string(root().join(path));
    let manifest =
        |path: &str| -> Result<Table> { read(path)?.parse().with_context(|| path.to_owned()) };
    let paths: Vec<&str> = paths.collect();
    let (mut manifests, mut found) = (BTreeMap::new(), Vec::new());
    for folder in paths.iter().filter_map(|path| path.strip_suffix("/Cargo.toml")) {
        manifests.insert(folder.to_owned(), manifest(&format!("{folder}/Cargo.toml"))?);
        let (sources, mut of) = (format!("{folder}/src/"), Crate::default());
        for path in &paths {
            // A program in `bin/` is a separate crate of one file.
            let name = path.strip_prefix(&sources).filter(|name| name.ends_with(".rs"));
            if let Some(name) = name.filter(|name| !name.starts_with("bin/")) {
                of.read(name, &read(path)?).map_err(|e| anyhow!("{path}: {e}"))?;
            }
        }
        found.extend(shown(folder, &of.imports()));
    }
    found.extend(upward(&manifests, &manifest("Cargo.toml")?));
    found.extend(not_shown(&manifests, &read(PICTURE)?));
    ensure!(
        found.is_empty(),
        "expected imports in one direction; move what both sides need to the file where it \
         belongs:\n{}",
        found.join("\n")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate of these files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut of = Crate::default();
        files.iter().for_each(|(name, text)| of.read(name, text).unwrap());
        shown("made/up", &of.imports())
    }

    const LIB: (&str, &str) =
        ("lib.rs", "mod a; mod b; mod c; pub use a::{Thing as Other, inner::Deep};");

    #[test]
    fn paths_of_every_form_are_imports() {
        let circle = ["made/up: a circle of imports, a -> b; b -> a"];
        let a =
            ("a/mod.rs", "use crate::b::B; pub struct Thing; pub mod inner { pub struct Deep; }");
        for b in [
            "use crate::a::Thing;",
            "use crate::{c::{C, D as _}, a::{self as x, *}};",
            "use super::a::Thing;",
            "use crate::Other;",
            "fn f() -> crate::Other { todo!() }",
            "fn f() { println!(\"{:?}\", super::a::inner::Deep) }",
            "mod deeper { use super::super::a::Thing; }",
            "macro_rules! m { () => { $crate::a::Thing } }",
            "use crate::Deep;",
            "pub(crate) use crate::a::Thing;",
            "#[cfg(not(test))] use crate::a::Thing;",
        ] {
            let c = ("c.rs", "pub struct C; pub struct D;");
            assert_eq!(found(&[LIB, a, ("b.rs", b), c]), circle, "{b}");
        }
    }

    #[test]
    fn paths_that_import_nothing_from_a_sibling_make_no_circle() {
        for b in [
            "// use crate::a::Thing;",
            "/// [`crate::a::Thing`]\n/* crate::a::Thing /* */ */ struct B;",
            "const B: &str = \"crate::a::Thing\"; const C: &str = r#\"crate::a::\"Thing\"#;",
            "const B: char = '\"'; // crate::a::Thing \"",
            "#[cfg(test)] mod tests { use crate::a::Thing; }",
            "#[cfg(all(test, unix))] #[path = \"x.rs\"] mod t { use crate::a::Thing; } struct B;",
            "#[cfg(test)] use crate::{a::Thing};",
            "#[cfg(test)] mod in_tests;",
            "use std::a::Thing; fn f() { <B as T>::crate_::a::Thing }",
            "mod a { pub struct Thing; } use a::Thing; use self::a as other;",
            "use super::*; use crate::c::Lost; use serde_json::{self, Value};",
        ] {
            let files = [
                LIB,
                ("a/mod.rs", "mod inner; use crate::b::{B, in_tests::T}; pub struct Thing;"),
                ("a/inner.rs", "use super::Thing;"),
                ("b/mod.rs", b),
                ("b/in_tests.rs", "use crate::a::Thing;"),
            ];
            // Only a test declares the file in_tests.rs.
            let files = if b.contains("in_tests") { &files[..] } else { &files[..4] };
            assert_eq!(found(files), [""; 0], "{b}");
        }
    }

    #[test]
    fn a_circle_of_several_files_is_one() {
        let files = [
            ("main.rs", "mod a; mod b; mod c; mod d;"),
            ("a.rs", "use crate::b;"),
            ("b.rs", "use crate::c::{d, e};"),
            ("c/mod.rs", "mod e; use crate::a;"),
            ("c/e.rs", "use crate::d::D;"),
            ("d.rs", "pub struct D;"),
        ];
        assert_eq!(found(&files), ["made/up: a circle of imports, a -> b; b -> c; c -> a"]);
        // A circle through a submodule counts; names from an ancestor are not imports.
        let below = [
            ("a/mod.rs", "mod inner; use inner::I; pub struct Thing;"),
            ("a/inner.rs", "use super::Thing; use crate::b; pub struct I;"),
            ("b.rs", "use crate::a::Thing;"),
        ];
        assert_eq!(
            found(&below),
            ["made/up: a circle of imports, a -> a::inner; a::inner -> b; b -> a"]
        );
        // b names the re-export of a third module.
        let far = [
            ("a.rs", "use crate::b::B; pub struct Thing;"),
            ("b.rs", "use crate::c; pub struct B(c::Far);"),
            ("c.rs", "pub use crate::a::Thing as Far;"),
        ];
        assert_eq!(found(&far), ["made/up: a circle of imports, a -> b; b -> a, c; c -> a"]);
    }

    #[test]
    fn shipped_packages_and_their_fixtures_depend_on_no_simulator() {
        let package = |name: &str, rest: &str| -> Table {
            format!("[package]\nname = {name:?}\n{rest}").parse().unwrap()
        };
        let workspace: Table =
            "[workspace.dependencies]\nother = { path = \"sim/card\", package = \"card\" }"
                .parse()
                .unwrap();
        for (dependencies, up) in [
            ("[dependencies]\nseal.workspace = true", false),
            ("[dependencies]\ncard.workspace = true", true),
            ("[dev-dependencies]\ncard = { path = \"../../sim/card\" }", true),
            ("[build-dependencies]\nx = { package = \"card\", version = \"1\" }", true),
            ("[target.'cfg(unix)'.dependencies]\nother.workspace = true", true),
            ("[features]\ncard = []", false),
            ("[dev-dependencies]\nfixtures.workspace = true", false),
            ("[dependencies]\nfixtures.workspace = true", true),
            ("[dependencies]\nagent.workspace = true", false),
        ] {
            let of_host = dependencies.contains("agent");
            for (folder, held) in [
                ("host/sdk", up),
                ("attestation/kernel", up || of_host),
                ("shell-rtl/project", up || of_host),
                ("sim/tb", false),
            ] {
                let manifests = [
                    (folder, package("it", dependencies)),
                    ("sim/card", package("card", "[dependencies]\nit.workspace = true")),
                    ("attestation/seal", package("seal", "")),
                    ("host/agent", package("agent", "")),
                    (FIXTURES, package("fixtures", "")),
                ];
                let manifests = manifests.map(|(folder, table)| (folder.to_owned(), table)).into();
                let found = upward(&manifests, &workspace);
                assert_eq!(found.len(), usize::from(held), "{folder} {dependencies}: {found:?}");
            }
        }
    }

    #[test]
    fn a_package_that_the_picture_does_not_show_is_found() {
        let manifests = ["host/sdk", "sim/new", "tests/new"]
            .map(|folder| (folder.to_owned(), Table::new()))
            .into();
        assert_eq!(
            not_shown(&manifests, "<text>sdk</text>"),
            [format!("sim/new: {PICTURE} does not show it")]
        );
    }
}
