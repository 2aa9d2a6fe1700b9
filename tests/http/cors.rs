//! Cross-origin requests of pages in a browser.

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::ApiKey,
    options::{Cors, HttpOptions},
};
use reqwest::{Method, header};

use crate::support::running::{Running, input};

async fn server(cors: Cors) -> Running {
    let options = HttpOptions { cors, ..HttpOptions::default() };
    let server = Server::new().agent("echo", Echo).http_options(options);
    Running::start(server.api_keys([ApiKey::from_secret("web", "key")])).await
}

async fn allowed_origin(server: &Running, origin: &str) -> Option<String> {
    let request = server.client.get(server.url("/healthz")).header(header::ORIGIN, origin);
    let response = request.send().await.unwrap();
    response
        .headers()
        .get(header::ACCESS_CONTROL_ALLOW_ORIGIN)
        .map(|origin| origin.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn origins_on_this_machine_are_allowed_and_others_are_not() {
    let server = server(Cors::default()).await;
    for origin in [
        "http://localhost:3000",
        "https://localhost",
        "http://127.0.0.1:5173",
        "http://[::1]:80",
        "http://app.localhost",
    ] {
        assert_eq!(allowed_origin(&server, origin).await.as_deref(), Some(origin));
    }
    for origin in [
        "https://evil.example",
        "null",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
    ] {
        assert_eq!(allowed_origin(&server, origin).await, None, "{origin}");
    }
}

#[tokio::test]
async fn listed_origins_are_allowed() {
    let listed = server(Cors {
        allow_localhost: false,
        allow_origins: vec!["https://app.example.com".to_owned()],
    })
    .await;
    assert_eq!(
        allowed_origin(&listed, "https://app.example.com").await.as_deref(),
        Some("https://app.example.com")
    );
    assert_eq!(allowed_origin(&listed, "http://localhost:3000").await, None);
    let all = server(Cors { allow_localhost: false, allow_origins: vec!["*".to_owned()] }).await;
    assert_eq!(allowed_origin(&all, "https://any.example").await.as_deref(), Some("*"));
}

/// Returns the origins, of those given, whose pages may send credentials.
async fn with_credentials(server: Server, cors: &Cors) -> Vec<&'static str> {
    let options = HttpOptions { cors: cors.clone(), ..HttpOptions::default() };
    let server = Running::start(server.agent("echo", Echo).http_options(options)).await;
    let mut allowed = Vec::new();
    for origin in ["http://localhost:3000", "https://app.example.com", "https://evil.example"] {
        let request = server.client.get(server.url("/healthz")).header(header::ORIGIN, origin);
        if request
            .send()
            .await
            .unwrap()
            .headers()
            .contains_key(header::ACCESS_CONTROL_ALLOW_CREDENTIALS)
        {
            allowed.push(origin);
        }
    }
    allowed
}

#[tokio::test]
async fn pages_of_this_machine_may_send_credentials_to_a_server_without_authentication_only() {
    let listed =
        Cors { allow_localhost: true, allow_origins: vec!["https://app.example.com".to_owned()] };
    let keys = || Server::new().api_keys([ApiKey::from_secret("web", "key")]);
    assert_eq!(with_credentials(keys(), &listed).await, ["https://app.example.com"]);
    let both = ["http://localhost:3000", "https://app.example.com"];
    assert_eq!(with_credentials(Server::new(), &listed).await, both);
    let all = Cors { allow_localhost: true, allow_origins: vec!["*".to_owned()] };
    assert!(
        with_credentials(Server::new(), &all).await.is_empty(),
        "browsers refuse credentials together with *"
    );
}

#[tokio::test]
async fn a_preflight_needs_no_key() {
    let server = server(Cors::default()).await;
    let response = server
        .client
        .request(Method::OPTIONS, server.url("/send-message"))
        .header(header::ORIGIN, "http://localhost:3000")
        .header(header::ACCESS_CONTROL_REQUEST_METHOD, "POST")
        .header(header::ACCESS_CONTROL_REQUEST_HEADERS, "authorization,content-type,x-anything")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    let header = |name| response.headers()[name].to_str().unwrap();
    assert_eq!(header(header::ACCESS_CONTROL_ALLOW_ORIGIN), "http://localhost:3000");
    assert_eq!(header(header::ACCESS_CONTROL_ALLOW_METHODS), "GET,POST,PATCH,DELETE");
    assert_eq!(
        header(header::ACCESS_CONTROL_ALLOW_HEADERS),
        "authorization,content-type,x-anything"
    );
}

#[tokio::test]
async fn refusals_have_cors_headers() {
    let server = server(Cors::default()).await;
    let refusals = [
        server.post("/send-message").json(&input("hi")),
        server.post("/send-message").bearer_auth("key").body("x"),
        server.post("/send-message").bearer_auth("key").json("no input"),
        server.post("/nowhere"),
        server.client.delete(server.url("/send-message")),
    ];
    for (request, status) in refusals.into_iter().zip([401, 415, 400, 404, 405]) {
        let response =
            request.header(header::ORIGIN, "http://localhost:3000").send().await.unwrap();
        assert_eq!(response.status(), status);
        assert_eq!(
            response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN],
            "http://localhost:3000",
            "{status}"
        );
    }
}

#[tokio::test]
async fn streams_have_cors_headers() {
    let server = server(Cors::default()).await;
    let request = server
        .post("/send-message")
        .bearer_auth("key")
        .header(header::ORIGIN, "http://localhost:3000");
    let response = request.json(&input("hi")).send().await.unwrap();
    assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], "http://localhost:3000");
    let exposed = response.headers()[header::ACCESS_CONTROL_EXPOSE_HEADERS].to_str().unwrap();
    assert!(exposed.contains("x-request-id"), "{exposed}");
}
