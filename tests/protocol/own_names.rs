//! The table of `docs/protocol.md` with the names that this server adds to AG-UI.

use std::{env, fs};

use agui_protocol::own_names::ROWS;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/protocol.md");
const HEAD: &str = "| name | where | meaning |\n|---|---|---|\n";

#[test]
fn the_documented_table_is_that_of_the_code() {
    let rows = ROWS
        .iter()
        .map(|[name, carrier, meaning]| format!("| `{name}` | {carrier} |{meaning} |\n"));
    let table: String = rows.collect();
    let document = fs::read_to_string(DOCUMENT).unwrap();
    let (before, rest) = document.split_once(HEAD).unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let written = [before, HEAD, &table, "\n", after].concat();
    if env::var_os("UPDATE_DOCS").is_some() {
        return fs::write(DOCUMENT, &written).unwrap();
    }
    assert!(
        document == written,
        "`UPDATE_DOCS=1 cargo test --test rooms own_names` writes the table of docs/protocol.md"
    );
}
