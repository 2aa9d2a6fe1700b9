//! The modules of the crates, as the compiler would find them from their `lib.rs`, without tests.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use syn::{Attribute, Expr, ExprLit, Item, Lit, Meta};

use super::workspace::{Package, packages};

/// The path of a module below the crate.
pub(crate) type ModulePath = Vec<String>;

/// A module with its items. Two modules that exclude each other by features have the same path.
pub(crate) struct Module {
    /// The crate, as paths in code write it.
    pub(crate) package: String,
    pub(crate) path: ModulePath,
    pub(crate) file: PathBuf,
    pub(crate) items: Vec<Item>,
}

impl Module {
    /// Returns the path of the module with its crate.
    pub(crate) fn full_path(&self) -> ModulePath {
        [std::slice::from_ref(&self.package), &self.path].concat()
    }
}

/// Reads all crates. Modules for tests are left out.
pub(crate) fn modules() -> Vec<Module> {
    packages().iter().flat_map(modules_of).collect()
}

/// Reads a crate. Modules for tests are left out.
pub(crate) fn modules_of(package: &Package) -> Vec<Module> {
    let mut modules = Vec::new();
    let file = package.sources.join("lib.rs");
    let items = parse(&file).items;
    collect(package, Vec::new(), &file, &package.sources, items, &mut modules);
    modules
}

/// Returns the files of a crate's modules, without modules for tests.
pub(crate) fn files_of(package: &Package) -> BTreeSet<PathBuf> {
    // Cached: several tests read all sources, and parsing them takes seconds.
    static FILES: LazyLock<BTreeSet<PathBuf>> =
        LazyLock::new(|| modules().into_iter().map(|module| module.file).collect());
    FILES.iter().filter(|file| file.starts_with(&package.sources)).cloned().collect()
}

/// Returns the modules of a crate with a single source text.
pub(crate) fn modules_of_text(package: &str, text: &str) -> Vec<Module> {
    let package = Package { name: package.to_owned(), sources: PathBuf::new() };
    let items = syn::parse_file(text).unwrap().items;
    let mut modules = Vec::new();
    collect(&package, Vec::new(), Path::new("lib.rs"), Path::new(""), items, &mut modules);
    modules
}

fn parse(file: &Path) -> syn::File {
    let text =
        fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn collect(
    package: &Package,
    path: ModulePath,
    file: &Path,
    folder: &Path,
    items: Vec<Item>,
    modules: &mut Vec<Module>,
) {
    let items: Vec<Item> =
        items.into_iter().filter(|item| !is_left_out(attributes(item))).collect();
    for item in &items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        let (child, below) =
            ([&path[..], std::slice::from_ref(&name)].concat(), folder.join(&name));
        match &module.content {
            Some((_, inline)) => collect(package, child, file, &below, inline.clone(), modules),
            None => {
                let alone = folder.join(format!("{name}.rs"));
                let named =
                    module.attrs.iter().find_map(path_of).map(|path| file.with_file_name(path));
                let file =
                    named.unwrap_or(if alone.exists() { alone } else { below.join("mod.rs") });
                collect(package, child, &file, &below, parse(&file).items, modules);
            }
        }
    }
    modules.push(Module { package: package.name.clone(), path, file: file.to_owned(), items });
}

/// Returns the file name of `#[path = "…"]`.
fn path_of(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(it) if it.path.is_ident("path") => match &it.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns whether an item is for tests or documentation only.
fn is_left_out(attributes: &[Attribute]) -> bool {
    let of_cfg = |attribute: &Attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string(),
        _ => String::new(),
    };
    let left_out = ["test", "doctest"];
    attributes.iter().map(of_cfg).any(|condition| {
        left_out.contains(&condition.as_str())
            || condition.starts_with("all (test")
            || condition.starts_with("any (test")
    })
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Union(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}
