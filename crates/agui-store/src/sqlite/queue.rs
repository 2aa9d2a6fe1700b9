//! Queued runs in SQLite.

use async_trait::async_trait;
use rusqlite::{Connection, named_params};

use super::{
    SqliteStore,
    pending::JobOwner,
    reader::{all, one},
    writer::{JobKind, Tx},
};
use crate::{
    Enqueued, Millis, NewQueuedRun, QueueNumber, QueuedRun, RunQueue, StoreResult, ThreadNumber,
    read_permits::{ReadKind, SERVER},
    rows,
    text::name_to_text,
};
use agui_protocol::RunId;

const FIND_THREAD: &str = "SELECT number FROM agui_threads WHERE owner = ? AND id = ?";
const QUEUED: &str = "
    SELECT q.number, q.thread, q.id AS run_id, q.asked, q.agent, q.holder, q.takeovers, q.queued_at, t.owner, t.id
    FROM agui_queued_runs AS q JOIN agui_threads AS t ON t.number = q.thread WHERE q.thread = ? ORDER BY q.number";
const LOST: &str = "
    SELECT q.number, q.thread, q.id AS run_id, q.asked, q.agent, q.holder, q.takeovers, q.queued_at, t.owner, t.id
    FROM agui_queued_runs AS q JOIN agui_threads AS t ON t.number = q.thread WHERE t.owner <> '' ORDER BY q.number LIMIT ?";
const INSERT: &str = "
    INSERT INTO agui_queued_runs (thread, id, asked, agent, request, holder, takeovers, queued_at, held_at)
    VALUES (:thread, :id, :asked, :agent, :request, :holder, 0, :now, :now)";
const REQUEST: &str = "SELECT request FROM agui_queued_runs WHERE number = ?";
const TAKE: &str = "
    UPDATE agui_queued_runs SET holder = :new, takeovers = takeovers + (holder NOT IN ('', :new)), held_at = :now
    WHERE number = :number AND holder = :holder AND takeovers = :takeovers";
const REMOVE: &str = "DELETE FROM agui_queued_runs WHERE thread = ? AND id = ?";
const RAISE_VERSION: &str = "UPDATE agui_threads SET version = version + 1 WHERE number = ?";
const RELEASE: &str = "UPDATE agui_queued_runs SET holder = '' WHERE holder = ?";

#[async_trait]
impl RunQueue for SqliteStore {
    async fn enqueue(&self, run: &NewQueuedRun<'_>) -> StoreResult<Enqueued> {
        let (owner, bytes) = (JobOwner::Named(run.key.owner.clone()), run.request.len() as u64);
        let (by, id) = (run.key.owner.clone(), name_to_text(&run.key.id).into_owned());
        let (run_id, max_queued) = (run.run_id.clone(), run.max_queued);
        let (asked, agent) = (run.asked.map(str::to_owned), name_to_text(run.agent).into_owned());
        let (request, holder, now) = (run.request.to_owned(), run.holder.to_owned(), run.now);
        let enqueue = move |tx: &mut Tx<'_>| {
            let thread = one(tx.conn, FIND_THREAD, (&by, &id), |row| Ok(row.get(0)?))?;
            let Some(thread): Option<ThreadNumber> = thread else { return Ok(Enqueued::NoThread) };
            let queued = all(tx.conn, QUEUED, [thread], |row| rows::queued_run(row))?;
            let count = queued.len();
            if let Some(same) = queued.into_iter().find(|queued| queued.run_id == run_id) {
                return Ok(Enqueued::Exists(same));
            }
            if count >= max_queued {
                return Ok(Enqueued::Full);
            }
            let params = named_params! {
                ":thread": thread, ":id": name_to_text(&run_id), ":asked": asked, ":agent": agent, ":request": request,
                ":holder": holder, ":now": now,
            };
            tx.execute(INSERT, params)?;
            let stored = all(tx.conn, QUEUED, [thread], |row| rows::queued_run(row))?.pop();
            Ok(stored.map_or(Enqueued::NoThread, Enqueued::Stored))
        };
        self.writer.run_for(owner, bytes, JobKind::Operation, enqueue).await
    }

    async fn queued_runs(&self, owner: &str, thread: ThreadNumber) -> StoreResult<Vec<QueuedRun>> {
        let list =
            move |conn: &Connection| all(conn, QUEUED, [thread], |row| rows::queued_run(row));
        self.readers.read(ReadKind::Page, owner, list).await
    }

    async fn queued_request(&self, run: QueueNumber) -> StoreResult<Option<String>> {
        let read = move |conn: &Connection| {
            one(conn, REQUEST, [run], |row| Ok(rows::text(row, "request")?.to_owned()))
        };
        self.readers.read(ReadKind::Page, SERVER, read).await
    }

    async fn lost_queued_runs(&self, _before: Millis, limit: usize) -> StoreResult<Vec<QueuedRun>> {
        let list =
            move |conn: &Connection| all(conn, LOST, [limit as i64], |row| rows::queued_run(row));
        self.readers.read(ReadKind::Page, SERVER, list).await
    }

    async fn take_queued_run(
        &self,
        run: &QueuedRun,
        holder: &str,
        now: Millis,
    ) -> StoreResult<bool> {
        let (run, holder) = (run.clone(), holder.to_owned());
        let take = move |tx: &mut Tx<'_>| {
            let params = named_params! {
                ":number": run.number, ":holder": run.holder, ":takeovers": run.takeovers, ":new": holder, ":now": now,
            };
            Ok(tx.execute(TAKE, params)? > 0)
        };
        self.writer.run(JobKind::Ending, take).await
    }

    async fn remove_queued_run(&self, thread: ThreadNumber, id: &RunId) -> StoreResult<bool> {
        let id = name_to_text(id).into_owned();
        let remove = move |tx: &mut Tx<'_>| {
            let is_removed = tx.execute(REMOVE, (thread, &id))? > 0;
            if is_removed {
                tx.execute(RAISE_VERSION, [thread])?;
            }
            Ok(is_removed)
        };
        self.writer.run(JobKind::Ending, remove).await
    }

    async fn release_queued_runs(&self, holder: &str) -> StoreResult<()> {
        let holder = holder.to_owned();
        let release = move |tx: &mut Tx<'_>| tx.execute(RELEASE, [&holder]).map(drop);
        self.writer.run(JobKind::Ending, release).await
    }
}
