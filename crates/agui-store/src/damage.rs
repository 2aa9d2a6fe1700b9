//! Rows whose values may be damaged: by a faulty disk, a restored backup, or a person who has
//! changed them.

use std::collections::HashSet;

use parking_lot::Mutex;

use super::StoreResult;
use agui_base::text::short_name;

/// The value of a column, or its fault.
pub(super) type Cell<T> = Result<Option<T>, String>;

/// A row of a database. The methods fail if there is no such column.
pub(super) trait DbRow: Sized {
    fn text(&self, column: &str) -> StoreResult<Cell<&str>>;
    fn bytes(&self, column: &str) -> StoreResult<Cell<&[u8]>>;
    fn number(&self, column: &str) -> StoreResult<Cell<i64>>;
    fn flag(&self, column: &str) -> StoreResult<Cell<bool>>;

    /// Reports a damaged value: in the log, once.
    fn report(&self, column: &str, problem: &str) {
        static REPORTED: Mutex<Option<HashSet<String>>> = Mutex::new(None);
        const MAX_REPORTED: usize = 1000;
        let row = describe(self);
        let mut reported = REPORTED.lock();
        let reported = reported.get_or_insert_default();
        if reported.len() >= MAX_REPORTED {
            reported.clear();
        }
        if reported.insert(format!("{row} {column}")) {
            tracing::error!(
                row,
                column,
                problem,
                "a stored value is damaged and counts as absent: see agui-server check --store"
            );
        }
    }
}

/// Returns a value. Reports a damaged value, and returns `None` for it.
pub(super) fn readable<T>(row: &impl DbRow, column: &str, cell: Cell<T>) -> Option<T> {
    cell.unwrap_or_else(|problem| {
        row.report(column, &problem);
        None
    })
}

/// Does the same as [`readable`], but NULL is damage as well, and is read as the default.
pub(super) fn required<T: Default>(row: &impl DbRow, column: &str, cell: Cell<T>) -> T {
    let cell = cell.and_then(|value| value.map(Some).ok_or_else(|| "NULL".to_owned()));
    readable(row, column, cell).unwrap_or_default()
}

/// Names a row by its columns that are readable.
pub(super) fn describe(row: &impl DbRow) -> String {
    let number = |column| Some(format!("{column} {}", row.number(column).ok()?.ok()??));
    let text = |column| Some(format!("{column} {:?}", short_name(row.text(column).ok()?.ok()??)));
    let numbers = ["thread", "file", "number", "run", "last"].into_iter().filter_map(number);
    numbers.chain(["owner", "id"].into_iter().filter_map(text)).collect::<Vec<_>>().join(", ")
}
