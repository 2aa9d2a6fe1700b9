//! The thread that writes.

use std::{
    fs::File,
    io,
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::store::StoreError;

/// The most operations in one transaction.
const MAX_GROUP: usize = 128;

/// Hands operations to the thread that writes. Dropping it waits until all of them are done.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<Sender<Box<dyn Job>>>,
    thread: Option<JoinHandle<()>>,
}

/// What an operation works on: a transaction that it may share with others.
pub(super) struct Tx<'c> {
    pub(super) conn: &'c Connection,
    pub(super) numbers: &'c mut Numbers,
}

/// The numbers of the next thread and the next run. They are not used again while the process lives, so a lease of a
/// deleted thread fits no other one.
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
    /// Starts the thread, which also holds the lock on the file.
    pub(super) fn start(conn: Connection, numbers: Numbers, lock: File) -> io::Result<Self> {
        let (jobs, waiting) = channel();
        let thread = thread::Builder::new().name("agui-sqlite".to_owned()).spawn(move || {
            work_off(&conn, numbers, &waiting);
            drop(conn);
            drop(lock);
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs an operation in a transaction and returns when that is committed. The operation runs again, alone in a
    /// transaction, when the transaction that it shared with others failed. It is carried out also when the caller
    /// leaves.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(Task { work, done: None, answer });
        let ended = || StoreError::Unavailable("the thread that writes to SQLite has ended".into());
        self.jobs.as_ref().ok_or_else(ended)?.send(job).map_err(|_| ended())?;
        answered.await.map_err(|_| ended())?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported to those whose operations it had.
            let _ = thread.join();
        }
    }
}

trait Job: Send {
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError>;
    fn answer(self: Box<Self>, result: Result<(), StoreError>);
}

struct Task<T, F> {
    work: F,
    done: Option<T>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: FnMut(&mut Tx<'_>) -> Result<T, StoreError> + Send> Job for Task<T, F> {
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        self.done = Some((self.work)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, result: Result<(), StoreError>) {
        let Self { done, answer, .. } = *self;
        let result = result.and_then(|()| done.ok_or(StoreError::LeaseLost));
        // The caller may have left.
        let _ = answer.send(result);
    }
}

fn work_off(conn: &Connection, mut numbers: Numbers, waiting: &Receiver<Box<dyn Job>>) {
    let mut group = Vec::new();
    while let Ok(first) = waiting.recv() {
        group.push(first);
        // Others that are about to hand in an operation may do so before the transaction begins.
        thread::yield_now();
        group.extend(waiting.try_iter().take(MAX_GROUP - 1));
        let mut tx = Tx { conn, numbers: &mut numbers };
        match transact(&mut tx, &mut group) {
            Ok(()) => group.drain(..).for_each(|job| job.answer(Ok(()))),
            // One operation failed the transaction of all: each gets one of its own.
            Err(Failure::Work(_)) if group.len() > 1 => {
                for mut job in group.drain(..) {
                    let result = transact(&mut tx, std::slice::from_mut(&mut job));
                    job.answer(result.map_err(Failure::into_error));
                }
            }
            Err(failure) => {
                let error = failure.into_error();
                let text = error.to_string();
                let mut error = Some(error);
                for job in group.drain(..) {
                    job.answer(Err(error.take().unwrap_or_else(|| StoreError::Unavailable(text.as_str().into()))));
                }
            }
        }
    }
}

/// What failed a transaction.
enum Failure {
    /// Another process has locked the file.
    Begin(StoreError),
    /// An operation, or the commit.
    Work(StoreError),
}

impl Failure {
    fn into_error(self) -> StoreError {
        match self {
            Self::Begin(error) | Self::Work(error) => error,
        }
    }
}

fn transact(tx: &mut Tx<'_>, group: &mut [Box<dyn Job>]) -> Result<(), Failure> {
    tx.conn
        .prepare_cached("BEGIN IMMEDIATE")
        .and_then(|mut begin| begin.execute([]))
        .map_err(|e| Failure::Begin(e.into()))?;
    let worked = group.iter_mut().try_for_each(|job| job.run(tx));
    let committed = worked.and_then(|()| Ok(tx.conn.prepare_cached("COMMIT")?.execute([]).map(drop)?));
    if committed.is_err() && !tx.conn.is_autocommit() {
        // After some errors SQLite has rolled back by itself; that is not a failure of this statement then.
        let _ = tx.conn.execute_batch("ROLLBACK");
    }
    committed.map_err(Failure::Work)
}
