//! Renews and lists leases, and stores requests to cancel a run, which are columns of the lease.

use sqlx::Row as _;

use super::Database;
use crate::{
    protocol::RunId,
    store::{CancelRequest, HeldLease, LostRun, Millis, StoreError, rows, text::name_to_text},
};

/// Threads are locked in the order of their numbers, as in `append.sql`, so that the two cannot deadlock.
const RENEW: &str = "
    WITH held AS (
        SELECT number FROM agui_threads WHERE lease_until IS NOT NULL AND holder = $1 ORDER BY number FOR NO KEY UPDATE
    )
    UPDATE agui_threads AS t SET lease_until = $2 FROM held WHERE t.number = held.number
    RETURNING t.owner, t.id, t.run_id, t.number, t.run, t.holder, t.cancel";

const CANCEL_REQUESTS: &str = "SELECT run FROM agui_threads WHERE lease_until IS NOT NULL AND holder = $1 AND cancel";

const REQUEST_CANCEL: &str = "
    UPDATE agui_threads SET cancel = TRUE WHERE number = $1 AND run_id = $2 AND holder IS NOT NULL RETURNING number";

const LOST: &str = "
    SELECT owner, id, run_id, number, run, holder FROM agui_threads WHERE lease_until < $1 ORDER BY lease_until LIMIT $2";

impl Database {
    pub(super) async fn renew(&self, holder: &str, until: Millis) -> Result<Vec<HeldLease>, StoreError> {
        let rows = self.all(sqlx::query(RENEW).bind(holder).bind(until)).await?;
        rows.iter().map(|row| Ok(HeldLease { run: rows::lost_run(row)?, cancel: row.try_get("cancel")? })).collect()
    }

    pub(super) async fn cancel_requests(&self, holder: &str) -> Result<Vec<i64>, StoreError> {
        let rows = self.all(sqlx::query(CANCEL_REQUESTS).bind(holder)).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    pub(super) async fn request_cancel(&self, thread: i64, run: &RunId) -> Result<CancelRequest, StoreError> {
        // Between the two statements the run may end and a run of the same id may begin. The next attempt finds that one.
        for _ in 0..3 {
            let request = sqlx::query(REQUEST_CANCEL).bind(thread).bind(&*name_to_text(run));
            if self.first(request).await?.is_some() {
                return Ok(CancelRequest::Requested);
            }
            match self.run(thread, run).await? {
                Some(record) if record.ended_at.is_some() => return Ok(CancelRequest::Ended(record)),
                Some(_) => {}
                None => return Ok(CancelRequest::Unknown),
            }
        }
        Err(StoreError::Unavailable("the run was replaced during each of three attempts to cancel it".into()))
    }

    pub(super) async fn lost_runs(&self, now: Millis, limit: usize) -> Result<Vec<LostRun>, StoreError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.all(sqlx::query(LOST).bind(now).bind(limit)).await?.iter().map(rows::lost_run).collect()
    }
}
