//! Runs begin, are saved and end in one transaction with others that do so at the same time.
//!
//! In SQLite one writes at a time, and most of what a small transaction costs is what comes with it: the switch to
//! the thread of the connection and back for each statement, and the commit. So whoever comes while a
//! transaction is going on waits, and goes together with all others into the next. Whoever comes alone waits for
//! nobody, and each is answered when what it asked for is committed. When hundreds come in a second, the next
//! transaction waits a little for more of them: it costs about as much for a few as for many. Only a run on a new
//! thread is answered before (`fresh`).
//!
//! In Postgres each has its own connection: there many write at a time, and a transaction that locks many
//! threads would make processes wait for each other.

use std::{
    collections::{HashSet, VecDeque},
    fs::File,
    mem,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use sqlx::{AnyConnection, AnyPool};
use tokio::{
    sync::oneshot,
    task::yield_now,
    time::{Instant, sleep_until},
};

use super::{
    Dialect, Sql,
    begin::{self, NewRow, Numbers},
    connect::{on_connection, transaction},
    error::Fault,
    finish::{self, Write},
    fresh::{Fresh, make},
    key,
    pace::Pace,
};
use crate::store::{Begin, NewRun, StoreError};

/// How many go in one transaction.
const TASKS: usize = 256;

/// About how many bytes of content do.
const BYTES: usize = 4 * 1024 * 1024;

/// What is asked for.
#[derive(Debug)]
pub(super) enum Task {
    Begin(NewRow),
    Write(Write),
    /// Nothing but what every transaction does first: it makes new threads.
    Make,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Done {
    Begin(Box<Begin>),
    Saved,
    Ended,
    Made,
}

/// Those who wait for the next transaction on a file.
#[derive(Debug)]
pub(super) struct Group {
    waiting: Mutex<Waiting>,
    next_thread: AtomicI64,
    next_run: AtomicI64,
    pool: AnyPool,
    /// Keeps other processes out of the file. Dropped last, when nobody writes any more.
    _lock: File,
}

#[derive(Debug)]
struct Waiting {
    tasks: VecDeque<Waiter>,
    fresh: Fresh,
    /// Whether somebody is there who takes them.
    is_led: bool,
    pace: Pace,
}

#[derive(Debug)]
struct Waiter {
    task: Task,
    /// It goes by itself, for it did not succeed together with others.
    is_alone: bool,
    answer: Answer,
}

type Answer = oneshot::Sender<Result<Done, Refusal>>;

/// Why something was not done.
#[derive(Debug)]
enum Refusal {
    /// One of those that went together could not be done, and so none was. Who asked does so again, alone.
    Together,
    Error(StoreError),
}

impl Task {
    fn thread(&self) -> Option<&str> {
        match self {
            Self::Begin(run) => Some(&run.thread.key),
            Self::Write(write) => Some(&write.thread),
            Self::Make => None,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Begin(_) | Self::Make => 0,
            Self::Write(write) => write.bytes(),
        }
    }
}

impl Sql {
    /// Does what is asked for, whole or not at all. The task is made anew if it has to be tried again: what it writes
    /// is handed to the database, not copied.
    pub(super) async fn together(&self, make: impl Fn() -> Result<Task, Fault>) -> Result<Done, StoreError> {
        let Some(group) = &self.group else {
            let task = make()?;
            let done = self
                .transact(move |conn| Box::pin(async move { perform(conn, Dialect::Postgres, vec![task], &[]).await }));
            return done.await?.pop().ok_or_else(gone);
        };
        let mut is_alone = false;
        loop {
            let (answer, answered) = oneshot::channel();
            group.join(Waiter { task: make()?, is_alone, answer });
            match answered.await.unwrap_or_else(|_| Err(Refusal::Error(gone()))) {
                Ok(done) => return Ok(done),
                Err(Refusal::Error(error)) => return Err(error),
                Err(Refusal::Together) => is_alone = true,
            }
        }
    }
}

/// The runtime shuts down.
fn gone() -> StoreError {
    StoreError::Unavailable("nobody is there any more to do it".into())
}

impl Group {
    pub(super) fn new(pool: AnyPool, next: Numbers, lock: File) -> Self {
        let waiting = Waiting { tasks: VecDeque::new(), fresh: Fresh::new(), is_led: false, pace: Pace::default() };
        let (next_thread, next_run) = (next.thread.into(), next.run.into());
        Self { waiting: Mutex::new(waiting), next_thread, next_run, pool, _lock: lock }
    }

    pub(super) fn numbers(&self) -> Numbers {
        let next = |number: &AtomicI64| number.fetch_add(1, Ordering::Relaxed);
        Numbers { thread: next(&self.next_thread), run: next(&self.next_run) }
    }

    /// Begins a run at once, if its thread is new.
    pub(super) fn begin_fresh(self: &Arc<Self>, run: &NewRun) -> Option<Begin> {
        let thread = key::key(&run.thread_id);
        let mut waiting = self.lock();
        if !waiting.fresh.is_new(&thread) || run.detached || self.pool.is_closed() {
            return None;
        }
        let numbers = self.numbers();
        let row = Arc::new(NewRow::new(run, Some(numbers)));
        let begin = row.begun_first(numbers);
        waiting.fresh.push(row);
        self.see_to_it(waiting);
        Some(begin)
    }

    /// Whether any of those that have begun at once is not written yet.
    pub(super) fn has_fresh(&self, which: impl Fn(&NewRow) -> bool) -> bool {
        self.lock().fresh.any(which)
    }

    /// These threads are there, and perhaps they are the last.
    pub(super) fn learn(&self, thread_keys: &[&str], is_complete: bool) {
        self.lock().fresh.learn(thread_keys, is_complete);
    }

    /// What came of a transaction for so many that had begun at once, and others.
    fn note(&self, fresh: usize, asked: usize, done: &Result<Vec<Done>, StoreError>) {
        let mut waiting = self.lock();
        waiting.fresh.taken(done.is_ok());
        waiting.fresh.is_failing = !matches!(done, Ok(_) | Err(StoreError::LeaseLost));
        let (begun, ended) = match done {
            Ok(done) => {
                let is_begun =
                    |done: &&Done| matches!(done, Done::Begin(begin) if matches!(**begin, Begin::Begun { .. }));
                let ended = done.iter().filter(|done| matches!(done, Done::Ended)).count();
                (fresh + done.iter().filter(is_begun).count(), ended)
            }
            // Whoever has lost its lease does not come again either.
            Err(StoreError::LeaseLost) if asked == 1 => (0, 1),
            Err(error) => {
                if asked == 0 {
                    tracing::warn!(?error, runs = fresh, "runs that have begun could not be written; trying again");
                }
                (0, 0)
            }
        };
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let runs = &mut waiting.pace.runs;
        *runs = runs.saturating_add(number(begun)).saturating_sub(number(ended));
    }

    /// Has it done with the others.
    fn join(self: &Arc<Self>, waiter: Waiter) {
        let mut waiting = self.lock();
        waiting.tasks.push_back(waiter);
        self.see_to_it(waiting);
    }

    /// Has somebody do what is waiting.
    fn see_to_it(self: &Arc<Self>, mut waiting: MutexGuard<'_, Waiting>) {
        if !mem::replace(&mut waiting.is_led, true) {
            drop(waiting);
            tokio::spawn(lead(Leader { group: self.clone(), has_left: false }));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes those who wait, until nobody does.
struct Leader {
    group: Arc<Group>,
    has_left: bool,
}

/// What goes together.
#[derive(Default)]
struct Batch {
    fresh: Vec<Arc<NewRow>>,
    tasks: Vec<Task>,
    answers: Vec<Answer>,
}

impl Leader {
    /// Those that have begun at once, and of the others, in the order they came, as many as may: of those of one thread
    /// only the first.
    fn next(&mut self) -> Batch {
        let mut waiting = self.group.lock();
        let (mut batch, mut bytes, mut threads) = (Batch::default(), 0, HashSet::new());
        let mut is_full = false;
        for waiter in mem::take(&mut waiting.tasks) {
            let is_first = waiter.task.thread().is_none_or(|thread| threads.insert(thread.to_owned()));
            if is_full || !is_first || (waiter.is_alone && !batch.tasks.is_empty()) {
                waiting.tasks.push_back(waiter);
                continue;
            }
            bytes += waiter.task.bytes();
            batch.tasks.push(waiter.task);
            batch.answers.push(waiter.answer);
            is_full = waiter.is_alone || batch.tasks.len() == TASKS || bytes >= BYTES;
        }
        batch.fresh = waiting.fresh.take();
        waiting.pace.begin(Instant::now(), batch.fresh.len() + batch.tasks.len());
        batch
    }

    /// Leaves when there is nothing to do, or nobody who waits for what was tried already.
    fn stay(mut self) -> Option<Self> {
        // Under the lock, so that nobody who comes now relies on a leader who leaves.
        let mut waiting = self.group.lock();
        let fresh = &waiting.fresh;
        waiting.is_led = !waiting.tasks.is_empty() || !(fresh.is_empty() || fresh.is_failing);
        self.has_left = !waiting.is_led;
        drop(waiting);
        (!self.has_left).then_some(self)
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.has_left {
            // It was ended early: nobody would answer them.
            let mut waiting = self.group.lock();
            waiting.is_led = false;
            waiting.fresh.taken(false);
            waiting.tasks.clear();
        }
    }
}

async fn lead(mut leader: Leader) {
    while let Some(next) = turn(leader).await {
        leader = next;
    }
}

/// One transaction. The leader comes back if there is more to do.
async fn turn(mut leader: Leader) -> Option<Leader> {
    // Whoever is ready to ask does so first.
    yield_now().await;
    let due = leader.group.lock().pace.due(Instant::now());
    if let Some(due) = due {
        sleep_until(due).await;
    }
    let Batch { fresh, tasks, answers } = leader.next();
    let count = fresh.len();
    let done = commit(&leader.group.pool, tasks, fresh).await;
    leader.group.note(count, answers.len(), &done);
    // A leader who leaves has left before whoever is answered goes on, and perhaps closes the file.
    let leader = leader.stay();
    let done = each(done, answers.len());
    for (answer, done) in answers.into_iter().zip(done) {
        // Whoever is not there any more has left in the middle.
        let _ = answer.send(done);
    }
    leader
}

/// One transaction for all.
async fn commit(pool: &AnyPool, tasks: Vec<Task>, fresh: Vec<Arc<NewRow>>) -> Result<Vec<Done>, StoreError> {
    let work = transaction(Dialect::Sqlite, move |conn: &mut AnyConnection| {
        Box::pin(async move { perform(conn, Dialect::Sqlite, tasks, &fresh).await })
    });
    Ok(on_connection(pool, Dialect::Sqlite, work).await?)
}

/// The answers to so many. If it failed for what one of them asked, each has a transaction of its own.
fn each(done: Result<Vec<Done>, StoreError>, count: usize) -> Vec<Result<Done, Refusal>> {
    match done {
        Ok(done) => done.into_iter().map(Ok).collect(),
        Err(error) if count == 1 => vec![Err(Refusal::Error(error))],
        Err(StoreError::Unavailable(error)) => {
            let error: Arc<dyn std::error::Error + Send + Sync> = error.into();
            let error = || StoreError::Unavailable(Box::new(error.clone()));
            (0..count).map(|_| Err(Refusal::Error(error()))).collect()
        }
        Err(_) => (0..count).map(|_| Err(Refusal::Together)).collect(),
    }
}

/// All of it, each for another thread; answers in the same order.
async fn perform(
    conn: &mut AnyConnection,
    dialect: Dialect,
    tasks: Vec<Task>,
    fresh: &[Arc<NewRow>],
) -> Result<Vec<Done>, Fault> {
    let (mut runs, mut writes, mut done) = (Vec::new(), Vec::new(), Vec::with_capacity(tasks.len()));
    for task in tasks {
        match task {
            Task::Begin(run) => {
                runs.push(run);
                done.push(None);
            }
            Task::Write(write) => {
                done.push(Some(if write.end.is_some() { Done::Ended } else { Done::Saved }));
                writes.push(write);
            }
            Task::Make => done.push(Some(Done::Made)),
        }
    }
    make(conn, fresh).await?;
    finish::write(conn, dialect, writes).await?;
    let mut begun = begin::begin(conn, dialect, &runs).await?.into_iter().map(|begin| Done::Begin(Box::new(begin)));
    let missing = || Fault::unreadable("a run was not begun");
    done.into_iter().map(|done| done.or_else(|| begun.next()).ok_or_else(missing)).collect()
}
