//! Requests that a page of another origin makes in a person's browser. The headers are those that browsers send.

use agui_server::{
    Server,
    agent::builtin::Echo,
    options::{Cors, HttpOptions},
};
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};

use crate::support::{
    running::{Running, events, input, silent},
    server::Process,
};

/// `fetch(url, { method: "POST", mode: "no-cors", body: … })` of a page at `https://evil.example`, to this machine.
const FETCH: &[(&str, &str)] = &[
    ("origin", "https://evil.example"),
    ("content-type", "text/plain;charset=UTF-8"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-dest", "empty"),
];
/// The same to an address that is neither HTTPS nor this machine: browsers send no `Sec-Fetch-Site`.
const FETCH_TO_PLAIN_HTTP: &[(&str, &str)] =
    &[("origin", "https://evil.example"), ("content-type", "text/plain;charset=UTF-8")];
/// A form in a sandboxed frame.
const FORM: &[(&str, &str)] = &[
    ("origin", "null"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-dest", "iframe"),
];
/// `fetch(url, { method: "POST" })`, which sends no content type.
const BARE_FETCH: &[(&str, &str)] = &[
    ("origin", "https://evil.example"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "no-cors"),
];
/// A content type that needs a preflight, as if the page had passed it.
const FETCH_JSON: &[(&str, &str)] = &[
    ("origin", "https://evil.example"),
    ("content-type", "application/json"),
    ("sec-fetch-site", "cross-site"),
    ("sec-fetch-mode", "cors"),
];

fn with(mut request: RequestBuilder, headers: &[(&str, &str)]) -> RequestBuilder {
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
}

async fn refusal(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let body: Value = response.json().await.unwrap();
    (status, body["error"]["code"].as_str().unwrap().to_owned())
}

/// The routes with an effect, for the run `r` of a thread.
fn effects(thread: &str) -> [(Method, String, Value); 12] {
    let stop = json!({ "method": "agent/stop", "params": { "agentId": "silent", "threadId": thread }, "body": {} });
    [
        (Method::POST, format!("/threads/{thread}/runs/r/cancel"), json!({})),
        (Method::POST, format!("/threads/{thread}/connect"), json!({})),
        (Method::POST, format!("/copilotkit/agent/silent/stop/{thread}"), json!({ "runId": "r" })),
        (Method::POST, "/copilotkit".to_owned(), stop),
        (Method::POST, "/send-message".to_owned(), input("hi")),
        (Method::POST, "/agent/chat/stream".to_owned(), json!({})),
        (Method::PATCH, format!("/threads/{thread}"), json!({ "title": "x" })),
        (Method::POST, format!("/threads/{thread}/fork"), json!({})),
        (Method::POST, format!("/threads/{thread}/messages/m/feedback"), json!({ "score": 1 })),
        (Method::POST, "/threads/import".to_owned(), json!({})),
        (Method::POST, "/copilotkit/agent/silent/suggest".to_owned(), input("hi")),
        (Method::DELETE, format!("/threads/{thread}"), json!({})),
    ]
}

#[tokio::test]
async fn a_foreign_page_cannot_stop_start_or_delete_anything() {
    let (agent, stopped) = silent();
    let server = Running::start(Server::new().agent("silent", agent)).await;
    let mut asked = input("hi");
    asked["runId"] = "r".into();
    let thread = asked["threadId"].as_str().unwrap().to_owned();
    let mut running = server.run(&asked).await;
    running.chunk().await.unwrap();
    for (method, path, body) in effects(&thread) {
        for headers in [FETCH, FETCH_TO_PLAIN_HTTP, FORM, FETCH_JSON] {
            let request =
                server.client.request(method.clone(), server.url(&path)).body(body.to_string());
            assert_eq!(
                refusal(with(request, headers)).await,
                (403, "origin_not_allowed".to_owned()),
                "{method} {path}"
            );
        }
        let request = server.client.request(method.clone(), server.url(&path));
        assert_eq!(refusal(with(request, BARE_FETCH)).await.0, 403, "{method} {path}");
    }
    let view: Value = server
        .client
        .get(server.url(&format!("/threads/{thread}")))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!((view["activeRunId"].as_str(), stopped.get()), (Some("r"), 0));
    let threads: Value =
        server.client.get(server.url("/threads")).send().await.unwrap().json().await.unwrap();
    assert_eq!(threads["threads"].as_array().unwrap().len(), 1, "no run was started");
}

#[tokio::test]
async fn a_post_with_another_body_than_json_is_refused_by_every_route() {
    let (agent, _) = silent();
    let server = Running::start(Server::new().agent("silent", agent)).await;
    for (_, path, body) in effects("t").into_iter().filter(|(method, ..)| *method == Method::POST) {
        for content_type in
            ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
        {
            let request = server
                .post(&path)
                .header(header::CONTENT_TYPE, content_type)
                .body(body.to_string());
            let expected = (415, "unsupported_media_type".to_owned());
            assert_eq!(refusal(request).await, expected, "{path} {content_type}");
        }
        assert_eq!(
            refusal(server.post(&path).body(body.to_string())).await.0,
            415,
            "{path} without a type"
        );
    }
}

#[tokio::test]
async fn a_post_without_body_needs_no_content_type() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let (connect, cancel) = ("/threads/t/connect", "/threads/t/runs/r/cancel");
    // `fetch` sends a length of 0, and `curl -X POST` no length.
    assert_eq!(
        server.post(connect).header(header::CONTENT_LENGTH, 0).send().await.unwrap().status(),
        200
    );
    for path in [connect, cancel] {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        tokio::io::AsyncWriteExt::write_all(&mut stream, head.as_bytes()).await.unwrap();
        let answer = crate::support::running::read_until(&mut stream, |_| false).await;
        let status = if path == connect { "200" } else { "404" };
        assert_eq!(answer.split(' ').nth(1), Some(status), "{answer}");
    }
    let stop = server.post("/copilotkit/agent/echo/stop/t").send().await.unwrap();
    assert_eq!(stop.json::<Value>().await.unwrap()["stopped"], false);
}

#[tokio::test]
async fn pages_of_allowed_origins_and_of_the_server_itself_are_served() {
    let cors =
        Cors { allow_localhost: true, allow_origins: vec!["https://app.example.com".to_owned()] };
    let server = Running::start(
        Server::new().agent("echo", Echo).http_options(HttpOptions { cors, ..Default::default() }),
    )
    .await;
    let own = format!("http://{}", server.address);
    for headers in [
        // A page of the list, a page of this machine, the server's own page, the latter behind a proxy.
        &[
            ("origin", "https://app.example.com"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "cors"),
        ][..],
        &[
            ("origin", "http://localhost:5173"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-mode", "cors"),
        ],
        &[("origin", &own), ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")],
        &[
            ("origin", "https://agents.example.com"),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-mode", "cors"),
        ],
        // Safari before 16.4 sends no Sec-Fetch-Site.
        &[("origin", &own)],
        // Node and Deno.
        &[("sec-fetch-mode", "cors"), ("user-agent", "node")],
        &[],
    ] {
        let response =
            with(server.post("/send-message").json(&input("hi")), headers).send().await.unwrap();
        assert_eq!(response.status(), 200, "{headers:?}");
        assert_eq!(events(&response.text().await.unwrap()).last().unwrap()["type"], "RUN_FINISHED");
    }
    // A link on another site.
    let link = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    ];
    assert_eq!(with(server.client.get(server.url("/")), &link).send().await.unwrap().status(), 200);
    // A frame on another site, which the person may not see.
    let frame = [link[0], link[1], ("sec-fetch-dest", "iframe")];
    for path in ["/", "/threads/t/x"] {
        let refused = refusal(with(server.client.get(server.url(path)), &frame)).await;
        assert_eq!(refused, (403, "origin_not_allowed".to_owned()), "{path}");
    }
    // An image or a script on another site.
    let embedded = [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-dest", "script"),
    ];
    for path in [
        "/threads",
        "/send-message?threadId=t",
        "/send-message?runId=r",
        "/threads/t/runs/r/events",
    ] {
        assert_eq!(
            refusal(with(server.client.get(server.url(path)), &embedded)).await.0,
            403,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_foreign_page_cannot_resume_or_join_a_run() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let mut detached = input("hi");
    detached["forwardedProps"] = json!({ "onDisconnect": "continue" });
    let thread = detached["threadId"].as_str().unwrap().to_owned();
    server.run(&detached).await.text().await.unwrap();
    for headers in [FETCH, FETCH_TO_PLAIN_HTTP, FORM, FETCH_JSON] {
        let request =
            server.post("/send-message").header("last-event-id", "0").body(detached.to_string());
        assert_eq!(
            refusal(with(request, headers)).await,
            (403, "origin_not_allowed".to_owned()),
            "{headers:?}"
        );
    }
    // Without CORS headers the browser hides the response from the page.
    let origin = [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "cors"),
    ];
    for path in [
        "/send-message?runId=r",
        &format!("/send-message?threadId={thread}"),
        &format!("/threads/{thread}/runs/r/events"),
    ] {
        let response = with(server.client.get(server.url(path)), &origin).send().await.unwrap();
        assert!(!response.headers().contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN), "{path}");
    }
}

/// The image's configuration: without a key, on all addresses.
#[tokio::test]
async fn a_server_for_everybody_does_not_answer_a_page_that_rebinds_its_dns_name() {
    let server = Process::start(
        &[],
        &[("AGUI_AUTH__MODE", "none"), ("AGUI_AUTH__ALLOW_UNAUTHENTICATED", "true")],
    );
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let post =
        |host: &str| client.post(format!("{}/send-message", server.url)).header(header::HOST, host);
    // `http://rebound.example:8080`, whose name now resolves to this machine: all of its requests have the same origin.
    let rebound = [("origin", "http://rebound.example:8080"), ("sec-fetch-site", "same-origin")];
    for headers in [&rebound[..], &rebound[..1]] {
        let request = with(post("rebound.example:8080").json(&input("hi")), headers);
        assert_eq!(refusal(request).await, (403, "host_not_allowed".to_owned()));
    }
    for host in ["localhost:8080", "192.168.1.5:8080"] {
        assert_eq!(post(host).json(&input("hi")).send().await.unwrap().status(), 200, "{host}");
    }
    drop(server);
    let environment = [
        ("AGUI_AUTH__ALLOW_UNAUTHENTICATED", "true"),
        ("AGUI_SERVER__ALLOWED_HOSTS", "agents,agents.example.com"),
    ];
    let server = Process::start(&[], &environment);
    let health =
        client.get(format!("{}/healthz", server.url)).header(header::HOST, "agents.example.com");
    assert_eq!(health.send().await.unwrap().status(), 200);
}
