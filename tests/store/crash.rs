//! A process that is killed while it writes: what it was told is written is there.
//!
//! The process is this test program, asked by a variable to write until it is killed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
};

use agui_server::store::{Lease, Sql};
use tempfile::tempdir;

use crate::{
    backends::{NOW, Shared, batch, events, lease, log, said},
    files::quick_check,
};

const VARIABLE: &str = "AGUI_STORE_TO_WRITE";
const RUNS: usize = 7;

/// Not a test by itself: says after each write what must be there from now on.
#[tokio::test]
#[ignore = "it is started by the test below, and killed"]
async fn write_until_killed() {
    let Ok(path) = std::env::var(VARIABLE) else { return };
    let store: Shared = Arc::new(Sql::sqlite(Path::new(&path)).await.unwrap());
    let mut leases: Vec<Lease> = Vec::new();
    for run in 0..RUNS {
        leases.push(lease(&store, &format!("t{run}"), "r").await);
    }
    for round in 0..u64::MAX {
        let batches: Vec<_> = leases.iter().map(|lease| batch(lease, 1 + 3 * round, 3)).collect();
        assert_eq!(store.append(&batches).await.unwrap(), [true; RUNS]);
        store.save(&leases[0], &said(&round.to_string())).await.unwrap();
        println!("\nwritten {round}");
        std::io::stdout().flush().unwrap();
    }
}

#[tokio::test]
async fn what_was_written_survives_the_process() {
    for rounds in [1, 40, 300] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("threads.db");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "crash::write_until_killed", "--ignored", "--nocapture"]).env(VARIABLE, &path);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut written = || {
            let line =
                lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("written ")?.parse().ok());
            line.map(|round: u64| round + 1)
        };
        let mut last = 0;
        while last < rounds {
            last = written().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it could still say before it was killed.
        while let Some(round) = written() {
            last = round;
        }
        let store: Shared = Arc::new(Sql::sqlite(&path).await.unwrap());
        assert_eq!(store.lost("new", NOW, 99).await.unwrap().len(), RUNS);
        for run in 0..RUNS {
            let log = log(&store, &format!("t{run}"), "r").await;
            assert!(log.len() as u64 >= 3 * last && log == events(1, log.len() as u64), "{last} {}", log.len());
            assert_eq!(log.len() % 3, 0, "a batch is there whole");
        }
        let thread = store.thread(&"t0".into()).await.unwrap().unwrap();
        assert!(u64::try_from(thread.version).unwrap() >= last);
        drop(store);
        assert_eq!(quick_check(&path).await, "ok");
    }
}
