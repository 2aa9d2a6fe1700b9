//! Runs an operation on a connection: whole, once, and within bounded time.
//!
//! An operation is a task of its own, so that a caller who leaves, such as a request whose client hung up, never
//! leaves a transaction half done or a connection with an unread answer behind; but a reader of SQLite may
//! leave at any time, and so is none: switching threads is most of what it costs. A connection on which
//! anything went wrong is closed: SQLite may have ended the transaction by itself, which the library does
//! not notice, and a server that did not answer may answer later.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use sqlx::{AnyConnection, AnyPool, Connection as _};
use tokio::{sync::Mutex, time::timeout};

use super::{Sql, error::Fault};
use crate::store::StoreError;

/// Longer than Postgres itself lets a statement run; who still hears nothing is not connected any more.
const SILENCE: Duration = Duration::from_secs(8);

/// Which database it is, for the little that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Begins a transaction that writes. SQLite's takes the lock at once: one that reads first and writes then
    /// fails when another wrote in between.
    pub(super) fn begin(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// How long an operation may take. A file answers, or the system has worse problems.
    fn patience(self) -> Duration {
        match self {
            Self::Sqlite => Duration::MAX,
            Self::Postgres => SILENCE,
        }
    }
}

/// The work of an operation, on a connection.
pub(super) type Work<'c, T> = BoxFuture<'c, Result<T, Fault>>;

impl Sql {
    /// Statements that only read, each by itself.
    pub(super) async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
    {
        match self.dialect {
            Dialect::Sqlite => Ok(on_connection(&self.read, self.dialect, work).await?),
            Dialect::Postgres => run(self.read.clone(), self.dialect, None, work).await,
        }
    }

    /// One statement that writes.
    pub(super) async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
    {
        run(self.write.clone(), self.dialect, None, work).await
    }

    /// A transaction that locks many threads. Two that lock the same ones in different orders would wait for
    /// each other; those of one process do not meet, and those of two lock the leases of their own runs.
    pub(super) async fn transact_many<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
    {
        run(self.write.clone(), self.dialect, Some(self.many.clone()), transaction(self.dialect, work)).await
    }

    /// A transaction that writes: whole when `work` succeeds, and else nothing.
    pub(super) async fn transact<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
    {
        run(self.write.clone(), self.dialect, None, transaction(self.dialect, work)).await
    }
}

/// `work` in a transaction, as an operation.
pub(super) fn transaction<T, F>(
    dialect: Dialect,
    work: F,
) -> impl for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
{
    move |conn: &mut AnyConnection| {
        Box::pin(async move {
            let mut tx = conn.begin_with(dialect.begin()).await?;
            match work(&mut tx).await {
                Ok(answer) => {
                    tx.commit().await?;
                    Ok(answer)
                }
                Err(fault) => {
                    if !matches!(fault, Fault::Sql(_)) {
                        tx.rollback().await?;
                    }
                    Err(fault)
                }
            }
        })
    }
}

async fn run<T, F>(pool: AnyPool, dialect: Dialect, turn: Option<Arc<Mutex<()>>>, work: F) -> Result<T, StoreError>
where
    T: Send + 'static,
    F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send + 'static,
{
    let task = tokio::spawn(async move {
        let _turn = match &turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        on_connection(&pool, dialect, work).await
    });
    match task.await {
        Ok(done) => done.map_err(StoreError::from),
        Err(error) if error.is_panic() => Err(StoreError::Failed(Box::new(error))),
        // The runtime shuts down.
        Err(error) => Err(StoreError::Unavailable(Box::new(error))),
    }
}

pub(super) async fn on_connection<T, F>(pool: &AnyPool, dialect: Dialect, work: F) -> Result<T, Fault>
where
    F: for<'c> FnOnce(&'c mut AnyConnection) -> Work<'c, T> + Send,
{
    let mut conn = pool.acquire().await?;
    let done = timeout(dialect.patience(), work(&mut conn)).await.unwrap_or(Err(Fault::Silent));
    if matches!(done, Err(Fault::Sql(_) | Fault::Silent)) {
        conn.close_on_drop();
    }
    done
}
