//! The crates of the workspace and their files, and rules about them that no compiler checks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use super::{bounds::read, imports::code_of, syntax};

/// The root package, as paths in code write it.
pub(crate) const ROOT: &str = "agui_server";

/// The crates that only `server` knows, which puts everything together: agents with a model are agents like any other.
const ABOVE_RUNS: [&str; 4] = ["agui_llm", "agui_mcp", "agui_sandbox", "agui_tools"];

/// The only file of runs that knows how surfaces are drawn: it puts a run together, as a server does.
const DRAWS: &str = "crates/agui-run/src/drive/test_run.rs";

/// A crate of the workspace.
pub(crate) struct Package {
    /// The name in paths of code, such as `agui_run`.
    pub(crate) name: String,
    /// Its folder `src`.
    pub(crate) sources: PathBuf,
}

impl Package {
    /// Returns the path of a file's module below the crate. `lib.rs` is the crate itself.
    pub(crate) fn module_of(&self, file: &Path) -> Vec<String> {
        let path = file.strip_prefix(&self.sources).unwrap().with_extension("");
        let mut names: Vec<_> = path.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
        if names == ["lib"] || names.last().is_some_and(|name| name == "mod") {
            names.pop();
        }
        names
    }

    /// Returns whether a crate is a member below the root package.
    pub(crate) fn is_member(&self) -> bool {
        self.name != ROOT
    }
}

/// The folder of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns a file's path below the repository.
pub(crate) fn shown(file: &Path) -> String {
    file.strip_prefix(repository()).unwrap().to_str().unwrap().to_owned()
}

/// Returns the folders of the members, such as `agui-run`.
fn member_names() -> BTreeSet<String> {
    let folders = fs::read_dir(repository().join("crates")).unwrap().map(|entry| entry.unwrap());
    let members = folders.filter(|folder| folder.path().join("Cargo.toml").exists());
    members.map(|folder| folder.file_name().into_string().unwrap()).collect()
}

/// Returns all crates: the root package, then its members.
pub(crate) fn packages() -> Vec<Package> {
    let root = Package { name: ROOT.to_owned(), sources: repository().join("src") };
    let members = member_names().into_iter().map(|folder| Package {
        name: folder.replace('-', "_"),
        sources: repository().join("crates").join(folder).join("src"),
    });
    [root].into_iter().chain(members).collect()
}

/// Returns the Rust files in a folder and the folders below it.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // The builds of a workspace of its own, such as `fuzz`.
            let is_build = path.ends_with("target") || path.ends_with("node_modules");
            files.extend((!is_build).then(|| rust_files(&path)).into_iter().flatten());
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Returns the Rust files of all crates.
pub(crate) fn sources() -> Vec<PathBuf> {
    packages().iter().flat_map(|package| rust_files(&package.sources)).collect()
}

/// Returns the crates above each crate, which may name it: those that depend on it, also through others.
pub(crate) fn packages_above() -> BTreeMap<String, BTreeSet<String>> {
    let packages = packages();
    let manifest = |package: &Package| {
        fs::read_to_string(package.sources.parent().unwrap().join("Cargo.toml")).unwrap()
    };
    let members = || packages.iter().filter(|package| package.is_member());
    let below: BTreeMap<_, Vec<_>> = packages
        .iter()
        .map(|package| {
            let text = manifest(package);
            let is_named = |other: &&Package| {
                other.name != package.name && names_dependency(&text, &other.name)
            };
            (&package.name, members().filter(is_named).map(|other| &other.name).collect())
        })
        .collect();
    let mut above = BTreeMap::new();
    for package in members() {
        let mut users = BTreeSet::from([ROOT.to_owned()]);
        loop {
            let is_user = |below: &Vec<&String>| {
                below.iter().any(|name| **name == package.name || users.contains(*name))
            };
            let further: BTreeSet<_> = below
                .iter()
                .filter(|(_, below)| is_user(below))
                .map(|(name, _)| (*name).clone())
                .collect();
            if further.is_subset(&users) {
                break;
            }
            users.extend(further);
        }
        above.insert(package.name.clone(), users);
    }
    above
}

/// Returns whether a manifest has a line of its own for a crate.
fn names_dependency(manifest: &str, package: &str) -> bool {
    let name = package.replace('_', "-");
    let first_word = |line: &str| line.split(['.', ' ', '=']).next().map(str::to_owned);
    manifest.lines().any(|line| first_word(line).is_some_and(|word| word == name))
}

#[test]
fn the_image_gets_the_manifest_of_every_member() {
    let dockerfile = read("Dockerfile");
    let copied = dockerfile.lines().filter(|line| line.trim_start().starts_with("COPY "));
    let words = copied.flat_map(|line| line.split([' ', ',', '"', '[', ']']));
    let named: BTreeSet<_> = words
        .filter_map(|word| word.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
        .map(str::to_owned)
        .collect();
    assert_eq!(named, member_names(), "the manifests that Dockerfile copies, and those in crates/");
}

#[test]
fn routes_and_runs_know_neither_models_nor_tools() {
    let packages = packages();
    let is_checked = |package: &&Package| package.name == ROOT || package.name == "agui_run";
    for package in packages.iter().filter(is_checked) {
        for file in syntax::files_of(package) {
            let module = package.module_of(&file);
            if package.name == ROOT && module.first().is_none_or(|room| room != "http") {
                continue;
            }
            let code = code_of(&fs::read_to_string(&file).unwrap());
            let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            let may_draw = shown(&file) == DRAWS;
            let named =
                words.find(|word| ABOVE_RUNS.contains(word) || (*word == "surfaces" && !may_draw));
            assert_eq!(named, None, "{} names it", shown(&file));
        }
    }
    let manifest = read("crates/agui-run/Cargo.toml");
    for name in ABOVE_RUNS {
        assert!(!names_dependency(&manifest, name), "crates/agui-run/Cargo.toml names {name}");
    }
}

#[test]
fn a_file_is_found_as_the_module_that_it_is() {
    let package = Package { name: "a".to_owned(), sources: "/a/src".into() };
    let module = |file: &str| package.module_of(&Path::new("/a/src").join(file)).join("::");
    assert_eq!(
        ["lib.rs", "b.rs", "b/mod.rs", "b/c/d.rs", "b/lib.rs"].map(module),
        ["", "b", "b", "b::c::d", "b::lib"]
    );
}
