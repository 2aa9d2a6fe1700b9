//! Every promise of the documents has a test that goes beyond it, which `docs/promises.md` names.
//!
//! Errors are a promise without a row, a row without a promise, and a test that does not exist or
//! is not run.

use std::collections::BTreeSet;

use super::bounds::{read, rows, section};

/// The sections with promises: the rows of their tables, or the bold words of their lists. A row that ends with an empty cell
/// promises nothing.
const SECTIONS: [(&str, &str); 6] = [
    ("SECURITY.md", "What counts as a vulnerability"),
    ("SECURITY.md", "Trust boundaries"),
    ("docs/operations.md", "Bounds"),
    ("docs/operations.md", "Sandbox"),
    ("docs/files.md", "Bounds"),
    ("docs/configuration.md", "Logins of people"),
];

fn promises_of(document: &str, heading: &str) -> BTreeSet<String> {
    let section = section(document, heading);
    let in_bold = section.split("\n- **").skip(1).map(|item| item.split("**").next().unwrap());
    let in_bold = in_bold.map(|words| words.trim_end_matches('.').to_owned());
    let rows =
        rows(section).into_iter().filter(|row| row.last().is_some_and(|cell| !cell.is_empty()));
    in_bold.chain(rows.map(|row| row[0].clone())).collect()
}

/// Asserts that a test exists and is run.
fn assert_is_run(file: &str, test: &str) {
    let source = read(file);
    if file.ends_with(".mjs") {
        return assert!(source.contains(&format!("\ntest(\"{test}\"")), "{file} lacks {test}");
    }
    let (before, _) =
        source.split_once(&format!("fn {test}(")).unwrap_or_else(|| panic!("{file} lacks {test}"));
    let attributes = before.rsplit("\n\n").next().unwrap();
    // The store's promises are called by the tests of each store.
    let is_promise = file.contains("/contract/") || file.ends_with("_promises.rs");
    assert!(attributes.contains("test") || is_promise, "{file}: {test} is not a test");
    assert!(!attributes.contains("ignore"), "{file}: {test} is not run");
}

#[test]
fn every_promise_names_its_tests() {
    let listed = read("docs/promises.md");
    for (path, heading) in SECTIONS {
        let promises = promises_of(&read(path), heading);
        let target = path.strip_prefix("docs/").map_or_else(|| format!("../{path}"), str::to_owned);
        let anchor = heading.to_lowercase().replace(' ', "-");
        let tested = rows(section(&listed, &format!("[{heading}]({target}#{anchor})")));
        let names: BTreeSet<_> = tested.iter().map(|row| row[0].clone()).collect();
        assert_eq!(
            promises, names,
            "the promises of {path}#{anchor} (left) and those of docs/promises.md (right)"
        );
        for row in tested {
            let tests: Vec<_> = row[1].split("](../").collect();
            assert!(tests.len() > 1, "{} has no test", row[0]);
            for pair in tests.windows(2) {
                let (name, file) =
                    (pair[0].rsplit('[').next().unwrap(), pair[1].split(')').next().unwrap());
                assert_is_run(file, name);
            }
        }
    }
}

#[test]
fn promises_are_found_in_lists_and_in_tables() {
    let document = "# A\n\n- **One.** Is so.\n- no promise\n\n| a | b |\n|---|---|\n| two | c |\n| none | |\n\n## B\n\n- **Three.**\n";
    let found = |heading| promises_of(document, heading).into_iter().collect::<Vec<_>>();
    assert_eq!(
        (found("A"), found("B")),
        (vec!["One".to_owned(), "two".to_owned()], vec!["Three".to_owned()])
    );
}
