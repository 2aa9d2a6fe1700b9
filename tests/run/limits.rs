//! Limits of threads and identifiers.

use agui_server::{Server, agent::builtin::Echo};
use serde_json::{Value, json};

use crate::{
    run::{ask, changed_options, said},
    support::running::Running,
};

#[tokio::test]
async fn a_run_that_would_make_its_thread_too_large_is_refused_and_nothing_is_lost() {
    let limits = [
        changed_options(|options| options.max_messages = 3),
        changed_options(|options| options.max_bytes = 200),
    ];
    for options in limits {
        let server =
            Running::start(Server::new().agent("echo", Echo).thread_options(options)).await;
        server.events(&ask("t", "r1", "m1", "one")).await;
        let before = server.thread("t").await;
        let mut large = ask("t", "r2", "m2", "two");
        large["messages"]
            .as_array_mut()
            .unwrap()
            .push(json!({ "id": "m3", "role": "user", "content": "three" }));
        assert_eq!(server.refused(&large).await, (413, "thread_too_large".to_owned()));
        assert_eq!(server.thread("t").await, before, "as it was");
        // Other threads are not concerned.
        server.events(&ask("other", "r", "m", "hi")).await;
    }
}

#[tokio::test]
async fn a_large_first_request_makes_no_thread() {
    let options = changed_options(|options| options.max_bytes = 1000);
    let server = Running::start(Server::new().agent("echo", Echo).thread_options(options)).await;
    assert_eq!(
        server.refused(&ask("t", "r", "m", &"x".repeat(2000))).await,
        (413, "thread_too_large".to_owned())
    );
    assert_eq!(server.get("/threads/t").await.status(), 404);
}

#[tokio::test]
async fn an_identifier_has_at_most_1024_bytes() {
    let (longest, too_long) = ("x".repeat(1024), "x".repeat(1025));
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let calling = |id: &str, call: &str, answered: &str| {
        json!([
            { "id": "m", "role": "user", "content": "go" },
            { "id": id, "role": "assistant", "toolCalls": [
                { "id": call, "type": "function", "function": { "name": "f", "arguments": "{}" } }
            ] },
            { "id": "m3", "role": "tool", "toolCallId": answered, "content": "done" },
        ])
    };
    let with = |path: &str, value: Value| {
        let mut input = ask("t", "r", "m", "hi");
        input[path] = value;
        input
    };
    for (input, path) in [
        (with("threadId", too_long.clone().into()), "threadId"),
        (with("runId", too_long.clone().into()), "runId"),
        (with("parentRunId", too_long.clone().into()), "parentRunId"),
        (with("messages", calling(&too_long, "c", "c")), "messages[1].id"),
        (with("messages", calling("a", &too_long, "c")), "messages[1].toolCalls[0].id"),
        (with("messages", calling("a", "c", &too_long)), "messages[2].toolCallId"),
    ] {
        let response = server.run(&input).await;
        assert_eq!(response.status(), 400, "{path}");
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"]["path"], path);
    }
    let mut input = ask(&longest, &longest, &longest, "hi");
    input["parentRunId"] = longest.clone().into();
    server.events(&input).await;
    assert_eq!(said(&server.thread(&longest).await).len(), 2);
}

#[tokio::test]
async fn a_request_of_an_mcp_app_never_reaches_an_agent_without_apps() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let mut input = ask("t", "r", "m", "hi");
    input["forwardedProps"] =
        json!({ "__proxiedMCPRequest": { "serverHash": "s", "method": "ping" } });
    let events = server.events(&input).await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[1]["result"], json!({ "error": "MCP request failed" }));
}
