//! Leases: extended, lost, taken over; and requests to cancel, which are kept beside them.

use sqlx::{Row as _, any::AnyRow};

use super::{
    Dialect, Sql,
    error::Fault,
    key,
    rows::{self, number},
};
use crate::{
    protocol::{RunId, ThreadId},
    store::{CancelRequest, Held, Lease, Millis, StoreError},
};

const RENEW: &str = "UPDATE agui_threads SET lease_until = $2 WHERE holder = $1 \
    RETURNING thread_number, thread_key, thread_id, token, cancel";

const TO_CANCEL: &str =
    "SELECT thread_number, thread_key, thread_id, token, cancel FROM agui_threads WHERE holder = $1 AND cancel = 1";

const CANCEL: &str = "UPDATE agui_threads SET cancel = 1 WHERE thread_key = $1 AND run_key = $2 AND holder IS NOT NULL";

/// Lost leases, in a shared store by time, in one of this process alone by holder. `$3` is whether it is shared. With
/// `IS NOT NULL` SQLite would not use the index.
const LOST: &str = "\
    SELECT thread_number, thread_key, thread_id, run_key, run_id, run_number, token FROM agui_threads \
    WHERE holder >= '' AND (($3 = 1 AND lease_until < $2) OR ($3 = 0 AND holder <> $1)) \
    ORDER BY lease_until, thread_key LIMIT $4";

const TAKE_OVER: &str = "\
    UPDATE agui_threads SET token = token + 1, holder = $3, lease_until = $5 \
    WHERE thread_number = $1 AND token = $2 AND holder IS NOT NULL \
    AND (($6 = 1 AND lease_until < $4) OR ($6 = 0 AND holder <> $3)) RETURNING token";

impl Sql {
    pub(super) async fn renew_leases(&self, holder: &str, until: Millis) -> Result<Vec<Held>, StoreError> {
        let holder = key::key(holder).into_owned();
        self.transact_many(move |conn| {
            Box::pin(async move {
                let rows = sqlx::query(RENEW).bind(holder).bind(until).fetch_all(conn).await?;
                rows.iter().map(held).collect()
            })
        })
        .await
    }

    pub(super) async fn leases_to_cancel(&self, holder: &str) -> Result<Vec<Held>, StoreError> {
        let holder = key::key(holder).into_owned();
        self.read(move |conn| {
            Box::pin(async move {
                let rows = sqlx::query(TO_CANCEL).bind(holder).fetch_all(conn).await?;
                rows.iter().map(held).collect()
            })
        })
        .await
    }

    pub(super) async fn ask_to_cancel(&self, thread: &ThreadId, run: &RunId) -> Result<CancelRequest, StoreError> {
        let (thread_key, run_key) = (key::key(thread).into_owned(), key::key(run).into_owned());
        // A run that is running here may end, and an ended one begin anew, between the statements. Then the
        // other statement knows.
        for _ in 0..3 {
            let (thread_key, run_key) = (thread_key.clone(), run_key.clone());
            let asked = self.write(move |conn| {
                Box::pin(async move {
                    let asked = sqlx::query(CANCEL).bind(thread_key).bind(run_key).execute(conn).await?;
                    Ok(asked.rows_affected() > 0)
                })
            });
            if asked.await? {
                return Ok(CancelRequest::Requested);
            }
            match self.read_run(thread, run).await? {
                Some(record) if record.ended_at.is_some() => return Ok(CancelRequest::Ended(record)),
                Some(_) => {}
                None => return Ok(CancelRequest::Unknown),
            }
        }
        Err(StoreError::Unavailable("the run begins and ends too quickly".into()))
    }

    pub(super) async fn lost_leases(&self, holder: &str, now: Millis, limit: usize) -> Result<Vec<Lease>, StoreError> {
        let (holder, shared) = (key::key(holder).into_owned(), self.shared());
        self.read(move |conn| {
            Box::pin(async move {
                let lost = sqlx::query(LOST).bind(holder).bind(now).bind(shared).bind(number(limit));
                lost.fetch_all(conn).await?.iter().map(lease).collect()
            })
        })
        .await
    }

    pub(super) async fn take_over_lease(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        let (lost, holder, shared) = (lost.clone(), key::key(holder).into_owned(), self.shared());
        self.write(move |conn| {
            Box::pin(async move {
                let taken = sqlx::query(TAKE_OVER).bind(lost.thread_number).bind(lost.token).bind(holder);
                let Some(row) = taken.bind(now).bind(until).bind(shared).fetch_optional(conn).await? else {
                    return Ok(None);
                };
                let token = row.try_get("token")?;
                Ok(Some(Lease { token, ..lost }))
            })
        })
        .await
    }

    fn shared(&self) -> i64 {
        i64::from(self.dialect == Dialect::Postgres)
    }
}

fn held(row: &AnyRow) -> Result<Held, Fault> {
    let cancel = row.try_get::<i64, _>("cancel")? != 0;
    let thread_number = row.try_get("thread_number")?;
    Ok(Held { thread_id: rows::thread_id(row)?, thread_number, token: row.try_get("token")?, cancel })
}

fn lease(row: &AnyRow) -> Result<Lease, Fault> {
    Ok(Lease {
        thread_id: rows::thread_id(row)?,
        thread_number: row.try_get("thread_number")?,
        run_id: rows::run_id(row)?,
        run_number: row.try_get("run_number")?,
        token: row.try_get("token")?,
    })
}
