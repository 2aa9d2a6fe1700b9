//! The words in the code of each crate.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use syn::Item;

use super::{
    syntax::Module,
    workspace::{packages, repository, rust_files},
};

/// The folders beside `src` with code of a package.
const BESIDE: [&str; 4] = ["benches", "examples", "fuzz", "tests"];

/// The words in the code of a crate.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) words: BTreeSet<String>,
    /// The words after `.` or `::`.
    pub(crate) called: BTreeSet<String>,
}

/// Returns the words in the code of each crate.
pub(crate) fn code_of_packages() -> BTreeMap<String, Code> {
    // A name in the text of these rules is not a use.
    let rules = repository().join("tests/architecture");
    let mut all = BTreeMap::new();
    for package in packages() {
        let host = package.sources.join("host.rs");
        let folder = package.sources.parent().unwrap();
        let beside = BESIDE.map(|name| folder.join(name)).into_iter();
        let folders = [package.sources.clone()].into_iter().chain(beside);
        let files = folders.filter(|folder| folder.exists()).flat_map(|it| rust_files(&it));
        let mut code = Code::default();
        for file in files.filter(|file| !file.starts_with(&rules)) {
            code.add(&fs::read_to_string(&file).unwrap(), file == host);
        }
        all.insert(package.name, code);
    }
    all
}

impl Code {
    /// Adds the words of a text, without comments. The `use`s in a crate's list of offered items
    /// are left out.
    fn add(&mut self, text: &str, is_list: bool) {
        let text: Vec<_> = text.lines().filter_map(|line| line.split("//").next()).collect();
        let text = text.join("\n");
        let statements = text.split_inclusive(';');
        for statement in statements.filter(|text| !is_list || !text.contains("pub use ")) {
            let mut before = "";
            for word in statement.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_') {
                let name = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
                if !name.is_empty() {
                    self.words.insert(name.to_owned());
                    let is_called = before.ends_with(['.', ':']);
                    self.called.extend(is_called.then(|| name.to_owned()));
                }
                before = match word.trim() {
                    "" => before,
                    word => word,
                };
            }
        }
    }
}

/// Returns the names in the macros that each member exports.
pub(crate) fn names_in_macros(modules: &[Module]) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for module in modules {
        for item in &module.items {
            let Item::Macro(it) = item else { continue };
            if it.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
                let mut code = Code::default();
                code.add(&it.mac.tokens.to_string(), false);
                all.entry(module.package.clone()).or_default().extend(code.words);
            }
        }
    }
    all
}

#[test]
fn words_are_those_of_code() {
    let text = "use a::b; // c\npub use d::{e};\nf(\"g\").h(i).\n  j();";
    let words = |is_list| {
        let mut code = Code::default();
        code.add(text, is_list);
        let text = |words: BTreeSet<String>| words.into_iter().collect::<Vec<_>>().join(" ");
        (text(code.words), text(code.called))
    };
    assert_eq!(words(false), ("a b d e f g h i j pub use".to_owned(), "b h j".to_owned()));
    assert_eq!(words(true), ("a b f g h i j use".to_owned(), "b h j".to_owned()));
}
