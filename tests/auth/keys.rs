//! Authentication, and the host names under which a server without authentication answers.

use agui_server::{
    Server,
    agent::{RunContext, builtin::Echo, emit::TextMessage, events},
    auth::{ApiKey, AuthError, Authenticator, Principal},
    options::HttpOptions,
    protocol::RunAgentInput,
};
use axum::{
    extract::Request,
    http::request::Parts,
    middleware::{Next, from_fn},
};
use reqwest::header;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;

use crate::support::running::{Running, input, read_until};

const DIGEST_OF_SECRET: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

async fn guarded() -> Running {
    let who = |_: RunAgentInput, cx: RunContext| {
        events(TextMessage::whole(cx.principal().map_or("nobody", |principal| principal.name())))
    };
    let keys = [
        ApiKey::from_secret("web", "open sesame"),
        ApiKey::from_sha256("ci", DIGEST_OF_SECRET).unwrap(),
    ];
    Running::start(Server::new().agent("who", who).api_keys(keys)).await
}

#[tokio::test]
async fn a_run_needs_a_key_whose_name_is_its_principal() {
    let server = guarded().await;
    for (authorization, expected) in [("Bearer open sesame", "web"), ("bearer secret", "ci")] {
        let request = server.post("/send-message").header(header::AUTHORIZATION, authorization);
        let body = request.json(&input("hi")).send().await.unwrap().text().await.unwrap();
        assert!(body.contains(&format!("\"delta\":\"{expected}\"")), "{body}");
    }
    for (authorization, code, challenge) in [
        (None, "unauthenticated", "Bearer realm=\"agui-server\""),
        (Some("Basic b3Blbg=="), "unauthenticated", "Bearer realm=\"agui-server\""),
        (
            Some("Bearer wrong"),
            "invalid_key",
            "Bearer realm=\"agui-server\", error=\"invalid_token\"",
        ),
    ] {
        for path in ["/send-message", "/agents/who/send-message", "/agents/nobody/send-message"] {
            let mut request = server.post(path).json(&input("hi"));
            if let Some(authorization) = authorization {
                request = request.header(header::AUTHORIZATION, authorization);
            }
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 401, "{path} {authorization:?}");
            assert_eq!(response.headers()[header::WWW_AUTHENTICATE], challenge);
            assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], code);
        }
    }
}

#[tokio::test]
async fn agents_are_listed_for_callers_with_a_key_only() {
    let server = guarded().await;
    for (path, status) in [
        ("/agents", 401),
        ("/agents/who/capabilities", 401),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/nowhere", 404),
    ] {
        assert_eq!(
            server.client.get(server.url(path)).send().await.unwrap().status(),
            status,
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_request_without_a_key_is_refused_before_its_body_is_read() {
    let server = guarded().await;
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let head = "POST /send-message HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, |text| text.contains("unauthenticated")).await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
}

#[tokio::test]
async fn without_authentication_only_loopback_host_names_and_addresses_are_accepted() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    for (request, expected) in [
        ("GET /healthz HTTP/1.1\r\nHost: localhost:8080", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: [::1]:80", "200"),
        ("GET http://localhost/healthz HTTP/1.1\r\nHost: localhost", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: 192.168.1.5:8080", "200"),
        ("GET /healthz HTTP/1.1\r\nHost: rebound.example", "403"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost.rebound.example", "403"),
        ("GET http://rebound.example/healthz HTTP/1.1\r\nHost: localhost", "403"),
        ("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: rebound.example", "403"),
        ("GET /healthz HTTP/1.1\r\nHost:", "403"),
        ("GET /healthz HTTP/1.0", "200"),
        ("GET /agents HTTP/1.0", "403"),
        ("GET /nowhere HTTP/1.1\r\nHost: rebound.example", "403"),
    ] {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        stream
            .write_all(format!("{request}\r\nConnection: close\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let answer = read_until(&mut stream, |_| false).await;
        assert_eq!(answer.split(' ').nth(1), Some(expected), "{request}\n{answer}");
    }
}

#[tokio::test]
async fn with_authentication_any_host_name_and_without_an_allowed_one_is_accepted() {
    let named = HttpOptions {
        allowed_hosts: vec!["agents.example.com".to_owned()],
        ..HttpOptions::default()
    };
    let named = Running::start(Server::new().agent("echo", Echo).http_options(named)).await;
    for server in [guarded().await, named] {
        let request =
            server.client.get(server.url("/healthz")).header(header::HOST, "agents.example.com");
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
}

#[tokio::test]
async fn an_agent_is_run_by_and_listed_for_the_callers_that_a_rule_allows() {
    let config = format!(
        "default_agent = \"open\"\n[auth]\nmode = \"api_key\"\napi_keys = [{{ name = \"web\", sha256 = {:?} }}, \
         {{ name = \"ci\", sha256 = {DIGEST_OF_SECRET:?} }}]\n[agents.open]\nkind = \"echo\"\n\
         [agents.closed]\nkind = \"echo\"\n[[allow]]\nagents = [\"closed\"]\nprincipals = [\"key:web\"]\n",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    );
    let keys = [ApiKey::from_secret("web", "open sesame"), ApiKey::from_secret("ci", "secret")];
    let server = Running::start(Server::from_toml_str(&config).unwrap().api_keys(keys)).await;
    let get = async |path: &str, key: &str| {
        let request = server
            .client
            .get(server.url(path))
            .bearer_auth(key)
            .header(header::ACCEPT, "application/json");
        request.send().await.unwrap()
    };
    for (key, status, listed) in [("open sesame", 200, true), ("secret", 403, false)] {
        for path in ["/agents/closed/send-message", "/copilotkit/agent/closed/run"] {
            let response =
                server.post(path).bearer_auth(key).json(&input("hi")).send().await.unwrap();
            assert_eq!(response.status(), status, "{path} {key}");
            let text = response.text().await.unwrap();
            assert_eq!(text.contains("agent_not_allowed"), !listed, "{text}");
        }
        assert_eq!(
            server
                .post("/send-message")
                .bearer_auth(key)
                .json(&input("hi"))
                .send()
                .await
                .unwrap()
                .status(),
            200
        );
        assert_eq!(get("/agents/closed/capabilities", key).await.status(), status);
        for path in ["/", "/agents", "/copilotkit/info"] {
            let text = get(path, key).await.text().await.unwrap();
            assert!(
                text.contains("open") && text.contains("\"closed\"") == listed,
                "{path} {key}: {text}"
            );
        }
        let unknown = get("/agents/unknown/capabilities", key).await.text().await.unwrap();
        assert!(!unknown.contains("closed"), "{unknown}");
    }
}

/// A server that an application authenticates: its agent answers with the principal's name.
fn greeting(authenticator: Authenticator) -> Server {
    let who = |_: RunAgentInput, cx: RunContext| {
        events(TextMessage::whole(cx.principal().map_or("nobody", |principal| principal.name())))
    };
    Server::new().agent("who", who).authenticator(authenticator)
}

#[tokio::test]
async fn a_function_of_the_application_authenticates_requests() {
    let authenticator = Authenticator::from_fn(|request: Parts| async move {
        match request.headers.get("x-user").and_then(|user| user.to_str().ok()) {
            Some("broken") => Err(AuthError::failed("the password of the database is wrong")),
            Some(user) => Ok(Principal::new("app", user)),
            None => Err(AuthError::refused(format!("{} needs a user", request.uri.path()))),
        }
    });
    let server = Running::start(greeting(authenticator)).await;
    let ask = async |user: Option<&str>| {
        let mut request = server.post("/send-message").json(&input("hi"));
        if let Some(user) = user {
            request = request.header("x-user", user);
        }
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.headers().clone(), response.text().await.unwrap())
    };
    let (status, _, body) = ask(Some("ada")).await;
    assert!(status == 200 && body.contains("\"delta\":\"ada\""), "{body}");
    let (status, headers, body) = ask(None).await;
    assert_eq!(
        (status, &headers[header::WWW_AUTHENTICATE]),
        (401, &"Bearer realm=\"agui-server\"".parse().unwrap())
    );
    assert!(
        body.contains("unauthenticated") && body.contains("/send-message needs a user"),
        "{body}"
    );
    let (status, headers, body) = ask(Some("broken")).await;
    assert_eq!((status, &headers[header::RETRY_AFTER]), (503, &"1".parse().unwrap()));
    assert!(body.contains("authentication_unavailable") && !body.contains("password"), "{body}");
}

#[tokio::test]
async fn a_mounted_server_takes_the_principal_of_the_applications_middleware() {
    let sign_in = async |mut request: Request, next: Next| {
        if let Some(user) =
            request.headers().get("x-user").map(|user| user.to_str().unwrap().to_owned())
        {
            request.extensions_mut().insert(Principal::new("app", &user));
        }
        next.run(request).await
    };
    let app = axum::Router::new()
        .nest("/ai", greeting(Authenticator::from_extension()).into_router().unwrap().0);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/ai/send-message", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app.layer(from_fn(sign_in))).await });
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let request =
        client.post(&url).header("x-user", "ada").json(&input("hi")).send().await.unwrap();
    assert!(request.text().await.unwrap().contains("\"delta\":\"ada\""));
    assert_eq!(client.post(&url).json(&input("hi")).send().await.unwrap().status(), 401);
}
