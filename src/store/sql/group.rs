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
    tasks: VecDeque<(Task, Answer)>,
    /// Whether somebody is there who takes them.
    is_led: bool,
    pace: Pace,
}

type Answer = oneshot::Sender<Result<Done, StoreError>>;

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
    /// Does what is asked for, whole or not at all.
    pub(super) async fn together(&self, task: Task) -> Result<Done, StoreError> {
        if self.dialect == Dialect::Postgres {
            let done =
                self.transact(move |conn| Box::pin(async move { perform(conn, Dialect::Postgres, &[task]).await }));
            return done.await?.pop().ok_or_else(gone);
        }
        let (answer, answered) = oneshot::channel();
        if !self.group.join(task, answer) {
            tokio::spawn(lead(Leader { group: self.group.clone(), has_left: false }, self.write.clone()));
        }
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// The runtime shuts down.
fn gone() -> StoreError {
    StoreError::Unavailable("nobody is there any more to do it".into())
}

impl Group {
    fn count(&self, done: &[Result<Done, StoreError>]) {
        let count = |which: fn(&Result<Done, StoreError>) -> bool| {
            u32::try_from(done.iter().filter(|done| which(done)).count()).unwrap_or(u32::MAX)
        };
        let begun = count(|done| matches!(done, Ok(Done::Begin(begin)) if matches!(**begin, Begin::Begun { .. })));
        // Whoever has lost its lease does not come again either.
        let ended = count(|done| matches!(done, Ok(Done::Ended) | Err(StoreError::LeaseLost)));
        let runs = &mut self.lock().pace.runs;
        *runs = runs.saturating_add(begun).saturating_sub(ended);
    }

    /// Has it done with the others. `false` when the one who asks has to see to it that somebody does it.
    fn join(&self, task: Task, answer: Answer) -> bool {
        let mut waiting = self.lock();
        waiting.tasks.push_back((task, answer));
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
        for (task, answer) in mem::take(&mut waiting.tasks) {
            let is_first = threads.insert(task.thread().to_owned());
            if is_first && taken.0.len() < TASKS && bytes < BYTES {
                bytes += task.bytes();
                taken.0.push(task);
                taken.1.push(answer);
            } else {
                waiting.tasks.push_back((task, answer));
            }
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
async fn commit(pool: &AnyPool, tasks: Vec<Task>) -> Vec<Result<Done, StoreError>> {
    let tasks = Arc::new(tasks);
    let error = match transact(pool, tasks.clone(), 0..tasks.len()).await {
        Ok(done) => return done.into_iter().map(Ok).collect(),
        Err(fault) => StoreError::from(fault),
    };
    if tasks.len() == 1 {
        return vec![Err(error)];
    }
    if let StoreError::Unavailable(error) = error {
        let error: Arc<dyn std::error::Error + Send + Sync> = error.into();
        return tasks.iter().map(|_| Err(StoreError::Unavailable(Box::new(error.clone())))).collect();
    }
    let mut done = Vec::with_capacity(tasks.len());
    for which in 0..tasks.len() {
        let one = transact(pool, tasks.clone(), which..which + 1).await;
        done.push(one.map_err(StoreError::from).and_then(|mut done| done.pop().ok_or_else(gone)));
    }
    done
}

async fn transact(pool: &AnyPool, tasks: Arc<Vec<Task>>, which: std::ops::Range<usize>) -> Result<Vec<Done>, Fault> {
    let work = transaction(Dialect::Sqlite, move |conn: &mut AnyConnection| {
        Box::pin(async move { perform(conn, Dialect::Sqlite, &tasks[which]).await })
    });
    on_connection(pool, Dialect::Sqlite, work).await
}

/// All of it, each for another thread; answers in the same order.
async fn perform(conn: &mut AnyConnection, dialect: Dialect, tasks: &[Task]) -> Result<Vec<Done>, Fault> {
    let (mut runs, mut writes) = (Vec::new(), Vec::new());
    for task in tasks {
        match task {
            Task::Begin(run) => runs.push(run),
            Task::Write(write) => writes.push(write),
        }
    }
    finish::write(conn, dialect, &writes).await?;
    let mut begun = begin::begin(conn, dialect, &runs).await?.into_iter();
    let done = tasks.iter().map(|task| match task {
        Task::Begin(_) => begun
            .next()
            .map(|begin| Done::Begin(Box::new(begin)))
            .ok_or_else(|| Fault::unreadable("a run was not begun")),
        Task::Write(write) => Ok(if write.end.is_some() { Done::Ended } else { Done::Saved }),
    });
    done.collect()
}
