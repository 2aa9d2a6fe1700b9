//! A store in a database: a file of SQLite, or Postgres.
//!
//! There is one SQL text for both, on TEXT and BIGINT columns alone; where they must differ, a
//! [`Dialect`] says how. The rest of this module is one file a task:
//!
//! - `sqlite` and `postgres` open the database, `migrate` brings its tables up to date;
//! - `connect` runs an operation on a connection, `error` tells what may pass from what does not;
//! - `key` makes keys of identifiers, `rows` makes records of rows;
//! - `begin`, `finish`, `lease`, `log`, `read` and `remove` are the operations; `group` puts those of many runs
//!   into one transaction at a `pace`, and `many` into one statement; `fresh` lets runs on new threads begin before
//!   it.
//!
//! Every write of a run names the thread's row and the lease's token in the statement that locks the row, and
//! locks that row before any other. So a lease that was taken over cannot write, and writers of one
//! thread wait for each other instead of blocking each other.

mod begin;
mod connect;
mod error;
mod finish;
mod fresh;
mod group;
mod key;
mod lease;
mod log;
mod many;
mod migrate;
mod pace;
mod postgres;
mod read;
mod remove;
mod rows;
mod sqlite;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use sqlx::{AnyPool, any::install_default_drivers};
use tokio::sync::Mutex;

pub use error::OpenError;

use self::{connect::Dialect, group::Group};
use super::{
    Append, Begin, CancelRequest, Events, Held, Lease, Millis, NewRun, Pruned, Retention, RunEnd, RunRecord, Store,
    StoreError, Thread, ThreadContent, ThreadPage, ThreadSummary,
};
use crate::protocol::{RunId, ThreadId};

/// Keeps threads in a database. Its tables are called `agui_…` and are made when they are not there.
///
/// ```
/// use agui_server::store::{Sql, Store};
///
/// # async fn example(folder: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
/// let store = Sql::sqlite(&folder.join("threads.db")).await?;
/// assert!(!store.is_shared());
/// assert!(store.thread(&"t".into()).await?.is_none());
/// store.close().await;
/// # Ok(()) }
/// # let folder = tempfile::tempdir().unwrap();
/// # tokio::runtime::Runtime::new().unwrap().block_on(example(folder.path())).unwrap();
/// ```
#[derive(Debug)]
pub struct Sql {
    dialect: Dialect,
    write: AnyPool,
    read: AnyPool,
    /// Held by a transaction that locks many threads.
    many: Arc<Mutex<()>>,
    /// Those who begin and end runs in a file of SQLite.
    group: Option<Arc<Group>>,
}

impl Sql {
    /// Opens a file of SQLite, and makes it when there is none. The file is this process's until the store is
    /// dropped and has written what has begun, or the process ends.
    pub async fn sqlite(path: &Path) -> Result<Self, OpenError> {
        install_default_drivers();
        sqlite::open(path).await
    }

    /// Connects to Postgres, by a URL such as `postgres://user:password@host:5432/database?sslmode=require`.
    /// Any number of processes may share it.
    pub async fn postgres(url: &str) -> Result<Self, OpenError> {
        install_default_drivers();
        postgres::open(url).await
    }

    /// Closes the connections once what runs on them is done. Whoever asks afterwards is told that the store
    /// is not available.
    pub async fn close(&self) {
        // What cannot be written now will not be after it either.
        let _ = self.made(|_| true).await;
        self.read.close().await;
        self.write.close().await;
    }

    fn new(dialect: Dialect, write: AnyPool, read: AnyPool, group: Option<Arc<Group>>) -> Self {
        Self { dialect, write, read, many: Arc::default(), group }
    }
}

#[async_trait]
impl Store for Sql {
    fn is_shared(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    async fn begin(&self, run: &NewRun) -> Result<Begin, StoreError> {
        self.begin_run(run).await
    }

    async fn save(&self, lease: &Lease, content: &ThreadContent) -> Result<(), StoreError> {
        self.save_content(lease, content).await
    }

    async fn append(&self, batches: &[Append]) -> Result<Vec<bool>, StoreError> {
        self.made(|row| batches.iter().any(|batch| row.is_of(&batch.lease))).await?;
        self.append_batches(batches).await
    }

    async fn finish(
        &self,
        lease: &Lease,
        content: Option<&ThreadContent>,
        last: Option<&Append>,
        end: &RunEnd,
    ) -> Result<(), StoreError> {
        self.finish_run(lease, content, last, end).await
    }

    async fn renew(&self, holder: &str, until: Millis) -> Result<Vec<Held>, StoreError> {
        self.made(|_| true).await?;
        self.renew_leases(holder, until).await
    }

    async fn cancel_requests(&self, holder: &str) -> Result<Vec<Held>, StoreError> {
        self.made(|_| true).await?;
        self.leases_to_cancel(holder).await
    }

    async fn request_cancel(&self, thread: &ThreadId, run: &RunId) -> Result<CancelRequest, StoreError> {
        self.made_thread(thread).await?;
        self.ask_to_cancel(thread, run).await
    }

    async fn lost(&self, holder: &str, now: Millis, limit: usize) -> Result<Vec<Lease>, StoreError> {
        self.made(|_| true).await?;
        self.lost_leases(holder, now, limit).await
    }

    async fn take_over(
        &self,
        lost: &Lease,
        holder: &str,
        now: Millis,
        until: Millis,
    ) -> Result<Option<Lease>, StoreError> {
        self.made_thread(&lost.thread_id).await?;
        self.take_over_lease(lost, holder, now, until).await
    }

    async fn thread(&self, id: &ThreadId) -> Result<Option<Thread>, StoreError> {
        self.made_thread(id).await?;
        self.read_thread(id).await
    }

    async fn threads(&self, owner: Option<&str>, page: &ThreadPage) -> Result<Vec<ThreadSummary>, StoreError> {
        // What cannot be written yet must not hide what is there.
        let _ = self.made(|_| true).await;
        self.read_threads(owner, page).await
    }

    async fn run(&self, thread: &ThreadId, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.made_thread(thread).await?;
        self.read_run(thread, run).await
    }

    async fn runs(&self, thread: &ThreadId, limit: usize) -> Result<Vec<RunRecord>, StoreError> {
        self.made_thread(thread).await?;
        self.read_runs(thread, limit).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        run: &RunId,
        after: u64,
        max_bytes: usize,
    ) -> Result<Option<Events>, StoreError> {
        self.made_thread(thread).await?;
        self.read_events(thread, run, after, max_bytes).await
    }

    async fn delete(&self, thread: &ThreadId) -> Result<bool, StoreError> {
        self.made_thread(thread).await?;
        self.delete_thread(thread).await
    }

    async fn prune(&self, retention: &Retention, now: Millis) -> Result<Pruned, StoreError> {
        self.made(|_| true).await?;
        self.prune_outdated(retention, now).await
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.check_tables().await
    }
}
