//! Statements for many rows at once.
//!
//! A statement costs two switches between threads whatever it does, so rows go in by the dozen: in a few fixed
//! numbers, for each statement is prepared once, which takes the longer the more rows it has. What is missing to such
//! a number is filled with rows of NULLs, which the statements take for none.

use std::sync::OnceLock;

use sqlx::{Any, any::AnyArguments, query::Query};

use super::Dialect;

/// How many rows a statement takes.
const SIZES: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The most rows that go in one statement.
pub(super) const MOST: usize = SIZES[SIZES.len() - 1];

/// A statement with a list of rows in it.
pub(super) struct Many {
    before: &'static str,
    row: &'static str,
    after: &'static str,
    made: [OnceLock<[&'static str; SIZES.len()]>; 2],
}

impl Many {
    /// `row` is one of the rows that are listed between the rest; in it `?` stands for a text and `#` for a number. In
    /// `after`, what only Postgres needs is in braces: what locks rows, which SQLite's transactions have done already,
    /// and what numbers runs for several processes.
    pub(super) const fn new(before: &'static str, row: &'static str, after: &'static str) -> Self {
        Self { before, row, after, made: [OnceLock::new(), OnceLock::new()] }
    }

    /// The query for as many rows, of which there are [`MOST`] at most.
    pub(super) fn query(&self, dialect: Dialect, rows: usize) -> Query<'static, Any, AnyArguments> {
        let at = SIZES.partition_point(|size| *size < rows).min(SIZES.len() - 1);
        sqlx::query(self.statements(dialect)[at])
    }

    /// The query with as many rows as its statement has, when `rows` of them are bound.
    pub(super) fn filled<'q>(&self, query: Query<'q, Any, AnyArguments>, rows: usize) -> Query<'q, Any, AnyArguments> {
        let missing = SIZES.iter().find(|size| **size >= rows).map_or(0, |size| size - rows);
        let kinds = self.row.chars().filter(|c| matches!(c, '?' | '#'));
        std::iter::repeat_n(kinds, missing).flatten().fold(query, |query, kind| match kind {
            '#' => query.bind(None::<i64>),
            _ => query.bind(None::<String>),
        })
    }

    fn statements(&self, dialect: Dialect) -> &[&'static str; SIZES.len()] {
        self.made[usize::from(dialect == Dialect::Postgres)].get_or_init(|| {
            // Made once and kept for as long as the program runs.
            SIZES.map(|rows| {
                let rows = self.rows(rows, dialect);
                &*format!("{}{rows}{}", self.before, self.after_in(dialect)).leak()
            })
        })
    }

    /// Parameters are numbered, but in SQLite they are `?`: it looks for a parameter's number among all of the
    /// statement, for each, and hundreds are too many for that. Nor does it have to be told which are numbers.
    fn rows(&self, rows: usize, dialect: Dialect) -> String {
        let (mut text, mut number) = (String::new(), 0);
        for row in 0..rows {
            text.push_str(if row == 0 { "" } else { ", " });
            for c in self.row.chars() {
                if !matches!(c, '?' | '#') {
                    text.push(c);
                    continue;
                }
                number += 1;
                text.push_str(&match (dialect, c) {
                    (Dialect::Sqlite, _) => "?".to_owned(),
                    (Dialect::Postgres, '#') => format!("CAST(${number} AS BIGINT)"),
                    (Dialect::Postgres, _) => format!("${number}"),
                });
            }
        }
        text
    }

    fn after_in(&self, dialect: Dialect) -> String {
        if dialect == Dialect::Postgres {
            return self.after.replace(['{', '}'], "");
        }
        let (first, rest) = self.after.split_once('{').unwrap_or((self.after, ""));
        let kept = rest.split('{').filter_map(|part| Some(part.split_once('}')?.1));
        let text: String = std::iter::once(first).chain(kept).collect();
        // What a statement did before it failed goes with its transaction. Without these words SQLite keeps a copy of
        // each page, so that the statement alone could go.
        text.replacen(") INSERT ", ") INSERT OR FAIL ", 1).replacen(") UPDATE ", ") UPDATE OR FAIL ", 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_database_gets_its_own_words() {
        let text = |many: &Many, dialect| many.statements(dialect)[1];
        let insert =
            Many::new("WITH v (a, b) AS (VALUES ", "(#, ?)", ") INSERT INTO t SELECT {f(}a{)}, b FROM v{ FOR UPDATE}");
        assert_eq!(
            text(&insert, Dialect::Sqlite),
            "WITH v (a, b) AS (VALUES (?, ?), (?, ?)) INSERT OR FAIL INTO t SELECT a, b FROM v"
        );
        assert_eq!(
            text(&insert, Dialect::Postgres),
            "WITH v (a, b) AS (VALUES (CAST($1 AS BIGINT), $2), (CAST($3 AS BIGINT), $4)) \
             INSERT INTO t SELECT f(a), b FROM v FOR UPDATE"
        );
        let update = Many::new("WITH v (a) AS (VALUES ", "(#)", ") UPDATE t SET a = v.a FROM v");
        assert_eq!(
            text(&update, Dialect::Sqlite),
            "WITH v (a) AS (VALUES (?), (?)) UPDATE OR FAIL t SET a = v.a FROM v"
        );
    }
}
