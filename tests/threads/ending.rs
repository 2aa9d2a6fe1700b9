//! The end of a run, which is stored before it is told.

use std::{path::Path, sync::Arc};

use agui_server::{Server, agents::Echo, store::Sql};
use sqlx::{Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{
    ask, puppet, read_until,
    support::{Running, input},
};

async fn kept_at(path: &Path, server: Server) -> Running {
    Running::start(server.store(Arc::new(Sql::sqlite(path).await.unwrap()))).await
}

/// Not always, for the store may be slower than the text may wait.
#[tokio::test]
async fn what_a_run_says_last_leaves_together_with_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let server = kept_at(&folder.path().join("threads.db"), Server::new().agent("echo", Echo)).await;
    for _ in 0..100 {
        let mut response = server.run(&input("hello")).await;
        let first = response.chunk().await.unwrap().unwrap();
        if String::from_utf8_lossy(&first).contains("RUN_FINISHED") {
            return;
        }
        while response.chunk().await.unwrap().is_some() {}
    }
    panic!("the end always came later");
}

#[tokio::test]
async fn a_text_does_not_wait_for_a_store_that_does_not_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let (agent, strings, _) = puppet();
    let server = kept_at(&path, Server::new().agent("puppet", agent)).await;
    let mut stream = server.raw_run(&ask("t", "r", "m", "go")).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    // Somebody else has the file for as long as this takes.
    let mut other = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(&path)).await.unwrap();
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    for string in ["the last word", "end"] {
        strings.send(string.to_owned()).unwrap();
    }
    let said = read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_END")).await;
    assert!(said.contains("the last word") && !said.contains("RUN_"), "{said}");
    sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    let end = read_until(&mut stream, |text| text.contains("RUN_")).await;
    assert!(end.contains("RUN_FINISHED"), "{end}");
}
