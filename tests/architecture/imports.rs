//! Imports between modules, and the length of a file.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// The rooms of `src` from the lowest to the highest. A room uses the rooms of the rows above its own, and none of its row.
const ORDER: &[&[&str]] = &[
    &["base"],
    &["protocol"],
    &["upstream"],
    &["auth"],
    &["observe", "store"],
    &["files"],
    &["agent"],
    &["surfaces", "tools"],
    &["llm"],
    &["run"],
    &["threads"],
    &["http"],
    &["server"],
];

/// Agents with a model are agents like any other, and what they draw are activities like any other: only `server`, which puts
/// them together, knows of models, tools and surfaces.
const NEVER: &[(&str, &[&str])] = &[
    ("run", &["surfaces", "tools", "llm"]),
    ("threads", &["surfaces", "tools", "llm"]),
    ("http", &["surfaces", "tools", "llm"]),
];

/// Returns the rooms that a room may use.
fn allowed(room: &str) -> Vec<&'static str> {
    let below =
        ORDER.iter().take_while(|row| !row.contains(&room)).flat_map(|row| row.iter().copied());
    let never = NEVER.iter().find(|(name, _)| *name == room).map_or(&[][..], |(_, rooms)| *rooms);
    below.filter(|name| !never.contains(name)).collect()
}

/// A longer file probably has two responsibilities.
const MAX_LINES: usize = 500;

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

pub(crate) fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn module_folders() -> Vec<PathBuf> {
    fs::read_dir(source_folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect()
}

/// Returns the modules that a file names as `crate::…` outside of documentation and tests.
fn imports(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or_default();
    let code: String = code.lines().filter_map(|line| line.split("//").next()).collect();
    let code: String = code.split_whitespace().collect();
    let mut names = Vec::new();
    for rest in code.split("crate::").skip(1) {
        if let Some(group) = rest.strip_prefix('{') {
            // The first name of each item of the group, at its own level.
            let (mut depth, mut item) = (0, String::new());
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => names.push(std::mem::take(&mut item)),
                    _ if depth == 0 => item.push(c),
                    _ => {}
                }
            }
            names.push(item);
        } else {
            names.push(rest.to_owned());
        }
    }
    let first = |name: String| {
        name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned()
    };
    names.into_iter().map(first).filter(|name| !name.is_empty()).collect()
}

#[test]
fn rooms_use_only_the_rooms_below_them() {
    let mut faults = Vec::new();
    for room in ORDER.iter().flat_map(|row| row.iter()) {
        let allowed = allowed(room);
        let files = sources(&source_folder().join(room));
        assert!(!files.is_empty(), "{room} has moved");
        for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
            let imports = imports(&fs::read_to_string(file).unwrap());
            let above = imports
                .iter()
                .filter(|import| *import != room && !allowed.contains(&import.as_str()));
            faults.extend(above.map(|import| format!("{} uses {import}", file.display())));
        }
    }
    assert!(faults.is_empty(), "rooms use rooms that are not below them:\n{}", faults.join("\n"));
}

#[test]
fn every_room_has_a_place_in_the_order() {
    let folders = module_folders();
    let names = folders.iter().map(|folder| folder.file_name().unwrap().to_str().unwrap());
    let without: Vec<_> =
        names.filter(|name| !ORDER.iter().any(|row| row.contains(name))).collect();
    assert!(without.is_empty(), "add to ORDER: {without:?}");
}

#[test]
fn features_select_whole_modules() {
    for file in sources(&source_folder()) {
        let declares = file.ends_with("mod.rs") || file.parent() == Some(&source_folder());
        let in_server = file.starts_with(source_folder().join("server"));
        let uses_features = fs::read_to_string(&file).unwrap().contains("cfg(feature");
        assert!(
            declares || in_server || !uses_features,
            "{}: put #[cfg(feature)] on the declaration of a module",
            file.display()
        );
    }
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::{agent::{A, b}, run};\nuse crate::http::x; // crate::no\nlet a = crate::app::f();";
    assert_eq!(imports(text), ["agent", "run", "http", "app"]);
}

#[test]
fn files_have_at_most_500_lines() {
    for file in sources(&source_folder()) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines: split it", file.display());
    }
}

#[test]
fn every_file_starts_with_a_doc_comment() {
    for file in sources(&source_folder()).iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.starts_with("//! "), "{} has no `//!` comment on its purpose", file.display());
    }
}

#[test]
fn no_files_of_a_module_import_each_other_in_a_cycle() {
    for folder in module_folders() {
        let module = folder.file_name().unwrap().to_str().unwrap();
        if let Some(cycle) = find_cycle(&modules_of(&folder)) {
            panic!("the files of {module} import each other in a cycle: {}", cycle.join(" → "));
        }
    }
}

#[test]
fn cycles_are_found_through_re_exports_and_parents() {
    let found = |files: &[(&str, &str)]| find_cycle(&modules(files)).is_some();
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

/// The layers of a room from the highest to the lowest: its folders, and the files beside them that the folders use. The other
/// files beside the folders, such as `run/start.rs`, are above all layers. A layer uses only those after it.
const LAYERS: &[(&str, &[&str])] = &[(
    "run",
    &[
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
)];

#[test]
fn the_layers_of_a_room_use_only_the_layers_below_them() {
    for (room, layers) in LAYERS {
        let place = |part: &str| layers.iter().position(|layer| *layer == part);
        for folder in
            fs::read_dir(source_folder().join(room)).unwrap().map(|entry| entry.unwrap().path())
        {
            let name = folder.file_name().unwrap().to_str().unwrap();
            assert!(!folder.is_dir() || place(name).is_some(), "add {room}/{name} to LAYERS");
        }
        let uses = uses_of_parts(&[(*room).to_owned()], &modules_of(&source_folder().join(room)));
        let is_upward = |(from, to): &&(String, String)| {
            place(from).is_some_and(|from| place(to).is_none_or(|to| to < from))
        };
        let upward: Vec<_> = uses.iter().filter(is_upward).collect();
        assert!(upward.is_empty(), "layers of {room} use layers above them: {upward:?}");
    }
}

/// Two folders in one folder never use each other, also not through a third one. Files beside folders, which put them together
/// or are what the folders share, may use them and be used by them: the order of single files is checked above. Where these
/// have places, too, [`LAYERS`] names them.
#[test]
fn folders_beside_each_other_use_each_other_in_one_direction() {
    let mut faults = Vec::new();
    for room in module_folders() {
        let modules = modules_of(&room);
        let folders: BTreeSet<_> =
            modules.keys().map(|module| &module[..module.len() - 1]).collect();
        for folder in folders.into_iter().filter(|folder| !folder.is_empty()) {
            faults.extend(
                cycle_of_folders(folder, &modules)
                    .map(|cycle| format!("{}: {cycle}", folder.join("/"))),
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
        cycle_of_folders(&["m".to_owned()], &modules(&[&files[..], &uses, further].concat()))
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

/// Returns the modules of the files in a folder, without tests.
fn modules_of(folder: &Path) -> Modules {
    let files = sources(folder).into_iter().filter(|file| !file.ends_with("tests.rs"));
    files.map(|file| (module_of(&file), code_of(&fs::read_to_string(&file).unwrap()))).collect()
}

/// Returns which parts of a folder use which. The part of its `mod.rs` is called `mod`.
fn uses_of_parts(folder: &[String], modules: &Modules) -> BTreeSet<(String, String)> {
    let part = |module: &[String]| -> Option<String> {
        let inside = module.strip_prefix(folder)?;
        Some(inside.first().map_or("mod", String::as_str).to_owned())
    };
    let mut uses = BTreeSet::new();
    for module in modules.keys() {
        let Some(from) = part(module) else { continue };
        uses.extend(
            imported(module, modules)
                .iter()
                .filter_map(|target| Some((from.clone(), part(target)?))),
        );
    }
    uses.retain(|(from, to)| from != to);
    uses
}

/// Returns the uses between folders in a folder that lead back to their beginning, if there are some.
fn cycle_of_folders(folder: &[String], modules: &Modules) -> Option<String> {
    let is_folder = |part: &String| {
        let path = [folder, std::slice::from_ref(part)].concat();
        modules.keys().any(|module| module.starts_with(&path) && module.len() > path.len())
    };
    let mut uses = uses_of_parts(folder, modules);
    uses.retain(|(from, to)| is_folder(from) && is_folder(to));
    loop {
        // A folder that uses no other one is in no cycle.
        let users: BTreeSet<_> = uses.iter().map(|(from, _)| from.clone()).collect();
        let before = uses.len();
        uses.retain(|(_, to)| users.contains(to));
        if uses.len() == before {
            break;
        }
    }
    let shown: Vec<_> = uses.iter().map(|(from, to)| format!("{from} → {to}")).collect();
    (!shown.is_empty()).then(|| shown.join(", "))
}

/// The code of each module by its path, such as `["run", "log", "live"]`.
type Modules = BTreeMap<Vec<String>, String>;

fn modules(files: &[(&str, &str)]) -> Modules {
    files
        .iter()
        .map(|(path, text)| (path.split("::").map(str::to_owned).collect(), code_of(text)))
        .collect()
}

/// Returns the path of a file's module.
fn module_of(file: &Path) -> Vec<String> {
    let path = file.strip_prefix(source_folder()).unwrap().with_extension("");
    let names = path.iter().map(|name| name.to_str().unwrap().to_owned());
    names.filter(|name| name != "mod").collect()
}

/// Returns the code without comments and tests.
fn code_of(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code = code.split("#[cfg(test)] mod").next().unwrap_or_default();
    code.lines().filter_map(|line| line.split("//").next()).collect::<Vec<_>>().join("\n")
}

/// Returns a cycle of imports, if there is one.
fn find_cycle(modules: &Modules) -> Option<Vec<String>> {
    let edges: BTreeMap<_, _> =
        modules.keys().map(|module| (module, imported(module, modules))).collect();
    let mut done = BTreeSet::new();
    modules.keys().find_map(|module| visit(module, &edges, &mut done, &mut Vec::new()))
}

fn visit<'m>(
    module: &'m Vec<String>,
    edges: &'m BTreeMap<&Vec<String>, BTreeSet<Vec<String>>>,
    done: &mut BTreeSet<&'m Vec<String>>,
    path: &mut Vec<&'m Vec<String>>,
) -> Option<Vec<String>> {
    if let Some(begin) = path.iter().position(|it| *it == module) {
        return Some(path[begin..].iter().chain([&module]).map(|it| it.join("::")).collect());
    }
    if !done.contains(module) {
        path.push(module);
        let found = edges[module].iter().find_map(|next| visit(next, edges, done, path));
        path.pop();
        done.insert(module);
        return found;
    }
    None
}

/// Returns the modules whose items a module uses. A re-export is not a use.
fn imported(module: &[String], modules: &Modules) -> BTreeSet<Vec<String>> {
    let code = &modules[module];
    let (mut paths, mut rest) = (Vec::new(), String::new());
    for statement in code.split_inclusive(';') {
        match use_tree(statement) {
            Some((true, _)) => {}
            Some((false, tree)) => paths.extend(flatten(&tree)),
            None => rest.push_str(statement),
        }
    }
    paths.extend(inline_paths(&rest));
    let targets = paths.into_iter().filter_map(|path| target(module, &path, modules));
    targets.filter(|target| target != module).collect()
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
    // If the module re-exports the item, follow the re-export. Otherwise the path names the module or an item of it.
    let re_exports =
        code.split_inclusive(';').filter_map(use_tree).filter(|(is_public, _)| *is_public);
    let re_exported =
        re_exports.flat_map(|(_, tree)| flatten(&tree)).find(|path| path.last() == next);
    match re_exported {
        Some(path) => target(&module, &path, modules),
        None => Some(module),
    }
}
