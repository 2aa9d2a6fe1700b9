//! Numbers of rows as values of SQLite.

use crate::{MessageNumber, QueueNumber, RunNumber, StateNumber, ThreadNumber};

macro_rules! column_numbers {
    ($($name:ident),+) => {$(
        impl rusqlite::ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
                self.0.to_sql()
            }
        }

        impl rusqlite::types::FromSql for $name {
            fn column_result(
                value: rusqlite::types::ValueRef<'_>,
            ) -> rusqlite::types::FromSqlResult<Self> {
                i64::column_result(value).map(Self)
            }
        }
    )+};
}

column_numbers!(ThreadNumber, QueueNumber, RunNumber, MessageNumber, StateNumber);
