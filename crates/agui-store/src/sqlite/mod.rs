//! The store in an SQLite file, which belongs to one process.
//!
//! One thread runs all writes, and waiting writes share one transaction ([`writer`]). An operation
//! returns after the commit. Reads have a few connections of their own ([`reader`]) and do not wait
//! for the writer. A commit survives the end of the process (write-ahead log, `synchronous =
//! NORMAL`). A power failure may lose the last commits, but does not damage the file.
//!
//! The tables are in `schema.sql`. To change them, raise `SCHEMA_VERSION` in `open`.

mod begin;
mod connection;
mod error;
mod events;
mod file_rows;
mod files;
mod finish;
mod log_copier;
mod numbers;
mod open;
mod pending;
mod queue;
mod reader;
mod remove;
mod reserve;
mod sealed;
mod search;
mod stored_files;
mod truncate;
mod whole_thread;
mod writer;

use std::{io, sync::Arc};

use async_trait::async_trait;
use rusqlite::{Connection, named_params};
use tokio::sync::Mutex;

use self::{
    error::disk_full,
    files::{DatabaseFiles, FileId},
    pending::JobOwner,
    reader::{Readers, all, one},
    writer::{JobKind, SqliteWriter, Tx},
};
use super::{
    BeginOutcome, EndState, EndedRun, EventBatch, EventPage, Feedback, FinishedRun, Lease, LostRun,
    MessagePage, MessageQuery, Millis, NewRun, Retention, RunEnd, RunNumber, RunQueue, RunRecord,
    RunStart, Store, StoreError, StoreResult, SweepResult, Thread, ThreadContent, ThreadKey,
    ThreadNumber, ThreadPage, ThreadParts, ThreadUpdate, ThreadVersion, ThreadView,
    columns::{BatchColumns, BeginColumns, ContentColumns, FinishColumns, NO_WORDS, UpdateColumns},
    damage_check::{CHECKED_TABLES, MAX_DAMAGED_ROWS, inspect},
    files::{ALL_OWNERS, FileStore},
    read_permits::{ReadKind, SERVER},
    rows,
    sealed::SealedStore,
    text::{name_to_text, to_json},
};
use agui_base::permits::Permits;
use agui_protocol::{MessageId, ResumeEntry, RunId};

const UPDATE: &str = include_str!("sql/update.sql");

const SET_FEEDBACK: &str = "
    UPDATE agui_messages SET feedback = :feedback WHERE thread = :thread
        AND number = (SELECT MAX(number) FROM agui_messages WHERE thread = :thread AND id = :message)";

const SET_DELIVERED: &str = "UPDATE agui_runs SET delivered = ? WHERE number = ?";
const SET_ALIAS: &str = "UPDATE agui_runs SET alias = ? WHERE number = ?";
const RAISE_VERSION: &str =
    "UPDATE agui_threads SET version = version + 1 WHERE number = ? RETURNING version";

const THREADS: &str = include_str!("sql/threads.sql");

/// Damaged rows are left out, because their sum could be too large.
const BYTES_OF_OWNER: &str = "
    SELECT COALESCE(SUM(bytes), 0) + (SELECT COALESCE(SUM(OCTET_LENGTH(q.request)), 0) FROM agui_queued_runs AS q
        JOIN agui_threads AS t ON t.number = q.thread WHERE t.owner = ?1)
    FROM agui_threads WHERE owner = ?1 AND bytes BETWEEN 0 AND 1099511627776";
const BYTES_OF_ALL: &str = "
    SELECT COALESCE(SUM(bytes), 0) + (SELECT COALESCE(SUM(OCTET_LENGTH(request)), 0) FROM agui_queued_runs)
    FROM agui_threads WHERE ?1 IS NULL AND bytes BETWEEN 0 AND 1099511627776";

const RUN_START: &str = include_str!("sql/run_start.sql");

const LOST: &str = "SELECT owner, id, run_id, number, run, holder FROM agui_threads WHERE holder <> ? ORDER BY run LIMIT ?";
const TAKE_OVER: &str = "
    UPDATE agui_threads SET holder = :new WHERE number = :thread AND run = :run AND holder = :holder AND holder <> :new";
const COUNT_TAKEOVER: &str = "UPDATE agui_runs SET takeovers = takeovers + 1 WHERE number = ?";

const SWEEP_SEALED: &str = "DELETE FROM agui_sealed WHERE until < ?";

/// Keeps threads in an SQLite file. Creates its tables, whose names start with `agui_`, if they are missing.
///
/// ```
/// use agui_store::{SqliteStore, Store};
///
/// # async fn example(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
/// let store = SqliteStore::open(&folder.join("threads.db")).await?;
/// store.check().await?;
/// # Ok(()) }
/// # let folder = tempfile::tempdir().unwrap();
/// # tokio::runtime::Runtime::new().unwrap().block_on(example(folder.path())).unwrap();
/// ```
#[derive(Debug)]
pub struct SqliteStore {
    writer: SqliteWriter,
    readers: Readers,
    /// The permit for a step of indexing or deleting.
    upkeep: Arc<Permits>,
    /// Locked while the write-ahead log is emptied.
    truncating: Mutex<()>,
    files: Arc<DatabaseFiles>,
    /// The files that the connections have opened.
    opened: Arc<Vec<FileId>>,
    /// The bytes that the database can have until the disk is full.
    capacity: Option<u64>,
}

/// Writes one page, although the number stays the same. Nothing else uses this number.
const PROBE: &str = "PRAGMA user_version = 1";

impl SqliteStore {
    /// Repeats a step of upkeep until it returns `false`.
    async fn keep_up(
        &self,
        kind: JobKind,
        owner: &str,
        step: impl Fn(&Tx<'_>) -> StoreResult<bool> + Clone + Send + 'static,
    ) -> StoreResult<()> {
        let owner = owner.into();
        loop {
            let (_permit, step) = (self.upkeep.take(&owner, 1).await, step.clone());
            if !self.writer.run(kind, move |tx| step(tx)).await? {
                return Ok(());
            }
        }
    }

    async fn search(&self, owner: &str, page: ThreadPage) -> StoreResult<Vec<Thread>> {
        let name = Arc::<str>::from(owner);
        loop {
            let (by, page) = (name.clone(), page.clone());
            let find = move |conn: &Connection| search::find(conn, &by, &page);
            if let Some(found) = self.readers.read(ReadKind::Search, owner, find).await? {
                return Ok(found);
            }
            let by = name.clone();
            self.keep_up(JobKind::Upkeep, owner, move |tx| search::index_step(tx, &by)).await?;
        }
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn begin(&self, run: &NewRun<'_>) -> StoreResult<BeginOutcome> {
        let run = BeginColumns::new(run, NO_WORDS)?;
        let (owner, bytes) = (JobOwner::Named(run.owner.clone()), run.bytes());
        self.writer
            .run_for(owner, bytes, JobKind::Operation, move |tx| begin::begin(tx, &run))
            .await
    }

    async fn append(&self, batches: &[EventBatch]) -> StoreResult<Vec<bool>> {
        let batches = batches.iter().map(BatchColumns::new).collect::<Result<Vec<_>, _>>()?;
        // The batches are of several owners: a log has at most 256 KiB that wait.
        let bytes = batches.iter().map(|batch| batch.body.len() as u64).sum();
        self.writer
            .run_for(JobOwner::Server, bytes, JobKind::Operation, move |tx| {
                events::append(tx, &batches)
            })
            .await
    }

    async fn promote(
        &self,
        lease: &Lease,
        request: Option<&str>,
        first: &EventBatch,
    ) -> StoreResult<bool> {
        let (first, request) = (BatchColumns::new(first)?.of(lease), request.map(str::to_owned));
        let bytes = first.body.len() as u64 + request.as_ref().map_or(0, |it| it.len() as u64);
        let promote = move |tx: &mut Tx<'_>| begin::promote(tx, request.as_deref(), &first);
        let owner = JobOwner::OfThread(lease.thread);
        self.writer.run_for(owner, bytes, JobKind::Operation, promote).await
    }

    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> StoreResult<Option<FinishedRun>> {
        let end = FinishColumns::new(lease, end, NO_WORDS)?;
        let (owner, bytes) = (JobOwner::OfThread(lease.thread), end.bytes());
        self.writer.run_for(owner, bytes, JobKind::Ending, move |tx| finish::finish(tx, &end)).await
    }

    async fn set_delivered(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        delivered: bool,
    ) -> StoreResult<Option<i64>> {
        let set = move |tx: &mut Tx<'_>| {
            tx.execute(SET_DELIVERED, (delivered, run))?;
            one(tx.conn, RAISE_VERSION, [thread], |row| Ok(row.get(0)?))
        };
        self.writer.write(JobOwner::OfThread(thread), set).await
    }

    async fn set_alias(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        alias: &RunId,
    ) -> StoreResult<()> {
        let alias = name_to_text(alias).into_owned();
        let set = move |tx: &mut Tx<'_>| tx.execute(SET_ALIAS, (&alias, run)).map(drop);
        self.writer.write(JobOwner::OfThread(thread), set).await
    }

    async fn thread(
        &self,
        key: &ThreadKey,
        include: ThreadParts,
    ) -> StoreResult<Option<ThreadView>> {
        let (key, kind) =
            (key.clone(), if include.messages { ReadKind::Thread } else { ReadKind::Page });
        let owner = key.owner.clone();
        self.readers.read(kind, &owner, move |conn| reader::thread(conn, &key, include)).await
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> StoreResult<Vec<Thread>> {
        let by = owner;
        let page = page.clone();
        let owner = owner.to_owned();
        if page.query.is_some() {
            return self.search(by, page).await;
        }
        let list = move |conn: &Connection| {
            let (after, agent) = (
                page.after.unwrap_or(RunNumber(i64::MAX)),
                page.agent.as_deref().map(name_to_text),
            );
            let params = named_params! {
                ":owner": owner, ":after": after, ":archived": page.archived, ":agent": agent,
                ":limit": page.limit as i64,
            };
            all(conn, THREADS, params, |row| rows::thread(row))
        };
        self.readers.read(ReadKind::Page, by, list).await
    }

    async fn update(
        &self,
        expected: ThreadVersion,
        update: &ThreadUpdate<'_>,
    ) -> StoreResult<bool> {
        let new = UpdateColumns::new(expected, update, NO_WORDS)?;
        let update = move |tx: &mut Tx<'_>| {
            let params = named_params! {
                ":thread": new.expected.number, ":version": new.expected.version, ":sets_title": new.sets_title,
                ":title": new.title, ":archived": new.archived, ":sets_metadata": new.sets_metadata,
                ":metadata": new.metadata, ":head": new.head, ":state": new.state, ":interrupts": new.interrupts,
            };
            Ok(tx.execute(UPDATE, params)? > 0)
        };
        self.writer.write(JobOwner::OfThread(expected.number), update).await
    }

    async fn messages(&self, thread: &Thread, query: &MessageQuery) -> StoreResult<MessagePage> {
        let owner = &*thread.key.owner;
        let thread = thread.number;
        let query = *query;
        self.readers
            .read(ReadKind::Page, owner, move |conn| reader::messages(conn, thread, query))
            .await
    }

    async fn set_feedback(
        &self,
        thread: ThreadNumber,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> StoreResult<bool> {
        let (message, feedback) = (name_to_text(message).into_owned(), feedback.map(to_json));
        let set = move |tx: &mut Tx<'_>| {
            let params =
                named_params! { ":thread": thread, ":message": message, ":feedback": feedback };
            Ok(tx.execute(SET_FEEDBACK, params)? > 0)
        };
        self.writer.write(JobOwner::OfThread(thread), set).await
    }

    async fn content(&self, key: &ThreadKey) -> StoreResult<Option<ThreadContent>> {
        let (owner, key) = (key.owner.clone(), key.clone());
        self.readers
            .read(ReadKind::Thread, &owner, move |conn| whole_thread::read(conn, &key))
            .await
    }

    async fn insert(&self, key: &ThreadKey, content: &ThreadContent) -> StoreResult<bool> {
        let _permit = self.readers.permits.take(ReadKind::Thread, &key.owner).await;
        let columns = ContentColumns::new(key, content, NO_WORDS)?;
        let (owner, bytes) = (JobOwner::Named(columns.owner.clone()), columns.bytes);
        self.writer
            .run_for(owner, bytes, JobKind::Operation, move |tx| whole_thread::insert(tx, &columns))
            .await
    }

    async fn run(
        &self,
        owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> StoreResult<Option<RunRecord>> {
        let id = name_to_text(id).into_owned();
        self.readers
            .read(ReadKind::Page, owner, move |conn| {
                one(conn, reader::NEWEST_ATTEMPT, (thread, id), |row| rows::run(row))
            })
            .await
    }

    async fn attempts(
        &self,
        owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> StoreResult<Vec<RunRecord>> {
        let id = name_to_text(id).into_owned();
        self.readers
            .read(ReadKind::Page, owner, move |conn| {
                all(conn, reader::ATTEMPTS, (thread, id), |row| rows::run(row))
            })
            .await
    }

    async fn end_state(
        &self,
        owner: &str,
        thread: ThreadNumber,
        by: EndedRun<'_>,
    ) -> StoreResult<Option<EndState>> {
        let columns = by.columns();
        self.readers
            .read(ReadKind::Page, owner, move |conn| reader::end_state(conn, thread, columns))
            .await
    }

    async fn answered(&self, owner: &str, thread: ThreadNumber) -> StoreResult<Vec<ResumeEntry>> {
        self.readers.read(ReadKind::Page, owner, move |conn| reader::answered(conn, thread)).await
    }

    async fn events(
        &self,
        owner: &str,
        run: RunNumber,
        after: u64,
        max_bytes: usize,
    ) -> StoreResult<Option<EventPage>> {
        self.readers
            .read(ReadKind::Page, owner, move |conn| events::read(conn, run, after, max_bytes))
            .await
    }

    async fn stored_bytes(&self, owner: Option<&str>) -> StoreResult<u64> {
        let (by, sql) = owner.map_or((SERVER, BYTES_OF_ALL), |owner| (owner, BYTES_OF_OWNER));
        let owner = owner.map(str::to_owned);
        let sum = move |conn: &Connection| {
            let of_files = file_rows::file_sums(conn, owner.as_deref().unwrap_or(ALL_OWNERS))?;
            let of_threads = one(conn, sql, [owner], |row| Ok(row.get::<_, u64>(0)?))?;
            Ok(of_threads.unwrap_or_default() + of_files.cost())
        };
        self.readers.read(ReadKind::Page, by, sum).await
    }

    async fn run_start(&self, owner: &str, run: RunNumber) -> StoreResult<Option<RunStart>> {
        self.readers
            .read(ReadKind::Page, owner, move |conn| {
                one(conn, RUN_START, [run], |row| rows::run_start(row))
            })
            .await
    }

    async fn delete(&self, thread: ThreadNumber) -> StoreResult<bool> {
        self.delete_thread(thread).await
    }

    async fn delete_all(&self, owner: &str) -> StoreResult<u64> {
        self.delete_threads_of(owner).await
    }

    async fn damaged_rows(&self) -> StoreResult<Vec<String>> {
        let check = |conn: &Connection| {
            let mut found = Vec::new();
            for (table, sql) in CHECKED_TABLES {
                let mut select = conn.prepare(sql)?;
                let mut rows = select.query([])?;
                while let Some(row) = rows.next()?.filter(|_| found.len() < MAX_DAMAGED_ROWS) {
                    found.extend(inspect(table, row)?);
                }
            }
            Ok(found)
        };
        // The writer's connection, because the time of readers is limited.
        self.writer.run(JobKind::Ending, move |tx| check(tx.conn)).await
    }

    fn files(&self) -> Option<&dyn FileStore> {
        Some(self)
    }

    fn queue(&self) -> Option<&dyn RunQueue> {
        Some(self)
    }

    fn sealed_values(&self) -> Option<&dyn SealedStore> {
        Some(self)
    }

    async fn sweep(&self, retention: &Retention, now: Millis) -> StoreResult<SweepResult> {
        // Deletes also on a full disk, where deletions use the reserve.
        self.writer.run(JobKind::Purging, move |tx| tx.execute(SWEEP_SEALED, [now])).await?;
        self.remove_surplus(retention, now).await
    }

    async fn lost_runs(
        &self,
        holder: &str,
        _now: Millis,
        limit: usize,
    ) -> StoreResult<Vec<LostRun>> {
        let params = (holder.to_owned(), limit as i64);
        self.readers
            .read(ReadKind::Page, SERVER, move |conn| {
                all(conn, LOST, params, |row| rows::lost_run(row))
            })
            .await
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        _now: Millis,
        _until: Millis,
    ) -> StoreResult<Option<Lease>> {
        let (lost, new) = (lost.clone(), Lease { holder: holder.into(), ..lost.clone() });
        let take_over = move |tx: &mut Tx<'_>| {
            let params = named_params! {
                ":thread": lost.thread, ":run": lost.run, ":holder": lost.holder, ":new": new.holder,
            };
            if tx.execute(TAKE_OVER, params)? == 0 {
                return Ok(None);
            }
            tx.execute(COUNT_TAKEOVER, [lost.run])?;
            Ok(Some(new.clone()))
        };
        self.writer.run(JobKind::Ending, take_over).await
    }

    /// Half of the file's limit: the search index, the logs and free pages take the rest.
    fn capacity(&self) -> Option<u64> {
        self.capacity.map(|bytes| bytes / 2)
    }

    async fn check(&self) -> StoreResult<()> {
        let (files, opened) = (self.files.clone(), self.opened.clone());
        let found = tokio::task::spawn_blocking(move || files.ids().map(|found| found == *opened));
        let found = found.await.map_err(io::Error::other).flatten();
        if !found.map_err(|error| StoreError::Unavailable(error.into()))? {
            let path = self.files.path.display();
            let problem = format!(
                "files of the database {path} were removed or replaced while it is in use: stop the server, put them in \
                 place, and start it; what is stored until then is lost"
            );
            return Err(StoreError::Unavailable(problem.into()));
        }
        let probe = |tx: &mut Tx<'_>| match tx.reserve.is_disk_full() {
            true => Err(disk_full()),
            false => Ok(tx.conn.execute_batch(PROBE)?),
        };
        self.writer.write(JobOwner::Server, probe).await
    }
}
