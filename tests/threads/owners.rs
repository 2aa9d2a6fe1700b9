//! A thread belongs to a principal. The same id of two principals is two threads that share nothing.

use std::sync::Arc;

use agui_server::{
    Server,
    agent::{EventStream, RunContext, agent_fn, builtin::Echo},
    auth::ApiKey,
    options::{ConcurrentRuns, MetricsOptions, ThreadOptions},
    protocol::RunAgentInput,
    store::MemoryStore,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    support::{
        poll::poll_until,
        running::{Running, events},
    },
    threads::{ask, ask_detached, changed_options, puppet, refusal, said},
};

const ANN: &str = "a-key";
const BOB: &str = "b-key";

async fn start(server: Server) -> Running {
    let keys = [ApiKey::from_secret("ann", ANN), ApiKey::from_secret("bob", BOB)];
    Running::start(server.api_keys(keys)).await
}

impl Running {
    async fn request(&self, key: &str, method: Method, path: &str) -> reqwest::Response {
        self.client.request(method, self.url(path)).bearer_auth(key).send().await.unwrap()
    }

    async fn run_by(&self, key: &str, input: &Value) -> reqwest::Response {
        self.post("/send-message").bearer_auth(key).json(input).send().await.unwrap()
    }

    async fn thread_of(&self, key: &str, thread: &str) -> Value {
        self.request(key, Method::GET, &format!("/threads/{thread}")).await.json().await.unwrap()
    }
}

#[tokio::test]
async fn the_same_id_of_two_principals_is_two_threads() {
    let server = start(Server::new().agent("echo", Echo)).await;
    assert_eq!(server.run_by(ANN, &ask("t", "r", "m", "of ann")).await.status(), 200);
    for (method, path) in [
        (Method::GET, "/threads/t"),
        (Method::DELETE, "/threads/t"),
        (Method::GET, "/threads/t/messages"),
        (Method::GET, "/threads/t/export"),
        (Method::POST, "/threads/t/fork"),
        (Method::GET, "/threads/t/runs/r/events"),
        (Method::GET, "/threads/t/runs/r/recording"),
        (Method::POST, "/threads/t/runs/r/cancel"),
    ] {
        let foreign = server.request(BOB, method.clone(), path).await;
        let missing = server
            .request(BOB, method, &path.replace("/t", "/none").replace("/nonehreads", "/threads"))
            .await;
        assert_eq!(foreign.status(), 404, "{path}");
        assert_eq!(foreign.text().await.unwrap(), missing.text().await.unwrap(), "{path}");
    }
    let connected =
        server.request(BOB, Method::POST, "/threads/t/connect").await.text().await.unwrap();
    assert_eq!(events(&connected)[1]["messages"], json!([]));
    let hydrated: Value =
        server.request(BOB, Method::GET, "/send-message?threadId=t").await.json().await.unwrap();
    assert_eq!(hydrated["messages"], json!([]));
    assert_eq!(server.request(BOB, Method::GET, "/send-message?runId=r").await.status(), 404);

    assert_eq!(server.run_by(BOB, &ask("t", "r", "m", "of bob")).await.status(), 200);
    assert_eq!(said(&server.thread_of(ANN, "t").await), ["user: of ann", "assistant: of ann"]);
    assert_eq!(said(&server.thread_of(BOB, "t").await), ["user: of bob", "assistant: of bob"]);
    for key in [ANN, BOB] {
        let list: Value = server.request(key, Method::GET, "/threads").await.json().await.unwrap();
        assert_eq!(list["threads"].as_array().unwrap().len(), 1, "{list}");
    }
    assert_eq!(server.request(BOB, Method::DELETE, "/threads/t").await.status(), 204);
    assert_eq!(said(&server.thread_of(ANN, "t").await).len(), 2);
}

#[tokio::test]
async fn a_change_of_authentication_shows_no_threads_of_others() {
    let store = Arc::new(MemoryStore::new());
    let with_keys = start(Server::new().agent("echo", Echo).store(store.clone())).await;
    with_keys.run_by(ANN, &ask("t", "r", "m", "of ann")).await.text().await.unwrap();
    let without = Running::start(Server::new().agent("echo", Echo).store(store)).await;
    assert_eq!(without.get("/threads/t").await.status(), 404);
    without.events(&ask("t", "r", "m", "of all")).await;
    assert_eq!(said(&without.thread("t").await), ["user: of all", "assistant: of all"]);
    assert_eq!(said(&with_keys.thread_of(ANN, "t").await), ["user: of ann", "assistant: of ann"]);
}

#[tokio::test]
async fn the_runs_of_one_principal_neither_delay_nor_cancel_those_of_another() {
    for concurrent_runs in
        [ConcurrentRuns::Queue, ConcurrentRuns::Reject, ConcurrentRuns::Supersede]
    {
        let (slow, strings, _) = puppet();
        let agent = move |input: RunAgentInput, cx: RunContext| match input.run_id.as_str() {
            "slow" => slow(input, cx),
            _ => agui_server::agent::events([]),
        };
        let options = changed_options(|options| {
            options.concurrent_runs = concurrent_runs;
            options.max_queued = 0;
        });
        let server =
            start(Server::new().agent("slow or quick", agent).thread_options(options)).await;
        let mut of_ann = server.run_by(ANN, &ask("t", "slow", "m", "go")).await;
        of_ann.chunk().await.unwrap();
        for run in ["r1", "r2"] {
            let of_bob = server.run_by(BOB, &ask("t", run, run, "go")).await;
            assert_eq!(of_bob.status(), 200, "{concurrent_runs:?}");
            assert!(of_bob.text().await.unwrap().contains("success"), "{concurrent_runs:?}");
        }
        strings.send("end".to_owned()).unwrap();
        assert!(of_ann.text().await.unwrap().contains("success"), "{concurrent_runs:?}");
    }
}

#[tokio::test]
async fn a_detached_run_is_followed_and_cancelled_by_its_owner_alone() {
    let (agent, _strings, dropped) = puppet();
    let server = start(Server::new().agent("puppet", agent)).await;
    let mut response = server.run_by(ANN, &ask_detached("t", "r")).await;
    response.chunk().await.unwrap();
    assert_eq!(
        refusal(server.request(BOB, Method::POST, "/threads/t/runs/r/cancel").await).await.0,
        404
    );
    assert_eq!(
        refusal(server.request(BOB, Method::GET, "/threads/t/runs/r/events").await).await.0,
        404
    );
    for query in ["runId=r", "runId=r&threadId=t", "runId=r&offset=1"] {
        assert_eq!(
            server.request(BOB, Method::GET, &format!("/send-message?{query}")).await.status(),
            404,
            "{query}"
        );
    }
    let hydrated: Value =
        server.request(BOB, Method::GET, "/send-message?threadId=t").await.json().await.unwrap();
    assert_eq!((&hydrated["messages"], &hydrated["activeRun"]), (&json!([]), &Value::Null));
    let resumed = server
        .post("/send-message")
        .bearer_auth(BOB)
        .header("last-event-id", "0")
        .json(&ask_detached("t", "r"));
    assert_eq!(refusal(resumed.send().await.unwrap()).await, (404, "unknown_thread".to_owned()));
    // The same request by another principal is another run.
    let mut of_bob = server.run_by(BOB, &ask_detached("t", "r")).await;
    of_bob.chunk().await.unwrap();
    assert_eq!(server.request(BOB, Method::POST, "/threads/t/runs/r/cancel").await.status(), 202);
    let rest = of_bob.text().await.unwrap();
    assert!(rest.contains("cancelled"), "{rest}");
    assert_eq!(dropped.get(), 1);
    assert_eq!(server.request(ANN, Method::POST, "/threads/t/runs/r/cancel").await.status(), 202);
    assert!(response.text().await.unwrap().contains("cancelled"));
}

#[tokio::test]
async fn the_new_threads_of_one_principal_evict_none_of_another() {
    let mut options = ThreadOptions::default();
    options.retention.owner_threads = Some(3);
    options.retention.threads = Some(4);
    let quick = |_: RunAgentInput, _: RunContext| -> EventStream { agui_server::agent::events([]) };
    let server = start(Server::new().agent("quick", quick).thread_options(options)).await;
    server.run_by(ANN, &ask("kept", "r", "m", "go")).await.text().await.unwrap();
    for n in 0..10 {
        server.run_by(BOB, &ask(&format!("t{n}"), "r", "m", "go")).await.text().await.unwrap();
    }
    let list = poll_until("at most three threads are kept", async || {
        let list: Value = server.request(BOB, Method::GET, "/threads").await.json().await.unwrap();
        (list["threads"].as_array().unwrap().len() <= 3).then_some(list)
    })
    .await;
    assert_eq!(list["threads"][0]["threadId"], "t9", "the newest threads are kept");
    assert_eq!(server.thread_of(ANN, "kept").await["threadId"], "kept");
}

#[tokio::test]
async fn stored_bytes_are_limited_for_one_principal_and_in_all() {
    let mut options = ThreadOptions::default();
    (options.retention.owner_bytes, options.retention.bytes) = (Some(3000), Some(5000));
    let quick = |_: RunAgentInput, _: RunContext| -> EventStream { agui_server::agent::events([]) };
    let server = start(Server::new().agent("quick", quick).thread_options(options)).await;
    let large = |thread: &str| ask(thread, "r", "m", &"x".repeat(2500));
    let status = async |token, thread: &str| {
        let response = server
            .post("/send-message")
            .bearer_auth(token)
            .json(&large(thread))
            .send()
            .await
            .unwrap();
        let status = response.status();
        let text = response.text().await.unwrap();
        let code = serde_json::from_str::<Value>(&text)
            .map_or(Value::Null, |body| body["error"]["code"].clone());
        (status.as_u16(), code)
    };
    assert_eq!((status(ANN, "a").await.0, status(ANN, "b").await.0), (200, 200));
    assert_eq!(status(ANN, "c").await, (413, json!("too_many_stored_bytes")));
    let fork = server.request(ANN, Method::POST, "/threads/a/fork").await;
    assert_eq!(refusal(fork).await, (413, "too_many_stored_bytes".to_owned()));
    assert_eq!(status(BOB, "a").await, (507, json!("storage_full")));
    assert_eq!(server.request(ANN, Method::DELETE, "/threads/a").await.status(), 204);
    assert_eq!((status(BOB, "a").await.0, status(ANN, "b").await.0), (200, 507));
}

#[tokio::test]
async fn a_caller_deletes_all_of_its_threads_and_no_others() {
    let (agent, _said, _) = puppet();
    let server = start(Server::new().agent("echo", Echo).agent("puppet", agent)).await;
    for thread in 0..120 {
        server
            .run_by(ANN, &ask(&format!("t{thread}"), "r", "m", "of ann"))
            .await
            .text()
            .await
            .unwrap();
    }
    server.run_by(BOB, &ask("t0", "r", "m", "of bob")).await.text().await.unwrap();
    let archive = server
        .client
        .patch(server.url("/threads/t1"))
        .bearer_auth(ANN)
        .json(&json!({ "archived": true }));
    assert_eq!(archive.send().await.unwrap().status(), 200);
    let running = server
        .post("/agents/puppet/send-message")
        .bearer_auth(ANN)
        .json(&ask("running", "r", "m", "go"));
    let running = running.send().await.unwrap();
    let deleted = server.request(ANN, Method::DELETE, "/threads").await;
    assert_eq!(
        (deleted.status().as_u16(), deleted.json::<Value>().await.unwrap()),
        (200, json!({ "deleted": 121 }))
    );
    let end = events(&running.text().await.unwrap());
    assert_eq!(end.last().unwrap()["code"], "thread_deleted", "{end:?}");
    let left = async |key| -> Value {
        server.request(key, Method::GET, "/threads?archived=all").await.json().await.unwrap()
    };
    assert_eq!(left(ANN).await["threads"], json!([]));
    assert_eq!(left(BOB).await["threads"][0]["threadId"], "t0");
    assert_eq!(
        server.request(ANN, Method::DELETE, "/threads").await.json::<Value>().await.unwrap()["deleted"],
        0
    );
}

#[tokio::test]
async fn the_titles_of_one_principal_leave_room_for_those_of_another() {
    let options = changed_options(|options| options.title_agent = Some("titles".to_owned()));
    let server =
        Server::new().agent("echo", Echo).agent("titles", agent_fn(|_, _| std::future::pending()));
    let server =
        start(server.thread_options(options).metrics(MetricsOptions::on_main_listener())).await;
    for (key, thread, titling) in [(ANN, "t", 1), (ANN, "u", 2), (ANN, "v", 2), (BOB, "t", 3)] {
        server.run_by(key, &ask(thread, "r", "m", "hello there")).await.text().await.unwrap();
        let metrics = server.request(key, Method::GET, "/metrics").await.text().await.unwrap();
        let active = metrics.lines().find(|line| line.starts_with("agui_title_runs_active "));
        assert_eq!(active, Some(&*format!("agui_title_runs_active {titling}")), "{key} {thread}");
    }
}
