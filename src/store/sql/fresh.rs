//! Runs on new threads begin before the database has heard of them.
//!
//! A file is this process's alone. So a thread that was not in it when it was opened, and for which nobody has asked
//! since, is nobody's and free: there is nothing to wait for. Its row is made by the next transaction, before whatever
//! else that one is for; who asks for the thread meanwhile waits until it is there ([`Sql::made`]). A run that has a log
//! begins like one on a thread that exists, for somebody else may follow it at once.
//!
//! Which threads there may be, a [`BloomFilter`] knows: it takes a few new ones for known, never a known one for new.

use std::{hash::RandomState, sync::Arc};

use fastbloom::BloomFilter;
use sqlx::{AnyConnection, AnyPool, Row as _};

use super::{
    Dialect, Sql,
    begin::NewRow,
    error::Fault,
    group::{Group, Task},
    key,
    many::{MOST, Many},
};
use crate::{protocol::ThreadId, store::StoreError};

/// Two megabytes, of which few threads touch little.
const BITS: usize = 1 << 24;

/// Of fewer threads one in two thousand new ones at most is taken for known, of four times as many every other.
const THREADS: usize = 1_000_000;

/// How many threads are read at a time.
const PAGE: i64 = 1_000;

/// A page begins with the last of the one before: the first of all may be the empty one.
const KEYS: &str = "SELECT thread_key FROM agui_threads WHERE thread_key >= $1 ORDER BY thread_key LIMIT $2";

/// The holder, and how long its leases last, are the same for all rows. They are there already when a transaction did
/// happen that seemed to have failed.
static MAKE: Many = Many::new(
    "WITH v (thread_number, thread_key, thread_id, owner_key, owner_id, agent, run_number, run_key, run_id, now) AS (VALUES ",
    "(#, ?, ?, ?, ?, ?, #, ?, ?, #)",
    ") INSERT INTO agui_threads (thread_number, thread_key, thread_id, owner_key, owner_id, agent, token, run_number, \
        run_key, run_id, run_started_at, run_recorded, holder, lease_until, cancel, version, open_interrupts, \
        created_at, updated_at) \
     SELECT v.thread_number, v.thread_key, v.thread_id, v.owner_key, v.owner_id, v.agent, 1, v.run_number, \
        v.run_key, v.run_id, v.now, 0, ?, v.now + ?, 0, 0, 0, v.now, v.now \
     FROM v WHERE v.thread_key IS NOT NULL ON CONFLICT DO NOTHING",
);

/// Runs that have begun and are not written yet, and what tells whether there may be more of them.
#[derive(Debug)]
pub(super) struct Fresh {
    known: BloomFilter<RandomState>,
    /// Whether the threads that were there when the file was opened are known.
    is_complete: bool,
    /// Whether the last transaction could not be made. Nothing begins then that may have no end.
    pub(super) is_failing: bool,
    /// In the order they began.
    rows: Vec<Arc<NewRow>>,
    /// How many of them, from the first, are in the transaction that is going on.
    taken: usize,
}

impl Fresh {
    pub(super) fn new() -> Self {
        let known = BloomFilter::with_num_bits(BITS).hasher(RandomState::new()).expected_items(THREADS);
        Self { known, is_complete: false, is_failing: false, rows: Vec::new(), taken: 0 }
    }

    /// Whether a run on this thread need not ask. From now on the thread is known.
    pub(super) fn is_new(&mut self, thread_key: &str) -> bool {
        let was_known = self.known.insert(thread_key);
        !was_known && self.is_complete && !self.is_failing
    }

    /// These are known, and perhaps they are the last.
    pub(super) fn learn(&mut self, thread_keys: &[&str], is_complete: bool) {
        self.known.insert_all(thread_keys);
        self.is_complete = is_complete;
    }

    pub(super) fn push(&mut self, row: Arc<NewRow>) {
        self.rows.push(row);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn any(&self, which: impl Fn(&NewRow) -> bool) -> bool {
        self.rows.iter().any(|row| which(row))
    }

    /// All of them, for a transaction.
    pub(super) fn take(&mut self) -> Vec<Arc<NewRow>> {
        self.taken = self.rows.len();
        self.rows.clone()
    }

    /// The transaction was made, or not; then they go with the next one.
    pub(super) fn taken(&mut self, is_made: bool) {
        let taken = std::mem::take(&mut self.taken);
        if is_made {
            self.rows.drain(..taken);
        }
    }
}

impl Sql {
    /// Waits until runs that have begun are written.
    pub(super) async fn made(&self, which: impl Fn(&NewRow) -> bool) -> Result<(), StoreError> {
        let Some(group) = &self.group else { return Ok(()) };
        if group.has_fresh(which) { self.together(|| Ok(Task::Make)).await.map(drop) } else { Ok(()) }
    }

    /// Waits until what has begun on a thread is written.
    pub(super) async fn made_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        // Once: it takes time if the identifier is long.
        let key = key::key(thread);
        self.made(|row| row.thread.key == key).await
    }
}

/// Writes them.
pub(super) async fn make(conn: &mut AnyConnection, rows: &[Arc<NewRow>]) -> Result<(), Fault> {
    let lasts = |row: &NewRow| row.run.until.saturating_sub(row.run.now);
    for same in rows.chunk_by(|a, b| a.holder == b.holder && lasts(a) == lasts(b)) {
        for these in same.chunks(MOST) {
            let mut make = MAKE.query(Dialect::Sqlite, these.len());
            for row in these {
                make = row.bind(make).bind(row.run.now);
            }
            let [first, ..] = these else { continue };
            let make = MAKE.filled(make, these.len()).bind(&first.holder).bind(lasts(first));
            make.execute(&mut *conn).await?;
        }
    }
    Ok(())
}

/// Reads which threads there are: some at once, and if there are more, the others beside the work. Until then every run
/// asks the database.
pub(super) async fn learn(group: &Arc<Group>, pool: &AnyPool) -> sqlx::Result<()> {
    let Some(last) = learn_page(group, pool, "").await? else { return Ok(()) };
    let (group, pool) = (Arc::downgrade(group), pool.clone());
    tokio::spawn(async move {
        let mut last = last;
        while let Some(group) = group.upgrade() {
            match learn_page(&group, &pool, &last).await {
                Ok(Some(next)) => last = next,
                Ok(None) | Err(sqlx::Error::PoolClosed) => return,
                Err(error) => {
                    tracing::warn!(
                        ?error,
                        "the stored threads could not be listed; runs on new ones begin more slowly"
                    );
                    return;
                }
            }
        }
    });
    Ok(())
}

/// Where the next page begins, if there is one.
async fn learn_page(group: &Group, pool: &AnyPool, after: &str) -> sqlx::Result<Option<String>> {
    let rows = sqlx::query(KEYS).bind(after).bind(PAGE).fetch_all(pool).await?;
    let keys = rows.iter().map(|row| row.try_get(0)).collect::<sqlx::Result<Vec<&str>>>()?;
    let next = keys.last().filter(|_| rows.len() as i64 == PAGE).map(|key| (*key).to_owned());
    group.learn(&keys, next.is_none());
    Ok(next)
}
