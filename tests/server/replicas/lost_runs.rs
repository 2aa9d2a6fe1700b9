//! Runs of a killed server that wait for memory on the next one, with two API keys.

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::tempdir;

use super::{
    ask_detached,
    client::{Replica, Stream},
    poll::poll_until,
};

const KEYS: &str = "[{ name = \"ada\", env = \"KEY_A\" }, { name = \"bob\", env = \"KEY_B\" }]";

/// Starts a detached run of the caller with this key, and leaves it.
async fn begin(server: &Replica, key: &str, thread: &str, text: &str, state: Value) {
    let mut input = ask_detached("r", text);
    (input["threadId"], input["state"]) = (thread.into(), state);
    let request = server.request(Method::POST, "/send-message").bearer_auth(key).json(&input);
    drop(Stream::of(request.send().await.unwrap()).await.take(5).await);
}

async fn has_finished(server: &Replica, key: &str, thread: &str) -> bool {
    let request = server.request(Method::GET, &format!("/threads/{thread}")).bearer_auth(key);
    let thread: Value = request.send().await.unwrap().json().await.unwrap();
    thread["runs"][0]["status"] == "finished"
}

/// One of Ada's requests has room in the second server at a time, and Bob's was the last to begin.
#[tokio::test]
async fn a_lost_run_waits_for_memory_and_holds_up_no_run_of_another() {
    let folder = tempdir().unwrap();
    let environment = [
        ("AGUI_SERVER__DATA_DIR", folder.path().to_str().unwrap()),
        ("AGUI_AUTH__MODE", "api_key"),
        ("AGUI_AUTH__API_KEYS", KEYS),
        ("KEY_A", "a"),
        ("KEY_B", "b"),
    ];
    let server = Replica::start(&environment);
    let threads = ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"];
    for thread in threads {
        begin(&server, "a", thread, "count to 20", json!({ "values": vec![1; 10_000] })).await;
    }
    begin(&server, "b", "b1", "count to 20", json!({})).await;
    server.kill();
    let limits = [("AGUI_SERVER__MAX_BODY_BYTES", "4096"), ("AGUI_RUNS__MAX_MEMORY_BYTES", "0")];
    let server = Replica::start(&[&environment[..], &limits].concat());
    let count_waiting = async || {
        let mut waiting = 0;
        for thread in threads {
            waiting += usize::from(!has_finished(&server, "a", thread).await);
        }
        waiting
    };
    poll_until("Bob's run has ended", async || {
        has_finished(&server, "b", "b1").await.then_some(())
    })
    .await;
    assert!(count_waiting().await > 0, "Bob's run waited for Ada's");
    assert!(server.process.has_logged("a lost run is not continued now"));
    poll_until("two of Ada's runs have ended", async || (count_waiting().await <= 6).then_some(()))
        .await;
}
