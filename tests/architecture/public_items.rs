//! The public items of the crate are those of `public_items.txt`: a change that makes an item public, or removes one, changes
//! this file, too. `UPDATE_PUBLIC_ITEMS=1 cargo test --test architecture` writes the file.
//!
//! A line has the kind of an item and the paths under which users find it, the shortest first. Methods, fields and variants
//! are not listed, nor what is only in a module with `#[doc(hidden)]`. Features are ignored. Items that a macro declares are
//! found where they are re-exported by name; their kind is `item`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use syn::{Attribute, Ident, Item, UseTree, Visibility};

use super::syntax::{Module, ModulePath, modules};

/// An item where it is declared: its kind, and its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Declared {
    kind: &'static str,
    path: Vec<String>,
}

/// What a name of a module stands for.
enum Entry {
    Item(&'static str),
    Module,
    Use(Vec<String>),
}

#[derive(Default)]
struct Names {
    entries: BTreeMap<String, Vec<(bool, Entry)>>,
    /// `use …::*`, with whether it is public.
    globs: Vec<(bool, Vec<String>)>,
    has_macros: bool,
}

impl Names {
    fn has_module(&self, name: &str) -> bool {
        let mut entries = self.entries.get(name).into_iter().flatten();
        entries.any(|(_, entry)| matches!(entry, Entry::Module))
    }
}

struct Crate(BTreeMap<ModulePath, Names>);

impl Crate {
    fn read() -> Self {
        let mut all: BTreeMap<_, Names> = BTreeMap::new();
        for module in modules() {
            add_names(&module, all.entry(module.path.clone()).or_default());
        }
        Self(all)
    }

    /// Returns what a path means in a module: an absolute path with its kind. `None` for other crates.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Declared> {
        let (mut module, mut rest) = (from.to_vec(), path);
        match path[0].as_str() {
            "crate" => (module, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {}
            // `use async_trait::async_trait` names another crate, not itself.
            name if self.0[from].entries.get(name).is_some_and(|entries| {
                entries.iter().any(|(_, entry)| !matches!(entry, Entry::Use(to) if to == path))
            }) => {}
            _ => return None,
        }
        while rest.first().is_some_and(|name| name == "super") {
            module.pop();
            rest = &rest[1..];
        }
        let Some((first, rest)) = rest.split_first() else {
            return Some(Declared { kind: "mod", path: module });
        };
        let found = match self.0[&module].has_module(first) {
            // The module of a name, also if a function has the same one.
            true if !rest.is_empty() => {
                Declared { kind: "mod", path: [&module[..], std::slice::from_ref(first)].concat() }
            }
            _ => self.lookup(&module, first, depth)?,
        };
        match rest {
            [] => Some(found),
            _ if found.kind == "mod" => {
                let inner = [&["self".to_owned()], rest].concat();
                self.resolve(&found.path, &inner, depth + 1)
            }
            // A variant of an enum.
            _ => None,
        }
    }

    fn lookup(&self, module: &[String], name: &str, depth: usize) -> Option<Declared> {
        assert!(depth < 30, "{module:?}::{name} leads to itself");
        let names = &self.0[module];
        let path = [module, &[name.to_owned()]].concat();
        let entries = names.entries.get(name).into_iter().flatten();
        let found = entries.filter_map(|(_, entry)| match entry {
            Entry::Item(kind) => Some(Declared { kind, path: path.clone() }),
            Entry::Module => Some(Declared { kind: "mod", path: path.clone() }),
            Entry::Use(to) => self.resolve(module, to, depth + 1),
        });
        found.min().or_else(|| {
            let globs =
                names.globs.iter().filter_map(|(_, to)| self.resolve(module, to, depth + 1));
            let found = globs.filter(|to| to.kind == "mod").find_map(|to| {
                (to.path != module).then(|| self.lookup(&to.path, name, depth + 1)).flatten()
            });
            found.or_else(|| names.has_macros.then_some(Declared { kind: "item", path }))
        })
    }

    /// Collects the public items of a module, which users find at `shown`.
    fn collect(
        &self,
        module: &[String],
        shown: &[String],
        found: &mut BTreeMap<Declared, BTreeSet<Vec<String>>>,
    ) {
        let names = &self.0[module];
        for (name, entries) in &names.entries {
            let here = [shown, std::slice::from_ref(name)].concat();
            for (_, entry) in entries.iter().filter(|(is_public, _)| *is_public) {
                let own = || [module, std::slice::from_ref(name)].concat();
                let declared = match entry {
                    Entry::Item(kind) => Declared { kind, path: own() },
                    Entry::Module => Declared { kind: "mod", path: own() },
                    Entry::Use(to) => match self.resolve(module, to, 0) {
                        Some(declared) => declared,
                        None => Declared { kind: "use", path: to.clone() },
                    },
                };
                let is_new = found.entry(declared.clone()).or_default().insert(here.clone());
                if declared.kind == "mod" && is_new {
                    self.collect(&declared.path, &here, found);
                }
            }
        }
        for (_, to) in names.globs.iter().filter(|(is_public, _)| *is_public) {
            if let Some(declared) = self.resolve(module, to, 0) {
                self.collect(&declared.path, shown, found);
            }
        }
    }
}

fn add_names(module: &Module, names: &mut Names) {
    for item in &module.items {
        let mut add = |visibility: &Visibility, name: &Ident, entry| {
            let is_public = matches!(visibility, Visibility::Public(_));
            names.entries.entry(name.to_string()).or_default().push((is_public, entry));
        };
        match item {
            Item::Const(it) => add(&it.vis, &it.ident, Entry::Item("const")),
            Item::Enum(it) => add(&it.vis, &it.ident, Entry::Item("enum")),
            Item::Fn(it) => add(&it.vis, &it.sig.ident, Entry::Item("fn")),
            Item::Mod(it) if it.attrs.iter().any(is_hidden) => {
                add(&Visibility::Inherited, &it.ident, Entry::Module)
            }
            Item::Mod(it) => add(&it.vis, &it.ident, Entry::Module),
            Item::Static(it) => add(&it.vis, &it.ident, Entry::Item("static")),
            Item::Struct(it) => add(&it.vis, &it.ident, Entry::Item("struct")),
            Item::Trait(it) => add(&it.vis, &it.ident, Entry::Item("trait")),
            Item::Type(it) => add(&it.vis, &it.ident, Entry::Item("type")),
            Item::Union(it) => add(&it.vis, &it.ident, Entry::Item("union")),
            Item::Use(it) => {
                let is_public = matches!(it.vis, Visibility::Public(_));
                add_uses(is_public, &it.tree, &mut Vec::new(), names);
            }
            Item::Macro(it) if it.ident.is_none() => names.has_macros = true,
            _ => {}
        }
    }
}

/// Whether an attribute is `#[doc(hidden)]`.
fn is_hidden(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
        && attribute.parse_args::<Ident>().is_ok_and(|name| name == "hidden")
}

fn add_uses(is_public: bool, tree: &UseTree, prefix: &mut Vec<String>, names: &mut Names) {
    let mut add = |name: &Ident, path: Vec<String>| {
        names.entries.entry(name.to_string()).or_default().push((is_public, Entry::Use(path)));
    };
    match tree {
        UseTree::Path(it) => {
            prefix.push(it.ident.to_string());
            add_uses(is_public, &it.tree, prefix, names);
            prefix.pop();
        }
        UseTree::Name(it) if it.ident == "self" => {
            let name = Ident::new(prefix.last().unwrap(), it.ident.span());
            add(&name, prefix.clone());
        }
        UseTree::Name(it) => add(&it.ident, [&prefix[..], &[it.ident.to_string()]].concat()),
        UseTree::Rename(it) if it.ident == "self" => add(&it.rename, prefix.clone()),
        UseTree::Rename(it) => add(&it.rename, [&prefix[..], &[it.ident.to_string()]].concat()),
        UseTree::Glob(_) => names.globs.push((is_public, prefix.clone())),
        UseTree::Group(it) => {
            it.items.iter().for_each(|tree| add_uses(is_public, tree, prefix, names))
        }
    }
}

/// Returns one line for each public item.
fn public_items() -> Vec<String> {
    let mut found = BTreeMap::new();
    Crate::read().collect(&[], &[], &mut found);
    let line = |(declared, paths): (Declared, BTreeSet<Vec<String>>)| {
        let mut paths: Vec<_> = paths.into_iter().collect();
        paths.sort_by_key(|path| (path[0] == "prelude", path.len(), path.clone()));
        let paths: Vec<_> = paths.iter().map(|path| path.join("::")).collect();
        (paths[0].clone(), format!("{} {}\n", declared.kind, paths.join(", ")))
    };
    let lines: BTreeSet<_> = found.into_iter().map(line).collect();
    lines.into_iter().map(|(_, line)| line).collect()
}

#[test]
fn the_public_items_are_those_of_the_list() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/architecture/public_items.txt");
    let items = public_items();
    if std::env::var_os("UPDATE_PUBLIC_ITEMS").is_some() {
        fs::write(&file, items.concat()).unwrap();
    }
    let listed = fs::read_to_string(&file).unwrap();
    let listed: BTreeSet<_> = listed.split_inclusive('\n').collect();
    let items: BTreeSet<_> = items.iter().map(String::as_str).collect();
    let (new, gone): (Vec<_>, Vec<_>) =
        (items.difference(&listed).collect(), listed.difference(&items).collect());
    assert!(
        new.is_empty() && gone.is_empty(),
        "public and not in {}: {new:#?}\nin the file and not public: {gone:#?}\nUPDATE_PUBLIC_ITEMS=1 writes the file",
        file.display()
    );
}
