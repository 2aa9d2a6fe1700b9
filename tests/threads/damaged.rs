//! Any row of the store may be damaged without locking an owner out: for any value, every read
//! responds, every deletion works, and other threads are usable. The columns come from the schema,
//! so a new column is covered, too.

use std::{
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        emit::{TextMessage, interrupt},
        event_stream,
    },
    auth::ApiKey,
    protocol::{Interrupt, RunAgentInput, event::StateSnapshot},
    store::{PostgresStore, SqliteStore, Store, ThreadKey},
};
use agui_store::NewQueuedRun;
use futures::{FutureExt as _, future::join_all};
use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use super::{ask, ask_detached};
use crate::support::{postgres::Postgres, running::Running};

const ANN: &str = "a-key";
const BOB: &str = "b-key";
/// The longest time of a read, on a busy machine.
const READ_TIME: Duration = Duration::from_secs(30);
/// The number of databases whose columns are damaged concurrently.
const PARTS: usize = 4;

/// The values of a damaged column, as SQL: NULL, values of another type, cut JSON, 10 MB, numbers
/// that point nowhere. Values that the database refuses are skipped.
const SQLITE_VALUES: [&str; 8] = [
    "NULL",
    "x'ff00fe'",
    "'{\"a\":[\"b'",
    "'\"a'",
    "replace(hex(zeroblob(5242880)), '0', '[')",
    "987654321987",
    "-1",
    "9223372036854775807",
];
const POSTGRES_VALUES: [&str; 7] = [
    "NULL",
    "'{\"a\":[\"b'",
    "'\"a'",
    "repeat('[', 10485760)",
    "987654321987",
    "-1",
    "9223372036854775807",
];

enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Database {
    /// Runs a statement. Returns the number of changed rows, or the refusal.
    async fn execute(&self, sql: String) -> Result<u64, String> {
        match self {
            Self::Sqlite(path) => {
                let conn = sqlite(path);
                conn.execute(&sql, []).map(|count| count as u64).map_err(|error| error.to_string())
            }
            Self::Postgres(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                let done = sqlx::query(AssertSqlSafe(sql)).execute(&mut conn).await;
                conn.close().await.unwrap();
                done.map(|done| done.rows_affected()).map_err(|error| error.to_string())
            }
        }
    }

    /// Runs statements in one transaction.
    async fn execute_all(&self, sql: &[String]) {
        let sql = format!("BEGIN; {}; COMMIT", sql.join("; "));
        match self {
            Self::Sqlite(path) => sqlite(path).execute_batch(&sql).unwrap(),
            Self::Postgres(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await.unwrap();
            }
        }
    }

    async fn count(&self, sql: &str) -> i64 {
        match self {
            Self::Sqlite(path) => sqlite(path).query_row(sql, [], |row| row.get(0)).unwrap(),
            Self::Postgres(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
                    .fetch_one(&mut conn)
                    .await
                    .unwrap()
            }
        }
    }

    /// Returns the tables of rows that belong to threads, with their columns.
    async fn columns(&self) -> Vec<(String, String)> {
        let columns: Vec<(String, String)> = match self {
            Self::Sqlite(path) => {
                let sql = "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c
                    WHERE t.type = 'table' AND t.sql NOT LIKE '%VIRTUAL%' AND t.name NOT LIKE 'agui_words%'";
                let conn = sqlite(path);
                let mut select = conn.prepare(sql).unwrap();
                let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
                rows.map(Result::unwrap).collect()
            }
            Self::Postgres(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                let sql =
                    "SELECT table_name::text, column_name::text FROM information_schema.columns
                    WHERE table_name LIKE 'agui\\_%'";
                let rows = sqlx::query(sql).fetch_all(&mut conn).await.unwrap();
                rows.iter().map(|row| (row.get(0), row.get(1))).collect()
            }
        };
        // These belong to the whole store.
        let of_store = [
            "agui_schema",
            "agui_file_sums",
            "agui_indexing",
            "agui_owed",
            "agui_sealed",
            "agui_secrets",
        ];
        columns.into_iter().filter(|(table, _)| !of_store.contains(&table.as_str())).collect()
    }

    fn values(&self) -> &'static [&'static str] {
        match self {
            Self::Sqlite(_) => &SQLITE_VALUES,
            Self::Postgres(_) => &POSTGRES_VALUES,
        }
    }
}

fn sqlite(path: &Path) -> Connection {
    let conn = Connection::open(path).unwrap();
    conn.busy_timeout(Duration::from_secs(20)).unwrap();
    conn
}

/// An agent that says a word and sets a state, or asks a question.
fn talker(input: RunAgentInput, cx: RunContext) -> EventStream {
    let asks = input.run_id.as_str() == "asks";
    event_stream(async_stream::try_stream! {
        let message = TextMessage::new();
        yield message.start();
        yield message.delta("harmless words");
        yield message.end();
        yield StateSnapshot::new(json!({ "step": 1 })).into();
        if asks {
            yield interrupt(&cx, vec![Interrupt { id: "ask".into(), ..Interrupt::new("question") }]);
        }
    })
}

struct Damage {
    server: Running,
    store: Arc<dyn Store>,
    database: Database,
}

impl Damage {
    async fn start(store: Arc<dyn Store>, database: Database) -> Self {
        let keys = [ApiKey::from_secret("ann", ANN), ApiKey::from_secret("bob", BOB)];
        let server = Server::new().agent("talker", talker).store(store.clone()).api_keys(keys);
        let all = Self { server: Running::start(server).await, store, database };
        all.run(BOB, &ask("of bob", "r", "m", "harmless")).await;
        all
    }

    async fn request(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> (u16, String) {
        let request =
            self.server.client.request(method.clone(), self.server.url(path)).bearer_auth(key);
        let request = body.map_or(request.try_clone().unwrap(), |body| request.json(body));
        let begin = Instant::now();
        let answered = tokio::time::timeout(READ_TIME, async {
            // A log that is damaged breaks the response, before its head is sent or later.
            let response = match request.send().await {
                Ok(response) => response,
                Err(error) => return (500, error.to_string()),
            };
            let status = response.status().as_u16();
            (status, response.text().await.unwrap_or_default())
        });
        answered.await.unwrap_or_else(|_| panic!("{method} {path} hangs: {:?}", begin.elapsed()))
    }

    async fn get(&self, key: &str, path: &str) -> (u16, String) {
        self.request(key, Method::GET, path, None).await
    }

    async fn run(&self, key: &str, input: &Value) {
        let (status, text) = self.request(key, Method::POST, "/send-message", Some(input)).await;
        assert!(status == 200 && text.contains("RUN_FINISHED"), "{status} {text}");
    }

    /// Makes a thread with something in all tables. Returns its number.
    async fn make_thread(&self) -> i64 {
        self.run(ANN, &ask_detached("t", "r")).await;
        let mut asks = ask_detached("t", "asks");
        asks["messages"][0]["id"] = "m2".into();
        // The image becomes a file.
        let image = json!({ "type": "data", "value": "A".repeat(4_000), "mimeType": "image/png" });
        asks["messages"][0]["content"] = json!([
            { "type": "text", "text": "go, harmless" }, { "type": "image", "source": image },
        ]);
        asks["state"] = json!({ "step": 0 });
        self.run(ANN, &asks).await;
        let edit = json!({ "title": "harmless title", "metadata": { "a": 1 } });
        assert_eq!(self.request(ANN, Method::PATCH, "/threads/t", Some(&edit)).await.0, 200);
        let feedback = json!({ "score": 1 });
        let path = "/threads/t/messages/m2/feedback";
        assert_eq!(self.request(ANN, Method::POST, path, Some(&feedback)).await.0, 204);
        assert_eq!(self.get(ANN, "/threads?q=harmless").await.0, 200);
        self.database
            .count("SELECT number FROM agui_threads WHERE owner = 'key:ann' AND id = 't'")
            .await
    }

    /// Stores a queued run, as a server that is gone left it.
    async fn queue_run(&self) {
        let key = ThreadKey { owner: "key:ann".into(), id: "t".into() };
        let run = NewQueuedRun {
            key: &key,
            run_id: &"queued".into(),
            asked: Some("what"),
            agent: "talker",
            request: r#"{"messages":[{"id":"m3","role":"user","content":"go"}]}"#,
            holder: "gone",
            now: 0,
            max_queued: 8,
        };
        self.store.queue().unwrap().enqueue(&run).await.unwrap();
    }

    /// Damages a value of one row. Returns `false` if the database refuses the value.
    async fn damage(
        &self,
        thread: i64,
        (table, column): &(String, String),
        value: &str,
        keys: &[&str],
    ) -> bool {
        let scope = match (table.as_str(), keys.contains(&"thread"), keys.contains(&"run")) {
            ("agui_threads", ..) => format!("number = {thread}"),
            ("agui_files", ..) => {
                format!("number = (SELECT MAX(file) FROM agui_file_uses WHERE thread = {thread})")
            }
            ("agui_file_chunks", ..) => {
                format!("file = (SELECT MAX(file) FROM agui_file_uses WHERE thread = {thread})")
            }
            (_, true, _) => format!("thread = {thread}"),
            _ => format!("run = (SELECT MAX(number) FROM agui_runs WHERE thread = {thread})"),
        };
        let one = ["number", "last", "message"].into_iter().find(|key| keys.contains(key));
        let one = one.map_or_else(String::new, |key| {
            format!(" AND {key} = (SELECT MAX({key}) FROM {table} WHERE {scope})")
        });
        let update = format!("UPDATE {table} SET {column} = {value} WHERE {scope}{one}");
        let changed = loop {
            if table == "agui_queued_runs" {
                self.queue_run().await;
            }
            let changed = self.database.execute(update.clone()).await;
            // The server may have begun the queued run meanwhile.
            if table != "agui_queued_runs" || changed.as_ref().ok() != Some(&0) {
                break changed;
            }
        };
        assert!(
            changed.as_ref().is_ok_and(|rows| *rows == 1) || changed.is_err(),
            "{table}.{column}: {changed:?}"
        );
        changed.is_ok()
    }

    async fn check_reads(&self, what: &str) {
        for path in ["/threads", "/threads?archived=all", "/threads?q=harmless", "/threads/other"] {
            let (status, text) = self.get(ANN, path).await;
            assert!(
                status == 200 && text.contains("\"other\""),
                "{what}: {path} {status} {text:.300}"
            );
        }
        assert_eq!(self.get(ANN, "/threads/other/export").await.0, 200, "{what}");
        let paths = [
            "/threads/t",
            "/threads/t/messages",
            "/threads/t/messages?run=asks",
            "/threads/t/export",
            "/threads/t/state",
            "/threads/t/runs/asks/events",
            "/threads/t/runs/r/events",
            "/threads/t/runs/asks/recording",
            "/send-message?threadId=t",
        ];
        for path in paths {
            let (status, text) = self.get(ANN, path).await;
            // A log that contradicts itself cannot be read.
            let is_log = path.contains("/runs/");
            assert!(
                status < 500 || is_log && status == 500,
                "{what}: {path} {status} {:.300}",
                text
            );
        }
        let (status, text) = self.request(ANN, Method::POST, "/threads/t/connect", None).await;
        assert!(status < 500, "{what}: connect {status} {:.300}", text);
        // Only the damaged thread may refuse runs.
        let input = ask("t", "next", "m3", "go");
        self.request(ANN, Method::POST, "/send-message", Some(&input)).await;
        self.run(ANN, &ask("other", what, what, "go")).await;
        let (status, text) = self.get(BOB, "/threads?q=harmless").await;
        assert!(status == 200 && text.contains("of bob"), "{what}: {status}");
    }

    async fn check_deletions(&self, what: &str) {
        let (status, text) = self.request(ANN, Method::DELETE, "/threads/t", None).await;
        assert!([204, 404].contains(&status), "{what}: DELETE {status} {text}");
        let left = "SELECT COUNT(*) FROM agui_threads WHERE owner = 'key:ann' AND id <> 'other'";
        // The thread could not be read, and a run on its id has made another thread.
        if status == 404 || self.database.count(left).await > 0 {
            let (status, text) = self.request(ANN, Method::DELETE, "/threads", None).await;
            assert!([200, 204].contains(&status), "{what}: DELETE of all {status} {text}");
            self.run(ANN, &ask("other", "r", "m", "harmless")).await;
        }
        assert_eq!(self.database.count(left).await, 0, "{what}");
    }

    /// Removes the rows that no longer belong to a thread, as `agui-server check --store` says.
    async fn remove_orphans(&self, columns: &[(String, String)]) {
        let of_nobody = "DELETE FROM agui_threads WHERE owner NOT IN ('key:ann', 'key:bob') OR number > 900000000";
        // Otherwise the next thread would get the damaged file, which has the same bytes.
        let files = ["agui_file_uses", "agui_file_chunks", "agui_files"];
        let mut statements: Vec<_> =
            files.iter().map(|table| format!("DELETE FROM {table}")).collect();
        statements.push(of_nobody.to_owned());
        // Runs without a thread first: their events have no run then.
        let parents = [("thread", "agui_threads"), ("run", "agui_runs")];
        for (key, parent) in parents {
            let children =
                columns.iter().filter(|(table, column)| column == key && table != parent);
            statements.extend(children.map(|(table, _)| {
                format!("DELETE FROM {table} WHERE {key} NOT IN (SELECT number FROM {parent})")
            }));
        }
        self.database.execute_all(&statements).await;
    }
}

/// Damages every fourth column.
async fn damage_columns(part: usize, store: Arc<dyn Store>, database: Database) {
    let all = Damage::start(store, database).await;
    all.run(ANN, &ask("other", "r", "m", "harmless")).await;
    let columns = all.database.columns().await;
    assert!(columns.len() > 50, "{columns:?}");
    let (mut damaged, mut failed) = (0, Vec::new());
    for column in columns.iter().skip(part).step_by(PARTS) {
        let of_table = columns.iter().filter(|(table, _)| *table == column.0);
        let keys: Vec<_> = of_table.map(|(_, column)| column.as_str()).collect();
        let mut undamaged = None;
        for value in all.database.values() {
            let thread = match undamaged.take() {
                Some(thread) => thread,
                None => all.make_thread().await,
            };
            let what = format!("{}.{} = {value}", column.0, column.1);
            let checked = AssertUnwindSafe(async {
                if !all.damage(thread, column, value, &keys).await {
                    return false;
                }
                all.store.damaged_rows().await.unwrap();
                all.check_reads(&what).await;
                all.check_deletions(&what).await;
                true
            });
            match checked.catch_unwind().await {
                Ok(true) => damaged += 1,
                Ok(false) => undamaged = Some(thread),
                Err(_) => {
                    eprintln!("failed: {what}");
                    failed.push(what);
                    all.store.delete(agui_server::store::ThreadNumber(thread)).await.unwrap();
                    all.store.delete_all("key:ann").await.unwrap();
                    all.run(ANN, &ask("other", "r", "m", "harmless")).await;
                }
            }
            if undamaged.is_none() {
                all.remove_orphans(&columns).await;
            }
        }
        if undamaged.is_some() {
            all.check_deletions("undamaged").await;
        }
    }
    assert_eq!(failed, [""; 0]);
    assert!(damaged > columns.len() / PARTS, "{damaged}");
    assert_eq!(all.store.damaged_rows().await.unwrap(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_row_of_sqlite_may_be_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let parts = (0..PARTS).map(async |part| {
        let path = folder.path().join(format!("{part}.db"));
        let store = Arc::new(SqliteStore::open(&path).await.unwrap());
        damage_columns(part, store, Database::Sqlite(path)).await;
    });
    join_all(parts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_row_of_postgres_may_be_damaged() {
    let Some(server) = Postgres::shared() else { return };
    let parts = (0..PARTS).map(async |part| {
        let url = server.database("damaged").await;
        damage_columns(
            part,
            Arc::new(PostgresStore::open(&url).await.unwrap()),
            Database::Postgres(url),
        )
        .await;
    });
    join_all(parts).await;
}
