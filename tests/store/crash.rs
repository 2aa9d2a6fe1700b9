//! Durability: every write that returned survives when the process is killed.
//!
//! The process is this test program, which an environment variable tells to write until it is killed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use agui_server::store::{Lease, SqliteStore};
use tempfile::tempdir;

use crate::store::{
    files::quick_check,
    steps::{
        DynStore, NOW, assistant, batch, branch, end_at, events, lease, log, run, thread, user,
    },
};

const VARIABLE: &str = "AGUI_STORE_TO_WRITE";
const RUNS: usize = 7;

/// The process that is killed. After each write it prints the stored values.
#[tokio::test]
async fn write_until_killed() {
    // This test does nothing unless the test below starts it.
    let Ok(path) = std::env::var(VARIABLE) else { return };
    let store: DynStore = Arc::new(SqliteStore::open(Path::new(&path)).await.unwrap());
    let mut leases: Vec<Lease> = Vec::new();
    for run in 0..RUNS {
        leases.push(lease(&store, &format!("t{run}"), "r").await);
    }
    for round in 0..u64::MAX {
        let batches: Vec<_> = leases.iter().map(|lease| batch(lease, 1 + 3 * round, 3)).collect();
        assert_eq!(store.append(&batches).await.unwrap(), [true; RUNS]);
        let run = run("conversation", &round.to_string()).with([user("u")]).begun(&store).await;
        let head = i64::try_from(2 * round + 1).unwrap();
        end_at(NOW).with([assistant("a")]).finish(&store, &run, head).await.unwrap();
        println!("\nwritten {round}");
        std::io::stdout().flush().unwrap();
    }
}

#[tokio::test]
async fn every_write_that_returned_survives_the_process() {
    for rounds in [1, 40, 300] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("threads.db");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "store::crash::write_until_killed", "--nocapture"])
            .env(VARIABLE, &path);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut written = || {
            let line = lines
                .by_ref()
                .map_while(Result::ok)
                .find_map(|line| line.strip_prefix("written ")?.parse().ok());
            line.map(|round: u64| round + 1)
        };
        let mut last = 0;
        while last < rounds {
            last = written().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Lines that it printed before it was killed.
        while let Some(round) = written() {
            last = round;
        }
        let store: DynStore = Arc::new(SqliteStore::open(&path).await.unwrap());
        let lost = store.lost_runs("new", NOW, 99).await.unwrap();
        assert!(
            lost.len() == RUNS || lost.len() == RUNS + 1,
            "the last round's run may be running"
        );
        for lost in lost.iter().filter(|lost| &*lost.key.id != "conversation") {
            let log = log(&store, lost.lease.run).await;
            assert!(
                log.len() as u64 >= 3 * last && log == events(1, log.len() as u64),
                "{last} {}",
                log.len()
            );
            assert_eq!(log.len() % 3, 0, "a batch is there whole");
        }
        let view = thread(&store, "conversation").await;
        let messages = branch(&view);
        assert!(
            view.runs.len() as u64 >= last
                && messages.starts_with(&"u a ".repeat(usize::try_from(last).unwrap() - 1))
        );
        let whole =
            if view.thread.is_running { 2 * view.runs.len() - 1 } else { 2 * view.runs.len() };
        assert_eq!(view.nodes.len(), whole, "a run is there whole");
        drop(store);
        assert_eq!(quick_check(&path), "ok");
    }
}
