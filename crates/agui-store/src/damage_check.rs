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
pub(super) const CHECKED_TABLES: [(&str, &str); 10] = [
    ("agui_threads", include_str!("checks/threads.sql")),
    ("agui_messages", include_str!("checks/messages.sql")),
    ("agui_states", include_str!("checks/states.sql")),
    ("agui_runs", include_str!("checks/runs.sql")),
    ("agui_events", include_str!("checks/events.sql")),
    ("agui_run_starts", include_str!("checks/run_starts.sql")),
    ("agui_queued_runs", include_str!("checks/queued_runs.sql")),
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
        "agui_queued_runs" => {
            rows::queued_run(&inspected)?;
            rows::text(&inspected, "request")?;
        }
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

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use rusqlite::Connection;

    use super::*;

    #[test]
    fn an_attempt_below_1_and_an_unknown_reason_are_damage() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(include_str!("sqlite/schema.sql")).unwrap();
        conn.execute_batch(
            "INSERT INTO agui_runs (number, thread, id, attempt, continues, agent, detached, status, delivered, head,
                started_at, ended_at, events, end_reason, has_log)
            VALUES (1, 1, 'r', 0, 0, 'echo', 0, 'cancelled', 0, 0, 0, 0, 0, 'bored', 0)",
        )
        .unwrap();
        let (table, sql) = CHECKED_TABLES[3];
        let found = conn
            .query_row(sql, [], |row| Ok((inspect(table, row).unwrap(), rows::run(row).unwrap())));
        let (problems, run) = found.unwrap();
        let row = "agui_runs: thread 1, number 1, id \"r\"";
        assert_eq!(
            problems,
            [
                format!("{row}: attempt: 0 is no attempt"),
                format!("{row}: end_reason: \"bored\" is no reason"),
                format!("{row}: thread: names a row that does not exist"),
            ]
        );
        assert_eq!((run.attempt, run.end_reason), (1, None));
    }
}
