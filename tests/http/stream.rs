//! The response stream: its format, its timing, and clients that disconnect or do not read.

use std::time::Duration;

use agui_server::{
    Server,
    agent::{
        EventStream, RunContext,
        builtin::Echo,
        emit::{TextMessage, ToolCallEvents},
        event_stream, events as known,
    },
    auth::ApiKey,
    options::{Connections, HttpOptions},
    protocol::RunAgentInput,
};
use futures::{SinkExt as _, StreamExt as _, channel::mpsc};
use reqwest::header;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::support::running::{
    Count, Running, endless, events, eventually, input, read_until, silent,
};

#[tokio::test]
async fn a_run_is_a_stream_of_server_sent_events_that_proxies_do_not_buffer() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    for path in ["/send-message", "/agents/echo/send-message"] {
        let response = server.post(path).json(&input("hello there")).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let header = |name: &str| response.headers()[name].to_str().unwrap();
        assert_eq!(header("content-type"), "text/event-stream");
        assert_eq!(header("cache-control"), "no-store, no-transform");
        assert_eq!(header("x-accel-buffering"), "no");
        let body = response.text().await.unwrap();
        assert!(!body.contains('\r'));
        let events = events(&body);
        let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(
            types,
            [
                "RUN_STARTED",
                "TEXT_MESSAGE_START",
                "TEXT_MESSAGE_CONTENT",
                "TEXT_MESSAGE_CONTENT",
                "TEXT_MESSAGE_END",
                "RUN_FINISHED"
            ]
        );
    }
}

const BURST_TOKENS: usize = 1000;

/// Yields tokens that another task hands over one at a time, as an HTTP client does with a model's answer.
fn hand_over(_: RunAgentInput, _: RunContext) -> EventStream {
    let (mut sender, receiver) = mpsc::channel(0);
    tokio::spawn(async move {
        let message = TextMessage::new();
        sender.send(Ok(message.start())).await.unwrap();
        for _ in 0..BURST_TOKENS {
            sender.send(Ok(message.delta("word"))).await.unwrap();
        }
    });
    event_stream(receiver)
}

#[tokio::test]
async fn a_burst_that_an_agent_gets_one_token_at_a_time_leaves_in_few_chunks() {
    let server = Running::start(Server::new().agent("model", hand_over)).await;
    let mut response = server.post("/send-message").json(&input("hi")).send().await.unwrap();
    let (mut chunks, mut body) = (0, Vec::new());
    while let Some(chunk) = response.chunk().await.unwrap() {
        chunks += 1;
        body.extend(chunk);
    }
    assert!(events(str::from_utf8(&body).unwrap()).len() >= BURST_TOKENS);
    assert!(chunks < BURST_TOKENS / 5, "{chunks} chunks");
}

#[tokio::test]
async fn an_agent_can_have_a_path_of_its_own_in_addition() {
    let second = |_: RunAgentInput, cx: RunContext| {
        known(TextMessage::whole(format!("I am {}.", cx.agent())))
    };
    let config = "default_agent = \"echo\"\n[agents.echo]\nkind = \"echo\"\npath = \"/api/echo\"";
    let agents = Server::from_toml_str(config).unwrap().agent_at("/api/shop/chat", "clerk", second);
    let server = Running::start(agents.api_keys([ApiKey::from_secret("web", "key")])).await;
    let text = async |path: &str| {
        let response =
            server.post(path).bearer_auth("key").json(&input("hi")).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let events = events(&response.text().await.unwrap());
        events.iter().filter_map(|event| event["delta"].as_str()).collect::<String>()
    };
    assert_eq!(text("/api/shop/chat").await, "I am clerk.");
    assert_eq!(text("/agents/clerk/send-message").await, "I am clerk.");
    assert_eq!(text("/api/echo").await, text("/send-message").await);
    assert_ne!(text("/send-message").await, "I am clerk.", "the first agent stays the default");

    // Authentication and CORS apply to this path, too.
    let stranger = server.post("/api/shop/chat").json(&input("hi")).send().await.unwrap();
    assert_eq!(stranger.status(), 401);
    let delete =
        server.client.delete(server.url("/api/shop/chat")).bearer_auth("key").send().await.unwrap();
    assert_eq!(delete.status(), 405);
    let page = server
        .post("/api/shop/chat")
        .bearer_auth("key")
        .header(header::ORIGIN, "http://localhost:3000");
    let response = page.json(&input("hi")).send().await.unwrap();
    assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "http://localhost:3000");
}

#[test]
#[should_panic(expected = "/send-message")]
fn an_agents_path_cannot_replace_a_route() {
    let _ = Server::new().agent_at("/send-message", "echo", Echo).into_router();
}

#[tokio::test]
async fn the_binary_encoding_is_used_only_if_it_is_named() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let proto = "application/vnd.ag-ui.event+proto";
    for (accept, expected) in [
        (Some("application/vnd.ag-ui.event+proto"), proto),
        (Some("text/event-stream, application/vnd.ag-ui.event+proto;q=0.5"), proto),
        (Some("application/vnd.ag-ui.event+proto;q=0, text/event-stream"), "text/event-stream"),
        (Some("*/*"), "text/event-stream"),
        // `tests/run/document.rs` tests the document.
        (Some("application/json"), "application/json"),
        (None, "text/event-stream"),
    ] {
        let mut request = server.post("/send-message").json(&input("hi"));
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()[header::CONTENT_TYPE], expected, "{accept:?}");
        if expected == proto {
            let body = response.bytes().await.unwrap();
            let (mut rest, mut frames) = (&body[..], 0);
            while let Some((length, after)) = rest.split_first_chunk::<4>() {
                rest = &after[u32::from_be_bytes(*length) as usize..];
                frames += 1;
            }
            assert_eq!((frames, rest.len()), (5, 0));
        }
    }
}

#[tokio::test]
async fn the_first_events_are_sent_at_once() {
    let (agent, _) = silent();
    let server = Running::start(Server::new().agent("silent", agent)).await;
    let mut body = server.run(&input("hi")).await.bytes_stream();
    let mut text = String::new();
    while !text.contains("TEXT_MESSAGE_START") {
        text.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    assert!(text.starts_with("data: {\"type\":\"RUN_STARTED\""), "{text}");
}

#[tokio::test]
async fn events_that_are_ready_are_sent_together_and_at_once() {
    let (go, gone) = tokio::sync::mpsc::unbounded_channel::<()>();
    let gate = std::sync::Mutex::new(Some(gone));
    let agent = move |_: RunAgentInput, _: RunContext| {
        let mut gate = gate.lock().unwrap().take().unwrap();
        event_stream(async_stream::try_stream! {
            let message = TextMessage::new();
            yield message.start();
            while gate.recv().await.is_some() {
                yield message.delta("one");
                yield message.delta("two");
            }
        })
    };
    let server = Running::start(Server::new().agent("gated", agent)).await;
    let mut body = server.run(&input("hi")).await.bytes_stream();
    assert!(body.next().await.unwrap().unwrap().starts_with(b"data: {\"type\":\"RUN_STARTED\""));
    for _ in 0..3 {
        go.send(()).unwrap();
        let piece = body.next().await.unwrap().unwrap();
        assert_eq!(events(std::str::from_utf8(&piece).unwrap()).len(), 2);
    }
}

#[tokio::test]
async fn a_silent_stream_gets_keep_alive_comments() {
    let (agent, _) = silent();
    let options =
        HttpOptions { keep_alive: Some(Duration::from_millis(50)), ..HttpOptions::default() };
    let server = Running::start(Server::new().agent("silent", agent).http_options(options)).await;
    let mut stream = server.raw_run(&input("hi")).await;
    let text = read_until(&mut stream, |text| text.matches(": keep-alive\n\n").count() >= 3).await;
    assert_eq!(text.matches("data: ").count(), 2);
}

#[tokio::test]
async fn a_client_that_disconnects_stops_the_agent() {
    let (agent, stopped) = silent();
    let server = Running::start(Server::new().agent("silent", agent)).await;
    let mut stream = server.raw_run(&input("hi")).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    assert_eq!(stopped.get(), 0);
    drop(stream);
    eventually("the agent is dropped", || stopped.get() == 1).await;
}

#[tokio::test]
async fn a_client_that_does_not_read_pauses_the_agent() {
    let (agent, said, stopped) = endless();
    let server = Running::start(Server::new().agent("endless", agent)).await;
    let mut stream = server.raw_run(&input("hi")).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    // The agent is paused when all buffers on the way are full: its count stays the same for 40 polls, 200 ms.
    let (mut last, mut unchanged) = (0, 0);
    eventually("the agent is paused", || {
        let count = said.get();
        unchanged = if count > 0 && count == last { unchanged + 1 } else { 0 };
        last = count;
        unchanged >= 40
    })
    .await;
    let paused = said.get();
    // The system's socket buffers take some megabytes, the server itself a few kilobytes.
    assert!(paused < 200_000, "{paused} events of about 150 bytes");
    assert_eq!(stopped.get(), 0);
    let mut piece = vec![0; 1 << 20];
    for _ in 0..20 {
        stream.read_exact(&mut piece).await.unwrap();
    }
    eventually("the agent continues", || said.get() > paused).await;
}

#[tokio::test]
async fn a_client_that_never_reads_again_is_disconnected() {
    let (agent, _, stopped) = endless();
    let connections =
        Connections { stall_timeout: Duration::from_millis(300), ..Connections::default() };
    let server =
        Running::start(Server::new().agent("endless", agent).connections(connections)).await;
    let stream = server.raw_run(&input("hi")).await;
    eventually("the agent is dropped", || stopped.get() == 1).await;
    drop(stream);
}

#[tokio::test]
async fn busy_runs_do_not_delay_others() {
    let (agent, _, _) = endless();
    let server = Running::start(Server::new().agent("endless", agent).agent("echo", Echo)).await;
    let mut bodies: Vec<_> = Vec::new();
    for _ in 0..4 {
        let mut body = server.run(&input("hi")).await.bytes_stream();
        bodies.push(tokio::spawn(async move { while body.next().await.is_some() {} }));
    }
    let answer = server.post("/agents/echo/send-message").json(&input("hi")).send();
    let answer = tokio::time::timeout(Duration::from_secs(5), answer).await.unwrap().unwrap();
    assert!(answer.text().await.unwrap().contains("RUN_FINISHED"));
    bodies.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn an_old_sdk_gets_an_outcome_that_it_accepts() {
    let agent = |_: RunAgentInput, _: RunContext| known(ToolCallEvents::new("f").whole(&json!({})));
    let server = Running::start(Server::new().agent("caller", agent)).await;
    let outcome = async |asked: &Value, accept: &str| {
        // Each one is a request of its own.
        let mut asked = asked.clone();
        asked["threadId"] = input("")["threadId"].clone();
        let request = server.post("/send-message").header(header::ACCEPT, accept).json(&asked);
        let body = request.send().await.unwrap().text().await.unwrap();
        events(&body).pop().unwrap()["outcome"].clone()
    };
    let by_hand = input("hi");
    let mut old = by_hand.clone();
    old["forwardedProps"] = json!({});
    let (mut with_null, mut current) = (old.clone(), old.clone());
    // assistant-ui has no state.
    with_null["state"] = Value::Null;
    for input in [&old, &with_null] {
        // Dart's and Kotlin's SDKs accept JSON as well.
        for accept in [
            "text/event-stream",
            "application/json, text/event-stream",
            "text/event-stream,application/json",
        ] {
            assert_eq!(outcome(input, accept).await, Value::Null, "{input} {accept}");
        }
    }
    // Requests written by hand, and SDKs that send their protocol version, get the calls.
    current["protocolVersion"] = "1.0".into();
    for (input, accept) in
        [(&old, "*/*"), (&by_hand, "text/event-stream"), (&current, "text/event-stream")]
    {
        assert_eq!(
            outcome(input, accept).await["pendingToolCallIds"].as_array().unwrap().len(),
            1,
            "{input} {accept}"
        );
    }
}

#[tokio::test]
async fn a_router_can_be_mounted_in_another_application() {
    let count = Count::default();
    let agents = Server::new().agent("echo", Echo).into_router().unwrap().0;
    let app =
        axum::Router::new().nest("/ai", agents).route("/", axum::routing::get(async || "mine"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let response = client
        .post(format!("http://{address}/ai/send-message"))
        .json(&input("hi"))
        .send()
        .await
        .unwrap();
    assert!(response.text().await.unwrap().contains("RUN_FINISHED"));
    assert_eq!(
        client.get(format!("http://{address}/")).send().await.unwrap().text().await.unwrap(),
        "mine"
    );
    server.abort();
    assert_eq!(count.get(), 0);
}
