//! The contract of the `Store` trait on every store, and tests of single stores.

mod crash;
mod file_promises;
mod files;
mod full_disk;
mod journal;
mod neighbours;
mod outage;
mod owed;
mod sealed_promises;
mod shared;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use agui_server::store::{MemoryStore, PostgresStore, SqliteStore, Store as _, ThreadPage};
use agui_store::contract::{self, steps};
use sqlx::Connection as _;

use crate::support::{
    pgbouncer::PgBouncer,
    postgres::Postgres,
    running::{eventually, eventually_async, reopened},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_store_keeps_the_contract() {
    contract::check(async || MemoryStore::new()).await;
    file_promises::check(async || MemoryStore::new()).await;
    sealed_promises::check(async || MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sqlite_store_keeps_the_contract() {
    let (folder, files) = (tempfile::tempdir().unwrap(), AtomicUsize::new(0));
    let open = async || {
        let file = format!("{}.db", files.fetch_add(1, Ordering::Relaxed));
        SqliteStore::open(&folder.path().join(file)).await.unwrap()
    };
    contract::check(&open).await;
    file_promises::check(&open).await;
    sealed_promises::check(&open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_keeps_the_contract() {
    let Some(server) = Postgres::shared() else { return };
    let open = async || PostgresStore::open(&server.database("contract").await).await.unwrap();
    contract::check(&open).await;
    file_promises::check(&open).await;
    sealed_promises::check(&open).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_postgres_store_keeps_the_contract_through_pgbouncer() {
    let Some(server) = Postgres::shared() else { return };
    let Some(bouncer) = PgBouncer::start(server, 5) else { return };
    let open = async || {
        let url = server.database("pooled").await;
        PostgresStore::open_pooled(&bouncer.url(&url), &url).await.unwrap()
    };
    contract::check(&open).await;
    file_promises::check(&open).await;
}

/// The operator has not said that the URL is a pooler's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_is_recognised_without_the_url_of_its_database() {
    let Some(server) = Postgres::shared() else { return };
    for size in [1, 5] {
        let Some(bouncer) = PgBouncer::start(server, size) else { return };
        let url = bouncer.url(&server.database("unnamed_pooler").await);
        let open = async || PostgresStore::open(&url).await.unwrap();
        let (one, other) = (open().await, open().await);
        // Statements with the same names, on connections that both stores have by turns.
        let check = async |store: &PostgresStore| {
            for _ in 0..40 {
                store.check().await.unwrap();
                store.stored_bytes(Some("key:ann")).await.unwrap();
            }
        };
        tokio::join!(check(&one), check(&other), check(&one), check(&other));
    }
}

async fn found(store: &steps::DynStore, query: &str) -> usize {
    let mut page = ThreadPage::first(9);
    page.query = Some(query.to_owned());
    store.threads("key:ann", &page).await.unwrap().len()
}

async fn with_a_text(store: &steps::DynStore) {
    let run = steps::run("t", "r").of("key:ann").with([steps::user("ภาษาไทย English")]);
    run.ended(store, steps::end_at(steps::NOW)).await;
    assert_eq!((found(store, "ไทย").await, found(store, "english").await), (1, 1));
}

/// A server of an older version has written the words in another form.
#[tokio::test]
async fn an_index_of_an_older_version_is_made_again_in_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store: steps::DynStore = Arc::new(SqliteStore::open(&path).await.unwrap());
    with_a_text(&store).await;
    drop(store);
    let older = "
        DROP TABLE agui_words;
        CREATE VIRTUAL TABLE agui_words USING fts5 (words, content = '', tokenize = 'unicode61 remove_diacritics 2');
        PRAGMA user_version = 0;";
    eventually("the store is closed", || {
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.execute_batch(older).is_ok()
    })
    .await;
    let store: steps::DynStore = reopened(folder.path()).await;
    assert_eq!((found(&store, "ไทย").await, found(&store, "english").await), (1, 1));
}

#[tokio::test]
async fn an_index_of_an_older_version_is_made_again_in_postgres() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("older_words").await;
    let open = async || Arc::new(PostgresStore::open(&url).await.unwrap());
    let store: steps::DynStore = open().await;
    with_a_text(&store).await;
    drop(store);
    let mut conn = sqlx::PgConnection::connect(&url).await.unwrap();
    let older = "
        UPDATE agui_words SET words = replace(words::text, 'ไ', 'x')::tsvector;
        UPDATE agui_indexing SET version = 0, thread = 0, message = 0";
    sqlx::raw_sql(older).execute(&mut conn).await.unwrap();
    let store: steps::DynStore = open().await;
    eventually_async("the index is made again", async || found(&store, "ไทย").await == 1).await;
    assert_eq!(found(&store, "english").await, 1);
}

/// A store whose appends ignore lost leases.
mod unfenced {
    use agui_server::{
        protocol::{MessageId, ResumeEntry, RunId},
        store::{
            BeginOutcome, EndState, EndedRun, EventBatch, EventPage, Feedback, FinishedRun, Lease,
            LostRun, MemoryStore, MessagePage, MessageQuery, Millis, NewRun, Retention, RunEnd,
            RunNumber, RunRecord, RunStart, Store, StoreError, SweepResult, Thread, ThreadContent,
            ThreadKey, ThreadNumber, ThreadPage, ThreadParts, ThreadUpdate, ThreadVersion,
            ThreadView,
        },
    };

    use agui_store::contract;

    struct Unfenced(MemoryStore);

    #[async_trait::async_trait]
    impl Store for Unfenced {
        async fn begin(&self, run: &NewRun<'_>) -> Result<BeginOutcome, StoreError> {
            self.0.begin(run).await
        }
        async fn append(&self, batches: &[EventBatch]) -> Result<Vec<bool>, StoreError> {
            self.0.append(batches).await.map(|appended| vec![true; appended.len()])
        }
        async fn promote(
            &self,
            lease: &Lease,
            request: Option<&str>,
            first: &EventBatch,
        ) -> Result<bool, StoreError> {
            self.0.promote(lease, request, first).await
        }
        async fn finish(
            &self,
            lease: &Lease,
            end: &RunEnd<'_>,
        ) -> Result<Option<FinishedRun>, StoreError> {
            self.0.finish(lease, end).await
        }
        async fn set_delivered(
            &self,
            thread: ThreadNumber,
            run: RunNumber,
            delivered: bool,
        ) -> Result<Option<i64>, StoreError> {
            self.0.set_delivered(thread, run, delivered).await
        }
        async fn set_alias(
            &self,
            thread: ThreadNumber,
            run: RunNumber,
            alias: &RunId,
        ) -> Result<(), StoreError> {
            self.0.set_alias(thread, run, alias).await
        }
        async fn thread(
            &self,
            key: &ThreadKey,
            include: ThreadParts,
        ) -> Result<Option<ThreadView>, StoreError> {
            self.0.thread(key, include).await
        }
        async fn threads(&self, owner: &str, page: &ThreadPage) -> Result<Vec<Thread>, StoreError> {
            self.0.threads(owner, page).await
        }
        async fn update(
            &self,
            expected: ThreadVersion,
            update: &ThreadUpdate<'_>,
        ) -> Result<bool, StoreError> {
            self.0.update(expected, update).await
        }
        async fn messages(
            &self,
            thread: &Thread,
            query: &MessageQuery,
        ) -> Result<MessagePage, StoreError> {
            self.0.messages(thread, query).await
        }
        async fn set_feedback(
            &self,
            thread: ThreadNumber,
            message: &MessageId,
            feedback: Option<&Feedback>,
        ) -> Result<bool, StoreError> {
            self.0.set_feedback(thread, message, feedback).await
        }

        async fn content(&self, key: &ThreadKey) -> Result<Option<ThreadContent>, StoreError> {
            self.0.content(key).await
        }

        async fn insert(
            &self,
            key: &ThreadKey,
            content: &ThreadContent,
        ) -> Result<bool, StoreError> {
            self.0.insert(key, content).await
        }
        async fn run(
            &self,
            owner: &str,
            thread: ThreadNumber,
            id: &RunId,
        ) -> Result<Option<RunRecord>, StoreError> {
            self.0.run(owner, thread, id).await
        }
        async fn attempts(
            &self,
            owner: &str,
            thread: ThreadNumber,
            id: &RunId,
        ) -> Result<Vec<RunRecord>, StoreError> {
            self.0.attempts(owner, thread, id).await
        }
        async fn end_state(
            &self,
            owner: &str,
            thread: ThreadNumber,
            run: EndedRun<'_>,
        ) -> Result<Option<EndState>, StoreError> {
            self.0.end_state(owner, thread, run).await
        }

        async fn answered(
            &self,
            owner: &str,
            thread: ThreadNumber,
        ) -> Result<Vec<ResumeEntry>, StoreError> {
            self.0.answered(owner, thread).await
        }
        async fn events(
            &self,
            owner: &str,
            run: RunNumber,
            after: u64,
            max_bytes: usize,
        ) -> Result<Option<EventPage>, StoreError> {
            self.0.events(owner, run, after, max_bytes).await
        }
        async fn stored_bytes(&self, owner: Option<&str>) -> Result<u64, StoreError> {
            self.0.stored_bytes(owner).await
        }
        async fn run_start(
            &self,
            owner: &str,
            run: RunNumber,
        ) -> Result<Option<RunStart>, StoreError> {
            self.0.run_start(owner, run).await
        }
        async fn delete(&self, thread: ThreadNumber) -> Result<bool, StoreError> {
            self.0.delete(thread).await
        }
        async fn sweep(
            &self,
            retention: &Retention,
            now: Millis,
        ) -> Result<SweepResult, StoreError> {
            self.0.sweep(retention, now).await
        }
        async fn lost_runs(
            &self,
            holder: &str,
            now: Millis,
            limit: usize,
        ) -> Result<Vec<LostRun>, StoreError> {
            self.0.lost_runs(holder, now, limit).await
        }
        async fn take_over(
            &self,
            lost: &Lease,
            holder: &str,
            now: Millis,
            until: Millis,
        ) -> Result<Option<Lease>, StoreError> {
            self.0.take_over(lost, holder, now, until).await
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[should_panic(expected = "log::a_lost_lease_fails_only_its_own_batch")]
    async fn a_broken_promise_is_named() {
        contract::check(async || Unfenced(MemoryStore::new())).await;
    }
}
