//! MCP Apps: the page of a tool is shown after the result, and the page's requests are answered beside the thread.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use agui_server::{
    Server,
    auth::ApiKey,
    llm::{BlockStart, LlmAgent, Model, ModelEvent, ModelRequest, ModelStream, StopReason},
    tools::{ApprovalRule, Toolbox, mcp::McpServer, mcp::McpServerOptions},
};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use crate::{
    support::{
        conversation::changed_options,
        running::{Running, events, read_until, reopened},
    },
    tools::support::{McpFixture, fake_script},
};

/// Calls the tool `show` once, then ends.
#[derive(Clone, Default)]
struct Shows(Arc<AtomicUsize>);

impl Model for Shows {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "m"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        let mut events = vec![Ok(ModelEvent::Stop(StopReason::Done))];
        if self.0.fetch_add(1, Ordering::Relaxed) == 0 {
            let block = BlockStart::Call { id: "c".into(), name: "show".to_owned() };
            let text = r#"{"city":"Oslo"}"#.to_owned();
            events.insert(0, Ok(ModelEvent::Start { index: 0, block }));
            events.insert(1, Ok(ModelEvent::Delta { index: 0, text }));
            events.insert(2, Ok(ModelEvent::End { index: 0, artefact: None }));
        }
        stream::iter(events).boxed()
    }
}

struct Apps {
    mcp: McpFixture,
    folder: tempfile::TempDir,
    server: Running,
    model: Shows,
}

impl Apps {
    async fn start(change: impl FnOnce(&mut McpServerOptions)) -> Self {
        Self::start_with(change, |mcp| Toolbox::new().source(mcp.clone())).await
    }

    async fn start_with(
        change: impl FnOnce(&mut McpServerOptions),
        tools: impl FnOnce(&Arc<McpServer>) -> Toolbox,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("record");
        let mcp =
            McpFixture::node(&fake_script(), &["apps", record.to_str().unwrap()], |options| {
                options.apps = true;
                change(options);
            });
        let (mcp, model) = (mcp.ready().await, Shows::default());
        let agent = LlmAgent::new(model.clone()).tools(tools(&mcp.server));
        let server = Running::start(Server::new().agent("a", agent)).await;
        Self { mcp, folder, server, model }
    }

    fn received(&self, method: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("record")).unwrap();
        let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.filter(|message| message["method"] == method).collect()
    }

    async fn events(&self, input: &Value) -> Vec<Value> {
        let response = self.server.run(input).await;
        assert_eq!(response.status(), 200);
        events(&response.text().await.unwrap())
    }

    /// Returns the result of a request of a page.
    async fn request(&self, request: Value) -> Value {
        let input = json!({
            "threadId": "t", "runId": "p", "messages": [{ "id": "m", "role": "user", "content": "hi" }],
            "forwardedProps": { "__proxiedMCPRequest": request },
        });
        let events = self.events(&input).await;
        let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["RUN_STARTED", "RUN_FINISHED"]);
        events[1]["result"].clone()
    }

    async fn forward(&self, method: &str, params: Value) -> Value {
        self.request(
            json!({ "serverHash": "test", "serverId": "test", "method": method, "params": params }),
        )
        .await
    }
}

fn refused() -> Value {
    json!({ "error": "MCP request failed" })
}

#[tokio::test]
async fn the_page_of_a_tool_is_shown_after_the_result() {
    let apps = Apps::start(|_| {}).await;
    let asked = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "hi" }] });
    let events = apps.events(&asked).await;
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind).unwrap();
    let (result, page) = (at("TOOL_CALL_RESULT"), at("ACTIVITY_SNAPSHOT"));
    assert_eq!(page, result + 1);
    assert_eq!(events[result]["content"], "sunny");
    assert_eq!(events[page]["activityType"], "mcp-apps");
    let shown = json!({
        "result": { "content": [{ "type": "text", "text": "sunny" }], "structuredContent": { "degrees": 20 } },
        "resourceUri": "ui://weather", "serverHash": "test", "serverId": "test", "toolInput": { "city": "Oslo" },
        "toolCallId": "c",
    });
    assert_eq!(events[page]["content"], shown);
    let capability = &apps.received("initialize")[0]["params"]["capabilities"]["extensions"];
    assert_eq!(
        capability["io.modelcontextprotocol/ui"],
        json!({ "mimeTypes": ["text/html;profile=mcp-app"] })
    );
}

#[tokio::test]
async fn a_page_in_sqlite_is_there_after_a_restart_for_its_principal_alone() {
    let Apps { mcp, folder, model, .. } = Apps::start(|_| {}).await;
    let start = async || {
        let keys =
            [ApiKey::from_secret("ada", "open sesame"), ApiKey::from_secret("eve", "let me in")];
        let agent = LlmAgent::new(model.clone()).tools(Toolbox::new().source(mcp.server.clone()));
        Running::start(
            Server::new().agent("a", agent).api_keys(keys).store(reopened(folder.path()).await),
        )
        .await
    };
    let server = start().await;
    let asked = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "hi" }] });
    let response =
        server.post("/send-message").bearer_auth("open sesame").json(&asked).send().await.unwrap();
    let events = events(&response.text().await.unwrap());
    drop(server);
    let server = start().await;
    let read = async |secret: &str| {
        server
            .client
            .get(server.url("/threads/t/messages"))
            .bearer_auth(secret)
            .send()
            .await
            .unwrap()
    };
    let thread: Value = read("open sesame").await.json().await.unwrap();
    let mut kept = thread["messages"].as_array().unwrap().iter();
    let page = kept.find(|message| message["activityType"] == "mcp-apps").unwrap();
    let shown = events.iter().find(|event| event["type"] == "ACTIVITY_SNAPSHOT").unwrap();
    assert_eq!(page["content"], shown["content"]);
    assert_eq!(read("let me in").await.status(), 404);
}

#[tokio::test]
async fn a_tool_that_is_only_for_pages_is_not_offered_to_the_model() {
    for apps in [true, false] {
        let apps = Apps::start(|options| options.apps = apps).await;
        assert_eq!(apps.mcp.names(), ["show", "private", "large"]);
    }
}

#[tokio::test]
async fn a_request_of_a_page_asks_no_model_and_leaves_no_run() {
    let apps = Apps::start(|options| {
        options.approval_of =
            [("delete".to_owned(), ApprovalRule::Always.into())].into_iter().collect();
    })
    .await;
    let html = apps.forward("resources/read", json!({ "uri": "ui://weather" })).await;
    assert_eq!(html["contents"][0]["text"], "<p>Hello</p>");
    let moved =
        apps.forward("tools/call", json!({ "name": "move", "arguments": { "to": 1 } })).await;
    assert_eq!(moved["content"][0]["text"], r#"{"to":1}"#);
    assert_eq!(apps.forward("ping", json!({})).await, json!({}));
    assert_eq!(apps.forward("notifications/message", json!({})).await, json!({ "success": true }));
    assert_eq!(apps.request(json!({ "serverHash": "test", "method": "ping" })).await, json!({}));
    assert_eq!(apps.model.0.load(Ordering::Relaxed), 0);
    let thread = apps.server.client.get(apps.server.url("/threads/t")).send().await.unwrap();
    assert_eq!(thread.status(), 404);
}

#[tokio::test]
async fn a_page_is_refused_what_is_not_its_own_or_too_large() {
    let apps = Apps::start(|options| {
        options.approval_of =
            [("delete".to_owned(), ApprovalRule::Always.into())].into_iter().collect();
    })
    .await;
    for (method, params) in [
        ("resources/read", json!({ "uri": "file:///etc/passwd" })),
        ("resources/read", json!({ "uri": "ui://large" })),
        ("resources/read", json!({})),
        ("resources/list", json!({})),
        ("tools/list", json!({})),
        ("prompts/get", json!({ "name": "p" })),
        ("ui/message", json!({})),
        // A tool for the model alone, a tool with approval, a resource that is too large, an
        // unknown method.
        ("tools/call", json!({ "name": "private" })),
        ("tools/call", json!({ "name": "delete" })),
        ("tools/call", json!({ "name": "large" })),
        ("tools/call", json!({ "name": "nothing" })),
    ] {
        assert_eq!(apps.forward(method, params.clone()).await, refused(), "{method} {params}");
    }
    for request in [
        json!({ "serverHash": "other", "method": "ping" }),
        json!({ "serverHash": "test", "serverId": "other", "method": "ping" }),
        json!({ "method": "ping" }),
        json!({ "serverHash": "test" }),
        json!({ "serverHash": "test", "method": "ping", "params": [] }),
        json!("ping"),
        json!(false),
    ] {
        assert_eq!(apps.request(request.clone()).await, refused(), "{request}");
    }
    let called = apps.received("tools/call");
    assert_eq!(called.len(), 1, "{called:?}");
    assert_eq!(called[0]["params"]["name"], "large");
    assert_eq!(apps.model.0.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn without_the_option_nothing_is_shown_and_all_requests_are_refused() {
    let apps = Apps::start(|options| options.apps = false).await;
    assert_eq!(apps.forward("ping", json!({})).await, refused());
    let asked = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "hi" }] });
    let events = apps.events(&asked).await;
    assert!(!events.iter().any(|event| event["type"] == "ACTIVITY_SNAPSHOT"), "{events:?}");
    let extensions = &apps.received("initialize")[0]["params"]["capabilities"]["extensions"];
    assert_eq!(extensions["io.modelcontextprotocol/ui"], Value::Null);
}

#[tokio::test]
async fn pages_of_an_agent_that_lists_one_tool_call_that_tool_alone() {
    let apps = Apps::start_with(
        |_| {},
        |mcp| {
            Toolbox::new()
                .source(McpServer::single_tool(mcp, "show"))
                .source(McpServer::single_tool(mcp, "move"))
        },
    )
    .await;
    let call = async |name: &str| {
        apps.forward("tools/call", json!({ "name": name, "arguments": {} })).await
    };
    assert_eq!(call("move").await["content"][0]["text"], "{}");
    assert_eq!(call("show").await["content"][0]["text"], "sunny");
    assert_eq!(call("delete").await, refused());
    assert_eq!(
        apps.forward("resources/read", json!({ "uri": "ui://weather" })).await["contents"][0]["uri"],
        "ui://weather"
    );
}

/// A model that never answers.
struct Waits;

impl Model for Waits {
    fn provider(&self) -> &str {
        "test"
    }

    fn name(&self) -> &str {
        "m"
    }

    fn stream(&self, _: ModelRequest) -> ModelStream {
        stream::pending().boxed()
    }
}

#[tokio::test]
async fn a_request_of_a_page_does_not_wait_for_its_thread_and_counts_for_the_limit_of_runs() {
    let Apps { mcp, folder, model, .. } = Apps::start(|_| {}).await;
    for (runs, is_answered) in [(2, true), (1, false)] {
        let agent = LlmAgent::new(Waits).tools(Toolbox::new().source(mcp.server.clone()));
        let server = Running::start(
            Server::new()
                .agent("a", agent)
                .thread_options(changed_options(|options| options.runs.max_concurrent = runs)),
        )
        .await;
        let mut input = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "hi" }] });
        let mut stream = server.raw_run(&input).await;
        read_until(&mut stream, |text| text.contains("RUN_STARTED")).await;
        let request = json!({ "serverHash": "test", "method": "ping" });
        (input["runId"], input["forwardedProps"]) =
            (json!("p"), json!({ "__proxiedMCPRequest": request }));
        let response = server.run(&input).await;
        assert_eq!(response.status(), if is_answered { 200 } else { 503 });
        let text = response.text().await.unwrap();
        assert_eq!(text.contains("RUN_FINISHED"), is_answered, "{text}");
    }
    drop((folder, model));
}
