//! Reads, on a pool of connections that cannot write. A read whose caller drops its future, or that takes too long, is
//! interrupted.

use std::{ffi::c_int, io, sync::Arc};

use parking_lot::Mutex;
use rusqlite::{Connection, Params, Row, named_params};
use tokio::time::timeout;

use super::{connection::connect, files::DatabaseFiles};
use crate::{
    EndState, MessageNumber, MessagePage, MessageQuery, StoreError, StoreResult, ThreadKey,
    ThreadNumber, ThreadParts, ThreadView,
    damage::{Cell, DbRow},
    read_permits::{ReadKind, ReadPermits},
    rows,
    text::{name_to_text, to_json},
    write::unanswered,
};
use agui_protocol::ResumeEntry;

/// The number of instructions of SQLite's virtual machine between two checks whether a read is interrupted. A row takes
/// about 20.
const STOP_INTERVAL: c_int = 100;

const THREAD: &str = include_str!("sql/thread.sql");

pub(super) const NODES: &str = include_str!("sql/nodes.sql");

const BRANCH: &str = include_str!("sql/branch.sql");
const SIBLINGS: &str = include_str!("sql/siblings.sql");
const MESSAGES_OF_RUN: &str = include_str!("sql/messages_of_run.sql");

pub(super) const NEWEST_ATTEMPT: &str = "
    SELECT *, COALESCE((SELECT last FROM agui_log_ends WHERE run = number), 0) AS logged
    FROM agui_runs WHERE number = COALESCE(
        (SELECT number FROM agui_runs WHERE thread = ?1 AND id = ?2 ORDER BY attempt DESC LIMIT 1),
        (SELECT number FROM agui_runs WHERE thread = ?1 AND alias = ?2 ORDER BY number DESC LIMIT 1))";

pub(super) const ATTEMPTS: &str = "
    SELECT *, COALESCE((SELECT last FROM agui_log_ends WHERE run = number), 0) AS logged
    FROM agui_runs WHERE thread = ? AND id = ? ORDER BY attempt";

pub(super) const RUN_BY_NUMBER: &str = "
    SELECT *, COALESCE((SELECT last FROM agui_log_ends WHERE run = number), 0) AS logged
    FROM agui_runs WHERE number = ?";

const RUNS: &str = "
    SELECT *, COALESCE((SELECT last FROM agui_log_ends WHERE run = number), 0) AS logged
    FROM agui_runs WHERE thread = ? ORDER BY number DESC LIMIT ?";

const RUN_STATES: &str = "
    SELECT number, body FROM agui_states WHERE thread = ?1 AND number IN
        (SELECT state FROM agui_runs WHERE thread = ?1 ORDER BY number DESC LIMIT ?2)
    ORDER BY number";

const END_STATE: &str = include_str!("sql/end_state.sql");

const ANSWERED: &str =
    "SELECT answered FROM agui_runs WHERE thread = ? AND answered IS NOT NULL ORDER BY number";

#[derive(Debug)]
pub(super) struct Readers {
    files: Arc<DatabaseFiles>,
    idle: Arc<Mutex<Vec<Connection>>>,
    pub(super) permits: ReadPermits,
}

impl Readers {
    pub(super) fn new(files: Arc<DatabaseFiles>) -> Self {
        Self { files, idle: Arc::default(), permits: ReadPermits::new() }
    }

    pub(super) async fn read<T: Send + 'static>(
        &self,
        kind: ReadKind,
        owner: &str,
        work: impl FnOnce(&Connection) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let permit = self.permits.take(kind, owner).await;
        let idle = self.idle.clone();
        let files = self.files.clone();
        // Dropping this future drops `caller`, which interrupts the read.
        let caller = Arc::new(());
        let waiting = Arc::downgrade(&caller);
        let read = tokio::task::spawn_blocking(move || {
            // The permit is kept until the end of the work, also if it is interrupted.
            let _permit = permit;
            let pooled = idle.lock().pop();
            let mut conn = match pooled {
                Some(conn) => conn,
                None => {
                    let conn = connect(&files.path)?;
                    conn.execute_batch("PRAGMA query_only = ON")?;
                    conn
                }
            };
            conn.progress_handler(STOP_INTERVAL, Some(move || waiting.strong_count() == 0))?;
            let result = work(&conn);
            // A connection on which a read failed is closed.
            if result.is_ok() {
                idle.lock().push(conn);
            }
            result
        });
        let timed_out =
            |_| StoreError::Unavailable(io::Error::from(io::ErrorKind::TimedOut).into());
        let read = timeout(kind.time_limit(), read).await.map_err(timed_out)?;
        drop(caller);
        read.unwrap_or_else(|error| Err(StoreError::Failed(error.into())))
    }
}

impl DbRow for Row<'_> {
    fn text(&self, column: &str) -> StoreResult<Cell<&str>> {
        let value = self.get_ref(column)?;
        Ok(value.as_str_or_null().map_err(|error| format!("{}: {error}", value.data_type())))
    }

    fn bytes(&self, column: &str) -> StoreResult<Cell<&[u8]>> {
        let value = self.get_ref(column)?;
        Ok(value.as_blob_or_null().map_err(|error| format!("{}: {error}", value.data_type())))
    }

    fn number(&self, column: &str) -> StoreResult<Cell<i64>> {
        let value = self.get_ref(column)?;
        Ok(value.as_i64_or_null().map_err(|error| format!("{}: {error}", value.data_type())))
    }

    fn flag(&self, column: &str) -> StoreResult<Cell<bool>> {
        Ok(self.number(column)?.map(|number| number.map(|number| number != 0)))
    }
}

pub(super) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> StoreResult<T>,
) -> StoreResult<Option<T>> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    rows.next()?.map(read).transpose()
}

pub(super) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> StoreResult<T>,
) -> StoreResult<Vec<T>> {
    let mut select = conn.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

pub(super) fn thread(
    conn: &Connection,
    key: &ThreadKey,
    include: ThreadParts,
) -> StoreResult<Option<ThreadView>> {
    // One transaction, so that all parts are of one moment.
    let tx = conn.unchecked_transaction()?;
    let params = (&key.owner, name_to_text(&key.id), include.state);
    let thread = one(&tx, THREAD, params, |row| rows::thread_with_state(row))?;
    let Some(thread) = thread else { return Ok(None) };
    let (number, newest) = (thread.number, (thread.number, include.runs as i64));
    let mut view = ThreadView::new(thread);
    if include.messages {
        view.nodes = all(&tx, NODES, [number], |row| rows::node(row))?;
    }
    if include.runs > 0 {
        view.runs = all(&tx, RUNS, newest, |row| rows::run(row))?;
    }
    if include.run_states {
        view.run_states = all(&tx, RUN_STATES, newest, |row| rows::numbered_state(row))?;
    }
    Ok(Some(view))
}

pub(super) fn messages(
    conn: &Connection,
    thread: ThreadNumber,
    query: MessageQuery,
) -> StoreResult<MessagePage> {
    let tx = conn.unchecked_transaction()?;
    let (newest, limit) = (query.newest, query.limit as i64);
    let newest_first = match query.run {
        None => {
            let branch = named_params! { ":thread": thread, ":newest": newest, ":limit": limit };
            all(&tx, BRANCH, branch, |row| rows::node(row))?
        }
        Some(run) => {
            // One message more, which shows whether there is a page before this one.
            let of_run = named_params! { ":thread": thread, ":newest": newest, ":limit": limit + 1, ":run": run };
            all(&tx, MESSAGES_OF_RUN, of_run, |row| rows::node(row))?
        }
    };
    let mut page = MessagePage::new(newest_first, query);
    let (parents, limit) = (to_json(&page.parents()), MessagePage::MAX_SIBLINGS as i64);
    let parents = named_params! { ":thread": thread, ":parents": parents, ":limit": limit };
    page.set_siblings(all(&tx, SIBLINGS, parents, |row| rows::sibling(row))?);
    Ok(page)
}

pub(super) fn end_state(
    conn: &Connection,
    thread: ThreadNumber,
    (id, head): (Option<String>, Option<MessageNumber>),
) -> StoreResult<Option<EndState>> {
    let tx = conn.unchecked_transaction()?;
    let params = named_params! { ":thread": thread, ":id": id, ":head": head };
    let Some(left) = one(&tx, END_STATE, params, |row| rows::end_state(row))? else {
        return Ok(None);
    };
    if left.interrupts.is_empty() {
        return Ok(Some(left));
    }
    let answered = answered(&tx, thread)?;
    Ok(Some(EndState { interrupts: unanswered(left.interrupts, answered.iter()), ..left }))
}

pub(super) fn answered(conn: &Connection, thread: ThreadNumber) -> StoreResult<Vec<ResumeEntry>> {
    let of_runs: Vec<Vec<ResumeEntry>> =
        all(conn, ANSWERED, [thread], |row| rows::list(row, "answered"))?;
    Ok(of_runs.concat())
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use tokio::sync::oneshot;

    use super::*;

    const ANN: &str = "key:ann";
    const ENDLESS: &str =
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n";

    fn readers(folder: &Path) -> Readers {
        Readers::new(Arc::new(DatabaseFiles::lock(&folder.join("threads.db")).unwrap()))
    }

    async fn endless(readers: &Readers, begun: oneshot::Sender<()>) -> StoreResult<Option<i64>> {
        let read = |conn: &Connection| {
            begun.send(()).unwrap();
            one(conn, ENDLESS, [], |row| Ok(row.get(0)?))
        };
        readers.read(ReadKind::Search, ANN, read).await
    }

    #[tokio::test]
    async fn a_read_is_interrupted_when_its_caller_drops_it() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(folder.path());
        let (begun, has_begun) = oneshot::channel();
        tokio::select! {
            biased;
            _ = endless(&readers, begun) => panic!("it is endless"),
            _ = has_begun => {}
        }
        // The owner has one permit for searches.
        let next = readers.read(ReadKind::Search, ANN, |_| Ok(7));
        assert_eq!(timeout(Duration::from_secs(20), next).await.unwrap().unwrap(), 7);
    }

    #[tokio::test]
    async fn a_read_is_interrupted_after_its_time_limit() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(folder.path());
        let (begun, has_begun) = oneshot::channel();
        let pass_time = async {
            has_begun.await.unwrap();
            tokio::time::pause();
            tokio::time::advance(ReadKind::Search.time_limit()).await;
            tokio::time::resume();
        };
        let (read, ()) = tokio::join!(endless(&readers, begun), pass_time);
        assert!(read.unwrap_err().is_transient());
        let next = readers.read(ReadKind::Search, ANN, |_| Ok(7));
        assert_eq!(timeout(Duration::from_secs(20), next).await.unwrap().unwrap(), 7);
    }
}
