//! Opens the first connection, and creates or checks the tables.

use std::str::FromStr as _;

use sqlx::{ConnectOptions as _, Connection as _, PgConnection, postgres::PgConnectOptions};
use tokio::time::timeout;

use super::{
    error::{message, open_error},
    pool::{CONNECT_TIMEOUT, PostgresPool},
};
use crate::store::OpenError;

const SCHEMA_VERSION: i64 = 2;

const SCHEMA: &str = include_str!("schema.sql");

const ENCODING: &str = "SELECT current_setting('server_encoding')";
/// Keeps servers that start at the same time from creating the tables twice. The number is arbitrary.
const LOCK: &str = "SELECT pg_advisory_xact_lock(4702121837)";
const HAS_TABLES: &str = "SELECT to_regclass('agui_schema') IS NOT NULL";
const VERSION: &str = "SELECT version FROM agui_schema";

pub(super) async fn open(url: &str) -> Result<PostgresPool, OpenError> {
    let invalid = |why: String| OpenError::Url { why };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(invalid("it does not begin with postgres://".to_owned()));
    }
    let options = PgConnectOptions::from_str(url).map_err(|error| invalid(message(&error)))?;
    // PgBouncer rejects this start-up parameter, and no column is a float.
    let options = options.extra_float_digits(None).disable_statement_logging();
    let place = place(&options);
    // Not through the pool, which would retry and lose the cause of the error.
    let timed_out = || OpenError::Unreachable { place: place.clone(), why: "no response in time".to_owned() };
    let connected = timeout(CONNECT_TIMEOUT, options.connect()).await.map_err(|_| timed_out())?;
    let mut conn = connected.map_err(|error| open_error(&place, &error))?;
    timeout(CONNECT_TIMEOUT, prepare(&mut conn, &place)).await.map_err(|_| timed_out())??;
    // An error does not matter here: the connection is not used again.
    let _ = conn.close().await;
    Ok(PostgresPool::new(options))
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
    let encoding: String = sqlx::query_scalar(ENCODING).fetch_one(&mut *conn).await.map_err(to_error)?;
    if encoding != "UTF8" {
        return Err(tables(format!("the encoding of the database is {encoding}, not UTF8")));
    }
    let mut tx = conn.begin().await.map_err(to_error)?;
    sqlx::query(LOCK).execute(&mut *tx).await.map_err(to_error)?;
    if !sqlx::query_scalar(HAS_TABLES).fetch_one(&mut *tx).await.map_err(to_error)? {
        sqlx::raw_sql(SCHEMA).execute(&mut *tx).await.map_err(to_error)?;
    }
    let found = sqlx::query_scalar(VERSION).fetch_one(&mut *tx).await.map_err(to_error)?;
    tx.commit().await.map_err(to_error)?;
    match found {
        SCHEMA_VERSION => Ok(()),
        found => Err(OpenError::Version { place: place.to_owned(), found, known: SCHEMA_VERSION }),
    }
}
