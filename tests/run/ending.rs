//! The end of a run is stored before the terminal event is sent.

use std::{path::Path, sync::Arc};

use agui_server::{Server, agent::builtin::Echo, store::SqliteStore};

use crate::{
    run::{ask, puppet, read_until},
    support::running::{Running, input},
};

async fn kept_at(path: &Path, server: Server) -> Running {
    Running::start(server.store(Arc::new(SqliteStore::open(path).await.unwrap()))).await
}

/// This does not hold for every run: the store may take longer than the text may wait.
#[tokio::test]
async fn the_last_text_is_sent_together_with_the_terminal_event() {
    let folder = tempfile::tempdir().unwrap();
    let server =
        kept_at(&folder.path().join("threads.db"), Server::new().agent("echo", Echo)).await;
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
    // Another program writes to the file.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for string in ["the last word", "end"] {
        strings.send(string.to_owned()).unwrap();
    }
    let said = read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_END")).await;
    assert!(said.contains("the last word") && !said.contains("RUN_"), "{said}");
    other.execute_batch("COMMIT").unwrap();
    let end = read_until(&mut stream, |text| text.contains("RUN_")).await;
    assert!(end.contains("RUN_FINISHED"), "{end}");
}
