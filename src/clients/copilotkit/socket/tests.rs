//! The limits of sockets, over connections in memory, so that time can be paused. `tests/clients/copilotkit/socket.rs` tests what
//! sockets report.

use axum::{
    Router,
    body::{Body, to_bytes},
    http::Request,
};
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
    time::sleep,
};
use tower::ServiceExt as _;

use super::*;
use crate::{
    auth::Authenticator,
    http::{HttpOptions, client::Clients, router},
};
use agui_agents::Echo;
use agui_run::{host::Runs, threads::Threads};

/// A server with the agents `agent0` to `agent8` and the routes of sockets.
struct TestServer {
    router: Router,
    tokens: Arc<JoinTokens>,
    runs: Arc<Runs>,
}

impl TestServer {
    fn new(max_streams: usize, auth: Authenticator) -> Self {
        let tokens = Arc::new(JoinTokens::from_keys(&[]));
        let optional = vec![route_set(("CopilotKit", ""), "/copilotkit", tokens.clone())];
        let agents = (0..=MAX_CHANNELS).map(|n| format!("agent{n}"));
        let runs = agents.fold(Runs::builder(), |runs, name| runs.agent(name, Arc::new(Echo)));
        let dependencies = Arc::new(Vec::new);
        let runs = runs.build();
        let routers = router(
            runs.clone(),
            auth,
            HttpOptions { max_streams, ..HttpOptions::default() },
            Clients(Vec::new()),
            Vec::new(),
            optional,
            dependencies,
        );
        Self { router: routers.main, tokens, runs }
    }

    async fn token(&self, principal: &Principal) -> String {
        let threads = Threads::of(&self.runs);
        let signer = threads.core.files.as_ref().unwrap().signer().await.unwrap();
        self.tokens.issue(principal, &signer, SystemTime::now())
    }

    /// Sends a handshake. Returns the connection, and the head of the response.
    async fn open(&self, token: &str) -> (DuplexStream, String) {
        let (mut client, server) = duplex(64 * 1024);
        let router =
            self.router.clone().map_request(|request: Request<Incoming>| request.map(Body::new));
        let service = TowerToHyperService::new(router);
        tokio::spawn(
            http1::Builder::new().serve_connection(TokioIo::new(server), service).with_upgrades(),
        );
        let head = format!(
            "GET /copilotkit/socket/websocket?join_token={token} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        client.write_all(head.as_bytes()).await.unwrap();
        let head = read_until(&mut client, "\r\n\r\n").await;
        (client, head)
    }

    /// Returns the status of a handshake. Its connection is closed.
    async fn status(&self, token: &str) -> String {
        self.open(token).await.1[9..12].to_owned()
    }

    async fn send(&self, method: &str, path: &str, body: Value) {
        let request = Request::builder().method(method).uri(path).header("host", "localhost");
        let request = request
            .header("content-type", "application/json")
            .body(Body::from(body.to_string()))
            .unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
        to_bytes(response.into_body(), usize::MAX).await.unwrap();
    }
}

/// Reads until a text or the end of the connection.
async fn read_until(client: &mut DuplexStream, end: &str) -> String {
    let (mut all, mut piece) = (String::new(), [0; 4096]);
    while !all.contains(end) {
        match client.read(&mut piece).await.unwrap() {
            0 => break,
            n => all.push_str(&String::from_utf8_lossy(&piece[..n])),
        }
    }
    all
}

/// Joins or leaves the topic of an agent. Returns whether the server has done it.
async fn send_event(client: &mut DuplexStream, event: &str, agent: usize) -> bool {
    let text = json!(["1", "1", format!("{TOPIC_PREFIX}agent{agent}"), event, {}]).to_string();
    // A frame whose mask is zero.
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
    frame.extend(text.as_bytes());
    client.write_all(&frame).await.unwrap();
    read_until(client, "phx_reply").await.contains(r#""status":"ok""#)
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_disconnected_although_its_threads_change() {
    let server = TestServer::new(1, Authenticator::disabled());
    let (mut client, _) = server.open("").await;
    assert!(send_event(&mut client, "phx_join", 0).await);
    let silent_since = Instant::now();
    let run = json!({ "threadId": "t", "runId": "r", "messages": [{ "id": "m", "role": "user", "content": "Hello" }] });
    server.send("POST", "/send-message", run).await;
    let changes = async {
        loop {
            sleep(IDLE_TIMEOUT / 3).await;
            server.send("PATCH", "/threads/t", json!({ "title": "Letters" })).await;
        }
    };
    let closed = timeout(10 * IDLE_TIMEOUT, read_until(&mut client, "never sent"));
    let received = tokio::select! {
        () = changes => String::new(),
        received = closed => received.unwrap(),
    };
    assert!(received.contains("Letters"), "{received}");
    assert!(
        silent_since.elapsed() < IDLE_TIMEOUT + Duration::from_secs(2),
        "{:?}",
        silent_since.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn sockets_are_limited_for_one_principal_and_in_all_until_one_is_closed() {
    let server = TestServer::new(4, Authenticator::from_extension());
    let token = async |name: &str| server.token(&Principal::new("key", name)).await;
    let [ann, bob, eve] = [token("ann").await, token("bob").await, token("eve").await];
    let of_ann = [server.open(&ann).await, server.open(&ann).await];
    let (_, head) = server.open(&ann).await;
    assert!(head.starts_with("HTTP/1.1 503"), "two of four: {head}");
    let of_bob = [server.open(&bob).await, server.open(&bob).await];
    assert!(of_ann.iter().chain(&of_bob).all(|(_, head)| head.starts_with("HTTP/1.1 101")));
    assert_eq!(server.status(&eve).await, "503", "four in all");
    drop(of_ann);
    let reopened = async {
        while server.status(&eve).await != "101" {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(Duration::from_secs(10), reopened).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_socket_ends_when_the_credential_expires_that_its_token_was_issued_for() {
    let server = TestServer::new(1, Authenticator::from_extension());
    let lifetime = IDLE_TIMEOUT / 3;
    let ann = Principal::new("jwt", "ann").with_expiry(SystemTime::now() + lifetime);
    let (mut client, head) = server.open(&server.token(&ann).await).await;
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    let begin = Instant::now();
    read_until(&mut client, "never sent").await;
    assert!(begin.elapsed() <= lifetime + Duration::from_secs(2), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_socket_has_at_most_eight_topics() {
    let server = TestServer::new(1, Authenticator::disabled());
    let (mut client, _) = server.open("").await;
    for agent in 0..MAX_CHANNELS {
        assert!(send_event(&mut client, "phx_join", agent).await, "{agent}");
    }
    assert!(!send_event(&mut client, "phx_join", MAX_CHANNELS).await);
    assert!(send_event(&mut client, "phx_join", 0).await, "a topic that is joined again");
    assert!(send_event(&mut client, "phx_leave", 0).await);
    assert!(send_event(&mut client, "phx_join", MAX_CHANNELS).await);
}

/// CopilotKit replies to an interrupt under the `runId` that asked, and a tab takes no second notice about a `runId`.
#[tokio::test(start_paused = true)]
async fn a_second_run_under_one_id_is_told_under_an_id_of_its_own() {
    let server = TestServer::new(1, Authenticator::disabled());
    let (mut client, _) = server.open("").await;
    assert!(send_event(&mut client, "phx_join", 0).await);
    let mut ids = Vec::new();
    for (run, message) in [("r", "1"), ("r", "2"), ("r", "3"), ("s", "4")] {
        let message = json!({ "id": message, "role": "user", "content": "Hello" });
        let input = json!({ "threadId": "t", "runId": run, "messages": [message] });
        server.send("POST", "/send-message", input).await;
        let mut told = read_until(&mut client, "thread_run_activity").await;
        while !told.rsplit("thread_run_activity").next().unwrap().contains('}') {
            told += &read_until(&mut client, "}").await;
        }
        let activity = told.rsplit("thread_run_activity").next().unwrap();
        let (_, id) = activity.split_once("\"runId\":\"").unwrap();
        ids.push(id.split('"').next().unwrap().to_owned());
    }
    let [first, second, third, other] = &ids[..] else { panic!("{ids:?}") };
    assert_eq!((&**first, &**other), ("r", "s"));
    assert!(second.starts_with("r.") && third.starts_with("r.") && second != third, "{ids:?}");
}
