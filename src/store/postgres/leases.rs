//! Renews leases, and stores requests to cancel a run, which are columns of the lease.

use super::{pool::PostgresPool, reader};
use crate::{
    protocol::RunId,
    store::{
        CancelRequest, Lease, LostRun, Millis, StoreError, StoreResult, read_places::SERVER, rows, text::name_to_text,
    },
};

const RENEW: &str = include_str!("sql/renew.sql");

/// Without a holder, so that the process does not renew the lease.
const RELEASE: &str = "
    UPDATE agui_threads SET holder = '', lease_until = 0 WHERE number = $1 AND run = $2 AND holder = $3 RETURNING number";

const REQUEST_CANCEL: &str = "
    UPDATE agui_threads SET cancel = TRUE WHERE number = $1 AND run_id = $2 AND holder IS NOT NULL RETURNING number";

pub(super) async fn renew(pool: &PostgresPool, holder: &str, until: Millis) -> StoreResult<Vec<LostRun>> {
    pool.all(sqlx::query(RENEW).bind(holder).bind(until)).await?.iter().map(rows::lost_run).collect()
}

pub(super) async fn release(pool: &PostgresPool, lease: &Lease) -> StoreResult<()> {
    let release = sqlx::query(RELEASE).bind(lease.thread).bind(lease.run).bind(&*lease.holder);
    pool.first(release).await.map(drop)
}

pub(super) async fn request_cancel(pool: &PostgresPool, thread: i64, run: &RunId) -> StoreResult<CancelRequest> {
    // Between the two statements the run may end and a run of the same id may begin. The next attempt finds that one.
    for _ in 0..3 {
        let request = sqlx::query(REQUEST_CANCEL).bind(thread).bind(&*name_to_text(run));
        if pool.first(request).await?.is_some() {
            return Ok(CancelRequest::Requested);
        }
        match reader::run(pool, SERVER, thread, run).await? {
            Some(record) if record.ended_at.is_some() => return Ok(CancelRequest::Ended(record)),
            Some(_) => {}
            None => return Ok(CancelRequest::Unknown),
        }
    }
    Err(StoreError::Unavailable("the run was replaced during each of three attempts to cancel it".into()))
}
