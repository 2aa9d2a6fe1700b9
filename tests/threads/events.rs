//! `GET /threads/events`: lists that keep themselves current.

use std::time::{Duration, Instant, SystemTime};

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::{ApiKey, Authenticator, Principal},
    options::{HttpOptions, MetricsOptions},
};
use serde_json::{Value, json};

use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::{
    support::running::{Running, eventually_async, read_until, silent},
    threads::{ask, ask_and_leave, ask_detached, changed_options, refusal},
};

/// Reads the events of a principal from now on.
async fn follow(server: &Running, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "GET /threads/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let head = read_until(&mut stream, |text| text.contains("connected")).await;
    assert!(head.contains("text/event-stream"), "{head}");
    stream
}

fn events(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|json| serde_json::from_str(json).unwrap()).collect()
}

/// The types and the threads of events.
fn seen(text: &str) -> Vec<(String, String)> {
    let text_of = |event: &Value, member: &str| event[member].as_str().unwrap().to_owned();
    events(text).iter().map(|event| (text_of(event, "type"), text_of(event, "threadId"))).collect()
}

#[tokio::test]
async fn every_change_of_a_thread_is_an_event() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let mut stream = follow(&server, "none").await;
    server.events(&ask("t", "r", "m", "Hello")).await;
    for body in [
        json!({ "title": "New" }),
        json!({ "archived": true }),
        json!({ "archived": false, "metadata": { "a": 1 } }),
    ] {
        server.client.patch(server.url("/threads/t")).json(&body).send().await.unwrap();
    }
    server.post("/threads/t/fork").json(&json!({ "threadId": "u" })).send().await.unwrap();
    server.client.delete(server.url("/threads/u")).send().await.unwrap();
    let text = read_until(&mut stream, |text| text.contains("\"deleted\"")).await;
    // Events of different threads have no order: those of one thread have an interval.
    let mut seen = seen(&text);
    seen.sort_by_key(|(_, thread)| thread.clone());
    let expected = [
        ("begun", "t"),
        ("ended", "t"),
        ("renamed", "t"),
        ("archived", "t"),
        ("unarchived", "t"),
        ("changed", "t"),
        ("created", "u"),
        ("deleted", "u"),
    ];
    assert_eq!(seen, expected.map(|(change, thread)| (change.to_owned(), thread.to_owned())));
    let mut all = events(&text);
    all.sort_by_key(|event| event["threadId"].to_string());
    let shown = |at: usize, member: &str| all[at]["thread"][member].clone();
    assert_eq!(
        (shown(0, "title"), shown(2, "title"), shown(5, "metadata")),
        (json!("Hello"), json!("New"), json!({ "a": 1 }))
    );
    assert_eq!(all[7], json!({ "type": "deleted", "threadId": "u" }));
}

#[tokio::test]
async fn a_changed_thread_is_read_once_for_all_readers() {
    let server = Server::new().agent("echo", Echo).metrics(MetricsOptions::on_main_listener());
    let server = Running::start(server).await;
    server.events(&ask("t", "r", "m", "Hello")).await;
    let reads = async || {
        let metrics = server.get("/metrics").await.text().await.unwrap();
        let count = "agui_store_operation_duration_seconds_count{operation=\"thread\"} ";
        let line = metrics.lines().find_map(|line| line.strip_prefix(count));
        line.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    let mut readers = Vec::new();
    for _ in 0..30 {
        readers.push(follow(&server, "none").await);
    }
    let before = reads().await;
    let title = json!({ "title": "New" });
    server.client.patch(server.url("/threads/t")).json(&title).send().await.unwrap();
    for reader in &mut readers {
        let text = read_until(reader, |text| text.contains("renamed")).await;
        assert_eq!(events(&text)[0]["thread"]["title"], "New");
    }
    assert_eq!(reads().await - before, 2, "one by the edit, one for all readers");
}

#[tokio::test]
async fn events_are_those_of_the_own_threads() {
    let keys = [ApiKey::from_secret("ann", "a-key"), ApiKey::from_secret("bob", "b-key")];
    let server = Running::start(Server::new().agent("echo", Echo).api_keys(keys)).await;
    let (mut of_ann, mut of_bob) = (follow(&server, "a-key").await, follow(&server, "b-key").await);
    for (key, thread) in [("a-key", "t"), ("b-key", "u")] {
        let input = ask(thread, "r", "m", "Hello");
        server
            .post("/send-message")
            .bearer_auth(key)
            .json(&input)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
    }
    let is_whole = |text: &str| text.contains("\"ended\"");
    assert_eq!(seen(&read_until(&mut of_ann, is_whole).await)[0].1, "t");
    assert_eq!(seen(&read_until(&mut of_bob, is_whole).await)[0].1, "u");
    assert_eq!(server.get("/threads/events").await.status(), 401);
}

#[tokio::test]
async fn streams_are_limited_for_one_principal_and_in_all_until_one_is_closed() {
    let keys = ["ann", "bob", "eve"].map(|name| ApiKey::from_secret(name, &format!("{name}-key")));
    let http = HttpOptions { max_streams: 4, ..HttpOptions::default() };
    let server =
        Running::start(Server::new().agent("echo", Echo).api_keys(keys).http_options(http)).await;
    let refused = async |key: &str, path: &str| {
        refusal(server.client.get(server.url(path)).bearer_auth(key).send().await.unwrap()).await
    };
    let too_many = || (503, "too_many_streams".to_owned());
    let of_ann = [follow(&server, "ann-key").await, follow(&server, "ann-key").await];
    for path in ["/threads/events", "/copilotkit/cpk-debug-events"] {
        assert_eq!(refused("ann-key", path).await, too_many(), "two of four: {path}");
    }
    let _of_bob = [follow(&server, "bob-key").await, follow(&server, "bob-key").await];
    assert_eq!(refused("eve-key", "/threads/events").await, too_many(), "four in all");
    drop(of_ann);
    eventually_async("a stream that is free again", async || {
        let request = server.client.get(server.url("/threads/events")).bearer_auth("eve-key");
        request.send().await.unwrap().status() == 200
    })
    .await;
}

/// A client must be able to tell the cut from an end.
#[tokio::test]
async fn streams_break_when_the_credential_of_their_request_expires() {
    let start = Instant::now();
    let expiring = Authenticator::from_fn(|_| async {
        Ok(Principal::new("test", "ann")
            .with_expiry(SystemTime::now() + Duration::from_millis(300)))
    });
    let (agent, _) = silent();
    let server = Running::start(Server::new().agent("silent", agent).authenticator(expiring)).await;
    ask_and_leave(&server, &ask_detached("t", "r")).await;
    let get = |path: &str| server.client.get(server.url(path));
    let requests = [
        get("/threads/events"),
        get("/copilotkit/cpk-debug-events"),
        get("/threads/t/runs/r/events"),
        get("/threads/t/runs/r/events").header("accept", "application/vnd.ag-ui.event+proto"),
        get("/send-message?runId=r&offset=-1"),
        server.post("/threads/t/connect"),
        server.post("/send-message").json(&ask_detached("t", "r")).header("last-event-id", "1"),
    ];
    for request in requests {
        let stream = request.send().await.unwrap();
        let url = stream.url().to_string();
        assert_eq!(stream.status(), 200, "{url}");
        let body = stream.bytes().await;
        assert!(body.is_err(), "{url}: {body:?}");
    }
    assert!(start.elapsed() >= Duration::from_millis(2_100));
}

#[tokio::test]
async fn streams_of_changes_break_when_the_server_stops() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let mut stream = follow(&server, "none").await;
    drop(server);
    // Returns when the connection closes.
    let rest = read_until(&mut stream, |_| false).await;
    assert_eq!(events(&rest), [] as [Value; 0]);
    assert!(!rest.ends_with("0\r\n\r\n"), "{rest}");
}

#[tokio::test]
async fn lists_are_told_to_read_again_when_retention_has_removed_threads() {
    let options = changed_options(|options| options.retention.owner_threads = Some(1));
    let server = Running::start(Server::new().agent("echo", Echo).thread_options(options)).await;
    let mut stream = follow(&server, "none").await;
    for thread in ["t", "u"] {
        server.events(&ask(thread, "r", "m", "Hello")).await;
    }
    let text = read_until(&mut stream, |text| text.contains("\"missed\"")).await;
    assert!(events(&text).contains(&json!({ "type": "missed" })), "{text}");
}
