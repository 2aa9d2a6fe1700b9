//! Two servers behind nginx, Caddy and HAProxy, with the configurations of `deploy/`.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use agui_server::options::HttpOptions;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    SHORT_LEASE, ask, ask_detached,
    client::{Endpoint, Replica, Stream, assert_gradual, numbered, spoken},
    poll::poll_until,
    postgres::Postgres,
    proxy::{Proxy, REPLICA},
    replicas, replicas_on, said,
    tokens::{self, claims, hs256},
};

/// The address of the replica that sent a response. nginx also lists those that it could not reach, before it.
fn replica_of(stream: &Stream) -> &str {
    let address = stream.header(REPLICA).rsplit(", ").next().unwrap_or_default();
    assert!(!address.is_empty(), "the proxy names no replica");
    address
}

/// Returns the replica that sent a response, and the other one.
fn served_by(stream: &Stream, [a, b]: [Replica; 2]) -> (Replica, Replica) {
    if a.url.ends_with(replica_of(stream)) { (a, b) } else { (b, a) }
}

async fn events_arrive_while_the_run_continues(proxy: &Proxy) {
    let stream = proxy.run(&ask("r", "count to 20")).await;
    assert_eq!(stream.header("content-type"), "text/event-stream");
    let events = stream.rest().await;
    assert_eq!(events.iter().filter(|event| event.name() == "TEXT_MESSAGE_CONTENT").count(), 20);
    assert_gradual(&events);
}

async fn the_binary_encoding_arrives_while_the_run_continues(proxy: &Proxy) {
    let request = proxy.request(Method::POST, "/send-message").json(&ask("binary", "count to 20"));
    let mut response =
        request.header("accept", "application/vnd.ag-ui.event+proto").send().await.unwrap();
    let mut arrivals = Vec::new();
    while response.chunk().await.unwrap().is_some() {
        arrivals.push(Instant::now());
    }
    let time = arrivals[arrivals.len() - 1].duration_since(arrivals[0]);
    assert!(time > Duration::from_millis(200), "{} pieces arrive within {time:?}", arrivals.len());
}

async fn a_client_that_leaves_cancels_its_run(proxy: &Proxy, replica: &Replica) {
    let mut stream = proxy.run(&ask("left", "count to 10000")).await;
    stream.take(5).await;
    drop(stream);
    replica.until_status("cancelled").await;
}

/// A request with a body of this size.
fn body_of(size: usize) -> String {
    let mut input = ask(&format!("body-{size}"), "hello");
    input["forwardedProps"] = json!({ "padding": "" });
    let padding = "x".repeat(size - input.to_string().len());
    input["forwardedProps"]["padding"] = Value::String(padding);
    input.to_string()
}

async fn the_largest_body_passes(proxy: &Proxy) {
    let limit = HttpOptions::default().max_body_bytes;
    let post = async |body: String| {
        let request =
            proxy.request(Method::POST, "/send-message").header("content-type", "application/json");
        request.body(body).send().await.unwrap()
    };
    let events = Stream::of(post(body_of(limit)).await).await.rest().await;
    assert_eq!(events.last().unwrap().name(), "RUN_FINISHED");
    // A larger one is refused in the words of the server, and is no failure of a replica.
    for _ in 0..3 {
        let refused = post(body_of(limit + 1)).await;
        assert_eq!(refused.status(), 413);
        assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "body_too_large");
    }
    assert_eq!(proxy.get("/healthz").await.status(), 200);
}

#[tokio::test]
async fn nginx_streams_and_tells_the_server_when_a_client_leaves() {
    let Some([a, b]) = replicas("nginx").await else { return };
    let Some(proxy) = Proxy::nginx([&a, &b]).await else { return };
    events_arrive_while_the_run_continues(&proxy).await;
    the_binary_encoding_arrives_while_the_run_continues(&proxy).await;
    a_client_that_leaves_cancels_its_run(&proxy, &a).await;
}

#[tokio::test]
async fn nginx_takes_the_bodies_that_the_server_takes() {
    let Some([a, b]) = replicas("nginx_bodies").await else { return };
    let Some(proxy) = Proxy::nginx([&a, &b]).await else { return };
    the_largest_body_passes(&proxy).await;
}

#[tokio::test]
async fn behind_nginx_a_run_is_followed_and_cancelled_through_the_other_server() {
    let Some([a, b]) = replicas("nginx_cancel").await else { return };
    let Some(proxy) = Proxy::nginx([&a, &b]).await else { return };
    let mut started = proxy.run(&ask_detached("r", "count to 10000")).await;
    started.take(3).await;
    let mut followed = proxy.follow("r", 0).await;
    assert_ne!(replica_of(&followed), replica_of(&started));
    let mut seen = followed.take(5).await;
    let (_runs, other) = served_by(&started, [a, b]);
    assert_eq!(other.cancel("r").await, 202);
    let last = started.rest().await.pop().unwrap();
    assert_eq!(
        (last.name(), &last.event["outcome"]["type"]),
        ("RUN_FINISHED", &"cancelled".into())
    );
    seen.extend(followed.rest().await);
    assert_eq!(numbered(&seen, 1).event, last.event);
}

#[tokio::test]
async fn behind_nginx_a_client_resumes_when_its_server_is_killed() {
    let Some(postgres) = Postgres::shared() else { return };
    let [a, b] = replicas_on(&postgres.database("nginx_killed").await, SHORT_LEASE);
    let Some(proxy) = Proxy::nginx([&a, &b]).await else { return };
    let started = proxy.run(&ask_detached("r", "count to 40")).await;
    let mut followed = proxy.follow("r", 0).await;
    assert_ne!(replica_of(&followed), replica_of(&started));
    let mut seen = followed.take(8).await;
    let (follows, runs) = served_by(&followed, [a, b]);
    follows.kill();
    seen.extend(followed.until_cut().await);
    // An EventSource continues so.
    let last = seen.last().unwrap().number.unwrap();
    let request =
        proxy.request(Method::GET, "/threads/t/runs/r/events").header("last-event-id", last);
    let resumed = Stream::of(request.send().await.unwrap()).await;
    assert!(runs.url.ends_with(replica_of(&resumed)));
    let rest = resumed.rest().await;
    assert_eq!(numbered(&rest, last + 1).name(), "RUN_FINISHED");
    seen.extend(rest);
    numbered(&seen, 1);
    assert_eq!(said(&proxy.thread().await)[1], format!("assistant: {}", spoken(&seen)));
    // Every request reaches the server that is left.
    for run in ["s1", "s2", "s3"] {
        let events = proxy.run(&ask(run, "hello")).await.rest().await;
        assert_eq!(events.last().unwrap().name(), "RUN_FINISHED");
    }
}

#[tokio::test]
async fn nginx_forwards_keys_and_the_host_of_a_page() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("nginx_keys").await;
    let start = || {
        Replica::start(&[
            ("AGUI_STORE__URL", &url),
            ("AGUI_AUTH__MODE", "api_key"),
            ("AGUI_AUTH__API_KEYS", r#"[{ name = "web", env = "AGUI_KEY" }]"#),
            ("AGUI_KEY", "the-key"),
        ])
    };
    let (a, b) = (start(), start());
    let Some(proxy) = Proxy::nginx([&a, &b]).await else { return };
    let threads = || proxy.request(Method::GET, "/threads");
    assert_eq!(threads().send().await.unwrap().status(), 401);
    assert_eq!(threads().bearer_auth("the-key").send().await.unwrap().status(), 200);
    // A page of the server's own origin, under the name and the port that the browser asked for.
    let page = |origin: &str| {
        let request = proxy
            .request(Method::POST, "/send-message")
            .bearer_auth("the-key")
            .header("origin", origin);
        request.header("host", "agents.example.com:8080").json(&ask("r", "hello"))
    };
    assert_eq!(page("http://agents.example.com:8080").send().await.unwrap().status(), 200);
    assert_eq!(page("http://evil.example").send().await.unwrap().status(), 403);
}

#[tokio::test]
async fn nginx_sends_each_principal_to_its_own_deployment() {
    let start = || Replica::start(&with_jwt());
    let (a, b) = (start(), start());
    let Some(proxy) = Proxy::nginx_split([&a, &b]).await else { return };
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let mut deployments = BTreeMap::new();
    for subject in (0..16).map(|number| format!("person-{number}")) {
        // Each request has a new token.
        let token = |seconds: i64| {
            hs256(&tokens::with(claims(&subject), "exp", tokens::from_now(300 + seconds)))
        };
        let run = proxy
            .request(Method::POST, "/send-message")
            .bearer_auth(token(0))
            .json(&ask("r", "hello"));
        let run = Stream::of(run.send().await.unwrap()).await;
        let deployment = replica_of(&run).to_owned();
        assert_eq!(run.rest().await.last().unwrap().name(), "RUN_FINISHED");
        let thread =
            proxy.request(Method::GET, "/threads/t").bearer_auth(token(1)).send().await.unwrap();
        assert_eq!(thread.status(), 200, "{subject}");
        // The URL of a file, which is opened without a token, names the deployment.
        let file = proxy
            .request(Method::POST, "/files")
            .bearer_auth(token(2))
            .header("content-type", "text/plain");
        let file: Value = file.body("a text").send().await.unwrap().json().await.unwrap();
        let url = file["url"].as_str().unwrap();
        let opened = client.get(url).send().await.unwrap();
        assert!(opened.status() == 200 && opened.headers()[REPLICA] == *deployment, "{url}");
        *deployments.entry(deployment).or_insert(0) += 1;
    }
    assert_eq!(deployments.len(), 2, "{deployments:?}");
    let refused = proxy.request(Method::GET, "/threads").bearer_auth("a.b.c").send().await.unwrap();
    assert_eq!(refused.status(), 401);
}

fn with_jwt() -> [(&'static str, &'static str); 5] {
    [
        ("AGUI_AUTH__MODE", "jwt"),
        ("AGUI_AUTH__JWT__SECRET_ENV", "AGUI_SECRET"),
        ("AGUI_AUTH__JWT__ISSUER", "https://id.test"),
        ("AGUI_AUTH__JWT__AUDIENCE", "agui"),
        ("AGUI_SECRET", tokens::SECRET),
    ]
}

/// Starts two servers with a key, each with threads of its own.
fn two_with_a_key() -> (Replica, Replica) {
    let start = || {
        let keys = r#"[{ name = "web", env = "AGUI_KEY" }]"#;
        Replica::start(&[
            ("AGUI_AUTH__MODE", "api_key"),
            ("AGUI_AUTH__API_KEYS", keys),
            ("AGUI_KEY", "the-key"),
        ])
    };
    (start(), start())
}

async fn the_sockets_of_copilotkit_pass(proxy: &Proxy, credential: &str) {
    // Each replica accepts the tokens that another one has issued.
    for _ in 0..4 {
        let issued =
            proxy.request(Method::POST, "/copilotkit/threads/subscribe").bearer_auth(credential);
        let issued = issued.json(&json!({})).send().await.unwrap().json::<Value>().await.unwrap();
        let path = format!(
            "/copilotkit/socket/websocket?join_token={}&vsn=2.0.0",
            issued["joinToken"].as_str().unwrap()
        );
        let handshake = proxy
            .request(Method::GET, &path)
            .header("connection", "upgrade")
            .header("upgrade", "websocket");
        let handshake = handshake
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "MDEyMzQ1Njc4OWFiY2RlZg==");
        assert_eq!(handshake.send().await.unwrap().status(), 101);
    }
}

#[tokio::test]
async fn nginx_passes_the_sockets_of_copilotkit() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.database("nginx_sockets").await;
    let start = || Replica::start(&[&with_jwt()[..], &[("AGUI_STORE__URL", &url)]].concat());
    let (a, b) = (start(), start());
    let Some(proxy) = Proxy::nginx([&a, &b]).await else { return };
    the_sockets_of_copilotkit_pass(&proxy, &hs256(&claims("ann"))).await;
}

#[tokio::test]
async fn caddy_passes_the_sockets_of_copilotkit() {
    let (a, b) = two_with_a_key();
    let Some(proxy) = Proxy::caddy([&a, &b]).await else { return };
    the_sockets_of_copilotkit_pass(&proxy, "the-key").await;
}

#[tokio::test]
async fn caddy_streams_and_tells_the_server_when_a_client_leaves() {
    let Some([a, b]) = replicas("caddy").await else { return };
    let Some(proxy) = Proxy::caddy([&a, &b]).await else { return };
    events_arrive_while_the_run_continues(&proxy).await;
    the_binary_encoding_arrives_while_the_run_continues(&proxy).await;
    the_largest_body_passes(&proxy).await;
    a_client_that_leaves_cancels_its_run(&proxy, &a).await;
}

#[tokio::test]
async fn haproxy_streams_and_tells_the_server_when_a_client_leaves() {
    let Some([a, b]) = replicas("haproxy").await else { return };
    let Some(proxy) = Proxy::haproxy([&a, &b]).await else { return };
    events_arrive_while_the_run_continues(&proxy).await;
    the_binary_encoding_arrives_while_the_run_continues(&proxy).await;
    the_largest_body_passes(&proxy).await;
    a_client_that_leaves_cancels_its_run(&proxy, &a).await;
}

/// A run that waits for its turn has sent nothing yet, so its proxy notices by reading alone that the client has left.
#[tokio::test]
async fn haproxy_ends_a_request_whose_client_leaves_while_it_waits() {
    let replica = Replica::start(&[("AGUI_METRICS__LISTEN", "127.0.0.1:0")]);
    let Some(proxy) = Proxy::haproxy([&replica, &replica]).await else { return };
    let metrics = Endpoint::new(replica.process.metrics_url.clone().unwrap());
    let until_queued = async |count: u32| {
        let line = format!("\nagui_runs_queued {count}\n");
        poll_until(&line, async || {
            metrics.get("").await.text().await.unwrap().contains(&line).then_some(())
        })
        .await;
    };
    let mut running = proxy.run(&ask("running", "count to 10000")).await;
    running.take(3).await;
    let waiting = ask("waiting", "hello");
    tokio::select! {
        _ = proxy.post(&waiting) => panic!("the first run goes on"),
        () = until_queued(1) => {}
    }
    until_queued(0).await;
    running.take(1).await;
}

#[tokio::test]
async fn behind_haproxy_requests_reach_the_server_that_is_left() {
    let Some(postgres) = Postgres::shared() else { return };
    let [a, b] = replicas_on(&postgres.database("haproxy_killed").await, SHORT_LEASE);
    let Some(proxy) = Proxy::haproxy([&a, &b]).await else { return };
    b.kill();
    // A replica that cannot be reached has not seen the request.
    for number in 0..10 {
        let events = proxy.run(&ask(&format!("r{number}"), "hello")).await.rest().await;
        assert_eq!(events.last().unwrap().name(), "RUN_FINISHED");
    }
}

#[tokio::test]
async fn a_cache_in_nginx_keeps_nothing_of_a_person() {
    let start = || {
        let keys = r#"[{ name = "ann", env = "ANN" }, { name = "bob", env = "BOB" }]"#;
        Replica::start(&[
            ("AGUI_AUTH__MODE", "api_key"),
            ("AGUI_AUTH__API_KEYS", keys),
            ("ANN", "the-key-of-ann"),
            ("BOB", "the-key-of-bob"),
        ])
    };
    let a = start();
    let Some(proxy) = Proxy::nginx_with_cache([&a, &a]).await else { return };
    let send = async |request: reqwest::RequestBuilder, name: &str| {
        request.bearer_auth(format!("the-key-of-{name}")).send().await.unwrap()
    };
    for name in ["ann", "bob"] {
        let asked =
            proxy.request(Method::POST, "/send-message").json(&ask("r", &format!("I am {name}")));
        Stream::of(send(asked, name).await).await.rest().await;
        let file = proxy.request(Method::POST, "/files").header("content-type", "text/plain");
        assert_eq!(send(file.body(format!("the file of {name}")), name).await.status(), 201);
    }
    for path in [
        "/threads",
        "/threads/t",
        "/threads/t/messages",
        "/threads/t/export",
        "/files",
        "/agents",
        "/",
    ] {
        let mut bodies = Vec::new();
        for name in ["ann", "bob"] {
            for _ in 0..2 {
                let response = send(proxy.request(Method::GET, path), name).await;
                assert_eq!(response.headers()["x-cache"], "MISS", "{path}: nginx has a copy");
                bodies.push(response.text().await.unwrap());
            }
        }
        let others = if path.starts_with("/threads/t") { "I am ann" } else { "the file of ann" };
        assert!(!bodies[2].contains(others), "{path}: {}", bodies[2]);
    }
    // A signed URL is for everybody that has it, but a copy would outlive the file.
    let files: Value =
        send(proxy.request(Method::GET, "/files"), "ann").await.json().await.unwrap();
    let path = files["files"][0]["url"].as_str().unwrap().trim_start_matches(&proxy.url).to_owned();
    for _ in 0..2 {
        let response = proxy.get(&path).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["x-cache"]),
            (200, &"MISS".parse().unwrap())
        );
        assert_eq!(response.text().await.unwrap(), "the file of ann");
    }
}

#[tokio::test]
async fn behind_caddy_requests_reach_the_server_that_is_left() {
    let Some(postgres) = Postgres::shared() else { return };
    let [a, b] = replicas_on(&postgres.database("caddy_killed").await, SHORT_LEASE);
    let Some(proxy) = Proxy::caddy([&a, &b]).await else { return };
    b.kill();
    // Until Caddy notices the stop, a POST to the replica is lost (see deploy/Caddyfile). Caddy
    // chooses a replica for each request: it has noticed when several requests in a row succeed.
    let are_served = async || {
        for number in 0..10 {
            let request = proxy
                .request(Method::POST, "/send-message")
                .json(&ask(&format!("r{number}"), "hello"));
            if request.send().await.unwrap().status() != 200 {
                return None;
            }
        }
        Some(())
    };
    poll_until("Caddy has noticed that a replica is gone", are_served).await;
    for run in ["s1", "s2", "s3", "s4"] {
        // On a busy machine the health check of the other replica can be late for once, which is a 502 as well.
        let served = poll_until("the run is served", async || {
            let response = proxy.post(&ask(run, "hello")).await;
            (response.status() == 200).then_some(response)
        });
        let events = Stream::of(served.await).await.rest().await;
        assert_eq!(events.last().unwrap().name(), "RUN_FINISHED");
    }
}
