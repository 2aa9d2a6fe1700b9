//! Opens the first connection, and creates or checks the tables.

use std::str::FromStr as _;

use sqlx::{
    ConnectOptions as _, Connection as _, Decode, PgConnection, Postgres, Row as _, Type,
    postgres::PgConnectOptions,
};
use tokio::time::timeout;

use super::{
    error::{message, open_error},
    pool::{CONNECT_TIMEOUT, DatabaseRoute, PostgresPool},
    word_index::DECLARE as DECLARE_INDEXING,
};
use crate::OpenError;

const SCHEMA_VERSION: i64 = 4;

const SCHEMA: &str = include_str!("schema.sql");

const ENCODING: &str = "SELECT current_setting('server_encoding')";
/// Keeps servers that start at the same time from creating the tables twice. The number is arbitrary.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4702121837)";
const HAS_TABLES: &str = "SELECT to_regclass('agui_schema') IS NOT NULL";
const VERSION: &str = "SELECT version FROM agui_schema";

/// Returns whether the pooler keeps prepared statements: then PgBouncer has given a name to this
/// one.
const KEEPS_STATEMENTS: &str =
    "SELECT EXISTS (SELECT 1 FROM pg_prepared_statements WHERE name LIKE 'PGBOUNCER%')";
/// The statements rely on it. A pooler keeps no setting of a connection.
const ISOLATION: &str = "SELECT current_setting('default_transaction_isolation')";

const BACKEND: &str = "SELECT pg_backend_pid()";

/// With a `listen_url`, `url` is the URL of a pooler. Without it, the server finds out whether it is.
pub(super) async fn open(url: &str, listen_url: Option<&str>) -> Result<PostgresPool, OpenError> {
    let (options, direct) = (options(url)?, options(listen_url.unwrap_or(url))?);
    let place = place(&direct);
    // Connects without the pool, which would retry and lose the cause of the error.
    let mut conn = connect(&direct, &place).await?;
    let prepared = timeout(CONNECT_TIMEOUT, prepare(&mut conn, &place));
    prepared.await.unwrap_or_else(|_| Err(no_response(&place)))?;
    let is_unnamed_pooler = listen_url.is_none() && is_pooled(&mut conn, &direct, &place).await?;
    let route = match listen_url.is_some() || is_unnamed_pooler {
        false => DatabaseRoute::Direct,
        true => {
            let isolation: String =
                value(&mut conn, ISOLATION).await.map_err(|error| open_error(&place, &error))?;
            if isolation != "read committed" {
                let why = format!(
                    "default_transaction_isolation of the role is {isolation}, not read committed"
                );
                return Err(OpenError::Tables { place, why });
            }
            route_of(&options).await?
        }
    };
    // An error does not matter here: the connection is not used again.
    let _ = conn.close().await;
    Ok(PostgresPool::new(options, (!is_unnamed_pooler).then_some(direct), route))
}

fn options(url: &str) -> Result<PgConnectOptions, OpenError> {
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(OpenError::Url { why: "it does not begin with postgres://".to_owned() });
    }
    let options =
        PgConnectOptions::from_str(url).map_err(|error| OpenError::Url { why: message(&error) })?;
    // PgBouncer rejects this start-up parameter, and no column is a float.
    Ok(options.extra_float_digits(None).disable_statement_logging())
}

async fn connect(options: &PgConnectOptions, place: &str) -> Result<PgConnection, OpenError> {
    let connected =
        timeout(CONNECT_TIMEOUT, options.connect()).await.map_err(|_| no_response(place))?;
    connected.map_err(|error| open_error(place, &error))
}

fn no_response(place: &str) -> OpenError {
    OpenError::Unreachable { place: place.to_owned(), why: "no response in time".to_owned() }
}

/// Returns the first value of a statement that is not prepared: a pooler may execute what was prepared on another connection.
async fn value<T>(conn: &mut PgConnection, sql: &'static str) -> sqlx::Result<T>
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
{
    sqlx::raw_sql(sql).fetch_one(conn).await?.try_get(0)
}

/// Returns whether two connections have one connection of the database by turns, as behind a pooler that gives a connection for a
/// transaction.
async fn is_pooled(
    conn: &mut PgConnection,
    options: &PgConnectOptions,
    place: &str,
) -> Result<bool, OpenError> {
    let mut other = connect(options, place).await?;
    let compared = async {
        let first: i32 = value(conn, BACKEND).await?;
        let mut tx = other.begin().await?;
        let is_taken = first == value::<i32>(&mut tx, BACKEND).await?;
        let is_pooled = is_taken || first != value::<i32>(conn, BACKEND).await?;
        tx.rollback().await?;
        Ok(is_pooled)
    };
    let compared = timeout(CONNECT_TIMEOUT, compared).await.map_err(|_| no_response(place))?;
    compared.map_err(|error: sqlx::Error| open_error(place, &error))
}

/// Finds out what a pooler can do.
async fn route_of(options: &PgConnectOptions) -> Result<DatabaseRoute, OpenError> {
    let mut conn = connect(options, &place(options)).await?;
    let asked = timeout(CONNECT_TIMEOUT, async {
        let mut tx = conn.begin().await?;
        let keeps_statements: bool =
            sqlx::query_scalar(KEEPS_STATEMENTS).fetch_one(&mut *tx).await?;
        tx.commit().await?;
        Ok::<_, sqlx::Error>(keeps_statements)
    });
    // An old pooler may fail, because another process has left a statement of the same name on its connection.
    let keeps_statements = asked.await.is_ok_and(|asked| asked.is_ok_and(|keeps| keeps));
    Ok(if keeps_statements { DatabaseRoute::Pooler } else { DatabaseRoute::OldPooler })
}

/// Returns host and database, without user and password.
fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    match options.get_socket() {
        Some(socket) => format!("{}, database {database}", socket.display()),
        None => format!("{}:{}, database {database}", options.get_host(), options.get_port()),
    }
}

async fn prepare(conn: &mut PgConnection, place: &str) -> Result<(), OpenError> {
    let tables = |why: String| OpenError::Tables { place: place.to_owned(), why };
    let to_error = |error: sqlx::Error| tables(message(&error));
    let encoding: String = value(conn, ENCODING).await.map_err(to_error)?;
    if encoding != "UTF8" {
        return Err(tables(format!("the encoding of the database is {encoding}, not UTF8")));
    }
    let mut tx = conn.begin().await.map_err(to_error)?;
    sqlx::raw_sql(LOCK).execute(&mut *tx).await.map_err(to_error)?;
    if !value::<bool>(&mut tx, HAS_TABLES).await.map_err(to_error)? {
        sqlx::raw_sql(SCHEMA).execute(&mut *tx).await.map_err(to_error)?;
    }
    sqlx::raw_sql(DECLARE_INDEXING).execute(&mut *tx).await.map_err(to_error)?;
    let found = value(&mut tx, VERSION).await.map_err(to_error)?;
    tx.commit().await.map_err(to_error)?;
    match found {
        SCHEMA_VERSION => Ok(()),
        found => Err(OpenError::Version { place: place.to_owned(), found, known: SCHEMA_VERSION }),
    }
}
