//! Limits of each principal: concurrent runs, and runs per minute.

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::{ApiKey, Jwt},
    options::{PrincipalLimits, ThreadOptions},
};
use reqwest::header;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    auth::jwt::options,
    support::{
        conversation::changed_options,
        running::{Running, eventually, eventually_async, input, read_until, silent},
        tokens::{self, claims, hs256},
    },
};

fn limits(concurrent: usize, per_minute: usize) -> PrincipalLimits {
    let some = |number| (number > 0).then_some(number);
    let mut limits = PrincipalLimits::default();
    (limits.concurrent, limits.per_minute) = (some(concurrent), some(per_minute));
    limits
}

fn with_tokens(server: Server) -> Server {
    server.jwt(Jwt::from_secret(tokens::SECRET.as_bytes(), options()).unwrap())
}

/// Starts a run, and returns when it has begun or was refused.
async fn run(server: &Running, who: &str, input: &Value) -> reqwest::Response {
    let token = hs256(&claims(who));
    let mut response =
        server.post("/send-message").bearer_auth(token).json(input).send().await.unwrap();
    if response.status() == 200 {
        assert!(response.chunk().await.unwrap().is_some());
    }
    response
}

async fn assert_refused(response: reqwest::Response, code: &str) -> u64 {
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
    let seconds = response.headers()[header::RETRY_AFTER].to_str().unwrap().parse().unwrap();
    assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], code);
    seconds
}

#[tokio::test]
async fn concurrent_runs_are_limited_for_each_principal() {
    let (agent, stopped) = silent();
    let server = with_tokens(Server::new().agent("silent", agent)).principal_limits(limits(2, 0));
    let server = Running::start(server).await;
    let first = run(&server, "ada", &input("hi")).await;
    let _second = run(&server, "ada", &input("hi")).await;
    assert_eq!(
        assert_refused(run(&server, "ada", &input("hi")).await, "too_many_concurrent_runs").await,
        1
    );
    // Other principals, and requests that start no run, are not limited.
    assert_eq!(run(&server, "bob", &input("hi")).await.status(), 200);
    let request = server.client.get(server.url("/threads")).bearer_auth(hs256(&claims("ada")));
    assert_eq!(request.send().await.unwrap().status(), 200);
    let before = stopped.get();
    drop(first);
    eventually("the first run is stopped", || stopped.get() > before).await;
    eventually_admitted(&server, "ada").await;
}

/// Waits until a run is admitted, and ends it.
async fn eventually_admitted(server: &Running, who: &str) {
    eventually_async("a run is admitted", async || {
        run(server, who, &input("hi")).await.status() == 200
    })
    .await;
}

/// Sends a request for a run on a socket of its own.
async fn send(server: &Running, who: &str, input: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let (token, body) = (hs256(&claims(who)), input.to_string());
    let head = format!(
        "POST /send-message HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_detached_run_counts_until_it_ends() {
    let (agent, _) = silent();
    let server = with_tokens(Server::new().agent("silent", agent)).principal_limits(limits(1, 0));
    let server = Running::start(server).await;
    let mut detached = input("hi");
    detached["forwardedProps"] = json!({ "onDisconnect": "continue" });
    let mut client = send(&server, "ada", &detached).await;
    read_until(&mut client, |text| text.contains("TEXT_MESSAGE_START")).await;
    client.shutdown().await.unwrap();
    // The server closes the connection once it has seen that the client left.
    read_until(&mut client, |_| false).await;
    assert_refused(run(&server, "ada", &input("hi")).await, "too_many_concurrent_runs").await;
    // Following a run does not count.
    let thread = detached["threadId"].as_str().unwrap();
    let token = hs256(&claims("ada"));
    let follow = server
        .client
        .get(server.url(&format!("/threads/{thread}/runs/r/events")))
        .bearer_auth(&token);
    assert_eq!(follow.send().await.unwrap().status(), 200);
    let connect =
        server.post(&format!("/threads/{thread}/connect")).bearer_auth(&token).json(&json!({}));
    assert!(connect.send().await.unwrap().status().is_success());
    let cancel = server.post(&format!("/threads/{thread}/runs/r/cancel")).bearer_auth(&token);
    assert!(cancel.send().await.unwrap().status().is_success());
    eventually_admitted(&server, "ada").await;
}

#[tokio::test]
async fn a_run_that_waits_for_its_thread_counts() {
    let (agent, _) = silent();
    let server = with_tokens(Server::new().agent("silent", agent)).principal_limits(limits(2, 0));
    let server = Running::start(server).await;
    let first = input("hi");
    let mut second = first.clone();
    second["runId"] = "second".into();
    second["messages"][0]["id"] = "m2".into();
    let _first = run(&server, "ada", &first).await;
    let _queued = send(&server, "ada", &second).await;
    let is_refused = async || run(&server, "ada", &input("hi")).await.status() == 429;
    eventually_async("the queued run is counted", is_refused).await;
}

#[tokio::test]
async fn runs_per_minute_are_limited_for_each_principal() {
    let keys =
        [ApiKey::from_secret("web", "open sesame"), ApiKey::from_secret("ci", "open barley")];
    let server = Server::new().agent("echo", Echo).api_keys(keys).principal_limits(limits(0, 3));
    let server = Running::start(server).await;
    let run = |key: &'static str, body: Value| {
        server.post("/send-message").bearer_auth(key).json(&body).send()
    };
    for _ in 0..2 {
        assert!(
            run("open sesame", input("hi"))
                .await
                .unwrap()
                .text()
                .await
                .unwrap()
                .contains("RUN_FINISHED")
        );
    }
    // Invalid requests count, too.
    assert_eq!(run("open sesame", json!({})).await.unwrap().status(), 400);
    let wait =
        assert_refused(run("open sesame", input("hi")).await.unwrap(), "too_many_runs_per_minute")
            .await;
    assert!((30..=60).contains(&wait), "{wait}");
    assert_eq!(run("open barley", input("hi")).await.unwrap().status(), 200);
    // Requests with a refused credential do not count.
    for _ in 0..5 {
        assert_eq!(run("guessed", input("hi")).await.unwrap().status(), 401);
    }
    assert_eq!(run("open barley", input("hi")).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_refused_input_does_not_count_as_a_concurrent_run() {
    let server = with_tokens(Server::new().agent("echo", Echo)).principal_limits(limits(1, 0));
    let server = Running::start(server).await;
    for _ in 0..5 {
        assert_eq!(run_body(&server, json!("no input")).await.0, 400);
        let (status, body) = run_body(&server, input("hi")).await;
        assert!(status == 200 && body.contains("RUN_FINISHED"), "{status} {body}");
    }
}

async fn run_body(server: &Running, body: Value) -> (u16, String) {
    let request = server.post("/send-message").bearer_auth(hs256(&claims("ada"))).json(&body);
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn without_authentication_the_limits_of_principals_have_no_effect() {
    let server =
        Running::start(Server::new().agent("echo", Echo).principal_limits(limits(1, 1))).await;
    for _ in 0..3 {
        assert_eq!(server.run(&input("hi")).await.status(), 200);
    }
}

#[tokio::test]
async fn one_of_several_principals_gets_half_of_the_runs_by_default() {
    let keys = |names: &[&str]| {
        names.iter().map(|name| ApiKey::from_secret(name, name)).collect::<Vec<_>>()
    };
    let start = async |names: &[&str]| {
        let (agent, _) = silent();
        let server = Server::new()
            .agent("silent", agent)
            .api_keys(keys(names))
            .thread_options(changed_options(|options| options.runs.max_concurrent = 4));
        Running::start(server).await
    };
    let begin = async |server: &Running, key: &str, input: Value| {
        let mut response =
            server.post("/send-message").bearer_auth(key).json(&input).send().await.unwrap();
        if response.status() == 200 {
            assert!(response.chunk().await.unwrap().is_some());
        }
        response
    };
    let server = start(&["web", "ci"]).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(begin(&server, "web", input("hi")).await);
    }
    assert_refused(begin(&server, "web", input("hi")).await, "too_many_concurrent_runs").await;
    for _ in 0..2 {
        held.push(begin(&server, "ci", input("hi")).await);
    }
    assert!(held.iter().all(|response| response.status() == 200));
    // With one key, the share would protect nobody.
    let server = start(&["web"]).await;
    for _ in 0..4 {
        held.push(begin(&server, "web", input("hi")).await);
        assert_eq!(held.last().unwrap().status(), 200);
    }
    assert_eq!(begin(&server, "web", input("hi")).await.status(), 503);
}

#[tokio::test]
async fn one_of_several_principals_gets_half_of_the_detached_runs() {
    let (agent, _) = silent();
    let mut threads = ThreadOptions::default();
    threads.runs.max_detached = Some(2);
    let server = Server::new().agent("silent", agent).thread_options(threads);
    let server = Running::start(with_tokens(server)).await;
    let detached = || {
        let mut detached = input("hi");
        detached["forwardedProps"] = json!({ "onDisconnect": "continue" });
        detached
    };
    assert_eq!(run(&server, "ada", &detached()).await.status(), 200);
    assert_refused(run(&server, "ada", &detached()).await, "too_many_detached_runs").await;
    assert_eq!(run(&server, "bob", &detached()).await.status(), 200);
    // The limit of the server.
    assert_eq!(run(&server, "eve", &detached()).await.status(), 503);
}
