//! The connection pool, and the timeout of operations.
//!
//! Reads and large writes have permits of their own, fewer than there are connections, so that
//! other writes always find a connection.

use std::{io, sync::Arc, time::Duration};

use futures::TryFutureExt as _;
use sqlx::{
    Connection as _, Executor as _, PgPool, Postgres,
    pool::PoolConnection,
    postgres::{PgArguments, PgConnectOptions, PgPoolOptions, PgRow},
    query::Query,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    StoreError, StoreResult,
    read_permits::{ReadKind, ReadPermits},
};
use agui_base::permits::{Permit, Permits};

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of an operation. Longer than `statement_timeout`, so that it only ends operations on
/// a server that does not respond.
const OPERATION_TIMEOUT: Duration = Duration::from_secs(8);
/// The interval at which Postgres checks that the client of a running statement is connected. Servers before version 14, and
/// on some systems, have no such setting, and end the statement by its timeout.
const CHECK_INTERVAL: &str = "SET client_connection_check_interval = '250ms'";
/// The number of connections for operations, at most eight of them for reads and two for large writes.
const MAX_CONNECTIONS: u32 = 12;
/// The steps of uploads, and other writes of many bytes, that run at once. An owner has half of them.
const MAX_LARGE_WRITES: usize = 2;
/// A write of at least this many bytes is large.
pub(super) const LARGE_WRITE_BYTES: u64 = 1 << 20;
const TEST_AFTER_IDLE: Duration = Duration::from_secs(1);
/// The timeout of one attempt to connect. Much shorter than [`CONNECT_TIMEOUT`], so that an
/// operation can try several connections.
const TEST_TIMEOUT: Duration = Duration::from_millis(500);

/// The way from this process to the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatabaseRoute {
    Direct,
    /// A pooler that gives a connection to the database for a transaction, such as PgBouncer in
    /// transaction mode. It keeps no settings, so the role's settings apply.
    Pooler,
    /// A pooler that does not keep prepared statements: PgBouncer before 1.21. A statement is
    /// prepared and executed within one transaction, which takes four round trips in place of one.
    OldPooler,
}

/// Settings of all connections. The statements rely on READ COMMITTED, and the database may have another default. A generic
/// plan is as good as a custom one for these statements, and saves planning. Parallel workers take longer to start than the
/// statements run.
const SETTINGS: &str = "
    SET statement_timeout = '6s';
    SET lock_timeout = '5s';
    SET idle_in_transaction_session_timeout = '15s';
    SET plan_cache_mode = force_generic_plan;
    SET max_parallel_workers_per_gather = 0;
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED";

#[derive(Debug, Clone)]
pub(super) struct PostgresPool {
    sqlx: PgPool,
    /// Has one connection, which does not go through a pooler; `None` if only a pooler's URL is known. It would give the
    /// notifications to the operations of others.
    pub(super) listener: Option<PgPool>,
    route: DatabaseRoute,
    permits: ReadPermits,
    large_writes: Arc<Permits>,
}

impl PostgresPool {
    pub(super) fn new(
        options: PgConnectOptions,
        listen: Option<PgConnectOptions>,
        route: DatabaseRoute,
    ) -> Self {
        let pool = || PgPoolOptions::new().acquire_timeout(CONNECT_TIMEOUT);
        let operations = pool()
            .max_connections(MAX_CONNECTIONS)
            .test_before_acquire(false)
            .before_acquire(|conn, meta| {
                Box::pin(async move {
                    let is_fresh = meta.idle_for <= TEST_AFTER_IDLE;
                    Ok(is_fresh || matches!(timeout(TEST_TIMEOUT, conn.ping()).await, Ok(Ok(()))))
                })
            })
            .after_connect(move |conn, _| {
                Box::pin(async move {
                    if route != DatabaseRoute::Direct {
                        return Ok(());
                    }
                    conn.execute(SETTINGS).await?;
                    match conn.execute(CHECK_INTERVAL).await {
                        Err(error) if error.as_database_error().is_none() => Err(error),
                        _ => Ok(()),
                    }
                })
            });
        let listener = listen.map(|listen| pool().max_connections(1).connect_lazy_with(listen));
        let large_writes = Permits::new(MAX_LARGE_WRITES, Some(MAX_LARGE_WRITES / 2));
        let sqlx = operations.connect_lazy_with(options);
        Self { sqlx, listener, route, permits: ReadPermits::new(), large_writes }
    }

    pub(super) async fn operation(&self) -> StoreResult<Operation> {
        self.operation_within(OPERATION_TIMEOUT, None).await
    }

    /// Waits for a permit of this owner, and begins a read.
    pub(super) async fn read(&self, kind: ReadKind, owner: &str) -> StoreResult<Operation> {
        let permit = self.permit(kind, owner).await;
        self.operation_within(kind.time_limit(), Some(permit)).await
    }

    /// Waits for a permit of this owner, and begins a step of an upload.
    pub(super) async fn upload(&self, owner: &str) -> StoreResult<Operation> {
        let permit = self.large_writes.take(&owner.into(), 1).await;
        self.operation_within(OPERATION_TIMEOUT, Some(permit)).await
    }

    /// Begins a write of `bytes` bytes. A large write waits for a permit of its owner, so that
    /// small writes find a connection.
    pub(super) async fn write(&self, owner: &str, bytes: u64) -> StoreResult<Operation> {
        if bytes < LARGE_WRITE_BYTES { self.operation().await } else { self.upload(owner).await }
    }

    pub(super) async fn permit(&self, kind: ReadKind, owner: &str) -> Permit {
        self.permits.take(kind, owner).await
    }

    pub(super) async fn operation_within(
        &self,
        limit: Duration,
        permit: Option<Permit>,
    ) -> StoreResult<Operation> {
        let conn = self.sqlx.acquire().await?;
        let deadline = Instant::now() + limit;
        Ok(Operation {
            conn,
            route: self.route,
            deadline,
            is_idle: true,
            in_transaction: false,
            permit,
        })
    }

    pub(super) async fn first(&self, query: Statement<'_>) -> StoreResult<Option<PgRow>> {
        self.operation().await?.first(query).await
    }

    pub(super) async fn all(&self, query: Statement<'_>) -> StoreResult<Vec<PgRow>> {
        self.operation().await?.all(query).await
    }
}

pub(super) type Statement<'q> = Query<'q, Postgres, PgArguments>;

/// A connection during an operation. If it is dropped during a statement, after a failed one or within a transaction, the
/// connection is closed and not reused, because a response may still arrive on it.
pub(super) struct Operation {
    conn: PoolConnection<Postgres>,
    route: DatabaseRoute,
    deadline: Instant,
    is_idle: bool,
    in_transaction: bool,
    permit: Option<Permit>,
}

impl Operation {
    /// Begins a transaction with this statement. It is rolled back unless [`commit`](Self::commit) is called.
    pub(super) async fn begin(&mut self, sql: &'static str) -> StoreResult<()> {
        self.in_transaction = true;
        self.execute(sql).await
    }

    /// Commits the transaction, if one has begun.
    pub(super) async fn commit(&mut self) -> StoreResult<()> {
        if self.in_transaction {
            self.execute("COMMIT").await?;
            self.in_transaction = false;
        }
        Ok(())
    }

    /// Gives the connection back, and keeps the permit.
    pub(super) fn into_permit(mut self) -> Option<Permit> {
        self.permit.take()
    }

    /// Executes a statement without parameters, which is not prepared.
    async fn execute(&mut self, sql: &'static str) -> StoreResult<()> {
        self.is_idle = false;
        within(self.deadline, self.conn.execute(sqlx::raw_sql(sql))).await?;
        self.is_idle = true;
        Ok(())
    }

    pub(super) async fn first(&mut self, query: Statement<'_>) -> StoreResult<Option<PgRow>> {
        let mut rows = self.all(query).await?;
        Ok(if rows.is_empty() { None } else { Some(rows.swap_remove(0)) })
    }

    pub(super) async fn all(&mut self, query: Statement<'_>) -> StoreResult<Vec<PgRow>> {
        let (query, is_alone) = match self.route {
            DatabaseRoute::OldPooler => (query.persistent(false), !self.in_transaction),
            DatabaseRoute::Direct | DatabaseRoute::Pooler => (query, false),
        };
        if is_alone {
            self.begin("BEGIN").await?;
        }
        self.is_idle = false;
        let rows = within(self.deadline, query.fetch_all(&mut *self.conn)).await?;
        self.is_idle = true;
        if is_alone {
            self.commit().await?;
        }
        Ok(rows)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        if !self.is_idle || self.in_transaction {
            self.conn.close_on_drop();
        }
    }
}

async fn within<T>(
    deadline: Instant,
    work: impl Future<Output = sqlx::Result<T>>,
) -> StoreResult<T> {
    let timed_out = |_| StoreError::Unavailable(io::Error::from(io::ErrorKind::TimedOut).into());
    timeout_at(deadline, work.err_into()).await.map_err(timed_out)?
}
