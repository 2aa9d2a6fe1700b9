//! The thread that writes. It groups waiting operations into transactions ([`Pending`]). Steps of upkeep, such as indexing, each have a
//! transaction of their own, and come after all operations that wait.

use std::{
    collections::VecDeque,
    fs, io, iter,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use rusqlite::{Connection, Params};
use tokio::sync::oneshot;

use super::{
    error::disk_full,
    files::DatabaseFiles,
    log_copier::LogCopier,
    pending::{JobOwner, Pending},
    reader::one,
    reserve::{DiskReserve, disk_space},
};
use crate::{RunNumber, StoreError, StoreResult, ThreadNumber};

const OWNER: &str = "SELECT owner FROM agui_threads WHERE number = ?";
/// The time that one step of upkeep occupies the writer.
pub(super) const STEP_TIME: Duration = Duration::from_millis(4);
/// The interval at which upkeep checks whether the log is copied.
const COPY_POLL: Duration = Duration::from_millis(1);

/// Sends operations to the writing thread. Dropping it waits until all of them are done.
#[derive(Debug)]
pub(super) struct SqliteWriter {
    jobs: Option<Sender<WriteJob>>,
    thread: Option<JoinHandle<()>>,
}

pub(super) struct Tx<'c> {
    pub(super) conn: &'c Connection,
    pub(super) numbers: Numbers,
    pub(super) reserve: DiskReserve,
    log: LogCopier,
}

impl Tx<'_> {
    /// Runs a statement, which is prepared once. Returns the number of changed rows.
    pub(super) fn execute(&self, sql: &str, params: impl Params) -> StoreResult<usize> {
        Ok(self.conn.prepare_cached(sql)?.execute(params)?)
    }
}

/// No number is reused while the process lives, so a lease of a deleted thread is never valid for another one.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) next_thread: ThreadNumber,
    pub(super) next_run: RunNumber,
}

impl Numbers {
    pub(super) fn thread(&mut self) -> ThreadNumber {
        let next = ThreadNumber(self.next_thread.0 + 1);
        std::mem::replace(&mut self.next_thread, next)
    }

    pub(super) fn run(&mut self) -> RunNumber {
        let next = RunNumber(self.next_run.0 + 1);
        std::mem::replace(&mut self.next_run, next)
    }
}

impl SqliteWriter {
    /// Starts the thread.
    pub(super) fn start(
        mut conn: Connection,
        numbers: Numbers,
        reserve: DiskReserve,
        files: Arc<DatabaseFiles>,
    ) -> io::Result<Self> {
        let (jobs, waiting) = channel();
        let log = LogCopier::new(&mut conn, files.clone())?;
        let thread = thread::Builder::new().name("agui-sqlite".to_owned()).spawn(move || {
            run_jobs(&mut Tx { conn: &conn, numbers, reserve, log }, &waiting);
            drop(conn);
            drop(files);
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Runs an operation in a transaction and returns when the transaction is committed. If the transaction was shared and
    /// failed, the operation runs again in a transaction of its own. It also runs if the returned future is dropped.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        owner: impl Into<JobOwner>,
        work: impl FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.run_for(owner.into(), 0, JobKind::Operation, work).await
    }

    /// Does the same with an operation or a step of upkeep of the server.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        kind: JobKind,
        work: impl FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.run_for(JobOwner::Server, 0, kind, work).await
    }

    /// Does the same with an operation of an owner that writes `bytes` bytes.
    pub(super) async fn run_for<T: Send + 'static>(
        &self,
        owner: JobOwner,
        bytes: u64,
        kind: JobKind,
        mut work: impl FnMut(&mut Tx<'_>) -> StoreResult<T> + Send + 'static,
    ) -> StoreResult<T> {
        let (done, result) = oneshot::channel();
        let output = Arc::new(Mutex::new(None));
        let written = output.clone();
        let work = Box::new(move |tx: &mut Tx<'_>| {
            *written.lock() = Some(work(tx)?);
            Ok(())
        });
        let ended = || StoreError::Unavailable("the thread that writes to SQLite has ended".into());
        self.jobs
            .as_ref()
            .ok_or_else(ended)?
            .send(WriteJob { owner, bytes, kind, work, done })
            .map_err(|_| ended())?;
        result.await.map_err(|_| ended())??;
        output.lock().take().ok_or_else(ended)
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, its operations have failed with an error.
            let _ = thread.join();
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum JobKind {
    Operation,
    /// An operation that deletes something or ends a run.
    Ending,
    /// A few milliseconds of work that no operation waits for, or a chunk of a file.
    Upkeep,
    /// Upkeep that deletes something.
    Purging,
}

impl JobKind {
    fn is_upkeep(self) -> bool {
        matches!(self, Self::Upkeep | Self::Purging)
    }

    fn may_use_reserve(self) -> bool {
        matches!(self, Self::Ending | Self::Purging)
    }
}

/// Repeats a part of upkeep for the time of a step, until it reports that nothing is left. It gets
/// the start time. Returns whether there may be more.
pub(super) fn for_one_step(do_some: impl Fn(Instant) -> StoreResult<bool>) -> StoreResult<bool> {
    let begin = Instant::now();
    while begin.elapsed() < STEP_TIME {
        if !do_some(begin)? {
            return Ok(false);
        }
    }
    Ok(true)
}

type WriteWork = Box<dyn FnMut(&mut Tx<'_>) -> StoreResult<()> + Send>;

struct WriteJob {
    owner: JobOwner,
    bytes: u64,
    kind: JobKind,
    work: WriteWork,
    done: oneshot::Sender<StoreResult<()>>,
}

impl WriteJob {
    fn complete(self, result: StoreResult<()>) {
        // Fails if the caller has dropped its future.
        let _ = self.done.send(result);
    }
}

fn run_jobs(tx: &mut Tx<'_>, waiting: &Receiver<WriteJob>) {
    let (mut upkeep, mut operations) = (VecDeque::new(), Pending::new());
    loop {
        let first = if !operations.is_empty() {
            None
        } else if upkeep.is_empty() {
            waiting.recv().ok()
        } else if tx.log.is_copying() {
            // A step would add to what the writer copies itself.
            waiting.recv_timeout(COPY_POLL).ok()
        } else {
            None
        };
        if first.is_none() && upkeep.is_empty() && operations.is_empty() {
            return;
        }
        // Lets tasks that are about to send an operation do so before the transaction begins.
        thread::yield_now();
        for job in first.into_iter().chain(waiting.try_iter()) {
            if job.kind.is_upkeep() {
                upkeep.push_back(job);
            } else {
                operations.push(owner_of(tx, &job.owner), job.bytes, job);
            }
        }
        let group = operations.next_group();
        if !group.is_empty() {
            run_group(tx, group);
        }
        // While the disk is full, the log is not copied, because copying a part could take all
        // space and free none. The disk counts as full once it lacks space for the log's content:
        // for a longer log the reserve would not suffice.
        if tx.reserve.has_space()
            && let Err(error) = tx.log.copy_when_long(tx.conn, tx.reserve.log_pages())
            && error.is_disk_full()
        {
            tx.reserve.refuse_writes();
        }
        if !tx.log.is_copying()
            && let Some(step) = upkeep.pop_front()
        {
            run_group(tx, vec![step]);
        }
    }
}

/// Returns the owner of a job, or `None` for the server's jobs and for jobs of deleted threads.
fn owner_of(tx: &Tx<'_>, owner: &JobOwner) -> Option<Arc<str>> {
    match owner {
        JobOwner::Server => None,
        JobOwner::Named(owner) => Some(owner.clone()),
        JobOwner::OfThread(thread) => {
            let found = one(tx.conn, OWNER, [thread], |row| Ok(row.get::<_, String>(0)?));
            found.ok().flatten().map(Arc::from)
        }
    }
}

fn run_group(tx: &mut Tx<'_>, mut group: Vec<WriteJob>) {
    if !tx.reserve.has_space() {
        let refused = group.extract_if(.., |job| !job.kind.may_use_reserve());
        refused.for_each(|job| job.complete(Err(disk_full())));
        if group.is_empty() {
            return;
        }
    }
    match begin(tx) {
        Ok(()) => match commit(tx, &mut group) {
            Ok(()) => group.into_iter().for_each(|job| job.complete(Ok(()))),
            Err(error) if group.len() == 1 && !error.is_disk_full() => fail(group, error),
            Err(_) => group.into_iter().for_each(|job| run_alone(tx, job)),
        },
        // Another process has locked the file.
        Err(error) => fail(group, error),
    }
}

/// Runs a job in a transaction of its own. On a full disk, a job that may use the reserve runs
/// again with it.
fn run_alone(tx: &mut Tx<'_>, mut job: WriteJob) {
    let may_use_reserve = job.kind.may_use_reserve();
    let mut attempt =
        |tx: &mut Tx<'_>| begin(tx).and_then(|()| commit(tx, std::slice::from_mut(&mut job)));
    let lacks_space = |result: &StoreResult<()>| {
        may_use_reserve && result.as_ref().is_err_and(StoreError::is_disk_full)
    };
    let mut result = attempt(tx);
    if lacks_space(&result) {
        tx.reserve.give_up();
        copy_log(tx);
        result = attempt(tx);
    }
    job.complete(result);
}

/// Copies the log into the file, so that the log is written from its beginning again, if the disk
/// has room for the growth of the file.
fn copy_log(tx: &mut Tx<'_>) {
    const SIZE: &str = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
    let size =
        tx.conn.query_row(SIZE, [], |row| row.get::<_, i64>(0)).unwrap_or_default().cast_unsigned();
    let grows =
        fs::metadata(&tx.reserve.database).map_or(0, |file| size.saturating_sub(file.len()));
    if disk_space(&tx.reserve.database).is_some_and(|space| space.available >= grows) {
        // An operation that lacks the freed space reports it.
        let _ = tx.log.copy_rest(tx.conn);
    }
}

/// Completes the first job with this error, and the others with its text.
fn fail(group: Vec<WriteJob>, error: StoreError) {
    let text = error.to_string();
    let others = iter::repeat_with(|| StoreError::Unavailable(text.as_str().into()));
    group
        .into_iter()
        .zip(iter::once(error).chain(others))
        .for_each(|(job, error)| job.complete(Err(error)));
}

fn begin(tx: &Tx<'_>) -> StoreResult<()> {
    tx.execute("BEGIN IMMEDIATE", []).map(drop)
}

fn commit(tx: &mut Tx<'_>, group: &mut [WriteJob]) -> StoreResult<()> {
    // A panic would end the writing thread, and with it the store.
    let mut work = |job: &mut WriteJob| {
        let worked = panic::catch_unwind(AssertUnwindSafe(|| (job.work)(tx)));
        worked.unwrap_or_else(|_| Err(StoreError::Failed("a write has panicked".into())))
    };
    let worked = group.iter_mut().try_for_each(&mut work);
    let committed = worked.and_then(|()| tx.execute("COMMIT", []).map(drop));
    if committed.is_err() && !tx.conn.is_autocommit() {
        // Fails if SQLite has rolled back by itself, as it does after some errors.
        let _ = tx.conn.execute_batch("ROLLBACK");
    }
    committed
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;

    use super::*;
    use crate::SqliteStore;

    #[tokio::test]
    async fn a_small_operation_waits_for_one_large_one_of_another_owner() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("a.db")).await.unwrap();
        let (release, released) = channel();
        let blocked = store
            .writer
            .write("", move |_| released.recv().map_err(|error| StoreError::Failed(error.into())));
        let order = Arc::new(Mutex::new(Vec::new()));
        let job = |owner: &'static str, bytes| {
            let order = order.clone();
            let note = move |_: &mut Tx<'_>| {
                order.lock().push(owner);
                Ok(())
            };
            store.writer.run_for(owner.into(), bytes, JobKind::Operation, note)
        };
        let jobs = join_all((0..12).map(|_| job("ann", 9 << 20)).chain([job("bob", 100)]));
        let (blocked, jobs, released) = tokio::join!(blocked, jobs, async { release.send(()) });
        assert!(blocked.is_ok() && released.is_ok() && jobs.iter().all(Result::is_ok));
        assert_eq!(
            order.lock()[..3],
            ["ann", "bob", "ann"],
            "all of them waited, those of ann longer"
        );
    }
}
