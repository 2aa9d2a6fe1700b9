//! Counts of runs, refusals, followers, the store, and clients that do not read.

use std::time::Duration;

use agui_server::{
    Server,
    agent::{AgentError, EventStream, RunContext, builtin::Echo, emit::TextMessage, event_stream},
    options::{Connections, MetricsOptions},
    protocol::{RunAgentInput, event::TextMessageEnd},
};
use serde_json::json;

use super::{
    support::{Running, endless, eventually_async, input, read_until, silent},
    value,
};

async fn metrics(server: &Running) -> String {
    server.client.get(server.url("/metrics")).send().await.unwrap().text().await.unwrap()
}

fn server() -> Server {
    Server::new().metrics(MetricsOptions::on_main_listener())
}

/// Fails with the user's text as the code.
fn failing(input: RunAgentInput, _: RunContext) -> EventStream {
    event_stream(async_stream::try_stream! {
        // The end of a message that was never open is left out.
        yield TextMessageEnd::new("unknown").into();
        yield TextMessage::new().start();
        Err(AgentError::new(input.last_user_text().unwrap_or_default().into_owned(), "it failed"))?;
    })
}

#[tokio::test]
async fn runs_are_counted_by_agent_outcome_and_known_code() {
    let server = Running::start(server().agent("echo", Echo).agent("bad", failing)).await;
    server.run(&input("Hi")).await.text().await.unwrap();
    for code in ["max_steps", "made-up-1", "made-up-2\"}\n"] {
        server
            .post("/agents/bad/send-message")
            .json(&input(code))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
    }
    let text = metrics(&server).await;
    let ended = |agent: &str, outcome: &str, code: &str| {
        value(
            &text,
            &format!("agui_runs_total{{agent=\"{agent}\",outcome=\"{outcome}\",code=\"{code}\"}}"),
        )
    };
    assert_eq!(ended("echo", "success", ""), 1.0, "{text}");
    assert_eq!(
        (ended("bad", "failed", "max_steps"), ended("bad", "failed", "other")),
        (1.0, 2.0),
        "{text}"
    );
    assert_eq!(value(&text, "agui_guard_repairs_total{agent=\"bad\"}"), 3.0, "{text}");
    for name in ["run_duration_seconds", "run_first_event_seconds", "run_first_token_seconds"] {
        assert_eq!(
            value(&text, &format!("agui_{name}_count{{agent=\"echo\"}}")),
            1.0,
            "{name}: {text}"
        );
    }
    assert_eq!(
        value(&text, "agui_run_first_token_seconds_count{agent=\"bad\"}"),
        0.0,
        "a run without tokens has none"
    );
    assert!(!text.contains("made-up"), "{text}");
}

#[tokio::test]
async fn the_names_of_clients_make_no_series() {
    let server = Running::start(server().agent("echo", Echo)).await;
    // The background tasks of the store, and broken connections, are no names of clients.
    let other = ["#", "agui_store_", "agui_retention_", "agui_http_broken_"];
    let series = |text: &str| {
        text.lines().filter(|line| !other.iter().any(|start| line.starts_with(start))).count()
    };
    let attack = async |from: usize| {
        for n in from..from + 40 {
            let mut run = input("Hi");
            (run["threadId"], run["runId"]) =
                (format!("thread-{n}").into(), format!("run-{n}").into());
            run["tools"] =
                json!([{ "name": format!("tool-{n}"), "description": "", "parameters": {} }]);
            run["forwardedProps"] = json!({ "model": format!("model-{n}") });
            server.run(&run).await.text().await.unwrap();
            let unknown = format!("/agents/agent-{n}/send-message");
            server.post(&unknown).json(&run).send().await.unwrap();
            server.client.get(server.url(&format!("/path-{n}"))).send().await.unwrap();
        }
        metrics(&server).await
    };
    let before = attack(0).await;
    let after = attack(1000).await;
    assert_eq!(
        value(&after, "agui_runs_total{agent=\"echo\",outcome=\"success\",code=\"\"}"),
        80.0
    );
    assert_eq!(
        value(&after, "agui_http_refusals_total{status=\"404\",code=\"unknown_agent\"}"),
        80.0,
        "{after}"
    );
    assert_eq!(value(&after, "agui_http_refusals_total{status=\"404\",code=\"not_found\"}"), 80.0);
    assert_eq!(series(&before), series(&after), "{after}");
    for made_up in ["thread-", "run-", "tool-", "model-", "agent-", "path-"] {
        assert!(!after.contains(&format!("\"{made_up}")), "{made_up}: {after}");
    }
}

#[tokio::test]
async fn runs_that_wait_or_are_detached_and_their_followers_are_shown() {
    let (agent, _) = silent();
    let server = Running::start(server().agent("silent", agent)).await;
    let mut first = input("Hi");
    first["forwardedProps"] = json!({ "onDisconnect": "continue" });
    let mut stream = server.run(&first).await;
    stream.chunk().await.unwrap();
    let mut second = first.clone();
    (second["runId"], second["forwardedProps"]) = ("second".into(), json!({}));
    second["messages"][0]["id"] = "m2".into();
    let queued = server.raw_run(&second).await;
    eventually_async("the second run waits for the first one", async || {
        let text = metrics(&server).await;
        let now = |name: &str| value(&text, &format!("agui_{name}"));
        (now("runs_active"), now("runs_queued"), now("runs_detached"), now("followers"))
            == (1.0, 1.0, 1.0, 1.0)
    })
    .await;
    drop((stream, queued));
    eventually_async("the second run has left the queue", async || {
        value(&metrics(&server).await, "agui_runs_queued") == 0.0
    })
    .await;
    let cancel = format!("/threads/{}/runs/r/cancel", first["threadId"].as_str().unwrap());
    server.post(&cancel).json(&json!({})).send().await.unwrap();
    eventually_async("nothing is left", async || {
        let text = metrics(&server).await;
        ["runs_active", "runs_queued", "runs_detached", "followers", "store_queue_depth"]
            .iter()
            .all(|name| value(&text, &format!("agui_{name}")) == 0.0)
    })
    .await;
    let text = metrics(&server).await;
    assert_eq!(
        value(&text, "agui_runs_total{agent=\"silent\",outcome=\"cancelled\",code=\"\"}"),
        1.0,
        "{text}"
    );
    for name in ["store_batch_runs_count", "store_batch_events_count", "follower_lag_events_count"]
    {
        assert!(value(&text, &format!("agui_{name}")) >= 1.0, "{name}: {text}");
    }
}

#[tokio::test]
async fn connections_and_clients_that_do_not_read_are_counted() {
    let (agent, ..) = endless();
    let stall_timeout = Duration::from_secs(3);
    let server = server()
        .agent("endless", agent)
        .connections(Connections { stall_timeout, ..Connections::default() });
    let server = Running::start(server).await;
    let mut stalled = server.raw_run(&input("Hi")).await;
    read_until(&mut stalled, |text| text.contains("TEXT_MESSAGE_START")).await;
    let open = |text: &str| value(text, "agui_http_connections");
    assert!(open(&metrics(&server).await) >= 2.0, "the stalled one, and the one that asks");
    eventually_async("the client that does not read is disconnected", async || {
        value(&metrics(&server).await, "agui_http_broken_connections_total{reason=\"stalled\"}")
            == 1.0
    })
    .await;
    eventually_async("its connection is closed", async || open(&metrics(&server).await) <= 1.0)
        .await;
}
