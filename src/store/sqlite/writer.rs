//! The thread that writes. It groups waiting operations into one transaction. Steps of upkeep, such as indexing, each have a
//! transaction of their own, and come after all operations that wait.

use std::{
    collections::VecDeque,
    io, iter,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
};

use parking_lot::Mutex;
use rusqlite::{Connection, Params};
use tokio::sync::oneshot;

use super::files::DatabaseFiles;
use crate::store::{StoreError, StoreResult};

const MAX_GROUP: usize = 128;

/// Sends operations to the writing thread. Dropping it waits until all of them are done.
#[derive(Debug)]
pub(super) struct SqliteWriter {
    jobs: Option<Sender<WriteJob>>,
    thread: Option<JoinHandle<()>>,
}

pub(super) struct Tx<'c> {
    pub(super) conn: &'c Connection,
    pub(super) numbers: &'c mut Numbers,
}

impl Tx<'_> {
    /// Runs a statement, which is prepared once. Returns the number of changed rows.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> StoreResult<usize> {
        Ok(self.conn.prepare_cached(sql)?.execute(params)?)
    }
}

/// No number is reused while the process lives, so a lease of a deleted thread is never valid for another one.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) next_thread: i64,
    pub(super) next_run: i64,
}

impl Numbers {
    pub(super) fn thread(&mut self) -> i64 {
        self.next_thread += 1;
        self.next_thread - 1
    }

    pub(super) fn run(&mut self) -> i64 {
        self.next_run += 1;
        self.next_run - 1
    }
}

impl SqliteWriter {
    /// Starts the thread.
    pub(super) fn start(conn: Connection, numbers: Numbers, files: Arc<DatabaseFiles>) -> io::Result<Self> {
        let (jobs, waiting) = channel();
        let thread = thread::Builder::new().name("agui-sqlite".to_owned()).spawn(move || {
            run_jobs(&conn, numbers, &waiting);
            drop(conn);
            drop(files);
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs an operation in a transaction and returns when the transaction is committed. If the transaction was shared and
    /// failed, the operation runs again in a transaction of its own. It also runs if the returned future is dropped.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.run(JobKind::Operation, work).await
    }

    /// Does the same with an operation or a step of upkeep.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        kind: JobKind,
        mut work: impl FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (done, result) = oneshot::channel();
        let output = Arc::new(Mutex::new(None));
        let written = output.clone();
        let work = Box::new(move |tx: &mut Tx<'_>| {
            *written.lock() = Some(work(tx)?);
            Ok(())
        });
        let ended = || StoreError::Unavailable("the thread that writes to SQLite has ended".into());
        self.jobs.as_ref().ok_or_else(ended)?.send(WriteJob { kind, work, done }).map_err(|_| ended())?;
        result.await.map_err(|_| ended())??;
        output.lock().take().ok_or_else(ended)
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, its operations have failed with an error.
            let _ = thread.join();
        }
    }
}

#[derive(PartialEq, Eq)]
pub(super) enum JobKind {
    Operation,
    /// A few milliseconds of work that no operation waits for.
    Upkeep,
}

type WriteWork = Box<dyn FnMut(&mut Tx<'_>) -> StoreResult<()> + Send>;

struct WriteJob {
    kind: JobKind,
    work: WriteWork,
    done: oneshot::Sender<StoreResult<()>>,
}

impl WriteJob {
    fn complete(self, result: StoreResult<()>) {
        // Fails if the caller has dropped its future.
        let _ = self.done.send(result);
    }
}

fn run_jobs(conn: &Connection, mut numbers: Numbers, waiting: &Receiver<WriteJob>) {
    let (mut tx, mut upkeep) = (Tx { conn, numbers: &mut numbers }, VecDeque::new());
    loop {
        let first = if upkeep.is_empty() { waiting.recv().ok() } else { None };
        if first.is_none() && upkeep.is_empty() {
            return;
        }
        // Lets tasks that are about to send an operation do so before the transaction begins.
        thread::yield_now();
        let jobs = first.into_iter().chain(waiting.try_iter().take(MAX_GROUP - 1));
        let (operations, steps): (Vec<_>, Vec<_>) = jobs.partition(|job| job.kind == JobKind::Operation);
        upkeep.extend(steps);
        if !operations.is_empty() {
            run_group(&mut tx, operations);
        }
        if let Some(step) = upkeep.pop_front() {
            run_group(&mut tx, vec![step]);
        }
    }
}

fn run_group(tx: &mut Tx<'_>, mut group: Vec<WriteJob>) {
    match begin(tx) {
        Ok(()) => match commit(tx, &mut group) {
            Ok(()) => group.into_iter().for_each(|job| job.complete(Ok(()))),
            Err(error) if group.len() == 1 => fail(group, error),
            Err(_) => group.into_iter().for_each(|mut job| {
                let result = begin(tx).and_then(|()| commit(tx, std::slice::from_mut(&mut job)));
                job.complete(result);
            }),
        },
        // Another process has locked the file.
        Err(error) => fail(group, error),
    }
}

/// Completes the first job with this error, and the others with its text.
fn fail(group: Vec<WriteJob>, error: StoreError) {
    let text = error.to_string();
    let others = iter::repeat_with(|| StoreError::Unavailable(text.as_str().into()));
    group.into_iter().zip(iter::once(error).chain(others)).for_each(|(job, error)| job.complete(Err(error)));
}

fn begin(tx: &Tx<'_>) -> StoreResult<()> {
    tx.execute("BEGIN IMMEDIATE", []).map(drop)
}

fn commit(tx: &mut Tx<'_>, group: &mut [WriteJob]) -> StoreResult<()> {
    let worked = group.iter_mut().try_for_each(|job| (job.work)(tx));
    let committed = worked.and_then(|()| tx.execute("COMMIT", []).map(drop));
    if committed.is_err() && !tx.conn.is_autocommit() {
        // Fails if SQLite has rolled back by itself, as it does after some errors.
        let _ = tx.conn.execute_batch("ROLLBACK");
    }
    committed
}
