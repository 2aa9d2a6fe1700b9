//! Many clients of one thread, on all servers at once.

use std::{collections::BTreeSet, time::Instant};

use super::{ask, ask_detached, replicas, said};

const RUNS: usize = 60;

#[tokio::test]
async fn runs_of_one_thread_take_turns_across_servers() {
    let Some(servers) = replicas::<3>("crowd").await else { return };
    let begin = Instant::now();
    let runs = (0..RUNS).map(|i| {
        let (server, run, text) = (&servers[i % 3], format!("r{i}"), format!("hello {i}"));
        // Both kinds, on every server.
        let input = if i % 2 == 0 { ask(&run, &text) } else { ask_detached(&run, &text) };
        async move { server.run(&input).await.rest().await }
    });
    let done = futures::future::join_all(runs).await;
    println!("{RUNS} runs of one thread on 3 servers took {:?}", begin.elapsed());
    for events in &done {
        assert_eq!(events.last().unwrap().event["outcome"]["type"], "success", "{events:?}");
    }
    let page = servers[0].get("/threads/t/messages?limit=200").await;
    let thread: serde_json::Value = page.json().await.unwrap();
    let said = said(&thread);
    assert_eq!(said.len(), 2 * RUNS);
    let mut asked = BTreeSet::new();
    for pair in said.chunks(2) {
        asked.insert(pair[0].strip_prefix("user: hello ").unwrap().parse::<usize>().unwrap());
        assert_eq!(pair[1], "assistant: Hello! How can I help you?");
    }
    assert_eq!(asked, (0..RUNS).collect());
    let ids: BTreeSet<_> =
        thread["messages"].as_array().unwrap().iter().map(|it| it["id"].as_str()).collect();
    assert_eq!(ids.len(), 2 * RUNS);
}
