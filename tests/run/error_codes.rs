//! The codes of failed runs and model calls that the documentation explains.

use std::{collections::BTreeSet, fs};

use agui_base::RunErrorCode;

/// Returns the codes in the first column of a table.
fn documented(path: &str, heading: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("{}/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let section = text.split(&format!("\n{heading}\n")).nth(1).unwrap();
    let section = section.split("\n#").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('|').next());
    let codes = cells.flat_map(|cell| cell.split('`').step_by(2));
    let is_code =
        |code: &&str| !code.is_empty() && code.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    codes.filter(is_code).map(str::to_owned).collect()
}

#[test]
fn the_codes_are_those_of_the_documentation() {
    let mut listed = documented("docs/protocol.md", "### Run errors");
    listed.extend(documented("docs/configuration.md", "#### Run errors of agents with a model"));
    listed.push("remote_error".to_owned());
    let listed: BTreeSet<_> = listed.iter().map(String::as_str).collect();
    assert_eq!(RunErrorCode::ALL.iter().map(|code| code.as_str()).collect::<BTreeSet<_>>(), listed);
}
