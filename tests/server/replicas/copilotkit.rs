//! A CopilotKit page whose requests reach different servers.

use serde_json::json;

use super::{ask, replicas};

#[tokio::test]
async fn a_page_reloads_on_one_server_and_stops_its_run_on_another() {
    let Some([a, b, c]) = replicas("copilotkit").await else { return };
    let agent = "/copilotkit/agent/demo";
    let mut started = a.stream(&format!("{agent}/run"), &ask("r", "count to 10000")).await;
    started.take(5).await;
    drop(started);
    let mut connected = b.stream(&format!("{agent}/connect"), &json!({ "threadId": "t" })).await;
    let seen: Vec<_> =
        connected.take(8).await.into_iter().map(|received| received.name().to_owned()).collect();
    assert_eq!(
        seen[..4],
        ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "TEXT_MESSAGE_START"]
    );
    let stopped = c.post_to(&format!("{agent}/stop/t"), &json!({})).await;
    assert_eq!(stopped.json::<serde_json::Value>().await.unwrap()["stopped"], true);
    assert_eq!(connected.rest().await.pop().unwrap().name(), "RUN_FINISHED");
    assert_eq!(c.thread().await["runs"][0]["status"], "cancelled");
}
