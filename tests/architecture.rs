//! The house rules that a compiler does not keep: who may import whom, and how long a file may be.

#![allow(clippy::unwrap_used, missing_docs)]

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Who may import whom. `app`, `lib` and `main` may import everybody.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("protocol", &[]),
    ("encode", &["protocol"]),
    ("agent", &["protocol"]),
    ("agents", &["agent", "protocol", "upstream"]),
    ("upstream", &[]),
    ("tools", &["protocol", "upstream"]),
    ("llm", &["agent", "tools", "protocol", "upstream"]),
    ("store", &["protocol"]),
    ("run", &["agent", "store", "protocol"]),
    ("auth", &["upstream"]),
    ("config", &[]),
    ("telemetry", &[]),
    ("http", &["run", "store", "auth", "encode", "protocol", "telemetry"]),
];

/// From here on a file is probably two things.
const LONGEST: usize = 500;

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

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The modules that a file names as `crate::…`, outside of documentation and tests.
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
    let first =
        |name: String| name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned();
    names.into_iter().map(first).filter(|name| !name.is_empty()).collect()
}

#[test]
fn modules_import_only_whom_they_may() {
    for (module, allowed) in MAY_IMPORT {
        let files = sources(&source_folder().join(module));
        assert!(!files.is_empty(), "{module} has moved");
        for file in files.iter().filter(|file| !file.ends_with("tests.rs")) {
            for import in imports(&fs::read_to_string(file).unwrap()) {
                let fine = import == *module || allowed.contains(&import.as_str());
                assert!(fine, "{} imports {import}, which {module} may not", file.display());
            }
        }
    }
}

#[test]
fn every_module_has_its_rule() {
    for entry in fs::read_dir(source_folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = path.file_name().unwrap().to_str().unwrap();
            let ruled = name == "app" || MAY_IMPORT.iter().any(|(module, _)| *module == name);
            assert!(ruled, "who may {name} import?");
        }
    }
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::{agent::{A, b}, run};\nuse crate::http::x; // crate::no\nlet a = crate::app::f();";
    assert_eq!(imports(text), ["agent", "run", "http", "app"]);
}

#[test]
fn files_stay_single_minded() {
    for file in sources(&source_folder()) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= LONGEST, "{} has {lines} lines: is it one thing?", file.display());
    }
}

#[test]
fn every_file_says_why_it_exists() {
    for file in sources(&source_folder()).iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.starts_with("//! "), "{} does not say what it is for", file.display());
    }
}
