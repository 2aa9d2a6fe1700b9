//! The check of a whole database for damaged rows.

use std::cell::RefCell;

use super::{
    EventPage, RunStatus, StoreResult,
    damage::{Cell, DbRow, describe},
    file_chunks::read_chunk,
    rows,
};

/// A check ends at this number of damaged rows.
pub(super) const MAX_DAMAGED_ROWS: usize = 1000;

/// A table, and the statement that reads all its rows for a check. A column `lacks_…` is true if
/// the row refers to a row that does not exist.
pub(super) const CHECKED_TABLES: [(&str, &str); 9] = [
    ("agui_threads", include_str!("checks/threads.sql")),
    ("agui_messages", include_str!("checks/messages.sql")),
    ("agui_states", include_str!("checks/states.sql")),
    ("agui_runs", include_str!("checks/runs.sql")),
    ("agui_events", include_str!("checks/events.sql")),
    ("agui_run_starts", include_str!("checks/run_starts.sql")),
    ("agui_files", include_str!("checks/files.sql")),
    ("agui_file_chunks", include_str!("checks/file_chunks.sql")),
    ("agui_file_uses", include_str!("checks/file_uses.sql")),
];
const REFERENCES: [&str; 7] = [
    "lacks_thread",
    "lacks_run",
    "lacks_head",
    "lacks_parent",
    "lacks_state",
    "lacks_file",
    "lacks_chunk",
];

/// Returns the damages of a row that a statement of [`CHECKED_TABLES`] has read.
pub(super) fn inspect(table: &str, row: &impl DbRow) -> StoreResult<Vec<String>> {
    let inspected = InspectedRow { row, problems: RefCell::default() };
    match table {
        "agui_threads" => drop(rows::thread(&inspected)?),
        "agui_messages" => drop(rows::node(&inspected)?),
        "agui_states" => drop(rows::numbered_state(&inspected)?),
        "agui_runs" => drop(rows::copied_run(&inspected)?),
        "agui_events" => {
            let before = rows::count(&inspected, "first")?.saturating_sub(1);
            let mut page = EventPage::new(before, RunStatus::Finished, 0);
            let mut room = usize::MAX;
            if let Err(error) = page.extend(&inspected, &mut room) {
                inspected.report("body", &format!("{error:?}"));
            }
        }
        "agui_run_starts" => drop(rows::run_start(&inspected)?),
        "agui_files" => drop(rows::file(&inspected)?),
        "agui_file_chunks" => drop(read_chunk(&inspected)?),
        _ => {}
    }
    for column in REFERENCES {
        if matches!(row.flag(column), Ok(Ok(Some(true)))) {
            inspected
                .report(column.trim_start_matches("lacks_"), "names a row that does not exist");
        }
    }
    let row = describe(row);
    Ok(inspected
        .problems
        .into_inner()
        .into_iter()
        .map(|problem| format!("{table}: {row}: {problem}"))
        .collect())
}

/// A row that notes its damaged values.
struct InspectedRow<'r, R> {
    row: &'r R,
    problems: RefCell<Vec<String>>,
}

impl<R: DbRow> DbRow for InspectedRow<'_, R> {
    fn text(&self, column: &str) -> StoreResult<Cell<&str>> {
        self.row.text(column)
    }

    fn bytes(&self, column: &str) -> StoreResult<Cell<&[u8]>> {
        self.row.bytes(column)
    }

    fn number(&self, column: &str) -> StoreResult<Cell<i64>> {
        self.row.number(column)
    }

    fn flag(&self, column: &str) -> StoreResult<Cell<bool>> {
        self.row.flag(column)
    }

    fn report(&self, column: &str, problem: &str) {
        self.problems.borrow_mut().push(format!("{column}: {problem}"));
    }
}
