//! Writes a thread's content, and ends a run.

use sqlx::AnyConnection;

use super::{
    Sql,
    error::Fault,
    key,
    log::Batch,
    rows::{ContentColumns, EndColumns},
};
use crate::store::{Append, Lease, RunEnd, StoreError, ThreadContent};

const SAVE: &str = "\
    UPDATE agui_threads SET version = version + 1, open_interrupts = $3 \
    WHERE thread_key = $1 AND token = $2 AND holder IS NOT NULL";

const CONTENT: &str = "\
    INSERT INTO agui_contents (thread_key, messages, state, interrupts) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (thread_key) DO UPDATE SET \
        messages = excluded.messages, state = excluded.state, interrupts = excluded.interrupts";

const RELEASE: &str = "\
    UPDATE agui_threads SET holder = NULL, lease_until = NULL, cancel = 0, updated_at = $3, \
        version = version + $4, open_interrupts = COALESCE($5, open_interrupts) \
    WHERE thread_key = $1 AND token = $2 AND holder IS NOT NULL";

const END: &str = "\
    UPDATE agui_runs SET status = $2, ended_at = $3, end_token = $4, events = $5, usage = $6, failure = $7, \
        has_log = CASE WHEN EXISTS (SELECT 1 FROM agui_log WHERE run_number = $1) THEN 1 ELSE 0 END \
    WHERE run_number = $1";

/// The thread's row is locked, and its lease was there: nothing more to compare.
const LAST: &str = "\
    INSERT INTO agui_log (run_number, first_event, last_event, bytes, body) \
    SELECT CAST($1 AS BIGINT), CAST($2 AS BIGINT), CAST($3 AS BIGINT), CAST($4 AS BIGINT), $5 \
    WHERE NOT EXISTS (SELECT 1 FROM agui_log AS l WHERE l.run_number = $1 AND l.last_event >= $3) \
    ON CONFLICT DO NOTHING";

const ENDED: &str = "SELECT 1 AS ended FROM agui_runs WHERE run_number = $1 AND end_token = $2";

impl Sql {
    pub(super) async fn save_content(&self, lease: &Lease, content: &ThreadContent) -> Result<(), StoreError> {
        let (thread, token) = (key::key(&lease.thread_id).into_owned(), lease.token);
        let content = ContentColumns::new(content)?;
        self.transact(move |conn| {
            Box::pin(async move {
                let save = sqlx::query(SAVE).bind(&thread).bind(token).bind(content.open_interrupts);
                if save.execute(&mut *conn).await?.rows_affected() == 0 {
                    return Err(Fault::Lost);
                }
                replace(conn, thread, content).await
            })
        })
        .await
    }

    pub(super) async fn finish_run(
        &self,
        lease: &Lease,
        content: Option<&ThreadContent>,
        last: Option<&Append>,
        end: &RunEnd,
    ) -> Result<(), StoreError> {
        let content = content.map(ContentColumns::new).transpose()?;
        let last = last.map(Batch::new).transpose()?.filter(|last| !last.is_empty());
        let (lease, end) = (lease.clone(), EndColumns::new(end)?);
        self.transact(move |conn| Box::pin(finish(conn, lease, content, last, end))).await
    }
}

async fn finish(
    conn: &mut AnyConnection,
    lease: Lease,
    content: Option<ContentColumns>,
    last: Option<Batch>,
    end: EndColumns,
) -> Result<(), Fault> {
    let thread = key::key(&lease.thread_id).into_owned();
    let interrupts = content.as_ref().map(|content| content.open_interrupts);
    let release = sqlx::query(RELEASE).bind(&thread).bind(lease.token).bind(end.at);
    let release = release.bind(i64::from(content.is_some())).bind(interrupts);
    if release.execute(&mut *conn).await?.rows_affected() == 0 {
        let ended = sqlx::query(ENDED).bind(lease.run_number).bind(lease.token);
        return ended.fetch_optional(conn).await?.map(drop).ok_or(Fault::Lost);
    }
    if let Some(last) = last {
        let insert = sqlx::query(LAST).bind(last.run).bind(last.first).bind(last.last);
        insert.bind(last.bytes).bind(last.body).execute(&mut *conn).await?;
    }
    let record = sqlx::query(END).bind(lease.run_number).bind(end.status).bind(end.at).bind(lease.token);
    record.bind(end.events).bind(end.usage).bind(end.failure).execute(&mut *conn).await?;
    match content {
        Some(content) => replace(conn, thread, content).await,
        None => Ok(()),
    }
}

async fn replace(conn: &mut AnyConnection, thread: String, content: ContentColumns) -> Result<(), Fault> {
    let content = sqlx::query(CONTENT).bind(thread).bind(content.messages).bind(content.state).bind(content.interrupts);
    content.execute(conn).await?;
    Ok(())
}
