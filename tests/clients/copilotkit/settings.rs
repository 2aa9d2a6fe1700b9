//! The options of the routes.

use agui_server::{
    config::Sources,
    options::{CopilotKitOptions, HttpOptions, OnDisconnect, PlaygroundOptions},
};
use reqwest::header;

use super::*;

#[tokio::test]
async fn the_prefix_can_be_changed_and_the_routes_disabled() {
    let with = |change: fn(&mut CopilotKitOptions)| {
        let mut options = HttpOptions::default();
        change(&mut options.copilotkit);
        two_agents().http_options(options)
    };
    let moved = Running::start(with(|options| options.prefix = "/api/copilot".to_owned())).await;
    let status = async |server: &Running, path: &str| {
        server.client.get(server.url(path)).send().await.unwrap().status()
    };
    assert_eq!(status(&moved, "/api/copilot/info").await, 200);
    let envelope =
        moved.post("/api/copilot").json(&json!({ "method": "info" })).send().await.unwrap();
    assert_eq!(envelope.status(), 200);
    assert_eq!(status(&moved, "/copilotkit/info").await, 404);
    let without = Running::start(with(|options| options.enabled = false)).await;
    assert_eq!(status(&without, "/copilotkit/info").await, 404);
}

#[tokio::test]
async fn a_server_with_an_invalid_prefix_does_not_start() {
    let start = |prefix: &str| {
        let mut options = HttpOptions::default();
        options.copilotkit.prefix = prefix.to_owned();
        two_agents().playground(PlaygroundOptions::enabled()).http_options(options).into_router()
    };
    let error = start("copilotkit").unwrap_err().to_string();
    assert!(
        error.starts_with("copilotkit.prefix \"copilotkit\": the path must begin with a slash"),
        "{error}"
    );
    for taken in ["/playground", "/threads", "/openapi.json"] {
        let error = start(taken).unwrap_err().to_string();
        assert!(error.contains("the path is taken by routes of the server"), "{error}");
    }
}

#[tokio::test]
async fn default_is_the_default_agent_unless_an_agent_has_that_name() {
    let agents = async |server: Server| {
        let server = Running::start(server).await;
        let info =
            body(server.request_copilotkit(Method::GET, "/info").send().await.unwrap()).await;
        let agents = info["agents"].as_object().unwrap().iter();
        agents
            .map(|(id, agent)| format!("{id}: {}", agent["name"].as_str().unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(agents(two_agents()).await, ["echo: echo", "endless: endless", "default: echo"]);
    let own = two_agents().agent("default", Echo);
    assert_eq!(agents(own).await, ["echo: echo", "endless: endless", "default: default"]);
    assert_eq!(agents(Server::new()).await, Vec::<String>::new());
}

#[tokio::test]
async fn on_disconnect_can_be_set() {
    let detached = async |server: Server, props: Value| {
        let server = Running::start(server).await;
        let input = Value::Object(
            ask("t", "r")
                .as_object()
                .unwrap()
                .clone()
                .into_iter()
                .chain([("forwardedProps".into(), props)])
                .collect(),
        );
        server.post_copilotkit("", "/agent/echo/run", &input).await.text().await.unwrap();
        let thread = body(server.client.get(server.url("/threads/t")).send().await.unwrap()).await;
        thread["runs"][0]["detached"].as_bool().unwrap()
    };
    let cancelling = || {
        let mut options = HttpOptions::default();
        options.copilotkit.on_disconnect = OnDisconnect::Cancel;
        two_agents().http_options(options)
    };
    let own = || {
        let mut options = agui_server::options::ThreadOptions::default();
        options.on_disconnect_of.insert("echo".to_owned(), OnDisconnect::Cancel);
        two_agents().thread_options(options)
    };
    assert!(detached(two_agents(), json!({})).await);
    assert!(!detached(two_agents(), json!({ "onDisconnect": "cancel" })).await);
    assert!(!detached(cancelling(), json!({})).await);
    assert!(detached(cancelling(), json!({ "onDisconnect": "continue" })).await);
    assert!(!detached(own(), json!({})).await);
    assert!(detached(own(), json!({ "onDisconnect": "continue" })).await);
}

#[test]
fn the_configuration_sets_prefix_and_on_disconnect() {
    let open = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my.toml");
        std::fs::write(&file, format!("[agents.echo]\nkind = \"echo\"\n[copilotkit]\n{text}"))
            .unwrap();
        Sources { file: Some(file), ..Sources::default() }
            .load()
            .map(drop)
            .map_err(|error| error.to_string())
    };
    assert_eq!(open("prefix = \"/api/copilotkit\"\non_disconnect = \"cancel\""), Ok(()));
    assert_eq!(open("enabled = false\nprefix = \"\""), Ok(()));
    for (prefix, problem) in [
        ("copilotkit", "must begin with a slash"),
        ("/copilotkit/", "must not end with a slash"),
        ("/{agent}", "of letters, digits"),
        ("/threads", "is taken by routes of the server"),
    ] {
        let error = open(&format!("prefix = \"{prefix}\"")).unwrap_err();
        assert!(error.contains("copilotkit.prefix: ") && error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn allowed_origins_may_send_custom_headers() {
    let server = with_two_keys().await;
    let preflight = async |origin: &str| {
        let request = server
            .request_copilotkit(Method::OPTIONS, "/agent/echo/run")
            .header(header::ORIGIN, origin);
        let preflight = request.header(header::ACCESS_CONTROL_REQUEST_METHOD, "POST").header(
            header::ACCESS_CONTROL_REQUEST_HEADERS,
            "authorization,content-type,x-copilotcloud-public-api-key",
        );
        let response = preflight.send().await.unwrap();
        let header_of =
            |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        [
            header_of(header::ACCESS_CONTROL_ALLOW_ORIGIN),
            header_of(header::ACCESS_CONTROL_ALLOW_CREDENTIALS),
            header_of(header::ACCESS_CONTROL_ALLOW_HEADERS),
        ]
    };
    let [origin, credentials, headers] = preflight("http://localhost:3000").await;
    assert_eq!(origin.as_deref(), Some("http://localhost:3000"));
    assert_eq!(
        credentials, None,
        "a server with keys lets listed origins send credentials only (tests/http/cors.rs)"
    );
    assert!(headers.unwrap().contains("x-copilotcloud-public-api-key"));
    assert_eq!(preflight("https://evil.example").await[0], None);
}
