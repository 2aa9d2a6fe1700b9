//! `/playground`: the option that serves it, and its headers.

use agui_server::{Server, agent::builtin::Echo, auth::ApiKey, options::PlaygroundOptions};
use axum::http::{Method, StatusCode};
use reqwest::header;
use serde_json::Value;

use crate::support::running::Running;

const FILES: [(&str, &str); 4] = [
    ("/playground", "text/html; charset=utf-8"),
    ("/playground/main.js", "text/javascript; charset=utf-8"),
    ("/playground/main.css", "text/css; charset=utf-8"),
    ("/playground/icon.svg", "image/svg+xml"),
];

fn echo() -> Server {
    Server::new().agent("echo", Echo)
}

fn with_key() -> Server {
    echo().api_keys([ApiKey::from_secret("web", "open sesame")])
}

async fn status(server: &Running, path: &str) -> StatusCode {
    server.client.get(server.url(path)).send().await.unwrap().status()
}

#[tokio::test]
async fn by_default_the_page_is_served_on_loopback_without_authentication_only() {
    let disabled = PlaygroundOptions::disabled();
    for (server, expected) in [
        (echo(), StatusCode::OK),
        (echo().playground(disabled), StatusCode::NOT_FOUND),
        (with_key(), StatusCode::NOT_FOUND),
        (with_key().playground(PlaygroundOptions::enabled()), StatusCode::OK),
    ] {
        let server = Running::start(server).await;
        for (path, _) in FILES {
            assert_eq!(status(&server, path).await, expected, "{path}");
        }
    }
}

#[tokio::test]
async fn where_the_page_is_not_served_its_address_names_the_option() {
    let server = Running::start(with_key()).await;
    let refused: Value =
        server.client.get(server.url("/playground")).send().await.unwrap().json().await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("the playground is off: set [playground] enabled = true"),
        "{message}"
    );
}

#[tokio::test]
async fn on_an_address_that_is_not_loopback_the_page_must_be_enabled() {
    for (server, expected) in [
        (echo(), StatusCode::NOT_FOUND),
        (echo().playground(PlaygroundOptions::enabled()), StatusCode::OK),
    ] {
        let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
        let url = format!("http://127.0.0.1:{}/playground", listener.local_addr().unwrap().port());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let served = tokio::spawn(server.serve_on(listener, async move { drop(stopped.await) }));
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        assert_eq!(client.get(&url).send().await.unwrap().status(), expected);
        drop(stop);
        served.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_mounted_server_has_the_page_below_its_prefix_if_it_is_enabled() {
    for (server, expected) in [
        (echo(), StatusCode::NOT_FOUND),
        (echo().playground(PlaygroundOptions::enabled()), StatusCode::OK),
    ] {
        let app = axum::Router::new().nest("/ai", server.into_router().unwrap().0);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/ai/playground", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
        assert_eq!(client.get(&url).send().await.unwrap().status(), expected);
        let with_slash = client.get(format!("{url}/")).send().await.unwrap();
        if expected == StatusCode::OK {
            assert_eq!(with_slash.status(), StatusCode::PERMANENT_REDIRECT);
            let target = reqwest::Url::parse(&format!("{url}/")).unwrap();
            let location = with_slash.headers()[header::LOCATION].to_str().unwrap();
            assert_eq!(target.join(location).unwrap().as_str(), url);
        }
    }
}

#[tokio::test]
async fn the_files_have_their_media_types_and_a_policy_that_allows_nothing_from_elsewhere() {
    let server = Running::start(echo()).await;
    for (path, media_type) in FILES {
        let response = server.client.get(server.url(path)).send().await.unwrap();
        let headers = response.headers().clone();
        assert_eq!(headers[header::CONTENT_TYPE], media_type);
        assert_eq!(headers[header::CACHE_CONTROL], "public, no-cache");
        assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
            "form-action 'none'",
        ] {
            assert!(policy.split("; ").any(|directive| directive == part), "{part}: {policy}");
        }
        for unsafe_source in ["unsafe", "http", "*"] {
            assert!(!policy.contains(unsafe_source), "{policy}");
        }
        let body = response.text().await.unwrap();
        if path == "/playground" {
            assert!(
                !body.contains("<style") && !body.contains("<script>") && !body.contains("//"),
                "{body}"
            );
        }
    }
}

#[tokio::test]
async fn a_browser_with_the_current_file_gets_no_body() {
    let server = Running::start(echo()).await;
    let get = |etag: String| {
        server.client.get(server.url("/playground/main.js")).header(header::IF_NONE_MATCH, etag)
    };
    let first = get("\"other\"".to_owned()).send().await.unwrap();
    assert_eq!(first.status(), StatusCode::OK);
    let etag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
    for known in
        [etag.clone(), format!("\"other\", {etag}"), etag.trim_start_matches("W/").to_owned()]
    {
        let again = get(known).send().await.unwrap();
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()[header::ETAG], etag.as_str());
        assert!(again.bytes().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn head_has_the_headers_and_post_is_refused() {
    let server = Running::start(echo()).await;
    let url = server.url("/playground/main.js");
    let length = server.client.get(&url).send().await.unwrap().bytes().await.unwrap().len();
    let head = server.client.request(Method::HEAD, &url).send().await.unwrap();
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(head.headers()[header::CONTENT_LENGTH], length.to_string().as_str());
    assert_eq!(
        server.client.post(&url).send().await.unwrap().status(),
        StatusCode::METHOD_NOT_ALLOWED
    );
}

#[tokio::test]
async fn the_files_are_compressed_for_browsers() {
    let server = Running::start(echo()).await;
    let get = |coding: &'static str| {
        server
            .client
            .get(server.url("/playground/main.js"))
            .header(header::ACCEPT_ENCODING, coding)
            .send()
    };
    let [plain, gzip] = [get("identity").await.unwrap(), get("gzip, br").await.unwrap()];
    assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
    assert_eq!(gzip.headers()[header::CONTENT_ENCODING], "gzip");
    assert_eq!(gzip.headers()[header::VARY], "accept-encoding");
    let [plain, gzip] = [plain.bytes().await.unwrap().len(), gzip.bytes().await.unwrap().len()];
    assert!(gzip < plain / 2, "{gzip} of {plain}");
}

#[tokio::test]
async fn the_description_lists_the_page_where_it_is_served() {
    for (server, expected) in
        [(echo(), true), (echo().playground(PlaygroundOptions::disabled()), false)]
    {
        let server = Running::start(server).await;
        let request = server.client.get(server.url("/")).header(header::ACCEPT, "application/json");
        let description: Value = request.send().await.unwrap().json().await.unwrap();
        let is_listed = description["routes"]
            .as_array()
            .unwrap()
            .iter()
            .any(|route| route["path"] == "/playground");
        assert_eq!(is_listed, expected);
    }
}
