//! Runs begin, are saved and end in one transaction with others that do so at the same time.
//!
//! In SQLite one writes at a time, and most of what a small transaction costs is what comes with it: the switch to
//! the thread of the connection and back for each statement, and the commit. So whoever comes while a
//! transaction is going on waits, and goes together with all others into the next. Whoever comes alone waits for
//! nobody, and each is answered when what it asked for is committed. When hundreds come in a second, the next
//! transaction waits a little for more of them: it costs about as much for a few as for many.
//!
//! In Postgres each has its own connection: there many write at a time, and a transaction that locks many
//! threads would make processes wait for each other.

use std::{
    collections::{HashSet, VecDeque},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sqlx::{AnyConnection, AnyPool};
use tokio::{
    sync::oneshot,
    task::yield_now,
    time::{Instant, sleep_until},
};

use super::{
    Dialect, Sql,
    begin::{self, NewRow},
    connect::{on_connection, transaction},
    error::Fault,
    finish::{self, Write},
    pace::Pace,
};
use crate::store::{Begin, StoreError};

/// How many go in one transaction.
const TASKS: usize = 256;

/// About how many bytes of content do.
const BYTES: usize = 4 * 1024 * 1024;

/// What is asked for.
#[derive(Debug)]
pub(super) enum Task {
    Begin(NewRow),
    Write(Write),
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Done {
    Begin(Box<Begin>),
    Saved,
    Ended,
}

/// Those who wait for the next transaction.
#[derive(Debug, Default)]
pub(super) struct Group(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    tasks: VecDeque<Waiter>,
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
    fn thread(&self) -> &str {
        match self {
            Self::Begin(run) => &run.thread.key,
            Self::Write(write) => &write.thread,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Begin(_) => 0,
            Self::Write(write) => write.bytes(),
        }
    }
}

impl Sql {
    /// Does what is asked for, whole or not at all. The task is made anew if it has to be tried again: what it writes
    /// is handed to the database, not copied.
    pub(super) async fn together(&self, make: impl Fn() -> Result<Task, Fault>) -> Result<Done, StoreError> {
        if self.dialect == Dialect::Postgres {
            let task = make()?;
            let done =
                self.transact(move |conn| Box::pin(async move { perform(conn, Dialect::Postgres, vec![task]).await }));
            return done.await?.pop().ok_or_else(gone);
        }
        let mut is_alone = false;
        loop {
            let (answer, answered) = oneshot::channel();
            if !self.group.join(Waiter { task: make()?, is_alone, answer }) {
                tokio::spawn(lead(Leader { group: self.group.clone(), has_left: false }, self.write.clone()));
            }
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
    fn count(&self, done: &[Result<Done, Refusal>]) {
        let count = |which: fn(&Result<Done, Refusal>) -> bool| {
            u32::try_from(done.iter().filter(|done| which(done)).count()).unwrap_or(u32::MAX)
        };
        let begun = count(|done| matches!(done, Ok(Done::Begin(begin)) if matches!(**begin, Begin::Begun { .. })));
        // Whoever has lost its lease does not come again either.
        let ended = count(|done| matches!(done, Ok(Done::Ended) | Err(Refusal::Error(StoreError::LeaseLost))));
        let runs = &mut self.lock().pace.runs;
        *runs = runs.saturating_add(begun).saturating_sub(ended);
    }

    /// Has it done with the others. `false` when the one who asks has to see to it that somebody does it.
    fn join(&self, waiter: Waiter) -> bool {
        let mut waiting = self.lock();
        waiting.tasks.push_back(waiter);
        mem::replace(&mut waiting.is_led, true)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes those who wait, until nobody does.
struct Leader {
    group: Arc<Group>,
    has_left: bool,
}

impl Leader {
    /// Those that go together, in the order they came: of those of one thread only the first.
    fn next(&mut self) -> (Vec<Task>, Vec<Answer>) {
        let mut waiting = self.group.lock();
        let (mut taken, mut bytes, mut threads) = ((Vec::new(), Vec::new()), 0, HashSet::new());
        let mut is_full = false;
        for waiter in mem::take(&mut waiting.tasks) {
            let is_first = threads.insert(waiter.task.thread().to_owned());
            if is_full || !is_first || (waiter.is_alone && !taken.0.is_empty()) {
                waiting.tasks.push_back(waiter);
                continue;
            }
            bytes += waiter.task.bytes();
            taken.0.push(waiter.task);
            taken.1.push(waiter.answer);
            is_full = waiter.is_alone || taken.0.len() == TASKS || bytes >= BYTES;
        }
        // Under the lock, so that nobody who comes now relies on a leader who leaves.
        self.has_left = taken.0.is_empty();
        waiting.is_led = !self.has_left;
        if !self.has_left {
            waiting.pace.begin(Instant::now(), taken.0.len());
        }
        taken
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.has_left {
            // It was ended early: nobody would answer them.
            let mut waiting = self.group.lock();
            waiting.is_led = false;
            waiting.tasks.clear();
        }
    }
}

async fn lead(mut leader: Leader, pool: AnyPool) {
    loop {
        // Whoever is ready to ask does so first.
        yield_now().await;
        let due = leader.group.lock().pace.due(Instant::now());
        if let Some(due) = due {
            sleep_until(due).await;
        }
        let (tasks, answers) = leader.next();
        if tasks.is_empty() {
            return;
        }
        let done = commit(&pool, tasks).await;
        leader.group.count(&done);
        for (answer, done) in answers.into_iter().zip(done) {
            // Whoever is not there any more has left in the middle.
            let _ = answer.send(done);
        }
    }
}

/// One transaction for all. If it fails for what one of them asked, each has one of its own.
async fn commit(pool: &AnyPool, tasks: Vec<Task>) -> Vec<Result<Done, Refusal>> {
    let count = tasks.len();
    let work = transaction(Dialect::Sqlite, move |conn: &mut AnyConnection| {
        Box::pin(async move { perform(conn, Dialect::Sqlite, tasks).await })
    });
    let error = match on_connection(pool, Dialect::Sqlite, work).await {
        Ok(done) => return done.into_iter().map(Ok).collect(),
        Err(fault) => StoreError::from(fault),
    };
    if count == 1 {
        return vec![Err(Refusal::Error(error))];
    }
    let StoreError::Unavailable(error) = error else { return (0..count).map(|_| Err(Refusal::Together)).collect() };
    let error: Arc<dyn std::error::Error + Send + Sync> = error.into();
    (0..count).map(|_| Err(Refusal::Error(StoreError::Unavailable(Box::new(error.clone()))))).collect()
}

/// All of it, each for another thread; answers in the same order.
async fn perform(conn: &mut AnyConnection, dialect: Dialect, tasks: Vec<Task>) -> Result<Vec<Done>, Fault> {
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
        }
    }
    finish::write(conn, dialect, writes).await?;
    let mut begun = begin::begin(conn, dialect, &runs).await?.into_iter().map(|begin| Done::Begin(Box::new(begin)));
    let missing = || Fault::unreadable("a run was not begun");
    done.into_iter().map(|done| done.or_else(|| begun.next()).ok_or_else(missing)).collect()
}
