//! Resolves the names in a module, also those of other crates of the workspace.
//!
//! A path begins with its crate. Features are ignored. An item of a macro is found where it is
//! named.

use std::collections::BTreeMap;

use syn::{Attribute, Ident, Item, UseTree, Visibility};

use super::syntax::{Module, ModulePath, attributes};

/// An item where it is declared: its kind, and its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Declared {
    pub(crate) kind: &'static str,
    pub(crate) path: Vec<String>,
}

/// The meaning of a name in a module.
pub(crate) enum Entry {
    Item(&'static str),
    Module,
    Use(Vec<String>),
}

/// The names of a module.
#[derive(Default)]
pub(crate) struct Names {
    /// The meaning of a name, and true if it is public.
    pub(crate) entries: BTreeMap<String, Vec<(bool, Entry)>>,
    /// `use …::*`; true if it is public.
    pub(crate) globs: Vec<(bool, Vec<String>)>,
    has_macros: bool,
}

impl Names {
    fn has_module(&self, name: &str) -> bool {
        let mut entries = self.entries.get(name).into_iter().flatten();
        entries.any(|(_, entry)| matches!(entry, Entry::Module))
    }
}

/// The names of all modules.
pub(crate) struct AllNames(pub(crate) BTreeMap<ModulePath, Names>);

impl AllNames {
    pub(crate) fn of(modules: &[Module]) -> Self {
        let mut all: BTreeMap<_, Names> = BTreeMap::new();
        for module in modules {
            add_names(module, all.entry(module.full_path()).or_default());
        }
        Self(all)
    }

    /// Returns the meaning of a path in a module: an absolute path with its kind. `None` for crates
    /// outside of the workspace.
    pub(crate) fn resolve(
        &self,
        from: &[String],
        path: &[String],
        depth: usize,
    ) -> Option<Declared> {
        let (mut module, mut rest) = (from.to_vec(), path);
        match path[0].as_str() {
            "crate" => (module, rest) = (vec![from[0].clone()], &path[1..]),
            "self" => rest = &path[1..],
            "super" => {}
            // `use async_trait::async_trait` names another crate, not itself.
            name if self.0[from].entries.get(name).is_some_and(|entries| {
                entries.iter().any(|(_, entry)| !matches!(entry, Entry::Use(to) if to == path))
            }) => {}
            _ if self.0.contains_key(&path[..1]) => {
                (module, rest) = (path[..1].to_vec(), &path[1..])
            }
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
}

/// Adds the names of a module. An item that is `#[doc(hidden)]` is not public.
fn add_names(module: &Module, names: &mut Names) {
    for item in &module.items {
        let is_hidden = attributes(item).iter().any(is_hidden);
        let is_public =
            |visibility: &Visibility| matches!(visibility, Visibility::Public(_)) && !is_hidden;
        let mut add = |visibility: &Visibility, name: &Ident, entry| {
            let is_public = is_public(visibility);
            names.entries.entry(name.to_string()).or_default().push((is_public, entry));
        };
        match item {
            Item::Const(it) => add(&it.vis, &it.ident, Entry::Item("const")),
            Item::Enum(it) => add(&it.vis, &it.ident, Entry::Item("enum")),
            Item::Fn(it) => add(&it.vis, &it.sig.ident, Entry::Item("fn")),
            Item::Mod(it) => add(&it.vis, &it.ident, Entry::Module),
            Item::Static(it) => add(&it.vis, &it.ident, Entry::Item("static")),
            Item::Struct(it) => add(&it.vis, &it.ident, Entry::Item("struct")),
            Item::Trait(it) => add(&it.vis, &it.ident, Entry::Item("trait")),
            Item::Type(it) => add(&it.vis, &it.ident, Entry::Item("type")),
            Item::Union(it) => add(&it.vis, &it.ident, Entry::Item("union")),
            Item::Use(it) => {
                add_uses(is_public(&it.vis), &it.tree, &mut Vec::new(), names);
            }
            Item::Macro(it) if it.ident.is_none() => names.has_macros = true,
            _ => {}
        }
    }
}

/// Returns whether an attribute is `#[doc(hidden)]`.
pub(crate) fn is_hidden(attribute: &Attribute) -> bool {
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
