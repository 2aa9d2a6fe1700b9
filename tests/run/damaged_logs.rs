//! Lost runs whose rows contradict each other end once, and hold up no other.

use std::{path::PathBuf, sync::Arc, time::Duration};

use agui_server::{
    Server,
    agent::{EventStream, RunContext, builtin::Echo, emit::TextMessage, events},
    protocol::{Event, RunAgentInput, event::RunStarted},
    store::{EventBatch, PostgresStore, RunNumber, SqliteStore},
};
use agui_store::contract::steps::{DynStore, OWNER, TestRun, run, user};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::time::sleep;

use super::{ask, changed_options, said};
use crate::support::{poll::poll_until, postgres::Postgres, running::Running};

/// The damages, as SQL about the run `:run`. The log has the events 1 to 2 and 3 to 4.
const DAMAGES: [(&str, &str); 12] = [
    ("a far last", "UPDATE agui_events SET last = 100000000 WHERE run = :run AND first = 3"),
    ("a far first", "UPDATE agui_events SET first = 100000000 WHERE run = :run AND first = 3"),
    ("a first of 0", "UPDATE agui_events SET first = 0 WHERE run = :run AND first = 1"),
    ("a negative first", "UPDATE agui_events SET first = -9 WHERE run = :run AND first = 3"),
    ("a gap", "DELETE FROM agui_events WHERE run = :run AND first = 1"),
    ("an empty body", "UPDATE agui_events SET body = '' WHERE run = :run AND first = 3"),
    (
        "more lines",
        "UPDATE agui_events SET body = body || body || '\n\n\n' WHERE run = :run AND first = 3",
    ),
    ("no events", "UPDATE agui_events SET body = 'x\n[' WHERE run = :run AND first = 3"),
    ("no request", "UPDATE agui_run_starts SET request = '{\"tools\":[{' WHERE run = :run"),
    ("no run", "UPDATE agui_runs SET number = 900000000 + :run WHERE number = :run"),
    ("another run", "UPDATE agui_threads SET run_id = 'other' WHERE run = :run"),
    ("an ended run", "UPDATE agui_runs SET status = 'finished' WHERE number = :run"),
];
/// The damages that only SQLite accepts.
const WRONG_TYPES: [(&str, &str); 3] = [
    (
        "a body of the wrong type",
        "UPDATE agui_events SET body = x'ff00' WHERE run = :run AND first = 3",
    ),
    (
        "a request of the wrong type",
        "UPDATE agui_run_starts SET request = x'ff00' WHERE run = :run",
    ),
    ("a head of the wrong type", "UPDATE agui_threads SET head = 'x' WHERE run = :run"),
];

/// An agent that cannot continue.
fn brief(_: RunAgentInput, _: RunContext) -> EventStream {
    events(TextMessage::whole("Done"))
}

enum Database {
    Sqlite(PathBuf),
    Postgres(String),
}

impl Database {
    async fn execute(&self, sql: String) {
        match self {
            Self::Sqlite(path) => {
                let conn = rusqlite::Connection::open(path).unwrap();
                assert!(conn.execute(&sql, []).unwrap() == 1, "{sql}");
            }
            Self::Postgres(url) => {
                let mut conn = PgConnection::connect(url).await.unwrap();
                let done =
                    sqlx::query(AssertSqlSafe(sql.clone())).execute(&mut conn).await.unwrap();
                assert!(done.rows_affected() == 1, "{sql}");
            }
        }
    }
}

/// Begins a run that another server has lost after four events.
async fn left_behind(store: &DynStore, thread: &str, agent: &str) -> RunNumber {
    let run = TestRun {
        agent: agent.to_owned(),
        request: Some("{}"),
        ..run(thread, "r").by("another server")
    };
    let lease = run.with([user("go")]).begun(store).await;
    let message = TextMessage::new();
    let events: [Event; 4] = [
        RunStarted::new(thread.into(), "r".into()).into(),
        message.start(),
        message.delta("half"),
        message.delta("way"),
    ];
    for (first, two) in [(1, &events[..2]), (3, &events[2..])] {
        let events = two.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        let batch = EventBatch { lease: lease.clone(), first, events, times: vec![0; 2] };
        assert_eq!(store.append(&[batch]).await.unwrap(), [true]);
    }
    lease.run
}

async fn ends_once(store: DynStore, database: Database, damages: &[(&str, &str)]) {
    for agent in ["brief", "echo"] {
        for (what, sql) in damages {
            let thread = format!("{agent}: {what}");
            let run = left_behind(&store, &thread, agent).await;
            database.execute(sql.replace(":run", &run.to_string())).await;
        }
    }
    // Found last, because it was begun last.
    left_behind(&store, "whole", "brief").await;
    let options = changed_options(|options| options.lease = Duration::from_millis(600));
    let server = Server::new()
        .agent("brief", brief)
        .agent("echo", Echo)
        .thread_options(options)
        .store(store.clone());
    let server = Running::start(server).await;
    let whole = server.until_status("whole", "failed").await;
    assert_eq!(said(&whole), ["user: go", "assistant: halfway"]);
    for agent in ["brief", "echo"] {
        for (what, _) in damages {
            let thread = format!("{agent}: {what}");
            let path = format!("/threads/{}", thread.replace(' ', "%20"));
            let has_ended = async || {
                let view: serde_json::Value = server.get(&path).await.json().await.unwrap();
                view.get("activeRunId").is_none().then_some(view)
            };
            poll_until(&thread, has_ended).await;
            let events = server.events(&ask(&thread, "next", "m2", "go on")).await;
            assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "{thread}");
        }
    }
    // The server has looked for lost runs several times.
    sleep(Duration::from_secs(1)).await;
    // The row of "no run" has another number.
    for (what, _) in damages.iter().filter(|(what, _)| *what != "no run") {
        let key = agui_server::store::ThreadKey {
            owner: OWNER.into(),
            id: format!("brief: {what}").as_str().into(),
        };
        let number = store.thread(&key, Default::default()).await.unwrap().unwrap().thread.number;
        let run = store.run(OWNER, number, &"r".into()).await.unwrap();
        assert!(run.is_none_or(|run| run.takeovers <= 1 && run.ended_at.is_some()), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_a_lost_run_that_contradicts_itself_ends_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = Arc::new(SqliteStore::open(&path).await.unwrap());
    ends_once(store, Database::Sqlite(path), &[&DAMAGES[..], &WRONG_TYPES].concat()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_a_lost_run_that_contradicts_itself_ends_once() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.database("damaged_logs").await;
    ends_once(
        Arc::new(PostgresStore::open(&url).await.unwrap()),
        Database::Postgres(url),
        &DAMAGES,
    )
    .await;
}
