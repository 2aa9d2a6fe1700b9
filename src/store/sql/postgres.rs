//! Connects to Postgres, which several processes can share.
//!
//! Nothing waits for ever: not for a connection, a lock, or an answer from a server that has gone. The pool
//! connects again by itself when the server is back.

use std::{str::FromStr as _, time::Duration};

use sqlx::{
    AnyConnection, AnyPool, ConnectOptions as _, Connection as _, Row as _,
    any::{AnyConnectOptions, AnyPoolOptions},
    postgres::PgConnectOptions,
};
use tokio::time::timeout;

use super::{
    Sql,
    connect::Dialect,
    error::{OpenError, plain},
    migrate::migrate,
};

/// How long an operation waits for a connection, new or old.
const PATIENCE: Duration = Duration::from_secs(5);

/// Few are enough: events of all runs are written together.
const CONNECTIONS: u32 = 10;

/// A connection that was idle for so long is tried before it is used; within, an error is likelier to be news.
const FRESH: Duration = Duration::from_secs(1);

/// What the server stops by itself, also when this process cannot tell it to any more. The isolation is the one
/// that the statements are written for, whatever the database's default is.
const SETTINGS: &str = "SET statement_timeout = '6s'; SET lock_timeout = '5s'; \
    SET idle_in_transaction_session_timeout = '15s'; \
    SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED";

pub(super) async fn open(url: &str) -> Result<Sql, OpenError> {
    let bad = |error: sqlx::Error| OpenError::Url { why: plain(&error) };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(OpenError::Url { why: "it does not begin with postgres://".to_owned() });
    }
    let place = place(&PgConnectOptions::from_str(url).map_err(bad)?);
    let options = AnyConnectOptions::from_str(url).map_err(bad)?.disable_statement_logging();
    // By hand first, for a pool would try again and again, and forget why it could not.
    let because = |error| OpenError::postgres(&place, &error);
    let silent = |_| OpenError::Unreachable { place: place.clone(), why: "no answer in time".to_owned() };
    let first = async {
        let mut first = options.connect().await?;
        configure(&mut first).await?;
        let row = sqlx::query("SELECT current_setting('server_encoding') AS encoding").fetch_one(&mut first).await?;
        Ok((row.try_get::<String, _>("encoding")?, first))
    };
    let (encoding, mut first) = timeout(PATIENCE, first).await.map_err(silent)?.map_err(because)?;
    if encoding != "UTF8" {
        return Err(OpenError::Tables { place, why: format!("its encoding is {encoding}, not UTF8") });
    }
    migrate(&mut first, Dialect::Postgres, &place).await?;
    // It is not needed any more; a server that forgets it is none the worse.
    let _ = first.close().await;
    let pool = pool(&options);
    Ok(Sql::new(Dialect::Postgres, pool.clone(), pool, None))
}

/// Where it is, without who asks and by which password.
fn place(options: &PgConnectOptions) -> String {
    let database = options.get_database().unwrap_or_else(|| options.get_username());
    match options.get_socket() {
        Some(socket) => format!("{}, database {database}", socket.display()),
        None => format!("{}:{}, database {database}", options.get_host(), options.get_port()),
    }
}

fn pool(options: &AnyConnectOptions) -> AnyPool {
    AnyPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(PATIENCE)
        .test_before_acquire(false)
        .before_acquire(|conn, meta| {
            Box::pin(async move {
                if meta.idle_for > FRESH {
                    conn.ping().await?;
                }
                Ok(true)
            })
        })
        .after_connect(|conn, _| Box::pin(configure(conn)))
        .connect_lazy_with(options.clone())
}

async fn configure(conn: &mut AnyConnection) -> sqlx::Result<()> {
    sqlx::raw_sql(SETTINGS).execute(conn).await.map(drop)
}
