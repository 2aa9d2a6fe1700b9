//! `public_items.txt` lists the public items of the crate: a change that makes an item public, or
//! removes one, changes this file, too. `UPDATE_PUBLIC_ITEMS=1 cargo test --test architecture`
//! writes the file.
//!
//! A line has the kind of an item and the paths under which users of `agui_server` find it, the shortest first. Below a type
//! are its public methods and fields, and below a trait its items, under the shortest path. Variants are not listed, nor what
//! is `#[doc(hidden)]`. Features are ignored. Items that a macro declares are found where they are re-exported by name: their
//! kind is `item`, and the methods and fields that the macro gives them are not found.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem, Type, Visibility};

use super::{
    resolve::{AllNames, Declared, Entry, is_hidden},
    syntax::{Module, modules},
    workspace::{ROOT, repository},
};

/// The public items with the paths under which users find them.
type Face = BTreeMap<Declared, BTreeSet<Vec<String>>>;

/// Returns the public items of the root package.
pub(crate) fn face(names: &AllNames) -> Face {
    let mut found = Face::new();
    collect(names, &[ROOT.to_owned()], &[], &mut found);
    found
}

/// Collects the public items of a module, which users find at `shown`.
fn collect(all: &AllNames, module: &[String], shown: &[String], found: &mut Face) {
    let names = &all.0[module];
    for (name, entries) in &names.entries {
        let here = [shown, std::slice::from_ref(name)].concat();
        for (_, entry) in entries.iter().filter(|(is_public, _)| *is_public) {
            let own = || [module, std::slice::from_ref(name)].concat();
            let declared = match entry {
                Entry::Item(kind) => Declared { kind, path: own() },
                Entry::Module => Declared { kind: "mod", path: own() },
                Entry::Use(to) => match all.resolve(module, to, 0) {
                    Some(declared) => declared,
                    None => Declared { kind: "use", path: to.clone() },
                },
            };
            let is_new = found.entry(declared.clone()).or_default().insert(here.clone());
            if declared.kind == "mod" && is_new {
                collect(all, &declared.path, &here, found);
            }
        }
    }
    for (_, to) in names.globs.iter().filter(|(is_public, _)| *is_public) {
        if let Some(declared) = all.resolve(module, to, 0) {
            collect(all, &declared.path, shown, found);
        }
    }
}

/// A method, a field or an item of a trait, as a line shows it: its kind and its name.
type Member = (&'static str, String);

/// Returns the public methods and fields of each type, and the items of each trait, by its absolute path.
fn members(modules: &[Module], names: &AllNames) -> BTreeMap<Vec<String>, BTreeSet<Member>> {
    let mut all: BTreeMap<_, BTreeSet<Member>> = BTreeMap::new();
    for module in modules {
        let from = module.full_path();
        for item in &module.items {
            let (owner, members) = match item {
                Item::Struct(it) => {
                    ([&from[..], &[it.ident.to_string()]].concat(), fields(&it.fields))
                }
                Item::Trait(it) => {
                    let members = it.items.iter().filter_map(item_of_trait).collect();
                    ([&from[..], &[it.ident.to_string()]].concat(), members)
                }
                Item::Impl(it) if !it.attrs.iter().any(is_hidden) => {
                    let Some(owner) = owner_of(it, &from, names) else { continue };
                    let methods =
                        public_methods(it).filter(|(_, attrs)| !attrs.iter().any(is_hidden));
                    (owner, methods.map(|(member, _)| member).collect())
                }
                _ => continue,
            };
            all.entry(owner).or_default().extend(members);
        }
    }
    all
}

/// Returns the type of an `impl`, if it is one of the workspace.
pub(crate) fn owner_of(it: &ItemImpl, from: &[String], names: &AllNames) -> Option<Vec<String>> {
    let Type::Path(path) = &*it.self_ty else { return None };
    let path: Vec<_> = path.path.segments.iter().map(|name| name.ident.to_string()).collect();
    names.resolve(from, &path, 0).map(|declared| declared.path)
}

/// Returns the public methods and constants of an `impl`, with their attributes. Items of a trait
/// have no visibility.
fn public_methods(it: &ItemImpl) -> impl Iterator<Item = (Member, &[Attribute])> {
    it.items.iter().filter_map(|item| {
        let (kind, visibility, name, attributes) = match item {
            ImplItem::Fn(it) => ("fn", &it.vis, &it.sig.ident, &it.attrs),
            ImplItem::Const(it) => ("const", &it.vis, &it.ident, &it.attrs),
            _ => return None,
        };
        let is_public = matches!(visibility, Visibility::Public(_));
        is_public.then(|| ((kind, name.to_string()), &attributes[..]))
    })
}

fn item_of_trait(item: &TraitItem) -> Option<Member> {
    let (kind, name, attributes) = match item {
        TraitItem::Fn(it) => ("fn", &it.sig.ident, &it.attrs),
        TraitItem::Const(it) => ("const", &it.ident, &it.attrs),
        TraitItem::Type(it) => ("type", &it.ident, &it.attrs),
        _ => return None,
    };
    (!attributes.iter().any(is_hidden)).then(|| (kind, name.to_string()))
}

fn fields(fields: &Fields) -> BTreeSet<Member> {
    let is_shown = |field: &syn::Field| {
        matches!(field.vis, Visibility::Public(_)) && !field.attrs.iter().any(is_hidden)
    };
    let shown = fields.iter().enumerate().filter(|(_, field)| is_shown(field));
    let name = |(place, field): (usize, &syn::Field)| {
        field.ident.as_ref().map_or_else(|| place.to_string(), ToString::to_string)
    };
    shown.map(|field| ("field", name(field))).collect()
}

/// Returns the lines of an item, each with its sort key.
fn lines_of(
    kind: &str,
    paths: BTreeSet<Vec<String>>,
    members: Option<&BTreeSet<Member>>,
) -> Vec<(String, String)> {
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_by_key(|path| (path[0] == "prelude", path.len(), path.clone()));
    let paths: Vec<_> = paths.iter().map(|path| path.join("::")).collect();
    let of_members = members.into_iter().flatten().map(|(kind, name)| {
        let path = format!("{}::{name}", paths[0]);
        (path.clone(), format!("{kind} {path}\n"))
    });
    let own = (paths[0].clone(), format!("{kind} {}\n", paths.join(", ")));
    [own].into_iter().chain(of_members).collect()
}

/// Returns one line for each public item, method and field.
fn public_items() -> Vec<String> {
    let modules = modules();
    let names = AllNames::of(&modules);
    let members = members(&modules, &names);
    let face = face(&names).into_iter();
    let lines: BTreeSet<_> = face
        .flat_map(|(declared, paths)| lines_of(declared.kind, paths, members.get(&declared.path)))
        .collect();
    lines.into_iter().map(|(_, line)| line).collect()
}

#[test]
fn the_public_items_are_those_of_the_list() {
    let file = repository().join("tests/architecture/public_items.txt");
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

#[test]
fn methods_and_fields_are_found_and_hidden_ones_are_not() {
    let text = "
        pub struct A { pub a: u8, b: u8, #[doc(hidden)] pub c: u8 }
        pub struct B<T>(pub T);
        mod inner { impl super::A { pub fn d(&self) {} fn e(&self) {} } }
        #[doc(hidden)] impl A { pub fn f(&self) {} }
        impl A { #[doc(hidden)] pub fn g(&self) {} pub const H: u8 = 1; }
        impl<T> B<T> { pub fn i(&self) {} }
        impl Clone for A { fn clone(&self) -> Self {} }
        pub trait C { type J; fn k(&self); #[doc(hidden)] fn l(&self); }
    ";
    let modules = super::syntax::modules_of_text("agui_server", text);
    let members = members(&modules, &AllNames::of(&modules));
    let found = members.iter().flat_map(|(owner, members)| {
        members.iter().map(|(kind, name)| format!("{kind} {}::{name}", owner[1..].join("::")))
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        ["const A::H", "field A::a", "fn A::d", "field B::0", "fn B::i", "fn C::k", "type C::J"]
    );
}
