//! Ends a run, sets its delivery, and takes over its lease.

use sqlx::Row as _;

use super::{Database, events::last_of, words::words_of_branch};
use crate::store::{
    FinishedRun, Lease, Millis, RunEnd, StoreError,
    text::{BranchColumns, lines, list_to_json, times, to_json},
};

const FINISH: &str = include_str!("sql/finish.sql");
const IS_REPEATED: &str = "SELECT 1 FROM agui_runs WHERE number = $1 AND thread = $2 AND status = $3 AND ended_at = $4";

const SET_DELIVERED: &str = "
    WITH run AS (UPDATE agui_runs SET delivered = $3 WHERE number = $2)
    UPDATE agui_threads SET version = version + 1 WHERE number = $1 RETURNING version";

const TAKE_OVER: &str = "
    UPDATE agui_threads SET holder = $4, lease_until = $6
    WHERE number = $1 AND run = $2 AND holder = $3 AND lease_until < $5 RETURNING number";

impl Database {
    pub(super) async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        let (branch, state, interrupts) =
            (BranchColumns::new(&end.branch), end.state.map(to_json), list_to_json(end.interrupts));
        let bytes = branch.bytes + state.as_ref().map_or(0, String::len) as u64;
        let last = end.last_events.filter(|last| !last.events.is_empty());
        let query = sqlx::query(FINISH).bind(lease.thread).bind(lease.run).bind(&*lease.holder);
        let query =
            query.bind(end.ended_at).bind(end.status.as_str()).bind(end.delivered).bind(end.events.cast_signed());
        let query = query.bind(list_to_json(end.usage)).bind(end.failure.map(to_json)).bind(interrupts).bind(state);
        let query = query.bind(bytes.cast_signed()).bind(&branch.ids).bind(&branch.roles).bind(&branch.bodies);
        let query = query.bind(&branch.runs).bind(branch.base);
        let query = query.bind(&branch.updated_numbers).bind(&branch.updated_bodies);
        let query = query.bind(last.map(|last| last.first.cast_signed())).bind(last.map(last_of));
        let (new_words, updated_words) = words_of_branch(&end.branch);
        let query = query.bind(last.map(|last| lines(&last.events)).transpose()?).bind(new_words).bind(updated_words);
        let query = query.bind(last.map(times).transpose()?);
        let mut operation = self.operation().await?;
        if let Some(row) = operation.first(query).await? {
            let [version, last_message] = [row.try_get(0)?, row.try_get(1)?];
            let bytes = row.try_get::<i64, _>(3)?.cast_unsigned();
            return Ok(Some(FinishedRun { version, last_message, state_number: row.try_get(2)?, bytes }));
        }
        let repeated =
            sqlx::query(IS_REPEATED).bind(lease.run).bind(lease.thread).bind(end.status.as_str()).bind(end.ended_at);
        operation.first(repeated).await?.map(|_| None).ok_or(StoreError::LeaseLost)
    }

    pub(super) async fn set_delivered(
        &self,
        thread: i64,
        run: i64,
        delivered: bool,
    ) -> Result<Option<i64>, StoreError> {
        let raised = self.first(sqlx::query(SET_DELIVERED).bind(thread).bind(run).bind(delivered)).await?;
        Ok(raised.map(|row| row.try_get(0)).transpose()?)
    }

    pub(super) async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        let query = sqlx::query(TAKE_OVER).bind(lost.thread).bind(lost.run).bind(&*lost.holder);
        let taken = self.first(query.bind(holder).bind(now).bind(until)).await?;
        Ok(taken.map(|_| Lease { holder: holder.into(), ..lost.clone() }))
    }
}
