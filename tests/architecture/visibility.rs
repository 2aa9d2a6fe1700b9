//! An item of a member is `pub` for another crate, or for users of the root package: else it is `pub(crate)`.
//!
//! An item counts as used if another crate has its name as a word in code, in its sources, tests, benches, examples or fuzz
//! targets, or if an exported macro of its own crate has it. The lists of `host.rs` name what they offer, and use nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use syn::{Attribute, Ident, Item, Visibility};

use super::{
    public_items::{face, owner_of, public_methods},
    resolve::{AllNames, is_hidden},
    syntax::{Module, modules},
    workspace::{ROOT, packages, repository, rust_files, shown},
};

/// The folders beside `src` whose code belongs to the root package. What stands in the rules themselves uses nothing.
const OF_ROOT: [&str; 4] = ["benches", "examples", "fuzz", "tests"];

#[test]
fn what_a_member_offers_is_used_by_another_crate_or_by_users() {
    let modules = modules();
    let names = AllNames::of(&modules);
    let face: BTreeSet<_> = face(&names).into_keys().map(|declared| declared.path).collect();
    let words = words_of_packages();
    let in_macros = names_in_macros(&modules);
    let mut unused = Vec::new();
    for module in modules.iter().filter(|module| module.package != ROOT) {
        let in_macros = in_macros.get(&module.package);
        for path in offered(module, &names, &face) {
            let name = path.last().unwrap();
            let is_used =
                words.iter().any(|(user, words)| *user != module.package && words.contains(name))
                    || in_macros.is_some_and(|names| names.contains(name));
            if !is_used && !face.contains(&path) {
                unused.push(format!("{} in {}", path.join("::"), shown(&module.file)));
            }
        }
    }
    assert!(
        unused.is_empty(),
        "{} items are `pub`, and no other crate names them:\n{}",
        unused.len(),
        unused.join("\n")
    );
}

/// Returns the paths of the public items in a module, and of public methods. Methods that users see are left out.
fn offered(module: &Module, names: &AllNames, face: &BTreeSet<Vec<String>>) -> Vec<Vec<String>> {
    let from = module.full_path();
    let mut found = Vec::new();
    for item in &module.items {
        if let Item::Impl(it) = item {
            let Some(owner) = owner_of(it, &from, names) else { continue };
            let is_hidden =
                |attributes: &[Attribute]| it.attrs.iter().chain(attributes).any(is_hidden);
            let methods = public_methods(it)
                .filter(|(_, attributes)| !face.contains(&owner) || is_hidden(attributes));
            found.extend(methods.map(|((_, name), _)| [&owner[..], &[name.to_string()]].concat()));
        }
        let own = public_name(item).map(|name| [&from[..], &[name.to_string()]].concat());
        found.extend(own);
    }
    found
}

/// Returns the name of an item that is `pub`.
fn public_name(item: &Item) -> Option<&Ident> {
    let (visibility, name) = match item {
        Item::Const(it) => (&it.vis, &it.ident),
        Item::Enum(it) => (&it.vis, &it.ident),
        Item::Fn(it) => (&it.vis, &it.sig.ident),
        Item::Static(it) => (&it.vis, &it.ident),
        Item::Struct(it) => (&it.vis, &it.ident),
        Item::Trait(it) => (&it.vis, &it.ident),
        Item::Type(it) => (&it.vis, &it.ident),
        Item::Union(it) => (&it.vis, &it.ident),
        _ => return None,
    };
    matches!(visibility, Visibility::Public(_)).then_some(name)
}

/// Returns the words in the code of each crate.
fn words_of_packages() -> BTreeMap<String, BTreeSet<String>> {
    let of_root = OF_ROOT.map(|folder| repository().join(folder));
    let rules = repository().join("tests/architecture");
    let mut all = BTreeMap::new();
    for package in packages() {
        let folder = package.sources.parent().unwrap();
        let mut files = rust_files(&package.sources);
        if package.is_member() {
            let beside = OF_ROOT.map(|name| folder.join(name)).into_iter();
            files.extend(beside.filter(|folder| folder.exists()).flat_map(|it| rust_files(&it)));
        } else {
            files.extend(of_root.iter().flat_map(|folder| rust_files(folder)));
            files.retain(|file| !file.starts_with(&rules));
        }
        let host = package.sources.join("host.rs");
        let words = files.iter().flat_map(|file| {
            let code = fs::read_to_string(file).unwrap();
            words_of(&code, *file == host)
        });
        all.insert(package.name, words.collect());
    }
    all
}

/// Returns the words in code, without comments. A list of what a crate offers is without its `use`s.
fn words_of(code: &str, is_list: bool) -> BTreeSet<String> {
    let code: Vec<_> = code.lines().filter_map(|line| line.split("//").next()).collect();
    let code = code.join("\n");
    let is_counted = |statement: &&str| !is_list || !statement.contains("pub use ");
    let words = code
        .split_inclusive(';')
        .filter(is_counted)
        .flat_map(|statement| statement.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.map(str::to_owned).collect()
}

/// Returns the names in the macros that each member exports.
fn names_in_macros(modules: &[Module]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for module in modules {
        for item in &module.items {
            let Item::Macro(it) = item else { continue };
            if it.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
                let text = it.mac.tokens.to_string();
                all.entry(module.package.clone()).or_default().extend(words_of(&text, false));
            }
        }
    }
    all
}

#[test]
fn words_are_those_of_code() {
    let code = "use a::b; // c\npub use d::{e};\nf(\"g\");";
    let words = |is_list| words_of(code, is_list).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!(words(false).trim(), "a b d e f g pub use");
    assert_eq!(words(true).trim(), "a b f g use");
}

#[test]
fn offered_items_are_those_that_no_user_sees() {
    let text = "
        pub struct Seen;
        pub(crate) fn f() {}
        pub struct Other(u8);
        impl Seen { pub fn a(&self) {} #[doc(hidden)] pub fn b(&self) {} }
        #[doc(hidden)] impl Seen { pub fn c(&self) {} }
        impl Other { pub fn d(&self) {} fn e(&self) {} }
    ";
    let modules = super::syntax::modules_of_text("m", text);
    let face = [["m", "Seen"].map(str::to_owned).to_vec()].into();
    let found = offered(&modules[0], &AllNames::of(&modules), &face);
    let found: Vec<_> = found.iter().map(|path| path[1..].join("::")).collect();
    assert_eq!(found, ["Seen", "Other", "Seen::b", "Seen::c", "Other::d"]);
}
