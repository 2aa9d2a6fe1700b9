//! Opens a file of SQLite for this process alone.
//!
//! A file belongs to one process, by a lock on `<file>.lock` that the system takes back however the process
//! ends. So leases of other holders are those of dead processes, and nothing is waited for at start-up.
//! One connection writes and a few read: writers queue in the pool instead of running into each other's locks.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use sqlx::{
    AnyConnection, AnyPool, ConnectOptions as _, Connection as _, Row as _,
    any::{AnyConnectOptions, AnyPoolOptions},
};

use super::{
    Sql,
    begin::Numbers,
    connect::Dialect,
    error::{OpenError, plain},
    fresh,
    group::Group,
    migrate::migrate,
};

/// How long an operation waits for its turn to write, and a statement for somebody else's lock, such as a backup's.
const PATIENCE: Duration = Duration::from_secs(5);

/// As many reads at a time; each connection is a thread.
const READERS: u32 = 4;

/// With the log in a file of its own, a commit is one write without waiting for the disk: it survives the end
/// of this process; a power cut may take the last commits, never the file. Checkpoints are rare enough
/// that pages that change again and again are copied once, and the log shrinks after a burst.
const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 5000; \
    PRAGMA foreign_keys = OFF; PRAGMA wal_autocheckpoint = 8000; PRAGMA journal_size_limit = 67108864; \
    PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4000";

/// The numbers after those of all threads there ever were, of all runs that were ever recorded, and of those that are
/// running.
const NEXT_NUMBERS: &str = "\
    SELECT 1 + COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'agui_threads'), 0) AS next_thread, \
        1 + MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'agui_runs'), 0), \
            COALESCE((SELECT MAX(run_number) FROM agui_threads WHERE holder >= ''), 0)) AS next_run";

const READING: &str = "PRAGMA query_only = ON";

pub(super) async fn open(path: &Path) -> Result<Sql, OpenError> {
    let path = make(path)?;
    let lock = lock(&path)?;
    let options = options(&path)?;
    // By hand first, for a pool would try again and again, and forget why it could not.
    let because = |error| OpenError::sqlite(&path, &error);
    let mut first = options.connect().await.map_err(because)?;
    configure(&mut first, "").await.map_err(because)?;
    migrate(&mut first, Dialect::Sqlite, &path.display().to_string()).await.map_err(|error| match error {
        OpenError::Tables { why, .. } if why.contains("malformed") => OpenError::Corrupt { path: path.clone(), why },
        other => other,
    })?;
    let numbers = next_numbers(&mut first).await.map_err(because)?;
    first.close().await.map_err(because)?;
    let write = pool(&options, 1, "");
    let read = pool(&options, READERS, READING);
    let group = Arc::new(Group::new(write.clone(), numbers, lock));
    fresh::learn(&group, &read).await.map_err(because)?;
    Ok(Sql::new(Dialect::Sqlite, write, read, Some(group)))
}

async fn next_numbers(conn: &mut AnyConnection) -> sqlx::Result<Numbers> {
    let next = sqlx::query(NEXT_NUMBERS).fetch_one(conn).await?;
    Ok(Numbers { thread: next.try_get("next_thread")?, run: next.try_get("next_run")? })
}

/// Makes the folder and an empty file, which only this user may read: it holds conversations. Answers the one
/// name of the file, whatever links lead to it.
fn make(path: &Path) -> Result<PathBuf, OpenError> {
    let because = |error| OpenError::file(path, error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(because)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(because)?;
    fs::canonicalize(path).map_err(because)
}

fn lock(path: &Path) -> Result<File, OpenError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let because = |error| OpenError::file(path, error);
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(name).map_err(because)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(error)) => Err(because(error)),
    }
}

/// A path may have any character, and a URL may not.
fn options(path: &Path) -> Result<AnyConnectOptions, OpenError> {
    let text = path.to_str().ok_or_else(|| OpenError::file(path, "its name is not UTF-8"))?;
    let mut url = String::from("sqlite://");
    for byte in text.bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => url.push(char::from(byte)),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    let options: AnyConnectOptions = url.parse().map_err(|error| OpenError::file(path, plain(&error)))?;
    Ok(options.disable_statement_logging())
}

fn pool(options: &AnyConnectOptions, connections: u32, more: &'static str) -> AnyPool {
    AnyPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(PATIENCE)
        .test_before_acquire(false)
        .idle_timeout(None)
        .max_lifetime(None)
        .after_connect(move |conn, _| Box::pin(configure(conn, more)))
        .connect_lazy_with(options.clone())
}

async fn configure(conn: &mut AnyConnection, more: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(SETTINGS).execute(&mut *conn).await?;
    sqlx::raw_sql(more).execute(conn).await?;
    Ok(())
}
