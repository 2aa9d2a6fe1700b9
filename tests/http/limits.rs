//! Limits on request bodies, on request heads, and on concurrent runs.

use std::{sync::Arc, time::Duration};

use agui_server::{
    Server,
    agent::builtin::Echo,
    options::{Connections, HttpOptions, ThreadOptions},
    protocol::Message,
    store::{
        CopiedMessage, CopiedRun, MemoryStore, MessageNumber, RunNumber, RunRecord, Store as _,
        ThreadContent, ThreadKey, ThreadNumber,
    },
};
use reqwest::header;
use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::support::conversation::changed_options;
use crate::support::running::{Running, eventually, eventually_async, input, read_until, silent};

async fn with(options: HttpOptions) -> Running {
    Running::start(Server::new().agent("echo", Echo).http_options(options)).await
}

async fn send(server: &Running, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

const HEAD: &str =
    "POST /send-message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";

#[tokio::test]
async fn a_body_over_the_limit_is_refused_also_while_it_is_being_sent() {
    let server = with(HttpOptions { max_body_bytes: 1000, ..HttpOptions::default() }).await;
    let padded = |bytes: usize| {
        let whole = input("").to_string();
        whole.replace(
            "\"content\":\"\"",
            &format!("\"content\":\"{}\"", "x".repeat(bytes - whole.len())),
        )
    };
    for (bytes, status) in [(1000, 200), (1001, 413), (20_000_000, 413)] {
        let request = server.post("/send-message").header(header::CONTENT_TYPE, "application/json");
        assert_eq!(request.body(padded(bytes)).send().await.unwrap().status(), status, "{bytes}");
        // A chunked body does not declare its size.
        let body = reqwest::Body::wrap_stream(futures::stream::iter(
            padded(bytes)
                .into_bytes()
                .chunks(4096)
                .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()))
                .collect::<Vec<_>>(),
        ));
        let request = server.post("/send-message").header(header::CONTENT_TYPE, "application/json");
        let response = request.body(body).send().await.unwrap();
        assert_eq!(response.status(), status, "{bytes} in chunks");
        if status == 413 {
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["error"]["code"], "body_too_large");
            assert_eq!(body["error"]["message"], "the request body is larger than 1000 bytes");
        }
    }
}

/// `Duration::MAX` means no limit. No instant is that far away.
#[tokio::test]
async fn the_longest_times_are_no_limits() {
    let longest = Duration::MAX;
    let options =
        HttpOptions { body_timeout: longest, keep_alive: Some(longest), ..HttpOptions::default() };
    let connections =
        Connections { head_timeout: longest, stall_timeout: longest, ..Connections::default() };
    let server = Server::new().agent("echo", Echo).http_options(options).connections(connections);
    let server = Running::start(server).await;
    // Longer than the socket's buffers, so that a write has to wait.
    let response = server.run(&input(&"x".repeat(8_000_000))).await;
    assert!(response.text().await.unwrap().contains("RUN_FINISHED"));
    let mut run = input("Hello");
    run["threadId"] = "t".into();
    run["forwardedProps"] = serde_json::json!({ "onDisconnect": "continue" });
    server.run(&run).await.text().await.unwrap();
    let followed = server
        .client
        .get(server.url(&format!("/threads/t/runs/{}/events", run["runId"].as_str().unwrap())));
    assert!(followed.send().await.unwrap().text().await.unwrap().contains("RUN_FINISHED"));
}

#[tokio::test]
async fn a_client_that_expects_100_continue_is_refused_before_it_sends() {
    let server = with(HttpOptions { max_body_bytes: 1000, ..HttpOptions::default() }).await;
    let mut stream =
        send(&server, &format!("{HEAD}Expect: 100-continue\r\nContent-Length: 100000000\r\n\r\n"))
            .await;
    let answer = read_until(&mut stream, |text| text.contains("body_too_large")).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
}

#[tokio::test]
async fn a_body_that_takes_too_long_is_refused() {
    let server =
        with(HttpOptions { body_timeout: Duration::from_millis(100), ..HttpOptions::default() })
            .await;
    let mut stream = send(&server, &format!("{HEAD}Content-Length: 100\r\n\r\n{{")).await;
    let answer = read_until(&mut stream, |text| text.contains("body_timeout")).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

/// Sends a body in pieces of this size, with pauses. Returns the answer.
async fn answer_to_pieces(server: &Running, size: usize, pause: Duration) -> String {
    let body = input(&"x".repeat(100_000)).to_string();
    let mut stream = send(server, &format!("{HEAD}Content-Length: {}\r\n\r\n", body.len())).await;
    for piece in body.as_bytes().chunks(size) {
        // The server may have closed the connection.
        if stream.write_all(piece).await.is_err() {
            break;
        }
        tokio::time::sleep(pause).await;
    }
    read_until(&mut stream, |text| text.contains("RUN_FINISHED") || text.contains("body_timeout"))
        .await
}

#[tokio::test]
async fn a_body_that_makes_progress_has_more_time_than_one_that_does_not() {
    let options =
        HttpOptions { body_timeout: Duration::from_millis(300), ..HttpOptions::default() };
    let server = with(options).await;
    let pause = Duration::from_millis(100);
    // Together 2.5 s.
    let progresses = answer_to_pieces(&server, 4_096, pause).await;
    assert!(progresses.starts_with("HTTP/1.1 200 "), "{progresses}");
    let hardly_progresses = answer_to_pieces(&server, 100, pause).await;
    assert!(hardly_progresses.starts_with("HTTP/1.1 408 "), "{hardly_progresses}");
}

#[tokio::test]
async fn an_incomplete_body_does_not_affect_other_requests() {
    let server = with(HttpOptions::default()).await;
    let mut stream =
        send(&server, &format!("{HEAD}Content-Length: 100\r\n\r\n{{\"threadId\":")).await;
    stream.shutdown().await.unwrap();
    read_until(&mut stream, |_| false).await;
    assert_eq!(server.run(&input("hi")).await.status(), 200);
}

#[tokio::test]
async fn a_head_that_never_ends_closes_the_connection() {
    let connections =
        Connections { head_timeout: Duration::from_millis(200), ..Connections::default() };
    let server = Running::start(Server::new().agent("echo", Echo).connections(connections)).await;
    for beginning in ["", "POST /send-", "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "] {
        let mut stream = send(&server, beginning).await;
        let answer = read_until(&mut stream, |_| false).await;
        assert!(
            answer.is_empty() || answer.starts_with("HTTP/1.1 408 "),
            "{beginning:?}: {answer}"
        );
    }
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let server = with(HttpOptions::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = format!(
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Large: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    // The server may close the connection before it has received everything.
    let _ = stream.write_all(head.as_bytes()).await;
    let answer = read_until(&mut stream, |_| false).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[tokio::test]
async fn runs_over_the_limit_are_refused_until_one_has_ended() {
    let (agent, stopped) = silent();
    let server = Running::start(
        Server::new()
            .agent("silent", agent)
            .thread_options(changed_options(|options| options.runs.max_concurrent = 2)),
    )
    .await;
    let mut first = server.raw_run(&input("hi")).await;
    let mut second = server.raw_run(&input("hi")).await;
    for stream in [&mut first, &mut second] {
        read_until(stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    }
    let refused = server.run(&input("hi")).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(refused.headers()[header::RETRY_AFTER], "1");
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "too_many_runs");
    // Requests that start no run are not limited.
    assert_eq!(server.client.get(server.url("/readyz")).send().await.unwrap().status(), 200);
    drop(first);
    eventually("the first run is stopped", || stopped.get() == 1).await;
    assert_eq!(server.run(&input("hi")).await.status(), 200);
}

#[tokio::test]
async fn a_refused_input_frees_its_permit() {
    let server = Running::start(
        Server::new()
            .agent("echo", Echo)
            .thread_options(changed_options(|options| options.runs.max_concurrent = 1)),
    )
    .await;
    for _ in 0..5 {
        assert_eq!(
            server.post("/send-message").json("no input").send().await.unwrap().status(),
            400
        );
        let response = server.run(&input("hi")).await;
        assert_eq!(response.status(), 200);
        response.text().await.unwrap();
    }
}

#[tokio::test]
async fn clients_that_do_not_send_their_body_hold_no_permit() {
    let server = Running::start(
        Server::new()
            .agent("echo", Echo)
            .thread_options(changed_options(|options| options.runs.max_concurrent = 1)),
    )
    .await;
    let mut held = Vec::new();
    for body in ["", "{", "{\"threadId\":"] {
        held.push(send(&server, &format!("{HEAD}Content-Length: 100\r\n\r\n{body}")).await);
        held.push(send(&server, &format!("{HEAD}Transfer-Encoding: chunked\r\n\r\n")).await);
        let mut asked =
            send(&server, &format!("{HEAD}Expect: 100-continue\r\nContent-Length: 100\r\n\r\n"))
                .await;
        // The server asks for the body, so it has seen the request.
        let answer = read_until(&mut asked, |text| text.contains("\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 100 "), "{answer}");
        held.push(asked);
    }
    let response = server.run(&input("hi")).await;
    assert_eq!(response.status(), 200);
    response.text().await.unwrap();
}

#[tokio::test]
async fn large_bodies_share_a_budget_and_leave_room_for_small_ones() {
    const BODY_BYTES: usize = 1_000_000;
    // The budget holds two of the largest bodies.
    let options = HttpOptions {
        max_body_bytes: BODY_BYTES,
        max_body_bytes_in_flight: 0,
        ..HttpOptions::default()
    };
    let server = with(options).await;
    let large = format!("{HEAD}Content-Length: {BODY_BYTES}\r\n\r\n{}", " ".repeat(BODY_BYTES / 2));
    let mut held =
        [send(&server, &large).await, send(&server, &large).await, send(&server, &large).await];
    // Two of the three bodies have room; the other is refused after five seconds. A small body is
    // not delayed.
    let refused = async |stream: &mut TcpStream| {
        read_until(stream, |text| text.contains("too_many_body_bytes")).await
    };
    let [first, second, third] = &mut held;
    assert_eq!(server.run(&input("hi")).await.status(), 200);
    let answer = tokio::select! {
        answer = refused(first) => answer,
        answer = refused(second) => answer,
        answer = refused(third) => answer,
    };
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("retry-after: 1\r\n"),
        "{answer}"
    );
    // After the others have left, a large body has room again.
    drop(held);
    let text = input(&"x".repeat(BODY_BYTES - 200)).to_string();
    let whole = format!("{HEAD}Connection: close\r\nContent-Length: {}\r\n\r\n{text}", text.len());
    let mut stream = send(&server, &whole).await;
    let answer = read_until(&mut stream, |text| text.contains("RUN_FINISHED")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{}", &answer[..200]);
}

#[tokio::test]
async fn answers_that_nobody_reads_share_a_budget_and_leave_room_for_small_ones() {
    // More than the buffers of a connection hold. The budget holds two of the largest threads.
    const TEXT_BYTES: usize = 8_000_000;
    let http = HttpOptions { max_response_bytes_in_flight: 0, ..HttpOptions::default() };
    let mut threads = ThreadOptions::default();
    threads.max_bytes = 3 * TEXT_BYTES as u64;
    let server = Server::new().agent("echo", Echo).http_options(http).thread_options(threads);
    let server = Running::start(server.store(MemoryStore::new())).await;
    for (thread, text) in [("large", "x".repeat(TEXT_BYTES)), ("small", "x".to_owned())] {
        let mut input = input(&text);
        input["threadId"] = thread.into();
        server.run(&input).await.text().await.unwrap();
    }
    let get = async |path: &str| {
        server.client.get(server.url(&format!("/threads/{path}"))).send().await.unwrap()
    };
    for path in ["large/export", "large", "large/messages"] {
        let request = format!(
            "GET /threads/{path} HTTP/1.1
Host: localhost

"
        );
        let unread = [send(&server, &request).await, send(&server, &request).await];
        for stream in &unread {
            stream.readable().await.unwrap();
        }
        let refused = get(path).await;
        assert_eq!(
            (refused.status(), &refused.headers()["retry-after"]),
            (503.try_into().unwrap(), &"1".parse().unwrap())
        );
        assert!(refused.text().await.unwrap().contains("too_many_response_bytes"));
        assert_eq!(get("small").await.status(), 200);
        drop(unread);
        assert_eq!(get(path).await.status(), 200);
    }
}

/// Runs that continue until their clients leave, on a server whose memory holds two of the largest
/// requests: 10,000 values in open members, 4.9 MB each.
async fn with_little_memory(store: Arc<MemoryStore>) -> Running {
    let http = HttpOptions { max_body_bytes: 10_000, ..HttpOptions::default() };
    let options = changed_options(|options| options.runs.max_memory_bytes = 0);
    let server =
        Server::new().agent("silent", silent().0).http_options(http).thread_options(options);
    Running::start(server.store(store)).await
}

async fn begun(server: &Running, input: &Value) -> TcpStream {
    let mut stream = server.raw_run(input).await;
    read_until(&mut stream, |text| text.contains("TEXT_MESSAGE_START")).await;
    stream
}

async fn assert_no_memory(server: &Running, input: &Value) {
    let refused = server.run(input).await;
    assert_eq!(
        (refused.status().as_u16(), refused.headers()["retry-after"].to_str().unwrap()),
        (503, "1")
    );
    assert!(refused.text().await.unwrap().contains("too_many_run_bytes"));
}

#[tokio::test]
async fn the_values_of_running_requests_share_a_budget_and_leave_room_for_small_ones() {
    let server = with_little_memory(Arc::new(MemoryStore::new())).await;
    let request = |thread: usize, values: usize| {
        let mut input = input("hi");
        (input["threadId"], input["state"]) = (thread.to_string().into(), vec![1; values].into());
        input
    };
    let mut running = Vec::new();
    for thread in 0..4 {
        running.push(begun(&server, &request(thread, 4_500)).await);
    }
    assert_no_memory(&server, &request(4, 4_500)).await;
    drop(begun(&server, &request(5, 1)).await);
    running.pop();
    drop(begun(&server, &request(6, 4_500)).await);
}

#[tokio::test]
async fn the_threads_of_runs_share_the_budget_of_their_requests() {
    let store = Arc::new(MemoryStore::new());
    for thread in ["a", "b", "c"] {
        let mut content = ThreadContent::default();
        let message = Message::user("m", "x".repeat(4_800_000));
        content.messages.push(CopiedMessage {
            parent: MessageNumber::ROOT,
            run: None,
            message,
            feedback: None,
        });
        let mut record =
            RunRecord::new(RunNumber(0), ThreadNumber(0), "before".into(), "silent".to_owned());
        record.ended_at = Some(1);
        content.runs.push(CopiedRun {
            record,
            head: MessageNumber(1),
            state: None,
            interrupts: Vec::new(),
            answered: Vec::new(),
        });
        content.head = MessageNumber(1);
        let key = ThreadKey { owner: ThreadKey::ANONYMOUS.into(), id: thread.into() };
        assert!(store.insert(&key, &content).await.unwrap());
    }
    let server = with_little_memory(store).await;
    let request = |thread: &str| {
        let mut input = input("hi");
        input["threadId"] = thread.into();
        input
    };
    let running = [begun(&server, &request("a")).await, begun(&server, &request("b")).await];
    assert_no_memory(&server, &request("c")).await;
    drop(running);
    drop(begun(&server, &request("c")).await);
}

#[tokio::test]
async fn a_body_in_tiny_pieces_is_refused() {
    let server = with(HttpOptions::default()).await;
    let in_chunks_of_one_byte = |text: &str| {
        let chunks: String = text.chars().map(|c| format!("1\r\n{c}\r\n")).collect();
        format!("{HEAD}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
    };
    let mut stream =
        send(&server, &in_chunks_of_one_byte(&input(&"x".repeat(10_000)).to_string())).await;
    let answer = read_until(&mut stream, |text| text.contains("RUN_FINISHED")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let mut stream = send(&server, &in_chunks_of_one_byte(&" ".repeat(20_000))).await;
    let answer = read_until(&mut stream, |text| text.contains("tiny")).await;
    assert!(
        answer.starts_with("HTTP/1.1 400 ") && answer.contains("body_in_tiny_pieces"),
        "{answer}"
    );
}

#[tokio::test]
async fn beyond_the_limit_of_connections_only_health_checks_are_answered() {
    let connections = Connections { max: 2, ..Connections::default() };
    let server = Running::start(Server::new().agent("echo", Echo).connections(connections)).await;
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut first = send(&server, request).await;
    let mut second = send(&server, request).await;
    for stream in [&mut first, &mut second] {
        read_until(stream, |text| text.contains("ok")).await;
    }
    // Each response is read to the end of its connection.
    let mut third = send(&server, request).await;
    let answer = read_until(&mut third, |_| false).await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("connection: close"),
        "{answer}"
    );
    let other = "GET /agents HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut fourth = send(&server, other).await;
    let answer = read_until(&mut fourth, |_| false).await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("too_many_connections"),
        "{answer}"
    );
    drop(first);
    eventually_async("a place that is free again", async || {
        let mut next = send(&server, other).await;
        read_until(&mut next, |text| text.contains("}")).await.starts_with("HTTP/1.1 200 ")
    })
    .await;
}
