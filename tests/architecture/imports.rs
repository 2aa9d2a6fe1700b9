//! Imports between the modules of a crate. Cargo sees to it that crates use each other in one direction.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use super::{
    syntax,
    workspace::{Package, packages},
};

#[test]
fn no_files_of_a_crate_import_each_other_in_a_cycle() {
    for package in packages() {
        if let Some(cycle) = find_cycle(&imports_of(&package)) {
            panic!("files of {} import each other in a cycle: {}", package.name, cycle.join(" → "));
        }
    }
}

#[test]
fn cycles_are_found_through_re_exports_and_parents() {
    let found = |files: &[(&str, &str)]| find_cycle(&imports(files)).is_some();
    let root = ("m", "mod a; mod b; pub use a::{A, inner::Deep}; pub use b::B;");
    assert!(!found(&[root, ("m::a", "use super::B; struct A;"), ("m::b", "struct B;")]));
    assert!(found(&[root, ("m::a", "use super::B;"), ("m::b", "use super::{a::A};")]));
    assert!(found(&[root, ("m::a", "use super::B;"), ("m::b", "fn f() -> super::A {}")]));
    assert!(found(&[
        root,
        ("m::a", "use crate::m::{x, B as C};"),
        ("m::b", "use crate::{m::A, y};")
    ]));
    let inner = ("m::a::inner", "use super::super::B;");
    assert!(found(&[root, ("m::a", "mod inner;"), inner, ("m::b", "use super::Deep;")]));
    assert!(!found(&[
        root,
        ("m::a", "mod inner;"),
        inner,
        ("m::b", "#[cfg(test)] mod t { use super::Deep; }")
    ]));
    assert!(found(&[("m", "mod a; struct S; fn f() { a::g(); }"), ("m::a", "use super::S;")]));
}

#[test]
fn cycles_are_found_through_the_root_of_a_crate() {
    let found = |files: &[(&str, &str)]| find_cycle(&imports(files)).is_some();
    let root = ("", "mod a; mod b; pub use a::A; pub use b::B;");
    assert!(!found(&[root, ("a", "use crate::B;"), ("b", "struct B;")]));
    assert!(found(&[root, ("a", "use crate::B;"), ("b", "use crate::A;")]));
    assert!(found(&[("", "mod a; struct S; fn f() { a::g(); }"), ("a", "use crate::S;")]));
    let inline = ("", "mod a; pub struct S; pub mod m { pub use crate::S; }");
    assert!(!found(&[inline, ("a", "use crate::S;")]));
    let foreign = ("", "mod a; pub use agui_b::a::A;");
    assert!(!found(&[foreign, ("a", "use crate::A; use agui_b::a;")]));
}

/// The place of the files beside the folders that [`Layers`] does not name.
const OTHERS: &str = "…";

/// The parts of a folder from the highest to the lowest: its folders, and files beside them. A part uses only those after it.
/// Files that are not named are above all parts, or where [`OTHERS`] stands.
struct Layers {
    package: &'static str,
    folder: &'static [&'static str],
    parts: &'static [&'static str],
    /// Files without a place: a part below uses them, and they use a part above it. `mod` is the file of the folder itself.
    between: &'static [&'static str],
}

const LAYERS: &[Layers] = &[
    Layers {
        package: "agui_server",
        folder: &[],
        parts: &["server", "clients", "http", "auth"],
        between: &[],
    },
    Layers {
        package: "agui_server",
        folder: &["http"],
        parts: &[
            "connect",
            "agents",
            "files",
            "threads",
            "read_run",
            "run_response",
            "follow",
            "client",
            "fallback",
            "own_path",
            "accept",
            "playground",
            "openapi",
            "sse_response",
            "route_list",
            "etag",
            "response_budget",
            "store_probe",
            "allow",
            "own_path",
            "error",
        ],
        between: &[
            "client_encoder",
            "mod",
            "options",
            "refusal_response",
            "routes",
            "run_document",
            "send_message",
            "state",
        ],
    },
    Layers {
        package: "agui_run",
        folder: &[],
        parts: &[
            "threads",
            OTHERS,
            "persist",
            "turn",
            "log",
            "drive",
            "conversation",
            "events",
            "limits",
            "control",
            "options",
            "measured_store",
        ],
        between: &[],
    },
    Layers {
        package: "agui_llm",
        folder: &[],
        parts: &[
            "testing",
            "agent",
            "repair",
            "window",
            "call_meter",
            "call_content",
            "history",
            "providers",
            "written_syntax",
            "known_models",
            "transport",
            "call_trace",
            "learned",
            "refusal",
        ],
        between: &["form", "model", "options"],
    },
];

impl Layers {
    /// Returns the place of a part, counted from the highest one.
    fn place(&self, part: &str) -> usize {
        let place = |part: &str| self.parts.iter().position(|layer| *layer == part);
        place(part).or_else(|| place(OTHERS)).map_or(0, |place| place + 1)
    }

    fn is_upward(&self, from: &str, to: &str) -> bool {
        let has_place = |part: &str| !self.between.contains(&part);
        has_place(from) && has_place(to) && self.place(to) < self.place(from)
    }
}

#[test]
fn layers_use_only_the_layers_below_them() {
    let packages = packages();
    for layers in LAYERS {
        let package = packages.iter().find(|package| package.name == layers.package).unwrap();
        let path: Vec<_> = layers.folder.iter().map(|name| (*name).to_owned()).collect();
        let folder = package.sources.join(path.join("/"));
        for entry in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.file_name().unwrap().to_str().unwrap();
            let is_named = layers.parts.contains(&name);
            assert!(!entry.is_dir() || is_named, "add {} to LAYERS", entry.display());
        }
        for name in layers.parts.iter().chain(layers.between).filter(|name| **name != OTHERS) {
            let exists = ["", ".rs"].map(|end| folder.join(format!("{name}{end}")).exists());
            assert!(exists.contains(&true), "{}/{name} is in LAYERS", folder.display());
        }
        let uses = uses_of_parts(&path, &imports_of(package));
        let upward: Vec<_> = uses.iter().filter(|(from, to)| layers.is_upward(from, to)).collect();
        assert!(
            upward.is_empty(),
            "{}: layers use layers above them: {upward:?}",
            folder.display()
        );
    }
}

/// Two folders in one folder never use each other, also not through a third one. A file beside
/// folders may use them and be used by them, because it puts them together or has their shared
/// code: the order of single files is checked above. [`LAYERS`] names files that have places, too.
#[test]
fn folders_beside_each_other_use_each_other_in_one_direction() {
    let mut faults = Vec::new();
    for package in packages() {
        let imports = imports_of(&package);
        let folders: BTreeSet<_> = imports
            .keys()
            .filter_map(|module| module.split_last())
            .map(|(_, folder)| folder)
            .collect();
        for folder in folders {
            faults.extend(
                cycle_of_folders(folder, &imports)
                    .map(|cycle| format!("{}/{}: {cycle}", package.name, folder.join("/"))),
            );
        }
    }
    assert!(faults.is_empty(), "folders use each other:\n{}", faults.join("\n"));
}

#[test]
fn a_use_back_up_between_folders_is_found_where_no_files_import_each_other() {
    let found = |further: &[(&str, &str)]| {
        let files = [
            ("m", "mod f; mod g; mod h;"),
            ("m::f", "mod a; mod b;"),
            ("m::g", "mod c; mod d;"),
            ("m::h", "mod e;"),
        ];
        let uses = [
            ("m::f::a", "use crate::m::g::c::C;"),
            ("m::f::b", "struct B;"),
            ("m::g::c", "struct C;"),
        ];
        cycle_of_folders(&["m".to_owned()], &imports(&[&files[..], &uses, further].concat()))
            .is_some()
    };
    assert!(!found(&[]));
    assert!(found(&[("m::g::d", "use crate::m::f::b::B;")]));
    assert!(!found(&[("m::h::e", "use crate::m::f::b::B;")]));
    assert!(found(&[
        ("m::g::d", "use super::super::h::e::E;"),
        ("m::h::e", "struct E(crate::m::f::b::B);")
    ]));
}

/// Returns the imports between the modules of a crate, without tests.
fn imports_of(package: &Package) -> Imports {
    let files = syntax::files_of(package).into_iter();
    let modules = files
        .map(|file| (package.module_of(&file), Code::read(&fs::read_to_string(&file).unwrap())));
    imports_between(&modules.collect())
}

/// Returns the uses between parts of a folder. The part of its `mod.rs` or `lib.rs` is called
/// `mod`.
fn uses_of_parts(folder: &[String], imports: &Imports) -> BTreeSet<(String, String)> {
    let part = |module: &[String]| -> Option<String> {
        let inside = module.strip_prefix(folder)?;
        Some(inside.first().map_or("mod", String::as_str).to_owned())
    };
    let mut uses = BTreeSet::new();
    for (module, targets) in imports {
        let Some(from) = part(module) else { continue };
        uses.extend(targets.iter().filter_map(|target| Some((from.clone(), part(target)?))));
    }
    uses.retain(|(from, to)| from != to);
    uses
}

/// Returns the uses between folders in a folder that lead back to their beginning, if there are some.
fn cycle_of_folders(folder: &[String], imports: &Imports) -> Option<String> {
    let is_folder = |part: &String| {
        let path = [folder, std::slice::from_ref(part)].concat();
        imports.keys().any(|module| module.starts_with(&path) && module.len() > path.len())
    };
    let mut uses = uses_of_parts(folder, imports);
    uses.retain(|(from, to)| is_folder(from) && is_folder(to));
    loop {
        // A folder that uses no other one, or that no other one uses, is in no cycle.
        let users: BTreeSet<_> = uses.iter().map(|(from, _)| from.clone()).collect();
        let used: BTreeSet<_> = uses.iter().map(|(_, to)| to.clone()).collect();
        let before = uses.len();
        uses.retain(|(from, to)| users.contains(to) && used.contains(from));
        if uses.len() == before {
            break;
        }
    }
    let shown: Vec<_> = uses.iter().map(|(from, to)| format!("{from} → {to}")).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// The names that a module uses.
#[derive(Default)]
struct Code {
    used: Vec<Vec<String>>,
    /// A re-export is not a use.
    re_exported: Vec<Vec<String>>,
}

impl Code {
    fn read(text: &str) -> Self {
        let (mut code, mut rest) = (Self::default(), String::new());
        for statement in code_of(text).split_inclusive(';') {
            match use_tree(statement) {
                Some((true, tree)) => code.re_exported.extend(flatten(&tree)),
                Some((false, tree)) => code.used.extend(flatten(&tree)),
                None => rest.push_str(statement),
            }
        }
        code.used.extend(inline_paths(&rest));
        code
    }
}

/// The code of each module by its path, such as `["log", "live"]`.
type Modules = BTreeMap<Vec<String>, Code>;

/// The modules whose items each module uses.
type Imports = BTreeMap<Vec<String>, BTreeSet<Vec<String>>>;

/// Returns the imports between modules with these texts, by their paths. The crate's path is empty.
fn imports(files: &[(&str, &str)]) -> Imports {
    let path = |text: &str| -> Vec<String> {
        text.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    imports_between(&files.iter().map(|(module, text)| (path(module), Code::read(text))).collect())
}

/// Returns the code without comments and tests.
pub(crate) fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = code.split("#[cfg(test)] mod").next().unwrap_or_default();
    code.lines().filter_map(|line| line.split("//").next()).collect::<Vec<_>>().join("\n")
}

/// Returns a cycle of imports, if there is one.
fn find_cycle(imports: &Imports) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    imports.keys().find_map(|module| visit(module, imports, &mut done, &mut Vec::new()))
}

fn visit<'m>(
    module: &'m Vec<String>,
    imports: &'m Imports,
    done: &mut BTreeSet<&'m Vec<String>>,
    path: &mut Vec<&'m Vec<String>>,
) -> Option<Vec<String>> {
    if let Some(begin) = path.iter().position(|it| *it == module) {
        return Some(path[begin..].iter().chain([&module]).map(|it| it.join("::")).collect());
    }
    if !done.contains(module) {
        path.push(module);
        let found = imports[module].iter().find_map(|next| visit(next, imports, done, path));
        path.pop();
        done.insert(module);
        return found;
    }
    None
}

/// Returns the modules whose items each module uses.
fn imports_between(modules: &Modules) -> Imports {
    let targets = |(module, code): (&Vec<String>, &Code)| {
        let targets = code.used.iter().filter_map(|path| target(module, path, modules));
        (module.clone(), targets.filter(|target| target != module).collect())
    };
    modules.iter().map(targets).collect()
}

/// Returns whether a `use` statement is a re-export, and its tree with single spaces.
fn use_tree(statement: &str) -> Option<(bool, String)> {
    let at = statement
        .find("use ")
        .filter(|at| statement[..*at].chars().last().is_none_or(char::is_whitespace))?;
    let before = statement[..at].lines().last().unwrap_or_default();
    let tree =
        statement[at + 4..].trim_end_matches(';').split_whitespace().collect::<Vec<_>>().join(" ");
    Some((before.contains("pub"), tree))
}

/// Returns the paths of a `use` tree such as `a::{b, c::d as e}`.
fn flatten(tree: &str) -> Vec<Vec<String>> {
    let path = |text: &str| -> Vec<String> {
        let text = text.split(" as ").next().unwrap_or_default();
        text.split("::")
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect()
    };
    let Some((prefix, group)) = tree.split_once('{') else { return vec![path(tree)] };
    let group = group.trim_end().strip_suffix('}').unwrap_or(group);
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in group.chars() {
        match c {
            ',' if depth == 0 => items.push(String::new()),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                items.last_mut().unwrap().push(c);
            }
        }
    }
    let items =
        items.iter().filter(|item| !item.trim().is_empty()).flat_map(|item| flatten(item.trim()));
    items.map(|item| [path(prefix), item].concat()).collect()
}

/// Returns the paths in code outside of `use` statements.
fn inline_paths(code: &str) -> Vec<Vec<String>> {
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    let paths = words
        .filter(|word| word.contains("::"))
        .map(|word| word.split("::").map(str::to_owned).collect());
    paths.filter(|path: &Vec<String>| !path[0].is_empty()).collect()
}

/// Returns the module that defines the item of a path, if it is one of `modules`.
fn target(from: &[String], path: &[String], modules: &Modules) -> Option<Vec<String>> {
    let mut module = from.to_vec();
    let mut names = path.iter();
    let mut next = names.next();
    match next.map(String::as_str) {
        Some("crate") => (module, next) = (Vec::new(), names.next()),
        Some("self") => next = names.next(),
        Some("super") => {}
        Some(child) if modules.contains_key(&[from, &[child.to_owned()]].concat()) => {}
        _ => return None,
    }
    while next.is_some_and(|name| name == "super") {
        module.pop();
        next = names.next();
    }
    while let Some(name) = next {
        let child = [&module[..], std::slice::from_ref(name)].concat();
        if !modules.contains_key(&child) {
            break;
        }
        (module, next) = (child, names.next());
    }
    let code = modules.get(&module)?;
    // If the module re-exports the item, follow the re-export. Otherwise the path names the module or an item of it. A module
    // in the same file, such as `macros` in `lib.rs`, may re-export an item of the file's module.
    let is_itself = |path: &[String]| match path {
        [first, inside @ .., _] => first == "crate" && *inside == module[..],
        _ => false,
    };
    let mut re_exports = code.re_exported.iter();
    let re_exported = re_exports.find(|path| path.last() == next && !is_itself(path));
    match re_exported {
        Some(path) => target(&module, path, modules),
        None => Some(module),
    }
}
