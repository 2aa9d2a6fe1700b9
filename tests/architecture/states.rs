//! Every state that outlives the call which changes it is in one section, with its owner and its
//! bound: another caller can meet the data that one caller leaves there.
//!
//! The section is `docs/architecture.md#states`. A state here is a `static`, or a field of a type,
//! whose type has one of [`WORDS`] in it. Variables of a task are not found.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Fields, ItemEnum, ItemMacro, ItemMod, ItemStatic, ItemStruct, ItemType, Type, TypePath,
    TypeReference,
    visit::{self, Visit},
};

use super::{bounds::read, syntax::modules, workspace::shown};

/// The types of values that several tasks can change, beside `Atomic…`. `Sender`: the queue of a
/// channel.
const WORDS: [&str; 6] = ["Mutex", "RwLock", "OnceLock", "OnceCell", "Semaphore", "Sender"];

/// The types whose uses are states, as [`WORDS`]: the second table.
const BLOCKS: &str = "Building blocks";

/// Finds whether a type has one of the words. A reference is to the state of another type.
struct HasState<'w> {
    words: &'w BTreeSet<String>,
    found: bool,
}

impl Visit<'_> for HasState<'_> {
    fn visit_type_path(&mut self, path: &TypePath) {
        let names: Vec<_> =
            path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let last = names.last().map_or("", String::as_str);
        // A `oneshot` is used once.
        let is_for_one_value = names.iter().any(|name| name == "oneshot");
        self.found |=
            !is_for_one_value && (last.starts_with("Atomic") || self.words.contains(last));
        visit::visit_type_path(self, path);
    }

    fn visit_type_reference(&mut self, _: &TypeReference) {}
}

/// The states of one file, as `NAME`, `TYPE.FIELD` or `ENUM.VARIANT`.
struct States<'w> {
    words: &'w BTreeSet<String>,
    found: Vec<String>,
}

impl States<'_> {
    fn has_state(&self, of_type: &Type) -> bool {
        let mut search = HasState { words: self.words, found: false };
        search.visit_type(of_type);
        search.found
    }

    fn add_fields(&mut self, owner: &str, fields: &Fields) {
        for field in fields.iter().filter(|field| self.has_state(&field.ty)).collect::<Vec<_>>() {
            let name = field
                .ident
                .as_ref()
                .map_or_else(|| owner.to_owned(), |name| format!("{owner}.{name}"));
            self.found.push(name);
        }
    }
}

impl Visit<'_> for States<'_> {
    fn visit_item_static(&mut self, item: &ItemStatic) {
        if self.has_state(&item.ty) {
            self.found.push(item.ident.to_string());
        }
    }

    fn visit_item_struct(&mut self, item: &ItemStruct) {
        self.add_fields(&item.ident.to_string(), &item.fields);
    }

    fn visit_item_enum(&mut self, item: &ItemEnum) {
        for variant in &item.variants {
            if variant.fields.iter().any(|field| self.has_state(&field.ty)) {
                self.found.push(format!("{}.{}", item.ident, variant.ident));
            }
        }
    }

    fn visit_item_type(&mut self, item: &ItemType) {
        if self.has_state(&item.ty) {
            self.found.push(item.ident.to_string());
        }
    }

    /// A macro that declares types, such as `metrics!`, begins with the name of one.
    fn visit_item_macro(&mut self, item: &ItemMacro) {
        let first =
            item.mac.tokens.clone().into_iter().find(|token| matches!(token, TokenTree::Ident(_)));
        let is_thread_local =
            item.mac.path.segments.last().is_some_and(|name| name.ident == "thread_local");
        if !item.mac.path.is_ident("macro_rules")
            && (is_thread_local || self.has_word(item.mac.tokens.clone()))
        {
            self.found.extend(first.map(|name| name.to_string()));
        }
    }

    // Modules are visited one by one.
    fn visit_item_mod(&mut self, _: &ItemMod) {}
}

impl States<'_> {
    fn has_word(&self, tokens: TokenStream) -> bool {
        tokens.into_iter().any(|token| match token {
            TokenTree::Group(group) => self.has_word(group.stream()),
            TokenTree::Ident(name) => self.words.contains(&name.to_string()),
            _ => false,
        })
    }
}

/// Returns the states of all crates by the file in which they are, such as `crates/agui-run/src/runs.rs`.
fn states_of_sources(words: &BTreeSet<String>) -> BTreeSet<(String, String)> {
    let mut all = BTreeSet::new();
    for module in modules() {
        let mut states = States { words, found: Vec::new() };
        module.items.iter().for_each(|item| states.visit_item(item));
        let file = shown(&module.file);
        all.extend(states.found.into_iter().map(|name| (file.clone(), name)));
    }
    all
}

/// Returns the states of each table by its heading. The first column of a table has names, the second one a link to their file.
fn documented() -> BTreeMap<String, BTreeSet<(String, String)>> {
    let document = read("docs/architecture.md");
    let section = document.split_once("\n## States\n").unwrap().1.split("\n## ").next().unwrap();
    let mut tables = BTreeMap::new();
    for part in section.split("\n### ").skip(1) {
        let rows = part.lines().filter(|line| line.starts_with('|')).skip(2);
        let mut states = BTreeSet::new();
        for row in rows {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            assert!(cells.iter().all(|cell| !cell.is_empty()), "a cell is empty: {row}");
            let file = cells[1]
                .split_once("](../")
                .and_then(|(_, link)| link.split_once(')'))
                .map(|(file, _)| file);
            let file = file.unwrap_or_else(|| panic!("no link to a file: {row}"));
            let names = cells[0].split('`').skip(1).step_by(2);
            states.extend(names.map(|name| (file.to_owned(), name.to_owned())));
        }
        tables.insert(part.lines().next().unwrap().to_owned(), states);
    }
    tables
}

#[test]
fn every_state_is_in_the_list_with_its_owner_and_its_bound() {
    let documented = documented();
    let blocks = documented[BLOCKS].iter().map(|(_, name)| name.clone());
    let words = WORDS.iter().map(|word| (*word).to_owned()).chain(blocks).collect();
    let found = states_of_sources(&words);
    let documented: BTreeSet<_> = documented.into_values().flatten().collect();
    // A type stands for all of its fields.
    let of_type = |(file, name): &(String, String)| {
        (file.clone(), name.split('.').next().unwrap().to_owned())
    };
    let is_listed = |state: &&(String, String)| {
        documented.contains(*state) || documented.contains(&of_type(state))
    };
    let unlisted: Vec<_> = found.iter().filter(|state| !is_listed(state)).collect();
    assert!(
        unlisted.is_empty(),
        "docs/architecture.md#states lacks {} states: {unlisted:#?}",
        unlisted.len()
    );
    let types: BTreeSet<_> = found.iter().map(of_type).collect();
    let gone: Vec<_> = documented
        .iter()
        .filter(|state| !found.contains(*state) && !types.contains(*state))
        .collect();
    assert!(gone.is_empty(), "docs/architecture.md#states has states that do not exist: {gone:#?}");
}

#[test]
fn states_are_found_in_every_form() {
    let found = |text: &str| {
        let words = WORDS.iter().map(|word| (*word).to_owned()).collect();
        let mut states = States { words: &words, found: Vec::new() };
        states.visit_file(&syn::parse_str(text).unwrap());
        states.found
    };
    assert_eq!(found("fn f() { static A: LazyLock<Mutex<u8>> = LazyLock::new(g); }"), ["A"]);
    assert_eq!(found("static A: LazyLock<Regex> = LazyLock::new(g);"), [""; 0], "a constant");
    assert_eq!(
        found("struct A { a: Arc<parking_lot::Mutex<u8>>, b: AtomicU8, c: u8 }"),
        ["A.a", "A.b"]
    );
    assert_eq!(found("struct A(RwLock<u8>);"), ["A"]);
    assert_eq!(found("struct A<'a> { a: &'a Mutex<u8>, b: oneshot::Sender<u8> }"), [""; 0]);
    assert_eq!(found("enum A { B, C { d: OnceCell<u8> }, D(watch::Sender<u8>) }"), ["A.C", "A.D"]);
    assert_eq!(found("type A = Arc<OnceLock<u8>>;"), ["A"]);
    assert_eq!(
        found("metrics! { A { a: RwLock<u8> } } thread_local! { static B: u8 = 0; }"),
        ["A", "static"]
    );
}
