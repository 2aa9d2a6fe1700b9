//! The addresses of routes: with a slash at their end, as a proxy reports them, and without a host.

use agui_server::{Server, agent::builtin::Echo, options::HttpOptions};
use axum::Router;
use reqwest::header;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

use crate::support::{
    conversation::ask,
    running::{Running, input, read_until},
};

async fn server() -> Running {
    Running::start(Server::new().agent("echo", Echo)).await
}

#[tokio::test]
async fn a_path_with_a_slash_at_its_end_is_the_route_without_it() {
    let server = server().await;
    let document: Value = server.get("/openapi.json/").await.json().await.unwrap();
    for path in document["paths"].as_object().unwrap().keys().filter(|path| !path.ends_with('/')) {
        // No route has this method, so that nothing changes.
        let url = server.url(&path.replace(['{', '}'], ""));
        let put = async |url: &str| {
            let response = server.client.put(url).send().await.unwrap();
            (response.status(), response.headers()[header::ALLOW].clone())
        };
        assert_eq!(put(&format!("{url}/")).await, put(&url).await, "{path}");
    }
    let run =
        server.post("/send-message/?a=b").json(&ask("t", "r", "m", "hi")).send().await.unwrap();
    assert!(run.text().await.unwrap().contains("RUN_FINISHED"));
    server.run(&input("hi")).await.text().await.unwrap();
    let list: Value = server.get("/threads/?limit=1").await.json().await.unwrap();
    assert_eq!(list["threads"].as_array().unwrap().len(), 1, "the query is kept");
    assert_eq!(server.get("/nowhere/").await.status(), 404);
    assert_eq!(server.get("//").await.status(), 404);
}

#[tokio::test]
async fn a_slash_at_the_end_is_left_out_below_the_path_of_an_application() {
    let (router, _handle) = Server::new().agent("echo", Echo).into_router().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/ai", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, Router::new().nest("/ai", router)).await });
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let run = client.post(format!("{url}/send-message/")).json(&input("hi"));
    assert!(run.send().await.unwrap().text().await.unwrap().contains("RUN_FINISHED"));
    let file = client.post(format!("{url}/files/")).header("content-type", "text/plain").body("a");
    let file: Value = file.send().await.unwrap().json().await.unwrap();
    assert!(file["url"].as_str().unwrap().starts_with(&format!("{url}/files/file_")), "{file}");
}

/// Returns the status of the answer to a request as it is written.
async fn status(server: &Running, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let answer = read_until(&mut stream, |text| text.contains("\r\n\r\n")).await;
    answer.split(' ').nth(1).unwrap().to_owned()
}

#[tokio::test]
async fn a_health_check_needs_no_host() {
    let server = server().await;
    for (request, expected) in [
        ("GET /readyz HTTP/1.0\r\n\r\n", "200"),
        ("HEAD /healthz HTTP/1.0\r\n\r\n", "200"),
        ("GET /readyz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        ("GET /threads HTTP/1.0\r\n\r\n", "403"),
    ] {
        assert_eq!(status(&server, request).await, expected, "{request}");
    }
}

#[tokio::test]
async fn all_addresses_have_the_scheme_that_the_operator_or_else_a_proxy_names() {
    let options = HttpOptions {
        public_url: Some("https://chat.example/api/".to_owned()),
        ..HttpOptions::default()
    };
    let named = Running::start(Server::new().agent("echo", Echo).http_options(options)).await;
    let unnamed = server().await;
    let address = unnamed.address;
    for (server, header, [http, ws]) in [
        (
            &named,
            ("forwarded", "proto=http"),
            ["https://chat.example/api", "wss://chat.example/api"],
        ),
        (
            &unnamed,
            ("forwarded", "for=1.2.3.4;proto=https"),
            [&*format!("https://{address}"), &*format!("wss://{address}")],
        ),
        (
            &unnamed,
            ("x-forwarded-proto", "https, http"),
            [&*format!("https://{address}"), &*format!("wss://{address}")],
        ),
        (
            &unnamed,
            ("x-forwarded-proto", "http, https"),
            [&*format!("http://{address}"), &*format!("//{address}")],
        ),
        (&unnamed, ("x-other", "https"), [&*format!("http://{address}"), &*format!("//{address}")]),
    ] {
        let get = async |path: &str| -> Value {
            let request = server.client.get(server.url(path)).header(header.0, header.1);
            request.header("accept", "application/json").send().await.unwrap().json().await.unwrap()
        };
        let file =
            server.post("/files").header(header.0, header.1).header("content-type", "text/plain");
        let file: Value = file.body("a").send().await.unwrap().json().await.unwrap();
        assert!(
            file["url"].as_str().unwrap().starts_with(&format!("{http}/files/")),
            "{header:?}: {file}"
        );
        let info = get("/copilotkit/info").await;
        assert_eq!(info["intelligence"]["wsUrl"], format!("{ws}/copilotkit/socket"), "{header:?}");
        let inner = server
            .post("/copilotkit")
            .header(header.0, header.1)
            .json(&json!({ "method": "info" }));
        assert_eq!(
            inner.send().await.unwrap().json::<Value>().await.unwrap()["intelligence"],
            info["intelligence"]
        );
        let example = get("/").await["example"].as_str().unwrap().to_owned();
        assert!(example.contains(&format!(" {http}/send-message ")), "{header:?}: {example}");
    }
}
