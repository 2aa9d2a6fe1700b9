//! The header `Cache-Control`: of each route, each method and each kind of status.

use std::collections::BTreeSet;

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::ApiKey,
    options::{MetricsOptions, PlaygroundOptions},
};
use reqwest::{Method, Response, header};
use serde_json::{Value, json};

use crate::support::{conversation::ask_detached, running::Running};

/// Returns what a response may say.
fn expected(path: &str, response: &Response) -> &'static str {
    let has_content = matches!(response.status().as_u16(), 200 | 206 | 304);
    let media_type =
        response.headers().get(header::CONTENT_TYPE).map_or("", |value| value.to_str().unwrap());
    match path {
        _ if media_type.starts_with("text/event-stream") => "no-store, no-transform",
        _ if !has_content => "no-store",
        "/files/{file}" => "private, max-age=3600",
        "/openapi.json" => "private, no-cache",
        "/playground" | "/playground/main.js" | "/playground/main.css" | "/playground/icon.svg" => {
            "public, no-cache"
        }
        _ => "no-store",
    }
}

/// Nothing that a cache between a person and the server could give to another person.
#[tokio::test]
async fn every_response_says_who_may_keep_it() {
    let mut metrics = MetricsOptions::default();
    metrics.main_listener = true;
    let server = Server::new()
        .agent("echo", Echo)
        .metrics(metrics)
        .playground(PlaygroundOptions::enabled())
        .api_keys([ApiKey::from_secret("ann", "the-key-of-ann")]);
    let server = Running::start(server).await;
    let request = |method: &Method, path: &str| {
        server.client.request(method.clone(), server.url(path)).bearer_auth("the-key-of-ann")
    };
    let run = request(&Method::POST, "/send-message").json(&ask_detached("t", "r"));
    run.send().await.unwrap().text().await.unwrap();
    let file = request(&Method::POST, "/files").header("content-type", "text/plain").body("a text");
    let file: Value = file.send().await.unwrap().json().await.unwrap();
    let document: Value =
        request(&Method::GET, "/openapi.json").send().await.unwrap().json().await.unwrap();
    let mut seen = BTreeSet::new();
    let mut check = |path: &str, what: &str, response: &Response| {
        let found: Vec<_> = response.headers().get_all(header::CACHE_CONTROL).iter().collect();
        let status = response.status().as_u16();
        assert_eq!(found, [expected(path, response)], "{what} {path}: {status}");
        seen.insert(status);
    };
    let mut paths: Vec<_> = document["paths"].as_object().unwrap().keys().cloned().collect();
    paths.push("/nowhere".to_owned());
    for path in &paths {
        let filled = path
            .replace("{thread}", "t")
            .replace("{run}", "r")
            .replace("{agent}", "echo")
            .replace("{file}", file["id"].as_str().unwrap());
        let got = request(&Method::GET, &filled).send().await.unwrap();
        check(path, "GET", &got);
        if let Some(etag) = got.headers().get(header::ETAG) {
            let again = request(&Method::GET, &filled).header(header::IF_NONE_MATCH, etag);
            check(path, "GET again", &again.send().await.unwrap());
        }
        let part = request(&Method::GET, &filled).header(header::RANGE, "bytes=99-");
        check(path, "GET of a part", &part.send().await.unwrap());
        check(path, "HEAD", &request(&Method::HEAD, &filled).send().await.unwrap());
        check(path, "PUT", &request(&Method::PUT, &filled).send().await.unwrap());
        let stranger = server.client.get(server.url(&filled)).send().await.unwrap();
        check(path, "GET of a stranger", &stranger);
        let foreign =
            request(&Method::GET, &filled).header(header::ORIGIN, "http://foreign.example");
        check(path, "GET of a foreign page", &foreign.send().await.unwrap());
        check(
            path,
            "POST",
            &request(&Method::POST, &filled).json(&json!({})).send().await.unwrap(),
        );
    }
    let signed = server.client.get(file["url"].as_str().unwrap()).send().await.unwrap();
    check("/files/{file}", "GET by signature", &signed);
    for path in &paths {
        for method in [Method::PATCH, Method::DELETE] {
            let filled =
                path.replace("{thread}", "t").replace("{file}", file["id"].as_str().unwrap());
            check(
                path,
                method.as_str(),
                &request(&method, &filled).json(&json!({})).send().await.unwrap(),
            );
        }
    }
    for status in [200, 304, 400, 401, 403, 404, 405, 416] {
        assert!(seen.contains(&status), "no response with {status}: {seen:?}");
    }
}
