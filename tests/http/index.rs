//! `GET /`: the description of the server.

use agui_server::{
    Server,
    agent::builtin::Echo,
    auth::ApiKey,
    options::{MetricsOptions, PlaygroundOptions},
};
use reqwest::header;
use serde_json::{Value, json};

use crate::support::running::{Running, input};

async fn get(server: &Running, accept: &str, key: Option<&str>) -> reqwest::Response {
    let mut request = server.client.get(server.url("/")).header(header::ACCEPT, accept);
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    request.send().await.unwrap()
}

fn two_agents() -> Server {
    Server::new().agent("clerk", Echo).agent_at("/api/<shop>", "shop", Echo)
}

#[tokio::test]
async fn the_server_describes_itself_as_page_text_and_json() {
    let server = Running::start(two_agents()).await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for (accept, media_type) in [
        (browser, "text/html; charset=utf-8"),
        ("*/*", "text/plain; charset=utf-8"),
        ("application/json", "application/json"),
    ] {
        let response = get(&server, accept, None).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()[header::CONTENT_TYPE], media_type);
        let body = response.text().await.unwrap();
        for part in [
            env!("CARGO_PKG_VERSION"),
            "clerk",
            "/threads/{thread}/connect",
            "curl -N http://127.0.0.1:",
        ] {
            assert!(body.contains(part), "{part}: {body}");
        }
        assert!(
            !body.contains("<shop>") || media_type != "text/html; charset=utf-8",
            "unescaped: {body}"
        );
    }
}

#[tokio::test]
async fn the_page_links_the_playground_openapi_and_the_documentation() {
    let documentation = "https://github.com/agui-server/agui-server#readme";
    for (options, has_playground) in
        [(PlaygroundOptions::enabled(), true), (PlaygroundOptions::disabled(), false)]
    {
        let server = Running::start(two_agents().playground(options)).await;
        let page = get(&server, "text/html", None).await.text().await.unwrap();
        assert_eq!(page.contains("<a href=\"/playground\">"), has_playground, "{page}");
        for link in
            ["<a href=\"/openapi.json\">".to_owned(), format!("<a href=\"{documentation}\">")]
        {
            assert!(page.contains(&link), "{link}: {page}");
        }
        assert!(get(&server, "*/*", None).await.text().await.unwrap().contains(documentation));
    }
}

#[tokio::test]
async fn a_proxy_names_the_prefix_that_it_removes() {
    let server = Running::start(two_agents().playground(PlaygroundOptions::enabled())).await;
    let get = |path: &str| server.client.get(server.url(path)).header("x-forwarded-prefix", "/ai/");
    let page =
        get("/").header(header::ACCEPT, "text/html").send().await.unwrap().text().await.unwrap();
    for part in [&format!("curl -N {}/ai/send-message ", server.url("")), "href=\"/ai/playground\""]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let info: Value = get("/copilotkit/info").send().await.unwrap().json().await.unwrap();
    assert_eq!(info["intelligence"]["wsUrl"], format!("//{}/ai/copilotkit/socket", server.address));
}

#[tokio::test]
async fn the_page_runs_no_scripts() {
    let server = Running::start(two_agents()).await;
    let response = get(&server, "text/html", None).await;
    let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("script"),
        "{policy}"
    );
    assert_eq!(response.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert!(!response.text().await.unwrap().contains("<script"));
}

#[tokio::test]
async fn the_example_command_of_the_description_is_a_valid_request() {
    let server = Running::start(Server::new().agent("echo", Echo)).await;
    let description: Value = get(&server, "application/json", None).await.json().await.unwrap();
    assert_eq!(description["authentication"], "none");
    assert_eq!(description["agents"][0]["name"], "echo");
    let example = description["example"].as_str().unwrap();
    let url = example.split_whitespace().nth(2).unwrap();
    assert_eq!(url, server.url("/send-message"));
    let body = example.split("-d '").nth(1).unwrap().trim_end_matches('\'');
    let request = server
        .client
        .post(url)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.to_owned());
    assert!(request.send().await.unwrap().text().await.unwrap().contains("RUN_FINISHED"));
}

#[tokio::test]
async fn with_authentication_only_callers_with_a_credential_get_the_description() {
    let keys = [ApiKey::from_secret("web", "open sesame")];
    let server =
        Running::start(two_agents().api_keys(keys).metrics(MetricsOptions::on_main_listener()))
            .await;
    for accept in ["text/html", "*/*", "application/json"] {
        for key in [None, Some("wrong")] {
            let response = get(&server, accept, key).await;
            assert_eq!(response.status(), 401);
            assert!(response.headers().contains_key(header::WWW_AUTHENTICATE));
            let body = response.text().await.unwrap();
            for secret in ["clerk", "shop", "/send-message", env!("CARGO_PKG_VERSION")] {
                assert!(!body.contains(secret), "{secret}: {body}");
            }
        }
        let body = get(&server, accept, Some("open sesame")).await.text().await.unwrap();
        assert!(body.contains("clerk") && body.contains("Authorization: Bearer $KEY"), "{body}");
    }
    let metrics =
        server.client.get(server.url("/metrics")).bearer_auth("open sesame").send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    for code in ["unauthenticated", "invalid_key"] {
        let counted = format!("agui_http_refusals_total{{status=\"401\",code=\"{code}\"}} 3\n");
        assert!(metrics.contains(&counted), "a refusal counts in each form: {metrics}");
    }
    let nearest = server.post("/api/shpo").json(&input("hi")).send().await.unwrap();
    assert!(
        !nearest.text().await.unwrap().contains("<shop>"),
        "paths of agents are for callers with a key"
    );
}

#[tokio::test]
async fn a_mounted_server_describes_itself_with_its_prefix() {
    let app =
        axum::Router::new().nest("/ai", Server::new().agent("echo", Echo).into_router().unwrap().0);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/ai", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let client = agui_base::upstream::direct_client(&Default::default()).unwrap();
    let text = client.get(&url).send().await.unwrap().text().await.unwrap();
    assert!(text.contains(&format!("curl -N {url}/send-message ")), "{text}");
    let missing =
        client.get(format!("{url}/nowhere")).send().await.unwrap().json::<Value>().await.unwrap();
    let message = "there is no route \"/ai/nowhere\". GET /ai lists all routes";
    assert_eq!(missing, json!({ "error": { "code": "not_found", "message": message } }));
}
