//! Queued runs in Postgres.

use async_trait::async_trait;
use sqlx::Row as _;

use super::{PostgresStore, reader};
use crate::{
    Enqueued, Millis, NewQueuedRun, QueueNumber, QueuedRun, RunQueue, StoreResult, ThreadNumber,
    Topic,
    read_permits::{ReadKind, SERVER},
    rows,
    text::name_to_text,
};
use agui_protocol::RunId;

/// Locks the thread, so that its queue does not grow above the limit, and is not deleted meanwhile.
const LOCK_THREAD: &str =
    "SELECT number FROM agui_threads WHERE owner = $1 AND id = $2 FOR NO KEY UPDATE";
const QUEUED: &str = "
    SELECT q.number, q.thread, q.id AS run_id, q.asked, q.agent, q.holder, q.takeovers, q.queued_at, t.owner, t.id
    FROM agui_queued_runs AS q JOIN agui_threads AS t ON t.number = q.thread WHERE q.thread = $1 ORDER BY q.number";
const LOST: &str = include_str!("sql/lost_queued_runs.sql");
const INSERT: &str = "
    INSERT INTO agui_queued_runs (thread, id, asked, agent, request, holder, takeovers, queued_at, held_at)
    VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $7) RETURNING number";
const REQUEST: &str = "SELECT request FROM agui_queued_runs WHERE number = $1";
const TAKE: &str = "
    UPDATE agui_queued_runs SET holder = $4, takeovers = takeovers + (holder NOT IN ('', $4))::int, held_at = $5
    WHERE number = $1 AND holder = $2 AND takeovers = $3 RETURNING number";
/// The new version of the thread keeps a begin that runs at the same time from beginning the removed run.
const REMOVE: &str = "
    WITH thread AS (
        UPDATE agui_threads SET version = version + 1
        WHERE number = $1 AND EXISTS (SELECT 1 FROM agui_queued_runs WHERE thread = $1 AND id = $2) RETURNING number
    )
    DELETE FROM agui_queued_runs AS q USING thread WHERE q.thread = thread.number AND q.id = $2 RETURNING q.number";
const RELEASE: &str = "UPDATE agui_queued_runs SET holder = '' WHERE holder = $1 RETURNING number";

#[async_trait]
impl RunQueue for PostgresStore {
    async fn enqueue(&self, run: &NewQueuedRun<'_>) -> StoreResult<Enqueued> {
        let mut operation = self.pool.write(&run.key.owner, run.request.len() as u64).await?;
        operation.begin("BEGIN").await?;
        let thread = sqlx::query(LOCK_THREAD)
            .bind(&*run.key.owner)
            .bind(name_to_text(&run.key.id).into_owned());
        let Some(thread) = operation.first(thread).await? else { return Ok(Enqueued::NoThread) };
        let thread: ThreadNumber = thread.try_get(0)?;
        let queued = operation.all(sqlx::query(QUEUED).bind(thread)).await?;
        let queued = queued.iter().map(rows::queued_run).collect::<StoreResult<Vec<_>>>()?;
        let count = queued.len();
        if let Some(same) = queued.into_iter().find(|queued| queued.run_id == *run.run_id) {
            return Ok(Enqueued::Exists(same));
        }
        if count >= run.max_queued {
            return Ok(Enqueued::Full);
        }
        let insert = sqlx::query(INSERT).bind(thread).bind(name_to_text(run.run_id).into_owned());
        let insert = insert.bind(run.asked).bind(name_to_text(run.agent).into_owned());
        let insert = insert.bind(run.request).bind(run.holder).bind(run.now);
        operation.first(insert).await?;
        let stored = operation.all(sqlx::query(QUEUED).bind(thread)).await?;
        let stored = stored.last().map(rows::queued_run).transpose()?;
        operation.commit().await?;
        Ok(stored.map_or(Enqueued::NoThread, Enqueued::Stored))
    }

    async fn queued_runs(&self, owner: &str, thread: ThreadNumber) -> StoreResult<Vec<QueuedRun>> {
        let mut operation = self.pool.read(ReadKind::Page, owner).await?;
        let queued = operation.all(sqlx::query(QUEUED).bind(thread)).await?;
        queued.iter().map(rows::queued_run).collect()
    }

    async fn queued_request(&self, run: QueueNumber) -> StoreResult<Option<String>> {
        let request = |row: &_| Ok(rows::text(row, "request")?.to_owned());
        reader::one(&self.pool, SERVER, sqlx::query(REQUEST).bind(run), request).await
    }

    async fn lost_queued_runs(&self, before: Millis, limit: usize) -> StoreResult<Vec<QueuedRun>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let lost = self.pool.all(sqlx::query(LOST).bind(before).bind(limit)).await?;
        lost.iter().map(rows::queued_run).collect()
    }

    async fn take_queued_run(
        &self,
        run: &QueuedRun,
        holder: &str,
        now: Millis,
    ) -> StoreResult<bool> {
        let take = sqlx::query(TAKE).bind(run.number).bind(&run.holder);
        let take = take.bind(run.takeovers.cast_signed()).bind(holder).bind(now);
        Ok(self.pool.first(take).await?.is_some())
    }

    async fn remove_queued_run(&self, thread: ThreadNumber, id: &RunId) -> StoreResult<bool> {
        let remove = sqlx::query(REMOVE).bind(thread).bind(name_to_text(id).into_owned());
        Ok(self.pool.first(remove).await?.is_some())
    }

    async fn release_queued_runs(&self, holder: &str) -> StoreResult<()> {
        let released = self.pool.all(sqlx::query(RELEASE).bind(holder)).await?;
        if released.is_empty() {
            return Ok(());
        }
        self.notifier.notify_at_once(&self.pool, [Topic::Leases]).await
    }
}
