//! The logs of runs: a row is a batch of events. Batches of many runs are written with one statement.

use sqlx::Row as _;

use super::Database;
use crate::store::{
    EventBatch, EventPage, RunStart, StoreError,
    rows::{self, DbRow as _},
    text::{lines, times},
};

const APPEND: &str = include_str!("sql/append.sql");
const EVENTS: &str = include_str!("sql/events.sql");
const START: &str = "
    SELECT s.head, st.body AS state_body, s.request FROM agui_run_starts AS s JOIN agui_runs AS r ON r.number = s.run
    LEFT JOIN agui_states AS st ON st.thread = r.thread AND st.number = s.state
    WHERE s.run = $1";

pub(super) fn last_of(batch: &EventBatch) -> i64 {
    (batch.first + batch.events.len() as u64).saturating_sub(1).cast_signed()
}

impl Database {
    pub(super) async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        let bodies = batches.iter().map(|batch| lines(&batch.events)).collect::<Result<Vec<_>, _>>()?;
        let times = batches.iter().map(times).collect::<Result<Vec<_>, _>>()?;
        let numbers = |of: fn(&EventBatch) -> i64| batches.iter().map(of).collect::<Vec<_>>();
        let holders: Vec<_> = batches.iter().map(|batch| &*batch.lease.holder).collect();
        let query = sqlx::query(APPEND).bind(numbers(|batch| batch.lease.thread));
        let query = query.bind(numbers(|batch| batch.lease.run)).bind(holders);
        let query = query.bind(numbers(|batch| batch.first.cast_signed())).bind(numbers(last_of)).bind(bodies);
        let query = query.bind(times);
        let mut appended = vec![false; batches.len()];
        for row in self.all(query).await? {
            let position = usize::try_from(row.try_get::<i64, _>(0)? - 1).unwrap_or(usize::MAX);
            if let Some(appended) = appended.get_mut(position) {
                *appended = true;
            }
        }
        Ok(appended)
    }

    pub(super) async fn events(&self, run: i64, after: u64, max_bytes: usize) -> Result<Option<EventPage>, StoreError> {
        let [after, max_bytes] = [i64::try_from(after), i64::try_from(max_bytes)].map(|n| n.unwrap_or(i64::MAX));
        let rows = self.all(sqlx::query(EVENTS).bind(run).bind(after).bind(max_bytes.max(1))).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let status = rows::status(row.text("status")?.unwrap_or_default());
        let count = row.number("count")?.unwrap_or(0).cast_unsigned();
        let first = after.cast_unsigned().saturating_add(1);
        let mut page = EventPage { first, events: Vec::new(), times: Vec::new(), status, count };
        let mut room = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        for row in &rows {
            let (Some(first), Some(body)) = (row.number("first")?, row.text("body")?) else { break };
            if !page.extend(first.cast_unsigned(), body, rows::text(row, "times")?, &mut room) {
                break;
            }
        }
        Ok(Some(page))
    }

    pub(super) async fn run_start(&self, run: i64) -> Result<Option<RunStart>, StoreError> {
        let Some(row) = self.first(sqlx::query(START).bind(run)).await? else { return Ok(None) };
        let (head, request) = (rows::number(&row, "head")?, rows::text(&row, "request")?.to_owned());
        Ok(Some(RunStart { head, state: rows::json(&row, "state_body")?, request }))
    }
}
