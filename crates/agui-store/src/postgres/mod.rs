//! The store in Postgres, which several processes can share.
//!
//! A run takes two statements, one for its begin and one for its end, each in a transaction of its own (`sql`).
//! Processes notify each other after commits ([`notify`], [`listen`]). Every wait has a timeout. The pool reconnects
//! when the server is back.
//!
//! The tables are in `schema.sql`. To change them, raise `SCHEMA_VERSION` in `open`.

mod begin;
mod error;
mod events;
mod file_rows;
mod list;
mod listen;
mod notify;
mod numbers;
mod open;
mod pool;
mod queue;
mod reader;
mod remove;
mod sealed;
mod stored_files;
mod whole_thread;
mod word_index;
mod words;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use sqlx::Row as _;
use tokio::task::JoinSet;

use self::{
    notify::Notifier,
    pool::{LARGE_WRITE_BYTES, PostgresPool},
    words::INDEXING,
};
use super::{
    BeginOutcome, CancelRequest, EndState, EndedRun, EventBatch, EventPage, Feedback, FinishedRun,
    Lease, LostRun, MessagePage, MessageQuery, Millis, NewRun, OpenError, Retention, RunEnd,
    RunNumber, RunQueue, RunRecord, RunStart, SharedStore, Signals, Store, StoreError, StoreResult,
    SweepResult, Thread, ThreadContent, ThreadKey, ThreadNumber, ThreadPage, ThreadParts,
    ThreadUpdate, ThreadVersion, ThreadView, Topic,
    columns::{BatchColumns, FinishColumns, UpdateColumns},
    files::{ALL_OWNERS, FileStore},
    read_permits::{ReadKind, SERVER},
    rows,
    sealed::SealedStore,
    text::{name_to_text, to_json},
};
use agui_protocol::{MessageId, ResumeEntry, RunId};

const FINISH: &str = include_str!("sql/finish.sql");
const HAS_ENDED: &str =
    "SELECT 1 FROM agui_runs WHERE number = $1 AND thread = $2 AND status = $3 AND ended_at = $4";
const UPDATE: &str = include_str!("sql/update.sql");

const SET_DELIVERED: &str = "
    WITH run AS (UPDATE agui_runs SET delivered = $3 WHERE number = $2)
    UPDATE agui_threads SET version = version + 1 WHERE number = $1 RETURNING version";

const SET_ALIAS: &str = "UPDATE agui_runs SET alias = $2 WHERE number = $1";

const OWNER: &str = "SELECT owner FROM agui_threads WHERE number = $1";

const SET_FEEDBACK: &str = "
    UPDATE agui_messages SET feedback = $3 WHERE thread = $1
        AND number = (SELECT MAX(number) FROM agui_messages WHERE thread = $1 AND id = $2) RETURNING number";

/// Damaged rows are left out, because their sum could be too large.
const BYTES_OF_OWNER: &str = "
    SELECT (COALESCE(SUM(bytes), 0) + (SELECT COALESCE(SUM(octet_length(q.request)), 0) FROM agui_queued_runs AS q
        JOIN agui_threads AS t ON t.number = q.thread WHERE t.owner = $1))::bigint
    FROM agui_threads WHERE owner = $1 AND bytes BETWEEN 0 AND 1099511627776";
const BYTES_OF_ALL: &str = "
    SELECT (COALESCE(SUM(bytes), 0)
        + (SELECT COALESCE(SUM(octet_length(request)), 0) FROM agui_queued_runs))::bigint
    FROM agui_threads WHERE $1::text IS NULL AND bytes BETWEEN 0 AND 1099511627776";

const RUN_START: &str = include_str!("sql/run_start.sql");

const LOST: &str = "
    SELECT owner, id, run_id, number, run, holder FROM agui_threads WHERE lease_until < $1 ORDER BY lease_until LIMIT $2";

const TAKE_OVER: &str = "
    WITH taken AS (
        UPDATE agui_threads SET holder = $4, lease_until = $6
        WHERE number = $1 AND run = $2 AND holder = $3 AND COALESCE(lease_until, 0) < $5 RETURNING run
    ), released AS (
        UPDATE agui_queued_runs SET holder = '' FROM taken WHERE thread = $1 AND agui_queued_runs.holder = $3
    )
    UPDATE agui_runs SET takeovers = takeovers + 1 FROM taken WHERE number = taken.run RETURNING number";

const RENEW: &str = include_str!("sql/renew.sql");
const FOLLOW: &str = include_str!("sql/follow.sql");

/// The holder is removed, so that the process does not renew the lease.
const RELEASE: &str = "
    UPDATE agui_threads SET holder = '', lease_until = 0 WHERE number = $1 AND run = $2 AND holder = $3 RETURNING number";

const REQUEST_CANCEL: &str = "
    UPDATE agui_threads SET cancel = TRUE WHERE number = $1 AND run_id = $2 AND holder IS NOT NULL RETURNING number";

const CANCEL_REQUESTS: &str =
    "SELECT run FROM agui_threads WHERE lease_until IS NOT NULL AND holder = $1 AND cancel";

/// Writes a row, although the version stays the same.
const CHECK: &str = "UPDATE agui_schema SET version = version RETURNING version";

const SWEEP_SEALED: &str = "DELETE FROM agui_sealed WHERE until < $1";

/// Keeps threads in a Postgres database. Creates its tables, whose names start with `agui_`, if they are missing.
#[derive(Debug)]
pub struct PostgresStore {
    pool: PostgresPool,
    notifier: Arc<Notifier>,
    signals: Signals,
    /// Aborted when they are dropped.
    _tasks: JoinSet<()>,
}

impl PostgresStore {
    /// Connects to the database of a URL such as `postgres://user:password@host:5432/database`. If it is the URL of a pooler for
    /// transactions, the store works, and polls in place of notifications: better use [`open_pooled`](Self::open_pooled).
    ///
    /// # Errors
    /// An [`OpenError`] if the URL is invalid, the server does not respond within 5 s or refuses, or the tables are of another
    /// version or cannot be created.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn open(url: &str) -> Result<Self, OpenError> {
        Ok(Self::new(open::open(url, None).await?))
    }

    /// Connects to the database through a pooler, such as PgBouncer in transaction mode. `listen_url` is the URL of the database
    /// itself: one connection to it gets the notifications of other processes, which a pooler does not deliver. The role's own
    /// settings apply.
    ///
    /// # Errors
    /// The same as of [`open`](Self::open).
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn open_pooled(url: &str, listen_url: &str) -> Result<Self, OpenError> {
        Ok(Self::new(open::open(url, Some(listen_url)).await?))
    }

    fn new(pool: PostgresPool) -> Self {
        let signals = Signals::default();
        let notifier = Arc::new(Notifier::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(notifier.clone().run(pool.clone()));
        tasks.spawn(listen::listen(pool.clone(), notifier.clone(), signals.clone()));
        tasks.spawn(word_index::renew_index(pool.clone()));
        Self { pool, notifier, signals, _tasks: tasks }
    }

    /// Notifies this process as well: it may follow a lost run in the store whose lease it has
    /// taken.
    fn notify(&self, topics: Vec<Topic>) {
        topics.iter().for_each(|topic| self.signals.raise(*topic));
        self.notifier.notify(topics);
    }

    /// Notifies of appends to the logs of followed runs.
    fn notify_appended(&self, runs: &[RunNumber]) {
        runs.iter().for_each(|run| self.signals.raise(Topic::Run(*run)));
        self.notifier.notify_appended(runs);
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn begin(&self, run: &NewRun<'_>) -> StoreResult<BeginOutcome> {
        begin::begin(&self.pool, run).await
    }

    async fn append(&self, batches: &[EventBatch]) -> StoreResult<Vec<bool>> {
        let (appended, followed) = events::append(&self.pool, batches).await?;
        self.notify_appended(&followed);
        Ok(appended)
    }

    async fn promote(
        &self,
        lease: &Lease,
        request: Option<&str>,
        first: &EventBatch,
    ) -> StoreResult<bool> {
        let first = BatchColumns::new(first)?.of(lease);
        let promoted = events::promote(&self.pool, request, &first).await?;
        if promoted == Some(true) {
            self.notify_appended(&[lease.run]);
        }
        Ok(promoted.is_some())
    }

    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> StoreResult<Option<FinishedRun>> {
        let columns = FinishColumns::new(lease, end, INDEXING)?;
        let mut owner = None;
        if columns.bytes() >= LARGE_WRITE_BYTES {
            let found = self.pool.first(sqlx::query(OWNER).bind(lease.thread)).await?;
            owner = found.map(|row| row.try_get::<String, _>(0)).transpose()?;
        }
        let mut operation =
            self.pool.write(owner.as_deref().unwrap_or(SERVER), columns.bytes()).await?;
        if !columns.branch.files.is_empty() {
            operation.begin("BEGIN").await?;
        }
        let finished = match operation.first(sqlx::query(FINISH).bind(to_json(&columns))).await? {
            Some(row) => Some(FinishedRun {
                version: row.try_get(0)?,
                last_message: row.try_get(1)?,
                state_number: row.try_get(2)?,
                bytes: row.try_get::<i64, _>(3)?.cast_unsigned(),
            }),
            None => {
                let same = sqlx::query(HAS_ENDED).bind(lease.run).bind(lease.thread);
                let same =
                    operation.first(same.bind(columns.status).bind(columns.ended_at)).await?;
                same.map(|_| None).ok_or(StoreError::LeaseLost)?
            }
        };
        file_rows::use_files(&mut operation, lease.thread, &columns.branch.files).await?;
        operation.commit().await?;
        self.notify(vec![Topic::Thread(lease.thread), Topic::Run(lease.run)]);
        Ok(finished)
    }

    async fn set_delivered(
        &self,
        thread: ThreadNumber,
        run: RunNumber,
        delivered: bool,
    ) -> StoreResult<Option<i64>> {
        let set = sqlx::query(SET_DELIVERED).bind(thread).bind(run).bind(delivered);
        self.pool.first(set).await?.map(|row| Ok(row.try_get(0)?)).transpose()
    }

    async fn set_alias(
        &self,
        _thread: ThreadNumber,
        run: RunNumber,
        alias: &RunId,
    ) -> StoreResult<()> {
        let set = sqlx::query(SET_ALIAS).bind(run).bind(&*name_to_text(alias));
        self.pool.first(set).await.map(drop)
    }

    async fn thread(
        &self,
        key: &ThreadKey,
        include: ThreadParts,
    ) -> StoreResult<Option<ThreadView>> {
        reader::thread(&self.pool, key, include).await
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> StoreResult<Vec<Thread>> {
        list::threads(&self.pool, owner, page).await
    }

    async fn update(
        &self,
        expected: ThreadVersion,
        update: &ThreadUpdate<'_>,
    ) -> StoreResult<bool> {
        let columns = UpdateColumns::new(expected, update, INDEXING)?;
        Ok(self.pool.first(sqlx::query(UPDATE).bind(to_json(&columns))).await?.is_some())
    }

    async fn messages(&self, thread: &Thread, query: &MessageQuery) -> StoreResult<MessagePage> {
        reader::messages(&self.pool, &thread.key.owner, thread.number, *query).await
    }

    async fn set_feedback(
        &self,
        thread: ThreadNumber,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> StoreResult<bool> {
        let set = sqlx::query(SET_FEEDBACK).bind(thread).bind(name_to_text(message).into_owned());
        Ok(self.pool.first(set.bind(feedback.map(to_json))).await?.is_some())
    }

    async fn content(&self, key: &ThreadKey) -> StoreResult<Option<ThreadContent>> {
        whole_thread::content(&self.pool, key).await
    }

    async fn insert(&self, key: &ThreadKey, content: &ThreadContent) -> StoreResult<bool> {
        whole_thread::insert(&self.pool, key, content).await
    }

    async fn run(
        &self,
        owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> StoreResult<Option<RunRecord>> {
        reader::run(&self.pool, owner, thread, id).await
    }

    async fn attempts(
        &self,
        owner: &str,
        thread: ThreadNumber,
        id: &RunId,
    ) -> StoreResult<Vec<RunRecord>> {
        reader::attempts(&self.pool, owner, thread, id).await
    }

    async fn end_state(
        &self,
        owner: &str,
        thread: ThreadNumber,
        by: EndedRun<'_>,
    ) -> StoreResult<Option<EndState>> {
        reader::end_state(&self.pool, owner, thread, by).await
    }

    async fn answered(&self, owner: &str, thread: ThreadNumber) -> StoreResult<Vec<ResumeEntry>> {
        reader::answered(&self.pool, owner, thread).await
    }

    async fn events(
        &self,
        owner: &str,
        run: RunNumber,
        after: u64,
        max_bytes: usize,
    ) -> StoreResult<Option<EventPage>> {
        Ok(events::read(&self.pool, owner, &[(run, after)].into(), max_bytes).await?.remove(&run))
    }

    async fn events_of_runs(
        &self,
        after: &BTreeMap<RunNumber, u64>,
        max_bytes: usize,
    ) -> StoreResult<BTreeMap<RunNumber, EventPage>> {
        events::read(&self.pool, SERVER, after, max_bytes).await
    }

    async fn stored_bytes(&self, owner: Option<&str>) -> StoreResult<u64> {
        let sum =
            sqlx::query(if owner.is_some() { BYTES_OF_OWNER } else { BYTES_OF_ALL }).bind(owner);
        let mut operation = self.pool.read(ReadKind::Page, owner.unwrap_or(SERVER)).await?;
        let of_threads =
            operation.first(sum).await?.map_or(Ok(0), |row| row.try_get::<i64, _>(0))?;
        let of_files = file_rows::file_sums(&mut operation, owner.unwrap_or(ALL_OWNERS)).await?;
        Ok(of_threads.cast_unsigned() + of_files.cost())
    }

    async fn run_start(&self, owner: &str, run: RunNumber) -> StoreResult<Option<RunStart>> {
        reader::one(&self.pool, owner, sqlx::query(RUN_START).bind(run), rows::run_start).await
    }

    async fn delete(&self, thread: ThreadNumber) -> StoreResult<bool> {
        let deleted = remove::delete_threads(&self.pool, &[thread], false).await?;
        self.notifier.notify([Topic::Thread(thread)]);
        Ok(deleted > 0)
    }

    async fn delete_all(&self, owner: &str) -> StoreResult<u64> {
        let deleted = remove::delete_all(&self.pool, owner).await?;
        file_rows::delete_all(&self.pool, owner).await?;
        Ok(deleted)
    }

    async fn damaged_rows(&self) -> StoreResult<Vec<String>> {
        reader::damaged_rows(&self.pool).await
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
        self.pool.all(sqlx::query(SWEEP_SEALED).bind(now)).await?;
        remove::sweep(&self.pool, retention, now).await
    }

    async fn lost_runs(
        &self,
        _holder: &str,
        now: Millis,
        limit: usize,
    ) -> StoreResult<Vec<LostRun>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.pool
            .all(sqlx::query(LOST).bind(now).bind(limit))
            .await?
            .iter()
            .map(rows::lost_run)
            .collect()
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> StoreResult<Option<Lease>> {
        let query = sqlx::query(TAKE_OVER).bind(lost.thread).bind(lost.run).bind(&*lost.holder);
        let taken = self.pool.first(query.bind(holder).bind(now).bind(until)).await?;
        Ok(taken.map(|_| Lease { holder: holder.into(), ..lost.clone() }))
    }

    async fn check(&self) -> StoreResult<()> {
        let checked = self.pool.first(sqlx::query(CHECK)).await?;
        checked.map(drop).ok_or_else(|| StoreError::Failed("agui_schema is empty".into()))
    }

    fn shared(&self) -> Option<&dyn SharedStore> {
        Some(self)
    }
}

#[async_trait]
impl SharedStore for PostgresStore {
    async fn renew(&self, holder: &str, until: Millis) -> StoreResult<Vec<LostRun>> {
        let renew = sqlx::query(RENEW).bind(holder).bind(until);
        self.pool.all(renew).await?.iter().map(rows::lost_run).collect()
    }

    async fn follow(&self, threads: &[ThreadNumber]) -> StoreResult<()> {
        self.pool.all(sqlx::query(FOLLOW).bind(threads)).await.map(drop)
    }

    async fn release(&self, lease: &Lease) -> StoreResult<()> {
        let release = sqlx::query(RELEASE).bind(lease.thread).bind(lease.run).bind(&*lease.holder);
        self.pool.first(release).await?;
        self.notifier.notify_at_once(&self.pool, [Topic::Leases]).await
    }

    async fn request_cancel(
        &self,
        thread: ThreadNumber,
        run: &RunId,
    ) -> StoreResult<CancelRequest> {
        // Between the two statements the run may end and its next attempt may begin, which the next round finds.
        for _ in 0..3 {
            let request = sqlx::query(REQUEST_CANCEL).bind(thread).bind(&*name_to_text(run));
            if self.pool.first(request).await?.is_some() {
                self.notifier.notify([Topic::Cancels]);
                return Ok(CancelRequest::Requested);
            }
            match reader::run(&self.pool, SERVER, thread, run).await? {
                Some(record) if record.ended_at.is_some() => {
                    return Ok(CancelRequest::Ended(record));
                }
                Some(_) => {}
                None => return Ok(CancelRequest::Unknown),
            }
        }
        Err(StoreError::Unavailable(
            "another attempt of the run began during each of three tries to cancel it".into(),
        ))
    }

    async fn cancel_requests(&self, holder: &str) -> StoreResult<Vec<RunNumber>> {
        let rows = self.pool.all(sqlx::query(CANCEL_REQUESTS).bind(holder)).await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }

    fn announce(&self, text: String) {
        self.notifier.announce(text);
    }

    fn signals(&self) -> &Signals {
        &self.signals
    }
}
