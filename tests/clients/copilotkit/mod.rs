//! Requests to the CopilotKit routes that CopilotKit's own client does not send; `tests/js/copilotkit.test.mjs` tests the
//! server with that client.
mod hostile;
mod settings;
mod socket;

use crate::support::running as support;

use agui_server::{
    Server,
    agent::builtin::Echo,
    agent::{EventStream, RunContext, emit::TextMessage, event_stream},
    auth::ApiKey,
    protocol::RunAgentInput,
};
use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use support::Running;

/// An agent that begins a message and never ends.
fn endless(_: RunAgentInput, _: RunContext) -> EventStream {
    event_stream(async_stream::try_stream! {
        let message = TextMessage::new();
        yield message.start();
        yield message.delta("and so on");
        std::future::pending::<()>().await;
    })
}

fn two_agents() -> Server {
    Server::new().agent("echo", Echo).agent("endless", endless)
}

/// Starts a server with the keys `ada` and `eve`.
async fn with_two_keys() -> Running {
    Running::start(
        two_agents().api_keys(["ada", "eve"].map(|name| ApiKey::from_secret(name, name))),
    )
    .await
}

/// The input that the client sends.
fn ask(thread: &str, run: &str) -> Value {
    json!({
        "threadId": thread, "runId": run, "state": {}, "tools": [], "context": [], "forwardedProps": {},
        "messages": [{ "id": "m", "role": "user", "content": "hi" }]
    })
}

impl Running {
    fn request_copilotkit(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(&format!("/copilotkit{path}")))
    }

    /// Posts with a key.
    async fn post_copilotkit(&self, key: &str, path: &str, body: &Value) -> Response {
        let request = self
            .request_copilotkit(Method::POST, path)
            .bearer_auth(key)
            .header("accept", "text/event-stream");
        request.json(body).send().await.unwrap()
    }

    async fn post_envelope(&self, key: &str, envelope: &Value) -> Response {
        self.post_copilotkit(key, "", envelope).await
    }

    /// Starts a run that never ends by itself, and disconnects.
    async fn begin(&self, key: &str, thread: &str, run: &str) {
        let mut response = self.post_copilotkit(key, "/agent/endless/run", &ask(thread, run)).await;
        assert_eq!(response.status(), 200);
        while !String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap())
            .contains("and so on")
        {}
    }

    /// Returns the statuses of a thread's runs, the newest first.
    async fn statuses(&self, key: &str, thread: &str) -> Vec<String> {
        let request = self.client.get(self.url(&format!("/threads/{thread}"))).bearer_auth(key);
        let thread: Value = request.send().await.unwrap().json().await.unwrap();
        thread["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["status"].as_str().unwrap().to_owned())
            .collect()
    }
}

async fn body(response: Response) -> Value {
    response.json().await.unwrap()
}

/// Returns the status and the code of a refusal.
async fn refusal(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    (status, body(response).await["error"]["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_stop_ends_only_the_run_that_it_names() {
    let server = with_two_keys().await;
    server.begin("ada", "t", "r").await;
    let stop = "/agent/endless/stop/t";
    assert_eq!(
        body(server.post_copilotkit("ada", stop, &json!({ "runId": "another" })).await).await["stopped"],
        false
    );
    assert_eq!(server.statuses("ada", "t").await, ["running"]);
    assert_eq!(
        body(server.post_copilotkit("ada", stop, &json!({ "runId": "r" })).await).await["stopped"],
        true
    );
    let rest = server
        .post_copilotkit("ada", "/agent/endless/connect", &ask("t", "c"))
        .await
        .text()
        .await
        .unwrap();
    assert!(rest.contains("MESSAGES_SNAPSHOT") || rest.contains("RUN_FINISHED"), "{rest}");
    assert_eq!(server.statuses("ada", "t").await, ["cancelled"]);
    let none =
        server.request_copilotkit(Method::POST, stop).bearer_auth("ada").send().await.unwrap();
    assert_eq!(body(none).await["stopped"], false, "the run has ended; a stop needs no body");
    assert_eq!(
        body(server.post_copilotkit("ada", "/agent/endless/stop/new", &json!({})).await).await["stopped"],
        false
    );
}

#[tokio::test]
async fn a_stop_waits_for_a_run_that_begins_after_it() {
    let server = with_two_keys().await;
    let begin = async {
        // Lets the stop arrive first; without the wait, the test passes too, but tests less.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        server
            .post_copilotkit("ada", "/agent/endless/run", &ask("t", "r"))
            .await
            .text()
            .await
            .unwrap()
    };
    let input = json!({ "runId": "r" });
    let (stopped, events) =
        tokio::join!(server.post_copilotkit("ada", "/agent/endless/stop/t", &input), begin);
    assert_eq!(body(stopped).await["stopped"], true);
    assert_eq!(support::events(&events).last().unwrap()["type"], "RUN_FINISHED");
    assert_eq!(server.statuses("ada", "t").await, ["cancelled"]);
}

#[tokio::test]
async fn a_list_has_only_the_threads_of_its_agent_and_continues_at_its_cursor() {
    let server = with_two_keys().await;
    for (thread, agent) in [("a", "echo"), ("b", "endless"), ("c", "echo"), ("d", "echo")] {
        match agent {
            "echo" => drop(
                server
                    .post_copilotkit("ada", "/agent/echo/run", &ask(thread, "r"))
                    .await
                    .text()
                    .await
                    .unwrap(),
            ),
            _ => server.begin("ada", thread, "r").await,
        }
    }
    let list = async |key: &str, query: &str| {
        let list = body(
            server.request_copilotkit(Method::GET, query).bearer_auth(key).send().await.unwrap(),
        )
        .await;
        let ids = list["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|thread| thread["id"].as_str().unwrap().to_owned());
        (ids.collect::<Vec<_>>(), list["nextCursor"].as_str().map(str::to_owned), list)
    };
    let (first, next, _) = list("ada", "/threads?agentId=echo&limit=2").await;
    assert_eq!(first, ["d", "c"]);
    let (rest, end, _) =
        list("ada", &format!("/threads?agentId=echo&limit=2&cursor={}", next.unwrap())).await;
    assert_eq!((rest, end), (vec!["a".to_owned()], None));
    let (endless, _, whole) = list("ada", "/threads?agentId=endless").await;
    assert_eq!(endless, ["b"]);
    let thread = &whole["threads"][0];
    assert_eq!(
        [&thread["agentId"], &thread["name"], &thread["archived"]],
        [&json!("endless"), &json!("hi"), &json!(false)]
    );
    let (default, _, whole) = list("ada", "/threads?agentId=default&includeArchived=true").await;
    assert_eq!((default.len(), &whole["threads"][0]["agentId"]), (3, &json!("default")));
    assert_eq!(list("ada", "/threads").await.0.len(), 4);
    assert_eq!(list("eve", "/threads?agentId=echo").await.0.len(), 0);
}

#[tokio::test]
async fn an_envelope_gets_the_response_of_the_request_in_it() {
    let server = with_two_keys().await;
    let info = server.post_envelope("ada", &json!({ "method": "info" })).await;
    let plain =
        server.request_copilotkit(Method::GET, "/info").bearer_auth("ada").send().await.unwrap();
    assert_eq!(body(info).await, body(plain).await);
    // An id can be any text.
    for id in ["t", "a/b c?d#e%2f", "你好", "..", "."] {
        let run =
            json!({ "method": "agent/run", "params": { "agentId": "echo" }, "body": ask(id, "r") });
        let response = server.post_envelope("ada", &run).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream", "{id}");
        let events = support::events(&response.text().await.unwrap());
        assert_eq!(
            [&events[0]["threadId"], &events.last().unwrap()["type"]],
            [&json!(id), &json!("RUN_FINISHED")]
        );
        let stop = json!({ "method": "agent/stop", "params": { "agentId": "echo", "threadId": id }, "body": {} });
        assert_eq!(body(server.post_envelope("ada", &stop).await).await["stopped"], false, "{id}");
    }
    let delete = json!({ "method": "resource/request", "params": { "path": "/threads/t", "httpMethod": "DELETE" } });
    assert_eq!(
        body(server.post_envelope("ada", &delete).await).await,
        json!({ "threadId": "t", "deleted": true })
    );
    assert_eq!(
        refusal(server.post_envelope("ada", &delete).await).await,
        (404, "unknown_thread".to_owned())
    );
    let slash = server.post_copilotkit("ada", "/", &json!({ "method": "info" })).await;
    assert_eq!(slash.status(), 200, "a runtimeUrl may end with a slash");
}
