//! The length of a file, its first line, the form of its comments, and the items that features select.

use std::fs;

use super::workspace::{packages, rust_files, shown, sources};

/// A longer file probably has two responsibilities.
const MAX_LINES: usize = 500;

/// The features that only tests switch on: they may select single items.
const OF_TESTS: [&str; 2] = ["schema", "testing"];

/// Returns the features by which single features select, as in `#[cfg(feature = "x")]`.
fn selecting(text: &str) -> Vec<&str> {
    let conditions = text.split("cfg(feature = \"").skip(1);
    conditions.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn features_select_whole_modules() {
    let mut faults = Vec::new();
    for package in packages() {
        for file in rust_files(&package.sources) {
            let is_root = !package.is_member();
            // `lib.rs`, the files of modules with others below them, and lists of what users or other crates see.
            let is_list = file.parent() == Some(&package.sources)
                && (is_root || file.ends_with("lib.rs") || file.ends_with("host.rs"));
            let in_server = is_root && file.starts_with(package.sources.join("server"));
            if file.ends_with("mod.rs") || is_list || in_server {
                continue;
            }
            let text = fs::read_to_string(&file).unwrap();
            let features = selecting(&text).into_iter().filter(|name| !OF_TESTS.contains(name));
            faults.extend(features.map(|feature| format!("{}: {feature}", shown(&file))));
        }
    }
    assert!(
        faults.is_empty(),
        "put #[cfg(feature)] on the declaration of a module:\n{}",
        faults.join("\n")
    );
}

#[test]
fn features_are_found_in_conditions() {
    let text = "#[cfg(feature = \"a\")] fn f() {} #[cfg(test)] #[cfg(feature = \"b\")] mod m;";
    assert_eq!(selecting(text), ["a", "b"]);
}

#[test]
fn files_have_at_most_500_lines() {
    for file in sources() {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines: split it", shown(&file));
    }
}

/// Returns the headings and the steps of numbered lists that a formatter has joined with a text.
fn joined(text: &str) -> Vec<&str> {
    let is_joined = |line: &&str| {
        let Some(comment) = line.trim_start().strip_prefix("//") else { return false };
        let heading = comment.trim_start_matches(['/', '!', ' ']).strip_prefix("# ");
        let has_title = heading
            .is_some_and(|rest| ["Errors ", "Panics "].iter().any(|title| rest.starts_with(title)));
        has_title || ["2", "3", "4"].iter().any(|step| comment.contains(&format!(". {step}. ")))
    };
    text.lines().filter(is_joined).collect()
}

#[test]
fn headings_and_steps_of_doc_comments_stand_alone() {
    let faults = sources().into_iter().flat_map(|file| {
        let text = fs::read_to_string(&file).unwrap();
        let found: Vec<_> = joined(&text).into_iter().map(str::to_owned).collect();
        found.into_iter().map(move |line| format!("{}: {line}", shown(&file)))
    });
    let faults: Vec<_> = faults.collect();
    assert!(faults.is_empty(), "begin a line for it:\n{}", faults.join("\n"));
}

#[test]
fn joined_headings_and_steps_are_found() {
    let text = "/// # Errors The URL is wrong.\n//! 1. Ask. 2. Go.\n/// # Errors\n/// 1. Ask.\nlet a = 1.;";
    assert_eq!(joined(text), ["/// # Errors The URL is wrong.", "//! 1. Ask. 2. Go."]);
}

#[test]
fn every_file_starts_with_a_doc_comment() {
    for file in sources().iter().filter(|file| !file.ends_with("tests.rs")) {
        let text = fs::read_to_string(file).unwrap();
        assert!(text.starts_with("//! "), "{} has no `//!` comment on its purpose", shown(file));
    }
}
