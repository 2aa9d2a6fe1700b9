//! Every resource that a client can make grow is in one table, with its bounds.
//!
//! The table is `docs/operations.md#bounds`. A row without a metric, a metric that does not exist, and an option that
//! `config/default.toml` lacks are errors. Its tests are in `docs/promises.md`, which `promises.rs` checks.

use std::{collections::BTreeSet, fs};

use super::workspace::repository;

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Returns the text below a heading of any level.
pub(crate) fn section<'d>(document: &'d str, heading: &str) -> &'d str {
    let (_, after) = document
        .split_once(&format!("# {heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading}"));
    after.split("\n#").next().unwrap()
}

/// The cells of each row of the first table in a text.
pub(crate) fn rows(text: &str) -> Vec<Vec<String>> {
    let table = text
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    table
        .skip(2)
        .map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// The options that a cell names: `` `[section] one`, `two` ``.
fn options(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).map(|text| text.rsplit(' ').next().unwrap())
}

#[test]
fn every_bound_has_a_metric_that_shows_it() {
    let document = read("docs/operations.md");
    // `crates/agui-observe/src/metrics` compares its table with what the server serves.
    let metrics: BTreeSet<_> =
        rows(section(&document, "Metrics")).into_iter().map(|row| row[0].clone()).collect();
    for row in rows(section(&document, "Bounds")).into_iter().filter(|row| row[4] != "none") {
        let named: Vec<_> = options(&row[4]).map(|name| format!("`{name}`")).collect();
        assert!(!named.is_empty(), "{} has no metric", row[0]);
        for name in named {
            assert!(metrics.contains(&name), "{}: there is no metric {name}", row[0]);
        }
    }
}

#[test]
fn the_options_of_bounds_are_in_the_default_file() {
    let defaults = read("config/default.toml");
    for row in rows(section(&read("docs/operations.md"), "Bounds")) {
        for option in options(&row[2]) {
            let set = |line: &str| {
                line.trim_start_matches(['#', ' ']).starts_with(&format!("{option} = "))
            };
            assert!(
                defaults.lines().any(set),
                "{}: {option} is not in config/default.toml",
                row[0]
            );
        }
    }
}
