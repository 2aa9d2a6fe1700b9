//! The thread that writes. It groups waiting operations into one transaction.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::files::DatabaseFiles;
use crate::store::StoreError;

const MAX_GROUP: usize = 128;

/// Sends operations to the writing thread. Dropping it waits until all of them are done.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

pub(super) struct Tx<'c> {
    pub(super) conn: &'c Connection,
    pub(super) numbers: &'c mut Numbers,
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

impl Writer {
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
        work: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, result) = oneshot::channel();
        let job = Box::new(Operation { work, output: None, sender });
        let ended = || StoreError::Unavailable("the thread that writes to SQLite has ended".into());
        self.jobs.as_ref().ok_or_else(ended)?.send(job).map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, its operations have failed with an error.
            let _ = thread.join();
        }
    }
}

trait Job: Send {
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError>;
    fn complete(self: Box<Self>, result: Result<(), StoreError>);
}

struct Operation<T, F> {
    work: F,
    output: Option<T>,
    sender: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send> Job for Operation<T, F> {
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        self.output = Some((self.work)(tx)?);
        Ok(())
    }

    fn complete(self: Box<Self>, result: Result<(), StoreError>) {
        let Self { output, sender, .. } = *self;
        let result = result.and_then(|()| output.ok_or(StoreError::LeaseLost));
        // Fails if the caller has dropped its future.
        let _ = sender.send(result);
    }
}

fn run_jobs(conn: &Connection, mut numbers: Numbers, waiting: &Receiver<Box<dyn Job>>) {
    let mut group = Vec::new();
    while let Ok(first) = waiting.recv() {
        group.push(first);
        // Lets tasks that are about to send an operation do so before the transaction begins.
        thread::yield_now();
        group.extend(waiting.try_iter().take(MAX_GROUP - 1));
        let mut tx = Tx { conn, numbers: &mut numbers };
        match transact(&mut tx, &mut group) {
            Ok(()) => group.drain(..).for_each(|job| job.complete(Ok(()))),
            Err(TransactionError::Work(_)) if group.len() > 1 => {
                for mut job in group.drain(..) {
                    let result = transact(&mut tx, std::slice::from_mut(&mut job));
                    job.complete(result.map_err(TransactionError::into_error));
                }
            }
            Err(error) => {
                let error = error.into_error();
                let text = error.to_string();
                let mut error = Some(error);
                for job in group.drain(..) {
                    job.complete(Err(error.take().unwrap_or_else(|| StoreError::Unavailable(text.as_str().into()))));
                }
            }
        }
    }
}

enum TransactionError {
    /// The transaction did not begin, because another process has locked the file.
    Begin(StoreError),
    Work(StoreError),
}

impl TransactionError {
    fn into_error(self) -> StoreError {
        match self {
            Self::Begin(error) | Self::Work(error) => error,
        }
    }
}

fn transact(tx: &mut Tx<'_>, group: &mut [Box<dyn Job>]) -> Result<(), TransactionError> {
    tx.conn
        .prepare_cached("BEGIN IMMEDIATE")
        .and_then(|mut begin| begin.execute([]))
        .map_err(|e| TransactionError::Begin(e.into()))?;
    let worked = group.iter_mut().try_for_each(|job| job.run(tx));
    let committed = worked.and_then(|()| Ok(tx.conn.prepare_cached("COMMIT")?.execute([]).map(drop)?));
    if committed.is_err() && !tx.conn.is_autocommit() {
        // Fails if SQLite has rolled back by itself, as it does after some errors.
        let _ = tx.conn.execute_batch("ROLLBACK");
    }
    committed.map_err(TransactionError::Work)
}
