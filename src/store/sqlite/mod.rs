//! The store in an SQLite file, which belongs to one process.
//!
//! One thread runs all waiting writes in one transaction ([`writer`]). An operation returns after the commit. Reads
//! have a few connections of their own ([`reader`]) and do not wait for the writer. A commit survives the end of the
//! process (write-ahead log, `synchronous = NORMAL`). A power failure may lose the last commits, but does not damage
//! the file.
//!
//! The tables are in `schema.sql`. To change them, raise `SCHEMA_VERSION` in `open`.

mod begin;
mod connection;
mod content;
mod error;
mod events;
mod files;
mod finish;
mod messages;
mod open;
mod reader;
mod remove;
mod search;
mod truncate;
mod update;
mod words;
mod writer;

use std::{io, path::Path, sync::Arc};

use async_trait::async_trait;

use self::{
    files::{DatabaseFiles, FileIds, file_error},
    reader::Readers,
    truncate::WalTruncation,
    writer::Writer,
};
use super::{
    BeginOutcome, EndState, EndedRun, EventBatch, EventPage, Feedback, FinishedRun, Lease, LostRun, MessagePage,
    MessageQuery, Millis, NewRun, NewThread, OpenError, Retention, RunEnd, RunRecord, RunStart, Store, StoreError,
    SweepResult, ThreadContent, ThreadKey, ThreadPage, ThreadParts, ThreadSummary, ThreadUpdate, ThreadVersion,
    ThreadView,
    content_columns::ContentColumns,
    text::{UpdateColumns, name_to_text, to_json},
};
use crate::protocol::{MessageId, RunId, ThreadId};

/// Keeps threads in an SQLite file. Creates its tables, whose names start with `agui_`, if they are missing.
///
/// ```
/// use agui_server::store::{SqliteStore, Store};
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
    writer: Writer,
    readers: Readers,
    truncation: WalTruncation,
    files: Arc<DatabaseFiles>,
    /// The files that the connections have opened.
    opened: Arc<FileIds>,
}

/// Writes one page, although the number stays the same. Nothing else uses this number.
const PROBE: &str = "PRAGMA user_version = 1";

impl SqliteStore {
    /// Opens a file, or creates it. The file belongs to this process until the store is dropped.
    ///
    /// # Errors
    /// An [`OpenError`] if the file is in use, damaged, of another version, or cannot be written.
    pub async fn open(path: &Path) -> Result<Self, OpenError> {
        let path = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open::open(&path));
        let (writer, files, opened) = opened.await.unwrap_or_else(|error| Err(file_error(Path::new(""), error)))?;
        let (readers, truncation) = (Readers::new(files.clone()), WalTruncation::new(files.clone()));
        Ok(Self { writer, readers, truncation, files, opened: Arc::new(opened) })
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError> {
        let run = begin::BeginColumns::new(run);
        self.writer.write(move |tx| begin::begin(tx, &run)).await
    }

    async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
        let batches = batches.iter().map(events::BatchColumns::new).collect::<Result<Vec<_>, _>>()?;
        self.writer.write(move |tx| events::append(tx, &batches)).await
    }

    async fn finish(&self, lease: &Lease, end: &RunEnd<'_>) -> Result<Option<FinishedRun>, StoreError> {
        let end = finish::FinishColumns::new(lease, end)?;
        self.writer.write(move |tx| finish::finish(tx, &end)).await
    }

    async fn set_delivered(&self, thread: i64, run: i64, delivered: bool) -> Result<Option<i64>, StoreError> {
        self.writer.write(move |tx| finish::set_delivered(tx, thread, run, delivered)).await
    }

    async fn thread(&self, key: &ThreadKey, include: ThreadParts) -> Result<Option<ThreadView>, StoreError> {
        let key = key.clone();
        self.readers.read(move |conn| reader::thread(conn, &key, include)).await
    }

    async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        let (owner, page) = (owner.to_owned(), page.clone());
        let Some(query) = page.query.clone() else {
            return self.readers.read(move |conn| reader::threads(conn, &owner, &page)).await;
        };
        while self.writer.write(search::index_step).await? {}
        self.readers.read(move |conn| search::find(conn, &owner, &page, &query)).await
    }

    async fn update(&self, expected: ThreadVersion, update: &ThreadUpdate<'_>) -> Result<bool, StoreError> {
        let update = UpdateColumns::new(update);
        self.writer.write(move |tx| update::update(tx, expected, &update)).await
    }

    async fn messages(&self, thread: i64, query: &MessageQuery) -> Result<MessagePage, StoreError> {
        let query = *query;
        self.readers.read(move |conn| messages::messages(conn, thread, query)).await
    }

    async fn set_feedback(
        &self,
        thread: i64,
        message: &MessageId,
        feedback: Option<&Feedback>,
    ) -> Result<bool, StoreError> {
        let (message, feedback) = (name_to_text(message).into_owned(), feedback.map(to_json));
        self.writer.write(move |tx| update::set_feedback(tx, thread, &message, feedback.as_deref())).await
    }

    async fn content(&self, key: &ThreadKey) -> Result<Option<ThreadContent>, StoreError> {
        let key = key.clone();
        self.readers.read(move |conn| content::read(conn, &key)).await
    }

    async fn insert(&self, thread: NewThread<'_>) -> Result<bool, StoreError> {
        let columns = ContentColumns::new(thread);
        self.writer.write(move |tx| content::insert(tx, &columns)).await
    }

    async fn thread_of_run(&self, owner: &str, run: &RunId) -> Result<Option<ThreadId>, StoreError> {
        let (owner, run) = (owner.to_owned(), run.clone());
        self.readers.read(move |conn| reader::thread_of_run(conn, &owner, &run)).await
    }

    async fn run(&self, thread: i64, id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let id = id.clone();
        self.readers.read(move |conn| reader::run(conn, thread, &id)).await
    }

    async fn end_state(&self, thread: i64, by: EndedRun<'_>) -> Result<Option<EndState>, StoreError> {
        let (id, head) = match by {
            EndedRun::Id(id) => (Some(id.clone()), None),
            EndedRun::Head(head) => (None, Some(head)),
        };
        self.readers.read(move |conn| reader::end_state(conn, thread, id.as_ref(), head)).await
    }

    async fn events(&self, run: i64, after: u64, max_bytes: usize) -> Result<Option<EventPage>, StoreError> {
        self.readers.read(move |conn| events::read(conn, run, after, max_bytes)).await
    }

    async fn run_start(&self, run: i64) -> Result<Option<RunStart>, StoreError> {
        self.readers.read(move |conn| events::start(conn, run)).await
    }

    async fn delete(&self, thread: i64) -> Result<bool, StoreError> {
        self.delete_thread(thread).await
    }

    async fn sweep(&self, retention: &Retention, now: Millis) -> Result<SweepResult, StoreError> {
        self.remove_surplus(retention, now).await
    }

    async fn lost_runs(&self, holder: &str, _now: Millis, limit: usize) -> Result<Vec<LostRun>, StoreError> {
        let holder = holder.to_owned();
        self.readers.read(move |conn| reader::lost_runs(conn, &holder, limit)).await
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        _now: Millis,
        _until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        let (lost, holder) = (lost.clone(), Arc::<str>::from(holder));
        self.writer.write(move |tx| finish::take_over(tx, &lost, &holder)).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        let (files, opened) = (self.files.clone(), self.opened.clone());
        let found = tokio::task::spawn_blocking(move || files.ids().map(|found| found == *opened));
        let found = found.await.map_err(io::Error::other).flatten();
        if !found.map_err(|error| StoreError::Unavailable(error.into()))? {
            let path = self.files.path().display();
            let problem = format!(
                "files of the database {path} were removed or replaced while it is in use: stop the server, put them in \
                 place, and start it; what is stored until then is lost"
            );
            return Err(StoreError::Unavailable(problem.into()));
        }
        self.writer.write(|tx| Ok(tx.conn.execute_batch(PROBE)?)).await
    }
}
